#include "target/loader.h"

#include <elf.h>
#include <link.h>

#include "os/proc/procfs.h"

namespace ktrace::target {

namespace {

/// Where a symbol of the dynamic loader lies. Nothing: the process has no loader, or its loader has no such symbol.
std::optional<VirtAddr> address_in_loader(const Process &process, const char *symbol) {
    auto base = os::read_auxv(process.pid, AT_BASE);
    if (!base || *base == 0) return std::nullopt;
    const LoadedModule *loader = module_at(process.modules, VirtAddr{*base});
    if (!loader) return std::nullopt;
    auto symbols = loader->module->named(symbol);
    if (symbols.empty()) return std::nullopt;
    return VirtAddr{symbols.front()->vaddr + loader->bias};
}

std::optional<r_debug> read_debug(const Process &process) {
    auto at = address_in_loader(process, "_r_debug");
    return at ? process.space->read_value<r_debug>(*at) : std::nullopt;
}

} // namespace

bool modules_complete(const Process &process) {
    const auto debug = read_debug(process);
    // r_brk is filled in when the loader sets r_debug up.
    return !debug || (debug->r_state == r_debug::RT_CONSISTENT && debug->r_brk != 0);
}

bool is_unloading(const Process &process) {
    const auto debug = read_debug(process);
    return debug && debug->r_state == r_debug::RT_DELETE;
}

std::optional<VirtAddr> loader_breakpoint(const Process &process) {
    return address_in_loader(process, "_dl_debug_state");
}

} // namespace ktrace::target
