// Shared by the arm64 tests: words to bytes, and a memory port on a byte array.
#pragma once

#include <cstring>
#include <initializer_list>
#include <vector>

#include "arm64/arm64.h"
#include "arm64/words.h"

namespace ktrace::arch::test {

inline std::vector<std::byte> code(std::initializer_list<std::uint32_t> words) {
    std::vector<std::byte> bytes;
    for (std::uint32_t word : words)
        for (std::byte byte : a64_bytes(word)) bytes.push_back(byte);
    return bytes;
}

inline Arm64Plan plan(std::uint32_t word, VirtAddr at) { return Arm64::plan(a64_bytes(word), at); }

/// Bytes from `start` on; everything else faults.
class ByteMemory : public Memory {
  public:
    ByteMemory(VirtAddr start, std::vector<std::byte> bytes) : start_(start), bytes_(std::move(bytes)) {}

    std::size_t read(VirtAddr at, std::span<std::byte> into) override {
        if (at < start_ || at - start_ >= static_cast<std::int64_t>(bytes_.size())) return 0;
        auto offset = static_cast<std::size_t>(at - start_);
        std::size_t size = std::min(into.size(), bytes_.size() - offset);
        std::memcpy(into.data(), bytes_.data() + offset, size);
        return size;
    }
    bool write(VirtAddr at, std::span<const std::byte> bytes) override {
        if (at < start_ ||
            at - start_ + static_cast<std::int64_t>(bytes.size()) > static_cast<std::int64_t>(bytes_.size()))
            return false;
        std::memcpy(bytes_.data() + (at - start_), bytes.data(), bytes.size());
        return true;
    }

  private:
    VirtAddr start_;
    std::vector<std::byte> bytes_;
};

} // namespace ktrace::arch::test
