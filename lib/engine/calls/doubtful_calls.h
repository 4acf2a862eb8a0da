// doubtful_calls: calls that may have been left by an exception, a longjmp or a switch of stacks. Nothing on the stack
// shows it: the return address of one that was left stays there. Where the instruction that made it leads to other
// functions, too, the next of them returns to the same place with the same stack pointer, and would be taken for the
// end of the call that was left. So the call instruction is trapped: a task that comes there with the stack pointer
// that the call was made with has left it.
//
// Invariants: (1) Instance::doubtful_at counts once in Site::doubtful, until the call has ended; (2) a call instruction
// is trapped only while calls from there are in doubt.
#pragma once

#include "engine/space/engine.h"
#include "os/tracee/stopped.h"

namespace ktrace::engine {

/// Would the call, if it was left, be taken for returned by the return of another? `direct_target`: the function that
/// its call instruction leads to, 0 where that is indirect. Pure.
bool is_doubtful(const Instance &call, VirtAddr direct_target);

/// The task begins to leave frames, at the first instruction of an unwinder (unwinding.h). Its calls, and
/// those of other tasks on the stack that it runs on (fibers, goroutines), are in doubt from now on: they may be some
/// of those that are left. A call from the very frame that a longjmp leads to ends as unreturned: `if (setjmp(env) ==
/// 0) f();` goes on at the return address of f, which is still on the stack.
void doubt_calls(Engine &engine, Process &process, Task &task, const Site &unwinder, os::Stopped &stopped);

/// A task is at a trapped call instruction: the calls that it has left end as unreturned.
void end_left_calls(Engine &engine, Process &process, const Site &site, os::Stopped &stopped);

/// The call has ended: its call instruction's trap comes out where no other call is in doubt there.
void forget_doubt(AddressSpaceState &space, Instance &call);

} // namespace ktrace::engine
