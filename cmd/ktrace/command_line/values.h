// Values: the text behind an option becomes numbers, lists and expressions. All errors are usage errors that quote the
// text and say what was expected.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ktrace::cli {

/// `text`, decimal, at least 1 and at most `most`. `option` is what the error calls it: `--every`.
Result<std::uint64_t> read_positive(std::string_view option, std::string_view text, std::uint64_t most);

/// A fraction in (0, 1].
Result<double> read_chance(std::string_view text);

/// 20%, 0.5% or 20: a share above 0 and up to 1.
Result<double> read_percentage(std::string_view option, std::string_view text);

/// A duration above zero, in nanoseconds. `option`: as for read_positive.
Result<std::uint64_t> read_duration(std::string_view option, std::string_view text);

/// Numbers and names of processes, with commas or blanks between them.
Result<std::vector<std::string>> read_processes(std::string_view text);
/// True for the number of a process, and for several with commas.
bool is_number(std::string_view word);

/// EXPR[,EXPR…], split at the commas that stand in no brackets and in no string; blanks around each are taken off.
Result<std::vector<std::string>> split_expressions(std::string_view text);

} // namespace ktrace::cli
