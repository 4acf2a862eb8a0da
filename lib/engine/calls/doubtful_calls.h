// doubtful_calls: calls that may have been left by an exception, a longjmp or a switch of stacks. The stack does not
// show it: the return address of a call that was left stays there. An indirect call instruction may lead to another
// function the next time, which returns to the same place with the same stack pointer: that would be taken for the
// return of the call that was left. So the call instruction is trapped. A task that comes to it with the stack pointer
// of the call has left the call.
//
// Invariants: (1) Instance::doubtful_at counts once in Site::doubtful, until the call has ended; (2) a call instruction
// is trapped only while calls from there are doubtful.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// True where another function's return could be taken for that of the call, if the call was left. `direct_target`: the
/// function that its call instruction leads to, 0 where that is indirect. Pure.
bool is_doubtful(const Instance &call, VirtAddr direct_target);

/// The task begins to leave frames, at the first instruction of an unwinder (unwinding.h). Its calls, and those of
/// other tasks on the stack that it runs on (fibers, goroutines), are doubtful from now on. A call from the very frame
/// that a longjmp leads to ends as unreturned: `if (setjmp(env) == 0) f();` goes on at the return address of f, which
/// is still on the stack.
void doubt_calls(Engine &engine, Process &process, Task &task, const Site &unwinder, os::Stopped &stopped);

/// A task is at a trapped call instruction: the calls that it has left end as unreturned.
void end_left_calls(Engine &engine, Process &process, const Site &site, os::Stopped &stopped);

/// The call has ended: its call instruction's trap comes out where no other call from there is doubtful.
void forget_doubt(AddressSpaceState &space, Instance &call);

} // namespace ktrace::engine
