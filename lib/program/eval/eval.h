// eval: one hit of one program: filter, select, then aggregate or write a record.
//
// Invariants: no allocation, no libc but memcpy, no system call: it runs for each hit.
#pragma once

#include <cstddef>
#include <span>

#include "program/run/program.h"
#include "program/tables/state.h"

namespace ktrace::program {

/// Runs the code of one moment. `capture`: Moment::call writes what the return needs (args, selection); its used
/// size is returned through `captured`. `record`: a buffer of at least max_record bytes; a RecordHeader and values are
/// written into it on Outcome::event (size in the header; location, sequence are the caller's to fill).
Outcome eval(const Image &image, Moment moment, const HitView &hit, ProbeState &state, std::span<std::byte> capture,
             std::size_t &captured, std::span<std::byte> record);

} // namespace ktrace::program
