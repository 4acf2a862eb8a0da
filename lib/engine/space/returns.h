// Returns: the calls in flight of return probes in one address space. The stack is never written: a trap at the return
// address shows that a call has returned.
//
// Invariants: (1) a live call is found by the address of its frame, which no two live calls of an address space share,
// except for a chain of tail calls, which return together; so fibers, and calls that another thread ends, need no
// special case; (2) an instance is in exactly one chain and in its owner's list of calls; (3) every instance ends in
// exactly one of: returned, unreturned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "arch/isa.h"
#include "base/ids.h"
#include "base/memory.h"
#include "engine/space/site.h"
#include "engine/space/task.h"

namespace ktrace::engine {

class AgentThreads;

/// One call in flight.
struct Instance {
    Attachment *attachment = nullptr;
    Site *site = nullptr; // of the function's entry
    arch::Frame frame;
    Site *return_site = nullptr; // nullptr: it is seen to end at its function's own return instructions
    Tid owner;
    std::uint64_t hit = 0;      // the entry's stop, by the engine's count: probes of one hit share a call
    std::uint64_t start_ns = 0; // CLOCK_MONOTONIC, just before the task went on; 0 until then
    std::uint64_t inner_ns = 0; // spent in calls of other return probes inside, which have ended
    Marks marks;                // the owner's clock, then
    bool is_recorded = false;   // the owner's switches were recorded, then
    std::uint32_t unwinds = 0;  // the owner's, then
    std::vector<std::byte> captured;
    bool may_be_left = false;                  // it was in flight at an unwinding (doubtful_calls.h),
    bool with_older = false;                   // as were all that are older in the owner's list
    Site *doubtful_at = nullptr;               // its call instruction, which is trapped while it is in doubt
    bool injected = false;                     // something was changed at its entry
    bool is_within = false;                    // another call of its probe's, which the agent follows, when it began
    std::optional<std::uint64_t> handler_call; // the name by which the probe's handler knows it
    std::uint64_t seen_ns = 0;                 // a handler's: CLOCK_MONOTONIC, when the entry's stop was seen
    Instance *older_in_chain = nullptr;        // same frame: called this one's function by a tail call
    Instance *older_call = nullptr, *younger_call = nullptr; // the owner's list
};

class Returns {
  public:
    /// Called with each call that ends without having returned.
    using Unreturned = std::function<void(Instance &)>;

    Returns() = default;
    ~Returns();
    Returns(const Returns &) = delete;

    /// The agent of the address space sees from now on where calls are.
    void show_to(AgentThreads &agent);

    /// The youngest call with this frame.
    Instance *at(VirtAddr frame_sp);
    std::size_t in_flight() const { return in_flight_; }

    /// A new call; the caller has dealt with older ones of the same frame. Ownership stays here.
    Instance &begin(Task &task, const arch::Frame &frame);
    /// The call has ended: out of its chain, its owner's list, and recycled.
    void end(Instance &instance, Task *owner);

    /// The calls whose frames are in [low, high).
    std::vector<Instance *> within(VirtAddr low, VirtAddr high) const;
    /// Their frames have moved by so many bytes. No other calls are at the new addresses.
    void shift(VirtAddr low, VirtAddr high, std::int64_t by);
    /// All calls, for the end of a process or a sweep.
    std::vector<Instance *> all();

  private:
    std::unordered_map<VirtAddr, Instance *> by_frame_;
    std::vector<Instance *> free_;
    std::deque<Instance> pool_;
    std::size_t in_flight_ = 0;
    AgentThreads *agent_ = nullptr;
};

/// The fate of an older call with the same frame as a new one.
enum class Collision : std::uint8_t {
    tail_call, // it jumped to the new function: both return together
    abandoned, // an exception or a longjmp ended it, and its caller has called again
    same_call, // another probe of the same hit
};

/// Decides it: `direct_target` is the target of the call instruction before the return address (through PLT stubs), or
/// 0; `unwound`: there may have been an exception or a longjmp since. Pure.
Collision judge_collision(const Instance &older, const Site &site, std::uint64_t hit, VirtAddr return_address,
                          VirtAddr direct_target, bool unwound);

} // namespace ktrace::engine
