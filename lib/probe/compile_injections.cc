#include "probe/compile_injections.h"

#include "program/lower/lower_place.h"
#include "program/lower/types.h"

namespace ktrace::probe {

namespace {

using program::Destination;
using value::Type;

Error cannot(std::string message, std::string hint = {}) {
    return {Error::Kind::refused, std::move(message), std::move(hint), {}, -1, 1};
}

void to_place(program::Injection &made, const program::Binding &binding) {
    made.type = binding.type ? binding.type : &program::types::int64;
    auto destination = program::destination_of(binding.place, *made.type);
    if (destination) {
        made.destination = *destination;
        return;
    }
    bool is_number = program::types::is_scalar(*made.type) && made.type->size <= 8;
    made.misfit = cannot("`" + made.name + "` " +
                         (is_number ? "does not lie in a register or on the stack there"
                                    : "is " + made.type->name + ": only numbers and pointers can be set"));
}

void to_argument(program::Injection &made, const std::string &name, LocationScope &scope) {
    auto binding = scope.parameter(name, made.name);
    if (!binding)
        made.misfit = binding.error();
    else
        to_place(made, *binding);
}

void to_register(program::Injection &made, const std::string &name) {
    std::string names;
    made.type = &program::types::uint64;
    for (const arch::RegisterInfo &info : arch::Host::registers()) {
        if (info.file != arch::RegisterInfo::File::general) continue;
        if (info.name == name || (!info.alias.empty() && info.alias == name)) {
            made.destination = {Destination::Kind::general, 8, info.offset};
            return;
        }
        names += (names.empty() ? "" : ", ") + std::string(info.name);
    }
    made.misfit = cannot("this machine has no register `" + name + "`", "its registers are " + names);
}

void to_result(program::Injection &made, LocationScope &scope) {
    if (auto result = scope.result())
        to_place(made, *result);
    else
        made.misfit = cannot("the function returns nothing: it is void");
}

/// A function that returns nothing can be skipped, too; one that returns a structure cannot: it would have to be made.
void to_skip(program::Injection &made, LocationScope &entry) {
    if (!entry.at_first_instruction()) {
        made.misfit = cannot("only a function's first instruction can be skipped from", "place the probe with -j");
        return;
    }
    made.type = &program::types::int64;
    if (auto result = entry.result()) to_place(made, *result);
    made.destination.skips = true;
}

/// The error names the name where there is one, not the value.
void point_at(Error &misfit, const Actions::Injection &wanted, const program::Tree &value) {
    const bool has_name =
        wanted.kind == Actions::Injection::Kind::argument || wanted.kind == Actions::Injection::Kind::reg;
    misfit.source = has_name ? wanted.name + "=" + value.source : value.source;
    misfit.column = 0;
    misfit.width = static_cast<int>((has_name ? wanted.name : value.source).size());
}

} // namespace

program::Injection make_injection(const Actions::Injection &wanted, const program::Tree &value, Kind kind,
                                  LocationScope &entry, LocationScope &after) {
    program::Injection made;
    made.value = &value;
    made.name = wanted.name;
    made.type = &program::types::int64;
    switch (wanted.kind) {
    case Actions::Injection::Kind::argument: to_argument(made, wanted.name, entry); break;
    case Actions::Injection::Kind::reg: to_register(made, wanted.name); break;
    case Actions::Injection::Kind::skip: to_skip(made, entry); break;
    case Actions::Injection::Kind::result:
        made.moment = program::Injection::Moment::at_return;
        if (kind == Kind::ret)
            to_result(made, after);
        else
            made.misfit = cannot("only a return probe can set what a function returns",
                                 "place it with -r, or let the function return at once with --skip=VALUE");
    }
    if (made.misfit && made.misfit->column < 0) point_at(*made.misfit, wanted, value);
    return made;
}

} // namespace ktrace::probe
