#include "output/render.h"

#include <algorithm>
#include <string_view>

#include "output/enumeration.h"
#include "output/notation.h"
#include "output/number.h"

namespace ktrace::output {

namespace {

using value::Member;
using value::Type;
using Bytes = std::span<const std::byte>;

constexpr int most_depth = 16;
constexpr ValueLimits unlimited{SIZE_MAX, most_depth, SIZE_MAX, SIZE_MAX, true}; // JSON

Bytes part(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
    if (offset >= bytes.size()) return {};
    return bytes.subspan(static_cast<std::size_t>(offset),
                         static_cast<std::size_t>(std::min<std::uint64_t>(size, bytes.size() - offset)));
}

std::string_view as_chars(Bytes bytes) { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }

/// A type whose values are characters (symbols/ distinguishes them from small numbers such as int8_t).
bool is_character(const Type &type) { return type.kind == Type::Kind::char_ && type.size >= 1 && type.size <= 4; }

/// Code units of `size` bytes up to the first that is 0, as UTF-8 (UTF-16 and UTF-32; bytes as they are).
std::string text_of(Bytes bytes, std::size_t size) {
    std::string text;
    std::uint32_t high = 0;
    for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
        auto unit = static_cast<std::uint32_t>(load_unsigned(bytes.subspan(at, size)));
        if (unit == 0) break;
        if (size == 1) {
            text += static_cast<char>(unit);
        } else if (size == 2 && unit >= 0xd800 && unit < 0xdc00) {
            high = unit;
        } else {
            bool pair = high != 0 && unit >= 0xdc00 && unit < 0xe000;
            append_utf8(text, pair ? 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00) : unit);
            high = 0;
        }
    }
    return text;
}

bool ends_in_zero(Bytes bytes, std::size_t size) {
    for (std::size_t at = 0; at + size <= bytes.size(); at += size)
        if (load_unsigned(bytes.subspan(at, size)) == 0) return true;
    return false;
}

