#include "engine/space/agent_threads.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>

#include "arch/in_process.h"
#include "os/self/allocate.h"

namespace ktrace::engine {

namespace {

/// Of a key whose thread pointer was forgotten: no thread has this one, and searches go on behind it.
constexpr std::uint64_t forgotten = 1;

constexpr std::uint64_t no_room = ~std::uint64_t{0};

/// The agent reads it while it is written.
template <class T> void store(T &word, T value) { std::atomic_ref(word).store(value, std::memory_order_release); }

/// Writes the one that is not in use, which is so from now on.
template <class T> void show(agent::Turn &turn, T (&both)[2], const T &now) {
    const agent::Turn next = turn + 1;
    both[next & 1] = now;
    store(turn, next);
}

} // namespace

const std::size_t AgentThreads::size = sizeof(agent::Threads);
const std::size_t AgentThreads::first_part = offsetof(agent::Threads, thread);

Result<std::shared_ptr<AgentThreads>> AgentThreads::map(Fd file, VirtAddr address) {
    void *at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (at == MAP_FAILED)
        return fail(Error::Kind::refused, std::string("shared memory cannot be mapped: ") + std::strerror(errno));
    return std::shared_ptr<AgentThreads>(new AgentThreads(std::move(file), address, static_cast<agent::Threads *>(at)));
}

AgentThreads::AgentThreads(Fd file, VirtAddr address, agent::Threads *shared)
    : file_(std::move(file)), address_(address), shared_(shared), used_(agent::most_threads), returns_(agent::returns),
      in_ktrace_(agent::places), longest_ns_(agent::longest_silence_ns) {}

AgentThreads::~AgentThreads() { ::munmap(shared_, size); }

VirtAddr AgentThreads::address_of(const void *shared) const {
    return address_ + (static_cast<const std::byte *>(shared) - reinterpret_cast<const std::byte *>(shared_));
}

AgentThreads::Place *AgentThreads::of(Tid tid) {
    auto found = places_.find(tid.value);
    return found == places_.end() ? nullptr : &found->second;
}

bool AgentThreads::set_key(std::uint64_t thread_pointer, const agent::Thread &thread) {
    std::size_t at = agent::key_of(thread_pointer);
    for (std::size_t i = 0; i < agent::longest_search; i++, at = (at + 1) % agent::keys) {
        agent::Key &key = shared_->key[at];
        if (key.thread_pointer > forgotten) continue;
        store(key.thread, address_of(static_cast<const void *>(&thread)).value);
        store(key.thread_pointer, thread_pointer);
        return true;
    }
    return false;
}

void AgentThreads::clear_key(std::uint64_t thread_pointer) {
    std::size_t at = agent::key_of(thread_pointer);
    for (std::size_t i = 0; i < agent::longest_search; i++, at = (at + 1) % agent::keys)
        if (shared_->key[at].thread_pointer == thread_pointer) store(shared_->key[at].thread_pointer, forgotten);
}

bool AgentThreads::give(Pid pid, Tid tid, std::uint64_t thread_pointer, VirtAddr stack_low, VirtAddr stack_high) {
    if (thread_pointer <= forgotten || contested_.contains(thread_pointer) || of(tid)) return false;
    const auto is_known = [&](const auto &each) { return each.second.thread_pointer == thread_pointer; };
    if (std::ranges::any_of(places_, is_known)) return false;
    const auto free = std::ranges::find(used_, false);
    if (free == used_.end()) return false;
    agent::Thread &thread = shared_->thread[free - used_.begin()];
    const auto offset = reinterpret_cast<const std::byte *>(&thread) - reinterpret_cast<const std::byte *>(shared_);
    if (!os::allocate(file_, static_cast<std::size_t>(offset), sizeof thread)) return false;
    thread.head = agent::first_tail;
    thread.state = agent::state_of(agent::first_tail, 0);
    thread.is_busy = thread.has_floats = thread.times = thread.outer = thread.rang_at = thread.call[0].inner_after = 0;
    std::ranges::fill(thread.row_at, 0);
    std::ranges::fill(thread.addition, agent::Addition{});
    thread.enclosed = ~std::uint64_t{0}; // until it is known
    thread.stack_low = stack_low.value;
    thread.stack_high = stack_high.value;
    thread.pid = pid.value;
    thread.tid = tid.value;
    if (!set_key(thread_pointer, thread)) return false;
    *free = true;
    places_[tid.value] = {pid, tid, thread_pointer, agent::first_tail, thread.cost, thread.waited, 0, &thread, {},
                          {},  0};
    return true;
}

void AgentThreads::doubt_enclosures() {
    for (auto &[tid, place] : places_) store(place.thread->enclosed, ~std::uint64_t{0});
}

void AgentThreads::claim(Tid tid, std::uint64_t thread_pointer) {
    for (auto &[other, place] : places_) {
        if (other == tid.value || place.thread_pointer != thread_pointer) continue;
        clear_key(thread_pointer);
        contested_.emplace(thread_pointer, other);
        place.thread_pointer = 0;
    }
}

void AgentThreads::take_back(Tid tid) {
    std::erase_if(contested_, [&](const auto &each) { return each.second == tid.value; });
    auto found = places_.find(tid.value);
    if (found == places_.end()) return;
    if (found->second.thread_pointer != 0) clear_key(found->second.thread_pointer);
    used_[static_cast<std::size_t>(found->second.thread - shared_->thread)] = false;
    for (const auto &[number, row] : found->second.rows)
        if (row.row)
            free_rows_[agent::size_of_row(row.as.kind)].push_back(
                static_cast<std::uint64_t>(reinterpret_cast<const std::byte *>(row.row) - shared_->rows));
    places_.erase(found);
}

std::vector<agent::Call> AgentThreads::calls_of(const Place &place) const {
    const std::uint64_t count = agent::calls_of(place.thread->state);
    if (count == 0 || count > agent::most_calls) return {};
    return {place.thread->call, place.thread->call + count + 1};
}

void AgentThreads::keep_calls(Place &place, std::size_t count) {
    const std::uint64_t state = place.thread->state;
    place.thread->state = agent::state_of(agent::tail_of(state), count, agent::addition_of(state));
}

/// Where in agent::Threads::rows; no_room.
std::uint64_t AgentThreads::room_for_row(std::size_t bytes) {
    if (auto &free = free_rows_[bytes]; !free.empty()) {
        const std::uint64_t at = free.back();
        free.pop_back();
        return at;
    }
    const std::uint64_t at = rows_used_;
    if (at + bytes > agent::rows_size) return no_room;
    if (!os::allocate(file_, offsetof(agent::Threads, rows) + at, bytes)) return no_room;
    rows_used_ += bytes;
    return at;
}

agent::Row *AgentThreads::add_row(Place &place, std::uint32_t number, const agent::Row &as) {
    const std::size_t bytes = agent::size_of_row(as.kind);
    if (place.rows_size + bytes > agent::rows_of_a_thread) return nullptr;
    std::uint64_t *free = nullptr;
    for (std::size_t i = 0; i < agent::longest_row_search && !free; i++)
        if (std::uint64_t &at = place.thread->row_at[(number + i) % agent::row_keys]; at == 0) free = &at;
    const std::uint64_t at = free ? room_for_row(bytes) : no_room;
    if (at == no_room) return nullptr;
    std::memset(shared_->rows + at, 0, bytes);
    auto *const row = new (shared_->rows + at) agent::Row(as);
    place.rows_size += bytes;
    store(*free, agent::row_at(number, offsetof(agent::Threads, rows) + at));
    return row;
}

void AgentThreads::know_return(VirtAddr at) {
    std::size_t index = agent::hash(at.value) % agent::returns, free = agent::returns;
    for (std::size_t i = 0; i < agent::longest_search; i++, index = (index + 1) % agent::returns) {
        if (returns_[index] == at.value) return;
        if (returns_[index] <= forgotten && free == agent::returns) free = index;
        if (returns_[index] == 0) break;
    }
    if (free == agent::returns) return; // each call that returns to there is ktrace's
    returns_[free] = at.value;
    store(shared_->return_to[free], at.value);
}

void AgentThreads::forget_return(VirtAddr at) {
    std::size_t index = agent::hash(at.value) % agent::returns;
    for (std::size_t i = 0; i < agent::longest_search; i++, index = (index + 1) % agent::returns) {
        if (returns_[index] != at.value) continue;
        returns_[index] = forgotten;
        store(shared_->return_to[index], forgotten);
    }
}

void AgentThreads::forget_all_calls() { store(shared_->generation, ++generation_); }

void AgentThreads::change_place(VirtAddr place, std::uint32_t by) {
    const std::size_t index = agent::place_of(place.value);
    in_ktrace_[index] += by;
    store(shared_->in_ktrace[index], in_ktrace_[index]);
}

bool AgentThreads::is_of_now(const agent::Call &call) const { return call.generation == generation_; }

void AgentThreads::set_clock(const agent::ClockPoint &point, std::uint64_t ns_per_tick) {
    shared_->ns_per_tick = ns_per_tick;
    show(shared_->clock_now, shared_->clock, point);
}

void AgentThreads::show_alive() {
    shared_->longest_ns = longest_ns_;
    store(shared_->alive_at, arch::processor_time());
}

void AgentThreads::set_costs(std::uint64_t per_call, std::uint64_t per_hit) {
    shared_->per_call = per_call;
    shared_->per_hit = per_hit;
}

void AgentThreads::set_errors(std::uint64_t of_call, std::uint64_t of_hit, std::uint64_t of_stop) {
    shared_->error_of_call = of_call;
    shared_->error_of_hit = of_hit;
    shared_->error_of_stop = of_stop;
}

void AgentThreads::show_readable(std::span<const agent::Range> ranges, std::uint64_t now_ns) {
    readable_.assign(ranges.begin(), ranges.begin() + std::min(ranges.size(), agent::most_ranges));
    listed_at_ns_ = now_ns;
    const std::uint64_t other = (shared_->readable_now + 1) & 1; // the one that no search begins in
    agent::Ranges &shown = shared_->readable[other];
    store(shown.count, std::uint64_t{0});
    std::ranges::copy(readable_, shown.range);
    store(shown.count, std::uint64_t{readable_.size()});
    store(shared_->readable_now, other);
}

} // namespace ktrace::engine
