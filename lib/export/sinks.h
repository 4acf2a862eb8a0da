// Sinks of the formats for other programs. As those of output/sink.h: lines are put into `writer`, which must outlive
// the sink; `symbolizer` may be nullptr.
#pragma once

#include <cstdint>
#include <memory>

#include "output/sink.h"

namespace ktrace::exports {

/// The tables, a heading and a line a row; of histograms a line a range. With --interval their number stands first, 0
/// for the whole trace.
std::unique_ptr<output::Sink> make_csv_sink(output::Writer &writer, output::Symbolizer *symbolizer);

/// `main;work;malloc 9120`: the stacks of tables by stack, outermost first, behind the other parts of their keys. The
/// number is the count, of --stats the total.
std::unique_ptr<output::Sink> make_folded_sink(output::Writer &writer, output::Symbolizer *symbolizer);

/// The events, as a list of Chrome's trace events that end() closes. Calls are as long as they were with ktrace's own
/// share, so that those inside are within them; the duration is among the arguments. `began_ns`: the time 0, of
/// CLOCK_REALTIME.
std::unique_ptr<output::Sink> make_chrome_sink(output::Writer &writer, output::Symbolizer *symbolizer,
                                               std::uint64_t began_ns);

} // namespace ktrace::exports
