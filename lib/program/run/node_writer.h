// NodeWriter: writes the nodes of a record, of a capture or of a table's key (encoded as in record.h) into a
// buffer.
//
// Invariants: never writes behind its buffer; a payload is cut off at `limit` bytes; a node that does not fit is left
// out whole and `overflowed` says so.
#pragma once

#include <algorithm>
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
    /// Nodes up to end_group are parts of this one; all of them have no more room than another node. `scratch`: the
    /// bytes of the machine's scratch that stay while it is open.
    void begin_group(Form form, std::uint32_t type, std::size_t scratch) {
        if (open_ == 0 && skipped_ == 0) {
            scratch_ = scratch;
            group_end_ = std::min(into_.size(), used_ + group_head + limit_);
        }
        if (skipped_ != 0 || open_ == most_groups || !reserve(group_head)) {
            ++skipped_;
            full_ = true;
            return;
        }
        groups_[open_++] = {static_cast<std::uint32_t>(used_), 0};
        put_tag(Tag::group);
        put(static_cast<std::uint8_t>(form));
        put(std::uint8_t{0});
        put(type);
        put(std::uint32_t{0});
    }
    /// True: the innermost open group shows another element. False: it does not, and says so.
    bool more() {
        const bool shows = open_ != 0 && !full_ && groups_[open_ - 1].elements++ < most_elements;
        if (!shows) cut_group();
        return shows;
    }
    /// The innermost open group has more elements than are shown.
    void cut_group() {
        if (open_ != 0) into_[groups_[open_ - 1].start + 2] = std::byte{1};
    }
    void end_group() {
        if (skipped_ != 0) {
            --skipped_;
        } else if (open_ != 0) {
            if (full_) cut_group();
            const std::size_t start = groups_[--open_].start;
            const auto size = static_cast<std::uint32_t>(used_ - start - group_head);
            std::memcpy(into_.data() + start + group_head - sizeof size, &size, sizeof size);
        }
        if (open_ == 0 && skipped_ == 0) full_ = false;
    }
    /// A group that was begun and not ended is as if it had never been.
    void abandon_groups() {
        if (open_ != 0) used_ = groups_[0].start;
        open_ = skipped_ = 0;
        full_ = false;
    }
    bool in_group() const { return open_ != 0; }
    std::size_t scratch_below() const { return open_ != 0 ? scratch_ : 0; }
    /// Nodes that were written before.
    void nodes(std::span<const std::byte> bytes) {
        if (reserve(bytes.size())) copy(bytes);
    }

  private:
    std::span<const std::byte> cut(std::span<const std::byte> bytes) const {
        return bytes.size() > limit_ ? bytes.first(limit_) : bytes;
    }
    bool reserve(std::size_t size) {
        if (open_ != 0 || skipped_ != 0) {
            full_ = full_ || skipped_ != 0 || group_end_ - used_ < size;
            return !full_;
        }
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

    static constexpr std::size_t group_head = 11, most_groups = 8, most_elements = 10;
    struct Group {
        std::uint32_t start, elements;
    };
    Group groups_[most_groups]; // not cleared: the first `open_` are open, outermost first
    std::size_t open_ = 0;
    std::size_t skipped_ = 0;   // begun in these, and not written
    std::size_t group_end_ = 0; // of the outermost one, at most
    std::size_t scratch_ = 0;
    bool full_ = false; // a part of an open group had no room: the rest of it is left out
};

} // namespace ktrace::program
