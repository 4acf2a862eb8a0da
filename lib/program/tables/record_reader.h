// RecordReader: walks the values of a record (encoded as in record.h). The only decoder: sinks, captures and tests
// use it.
//
// Invariants: never reads outside of the bytes given, whatever they hold; the spans that it hands out point into them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "program/run/record.h"

namespace ktrace::program {

/// One decoded value. The tag says which members count; the others are zero.
struct Node {
    Tag tag = Tag::na;
    bool truncated = false;   // string, group: there is more than what was read
    std::uint32_t type = 0;   // raw, pointee, group: index in the location's TypeTable
    std::uint64_t number = 0; // sint (as bits), uint, hex, boolean; string, pointee: the pointer; fault: the address;
                              // group: its Form
    double floating = 0;      // floating
    std::span<const std::byte> bytes; // raw, pointee, string, buffer, registers; stack: 8 bytes an address;
                                      // group: its nodes

    std::int64_t sint() const { return static_cast<std::int64_t>(number); }
    std::string_view text() const { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }
    std::size_t frames() const { return bytes.size() / 8; } // stack
    std::uint64_t frame(std::size_t n) const;               // stack: 0 is the innermost; as in the record
    std::uint64_t frame_address(std::size_t n) const { return frame(n) & ~interrupted; }
    bool is_return_address(std::size_t n) const { return n != 0 && (frame(n) & interrupted) == 0; }
};

/// The header of a record; nothing where the bytes are no record of this version, or shorter than the header says.
std::optional<RecordHeader> read_header(std::span<const std::byte> record);

class RecordReader {
  public:
    /// Reads nodes from the first byte of `nodes` on: what follows a RecordHeader, or a key of a table.
    explicit RecordReader(std::span<const std::byte> nodes) : rest_(nodes) {}

    /// The nodes of a whole record, header included; none where the header is bad.
    static RecordReader of(std::span<const std::byte> record);

    /// The next value; nothing at the end, or where the rest is not a well-formed node (then ok() is false).
    std::optional<Node> next();
    bool ok() const { return ok_; }

  private:
    template <class T> bool take(T &into);
    bool take_bytes(std::span<const std::byte> &into, std::size_t size);
    bool take_sized(std::span<const std::byte> &into, std::size_t unit);
    bool decode(Node &node);

    std::span<const std::byte> rest_;
    bool ok_ = true;
};

} // namespace ktrace::program
