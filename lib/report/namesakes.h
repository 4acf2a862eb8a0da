// namesakes: the texts that distinguish locations of one name: overloads, inlined instances, static functions of
// several files.
#pragma once

#include <cstddef>
#include <vector>

#include "trace/trace.h"

namespace ktrace::report {

/// Gives those of these locations (indices in Trace::installed.locations) that are at several places, but have one
/// name, LocationInfo::which: a function its parameters, an inlined instance the function that it is in, either with
/// file and line where that does not do, and its vaddr where that does not either. Others have none afterwards.
void tell_namesakes_apart(trace::Trace &trace, const std::vector<std::size_t> &shown);

} // namespace ktrace::report
