// report: what goes to the user: the records that wait, and the tables and counts at the end.
#pragma once

#include <functional>

#include "trace/trace.h"

namespace ktrace::report {

/// Opens where output goes, and the sink. Errors: those of output::Writer::create.
Status open_output(trace::Trace &trace);

/// Hands all waiting records to the sink, except those that the reader of the output leaves no room for: these are
/// counted as dropped. `flush`: and writes out what the sink has made of them. Files that were found cut short are
/// reported of, too.
void report_records(trace::Trace &trace, bool flush);

/// True once nothing can be written any more (a closed pipe, a full disk): the trace ends. A full disk is complained of
/// once.
bool output_failed(trace::Trace &trace);

/// Waits until all output is written, or a signal ends the wait. `meanwhile` is called every now and then.
void finish_output(
    trace::Trace &trace, const std::function<void()> &meanwhile = [] {});

/// Tables, counts, and how durations were corrected. `meanwhile`: as for finish_output.
void report_summary(
    trace::Trace &trace, const std::function<void()> &meanwhile = [] {});

} // namespace ktrace::report
