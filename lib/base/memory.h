// Memory: the port through which pure code (ISAs, eval, unwinding) reads and writes a target, or a byte array in a
// test.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

#include "base/addr.h"

namespace ktrace {

class Memory {
  public:
    virtual ~Memory() = default;

    /// Reads bytes from `at` on, as the program itself would see them (never one of our traps). Returns how many were
    /// readable, from the front; less than asked for means a fault at `at` + that number.
    virtual std::size_t read(VirtAddr at, std::span<std::byte> into) = 0;

    /// Writes all of `bytes` at `at`, or returns false (nothing may be assumed of what was written then).
    virtual bool write(VirtAddr at, std::span<const std::byte> bytes) = 0;

    template <class T> std::optional<T> read_value(VirtAddr at) {
        static_assert(std::is_trivially_copyable_v<T>);
        T value;
        if (read(at, std::as_writable_bytes(std::span(&value, 1))) != sizeof(T)) return std::nullopt;
        return value;
    }
    template <class T> bool write_value(VirtAddr at, const T &value) {
        static_assert(std::is_trivially_copyable_v<T>);
        return write(at, std::as_bytes(std::span(&value, 1)));
    }
};

} // namespace ktrace
