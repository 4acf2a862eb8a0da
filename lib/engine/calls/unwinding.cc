#include "engine/calls/unwinding.h"

#include "engine/space/task.h"

namespace ktrace::engine {

namespace {

void count_unwinding(Engine & /*engine*/, Process & /*process*/, Task &task, Site & /*site*/,
                     os::Stopped & /*stopped*/) {
    task.unwinds++;
}

} // namespace

const InternalPurpose unwinds{.at_hit = count_unwinding, .serves_returns = true};

} // namespace ktrace::engine
