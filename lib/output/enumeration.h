// Enumerations: a number becomes the name, or the names, that it stands for.
#pragma once

#include <cstdint>
#include <string>

#include "value/type.h"

namespace ktrace::output {

/// Appends the enumerator's name; where none has this value and the enumeration is a set of flags, the names of the
/// bits joined by `|`, unknown bits as a number in hex behind them. Returns false, and appends nothing, where neither
/// fits. Members of the type are numbers among its bits (`O_RDWR`), with names of their own: those come first.
bool append_enumerators(std::string &out, const value::Type &type, std::int64_t value);

} // namespace ktrace::output
