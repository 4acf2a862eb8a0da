// Diagnostics for developers, by category (KTRACE_LOG=trap:debug,symbols:info). Not what users read: that is output/.
#pragma once

#include <string_view>

namespace ktrace::log {

enum class Level { debug, info, warn, error };

/// Reads KTRACE_LOG; without it only warnings and errors are shown. Warns of a level that there is not.
void configure_from_environment();

/// Shows the messages of all categories that KTRACE_LOG does not name.
void show_all();

/// True where a message of this category and level would be shown: ask before formatting one.
bool enabled(std::string_view category, Level level);

/// One line on standard error: `ktrace[category]: message`.
void write(std::string_view category, Level level, std::string_view message);

} // namespace ktrace::log
