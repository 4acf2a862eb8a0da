// Types as debug information would describe them, laid out as a C compiler does.
#pragma once

#include <initializer_list>
#include <string>

#include "value/type.h"

namespace ktrace::test {

class Types {
  public:
    using Type = value::Type;
    using Kind = Type::Kind;

    const Type *integer(std::uint64_t size) { return scalar(Kind::integer, size, "int"); }
    const Type *pointer() { return scalar(Kind::pointer, 8, "void *"); }
    const Type *floating(std::uint64_t size) { return scalar(Kind::floating, size, size == 4 ? "float" : "double"); }
    const Type *long_double() { return scalar(Kind::floating, 16, "long double"); }
    const Type *quad() { return scalar(Kind::floating, 16, "_Float128"); }

    const Type *complex(const Type *of) {
        Type &type = table_.make();
        type.kind = Kind::complex;
        type.size = 2 * of->size;
        type.target = of;
        return &type;
    }
    const Type *array(const Type *of, std::uint64_t count, bool vector = false) {
        Type &type = table_.make();
        type.kind = Kind::array;
        type.size = of->size * count;
        type.target = of;
        type.count = count;
        type.is_vector = vector;
        return &type;
    }
    /// With the natural layout; change what it gives for others.
    Type *record(std::initializer_list<const Type *> members) {
        Type &type = table_.make();
        type.kind = Kind::structure;
        type.name = "struct";
        std::uint64_t at = 0, most = 1;
        for (const Type *member : members) {
            const std::uint64_t alignment = natural(*member);
            at = (at + alignment - 1) / alignment * alignment;
            type.members.push_back({"m", member, at, 0, 0, false, false});
            at += member->size;
            most = std::max(most, alignment);
        }
        type.size = (at + most - 1) / most * most;
        return &type;
    }
    Type *packed(std::initializer_list<const Type *> members) {
        Type *type = record(members);
        type->size = 0;
        for (value::Member &member : type->members) {
            member.offset = type->size;
            type->size += member.type->size;
        }
        return type;
    }
    Type *union_of(std::initializer_list<const Type *> members) {
        Type *type = record(members);
        type->kind = Kind::union_;
        type->size = 0;
        for (value::Member &member : type->members) {
            member.offset = 0;
            type->size = std::max(type->size, member.type->size);
        }
        return type;
    }
    /// A C++ class without members.
    Type *empty() {
        Type *type = record({});
        type->size = 1;
        return type;
    }

  private:
    const Type *scalar(Kind kind, std::uint64_t size, const char *name) {
        Type &type = table_.make();
        type.kind = kind;
        type.size = size;
        type.name = name;
        type.is_signed = true;
        return &type;
    }
    static std::uint64_t natural(const Type &type) {
        if (type.alignment != 0) return type.alignment;
        if (type.kind == Kind::array && !type.is_vector) return natural(*type.target);
        if (type.kind == Kind::complex) return type.size / 2;
        std::uint64_t most = 1;
        for (const value::Member &member : type.members) most = std::max(most, natural(*member.type));
        const bool is_record = type.kind == Kind::structure || type.kind == Kind::union_;
        return is_record ? most : type.size;
    }

    value::TypeTable table_;
};

} // namespace ktrace::test
