#include "program/tables/record_reader.h"

#include <cstring>

namespace ktrace::program {

std::uint64_t Node::frame(std::size_t n) const {
    std::uint64_t address = 0;
    if (n < frames()) std::memcpy(&address, bytes.data() + n * 8, 8);
    return address;
}

std::optional<RecordHeader> read_header(std::span<const std::byte> record) {
    RecordHeader header;
    if (record.size() < sizeof header) return std::nullopt;
    std::memcpy(&header, record.data(), sizeof header);
    if (header.version != record_version || header.size < sizeof header || header.size > record.size())
        return std::nullopt;
    return header;
}

RecordReader RecordReader::of(std::span<const std::byte> record) {
    auto header = read_header(record);
    if (!header) return RecordReader({});
    return RecordReader(record.subspan(sizeof *header, header->size - sizeof *header));
}

template <class T> bool RecordReader::take(T &into) {
    if (rest_.size() < sizeof(T)) return false;
    std::memcpy(&into, rest_.data(), sizeof(T));
    rest_ = rest_.subspan(sizeof(T));
    return true;
}

bool RecordReader::take_bytes(std::span<const std::byte> &into, std::size_t size) {
    if (rest_.size() < size) return false;
    into = rest_.first(size);
    rest_ = rest_.subspan(size);
    return true;
}

bool RecordReader::take_sized(std::span<const std::byte> &into, std::size_t unit) {
    std::uint32_t count = 0;
    return take(count) && take_bytes(into, std::size_t{count} * unit);
}

bool RecordReader::decode(Node &node) {
    std::uint8_t small = 0;
    switch (node.tag) {
    case Tag::raw: return take(node.type) && take_sized(node.bytes, 1);
    case Tag::string:
        if (!take(node.number) || !take(small)) return false;
        node.truncated = small != 0;
        return take_sized(node.bytes, 1);
    case Tag::pointee: return take(node.number) && take(node.type) && take_sized(node.bytes, 1);
    case Tag::sint:
    case Tag::uint:
    case Tag::hex:
    case Tag::symbol:
    case Tag::function:
    case Tag::fault: return take(node.number);
    case Tag::floating: return take(node.floating);
    case Tag::boolean:
        if (!take(small)) return false;
        node.number = small;
        return true;
    case Tag::buffer:
    case Tag::registers: return take_sized(node.bytes, 1);
    case Tag::stack: return take_sized(node.bytes, 8);
    case Tag::group: {
        std::uint8_t cut = 0;
        if (!take(small) || !take(cut)) return false;
        node.number = small;
        node.truncated = cut != 0;
        return take(node.type) && take_sized(node.bytes, 1);
    }
    case Tag::elided:
    case Tag::na:
    case Tag::unavailable:
    case Tag::not_known: return true;
    }
    return false;
}

std::optional<Node> RecordReader::next() {
    if (rest_.empty() || !ok_) return std::nullopt;
    Node node;
    std::uint8_t tag = 0;
    ok_ = take(tag);
    node.tag = static_cast<Tag>(tag);
    ok_ = ok_ && decode(node);
    if (!ok_) return std::nullopt;
    return node;
}

} // namespace ktrace::program
