// Names of errno's values: ENOENT and its like, as errno(3) lists them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ktrace {

/// The number of `ENOENT`; nothing: it is no such name.
std::optional<int> errno_number(std::string_view name);
/// `ENOENT` for its number; empty: no error has it.
std::string_view errno_name(std::int64_t number);

} // namespace ktrace
