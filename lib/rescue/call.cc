#include "rescue/call.h"

#include "arch/way_back.h"
#include "target/own_stack.h"

namespace ktrace::rescue {

namespace {

/// The code and the room of a page that this ktrace has made: one that it has adopted has no room for entries.
std::optional<os::WayBack> way_back_by_page(const Page &page, target::AddressSpace &space) {
    auto call = arch::call_in_rescue_code();
    if (!page.mapped() || page.room() == 0 || !call) return std::nullopt;
    os::WayBack way{};
    way.call = page.address() + static_cast<std::int64_t>(code_at + *call);
    way.frame = page.address() + static_cast<std::int64_t>(ktrace_rescue_page);
    way.room = arch::rescue_frame_size;
    way.memory = &space;
    return way;
}

} // namespace

Result<std::int64_t> call_with_way_back(os::Waiter &waiter, os::Stopped &stopped, VirtAddr instruction,
                                        const Page &page, target::AddressSpace &space, std::uint64_t number,
                                        std::initializer_list<std::uint64_t> arguments, os::Through through) {
    auto way = way_back_by_page(page, space);
    if (!way) way = target::way_back_by_stack(space, stopped);
    return way ? os::remote_syscall(waiter, stopped, instruction, *way, number, arguments)
               : os::remote_syscall(waiter, stopped, instruction, number, arguments, through);
}

} // namespace ktrace::rescue
