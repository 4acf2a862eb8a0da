// Own options: those that stand inside a probe's quotes, behind its SPEC, and are for it alone:
//
//     -j 'pg_parse_query --print str(arg0, 200)' -r 'PortalRun --stats --by pid'
//
// The SPEC, and each value outside of "…", ends before the next ` --` with the name of an option that a probe can have.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "invocation.h"

namespace ktrace::cli {

/// Splits the text behind -k, -j, -r or -w. Errors: usage, pointing into it: an option that is none of a probe's, a
/// value that is missing or stands where none belongs.
Result<QuotedProbe> split_quoted(const std::string &text);

/// Gives each probe that has options of its own these, and the command's of other names. Errors: usage.
Status apply_own_options(Invocation &into);

} // namespace ktrace::cli
