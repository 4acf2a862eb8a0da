// HitHandler: the port for functions (a plugin's) that a hit runs in place of a program. They may look at the stopped
// thread and change it.
//
// Invariants: a handler's functions run with the thread stopped and its token in hand; their changes go to the thread
// with the write before its resume. They may register, enable and disable probes; a removed probe stays known until the
// hit is over.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/space/task.h"
#include "os/tracee/stopped.h"
#include "target/process.h"

namespace ktrace::engine {

/// A stopped thread at a probe. `stopped` shows the pc that the program would: the probed address, after it the next
/// one, at a return the return address.
struct HandlerHit {
    os::Stopped &stopped;
    target::Process &process;
    Task &task;
    VirtAddr at;              // of the probe
    std::uint64_t now_ns = 0; // CLOCK_MONOTONIC, when the stop was seen
};

class HitHandler {
  public:
    virtual ~HitHandler() = default;

    /// Before the instruction. True: the handler has set the pc itself; the instruction is not run.
    virtual bool pre(HandlerHit &hit) = 0;
    /// True where `post` is wanted: the instruction is single-stepped then.
    virtual bool has_post() const = 0;
    virtual void post(HandlerHit &hit) = 0;
    /// At a function's entry; changes nothing.
    virtual void entry(HandlerHit &hit) = 0;
    /// A call of a return probe begins, and there is room for it. Returns the name by which `ret` will know it;
    /// nothing: this call is not followed.
    virtual std::optional<std::uint64_t> call(HandlerHit &hit, VirtAddr return_address) = 0;
    /// A call began that there is no room for.
    virtual void missed() = 0;
    /// That call has returned, `duration_ns` after it began (without the time that the thread was stopped).
    virtual void ret(HandlerHit &hit, std::uint64_t call, std::uint64_t duration_ns) = 0;
    /// That call will not return any more (exec, longjmp, an exception, the end); or it has returned, and `ret` is not
    /// called.
    virtual void dropped(std::uint64_t call) = 0;
    /// The probed instruction's copy has faulted; `trap` is the machine's number of the fault. True: handled, the
    /// thread runs on with its registers as they are now.
    virtual bool has_fault() const = 0;
    virtual bool fault(HandlerHit &hit, int trap) = 0;
};

} // namespace ktrace::engine
