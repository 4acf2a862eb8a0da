// Channel: ktrace's end of the wire to one plugin host, and the host's process.
//
// Invariants: the host is no child of ktrace's that a wait for tracees could report; it does not outlive its Channel,
// nor ktrace.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "plugin/wire.h"

namespace ktrace::plugin {

/// The time that a host may still spend on a Call: time of its own, in which it runs or sleeps, and not that in which
/// it waits for a busy processor.
struct Allowance {
    std::uint64_t left_ns = 0;
    std::uint64_t looked_ns = 0;         // CLOCK_MONOTONIC, when it was last found out; 0: not yet
    std::optional<std::uint64_t> ran_ns; // the host's processor time, then
};

class Channel {
  public:
    /// Starts a host that lives in `window`. Errors: system (why it could not), refused (not in this window).
    static Result<std::unique_ptr<Channel>> start(const Window &window);
    ~Channel();
    Channel(const Channel &) = delete;

    Wire &wire() { return *wire_; }
    /// A page of the pool, as the host has it mapped.
    std::byte *page(std::size_t number) { return memory_ + pool_offset + number * page_size; }

    /// Hands over, with what the wire says.
    void hand_over(Call call);
    /// Waits until the host hands over. False: nothing is left of what it may spend, or it is dead.
    bool wait(Allowance &allowance);
    /// Signals the host that its handler is late. It ends that, unless it is in a bad way.
    void tell_late();
    bool dead();
    void kill();

  private:
    Channel() = default;
    void follow_processor();
    std::optional<std::uint64_t> processor_ns() const;
    void spend(Allowance &allowance, bool is_its_turn);

    std::byte *memory_ = nullptr;
    Wire *wire_ = nullptr;
    Fd life_;    // closed at the other end when the host ends
    Fd process_; // its pidfd
    std::int32_t pid_ = 0;
    int processor_ = -1; // where it was bound to
    bool dead_ = false;
};

} // namespace ktrace::plugin
