#include "output/render.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "output/enumeration.h"
#include "output/node.h"
#include "output/notation.h"
#include "output/number.h"
#include "value/variant.h"

namespace ktrace::output {

namespace {

using value::Member;
using value::Type;
using Bytes = std::span<const std::byte>;

constexpr int most_depth = 16;

Bytes part(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
    if (offset >= bytes.size()) return {};
    return bytes.subspan(static_cast<std::size_t>(offset),
                         static_cast<std::size_t>(std::min<std::uint64_t>(size, bytes.size() - offset)));
}

std::string_view as_chars(Bytes bytes) { return {reinterpret_cast<const char *>(bytes.data()), bytes.size()}; }

/// A type whose values are characters (symbols/ distinguishes them from small numbers such as int8_t).
bool is_character(const Type &type) { return type.kind == Type::Kind::char_ && type.size >= 1 && type.size <= 4; }

/// Code units of `size` bytes up to the first that is 0, as UTF-8 (UTF-16 and UTF-32; bytes as they are). Nothing: they
/// are no text. The first half of a pair may be cut off at the end.
std::optional<std::string> text_of(Bytes bytes, std::size_t size) {
    std::string text;
    std::uint32_t high = 0;
    for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
        const auto unit = static_cast<std::uint32_t>(load_unsigned(bytes.subspan(at, size)));
        const bool is_low = unit >= 0xdc00 && unit < 0xe000;
        if (size != 1 && is_low != (high != 0)) return std::nullopt;
        if (unit == 0) break;
        if (size == 1) {
            text += static_cast<char>(unit);
        } else if (size == 2 && unit >= 0xd800 && unit < 0xdc00) {
            high = unit;
        } else if ((unit >= 0xd800 && unit < 0xdc00) || unit > 0x10ffff) {
            return std::nullopt;
        } else {
            append_utf8(text, is_low ? 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00) : unit);
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
    Walk(std::string &out, const ValueLimits &limits, int depth, const Context *context, const Parts *parts)
        : out_(out), limits_(limits), context_(context), parts_(parts), depth_(depth) {}

    void value(const Type &type, Bytes bytes) {
        if (const program::Node *node = parts_ ? parts_->find(type, bytes.data()) : nullptr)
            return append_node<Notation>(out_, *node, *context_, depth_);
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
        case Type::Kind::integer:
            if (type.member_of) return member_pointer(type, bytes);
            return integer(type, load_unsigned(part(bytes, 0, type.size)), bits_of(type));
        case Type::Kind::enumeration: return enumeration(type, load_unsigned(part(bytes, 0, type.size)), bits_of(type));
        case Type::Kind::floating:
            if (type.is_decimal) return Notation::decimal(out_, decimal_digits(part(bytes, 0, type.size)));
            return Notation::floating(out_, load_floating(type, bytes), type.size);
        case Type::Kind::complex: return complex(type, bytes);
        case Type::Kind::pointer:
        case Type::Kind::reference:
        case Type::Kind::function: return pointer(type, static_cast<std::uint64_t>(load_unsigned(part(bytes, 0, 8))));
        case Type::Kind::array: return array(type, bytes);
        case Type::Kind::structure:
        case Type::Kind::union_: return object(type, bytes);
        case Type::Kind::void_:
        case Type::Kind::unknown: return unknown(bytes);
        }
    }

    void pointer(const Type &type, std::uint64_t address) {
        Notation::pointer(out_, address);
        if (type.target && type.target->kind == Type::Kind::function) function_name(address);
    }

    /// ` <name>` of a function, in text.
    void function_name(std::uint64_t address) {
        constexpr bool is_text = std::is_same_v<Notation, TextNotation>;
        if (!is_text || !context_ || !context_->symbolizer || address == 0) return;
        const auto named = context_->symbolizer->name(context_->pid, address, false);
        if (named.empty() || named.back().symbol.empty()) return;
        const NamedFrame &frame = named.back();
        out_ += " <" + text::escape(frame.symbol);
        if (frame.offset != 0) append_hex(out_ += '+', frame.offset);
        out_ += '>';
    }

    /// Itanium ABI, 2.3: to a member that is data its offset, -1 for none.
    void member_pointer(const Type &type, Bytes bytes) {
        const auto offset = static_cast<std::uint64_t>(load_unsigned(part(bytes, 0, 8)));
        if (offset == ~std::uint64_t{0}) return Notation::pointer(out_, 0);
        const std::string name = member_at(*type.member_of, offset, most_depth);
        if (name.empty()) return integer(type, offset, bits_of(type));
        Notation::enumerators(out_, "&" + type.member_of->name + "::" + name);
    }

