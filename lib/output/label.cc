#include "output/label.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/text.h"
#include "output/notation.h"
#include "output/number.h"

namespace ktrace::output {

namespace {

/// A name with members, elements and arrows behind it, and nothing else: `n`, `p->field`, `a.b[3]`.
bool is_path(std::string_view text) {
    auto fits = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) ||
               std::string_view("_.->[]").find(c) != std::string_view::npos;
    };
    if (text.empty() || !std::all_of(text.begin(), text.end(), fits)) return false;
    for (std::size_t i = 0; i < text.size(); i++) {
        bool arrow = text[i] == '-' && i + 1 < text.size() && text[i + 1] == '>';
        bool of_arrow = text[i] == '>' && i > 0 && text[i - 1] == '-';
        if ((text[i] == '-' && !arrow) || (text[i] == '>' && !of_arrow)) return false;
    }
    return true;
}

} // namespace

void append_function(std::string &out, const program::LocationInfo &location) {
    if (location.symbol.empty())
        append_hex(out, location.address);
    else
        out += text::escape(location.symbol);
}

void append_place(std::string &out, const program::LocationInfo &location) {
    append_function(out, location);
    if (location.symbol.empty()) return;
    out += '+';
    append_hex(out, location.offset);
}

std::string place_with_module(const program::LocationInfo &location) {
    std::string out;
    append_place(out, location);
    if (!location.module.empty()) out += " [" + text::escape(location.module) + ']';
    return out;
}

void append_which(std::string &out, const program::LocationInfo &location) {
    if (!location.which.empty()) out += "; " + text::escape(location.which);
}

void append_location_json(std::string &out, const program::LocationInfo &location) {
    out += ",\"symbol\":";
    append_json_string(out, location.symbol);
    out += ",\"offset\":";
    append_decimal(out, Unsigned128{location.offset});
    if (location.symbol.empty()) {
        out += ",\"address\":";
        JsonNotation::pointer(out, location.address);
    }
    out += ",\"module\":";
    append_json_string(out, location.module);
}

void append_which_json(std::string &out, const program::LocationInfo &location) {
    if (location.which.empty()) return;
    out += ",\"which\":";
    append_json_string(out, location.which);
}

std::string label_of(const program::Field &field, std::size_t number) {
    if (field.name.empty()) return "arg" + std::to_string(number);
    if (field.role != program::Field::Role::print) return text::escape(field.name);
    for (std::string_view first : {"args.", "var."}) {
        if (!field.name.starts_with(first)) continue;
        std::string_view rest = std::string_view(field.name).substr(first.size());
        if (is_path(rest)) return std::string(rest);
    }
    return field.name;
}

} // namespace ktrace::output
