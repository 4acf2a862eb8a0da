#include "probe/compile_injections.h"

#include <algorithm>

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

void to_errno(program::Injection &made, const Actions &actions, LocationScope &entry, LocationScope &after) {
    const bool skips = std::any_of(actions.injections.begin(), actions.injections.end(),
                                   [](const auto &each) { return each.kind == Actions::Injection::Kind::skip; });
    if (!skips) made.moment = program::Injection::Moment::at_return;
    auto place = (skips ? entry : after).error_number();
    if (!place) {
        made.misfit = place.error();
        return;
    }
    made.type = place->type;
    if (auto destination = program::destination_of(place->place, *made.type))
        made.destination = *destination;
    else
        made.misfit = cannot("errno is not known before the loader has put it in its place");
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

program::Injection make_injection(const Actions &actions, std::size_t index, const program::Tree &value, Kind kind,
                                  LocationScope &entry, LocationScope &after) {
    const Actions::Injection &wanted = actions.injections[index];
    program::Injection made;
    made.value = &value;
    made.name = wanted.name;
    made.type = &program::types::int64;
    switch (wanted.kind) {
    case Actions::Injection::Kind::argument: to_argument(made, wanted.name, entry); break;
    case Actions::Injection::Kind::reg: to_register(made, wanted.name); break;
    case Actions::Injection::Kind::skip: to_skip(made, entry); break;
    case Actions::Injection::Kind::error: to_errno(made, actions, entry, after); break;
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
