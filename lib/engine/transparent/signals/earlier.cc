#include "engine/transparent/signals/earlier.h"

#include <algorithm>
#include <cstring>

#include <unistd.h>

namespace ktrace::engine {

void Earlier::add(const std::vector<siginfo_t> &signals) {
    waiting_.insert(waiting_.begin(), signals.begin(), signals.end());
}

std::vector<siginfo_t> Earlier::missing() const {
    std::vector<siginfo_t> rest = waiting_;
    for (const Queued &one : queued_) {
        auto same = [&](const siginfo_t &info) { return info.si_signo == one.info.si_signo; };
        auto found = std::find_if(rest.begin(), rest.end(), same);
        if (found != rest.end()) rest.erase(found);
    }
    return rest;
}

void Earlier::queued_stand_in(int signal) {
    siginfo_t info{};
    info.si_signo = signal;
    queued_.push_back({info, true});
}

bool Earlier::take_from_queue(const siginfo_t &arrived) {
    const bool has_our_name = arrived.si_code == SI_TKILL && (arrived.si_pid == ::getpid() || arrived.si_pid == 0);
    auto found = std::find_if(queued_.begin(), queued_.end(), [&](const Queued &one) {
        if (one.stands_in) return has_our_name && one.info.si_signo == arrived.si_signo;
        return std::memcmp(&one.info, &arrived, sizeof arrived) == 0;
    });
    if (found == queued_.end()) return false;
    queued_.erase(found);
    return true;
}

siginfo_t Earlier::instead_of(const siginfo_t &arrived) {
    auto same = [&](const siginfo_t &info) { return info.si_signo == arrived.si_signo; };
    if (std::none_of(waiting_.begin(), waiting_.end(), same)) return arrived;
    if (!take_from_queue(arrived)) waiting_.push_back(arrived);
    auto first = std::find_if(waiting_.begin(), waiting_.end(), same);
    const siginfo_t told = *first;
    waiting_.erase(first);
    return told;
}

} // namespace ktrace::engine
