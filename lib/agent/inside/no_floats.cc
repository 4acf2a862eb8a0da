// The machine without floating point: no program that uses it runs in the agent.
#include "program/run/floats.h"
#include "program/run/machine.h"

namespace ktrace::program {

std::uint64_t double_bits(const std::byte *, std::size_t) { return 0; }
std::uint32_t float_bits(std::uint64_t) { return 0; }
bool Machine::floating(const Instr &) { return false; }

} // namespace ktrace::program
