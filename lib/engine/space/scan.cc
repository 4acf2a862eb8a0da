#include "engine/space/scan.h"

#include <span>

namespace ktrace::engine {

using arch::Host;

namespace {

constexpr std::int64_t longest_function = 1 << 20; // bytes

} // namespace

std::vector<VirtAddr> instructions(Memory &memory, VirtAddr start, VirtAddr end,
                                   const std::function<bool(const Host::Plan &)> &wanted) {
    if (end <= start || end - start > longest_function) return {};
    std::vector<std::byte> code(static_cast<std::size_t>(end - start));
    if (memory.read(start, code) != code.size()) return {};
    std::vector<VirtAddr> found;
    for (std::size_t at = 0; at < code.size();) {
        VirtAddr here = start + static_cast<std::int64_t>(at);
        auto plan = Host::plan(std::span(code).subspan(at), here);
        if (plan.length == 0) return {};
        if (wanted(plan)) found.push_back(here);
        at += plan.length;
    }
    return found;
}

} // namespace ktrace::engine
