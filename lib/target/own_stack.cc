#include "target/own_stack.h"

#include <algorithm>
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

/// glibc's threads have their thread control block on top of their stack, which points to itself, and a guard below.
bool is_thread_stack(const std::vector<os::Mapping> &maps, const os::Mapping &stack, AddressSpace &space,
                     const Host::Registers &registers) {
    auto thread = Host::thread_pointer(registers);
    if (!thread || !stack.contains(*thread) || *thread < Host::sp(registers)) return false;
    if (space.read_value<std::uint64_t>(*thread) != thread->value) return false;
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

/// The dynamic loader, the C library, or a program that has one linked into it.
bool may_have_trampoline(const os::Mapping &mapping, const std::string &program) {
    constexpr std::uint64_t largest = std::uint64_t{1} << 24;
    if (!mapping.executable || mapping.end.value - mapping.start.value > largest) return false;
    const std::string_view path = mapping.path;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    return name.starts_with("ld-") || name.starts_with("libc.") || name.starts_with("libc-") ||
           (!path.empty() && path == program);
}

struct Trampoline {
    std::optional<VirtAddr> call, returns_to; // a system call with a return behind it; rt_sigreturn
};

void look_for(std::span<const std::byte> code, VirtAddr start, std::span<const std::byte> wanted,
              std::optional<VirtAddr> &found) {
    if (found) return;
    auto at = std::search(code.begin(), code.end(), wanted.begin(), wanted.end());
    if (at != code.end()) found = start + (at - code.begin());
}

Trampoline find_trampoline(Pid pid, const std::vector<os::Mapping> &maps, AddressSpace &space) {
    Trampoline found;
    if (arch::call_and_return().empty()) return found;
    const VirtAddr entry{os::read_auxv(pid, AT_ENTRY).value_or(0)};
    auto program = std::find_if(maps.begin(), maps.end(), [&](const os::Mapping &m) { return m.contains(entry); });
    for (const os::Mapping &mapping : maps) {
        if (!may_have_trampoline(mapping, program == maps.end() ? "" : program->path)) continue;
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
