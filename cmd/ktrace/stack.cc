// stack: where the threads of processes are now.
#include "sample/stack.h"

#include "commands.h"
#include "voice.h"

namespace ktrace::cli {

int stack(const Invocation &invocation) { return sample::stack(invocation.config, voice()); }

} // namespace ktrace::cli
