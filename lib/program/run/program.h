// Program: what one probe does at one location, compiled to data. eval runs it at a hit: no allocation, no libc, no OS.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "arch/host.h"
#include "base/ids.h"
#include "base/memory.h"
#include "program/run/changes.h"
#include "program/run/duration.h"
#include "program/run/image.h"
#include "program/run/record.h"

namespace ktrace::program {

/// Facts that eval may ask of the stopped thread beyond its registers; each answer costs a system call, so only on
/// demand.
class ThreadPort {
  public:
    virtual ~ThreadPort() = default;
    virtual const arch::Host::FpRegisters *floating() = 0;                // nullptr: cannot be read
    virtual const arch::Host::UpperRegisters *upper() { return nullptr; } // the same
    virtual std::string_view comm() = 0;
    /// An address in a module's thread-local block; `block`: its start, from the thread pointer (0: not known).
    virtual std::optional<VirtAddr> tls(std::int64_t block, std::uint64_t offset) = 0;
    /// Up to into.size() addresses of frames, innermost (the pc) first, then return addresses; true ones whatever is
    /// probed. Those that were interrupted (not the pc) are marked so (record.h).
    virtual std::size_t stack(std::span<std::uint64_t> into) = 0;
};

/// A hit, as a program sees it.
struct HitView {
    const arch::Host::Registers &registers;
    Memory *memory; // nullptr, as `thread`: the program asks for nothing of it
    ThreadPort *thread;
    Pid pid;
    Tid tid;
    std::uint64_t time_ns = 0; // CLOCK_REALTIME
    std::uint64_t monotonic_ns = 0;
    std::uint64_t duration_ns = 0;                     // ret
    std::span<const std::byte> captured;               // ret: what Moment::call wrote into its capture
    Changes *changes = nullptr;                        // the changes to make are put there; nullptr: there are none
    const Duration *duration = nullptr;                // ret: more of it; nullptr: nothing is known beside it
    const arch::Host::FpRegisters *floating = nullptr; // nullptr: `thread` knows them
    std::uint64_t thread_pointer = 0;                  // where there is no `thread`
};

/// The outcome of a hit.
enum class Outcome : std::uint8_t {
    event,      // a record was written
    aggregated, // counted in the probe's tables, no record
    filtered,
    unselected, // call: neither record nor aggregate wants this call, so no instance is needed
    accepted,   // call: an instance is needed
};

/// Shared by all locations of a probe: --every, --chance, --first, and the tables of --count, --stats, --hist.
struct ProbeState;
struct ProbeStateDeleter {
    void operator()(ProbeState *) const;
};

/// Copies share the image.
class Program {
  public:
    Program() = default; // runs nothing, and has no image
    explicit Program(std::vector<std::byte> image)
        : bytes_(std::make_shared<const std::vector<std::byte>>(std::move(image))) {}

    bool is_empty() const { return !bytes_; }
    Image image() const { return Image(*bytes_); }
    Needs needs(Moment moment) const { return image().moment(moment).needs; }
    /// Bytes that Moment::call may write into its capture, at most.
    std::size_t capture_size() const { return image().header().capture_size; }
    /// By the bytes of their images; an empty one comes first.
    friend bool operator<(const Program &a, const Program &b) {
        return a.is_empty() || b.is_empty() ? a.is_empty() && !b.is_empty() : *a.bytes_ < *b.bytes_;
    }

  private:
    std::shared_ptr<const std::vector<std::byte>> bytes_;
};

inline constexpr std::size_t max_record = 32768;

} // namespace ktrace::program
