#include "program/tables/distribution.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ktrace::program {

double Number::as_double() const {
    switch (kind) {
    case Kind::sint: return static_cast<double>(static_cast<std::int64_t>(bits));
    case Kind::uint: return static_cast<double>(bits);
    case Kind::floating: break;
    }
    return std::bit_cast<double>(bits);
}

bool TableMemory::take(std::size_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
}

// A double's upper bits are its sign, exponent and leading digits: as a bucket's number they grow with the value and
// split every power of two in 64. A negative value's octave is the mirrored one.
void Distribution::add(Number number, TableMemory &memory, std::uint64_t times) {
    count_ += times;
    auto bits = std::bit_cast<std::uint64_t>(number.as_double());
    auto exponent = static_cast<std::int32_t>(bits >> 52 & 0x7ff);
    std::size_t digit = bits >> 46 & 63;
    bool negative = bits >> 63;
    std::int32_t octave = negative ? -1 - exponent : exponent;
    if (Octave *found = this->octave(octave, memory)) (*found)[negative ? 63 - digit : digit] += times;
}

void Distribution::add_all(const Distribution &other, TableMemory &memory) {
    count_ += other.count_;
    complete_ = complete_ && other.complete_;
    for (const auto &[number, digits] : other.octaves_)
        if (Octave *found = octave(number, memory))
            for (std::size_t i = 0; i < found->size(); ++i) (*found)[i] += (*digits)[i];
}

void Distribution::clear() {
    count_ = 0;
    complete_ = true;
    for (auto &[number, digits] : octaves_) digits->fill(0);
}

/// nullptr: there is no memory for it.
Distribution::Octave *Distribution::octave(std::int32_t number, TableMemory &memory) {
    auto at = std::lower_bound(octaves_.begin(), octaves_.end(), number,
                               [](const auto &entry, std::int32_t wanted) { return entry.first < wanted; });
    if (at != octaves_.end() && at->first == number) return at->second.get();
    if (!memory.take(sizeof(Octave) + 2 * sizeof *at)) { // the vector grows by doubling
        complete_ = false;
        return nullptr;
    }
    return octaves_.emplace(at, number, std::make_unique<Octave>())->second.get();
}

namespace {

/// The middle of a bucket of Distribution. Integers of up to 2^7 have a bucket each, and are their bucket's lower end;
/// so has infinity.
double bucket_middle(std::int32_t octave, std::size_t digit) {
    bool negative = octave < 0;
    auto exponent = static_cast<std::uint64_t>(negative ? -1 - octave : octave);
    std::uint64_t bits = exponent << 52 | std::uint64_t{negative ? 63 - digit : digit} << 46;
    auto low = std::bit_cast<double>(bits), width = std::bit_cast<double>(bits + (std::uint64_t{1} << 46)) - low;
    double middle = std::isinf(low) || (width <= 1 && std::floor(low) == low) ? low : low + width / 2;
    return negative ? -middle : middle;
}

} // namespace

double Distribution::percentile(double fraction) const {
    auto wanted = static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(count_)));
    wanted = std::max<std::uint64_t>(wanted, 1);
    std::uint64_t seen = 0;
    for (const auto &[octave, digits] : octaves_)
        for (std::size_t digit = 0; digit < digits->size(); ++digit)
            if (seen += (*digits)[digit]; seen >= wanted) return bucket_middle(octave, digit);
    return 0;
}

} // namespace ktrace::program
