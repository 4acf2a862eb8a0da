// unhit: the locations that were never hit. A glob may have thousands of them: text says how many, and does not show
// each; JSON and -v do.
#pragma once

#include <string>
#include <vector>

#include "trace/trace.h"

namespace ktrace::report {

struct Unhit {
    std::vector<bool> left_out; // by index in Trace::installed.locations: not shown in text
    std::string text;           // a line for each SPEC that locations are left out of, and how many
};

/// Few locations of a SPEC are shown, hit or not.
Unhit find_unhit(const trace::Trace &trace);

} // namespace ktrace::report
