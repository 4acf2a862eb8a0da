// repair: takes the remains of a killed ktrace out of a process: traps, pages, the handler for SIGTRAP, steps.
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "recovery/ledger.h"
#include "session/session.h"

namespace ktrace::session {

/// The remains that were found, and are out now.
struct Repaired {
    std::size_t traps = 0;    // still planted
    std::size_t pages = 0;    // of how many ktraces
    std::size_t mappings = 0; // that something of them was in, as the kernel shows them
    bool stays = false;       // something could not be taken out, and was complained of
};

/// Takes out all remains in the process; there may be none. `saved`: the state that its tasks get back, by the ledger.
/// `pageless`: it was traced without a page; its debug registers are cleared all the same. The calling thread traces
/// the process until it ends (see in_tracing_thread). Errors: not_found, denied, refused (it is traced), gone.
Result<Repaired> take_out(Pid pid, const trace::Voice &voice, const std::vector<recovery::SavedState> &saved = {},
                          bool pageless = false);

/// Before a process is attached to: the same with a notice, where there is anything.
void take_out_what_is_left(Pid pid, const trace::Voice &voice);

/// The guardian's: the tracing process was killed by `signal`. First all traps come out, then the rest.
void mend_after(const recovery::Ledger &ledger, int signal, const trace::Voice &voice);

} // namespace ktrace::session
