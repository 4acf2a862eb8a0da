// The parts of tables of instructions: their bytes as hex text, a memory of single bytes, names of rows.
#pragma once

#include <cctype>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/memory.h"

namespace ktrace::test {

/// `48 8b 05` → its three bytes. Anything but hex digits in pairs and blanks is a mistake in the test.
inline std::vector<std::byte> hex(std::string_view text) {
    auto digit = [](char c) {
        KT_CHECK(std::isxdigit(static_cast<unsigned char>(c)));
        return std::isdigit(static_cast<unsigned char>(c)) ? c - '0' : (c | 0x20) - 'a' + 10;
    };
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == ' ') continue;
        KT_CHECK(i + 1 < text.size());
        bytes.push_back(static_cast<std::byte>(digit(text[i]) * 16 + digit(text[i + 1])));
        ++i;
    }
    return bytes;
}

/// `text` as a part of a test's name: letters, digits and underscores.
inline std::string test_name(std::string_view text) {
    std::string name;
    for (char c : text) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return name;
}

/// Memory of which only the bytes that were put there exist.
class SparseMemory : public Memory {
  public:
    std::size_t read(VirtAddr at, std::span<std::byte> into) override {
        for (std::size_t i = 0; i < into.size(); ++i) {
            auto found = bytes_.find(at.value + i);
            if (found == bytes_.end()) return i;
            into[i] = found->second;
        }
        return into.size();
    }
    bool write(VirtAddr at, std::span<const std::byte> bytes) override {
        for (std::size_t i = 0; i < bytes.size(); ++i)
            if (!bytes_.contains(at.value + i)) return false;
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes_[at.value + i] = bytes[i];
        return true;
    }
    /// Makes the bytes exist.
    template <class T> void put(std::uint64_t at, const T &value) {
        const auto bytes = std::as_bytes(std::span(&value, 1));
        for (std::size_t i = 0; i < bytes.size(); ++i) bytes_[at + i] = bytes[i];
    }

  private:
    std::map<std::uint64_t, std::byte> bytes_;
};

} // namespace ktrace::test