/// The walk over one value in one notation.
template <class Notation> class Walk {
  public:
    Walk(std::string &out, const ValueLimits &limits) : out_(out), limits_(limits) {}

    void value(const Type &type, Bytes bytes) {
        bool whole = type.kind == Type::Kind::structure || type.kind == Type::Kind::union_ ||
                     type.kind == Type::Kind::array || type.kind == Type::Kind::unknown;
        if ((!whole && bytes.size() < type.size) || depth_ == most_depth || is_too_deep(type))
            return Notation::elided_value(out_);
        depth_++;
        dispatch(type, bytes);
        depth_--;
    }

  private:
    /// A structure or an array of other than characters within as many others as are shown.
    bool is_too_deep(const Type &type) const {
        const bool is_list = type.kind == Type::Kind::array && type.target && !is_character(*type.target);
        return (is_list || type.kind == Type::Kind::structure || type.kind == Type::Kind::union_) &&
               depth_ >= limits_.levels;
    }

    void dispatch(const Type &type, Bytes bytes) {
        switch (type.kind) {
        case Type::Kind::bool_: out_ += load_unsigned(part(bytes, 0, type.size)) != 0 ? "true" : "false"; return;
        case Type::Kind::char_: return character(type, bytes);
        case Type::Kind::integer: return integer(type, load_unsigned(part(bytes, 0, type.size)), bits_of(type));
        case Type::Kind::enumeration: return enumeration(type, load_unsigned(part(bytes, 0, type.size)), bits_of(type));
        case Type::Kind::floating: return Notation::floating(out_, load_floating(type, bytes), type.size);
        case Type::Kind::complex: return complex(type, bytes);
        case Type::Kind::pointer:
        case Type::Kind::reference:
        case Type::Kind::function:
            return Notation::pointer(out_, static_cast<std::uint64_t>(load_unsigned(part(bytes, 0, 8))));
        case Type::Kind::array: return array(type, bytes);
        case Type::Kind::structure:
        case Type::Kind::union_: return object(type, bytes);
        case Type::Kind::void_:
        case Type::Kind::unknown: return unknown(bytes);
        }
    }

    static unsigned bits_of(const Type &type) {
        return static_cast<unsigned>(std::clamp<std::uint64_t>(type.size, 1, 16)) * 8;
    }

    void integer(const Type &type, Unsigned128 value, unsigned bits) {
        if (type.is_signed)
            append_decimal(out_, extend_sign(value, bits));
        else
            append_decimal(out_, value);
    }

    void character(const Type &type, Bytes bytes) {
        auto size = static_cast<std::size_t>(type.size);
        if (!is_character(type)) return integer(type, load_unsigned(part(bytes, 0, size)), bits_of(type));
        std::string text(as_chars(bytes.first(size)));
        if (size != 1) {
            text.clear();
            append_utf8(text, static_cast<std::uint32_t>(load_unsigned(bytes.first(size))));
        }
        Notation::character(out_, text);
    }

    void enumeration(const Type &type, Unsigned128 value, unsigned bits) {
        bool is_signed = type.is_signed || (type.target && type.target->is_signed);
        auto number =
            is_signed ? static_cast<std::int64_t>(extend_sign(value, bits)) : static_cast<std::int64_t>(value);
        std::string names;
        if (append_enumerators(names, type, number))
            Notation::enumerators(out_, names);
        else if (is_signed)
            append_decimal(out_, Signed128{number});
        else
            append_decimal(out_, value);
    }

    void complex(const Type &type, Bytes bytes) {
        Type half;
        half.kind = Type::Kind::floating;
        half.size = type.size / 2;
        half.name = type.target ? type.target->name : type.name;
        Notation::complex(out_, load_floating(half, part(bytes, 0, half.size)),
                          load_floating(half, part(bytes, half.size, half.size)), half.size);
    }

    void array(const Type &type, Bytes bytes) {
        std::uint64_t size = type.target ? type.target->size : 0;
        if (size == 0) {
            out_ += "[]";
            return;
        }
        std::uint64_t there = bytes.size() / size;
        std::uint64_t count = type.count != 0 ? type.count : there;
        if (is_character(*type.target)) {
            Bytes held = part(bytes, 0, count * size);
            auto unit = static_cast<std::size_t>(size);
            const std::string text = text_of(held, unit);
            const std::string_view shown = shortened(text, limits_.text);
            const bool is_cut = shown.size() < text.size() || (there < count && !ends_in_zero(held, unit));
            return Notation::string(out_, shown, is_cut);
        }
        std::uint64_t shown = std::min({count, there, std::uint64_t{limits_.elements}});
        out_ += '[';
        for (std::uint64_t i = 0; i < shown; i++) {
            if (i != 0) Notation::separator(out_);
            value(*type.target, part(bytes, i * size, size));
        }
        if (shown < count) Notation::elided_rest(out_, shown == 0);
        out_ += ']';
    }

    void object(const Type &type, Bytes bytes) {
        bool first = true;
        Notation::begin_object(out_);
        if (!members(type, bytes, first)) Notation::elided_rest(out_, first);
        Notation::end_object(out_);
    }

    /// Members of anonymous structures and unions stand among those of the one that holds them. False: the bytes ended.
    bool members(const Type &type, Bytes bytes, bool &first) {
        for (const Member &member : type.members) {
            if (!member.type || member.is_static || member.name.starts_with("_vptr")) continue;
            if (member.is_base && member.type->members.empty()) continue;
            if (member.offset >= bytes.size() && member.type->size != 0) return false;
            Bytes held = part(bytes, member.offset, std::max<std::uint64_t>(member.type->size, bits_end(member)));
            bool anonymous = member.name.empty() && !member.is_base;
            if (anonymous && depth_ < most_depth) {
                depth_++;
                bool complete = members(*member.type, held, first);
                depth_--;
                if (!complete) return false;
                continue;
            }
            Notation::key(out_, member.is_base && member.name.empty() ? member.type->name : member.name, first);
            first = false;
            if (member.bit_size != 0)
                bit_field(member, held);
            else
                value(*member.type, held);
        }
        return true;
    }

    static std::uint64_t bits_end(const Member &member) {
        return (std::uint64_t{member.bit_offset} + member.bit_size + 7) / 8;
    }

    void bit_field(const Member &member, Bytes held) {
        if (held.size() < bits_end(member)) return Notation::elided_value(out_);
        Unsigned128 value = load_bits(held, member.bit_offset, member.bit_size);
        switch (member.type->kind) {
        case Type::Kind::bool_: out_ += value != 0 ? "true" : "false"; return;
        case Type::Kind::enumeration: return enumeration(*member.type, value, member.bit_size);
        default: return integer(*member.type, value, member.bit_size);
        }
    }

    /// A type that the debug information does not describe: its bytes as a number where they fit, else escaped.
    void unknown(Bytes bytes) {
        if (bytes.size() <= 8)
            Notation::pointer(out_, static_cast<std::uint64_t>(load_unsigned(bytes)));
        else
            Notation::string(out_, as_chars(bytes), false);
    }

    std::string &out_;
    const ValueLimits &limits_;
    int depth_ = 0;
};

} // namespace

const ValueLimits ValueLimits::brief{10, 3, 200, 200, false};
const ValueLimits ValueLimits::full{64, most_depth, SIZE_MAX, SIZE_MAX, true};

std::string_view shortened(std::string_view text, std::size_t bytes) {
    if (text.size() <= bytes) return text;
    while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) bytes--; // within a character
    return text.substr(0, bytes);
}

void append_text(std::string &out, const Type &type, Bytes bytes, const ValueLimits &limits) {
    Walk<TextNotation>(out, limits).value(type, bytes);
}

void append_json(std::string &out, const Type &type, Bytes bytes) {
    Walk<JsonNotation>(out, unlimited).value(type, bytes);
}

} // namespace ktrace::output
