// EventKind: the events of a stop that concern more than its task. They go up with it (hit/dispatch.h).
#pragma once

#include <cstdint>

namespace ktrace::engine {

enum class EventKind : std::uint8_t {
    none,
    new_process, // fork, vfork: `other` is the child's tid; `stopped` is the parent
    may_exec,    // `stopped` is at the entry of an execve, or execveat, of a task that is to stop there
    exec,        // `stopped` is the new leader, at its first instruction; `other` its former tid
    loader,      // the list of modules has changed; `stopped` is at the loader's breakpoint
    ifunc,       // a resolver is called or has returned; `stopped` is there
    ended,       // a task has ended; `status`, `signal` of it
    dispatched,  // a thread has syscall user dispatch: `stopped` is at the trap of a call, not served yet
    unknown,     // a stop of a task that is not known yet: a child whose stop came before its parent's event
};

} // namespace ktrace::engine
