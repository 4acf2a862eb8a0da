#include "program/run/program.h"

#include "program/run/code.h"

namespace ktrace::program {

Program::Program() : code(std::make_unique<Code>()) {}
Program::~Program() = default;
Program::Program(Program &&) noexcept = default;
Program &Program::operator=(Program &&) noexcept = default;

Needs Program::needs(Moment moment) const { return code->moment(moment).needs; }
std::size_t Program::capture_size() const { return code->capture_size; }

} // namespace ktrace::program
