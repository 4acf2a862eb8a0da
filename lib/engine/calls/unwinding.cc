#include "engine/calls/unwinding.h"

#include "engine/calls/doubtful_calls.h"

namespace ktrace::engine {

namespace {

void see_unwinding(Engine &engine, Process &process, Task &task, Site &site, os::Stopped &stopped) {
    task.calls.unwinds++;
    doubt_calls(engine, process, task, site, stopped);
}

} // namespace

const InternalPurpose unwinds{.at_hit = see_unwinding, .serves_returns = true};

} // namespace ktrace::engine
