// Perf map: the names of generated code, as programs that make it write them for perf: /tmp/perf-PID.map, a line a
// function, `START SIZE NAME`, the numbers in hex.
//
// Invariants: the file belongs to the target: no link is followed, and nothing waited for. A line replaces all before
// it that it overlaps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace ktrace::report {

class PerfMap {
  public:
    struct Function {
        std::uint64_t start = 0, end = 0; // [start, end)
        std::string name;
    };

    /// The function that has this address. It lives until more is read.
    const Function *at(std::uint64_t address) const;
    /// More of the file's text. A line that is not whole yet is kept for the next time; one of another form is left
    /// out.
    void add(std::string_view text);
    /// Reads what the process has written since the last time.
    void read(Pid pid);

  private:
    void add_line(std::string_view line);

    std::map<std::uint64_t, Function> functions_; // by start; none overlaps another
    std::string unfinished_;
    std::uint64_t read_ = 0; // bytes of the file
};

} // namespace ktrace::report
