#include "sample/shares.h"

#include <algorithm>

namespace ktrace::sample {

void Shares::see(Sample &sample, const Look &look, std::uint64_t period_ns) {
    Sample *const on_before = on_, *const off_before = off_;
    (look.is_on ? on_ : off_) = &sample;
    const bool was_on = last_ && last_->is_on;
    const std::uint64_t all = last_ ? look.at_ns - last_->at_ns : period_ns;
    const std::uint64_t ran = last_ ? look.ran.ns - last_->ran.ns : look.is_on ? all : 0;
    std::uint64_t on = std::min(all, ran + (look.is_on ? look.stood_ns : 0));
    if (!on_) on = 0;
    if (!off_) on = all;
    const std::uint64_t off = all - on;
    if (on_) {
        Sample &first = look.is_on && was_on ? *on_before : *on_;
        first.on.ns += on - on / 2;
        on_->on.ns += on / 2;
    }
    if (off_) {
        Sample &first = !look.is_on && last_ && !was_on ? *off_before : *off_;
        first.off.ns += off - off / 2;
        off_->off.ns += off / 2;
    }
    last_ = look;
}

} // namespace ktrace::sample
