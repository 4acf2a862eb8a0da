#include "engine/space/agent_threads.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>

namespace ktrace::engine {

namespace {

/// Of a key whose thread pointer was forgotten: no thread has this one, and searches go on behind it.
constexpr std::uint64_t forgotten = 1;

/// The agent reads it while it is written.
void store(std::uint64_t &word, std::uint64_t value) { std::atomic_ref(word).store(value, std::memory_order_release); }

} // namespace

Result<std::shared_ptr<AgentThreads>> AgentThreads::map(Fd file, VirtAddr address) {
    void *at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (at == MAP_FAILED)
        return fail(Error::Kind::refused, std::string("shared memory cannot be mapped: ") + std::strerror(errno));
    return std::shared_ptr<AgentThreads>(new AgentThreads(std::move(file), address, static_cast<agent::Threads *>(at)));
}

AgentThreads::AgentThreads(Fd file, VirtAddr address, agent::Threads *shared)
    : file_(std::move(file)), address_(address), shared_(shared), used_(agent::most_threads) {}

AgentThreads::~AgentThreads() { ::munmap(shared_, size); }

VirtAddr AgentThreads::address_of(const agent::Thread &thread) const {
    return address_ + (reinterpret_cast<const std::byte *>(&thread) - reinterpret_cast<const std::byte *>(shared_));
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
        store(key.thread, address_of(thread).value);
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

bool AgentThreads::give(Pid pid, Tid tid, std::uint64_t thread_pointer) {
    if (thread_pointer <= forgotten || contested_.contains(thread_pointer) || of(tid)) return false;
    const auto is_known = [&](const auto &each) { return each.second.thread_pointer == thread_pointer; };
    if (std::ranges::any_of(places_, is_known)) return false;
    const auto free = std::ranges::find(used_, false);
    if (free == used_.end()) return false;
    agent::Thread &thread = shared_->thread[free - used_.begin()];
    const auto offset = reinterpret_cast<const std::byte *>(&thread) - reinterpret_cast<const std::byte *>(shared_);
    if (::fallocate(file_.get(), 0, offset, sizeof thread) != 0) return false;
    thread.tail = thread.head = thread.is_busy = 0;
    thread.pid = pid.value;
    thread.tid = tid.value;
    if (!set_key(thread_pointer, thread)) return false;
    *free = true;
    places_[tid.value] = {pid, tid, thread_pointer, 0, &thread, {}};
    return true;
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
    places_.erase(found);
}

} // namespace ktrace::engine
