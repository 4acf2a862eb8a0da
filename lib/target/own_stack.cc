#include "target/own_stack.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <elf.h>

#include "arch/way_back.h"
#include "os/proc/procfs.h"

namespace ktrace::target {

using arch::Host;

namespace {

constexpr std::int64_t red_zone = 1024; // more than any psABI's
constexpr std::uint64_t frame_room = 8192;
// Below the stack pointer: for the frame, and for handlers of signals that come before it is used up.
constexpr std::uint64_t least_below = 65536, least_below_in_thread = 24576;

/// glibc's threads have their thread control block on top of their stack, and a guard below.
bool is_thread_stack(const std::vector<os::Mapping> &maps, const os::Mapping &stack, AddressSpace &space,
                     const Host::Registers &registers) {
    auto thread = Host::thread_pointer(registers);
    if (!thread || !stack.contains(*thread) || *thread < Host::sp(registers)) return false;
    if (!arch::is_thread_block(*thread, space)) return false;
    return std::any_of(maps.begin(), maps.end(), [&](const os::Mapping &below) {
        return below.end == stack.start && !below.readable && !below.writable && !below.executable;
    });
}

/// Where a frame may lie.
std::optional<VirtAddr> room_below(const std::vector<os::Mapping> &maps, AddressSpace &space,
                                   const Host::Registers &registers) {
    const VirtAddr sp = Host::sp(registers);
    for (const os::Mapping &mapping : maps) {
        if (!mapping.contains(sp)) continue;
        const bool is_main = mapping.path == "[stack]";
        if (!mapping.writable || mapping.shared || (!is_main && !is_thread_stack(maps, mapping, space, registers)))
            return std::nullopt;
        if (sp.value - mapping.start.value < (is_main ? least_below : least_below_in_thread)) return std::nullopt;
        return VirtAddr{(sp - red_zone - static_cast<std::int64_t>(frame_room)).value & ~std::uint64_t{63}};
    }
    return std::nullopt;
}

/// The dynamic loader, the C library, what the kernel maps for them, and last the program, which may have one linked
/// into it.
std::vector<const os::Mapping *> where_trampolines_are(const std::vector<os::Mapping> &maps, VirtAddr entry) {
    constexpr std::uint64_t largest = std::uint64_t{1} << 24;
    std::vector<const os::Mapping *> libraries, programs;
    const auto program = std::ranges::find_if(maps, [&](const os::Mapping &each) { return each.contains(entry); });
    for (const os::Mapping &mapping : maps) {
        if (!mapping.executable || mapping.end.value - mapping.start.value > largest) continue;
        const std::string_view path = mapping.path;
        const std::string_view name = path.substr(path.rfind('/') + 1);
        if (path == "[vdso]" || name.starts_with("ld-") || name.starts_with("libc.") || name.starts_with("libc-"))
            libraries.push_back(&mapping);
        else if (program != maps.end() && !path.empty() && path == program->path)
            programs.push_back(&mapping);
    }
    libraries.insert(libraries.end(), programs.begin(), programs.end());
    return libraries;
}

struct Trampoline {
    std::optional<VirtAddr> call, returns_to; // a system call with a return behind it; rt_sigreturn
};

void look_for(std::span<const std::byte> code, VirtAddr start, std::span<const std::byte> wanted,
              std::optional<VirtAddr> &found) {
    if (found) return;
    const void *at = ::memmem(code.data(), code.size(), wanted.data(), wanted.size());
    if (at) found = start + (static_cast<const std::byte *>(at) - code.data());
}

Trampoline find_trampoline(Pid pid, const std::vector<os::Mapping> &maps, AddressSpace &space) {
    Trampoline found;
    if (arch::call_and_return().empty()) return found;
    const VirtAddr entry{os::read_auxv(pid, AT_ENTRY).value_or(0)};
    for (const os::Mapping *const each : where_trampolines_are(maps, entry)) {
        const os::Mapping &mapping = *each;
        std::vector<std::byte> code(mapping.end.value - mapping.start.value);
        code.resize(space.read(mapping.start, code));
        look_for(code, mapping.start, arch::call_and_return(), found.call);
        look_for(code, mapping.start, Host::signal_trampoline(), found.returns_to);
        if (found.call && found.returns_to) break;
    }
    return found;
}

} // namespace

std::optional<os::WayBack> way_back_by_stack(AddressSpace &space, os::Stopped &stopped) {
    auto status = os::read_status(stopped.tid().value);
    auto maps = status ? os::read_maps(Pid{status->tgid}) : std::nullopt;
    if (!maps) return std::nullopt;
    auto frame = room_below(*maps, space, stopped.registers());
    if (!frame) return std::nullopt;
    const Trampoline found = find_trampoline(Pid{status->tgid}, *maps, space);
    if (!found.call || !found.returns_to) return std::nullopt;
    return os::WayBack{*found.call, *frame, frame_room, &space, found.returns_to};
}

} // namespace ktrace::target
