// NodeWriter: writes the nodes of a record, of a capture or of a table's key (encoded as in record.h) into a
// buffer.
//
// Invariants: never writes behind its buffer; a payload is cut off at `limit` bytes; a node that does not fit is left
// out whole and `overflowed` says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "program/run/record.h"

namespace ktrace::program {

class NodeWriter {
  public:
    /// `keys`: the nodes of a table's key: strings are written without their pointer.
    NodeWriter(std::span<std::byte> into, std::size_t limit, bool keys) : into_(into), limit_(limit), keys_(keys) {}

    bool is_key() const { return keys_; }
    std::size_t size() const { return used_; }
    bool overflowed() const { return overflowed_; }

    void empty(Tag tag) { // na, unavailable
        if (reserve(1)) put_tag(tag);
    }
    void number(Tag tag, std::uint64_t bits) { // sint, uint, hex, fault, floating (a double's bits)
        if (!reserve(9)) return;
        put_tag(tag);
        put(bits);
    }
    void boolean(bool value) {
        if (!reserve(2)) return;
        put_tag(Tag::boolean);
        put(std::uint8_t{value});
    }
    void raw(std::uint32_t type, std::span<const std::byte> bytes) {
        bytes = cut(bytes);
        if (!reserve(9 + bytes.size())) return;
        put_tag(Tag::raw);
        put(type);
        put_sized(bytes);
    }
    void string(std::uint64_t pointer, bool truncated, std::span<const std::byte> bytes) {
        truncated = truncated || bytes.size() > limit_;
        bytes = cut(bytes);
        if (!reserve(14 + bytes.size())) return;
        put_tag(Tag::string);
        put(keys_ ? std::uint64_t{0} : pointer);
        put(std::uint8_t{truncated});
        put_sized(bytes);
    }
    void pointee(std::uint64_t pointer, std::uint32_t type, std::span<const std::byte> bytes) {
        bytes = cut(bytes);
        if (!reserve(17 + bytes.size())) return;
        put_tag(Tag::pointee);
        put(pointer);
        put(type);
        put_sized(bytes);
    }
    void sized(Tag tag, std::span<const std::byte> bytes) { // buffer, registers
        if (tag == Tag::buffer) bytes = cut(bytes);
        if (!reserve(5 + bytes.size())) return;
        put_tag(tag);
        put_sized(bytes);
    }
    void stack(std::span<const std::uint64_t> addresses) {
        if (!reserve(5 + addresses.size_bytes())) return;
        put_tag(Tag::stack);
        put(static_cast<std::uint32_t>(addresses.size()));
        copy(std::as_bytes(addresses));
    }
    /// Nodes that were written before.
    void nodes(std::span<const std::byte> bytes) {
        if (reserve(bytes.size())) copy(bytes);
    }

  private:
    std::span<const std::byte> cut(std::span<const std::byte> bytes) const {
        return bytes.size() > limit_ ? bytes.first(limit_) : bytes;
    }
    bool reserve(std::size_t size) {
        if (overflowed_ || into_.size() - used_ < size) overflowed_ = true;
        return !overflowed_;
    }
    void copy(std::span<const std::byte> bytes) {
        if (!bytes.empty()) std::memcpy(into_.data() + used_, bytes.data(), bytes.size());
        used_ += bytes.size();
    }
    template <class T> void put(T value) { copy(std::as_bytes(std::span(&value, 1))); }
    void put_tag(Tag tag) { put(static_cast<std::uint8_t>(tag)); }
    void put_sized(std::span<const std::byte> bytes) {
        put(static_cast<std::uint32_t>(bytes.size()));
        copy(bytes);
    }

    std::span<std::byte> into_;
    std::size_t limit_;
    std::size_t used_ = 0;
    bool keys_;
    bool overflowed_ = false;
};

} // namespace ktrace::program
