// Stripped: a sentence for users on a file that has lost names, for where few of them fit.
#pragma once

#include <string>

#include "symbols/module.h"

namespace ktrace::symbols {

/// `nginx is stripped: 213 names are known; DEBUGINFOD_URLS is not set`, the names being those of functions. Empty: it
/// is not stripped.
std::string stripped_notice(const Module &module);

} // namespace ktrace::symbols
