// Complain: an Error becomes what a human reads on standard error, and the exit status that goes with it.
#pragma once

#include <string>

#include "base/result.h"

namespace ktrace::cli {

/// One line, `ktrace: what: why; what to do`, with its end. For a SPEC or EXPR it quotes the text, and a second line
/// points at the column:
///
///     ktrace: do_work+3: not at the start of an instruction
///                     ^ do_work+1 and do_work+4 are
std::string describe(const Error &error);

/// Writes describe(error) to standard error.
void complain(const Error &error);

/// Writes `ktrace: TEXT` to standard error.
void notify(const std::string &text);

} // namespace ktrace::cli