    static std::string member_at(const Type &type, std::uint64_t offset, int depth) {
        for (const Member &member : type.members) {
            if (member.is_static || !member.type || depth == 0) continue;
            const bool holds = offset >= member.offset && offset - member.offset < member.type->size;
            if (holds && (member.is_base || member.name.empty()))
                return member_at(*member.type, offset - member.offset, depth - 1);
            if (offset == member.offset && !member.is_base) return member.name;
        }
        return {};
    }

    /// To a member that is a function: its address, and what is added to `this`. A virtual one is a place in a table.
    bool member_function_pointer(Bytes bytes) {
        const auto address = static_cast<std::uint64_t>(load_unsigned(part(bytes, 0, 8)));
        const bool is_plain = bytes.size() == 16 && load_unsigned(part(bytes, 8, 8)) == 0 && address % 2 == 0;
        if (!std::is_same_v<Notation, TextNotation> || !is_plain) return false;
        Notation::pointer(out_, address);
        function_name(address);
        return true;
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
        if (type.target && type.target->kind == Type::Kind::integer) return complex_integer(*type.target, bytes);
        Type half;
        half.kind = Type::Kind::floating;
        half.size = type.size / 2;
        half.name = type.target ? type.target->name : type.name;
        Notation::complex(out_, load_floating(half, part(bytes, 0, half.size)),
                          load_floating(half, part(bytes, half.size, half.size)), half.size);
    }

    /// In JSON a list of the two, as others.
    void complex_integer(const Type &half, Bytes bytes) {
        const auto real = load_unsigned(part(bytes, 0, half.size)),
                   other = load_unsigned(part(bytes, half.size, half.size));
        const bool is_negative = half.is_signed && extend_sign(other, bits_of(half)) < 0;
        constexpr bool is_text = std::is_same_v<Notation, TextNotation>;
        if (!is_text) out_ += '[';
        integer(half, real, bits_of(half));
        out_ += !is_text ? "," : is_negative ? " - " : " + ";
        if (is_text && is_negative)
            append_decimal(out_, static_cast<Signed128>(-extend_sign(other, bits_of(half))));
        else
            integer(half, other, bits_of(half));
        out_ += is_text ? "i" : "]";
    }

    void array(const Type &type, Bytes bytes) {
        std::uint64_t size = type.target ? type.target->size : 0;
        if (size != 0 && type.size == 0 && bytes.empty()) return Notation::elided_value(out_); // a flexible one
        if (size == 0) {
            out_ += "[]";
            return;
        }
        const std::uint64_t stride = type.stride != 0 ? type.stride : size;
        std::uint64_t there = bytes.size() < size ? 0 : (bytes.size() - size) / stride + 1;
        std::uint64_t count = type.count != 0 ? type.count : there;
        if (is_character(*type.target) && !type.is_vector) {
            Bytes held = part(bytes, 0, count * size);
            auto unit = static_cast<std::size_t>(size);
            if (const auto text = text_of(held, unit)) {
                const std::string_view shown = shortened(*text, limits_.text);
                const bool is_cut = shown.size() < text->size() || (there < count && !ends_in_zero(held, unit));
                return Notation::string(out_, shown, is_cut);
            }
        }
        std::uint64_t shown = std::min({count, there, std::uint64_t{limits_.elements}});
        out_ += '[';
        for (std::uint64_t i = 0; i < shown; i++) {
            if (i != 0) Notation::separator(out_);
            const Bytes element = part(bytes, i * stride, size);
            if (is_character(*type.target)) // of a vector, or no text: numbers
                integer(*type.target, load_unsigned(element), bits_of(*type.target));
            else
                value(*type.target, element);
        }
        if (shown < count) Notation::elided_rest(out_, shown == 0);
        out_ += ']';
    }

    void object(const Type &type, Bytes bytes) {
        if (is_enumeration_with_values(type)) return variant(type, bytes);
        if (type.member_of && member_function_pointer(bytes)) return;
        if (!type.members.empty() && is_tuple(type)) return tuple(type, bytes);
        bool first = true;
        Notation::begin_object(out_);
        virtual_bases(type, first);
        if (!members(type, bytes, first)) Notation::elided_rest(out_, first);
        Notation::end_object(out_);
    }

