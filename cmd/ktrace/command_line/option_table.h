// The table of everything that ktrace's command line takes. Parser, help and tests read it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

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
    Status (*apply)(Invocation &into, const std::string &value); // errors: usage
};

/// CLI11's text for an option that was given without a value; no EXPR can be this.
inline constexpr const char *no_value = "\x01none";

std::span<const Option> options();

/// Command::none: every option does.
bool belongs_to(const Option &option, Command command);

} // namespace ktrace::cli
