// ProcessMemory: the memory of one address space as it is, through /proc/PID/mem, with PTRACE_POKETEXT where that file
// may not be written. Shows our own traps: only target/address_space reads through it.
#pragma once

#include <cstddef>
#include <span>

#include "base/addr.h"
#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"

namespace ktrace::os {

class ProcessMemory {
  public:
    static Result<ProcessMemory> open(Pid pid);

    /// Bytes read from the front; less than asked for means a fault behind them (or the process is gone: 0).
    std::size_t read(VirtAddr at, std::span<std::byte> into) const;
    /// All of it or false; writes read-only text too (a private copy of the page is made).
    bool write(VirtAddr at, std::span<const std::byte> bytes) const;

  private:
    ProcessMemory(Fd fd, Pid pid) : fd_(std::move(fd)), pid_(pid) {}
    bool poke(VirtAddr at, std::span<const std::byte> bytes) const;

    Fd fd_;
    Pid pid_;
};

} // namespace ktrace::os
