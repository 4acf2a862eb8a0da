// Recovery: the entry of a site in the recovery page of a target. No handler for arm64 uses it yet; a guardian and a
// later ktrace take the traps out by it.
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
    entry.kind = ktrace_recovery_restart;
    if (plan.method == Method::emulate) return entry;
    entry.slot = slot.value;
    entry.copy_at = placed.copy_at;
    entry.copy_end = placed.copy_end;
    entry.go_to = (slot + placed.copy_at).value;
    return entry;
}

} // namespace ktrace::arch
