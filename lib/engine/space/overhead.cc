#include "engine/space/overhead.h"

#include <algorithm>

#include "base/clock.h"

namespace ktrace::engine {

namespace {

/// Two switches of context: rather too little than too much.
constexpr std::uint64_t usual_switching_ns = 3'000;

} // namespace

void Overhead::begin_stop() {
    charged_.clear();
    began_ns_ = monotonic_ns();
}

void Overhead::end_stop(Tid tid, std::uint64_t seen_ns, std::uint64_t switching_ns) {
    if (charged_.empty()) return;
    const std::uint64_t now = monotonic_ns(), since = seen_ns != 0 ? seen_ns : began_ns_;
    const std::uint64_t ns = (now > since ? now - since : 0) + (switching_ns != 0 ? switching_ns : usual_switching_ns);
    Spent &spent = spent_[tid.value];
    spent.ns += ns;
    for (std::uint32_t location : charged_) spent.by_location[location] += ns;
    charged_.clear();
}

std::vector<Overhead::Thread> Overhead::take() {
    std::vector<Thread> threads;
    for (const auto &[tid, spent] : spent_) {
        Thread &thread = threads.emplace_back();
        thread.tid = Tid{tid};
        thread.ns = spent.ns;
        for (const auto &[location, ns] : spent.by_location) thread.shares.push_back({location, ns});
        std::sort(thread.shares.begin(), thread.shares.end(),
                  [](const Share &a, const Share &b) { return a.ns != b.ns ? a.ns > b.ns : a.location < b.location; });
    }
    spent_.clear();
    return threads;
}

std::vector<Overhead::Share> costliest_beyond(const Overhead::Thread &thread, std::uint64_t allowed_ns) {
    std::vector<Overhead::Share> beyond;
    std::uint64_t left = thread.ns;
    for (const Overhead::Share &share : thread.shares) {
        if (left <= allowed_ns) break;
        beyond.push_back(share);
        left -= std::min(left, share.ns);
    }
    return beyond;
}

} // namespace ktrace::engine
