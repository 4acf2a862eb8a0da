#include "recovery/injected_call.h"

#include "arch/way_back.h"
#include "os/proc/procfs.h"
#include "os/tracee/ptrace.h"
#include "target/own_stack.h"

namespace ktrace::recovery {

namespace {

/// The code and the room of a page that this ktrace has made: one that it has adopted has no room for entries.
std::optional<os::WayBack> way_back_by_page(const Page &page, target::AddressSpace &space) {
    auto call = arch::call_in_recovery_code();
    if (page.room() == 0 || !call || page.is_lost() || !page.is_there(space)) return std::nullopt;
    os::WayBack way{};
    way.call = page.address() + static_cast<std::int64_t>(code_at + *call);
    way.frame = page.address() + static_cast<std::int64_t>(ktrace_recovery_page);
    way.room = arch::recovery_frame_size;
    way.memory = &space;
    return way;
}

/// The program has installed a filter since, which might kill it for an injected call. Filters cannot be read. Where
/// this one cannot be suspended either, no call is made: the mappings stay, and do no harm.
bool may_be_ended(const Page &page, Tid tid) {
    if (!page.mapped() || !page.filters()) return false;
    auto status = os::read_status(tid.value);
    return status && static_cast<std::uint64_t>(status->seccomp_filters) > *page.filters() &&
           !os::may_suspend_seccomp();
}

} // namespace

Result<std::int64_t> call_with_way_back(os::Waiter &waiter, os::Stopped &stopped, VirtAddr instruction,
                                        const Page &page, target::AddressSpace &space, std::uint64_t number,
                                        std::initializer_list<std::uint64_t> arguments, os::Through through) {
    if (may_be_ended(page, stopped.tid()))
        return fail(
            Error::Kind::refused,
            "the process has confined itself by a seccomp filter meanwhile, which might end it for a system call "
            "of ktrace's: some unused memory of ktrace's stays in it");
    auto way = way_back_by_page(page, space);
    if (!way) way = target::way_back_by_stack(space, stopped);
    return way ? os::remote_syscall(waiter, stopped, instruction, *way, number, arguments)
               : os::remote_syscall(waiter, stopped, instruction, number, arguments, through);
}

} // namespace ktrace::recovery
