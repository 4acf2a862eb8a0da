// Options: the table of everything that ktrace's command line takes, and its reading (CLI11) into an Invocation.
//
// Invariants: help, parser and tests read the same table; options are applied in the order in which they were given, so
// that probes are numbered as users count them; an Invocation that is returned is complete and without contradictions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "invocation.h"

namespace ktrace::cli {

enum class Takes : std::uint8_t { nothing, value, optional_value }; // optional_value: only as --name=VALUE

enum class Group : std::uint8_t { target, probes, handlers, aggregates, selection, output };

struct Option {
    char letter;      // 0: none
    const char *name; // without dashes
    Takes takes;
    const char *value_name; // as help writes it
    Group group;
    unsigned commands; // bits of Command
    const char *help;
    Status (*apply)(Invocation &into, const std::string &value);
};

std::span<const Option> options();

bool belongs_to(const Option &option, Command command);

/// Reads the arguments behind the program's name. Errors: usage.
Result<Invocation> parse(const std::vector<std::string> &arguments);

} // namespace ktrace::cli
