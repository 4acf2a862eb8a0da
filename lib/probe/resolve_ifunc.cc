// Indirect functions (STT_GNU_IFUNC): which implementation does the process use? Its resolver has chosen it when the
// dynamic linker filled a slot (GLOB_DAT, JUMP_SLOT, IRELATIVE) with its address; the slots are read, the resolver is
// not run.
#include <algorithm>

#include "arch/host.h"
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

/// The module that a slot's value lies in, where a resolver of `loaded` may have chosen that: one of its own functions,
/// or one of the kernel's (libc's `time` and `gettimeofday`), which no loader binds a name to. Another module's
/// function has interposed.
const Loaded *chosen_in(const Request &request, const Loaded &loaded, std::uint64_t value) {
    if (loaded.module->executable(value - loaded.bias)) return &loaded;
    for (const Loaded &other : request.modules)
        if (other.module->is_vdso() && other.module->executable(value - other.bias)) return &other;
    return nullptr;
}

/// The function of a slot's value, if it is an implementation.
std::optional<Implementation> implementation(const Request &request, const Loaded &loaded, const symbols::Symbol &ifunc,
                                             VirtAddr slot) {
    auto value = request.memory->read_value<std::uint64_t>(slot);
    if (!value) return std::nullopt;
    const Loaded *owner = chosen_in(request, loaded, *value);
    // Not relocated yet, interposed, or the resolver itself.
    if (!owner || *value == ifunc.vaddr + loaded.bias) return std::nullopt;
    const std::uint64_t vaddr = *value - owner->bias;
    if (owner->module->in_plt(vaddr) || is_stub(*request.memory, VirtAddr{*value})) return std::nullopt;
    return Implementation{owner, vaddr};
}

} // namespace

std::vector<Implementation> implementations(const Request &request, const Loaded &loaded,
                                            const symbols::Symbol &ifunc) {
    std::vector<Implementation> found;
    if (!request.memory) return found;
    auto look = [&](const Loaded &owner, std::uint64_t slot) {
        auto chosen = implementation(request, loaded, ifunc, VirtAddr{slot + owner.bias});
        if (chosen && std::find(found.begin(), found.end(), *chosen) == found.end()) found.push_back(*chosen);
    };
    for (const symbols::Irelative &irelative : loaded.module->irelative_slots())
        if (irelative.resolver == ifunc.vaddr) look(loaded, irelative.slot);
    if (!ifunc.global) return found;
    for (const Loaded &owner : request.modules)
        for (std::uint64_t slot : owner.module->got_slots(ifunc.name, ifunc.version)) look(owner, slot);
    return found;
}

Result<Location> resolve_chosen(const Spec &spec, Kind kind, const Location &resolver,
                                const std::shared_ptr<symbols::Module> &module, std::uint64_t vaddr) {
    Location function = resolver;
    function.module = module;
    function.function = vaddr;
    function.function_end = module->function_end(vaddr);
    return at_offset(Request{spec, kind, {}, {}, nullptr}, std::move(function));
}

} // namespace ktrace::probe
