#include "target/process.h"

#include <algorithm>

#include <elf.h>

#include "arch/host.h"

namespace ktrace::target {

namespace {

tl::unexpected<Error> has_ended(Pid pid) {
    return fail(Error::Kind::gone, "process " + std::to_string(pid.value) + " has ended");
}

/// It is ending, or has become one that users without privileges may not look at.
tl::unexpected<Error> cannot_be_read(Pid pid) {
    auto memory = os::ProcessMemory::open(pid);
    if (memory || memory.error().kind != Error::Kind::denied) return has_ended(pid);
    return fail(Error::Kind::denied,
                "what process " + std::to_string(pid.value) +
                    " has mapped may not be read any more: it has made itself not dumpable",
                "run ktrace as root");
}

} // namespace

Status refresh(Process &process, ModuleCache &cache, std::vector<std::string> &unreadable) {
    auto maps = os::read_maps(process.pid);
    if (!maps || maps->empty()) // of a process that is ending there is nothing left to read
        return cannot_be_read(process.pid);
    process.maps = std::move(*maps);
    // One that has ended while they were read has shown a part of them.
    if (!os::read_auxv(process.pid, AT_PAGESZ)) return has_ended(process.pid);
    process.modules = cache.modules_of(process.pid, process.maps, process.modules, *process.space, unreadable);
    if (!process.syscall_instruction) process.syscall_instruction = find_syscall_instruction(process);
    return {};
}

std::optional<VirtAddr> find_syscall_instruction(const Process &process) {
    auto wanted = arch::Host::syscall_bytes();
    auto search = [&](const os::Mapping &mapping) -> std::optional<VirtAddr> {
        constexpr std::uint64_t chunk = 65536;
        std::vector<std::byte> code(chunk + 16);
        for (std::uint64_t at = mapping.start.value; at < mapping.end.value; at += chunk) {
            std::size_t want = std::min<std::uint64_t>(code.size(), mapping.end.value - at);
            std::size_t got = process.space->read(VirtAddr{at}, std::span(code).first(want));
            auto found = std::search(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(got), wanted.begin(),
                                     wanted.end());
            if (found != code.begin() + static_cast<std::ptrdiff_t>(got))
                return VirtAddr{at + static_cast<std::uint64_t>(found - code.begin())};
        }
        return std::nullopt;
    };
    for (bool vdso : {true, false})
        for (const os::Mapping &mapping : process.maps)
            if (mapping.executable && (mapping.path == "[vdso]") == vdso)
                if (auto found = search(mapping)) return found;
    return std::nullopt;
}

} // namespace ktrace::target
