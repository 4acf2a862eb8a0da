// A program run under ptrace for the tests of places: stopped at an address, stepped, and asked for values.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "arch/host.h"
#include "value/place.h"

namespace ktrace::symbols::test {

class StoppedProgram {
  public:
    /// Starts a program that is not position independent, so that its addresses are its vaddrs.
    explicit StoppedProgram(const std::string &path);
    ~StoppedProgram();
    StoppedProgram(const StoppedProgram &) = delete;

    /// Runs until it is about to execute the instruction at an address; false where it ends before. Signals on the way
    /// are delivered.
    bool run_to(std::uint64_t address);
    /// Executes one instruction; false where it ends.
    bool step();
    std::uint64_t pc() const { return arch::Host::pc(registers_).value; }
    std::uint64_t sp() const { return arch::Host::sp(registers_).value; }
    const arch::Host::Registers &registers() const { return registers_; }
    pid_t pid() const { return pid_; }
    std::vector<std::uint8_t> read(std::uint64_t address, std::size_t size) const;
    std::uint64_t word(std::uint64_t address) const;

    /// The first `size` bytes of what lies at a place; nullopt where a piece is unavailable or needs what only a tracer
    /// knows (thread-local storage, values at entry).
    std::optional<std::vector<std::uint8_t>> bytes(const value::Place &place, std::size_t size) const;
    template <class T> std::optional<T> value(const value::Place &place) const {
        auto raw = bytes(place, sizeof(T));
        if (!raw) return std::nullopt;
        T result{};
        std::copy(raw->begin(), raw->end(), reinterpret_cast<std::uint8_t *>(&result));
        return result;
    }

  private:
    bool wait();
    /// nullptr: no such register, or it is no `file`.
    const std::byte *find_register(unsigned dwarf, arch::RegisterInfo::File file) const;
    std::optional<std::uint64_t> register_value(unsigned dwarf) const;
    std::optional<std::uint64_t> run(const std::vector<value::Op> &ops) const;
    std::optional<std::vector<std::uint8_t>> bytes(const value::Piece &piece, std::size_t size) const;

    pid_t pid_ = -1;
    int signal_ = 0; // that it stopped for
    arch::Host::Registers registers_{};
    arch::Host::FpRegisters floating_{};
};

/// Runs the ops of a piece, with registers and memory as given; nullopt where it breaks.
std::optional<std::uint64_t>
run_ops(const std::vector<value::Op> &ops, const std::function<std::optional<std::uint64_t>(unsigned)> &registers,
        const std::function<std::optional<std::uint64_t>(std::uint64_t, unsigned)> &memory);

} // namespace ktrace::symbols::test
