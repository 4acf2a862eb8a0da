// Samples: how often threads were seen in each stack, on a processor and waiting.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/ids.h"
#include "output/symbolizer.h"
#include "sample/threads.h"

namespace ktrace::sample {

/// How long, and how many looks that is, rounded.
struct Seen {
    std::uint64_t ns = 0;
    std::uint64_t looks = 0;
};

/// One stack of the threads of a name.
struct Sample {
    Seen on, off;      // on a processor (or waiting for one), and waiting
    long syscall = -1; // that it waits in; -1: in none
};

struct SampleKey {
    Pid pid;
    std::string comm;
    Stack stack;
    auto operator<=>(const SampleKey &) const = default;
};

/// Where they stand in the map they stay.
using Samples = std::map<SampleKey, Sample>;

/// A sample whose frames have names, innermost first.
struct NamedSample {
    SampleKey key;
    Sample sample;
    std::vector<output::NamedFrame> frames;
};

std::vector<NamedSample> name_all(const Samples &samples, output::Symbolizer &symbolizer);

/// A function's name in tables and graphs: its symbol, else `module:0x1234`, else the address.
std::string name_of(const output::NamedFrame &frame);

} // namespace ktrace::sample
