#include "trace/downloads.h"

#include "os/self/own_signals.h"
#include "symbols/debugfile/debuginfod.h"

namespace ktrace::trace {

void permit_downloads() {
    symbols::set_download_permission([] { return !os::OwnSignals::are_pending(); });
}

void forbid_downloads() {
    symbols::set_download_permission([] { return false; });
}

} // namespace ktrace::trace
