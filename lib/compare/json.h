// Json: one JSON text as a tree.
//
// Invariants: the depth is bounded; objects keep the order of their members.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ktrace::compare {

struct JsonMember;

struct Json {
    enum class Kind : std::uint8_t { null, boolean, number, text, list, object } kind = Kind::null;
    double number = 0; // boolean: 0 or 1
    std::string text;  // text; number: as it stood
    std::vector<Json> list;
    std::vector<JsonMember> members;

    /// nullptr: there is none of this name.
    const Json *find(std::string_view name) const;
    std::string text_of(std::string_view name) const; // empty: there is none
    std::optional<double> number_of(std::string_view name) const;
};

struct JsonMember {
    std::string name;
    Json value;
};

/// Nothing: it is not JSON (RFC 8259).
std::optional<Json> parse_json(std::string_view text);

} // namespace ktrace::compare
