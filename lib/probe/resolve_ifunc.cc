// Indirect functions (STT_GNU_IFUNC): which implementation does the process use? Its resolver has chosen it when the
// dynamic linker filled a slot (GLOB_DAT, JUMP_SLOT, IRELATIVE) with its address; the slots are read, the resolver is
// not run.
#include <algorithm>

#include "host.h"
#include "probe/resolve_parts.h"

namespace ktrace::probe {

namespace {

/// True where the process's code at `at` is a stub that jumps through a slot: what a slot holds until it is bound, or
/// what a non-PIE program exports as a function's address.
bool is_stub(Memory &memory, VirtAddr at) {
    std::byte code[16];
    std::size_t size = memory.read(at, code);
    return arch::Host::plt_target_slot(std::span<const std::byte>(code, size), at).has_value();
}

/// The vaddr in `loaded` that a slot's value stands for, if it is an implementation there.
std::optional<std::uint64_t> implementation(const Request &request, const Loaded &loaded, const symbols::Symbol &ifunc,
                                            VirtAddr slot) {
    auto value = request.memory->read_value<std::uint64_t>(slot);
    if (!value) return std::nullopt;
    std::uint64_t vaddr = *value - loaded.bias;
    // Not relocated yet, interposed by another module's function, or the resolver itself.
    if (!loaded.module->executable(vaddr) || vaddr == ifunc.vaddr) return std::nullopt;
    if (loaded.module->in_plt(vaddr) || is_stub(*request.memory, VirtAddr{*value})) return std::nullopt;
    return vaddr;
}

} // namespace

std::vector<std::uint64_t> implementations(const Request &request, const Loaded &loaded, const symbols::Symbol &ifunc) {
    std::vector<std::uint64_t> found;
    if (!request.memory) return found;
    auto look = [&](const Loaded &owner, std::uint64_t slot) {
        auto vaddr = implementation(request, loaded, ifunc, VirtAddr{slot + owner.bias});
        if (vaddr && std::find(found.begin(), found.end(), *vaddr) == found.end()) found.push_back(*vaddr);
    };
    for (const symbols::Module::Irelative &irelative : loaded.module->irelative_slots())
        if (irelative.resolver == ifunc.vaddr) look(loaded, irelative.slot);
    if (!ifunc.global) return found;
    for (const Loaded &owner : request.modules)
        for (std::uint64_t slot : owner.module->got_slots(ifunc.name, ifunc.version)) look(owner, slot);
    return found;
}

Result<Location> resolve_chosen(const Spec &spec, Kind kind, const Location &resolver, std::uint64_t vaddr) {
    Location function = resolver;
    function.function = vaddr;
    function.function_end = resolver.module->function_end(vaddr);
    return at_offset(Request{spec, kind, {}, {}, nullptr}, std::move(function));
}

} // namespace ktrace::probe
