// Mirrored: the pages of the target that a host has during one Call.
//
// Invariants: only the bytes that the host has changed in a page are written back, so that writes by other threads of
// the target stay; ktrace's traps are neither shown nor overwritten (the address space sees to that).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "plugin/channel.h"
#include "target/process.h"

namespace ktrace::plugin {

class Mirrored {
  public:
    explicit Mirrored(Channel &channel) : channel_(channel) {}

    /// Puts the page at `address` into the pool; its number. Nothing: it is not mapped, or not readable.
    std::optional<std::size_t> bring(target::Process &process, VirtAddr address);
    /// From now on the host may write to it. False: the target may not.
    bool allow_writing(target::Process &process, VirtAddr address);
    /// The written bytes go to the target; the pool is empty again.
    void write_back(target::Process &process);
    /// The pool is empty again, and its changes are lost: the host has died over it.
    void forget();

  private:
    struct Page {
        VirtAddr address;
        std::vector<std::byte> before; // empty: the host may not write
    };
    Channel &channel_;
    std::vector<Page> pages_; // by number in the pool
    std::map<VirtAddr, std::size_t> numbers_;
};

} // namespace ktrace::plugin
