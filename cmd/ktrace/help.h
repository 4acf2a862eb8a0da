// Help: what --help prints, made from the table of options.
#pragma once

#include <string>

#include "command_line/invocation.h"

namespace ktrace::cli {

/// The help of one command, or (Command::none) of all of ktrace. `bold`: the headings, for a terminal.
std::string help(Command command, bool bold);

} // namespace ktrace::cli
