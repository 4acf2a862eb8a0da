// Sets of signals as the kernel keeps them: bit N-1 stands for signal N.
#pragma once

#include <csignal>
#include <cstdint>

namespace ktrace {

constexpr std::uint64_t signal_bit(int signal) { return std::uint64_t{1} << (signal - 1); }

/// Those whose default action is to stop the process (signal(7)).
inline constexpr std::uint64_t stop_signals =
    signal_bit(SIGSTOP) | signal_bit(SIGTSTP) | signal_bit(SIGTTIN) | signal_bit(SIGTTOU);

/// Signals that an instruction raises: blocked, these end the process (signal(7)), so no mask of ours has them.
inline constexpr std::uint64_t synchronous_signals = signal_bit(SIGSEGV) | signal_bit(SIGBUS) | signal_bit(SIGILL) |
                                                     signal_bit(SIGFPE) | signal_bit(SIGTRAP) | signal_bit(SIGSYS);

/// Those of them that neither a trap nor a system call of ours raises.
inline constexpr std::uint64_t memory_and_arithmetic =
    synchronous_signals & ~(signal_bit(SIGTRAP) | signal_bit(SIGSYS));

} // namespace ktrace
