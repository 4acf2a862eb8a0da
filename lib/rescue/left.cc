#include "rescue/left.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "os/memory.h"
#include "os/procfs.h"

namespace ktrace::rescue {

using arch::Host;

namespace {

constexpr std::uint64_t most_entries = std::uint64_t{1} << 20; // of a table
constexpr std::uint32_t largest_entry = 4096;                  // bytes, of any later ABI

bool is_sound(const ktrace_rescue_header &header) {
    if (std::memcmp(header.magic, KTRACE_RESCUE_MAGIC, sizeof header.magic) != 0) return false;
    bool sizes = header.abi >= 1 && header.header_size >= sizeof header &&
                 header.entry_size >= sizeof(ktrace_rescue_entry) && header.entry_size <= largest_entry;
    return sizes && header.tables <= ktrace_rescue_most_tables && header.arenas <= ktrace_rescue_most_arenas;
}

void read_table(const os::ProcessMemory &memory, const ktrace_rescue_header &header, const ktrace_rescue_table &table,
                std::vector<ktrace_rescue_entry> &into) {
    if (table.capacity > most_entries || !std::has_single_bit(table.capacity)) return;
    std::vector<std::byte> bytes(table.capacity * header.entry_size);
    std::size_t got = memory.read(VirtAddr{table.address}, bytes);
    for (std::size_t at = 0; at + header.entry_size <= got; at += header.entry_size) {
        ktrace_rescue_entry entry;
        std::memcpy(&entry, bytes.data() + at, sizeof entry);
        if (entry.site != 0) into.push_back(entry);
    }
}

std::optional<Left> read_page(const os::ProcessMemory &memory, VirtAddr page) {
    Left left;
    left.page = page;
    if (memory.read(page, std::as_writable_bytes(std::span(&left.header, 1))) != sizeof left.header ||
        !is_sound(left.header))
        return std::nullopt;
    for (std::uint32_t i = 0; i < left.header.tables; i++)
        read_table(memory, left.header, left.header.table[i], left.entries);
    return left;
}

} // namespace

Result<std::vector<Left>> find_left(Pid pid) {
    auto maps = os::read_maps(pid);
    if (!maps) return fail(Error::Kind::gone, "process " + std::to_string(pid.value) + " has ended");
    auto memory = os::ProcessMemory::open(pid);
    if (!memory) return tl::make_unexpected(memory.error());
    std::vector<Left> found;
    for (const os::Mapping &mapping : *maps) {
        if (!mapping.executable || mapping.writable || mapping.shared || !mapping.path.empty()) continue;
        // The kernel shows neighbours as one mapping.
        for (VirtAddr at = mapping.start; at < mapping.end; at = at + ktrace_rescue_page)
            if (auto left = read_page(*memory, at)) found.push_back(std::move(*left));
    }
    return found;
}

std::optional<Left> read_left(Pid pid, VirtAddr page) {
    auto memory = os::ProcessMemory::open(pid);
    if (!memory) return std::nullopt;
    return read_page(*memory, page);
}

namespace {

bool put_back_at(const os::ProcessMemory &memory, VirtAddr at, std::span<const std::byte> original) {
    const auto trap = Host::trap_bytes();
    std::array<std::byte, sizeof ktrace_rescue_entry{}.original> now{};
    if (original.size() != trap.size() || memory.read(at, std::span(now).first(trap.size())) != trap.size())
        return false;
    return std::equal(trap.begin(), trap.end(), now.begin()) && memory.write(at, original);
}

} // namespace

std::size_t put_back(Pid pid, const Left &left) {
    auto memory = os::ProcessMemory::open(pid);
    if (!memory) return 0;
    std::size_t count = 0;
    for (const ktrace_rescue_entry &entry : left.entries) {
        auto original = std::as_bytes(std::span(entry.original));
        std::size_t size = std::min<std::size_t>(entry.trap_size, original.size());
        if (put_back_at(*memory, VirtAddr{entry.site}, original.first(size))) count++;
    }
    return count;
}

bool put_back(const Untold &trap) {
    auto memory = os::ProcessMemory::open(trap.pid);
    return memory && put_back_at(*memory, trap.at, std::span(trap.original).first(trap.size));
}

} // namespace ktrace::rescue
