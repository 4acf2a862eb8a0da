// usage: errors of the command line itself, for which ktrace exits with 2.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace ktrace::cli {

inline tl::unexpected<Error> usage(std::string message, std::string hint = {}) {
    return fail(Error::Kind::usage, std::move(message), std::move(hint));
}

} // namespace ktrace::cli
