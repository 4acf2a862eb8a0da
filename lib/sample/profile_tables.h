// The forms in which a profile is printed: two tables, folded stacks, JSON.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sample/samples.h"

namespace ktrace::sample {

struct TableSize {
    std::size_t width = 0; // of the terminal: names are cut; 0: whole
    std::size_t top = 0;   // rows of each table; 0: all
};

/// The functions on the processor, by their share of the looks at running threads, and behind an empty line those that
/// wait: system call, calling function, time of all threads. A table without rows is left out.
std::string profile_tables(const std::vector<NamedSample> &samples, const TableSize &size);

enum class Which : bool { on_processor, waiting };

/// A stack by names, outermost first, and how many looks it was seen at.
using Path = std::pair<std::vector<std::string>, std::uint64_t>;

/// The stacks under the names of their threads. Equal ones are one.
std::vector<Path> paths_of(const std::vector<NamedSample> &samples, Which which);

/// `redis-server;main;aeMain 12`: a line a stack, as flamegraph.pl and speedscope read it.
std::string folded(const std::vector<Path> &paths);

/// A JSON object a line and stack.
std::string profile_json(const std::vector<NamedSample> &samples, output::Symbolizer &symbolizer);

} // namespace ktrace::sample
