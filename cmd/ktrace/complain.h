// Complain: an Error becomes what a human reads on standard error, and the exit status that goes with it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace ktrace::cli {

/// One line, `ktrace: what: why; what to do`, with its end. For a SPEC or EXPR it quotes the text, and a second line
/// points at the column:
///
///     ktrace: do_work+3: not at the start of an instruction
///                     ^ do_work+1 and do_work+4 are
std::string describe(const Error &error);

/// Lines of another process's, with what could steer a terminal escaped, and nothing else.
std::string printable_lines(std::string_view text);

/// Writes describe(error) to standard error, with colours where it takes some.
void complain(const Error &error);

/// Writes `ktrace: TEXT` to standard error.
void notify(const std::string &text);

/// Writes what was asked for to standard output. False: that may be a full disk, and was reported; a reader that went
/// away has seen enough.
bool print(std::string_view text);

/// Writes lines of another process's to standard error.
void relay(std::string_view lines);

} // namespace ktrace::cli
