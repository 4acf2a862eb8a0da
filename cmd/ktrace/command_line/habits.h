// Habits: options of one letter that users of strace, perf and bcc's tools type first, and what to write instead.
#pragma once

#include <string>

namespace ktrace::cli {

/// The hint that says what stands for `-letter` of other tools here; empty: they have nothing of the kind.
std::string hint_for_habit(char letter);

} // namespace ktrace::cli
