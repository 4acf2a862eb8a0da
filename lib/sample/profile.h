// profile: where the time of some processes goes, by samples of all their threads.
#pragma once

#include "trace/config.h"
#include "trace/voice.h"

namespace ktrace::sample {

struct ProfileRequest {
    unsigned frequency = 99; // looks a second at each thread
    bool waiting = false;    // folded stacks and the graph are of what is waited for
};

constexpr std::uint64_t default_duration_ns = 5'000'000'000;

/// `ktrace profile`: looks at the threads of the configuration's processes until its duration is over, they end, or a
/// signal comes, and prints where their time went. Returns the exit status.
int profile(const trace::Config &config, const ProfileRequest &request, const trace::Voice &voice);

} // namespace ktrace::sample
