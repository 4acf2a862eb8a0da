// Port: what a plugin asks of the trace that it is part of. The session implements it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/eval/hit_handler.h"

namespace ktrace::plugin {

/// A probe that a plugin registers.
struct ProbeRequest {
    char kind = 'k';    // k j r
    std::string symbol; // [MODULE:]SYMBOL; empty: by address
    std::uint64_t offset = 0;
    std::uint64_t address = 0;
    bool enabled = true;
    std::uint32_t maxactive = 0; // r
    engine::HitHandler *handler = nullptr;
};

/// A registered one: the trace's number of it, and where it is (its first place).
struct Placed {
    std::uint32_t number = 0;
    VirtAddr at;
};

class Port {
  public:
    virtual ~Port() = default;

    /// All or none of them. `stopped`: the task whose handler asks, or nullptr. Errors as those of SPECs.
    virtual Result<std::vector<Placed>> add(std::span<const ProbeRequest> probes, os::Stopped *stopped) = 0;
    virtual void remove(std::span<const std::uint32_t> numbers) = 0;
    virtual Status enable(std::uint32_t number) = 0;
    virtual void disable(std::uint32_t number) = 0;

    /// name+0xoffset/0xsize [module]; empty: nothing is known there.
    virtual std::string symbol(const target::Process &process, VirtAddr at) = 0;
    /// The address of a function or variable.
    virtual std::optional<VirtAddr> lookup(target::Process &process, std::string_view name) = 0;
    /// The stack of the stopped thread, a line a frame.
    virtual std::vector<std::string> stack(target::Process &process, os::Stopped &stopped) = 0;

    /// A line of the plugin's log. `level` as syslog's.
    virtual void log(std::uint64_t time_ns, Pid pid, Tid tid, std::uint32_t level, std::string_view text) = 0;
    /// Something has gone wrong that the plugin does not see.
    virtual void complain(Error error) = 0;
};

} // namespace ktrace::plugin
