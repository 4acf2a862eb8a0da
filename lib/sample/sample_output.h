// Where `stack` and `profile` write: to standard output, or to -o FILE.
#pragma once

#include <string_view>

#include "base/result.h"
#include "trace/config.h"

namespace ktrace::sample {

/// Writes all of a text. Errors: the file cannot be created or written. A reader that has gone is none.
Status write_out(const trace::Config &config, std::string_view text);

} // namespace ktrace::sample
