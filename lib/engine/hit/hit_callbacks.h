// hit_callbacks: runs the handlers of probes that have one instead of a program: their view of the stopped thread, and
// the calls that they begin.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// A handler's requests for the rest of the hit.
struct Handled {
    bool pc_is_set = false; // it has set the pc itself: the instruction is not run
    bool post = false;      // it wants to be called after the instruction
};

/// Before the instruction, for any kind of probe; a return probe's call begins.
Handled handle_hit(Engine &engine, Process &process, Task &task, Attachment &attachment, Site &site,
                   os::Stopped &stopped);

/// After the instruction.
void handle_post(Process &process, Task &task, Attachment &attachment, Site &site, os::Stopped &stopped);

/// A call of the probe's has returned to `site`. Its instance is ended here.
void handle_return(Engine &engine, Process &process, Task &task, Instance &call, VirtAddr returned_to,
                   std::uint64_t duration_ns, os::Stopped &stopped);

/// The site's instruction has raised a signal. True: a handler has dealt with it; the thread is resumed without it.
bool handle_fault(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped,
                  const siginfo_t &info);

} // namespace ktrace::engine