    /// All of it is variants: Rust's enums.
    static bool is_enumeration_with_values(const Type &type) {
        return !type.variants.empty() &&
               std::all_of(type.members.begin(), type.members.end(), [](const Member &member) {
                   return member.variant >= 0 || member.name.empty() || member.is_static;
               });
    }

    /// The active variant alone: `Unit`, `Circle(1.5)`, `Rect{.w=3, .h=4}`.
    void variant(const Type &type, Bytes bytes) {
        const auto active = value::active_variant(type, bytes);
        for (const Member &member : type.members) {
            if (!active || member.variant != static_cast<std::int32_t>(*active) || !member.type) continue;
            if (member.type->members.empty()) return Notation::lone_variant(out_, member.name);
            Notation::variant(out_, member.name);
            const Bytes held = part(bytes, member.offset, member.type->size);
            if (is_tuple(*member.type))
                tuple(*member.type, held);
            else
                object(*member.type, held);
            return Notation::end_variant(out_);
        }
        Notation::elided_value(out_);
    }

    /// Its members are numbered: __0, __1, …
    static bool is_tuple(const Type &type) {
        return std::all_of(type.members.begin(), type.members.end(), [](const Member &member) {
            return member.is_static || (member.name.size() > 2 && member.name.starts_with("__") &&
                                        member.name.find_first_not_of("0123456789", 2) == std::string::npos);
        });
    }

    void tuple(const Type &type, Bytes bytes) {
        bool first = true;
        Notation::begin_tuple(out_);
        for (const Member &member : type.members) {
            if (!member.type || member.is_static) continue;
            if (!std::exchange(first, false)) Notation::separator(out_);
            value(*member.type, part(bytes, member.offset, member.type->size));
        }
        Notation::end_tuple(out_);
    }

    void virtual_bases(const Type &type, bool &first) {
        for (const value::VirtualBase &base : type.virtual_bases) {
            const program::Node *node = parts_ ? parts_->find_virtual(*base.type) : nullptr;
            if (!node && std::is_same_v<Notation, JsonNotation>) continue;
            Notation::key(out_, base.type->name, std::exchange(first, false));
            if (node)
                append_node<Notation>(out_, *node, *context_, depth_);
            else
                Notation::elided_value(out_);
        }
    }

    /// Members of anonymous structures and unions stand among those of the one that holds them. False: the bytes ended.
    bool members(const Type &type, Bytes bytes, bool &first) {
        const auto active = value::active_variant(type, bytes);
        for (const Member &member : type.members) {
            if (!member.type || member.is_static || member.name.starts_with("_vptr")) continue;
            if (member.variant >= 0 && active && member.variant != static_cast<std::int32_t>(*active)) continue;
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
    const Context *context_;
    const Parts *parts_;
    int depth_;
};

} // namespace

const ValueLimits ValueLimits::brief{10, 3, 200, 200, false};
const ValueLimits ValueLimits::full{64, most_depth, SIZE_MAX, SIZE_MAX, true};
const ValueLimits ValueLimits::all{SIZE_MAX, most_depth, SIZE_MAX, SIZE_MAX, true};

std::string_view shortened(std::string_view text, std::size_t bytes) {
    if (text.size() <= bytes) return text;
    while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) bytes--; // within a character
    return text.substr(0, bytes);
}

template <class Notation>
void append_value(std::string &out, const Type &type, Bytes bytes, const ValueLimits &limits, int depth,
                  const Context *context, const Parts *parts) {
    Walk<Notation>(out, limits, depth, context, parts).value(type, bytes);
}

template void append_value<TextNotation>(std::string &, const Type &, Bytes, const ValueLimits &, int, const Context *,
                                         const Parts *);
template void append_value<JsonNotation>(std::string &, const Type &, Bytes, const ValueLimits &, int, const Context *,
                                         const Parts *);

void append_text(std::string &out, const Type &type, Bytes bytes, const ValueLimits &limits) {
    append_value<TextNotation>(out, type, bytes, limits, 0, nullptr, nullptr);
}

void append_json(std::string &out, const Type &type, Bytes bytes) {
    append_value<JsonNotation>(out, type, bytes, ValueLimits::all, 0, nullptr, nullptr);
}

} // namespace ktrace::output
