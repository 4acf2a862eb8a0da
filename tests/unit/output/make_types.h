// Types and bytes for the tests of output/: what DWARF would have said, in a line.
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "value/type.h"

namespace ktrace::test {

class Types {
  public:
    value::Type &make(value::Type::Kind kind, std::string name, std::uint64_t size, bool is_signed = false) {
        value::Type &type = table.make();
        type.kind = kind;
        type.name = std::move(name);
        type.size = size;
        type.is_signed = is_signed;
        return type;
    }
    value::Type &integer(std::uint64_t size, bool is_signed) {
        return make(value::Type::Kind::integer, is_signed ? "int" : "unsigned", size, is_signed);
    }
    value::Type &floating(std::uint64_t size, std::string name) {
        return make(value::Type::Kind::floating, std::move(name), size);
    }
    value::Type &character(std::uint64_t size = 1) { return make(value::Type::Kind::char_, "char", size, true); }
    value::Type &pointer() { return make(value::Type::Kind::pointer, "void *", 8); }
    value::Type &array(const value::Type &of, std::uint64_t count) {
        value::Type &type = make(value::Type::Kind::array, of.name + "[]", of.size * count);
        type.target = &of;
        type.count = count;
        return type;
    }
    value::Type &enumeration(std::vector<value::Enumerator> enumerators, bool is_signed = false) {
        value::Type &type = make(value::Type::Kind::enumeration, "enum e", 4, is_signed);
        type.enumerators = std::move(enumerators);
        return type;
    }
    value::Type &structure(std::vector<value::Member> members, std::uint64_t size) {
        value::Type &type = make(value::Type::Kind::structure, "struct s", size);
        type.members = std::move(members);
        return type;
    }

    value::TypeTable table;
};

inline value::Member member(std::string name, const value::Type &type, std::uint64_t offset) {
    value::Member made;
    made.name = std::move(name);
    made.type = &type;
    made.offset = offset;
    return made;
}

inline value::Member bits(std::string name, const value::Type &type, std::uint32_t from, std::uint32_t size) {
    value::Member made = member(std::move(name), type, 0);
    made.bit_offset = from;
    made.bit_size = size;
    return made;
}

/// The bytes of values, one behind the other.
template <class... Values> std::vector<std::byte> bytes_of(const Values &...values) {
    std::vector<std::byte> bytes;
    auto add = [&](const auto &value) {
        std::byte raw[sizeof value];
        std::memcpy(raw, &value, sizeof value);
        bytes.insert(bytes.end(), raw, raw + sizeof value);
    };
    (add(values), ...);
    return bytes;
}

inline std::vector<std::byte> chars(std::string_view text) {
    auto *raw = reinterpret_cast<const std::byte *>(text.data());
    return {raw, raw + text.size()};
}

} // namespace ktrace::test
