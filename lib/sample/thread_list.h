// The list of threads that `ktrace stack` prints, as text or JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "os/proc/procfs.h"
#include "output/symbolizer.h"
#include "sample/threads.h"

namespace ktrace::sample {

/// A thread as it was found.
struct ThreadLook {
    Pid pid;
    Tid tid;
    std::string comm;
    char state = '?';                       // as ps prints it
    std::uint64_t time_ns = 0;              // CLOCK_REALTIME
    std::optional<std::uint64_t> waited_ns; // since it ran last
    std::optional<os::TaskPlace> call;      // the system call that it is asleep in
    Stack stack;                            // empty: not known
    std::string why_not;                    // why there is no stack, or not all of it; empty: it is whole
};

/// Text: a line a thread, in their order, and under it its stack; threads with equal stacks stand one behind the other,
/// above their stack.
std::string threads_text(const std::vector<ThreadLook> &threads, output::Symbolizer &symbolizer);

/// A JSON object a line and thread.
std::string threads_json(const std::vector<ThreadLook> &threads, output::Symbolizer &symbolizer);

} // namespace ktrace::sample
