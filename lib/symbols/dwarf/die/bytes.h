// Bytes: a reader over bytes of a debug section that may be truncated or crafted.
//
// Invariant: nothing is ever read outside the span that it was made with; after the first read that would be, every
// read gives 0 and ok() is false.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace ktrace::symbols {

class Bytes {
  public:
    Bytes() = default;
    explicit Bytes(std::span<const std::uint8_t> all) : at_(all.data()), end_(all.data() + all.size()) {}
    Bytes(const std::uint8_t *begin, const std::uint8_t *end) : at_(begin), end_(end) {}

    bool ok() const { return ok_; }
    bool at_end() const { return at_ >= end_; }
    const std::uint8_t *at() const { return at_; }
    std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

    /// The rest of the span becomes at most the next `size` bytes; false where there are fewer.
    bool limit(std::uint64_t size) {
        if (size > left()) return fail();
        end_ = at_ + size;
        return true;
    }
    bool skip(std::uint64_t size) {
        if (size > left()) return fail();
        at_ += size;
        return true;
    }

    template <class T> T read() {
        T value{};
        if (sizeof(T) > left()) {
            fail();
            return value;
        }
        std::memcpy(&value, at_, sizeof(T));
        at_ += sizeof(T);
        return value;
    }
    std::uint8_t u8() { return read<std::uint8_t>(); }
    std::uint16_t u16() { return read<std::uint16_t>(); }
    std::uint32_t u32() { return read<std::uint32_t>(); }
    std::uint64_t u64() { return read<std::uint64_t>(); }

    /// An unsigned number of 1, 2, 3, 4 or 8 bytes, little endian.
    std::uint64_t sized(unsigned size) {
        if (size > 8 || size > left()) {
            fail();
            return 0;
        }
        std::uint64_t value = 0;
        std::memcpy(&value, at_, size);
        at_ += size;
        return value;
    }

    /// LEB128 (DWARF 5, 7.6); bits beyond 64 are dropped.
    std::uint64_t uleb() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; at_ < end_; shift += 7) {
            std::uint8_t byte = *at_++;
            if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
            if ((byte & 0x80U) == 0) return value;
        }
        fail();
        return 0;
    }
    std::int64_t sleb() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; at_ < end_;) {
            std::uint8_t byte = *at_++;
            if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
            shift += 7;
            if ((byte & 0x80U) == 0) {
                if (shift < 64 && (byte & 0x40U) != 0) value |= ~std::uint64_t{0} << shift;
                return static_cast<std::int64_t>(value);
            }
        }
        fail();
        return 0;
    }

    /// Up to the next NUL, which is skipped.
    std::string_view string() {
        const void *nul = left() != 0 ? std::memchr(at_, 0, left()) : nullptr;
        if (nul == nullptr) {
            fail();
            return {};
        }
        std::string_view text(reinterpret_cast<const char *>(at_),
                              static_cast<std::size_t>(static_cast<const std::uint8_t *>(nul) - at_));
        at_ += text.size() + 1;
        return text;
    }

  private:
    bool fail() {
        ok_ = false;
        at_ = end_;
        return false;
    }

    const std::uint8_t *at_ = nullptr;
    const std::uint8_t *end_ = nullptr;
    bool ok_ = true;
};

} // namespace ktrace::symbols
