#include "recovery/page.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include <csignal>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/way_back.h"
#include "base/check.h"
#include "base/signals.h"
#include "os/proc/procfs.h"
#include "recovery/injected_call.h"
#include "recovery/remains.h"

namespace ktrace::recovery {

using arch::Host;
using arch::HostNative;

namespace {

constexpr std::size_t least_capacity = 1024; // entries of a table
constexpr std::size_t kernel_mask_size = 8;  // sigset_t of the kernel, bytes
// From the page's start.
constexpr std::uint64_t masks_at = ktrace_recovery_page + arch::recovery_frame_size;
constexpr std::uint64_t table_at = masks_at + ktrace_recovery_most_masks * sizeof(ktrace_recovery_mask);
constexpr std::uint64_t restorer_flag = 0x04000000; // SA_RESTORER, which libc's headers do not have

std::size_t capacity_for(std::size_t entries) { return std::bit_ceil(std::max(least_capacity, entries * 2)); }

template <class T> std::span<const std::byte> bytes_of(const T &value) { return std::as_bytes(std::span(&value, 1)); }

/// A system call that returns an address or a number, by way of a page that is there. Errors: refused, gone.
Result<std::uint64_t> call(const Hands &hands, const Page &by, const char *what, std::uint64_t number,
                           std::initializer_list<std::uint64_t> arguments, os::Through through = os::Through::steps) {
    auto answer = call_with_way_back(hands.waiter, hands.stopped, hands.syscall_instruction, by, hands.space, number,
                                     arguments, through);
    if (!answer) return tl::make_unexpected(answer.error());
    if (*answer < 0 && *answer > -4096)
        return fail(Error::Kind::refused,
                    std::string("the process may not ") + what + ": " + std::strerror(static_cast<int>(-*answer)),
                    *answer == -ENOMEM ? "it has as much as RLIMIT_AS, vm.max_map_count or its cgroup allows" : "");
    return static_cast<std::uint64_t>(*answer);
}

Result<VirtAddr> map(const Hands &hands, const Page &by, std::uint64_t size) {
    auto at = call(hands, by, "map memory", SYS_mmap,
                   {0, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, ~std::uint64_t{0}, 0});
    if (!at) return tl::make_unexpected(at.error());
    if (auto is_there = check_mapped(Pid{hands.stopped.tid().value}, VirtAddr{*at}, size); !is_there)
        return tl::make_unexpected(is_there.error());
    return VirtAddr{*at};
}

/// Room below the task's stack, where a signal's frame may come at any time. The bytes there are put back all the same.
VirtAddr below_stack(const Hands &hands) {
    constexpr std::int64_t below = 1024; // beyond every psABI's red zone
    return VirtAddr{(hands.stopped.sp() - below).value & ~std::uint64_t{15}};
}

/// The action for SIGTRAP of the stopped task's process. The kernel writes it below the task's stack.
Result<ktrace_recovery_action> read_action(const Hands &hands, const Page &by) {
    const VirtAddr at = below_stack(hands);
    ktrace_recovery_action was{}, action{};
    if (hands.space.read(at, std::as_writable_bytes(std::span(&was, 1))) != sizeof was)
        return fail(Error::Kind::refused, "the stack cannot be read");
    auto asked = call(hands, by, "read its signal actions", SYS_rt_sigaction, {SIGTRAP, 0, at.value, kernel_mask_size});
    if (!asked) return tl::make_unexpected(asked.error());
    bool read = hands.space.read(at, std::as_writable_bytes(std::span(&action, 1))) == sizeof action;
    hands.space.write_own(at, bytes_of(was));
    if (!read) return fail(Error::Kind::gone, "the process has ended");
    return action;
}

/// The same in the middle of a hit, while other threads run: the memory below a small stack may be another thread's.
/// The kernel writes into memory that is mapped for that.
Result<ktrace_recovery_action> read_action_apart(const Hands &hands, const Page &by) {
    auto at = call(
        hands, by, "map memory", SYS_mmap,
        {0, sizeof(ktrace_recovery_action), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, ~std::uint64_t{0}, 0});
    if (!at) return tl::make_unexpected(at.error());
    constexpr ktrace_recovery_action nothing{};
    const auto fresh = hands.space.read_value<ktrace_recovery_action>(VirtAddr{*at});
    if (!fresh || std::memcmp(&*fresh, &nothing, sizeof nothing) != 0) // this is no fresh memory
        return fail(Error::Kind::refused, "mmap(2) answers as if it had mapped memory, and has not");
    auto asked = call(hands, by, "read its signal actions", SYS_rt_sigaction, {SIGTRAP, 0, *at, kernel_mask_size});
    const auto action = hands.space.read_value<ktrace_recovery_action>(VirtAddr{*at});
    auto unmapped = call(hands, by, "unmap memory", SYS_munmap, {*at, sizeof(ktrace_recovery_action)});
    if (!asked) return tl::make_unexpected(asked.error());
    if (!unmapped) return tl::make_unexpected(unmapped.error());
    return action ? Result<ktrace_recovery_action>(*action) : fail(Error::Kind::gone, "the process has ended");
}

/// The step that ends a system call made in the usual way would undo an action that ignores SIGTRAP.
Status set_action(const Hands &hands, const Page &by, VirtAddr action, os::Through through = os::Through::steps) {
    auto set = call(hands, by, "change its signal actions", SYS_rt_sigaction,
                    {SIGTRAP, action.value, 0, kernel_mask_size}, through);
    if (!set) return tl::make_unexpected(set.error());
    return {};
}

/// The same with an action that is written below the task's stack for that.
Status set_action_on_stack(const Hands &hands, const Page &by, const ktrace_recovery_action &action,
                           os::Through through) {
    const VirtAddr at = below_stack(hands);
    ktrace_recovery_action was{};
    if (hands.space.read(at, std::as_writable_bytes(std::span(&was, 1))) != sizeof was ||
        !hands.space.write_own(at, bytes_of(action)))
        return fail(Error::Kind::refused, "the stack cannot be written");
    auto set = set_action(hands, by, at, through);
    hands.space.write_own(at, bytes_of(was));
    return set;
}

/// Read it before any system call is made in the process: see set_action.
bool ignores_sigtrap(const os::Stopped &stopped) {
    auto status = os::read_status(stopped.tid().value);
    return status && (status->ignored & signal_bit(SIGTRAP)) != 0;
}

constexpr std::uint64_t handler_default = 0, handler_ignore = 1;

bool is_handler(const ktrace_recovery_action &action) {
    return action.handler != handler_default && action.handler != handler_ignore;
}

/// While the handler runs, all signals but the synchronous ones are blocked. It runs on the alternate stack, where
/// there is one (Go's stacks have no room), and may be entered again within itself.
ktrace_recovery_action our_action(VirtAddr code) {
    const auto recovery = HostNative::recovery_code();
    ktrace_recovery_action action{};
    action.handler = code.value + recovery.handler;
    action.restorer = code.value + recovery.restorer;
    action.flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | restorer_flag;
    action.mask = ~synchronous_signals;
    return action;
}

} // namespace

bool Page::contains(VirtAddr pc) const {
    return mapped() && !lost_ && address_ <= pc && pc < address_ + static_cast<std::int64_t>(ktrace_recovery_page);
}

bool Page::is_there(target::AddressSpace &space) const {
    const auto found = mapped() ? space.read_value<ktrace_recovery_header>(address_) : std::nullopt;
    return found && std::memcmp(found->magic, header_.magic, sizeof header_.magic) == 0 && found->size == header_.size;
}

bool Page::forget_lost(const std::vector<os::Mapping> &maps, target::AddressSpace &space) {
    if (!mapped()) return false;
    lost_ = !is_there(space) || !may_be_ours(maps, address_.value, header_.size);
    const auto tables = std::erase_if(tables_, [&](const Table &table) {
        return table.mapping_size != 0 && !may_be_ours(maps, table.address.value, table.mapping_size);
    });
    return lost_ || tables != 0;
}

std::size_t Page::room() const { return tables_.empty() ? 0 : tables_.back().free(); }

bool Page::write_header(target::AddressSpace &space) const {
    // The counts come last: the things counted are there by then.
    constexpr std::size_t counts = offsetof(ktrace_recovery_header, tables),
                          behind = offsetof(ktrace_recovery_header, table);
    // An older ktrace's header is smaller.
    auto all = bytes_of(header_).first(std::min<std::size_t>(sizeof header_, header_.header_size));
    return space.write_own(address_, all.first(counts)) &&
           space.write_own(address_ + static_cast<std::int64_t>(behind), all.subspan(behind)) &&
           space.write_own(address_ + static_cast<std::int64_t>(counts), all.subspan(counts, behind - counts));
}

Status Page::create(const Hands &hands, std::size_t entries) {
    const auto code = HostNative::recovery_code().bytes;
    KT_CHECK(code_at + code.size() <= ktrace_recovery_page);
    const bool ignored = ignores_sigtrap(hands.stopped);
    const std::size_t capacity = capacity_for(entries);
    const std::uint64_t size = table_at + capacity * sizeof(ktrace_recovery_entry);
    auto at = map(hands, *this, size);
    if (!at) return tl::make_unexpected(at.error());
    address_ = *at;
    auto status = os::read_status(hands.stopped.tid().value);
    header_ = {};
    header_.filters = status ? static_cast<std::uint64_t>(status->seccomp_filters) + 1 : 0;
    std::memcpy(header_.magic, KTRACE_RECOVERY_MAGIC, sizeof header_.magic);
    header_.abi = ktrace_recovery_abi;
    header_.header_size = sizeof header_;
    header_.entry_size = sizeof(ktrace_recovery_entry);
    header_.size = size;
    header_.tracer = static_cast<std::uint64_t>(::getpid());
    header_.masks = address_.value + masks_at;
    header_.tables = 1;
    header_.table[0] = {address_.value + table_at, capacity};
    tables_.push_back({address_ + static_cast<std::int64_t>(table_at), 0, {}, 0});
    tables_.back().entries.resize(capacity);
    VirtAddr code_address = address_ + static_cast<std::int64_t>(code_at);
    if (!hands.space.write_own(code_address, code) || !write_header(hands.space)) {
        tables_.clear();
        static_cast<void>(call(hands, Page(), "unmap memory", SYS_munmap, {at->value, size}));
        address_ = VirtAddr{};
        return fail(Error::Kind::refused, "the memory that it has mapped for ktrace cannot be written");
    }
    return take_action(hands, ignored);
}

/// Installs the handler where the process has none.
Status Page::take_action(const Hands &hands, bool ignored) {
    auto now = read_action(hands, *this);
    if (!now) return now.error().kind == Error::Kind::gone ? Status(tl::make_unexpected(now.error())) : Status();
    header_.before = *now;
    if (ignored) header_.before.handler = handler_ignore;
    first_ = header_.before;
    if (HostNative::recovery_code().bytes.empty()) {
        write_header(hands.space);
        return {};
    }
    header_.ours = our_action(address_ + static_cast<std::int64_t>(code_at));
    if (is_handler(*now)) {
        write_header(hands.space);
        return {};
    }
    header_.installed = ktrace_recovery_ours;
    changes_++;
    if (!write_header(hands.space)) return fail(Error::Kind::gone, "the process has ended");
    auto set = set_action(hands, *this, action_at(offsetof(ktrace_recovery_header, ours)));
    if (set || set.error().kind == Error::Kind::gone) return set;
    header_.installed = ktrace_recovery_not_ours; // a seccomp filter, perhaps: there is still the guardian
    header_.ours = {};
    write_header(hands.space);
    return {};
}

Status Page::grow(const Hands &hands, std::size_t entries) {
    if (header_.tables == ktrace_recovery_most_tables)
        return fail(Error::Kind::refused, "there are too many probes for one process");
    const std::size_t capacity = std::max(capacity_for(entries), tables_.back().entries.size() * 2);
    const std::uint64_t size = capacity * sizeof(ktrace_recovery_entry);
    auto at = map(hands, *this, size);
    if (!at) return tl::make_unexpected(at.error());
    tables_.push_back({*at, size, {}, 0});
    tables_.back().entries.resize(capacity);
    header_.table[header_.tables++] = {at->value, capacity};
    if (!write_header(hands.space)) return fail(Error::Kind::gone, "the process has ended");
    return {};
}

Status Page::ensure(const Hands &hands, std::size_t entries) {
    if (!mapped()) return create(hands, entries);
    return room() >= entries ? Status() : grow(hands, entries);
}

bool Page::add(target::AddressSpace &space, const ktrace_recovery_entry &entry) {
    auto place = [&](Table &table) {
        std::size_t capacity = table.entries.size(), at = ktrace_recovery_hash(entry.site, capacity);
        while (table.entries[at].site != 0 && table.entries[at].site != entry.site) at = (at + 1) & (capacity - 1);
        return at;
    };
    Table *table = nullptr;
    std::size_t at = 0;
    for (Table &each : tables_) {
        if (each.entries.empty()) continue; // adopted: its content is not known
        at = place(each);
        table = &each;
        if (each.entries[at].site == entry.site) break;
    }
    if (!table) return false;
    bool known = table->entries[at].site == entry.site;
    if (known && std::memcmp(&table->entries[at], &entry, sizeof entry) == 0) return true;
    if (!known && table->free() == 0) return false;
    if (!known) table->used++;
    table->entries[at] = entry;
    VirtAddr to = table->address + static_cast<std::int64_t>(at * sizeof entry);
    constexpr std::size_t site_size = sizeof entry.site;
    static_assert(offsetof(ktrace_recovery_entry, site) == 0);
    return space.write_own(to + static_cast<std::int64_t>(site_size), bytes_of(entry).subspan(site_size)) &&
           space.write_own(to, bytes_of(entry.site));
}

void Page::add_arena(target::AddressSpace &space, VirtAddr start, std::uint64_t size) {
    if (!mapped() || header_.arenas == ktrace_recovery_most_arenas) return;
    header_.arena[header_.arenas++] = {start.value, size};
    write_header(space);
}

bool Page::add_jump_table(target::AddressSpace &space, VirtAddr start, std::uint64_t capacity) {
    if (!mapped() || lost_ || header_.jump_tables == ktrace_recovery_most_jump_tables) return false;
    header_.jump_table[header_.jump_tables] = {start.value, capacity};
    if (!write_header(space)) return false;
    header_.jump_tables++;
    return write_header(space);
}

void Page::retell(target::AddressSpace &space, VirtAddr sp) {
    if (!installed() || header_.header_size < KTRACE_RECOVERY_HEADER_2 || !is_there(space)) return;
    if (was_retold_) return;
    header_.retold = sp.value;
    space.write_own(action_at(offsetof(ktrace_recovery_header, retold)), bytes_of(header_.retold));
}

void Page::keep_mask(target::AddressSpace &space, std::uint64_t tid, std::uint64_t mask) {
    if (!installed() || lost_ || header_.header_size < KTRACE_RECOVERY_HEADER_4 || header_.masks == 0) return;
    const std::size_t at = tid % ktrace_recovery_most_masks;
    ktrace_recovery_mask &kept = masks_[at];
    if ((kept.tid == tid && kept.mask == mask) || !is_there(space)) return;
    kept = {tid, mask};
    space.write_own(VirtAddr{header_.masks + at * sizeof kept}, bytes_of(kept));
}

bool Page::shows_resets() const {
    return installed() || (is_handler(header_.before) && (header_.before.flags & SA_RESETHAND) == 0);
}

os::Through Page::through_without_trap() const { return ignored_before() ? os::Through::stops : os::Through::steps; }

Page Page::adopt(VirtAddr address, const ktrace_recovery_header &header) {
    Page page;
    page.address_ = address;
    page.header_ = header;
    page.was_retold_ = header.retold != 0;
    const std::uint64_t end = address.value + header.size;
    for (std::uint32_t i = 0; i < header.tables; i++) {
        const ktrace_recovery_table &table = header.table[i];
        bool within = address.value <= table.address && table.address < end;
        page.tables_.push_back({VirtAddr{table.address}, within ? 0 : table.capacity * header.entry_size, {}, 0});
    }
    return page;
}

bool Page::is_of_this_build(target::AddressSpace &space, VirtAddr address, const ktrace_recovery_header &header) {
    const auto code = HostNative::recovery_code().bytes;
    std::vector<std::byte> found(code.size());
    return header.abi == ktrace_recovery_abi && header.header_size == sizeof header &&
           header.entry_size == sizeof(ktrace_recovery_entry) && header.tables != 0 &&
           header.table[0].address == address.value + table_at &&
           space.read(address + static_cast<std::int64_t>(code_at), found) == found.size() &&
           std::equal(found.begin(), found.end(), code.begin());
}

void Page::note_action(target::AddressSpace &space, const ktrace_recovery_action &set) {
    if (!mapped() || lost_) return;
    changes_++;
    if (header_.ours.handler != 0 && set.handler == header_.ours.handler) { // known from sigaction(2)
        header_.before = first_;
        header_.installed = ktrace_recovery_ours;
    } else {
        const bool was_ours = header_.installed != ktrace_recovery_not_ours;
        header_.before = set;
        if (is_handler(set))
            header_.installed = was_ours ? ktrace_recovery_ours_was : ktrace_recovery_not_ours;
        else if (header_.ours.handler != 0)
            header_.installed = ktrace_recovery_ours;
    }
    write_header(space);
}

Status Page::renew_action(const Hands &hands) {
    if (!mapped() || !has_action()) return {};
    changes_++;
    bool ours = installed();
    return set_action(
        hands, *this,
        action_at(ours ? offsetof(ktrace_recovery_header, ours) : offsetof(ktrace_recovery_header, before)));
}

Result<bool> Page::was_reset(const Hands &hands) {
    auto now = read_action_apart(hands, *this);
    if (!now) return tl::make_unexpected(now.error());
    const ktrace_recovery_action &was = installed() ? header_.ours : header_.before;
    if (now->handler == was.handler) return false; // it is there again
    if (now->handler == handler_default && now->flags == was.flags && now->restorer == was.restorer) return true;
    note_action(hands.space, *now);
    return false;
}

Result<bool> Page::restore_action(const Hands &hands) const {
    if (!mapped() || header_.installed == ktrace_recovery_not_ours) return true;
    auto now = read_action(hands, *this);
    if (!now) return tl::make_unexpected(now.error());
    if (now->handler == header_.before.handler) return installed(); // by a ktrace that was killed then, say
    if (now->handler != header_.ours.handler && now->handler != handler_default) return false;
    // The default may be the kernel's doing, after a trap in a task that blocks SIGTRAP.
    if (auto set = put_back_action(hands); !set) return tl::make_unexpected(set.error());
    return installed();
}

Status Page::put_back_action(const Hands &hands) const {
    if (!lost_)
        return set_action(hands, *this, action_at(offsetof(ktrace_recovery_header, before)), through_without_trap());
    return set_action_on_stack(hands, *this, header_.before, through_without_trap());
}

Status Page::ignore_after_exec(const Hands &hands) const {
    if (!stood_for_ignoring()) return {};
    ktrace_recovery_action ignored{};
    ignored.handler = handler_ignore;
    return set_action_on_stack(hands, Page(), ignored, os::Through::stops);
}

Status Page::unmap(const Hands &hands) {
    if (!mapped()) return {};
    const auto through = through_without_trap();
    for (const Table &table : tables_) {
        if (table.mapping_size == 0) continue;
        auto done = call(hands, *this, "unmap memory", SYS_munmap, {table.address.value, table.mapping_size}, through);
        if (!done) return tl::make_unexpected(done.error());
    }
    if (!lost_) {
        auto done = call(hands, Page(), "unmap memory", SYS_munmap, {address_.value, header_.size}, through);
        if (!done) return tl::make_unexpected(done.error());
    }
    *this = Page();
    return {};
}

std::vector<std::pair<VirtAddr, std::uint64_t>> Page::mappings() const {
    std::vector<std::pair<VirtAddr, std::uint64_t>> all;
    if (mapped()) all.emplace_back(address_, header_.size);
    for (const Table &table : tables_)
        if (table.mapping_size != 0) all.emplace_back(table.address, table.mapping_size);
    return all;
}

bool Page::is_wiped(const std::vector<os::Mapping> &maps, target::AddressSpace &space) const {
    if (!mapped() || !may_be_ours(maps, address_.value, header_.size)) return false;
    const auto found = space.read_value<ktrace_recovery_header>(address_);
    return found && std::ranges::all_of(bytes_of(*found), [](std::byte byte) { return byte == std::byte{0}; });
}

bool Page::write_all(target::AddressSpace &space) const {
    if (!mapped()) return true;
    if (!space.write_own(address_ + static_cast<std::int64_t>(code_at), HostNative::recovery_code().bytes))
        return false;
    if (!space.write_own(VirtAddr{header_.masks}, std::as_bytes(std::span(masks_)))) return false;
    for (const Table &table : tables_)
        if (!space.write_own(table.address, std::as_bytes(std::span(table.entries)))) return false;
    return write_header(space);
}

} // namespace ktrace::recovery
