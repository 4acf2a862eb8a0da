// Log: what the plugin prints, line by line, until ktrace takes it with the end of the Call.
#pragma once

namespace ktrace::plugin::host {

/// A line that was begun and not ended is one, now that the Call ends.
void end_line();

} // namespace ktrace::plugin::host
