// Build: from what is wanted at one location (parsed EXPRs, their scopes, the options) to its Program and the fields of
// its records.
//
// Invariants: an EXPR that does not fit is listed in Built::misfits and becomes a value `na` (a condition that never
// holds), so that the rest of the program works; whether that is an error is the policy of the caller, which sees all
// locations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "program/expr/expr.h"
#include "program/lower/scope.h"
#include "program/run/program.h"
#include "program/run/record.h"
#include "program/tables/aggregate.h"
#include "program/tables/state.h"

namespace ktrace::program {

/// A value that is shown without an EXPR: an argument of a function, by name.
struct NamedBinding {
    std::string name;
    Binding binding;
    bool hex = false;            // an argument register of no known type, or a pointer that is not followed
    const Tree *shown = nullptr; // shown in place of the argument
    bool at_return = false;      // `shown` is as it is at the return; an entry shows the argument
};

/// A change of the thread: fault injection.
struct Injection {
    enum class Moment : std::uint8_t { before, at_return } moment = Moment::before;
    const Tree *value = nullptr;
    std::string name; // of what is changed
    Destination destination;
    const value::Type *type = nullptr; // of what is changed
    std::optional<Error> misfit;       // it cannot be changed here: why
};

/// The request for a location. Trees and scopes are borrowed for the time of build().
struct Recipe {
    char kind = 'k';        // k j r w
    Scope *entry = nullptr; // names as they are before the instruction; at the function's first for j and r
    Scope *after = nullptr; // post; r: at the return
    const Tree *condition = nullptr;
    std::vector<const Tree *> print, post_print, by;
    bool post = false, regs = false;
    int stack = -1; // frames, 0: all, -1: none
    Table::Kind table = Table::Kind::none;
    const Tree *table_of = nullptr; // stats, hist; nullptr: duration
    Selection selection;
    bool shows_arguments = false; // j; r: where the arguments at entry go into the record
    std::vector<NamedBinding> arguments;
    std::vector<Injection> injections;
    std::optional<Binding> watched; // w: what is watched
    std::optional<Binding> result;  // r: the return value; nothing: void
    bool result_hex = false;        // r: it is a pointer that is not followed
    const Tree *error = nullptr;    // r: the errno that the result means, 0: none; shown behind it
    bool shows_result = false;
};

/// One EXPR of a Recipe that does not fit.
struct MisfitExpr {
    const Tree *tree = nullptr;
    Error error;
};

struct Built {
    Program program;
    std::vector<Field> fields[moments];
    std::vector<MisfitExpr> misfits;
};

Built build(const Recipe &recipe);

} // namespace ktrace::program
