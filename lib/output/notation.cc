#include "output/notation.h"

#include <cmath>

#include "base/text.h"
#include "output/number.h"

namespace ktrace::output {

namespace {

constexpr char hex_digits[] = "0123456789abcdef";

bool is_c1(std::string_view sequence) {
    return sequence.size() == 2 && sequence[0] == '\xc2' && static_cast<unsigned char>(sequence[1]) < 0xa0;
}

void append_unicode_escape(std::string &out, unsigned code_unit) {
    out += "\\u00";
    out += hex_digits[code_unit >> 4 & 15];
    out += hex_digits[code_unit & 15];
}

/// One UTF-8 sequence, or one byte that begins none, as it stands in a JSON string.
void append_json_sequence(std::string &out, std::string_view sequence, bool valid) {
    auto c = static_cast<unsigned char>(sequence[0]);
    if (!valid) {
        out += "\\\\x";
        out += hex_digits[c >> 4];
        out += hex_digits[c & 15];
        return;
    }
    switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\t': out += "\\t"; return;
    case '\r': out += "\\r"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    default: break;
    }
    if (c < 0x20 || c == 0x7f)
        append_unicode_escape(out, c);
    else if (is_c1(sequence))
        append_unicode_escape(out, static_cast<unsigned char>(sequence[1]));
    else
        out += sequence;
}

} // namespace

void append_json_string(std::string &out, std::string_view raw) {
    out += '"';
    while (!raw.empty()) {
        std::size_t length = text::utf8_length(raw);
        append_json_sequence(out, raw.substr(0, length == 0 ? 1 : length), length != 0);
        raw.remove_prefix(length == 0 ? 1 : length);
    }
    out += '"';
}

void append_utf8(std::string &out, std::uint32_t code_point) {
    if (code_point > 0x10ffff || (code_point >= 0xd800 && code_point <= 0xdfff)) code_point = 0xfffd;
    auto byte = [&](std::uint32_t value) { out += static_cast<char>(value); };
    auto tail = [&](int shift) { byte(0x80 | (code_point >> shift & 0x3f)); };
    if (code_point < 0x80) {
        byte(code_point);
    } else if (code_point < 0x800) {
        byte(0xc0 | code_point >> 6);
        tail(0);
    } else if (code_point < 0x10000) {
        byte(0xe0 | code_point >> 12);
        tail(6);
        tail(0);
    } else {
        byte(0xf0 | code_point >> 18);
        tail(12);
        tail(6);
        tail(0);
    }
}

void TextNotation::key(std::string &out, std::string_view name, bool first) {
    out += first ? "." : ", .";
    out += text::escape(name);
    out += '=';
}

void TextNotation::variant(std::string &out, std::string_view name) { out += text::escape(name); }

void TextNotation::string(std::string &out, std::string_view raw, bool truncated) {
    out += '"';
    out += text::escape(raw);
    out += truncated ? "\"..." : "\"";
}

void TextNotation::character(std::string &out, std::string_view raw) {
    out += '\'';
    if (raw == std::string_view("\0", 1))
        out += "\\0";
    else if (raw == "'")
        out += "\\'";
    else if (raw == "\"")
        out += '"';
    else
        out += text::escape(raw);
    out += '\'';
}

void TextNotation::enumerators(std::string &out, std::string_view names) { out += text::escape(names); }

void TextNotation::pointer(std::string &out, std::uint64_t value) { append_hex(out, value); }

void TextNotation::floating(std::string &out, long double value, std::uint64_t size) {
    append_floating(out, value, size);
}

void TextNotation::complex(std::string &out, long double real, long double imaginary, std::uint64_t size) {
    append_floating(out, real, size);
    out += std::signbit(imaginary) ? " - " : " + ";
    append_floating(out, std::fabs(imaginary), size);
    out += 'i';
}

void TextNotation::fault(std::string &out, std::uint64_t address) {
    out += "<fault ";
    append_hex(out, address);
    out += '>';
}

void JsonNotation::key(std::string &out, std::string_view name, bool first) {
    if (!first) out += ',';
    append_json_string(out, name);
    out += ':';
}

void JsonNotation::variant(std::string &out, std::string_view name) {
    out += '{';
    append_json_string(out, name);
    out += ':';
}

void JsonNotation::pointer(std::string &out, std::uint64_t value) {
    out += '"';
    append_hex(out, value);
    out += '"';
}

void JsonNotation::floating(std::string &out, long double value, std::uint64_t size) {
    if (std::isnan(value)) {
        out += "null";
    } else if (std::isinf(value)) {
        out += value < 0 ? "\"-inf\"" : "\"inf\"";
    } else {
        append_floating(out, value, size);
    }
}

void JsonNotation::decimal(std::string &out, std::string_view digits) {
    if (digits.find("nan") != std::string_view::npos)
        out += "null";
    else if (digits.find("inf") != std::string_view::npos)
        append_json_string(out, digits);
    else
        out += digits;
}

void JsonNotation::complex(std::string &out, long double real, long double imaginary, std::uint64_t size) {
    out += '[';
    floating(out, real, size);
    out += ',';
    floating(out, imaginary, size);
    out += ']';
}

void JsonNotation::fault(std::string &out, std::uint64_t address) {
    out += R"({"fault":")";
    append_hex(out, address);
    out += "\"}";
}

} // namespace ktrace::output
