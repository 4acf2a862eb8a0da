#include "program/tables/state.h"

namespace ktrace::program {

Selector::Selector(const Selection &selection) : selection_(selection), random_state_(selection.seed) {
    if (selection_.every == 0) selection_.every = 1;
}

/// SplitMix64 (Steele, Lea, Flood 2014): one 64-bit state, every seed is as good as any other.
std::uint64_t Selector::random() {
    std::uint64_t z = (random_state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

bool Selector::next() {
    if (++seen_ % selection_.every != 0) return false;
    if (selection_.chance < 1.0) {
        double uniform = static_cast<double>(random() >> 11) * 0x1p-53; // in [0, 1)
        if (!(uniform < selection_.chance)) return false;
    }
    if (exhausted()) return false;
    ++selected_;
    return true;
}

void ProbeStateDeleter::operator()(ProbeState *state) const { delete state; }

} // namespace ktrace::program
