#include "engine/space/returns.h"

#include "base/check.h"
#include "engine/space/agent_threads.h"

namespace ktrace::engine {

Returns::~Returns() = default;

void Returns::show_to(AgentThreads &agent) {
    agent_ = &agent;
    for (const Instance *each : all()) agent.add_place(each->frame.sp);
}

Instance *Returns::at(VirtAddr frame_sp) {
    auto found = by_frame_.find(frame_sp);
    return found == by_frame_.end() ? nullptr : found->second;
}

Instance &Returns::begin(Task &task, const arch::Frame &frame) {
    if (free_.empty()) {
        pool_.emplace_back();
        free_.push_back(&pool_.back());
    }
    Instance &instance = *free_.back();
    free_.pop_back();
    in_flight_++;
    instance.frame = frame;
    instance.owner = task.tid;
    instance.unwinds = task.calls.unwinds;
    instance.start_ns = instance.inner_ns = 0;
    instance.may_be_left = instance.with_older = instance.is_within = false;
    instance.doubtful_at = nullptr;
    Instance *&chain = by_frame_[frame.sp];
    instance.older_in_chain = chain;
    chain = &instance;
    instance.younger_call = nullptr;
    instance.older_call = task.calls.youngest;
    if (task.calls.youngest) task.calls.youngest->younger_call = &instance;
    task.calls.youngest = &instance;
    if (agent_) agent_->add_place(frame.sp);
    return instance;
}

void Returns::end(Instance &instance, Task *owner) {
    auto found = by_frame_.find(instance.frame.sp);
    KT_CHECK(found != by_frame_.end());
    if (agent_) agent_->drop_place(instance.frame.sp);
    Instance **link = &found->second;
    while (*link != &instance) {
        KT_CHECK(*link != nullptr);
        link = &(*link)->older_in_chain;
    }
    *link = instance.older_in_chain;
    if (!found->second) by_frame_.erase(found);

    if (instance.older_call) instance.older_call->younger_call = instance.younger_call;
    if (instance.younger_call)
        instance.younger_call->older_call = instance.older_call;
    else if (owner && owner->calls.youngest == &instance)
        owner->calls.youngest = instance.older_call;
    instance.older_call = instance.younger_call = instance.older_in_chain = nullptr;
    instance.captured.clear();
    instance.handler_call.reset();
    in_flight_--;
    free_.push_back(&instance);
}

std::vector<Instance *> Returns::within(VirtAddr low, VirtAddr high) const {
    std::vector<Instance *> calls;
    for (const auto &[sp, youngest] : by_frame_)
        for (Instance *i = youngest; i && low <= sp && sp < high; i = i->older_in_chain) calls.push_back(i);
    return calls;
}

void Returns::shift(VirtAddr low, VirtAddr high, std::int64_t by) {
    std::vector<VirtAddr> frames;
    for (const auto &[sp, youngest] : by_frame_)
        if (low <= sp && sp < high) frames.push_back(sp);
    std::vector<Instance *> chains;
    for (VirtAddr sp : frames) chains.push_back(by_frame_.extract(sp).mapped());
    for (Instance *youngest : chains) {
        VirtAddr to = youngest->frame.sp + by;
        for (Instance *i = youngest; i; i = i->older_in_chain) i->frame.sp = to;
        KT_CHECK(by_frame_.emplace(to, youngest).second);
    }
}

std::vector<Instance *> Returns::all() {
    std::vector<Instance *> calls;
    for (auto &[sp, youngest] : by_frame_)
        for (Instance *i = youngest; i; i = i->older_in_chain) calls.push_back(i);
    return calls;
}

Collision judge_collision(const Instance &older, const Site &site, std::uint64_t hit, VirtAddr return_address,
                          VirtAddr direct_target, bool unwound) {
    if (older.hit == hit && older.site == &site) return Collision::same_call;
    if (older.frame.return_address != return_address) return Collision::abandoned;
    // Its call instruction is trapped and has not been passed again.
    if (older.doubtful_at) return Collision::tail_call;
    // Without an exception or longjmp in between, only a jump leads here from within the older call.
    if (!unwound) {
        // A function that jumps to itself does so behind its entry; entered again by the call that leads to it, it was
        // left by another way out (a hand-made longjmp).
        bool again = older.site == &site && direct_target == site.at;
        return again ? Collision::abandoned : Collision::tail_call;
    }
    if (direct_target == site.at) return Collision::abandoned;
    return older.site == &site ? Collision::abandoned : Collision::tail_call;
}

} // namespace ktrace::engine
