#include "recovery/remains.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <sstream>
#include <utility>

#include "os/proc/procfs.h"
#include "os/self/processors.h"
#include "os/tracee/memory.h"

namespace ktrace::recovery {

using arch::Host;

namespace {

/// Of jumps, by the name that ktrace gives the memory (counters_name).
const std::string counters_path = std::string("/memfd:") + counters_name;

bool is_like_ours(const os::Mapping &mapping) {
    const bool is_code = mapping.executable && !mapping.writable && !mapping.shared && mapping.path.empty();
    return is_code || (mapping.shared && mapping.path == counters_path);
}

} // namespace

bool may_be_ours(const std::vector<os::Mapping> &maps, std::uint64_t start, std::uint64_t size) {
    if (size == 0 || start + size < start) return false;
    std::uint64_t covered = start;
    for (const os::Mapping &mapping : maps)
        if (is_like_ours(mapping) && mapping.contains(VirtAddr{covered}))
            covered = std::min(mapping.end.value, start + size);
    return covered == start + size;
}

namespace {

/// The process's mappings in a range, for a message.
std::string describe(const std::vector<os::Mapping> &maps, std::uint64_t start, std::uint64_t end) {
    std::ostringstream there;
    there << std::hex;
    for (const os::Mapping &mapping : maps)
        if (mapping.start.value < end && start < mapping.end.value)
            there << ' ' << mapping.start.value << '-' << mapping.end.value << (mapping.writable ? " writable" : "")
                  << (mapping.executable ? " executable" : "") << ' ' << mapping.path;
    return there.str().empty() ? " nothing" : there.str();
}

} // namespace

Status check_mapped(Pid pid, VirtAddr at, std::uint64_t size) {
    const auto maps = os::read_maps(pid);
    if (!maps || maps->empty()) return fail(Error::Kind::gone, "the process has ended");
    if (may_be_ours(*maps, at.value, size)) return {};
    return fail(Error::Kind::refused,
                "the process may not map memory: mmap(2) answers as if it had, and has not; there is:" +
                    describe(*maps, at.value, at.value + size),
                "a seccomp filter makes that up, perhaps; root may map in spite of it");
}

namespace {

// The process may have forged a page: these bound its numbers.
constexpr std::uint64_t most_entries = std::uint64_t{1} << 20; // of a process
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 28;   // of a table
constexpr std::uint32_t largest_entry = 4096;                  // bytes, of any later ABI
constexpr std::size_t most_pages = 64;                         // of a process

bool is_sound(const ktrace_recovery_header &header) {
    if (std::memcmp(header.magic, KTRACE_RECOVERY_MAGIC, sizeof header.magic) != 0) return false;
    bool sizes = header.abi >= 1 && header.header_size >= KTRACE_RECOVERY_HEADER_1 &&
                 header.entry_size >= sizeof(ktrace_recovery_entry) && header.entry_size <= largest_entry;
    return sizes && header.tables <= ktrace_recovery_most_tables && header.arenas <= ktrace_recovery_most_arenas;
}

bool is_sound(const std::vector<os::Mapping> &maps, const ktrace_recovery_header &header,
              const ktrace_recovery_table &table) {
    return table.capacity <= most_entries && std::has_single_bit(table.capacity) &&
           table.capacity * header.entry_size <= most_bytes &&
           may_be_ours(maps, table.address, table.capacity * header.entry_size);
}

/// Adds a table's entries, at most `most` in all.
void read_table(const os::ProcessMemory &memory, const ktrace_recovery_header &header,
                const ktrace_recovery_table &table, std::size_t most, std::vector<ktrace_recovery_entry> &into) {
    std::vector<std::byte> bytes(table.capacity * header.entry_size);
    std::size_t got = memory.read(VirtAddr{table.address}, bytes);
    for (std::size_t at = 0; at + header.entry_size <= got && into.size() < most; at += header.entry_size) {
        ktrace_recovery_entry entry;
        std::memcpy(&entry, bytes.data() + at, sizeof entry);
        if (entry.site != 0) into.push_back(entry);
    }
}

bool is_sound(const std::vector<os::Mapping> &maps, const ktrace_recovery_table &jumps) {
    return jumps.capacity <= most_entries &&
           may_be_ours(maps, jumps.address, jumps.capacity * sizeof(ktrace_recovery_detour));
}

void read_jumps(const os::ProcessMemory &memory, const ktrace_recovery_table &table,
                std::vector<ktrace_recovery_detour> &into) {
    std::vector<ktrace_recovery_detour> all(table.capacity);
    const std::size_t got = memory.read(VirtAddr{table.address}, std::as_writable_bytes(std::span(all)));
    all.resize(got / sizeof(ktrace_recovery_detour));
    for (const ktrace_recovery_detour &each : all)
        if (each.site != 0 && each.size <= sizeof each.ours && into.size() < most_entries) into.push_back(each);
}

/// Leaves out of a header what ktrace cannot have written.
void clean(const std::vector<os::Mapping> &maps, ktrace_recovery_header &header) {
    auto *tables = std::remove_if(header.table, header.table + header.tables,
                                  [&](const ktrace_recovery_table &table) { return !is_sound(maps, header, table); });
    header.tables = static_cast<std::uint32_t>(tables - header.table);
    auto *arenas = std::remove_if(header.arena, header.arena + header.arenas, [&](const ktrace_recovery_arena &arena) {
        return !may_be_ours(maps, arena.address, arena.size);
    });
    header.arenas = static_cast<std::uint32_t>(arenas - header.arena);
    if (header.header_size < KTRACE_RECOVERY_HEADER_2) header.retold = 0; // no field of that ABI
    if (header.header_size < KTRACE_RECOVERY_HEADER_3) header.filters = 0;
    if (header.header_size < KTRACE_RECOVERY_HEADER_4) header.masks = 0;
    if (header.header_size < sizeof header || header.jump_tables > ktrace_recovery_most_jump_tables)
        header.jump_tables = 0;
    auto *jumps = std::remove_if(header.jump_table, header.jump_table + header.jump_tables,
                                 [&](const ktrace_recovery_table &table) { return !is_sound(maps, table); });
    header.jump_tables = static_cast<std::uint64_t>(jumps - header.jump_table);
}

/// The number of mappings with a part of it: the kernel shows neighbours as one.
std::size_t count_mappings(const std::vector<os::Mapping> &maps, const Left &left) {
    const ktrace_recovery_header &header = left.header;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges{{left.page.value, header.size}};
    for (const auto &table : std::span(header.table, header.tables))
        ranges.emplace_back(table.address, table.capacity * header.entry_size);
    for (const auto &arena : std::span(header.arena, header.arenas)) ranges.emplace_back(arena.address, arena.size);
    return static_cast<std::size_t>(std::ranges::count_if(maps, [&](const os::Mapping &mapping) {
        return std::ranges::any_of(ranges, [&](const auto &range) {
            const auto [start, size] = range;
            return mapping.start.value < start + size && start < mapping.end.value;
        });
    }));
}

/// The content of a page, at most `most` entries.
std::optional<Left> read_page(const os::ProcessMemory &memory, const std::vector<os::Mapping> &maps, VirtAddr page,
                              std::size_t most) {
    Left left;
    left.page = page;
    if (memory.read(page, std::as_writable_bytes(std::span(&left.header, 1))) != sizeof left.header ||
        !is_sound(left.header) || !may_be_ours(maps, page.value, left.header.size))
        return std::nullopt;
    clean(maps, left.header);
    left.mappings = count_mappings(maps, left);
    for (std::uint32_t i = 0; i < left.header.tables; i++)
        read_table(memory, left.header, left.header.table[i], most, left.entries);
    for (std::uint64_t i = 0; i < left.header.jump_tables; i++)
        read_jumps(memory, left.header.jump_table[i], left.jumps);
    return left;
}

} // namespace

Result<std::vector<Left>> find_left(Pid pid) {
    auto memory = os::ProcessMemory::open(pid); // fails with the reason where its mappings may not be read
    if (!memory) return tl::make_unexpected(memory.error());
    auto maps = os::read_maps(pid);
    if (!maps) return fail(Error::Kind::gone, "process " + std::to_string(pid.value) + " has ended");
    std::vector<Left> found;
    std::size_t room = most_entries;
    for (const os::Mapping &mapping : *maps) {
        if (!mapping.executable || !is_like_ours(mapping)) continue;
        // The kernel shows neighbours as one mapping.
        for (VirtAddr at = mapping.start; at < mapping.end && found.size() < most_pages; at = at + ktrace_recovery_page)
            if (auto left = read_page(*memory, *maps, at, room)) {
                room -= left->entries.size();
                found.push_back(std::move(*left));
            }
    }
    return found;
}

std::optional<Left> read_left(Pid pid, VirtAddr page) {
    auto memory = os::ProcessMemory::open(pid);
    auto maps = os::read_maps(pid);
    if (!memory || !maps) return std::nullopt;
    return read_page(*memory, *maps, page, most_entries);
}

namespace {

bool put_back_at(const os::ProcessMemory &memory, VirtAddr at, std::span<const std::byte> original) {
    const auto trap = Host::trap_bytes();
    std::array<std::byte, sizeof ktrace_recovery_entry{}.original> now{};
    if (original.size() != trap.size() || memory.read(at, std::span(now).first(trap.size())) != trap.size())
        return false;
    return std::equal(trap.begin(), trap.end(), now.begin()) && memory.write(at, original);
}

} // namespace

namespace {

using JumpBytes = std::array<std::byte, sizeof ktrace_recovery_detour{}.ours>;

/// The bytes that are at a jump's site now; nothing: they cannot be read.
std::optional<JumpBytes> read_jump(const os::ProcessMemory &memory, const ktrace_recovery_detour &jump) {
    JumpBytes now{};
    if (memory.read(VirtAddr{jump.site}, std::span(now).first(jump.size)) != jump.size) return std::nullopt;
    return now;
}

bool is_of_tail(const ktrace_recovery_detour &jump, std::size_t at) { return (jump.tail >> at & 1) != 0; }

/// Of a jump that is whole.
bool is_whole(const ktrace_recovery_detour &jump, const JumpBytes &now) {
    for (std::size_t i = 0; i < jump.size; i++)
        if ((i < Host::trap_bytes().size() || is_of_tail(jump, i)) && now[i] != std::byte{jump.ours[i]}) return false;
    return jump.size != 0;
}

/// The jumps become traps, as engine/space/jumps.h says: the threads run meanwhile, and the handler serves them.
void lift(const os::ProcessMemory &memory, const std::vector<ktrace_recovery_detour> &jumps) {
    if (jumps.empty()) return;
    for (const ktrace_recovery_detour &jump : jumps)
        if (auto now = read_jump(memory, jump); now && is_whole(jump, *now))
            memory.write(VirtAddr{jump.site}, Host::trap_bytes());
    os::synchronize_processors();
    for (const ktrace_recovery_detour &jump : jumps) {
        auto now = read_jump(memory, jump);
        for (std::size_t i = 1; now && i < jump.size; i++)
            if (is_of_tail(jump, i) && (*now)[i] == std::byte{jump.ours[i]})
                memory.write(VirtAddr{jump.site + i}, std::as_bytes(std::span(&jump.original[i], 1)));
    }
    os::synchronize_processors();
}

} // namespace

std::size_t put_back(Pid pid, const Left &left) {
    auto memory = os::ProcessMemory::open(pid);
    if (!memory) return 0;
    lift(*memory, left.jumps);
    std::size_t count = 0;
    for (const ktrace_recovery_entry &entry : left.entries) {
        auto original = std::as_bytes(std::span(entry.original));
        std::size_t size = std::min<std::size_t>(entry.trap_size, original.size());
        if (put_back_at(*memory, VirtAddr{entry.site}, original.first(size))) count++;
    }
    return count;
}

bool put_back(const PagelessTrap &trap) {
    auto memory = os::ProcessMemory::open(trap.pid);
    return memory && put_back_at(*memory, trap.at, std::span(trap.original).first(trap.size));
}

} // namespace ktrace::recovery
