#include "plugin/window.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/ioctl.h>

#include "base/fd.h"

namespace ktrace::plugin {

namespace {

constexpr std::uint64_t lowest = std::uint64_t{1} << 32;  // below lie programs and heaps of 32-bit habits
constexpr std::uint64_t highest = std::uint64_t{1} << 46; // every kernel lets a program map up to there
constexpr std::uint64_t wanted = std::uint64_t{16} << 30; // reserved, not used: heap and libraries of the host
constexpr std::uint64_t least_hole = std::uint64_t{64} << 30;
constexpr std::uint64_t alignment = std::uint64_t{1} << 30;

/// The kernel's struct procmap_query (include/uapi/linux/fs.h of Linux 6.11), which Debian 12's headers do not have.
struct ProcmapQuery {
    std::uint64_t size = sizeof(ProcmapQuery);
    std::uint64_t flags = 0;
    std::uint64_t address = 0;
    std::uint64_t start = 0, end = 0, vma_flags = 0, page_size = 0, offset = 0, inode = 0;
    std::uint32_t major = 0, minor = 0, name_size = 0, build_id_size = 0;
    std::uint64_t name = 0, build_id = 0;
};
constexpr std::uint64_t covering_or_next = 0x10;
constexpr unsigned long procmap_query = _IOWR('f', 17, ProcmapQuery);

} // namespace

std::optional<Window> choose_window(std::vector<os::Mapping> maps, unsigned attempt) {
    std::sort(maps.begin(), maps.end(), [](const auto &a, const auto &b) { return a.start < b.start; });
    std::uint64_t from = lowest, best = 0, best_size = 0;
    auto hole = [&](std::uint64_t until) {
        if (until > from && until - from > best_size) {
            best = from;
            best_size = until - from;
        }
    };
    for (const os::Mapping &map : maps) {
        hole(std::min(map.start.value, highest));
        from = std::max(from, map.end.value);
    }
    hole(highest);
    if (best_size < least_hole) return std::nullopt;
    // The middle first, then places around it.
    constexpr std::uint64_t parts = window_attempts + 1;
    std::uint64_t part = (parts / 2 + (attempt % 2 == 0 ? attempt / 2 : parts - 1 - attempt / 2)) % parts;
    std::uint64_t start = best + best_size / parts * std::max<std::uint64_t>(part, 1);
    start = start / alignment * alignment;
    return Window{start, std::min(wanted, best_size / parts / alignment * alignment)};
}

bool is_taken(Pid pid, const Window &window) {
    Fd maps(::open((os::process_folder(pid) + "/maps").c_str(), O_RDONLY | O_CLOEXEC));
    if (!maps) return false;
    ProcmapQuery query;
    query.flags = covering_or_next;
    query.address = window.start;
    if (::ioctl(maps.get(), procmap_query, &query) == 0) return query.start < window.start + window.size;
    if (errno == ENOENT) return false;
    auto all = os::read_maps(pid);
    return all && std::any_of(all->begin(), all->end(), [&](const os::Mapping &map) {
               return map.start.value < window.start + window.size && window.start < map.end.value;
           });
}

} // namespace ktrace::plugin
