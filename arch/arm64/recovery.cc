// Recovery: the entry of a site in the recovery page of a target, by which recovery_handler.c gets over its trap.
#include "arch/recovery.h"

#include <cstring>

#include "arm64/arm64.h"

namespace ktrace::arch {

ktrace_recovery_entry Arm64::recovery_entry(const Plan &plan, const Placement &placed, VirtAddr site, VirtAddr slot) {
    ktrace_recovery_entry entry{};
    entry.site = site.value;
    entry.length = plan.length;
    entry.trap_size = a64_size;
    std::memcpy(entry.original, &plan.word, sizeof plan.word);
    entry.target_register = entry.base = entry.index = entry.segment = -1;
    entry.kind = ktrace_recovery_word;
    if (plan.method == Method::emulate) return entry;
    // A call's copy would link to the slot, a copy that needs a scratch register runs by ktrace alone.
    entry.kind = plan.flow == Flow::call || placed.scratch >= 0 ? ktrace_recovery_restart : ktrace_recovery_slot;
    entry.slot = slot.value;
    entry.copy_at = placed.copy_at;
    entry.copy_end = placed.copy_end;
    entry.go_to = (slot + placed.copy_at).value;
    return entry;
}

} // namespace ktrace::arch
