// Words: which words of a command line are ktrace's own, and whether each option among them has its value. This is
// known before CLI11 reads them, which would take the next option for a value.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "option_table.h"

namespace ktrace::cli {

struct SplitWords {
    std::vector<std::string> own;    // options, their values, operands
    std::vector<std::string> behind; // run: PROGRAM [ARG...]; of other commands, what stands behind --
};

/// `words`: all behind the command. Its own ones end at `--`; of run, also before the first word that is neither an
/// option nor an option's value.
SplitWords split_words(const std::vector<std::string> &words, Command command);

/// Errors: usage: an option without its value, at the end or before the next option; `--name=` without one.
Status check_values(const std::vector<std::string> &own, Command command);

/// An option of any command, by either of its names (`--print`, `-k`); nullptr: there is none.
const Option *option_called(const std::string &name);

/// The hint for a word that an option in front of it takes only behind `=` (`--stack 5`); empty: there is none.
std::string hint_for_value_apart(const std::vector<std::string> &words, Command command, const std::string &word);

} // namespace ktrace::cli
