// inherit: a fork's child has copies of its parent's traps, slots and page in its memory already. So nothing is
// planned: it gets copies of the attachments, internal breakpoints and sites that they belong to.
#pragma once

#include "trace/trace.h"

namespace ktrace::arming {

/// `space`: of the child, with a copy of the parent's slots, and no sites yet. Calls in flight are not copied. A trap
/// that the parent has got since the fork is planted; one that it has lost is taken out.
void inherit(trace::Trace &trace, const engine::Process &parent,
             const std::shared_ptr<engine::AddressSpaceState> &space);

} // namespace ktrace::arming
