#include "program/lower/types.h"

#include <utility>

namespace ktrace::program::types {

namespace {

using Kind = Type::Kind;

Type make(Kind kind, std::uint64_t size, bool is_signed, const char *name) {
    Type type;
    type.kind = kind;
    type.size = size;
    type.is_signed = is_signed;
    type.name = name;
    return type;
}

} // namespace

const Type int8 = make(Kind::integer, 1, true, "int8_t"), int16 = make(Kind::integer, 2, true, "int16_t"),
           int32 = make(Kind::integer, 4, true, "int"), int64 = make(Kind::integer, 8, true, "long"),
           uint8 = make(Kind::integer, 1, false, "uint8_t"), uint16 = make(Kind::integer, 2, false, "uint16_t"),
           uint32 = make(Kind::integer, 4, false, "unsigned int"),
           uint64 = make(Kind::integer, 8, false, "unsigned long");
const Type character = make(Kind::char_, 1, static_cast<char>(-1) < 0, "char");
const Type boolean = make(Kind::bool_, 1, false, "bool"), float32 = make(Kind::floating, 4, true, "float"),
           float64 = make(Kind::floating, 8, true, "double"), void_type = make(Kind::void_, 0, false, "void");
const Type text = make(Kind::unknown, 0, false, "a string"), buffer = make(Kind::unknown, 0, false, "a buffer"),
           stack = make(Kind::unknown, 0, false, "a stack"), caller = make(Kind::unknown, 0, false, "a caller"),
           symbol = make(Kind::unknown, 8, false, "an address by its name");

namespace {

Type make_counted_text() {
    static const Type address = [] {
        Type made = make(Kind::pointer, 8, false, "char *");
        made.target = &character;
        return made;
    }();
    Type made = make(Kind::structure, 16, false, "a text");
    made.members = {{.name = "data_ptr", .type = &address}, {.name = "length", .type = &uint64, .offset = 8}};
    return made;
}

} // namespace

const Type counted_text = make_counted_text();

const Type *named(std::string_view name) {
    static const std::pair<std::string_view, const Type *> names[] = {
        {"int8", &int8},
        {"int8_t", &int8},
        {"s8", &int8},
        {"signed char", &int8},
        {"int16", &int16},
        {"int16_t", &int16},
        {"s16", &int16},
        {"short", &int16},
        {"short int", &int16},
        {"int32", &int32},
        {"int32_t", &int32},
        {"s32", &int32},
        {"int", &int32},
        {"signed", &int32},
        {"signed int", &int32},
        {"int64", &int64},
        {"int64_t", &int64},
        {"s64", &int64},
        {"long", &int64},
        {"long int", &int64},
        {"long long", &int64},
        {"long long int", &int64},
        {"ssize_t", &int64},
        {"intptr_t", &int64},
        {"signed long", &int64},
        {"uint8", &uint8},
        {"uint8_t", &uint8},
        {"u8", &uint8},
        {"unsigned char", &uint8},
        {"uint16", &uint16},
        {"uint16_t", &uint16},
        {"u16", &uint16},
        {"unsigned short", &uint16},
        {"unsigned short int", &uint16},
        {"short unsigned int", &uint16},
        {"uint32", &uint32},
        {"uint32_t", &uint32},
        {"u32", &uint32},
        {"unsigned", &uint32},
        {"unsigned int", &uint32},
        {"uint64", &uint64},
        {"uint64_t", &uint64},
        {"u64", &uint64},
        {"unsigned long", &uint64},
        {"unsigned long int", &uint64},
        {"long unsigned int", &uint64},
        {"long unsigned", &uint64},
        {"unsigned long long", &uint64},
        {"long long unsigned int", &uint64},
        {"unsigned long long int", &uint64},
        {"size_t", &uint64},
        {"uintptr_t", &uint64},
        {"char", &character},
        {"bool", &boolean},
        {"_Bool", &boolean},
        {"float", &float32},
        {"double", &float64},
        {"void", &void_type},
    };
    for (const auto &[known, type] : names)
        if (known == name) return type;
    return nullptr;
}

bool is_integer(const Type &type) {
    bool kind = type.kind == Kind::integer || type.kind == Kind::char_ || type.kind == Kind::bool_ ||
                type.kind == Kind::enumeration;
    return kind && (type.size == 1 || type.size == 2 || type.size == 4 || type.size == 8);
}

bool is_floating(const Type &type) {
    return type.kind == Kind::floating && !type.is_decimal &&
           (type.size == 4 || type.size == 8 || type.size == 10 || type.size == 16);
}
bool is_pointer(const Type &type) { return type.kind == Kind::pointer && type.size == 8; }
bool is_scalar(const Type &type) { return is_integer(type) || is_floating(type) || is_pointer(type); }
bool is_object(const Type &type) {
    return !is_scalar(type) && type.kind != Kind::void_ && type.kind != Kind::function &&
           type.kind != Kind::reference && &type != &text && &type != &buffer && &type != &stack && &type != &caller &&
           &type != &symbol;
}
bool is_record(const Type &type) { return type.kind == Kind::structure || type.kind == Kind::union_; }
bool is_char(const Type &type) { return type.kind == Kind::char_ && type.size == 1; }

bool is_wide_char(const Type &type) { return type.kind == Kind::char_ && (type.size == 2 || type.size == 4); }

bool is_signed(const Type &type) {
    if (type.kind == Kind::bool_ || type.kind == Kind::pointer) return false;
    return type.is_signed;
}

const Type &promoted(const Type &type) {
    if (!is_integer(type)) return type;
    if (type.size < 4) return int32;
    if (type.size == 4) return is_signed(type) ? int32 : uint32;
    return is_signed(type) ? int64 : uint64;
}

const Type &common(const Type &a, const Type &b) {
    if (is_floating(a) || is_floating(b)) {
        bool both_narrow = (!is_floating(a) || a.size == 4) && (!is_floating(b) || b.size == 4);
        return both_narrow ? float32 : float64;
    }
    const Type &left = promoted(a), &right = promoted(b);
    if (left.size != right.size) return left.size > right.size ? left : right;
    return is_signed(left) ? right : left;
}

} // namespace ktrace::program::types
