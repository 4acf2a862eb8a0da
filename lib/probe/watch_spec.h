// WatchSpec: a WSPEC: NAME|ADDRESS[/LENGTH][:w|rw|x], and what it means in a process.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arch/isa.h"
#include "base/result.h"
#include "probe/resolve.h"
#include "program/lower/scope.h"

namespace ktrace::probe {

struct WatchSpec {
    std::string name; // empty: an address
    std::uint64_t address = 0;
    std::uint64_t length = 0; // bytes; 0: the variable's own, or 8
    arch::WatchRegister::When when = arch::WatchRegister::When::write;
};

/// Error: usage, with the column.
Result<WatchSpec> parse_watch(std::string_view text);

/// The watched data, in one process.
struct WatchPlace {
    Location location; // of the variable; offset and function are 0
    std::uint64_t bias = 0;
    std::optional<program::Binding> binding; // how its value is read; nothing: it is executed
    bool in_thread = false;                  // `at` is an offset from each thread's thread pointer
    VirtAddr at;
    std::vector<arch::WatchRegister> parts; // their addresses are offsets from `at`
};

/// Errors: not_found (no such variable), refused (unaligned, too long, a thread-local variable of a library, …).
Result<WatchPlace> resolve_watch(std::string_view text, std::span<const Loaded> modules);

} // namespace ktrace::probe
