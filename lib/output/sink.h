// Sink: where records and tables go, as text or JSON lines. Knows records and locations' names; never a tracee.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "program/record.h"

namespace ktrace::output {

/// One frame of a stack, named.
struct NamedFrame {
    std::uint64_t address = 0;
    std::string symbol;
    std::uint64_t offset = 0;
    std::string module, file;
    int line = 0;
    bool inlined = false;
};

/// Names the addresses of stacks and pointers to functions; implemented above (session/), since a sink knows no tracee.
class Symbolizer {
  public:
    virtual ~Symbolizer() = default;
    virtual std::vector<NamedFrame> name(std::int32_t pid, std::uint64_t address, bool is_return_address) = 0;
};

class Sink {
  public:
    virtual ~Sink() = default;
    /// A record as eval wrote it, and its location.
    virtual void record(std::span<const std::byte> record, const program::LocationInfo &location) = 0;
    /// A line of a location's counts at the end (JSON: an object; text sinks leave it to the summary on standard error).
    virtual void summary(const program::LocationInfo &location, const program::Counters &counters) = 0;
};

} // namespace ktrace::output
