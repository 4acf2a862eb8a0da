// Scope: what the names of an EXPR mean at one location and moment. probe/compile.cc has the one made of DWARF and
// calling conventions; tests have their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "program/contents/dynamic_types.h"
#include "value/place.h"
#include "value/type.h"

namespace ktrace::program {

/// A named value: its type (nullptr: not known, a signed 64-bit integer) and where it lies.
struct Binding {
    const value::Type *type = nullptr;
    value::Place place;
};

struct EnumeratorValue {
    const value::Type *type = nullptr;
    std::int64_t value = 0;
};

/// Errors: refused or not_found, a clause without the name of the location; the analysis adds columns.
class Scope {
  public:
    virtual ~Scope() = default;

    /// args.NAME: a parameter of the function, by name.
    virtual Result<Binding> argument(std::string_view name) = 0;
    /// argN: the Nth integer argument of the calling convention, typed where the debug information has its type.
    virtual Result<Binding> integer_argument(unsigned n) = 0;
    /// var.NAME: a local, static or global variable.
    virtual Result<Binding> variable(std::string_view name) = 0;
    virtual Result<Binding> retval() = 0;
    /// errno of the thread.
    virtual Result<Binding> error_number() { return fail(Error::Kind::refused, "errno is not known here"); }

    /// The type with its members, where it was only declared so far.
    virtual const value::Type *complete(const value::Type *type) { return type; }
    /// A struct, union, enum, class or typedef by name (`struct foo`, `Foo::Bar`), for casts.
    virtual const value::Type *type_named(std::string_view name) = 0;
    /// A bare enumerator that is unambiguous in what is known.
    virtual std::optional<EnumeratorValue> enumerator(std::string_view name) = 0;

    /// The types that an interface of this type may hold (Go).
    virtual contents::DynamicTypes dynamic_types(const value::Type &) { return {}; }

    virtual std::string function() = 0; // func
    virtual bool has_duration() = 0;    // duration: at a return
    /// The table that types of this scope's own are in; nullptr: none.
    virtual const value::TypeTable *types() = 0;
};

} // namespace ktrace::program
