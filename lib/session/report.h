// report: what goes to the user: the records that wait, and the tables and counts at the end.
#pragma once

#include "session/state.h"

namespace ktrace::session {

/// Opens where output goes, and the sink. Errors: denied, not_found, system.
Status open_output(State &state);

/// Hands all waiting records to the sink. `flush`: and writes out what the sink has made of them.
void report_records(State &state, bool flush);

/// True once nobody can be told any more (a closed pipe, a full disk): the trace ends. A full disk is complained of
/// once.
bool output_failed(State &state);

/// Tables, counts, and how durations were corrected.
void report_summary(State &state);

} // namespace ktrace::session
