#include "session/downloads.h"

#include "os/interrupts.h"
#include "symbols/debuginfod.h"

namespace ktrace::session {

void permit_downloads() {
    symbols::set_download_permission([] { return !os::Interrupts::are_pending(); });
}

void forbid_downloads() {
    symbols::set_download_permission([] { return false; });
}

} // namespace ktrace::session
