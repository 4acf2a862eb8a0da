#include "engine/space/overhead.h"

namespace ktrace::engine {

void Overhead::end_stop(Tid tid, std::uint64_t ns) {
    for (std::uint32_t location : charged_) spent_[location][tid.value] += ns;
    charged_.clear();
}

std::vector<Overhead::Share> Overhead::take() {
    std::vector<Share> shares;
    for (const auto &[location, threads] : spent_) {
        Share share{location, {}, 0};
        for (const auto &[tid, ns] : threads)
            if (ns > share.ns) share = {location, Tid{tid}, ns};
        shares.push_back(share);
    }
    spent_.clear();
    return shares;
}

} // namespace ktrace::engine
