#include "trace/trace.h"

namespace ktrace::trace {

void tell_once(Trace &trace, const std::string &text) {
    if (!trace.told.insert(text).second || trace.config.quiet) return;
    trace.voice.notice(text);
}

} // namespace ktrace::trace
