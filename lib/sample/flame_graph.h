// Flame graph: stacks as one SVG file, that a browser shows: a click on a function zooms to it, a field searches.
#pragma once

#include <string>
#include <vector>

#include "sample/profile_tables.h"

namespace ktrace::sample {

/// The graph of these stacks: each function as wide as the looks that it was seen at, its callees above it.
std::string flame_graph(const std::string &title, const std::vector<Path> &paths);

} // namespace ktrace::sample
