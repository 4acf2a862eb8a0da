// Distribution: the values that --stats has seen, in as little memory as percentiles need.
//
// Invariants: memory is taken from TableMemory before it is allocated, with the first value of a magnitude.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace ktrace::program {

/// A number that --stats or --hist looks at.
struct Number {
    enum class Kind : std::uint8_t { sint, uint, floating } kind = Kind::sint;
    std::uint64_t bits = 0; // the integer, or a double's bits

    double as_double() const;
};

/// The bound of all tables of a trace together, in bytes: their keys and values come from the target, which chooses
/// how many there are. Memory that is taken is never given back.
class TableMemory {
  public:
    static constexpr std::size_t usual_limit = std::size_t{1} << 30;

    explicit TableMemory(std::size_t limit = usual_limit) : left_(limit) {}
    /// False where so much is not left: nothing is taken then.
    bool take(std::size_t bytes);

  private:
    std::size_t left_;
};

/// Counts values in buckets whose width is 1/64 of their magnitude, so that any percentile is within 1 %.
class Distribution {
  public:
    /// Adds so many of a value; where no memory is left for its bucket they are counted in count() alone.
    void add(Number number, TableMemory &memory, std::uint64_t times = 1);
    /// The values of another one, too.
    void add_all(const Distribution &other, TableMemory &memory);
    /// As new, but that the memory of its buckets is kept for those to come.
    void clear();
    /// All values are in a bucket.
    bool is_complete() const { return complete_; }
    /// The smallest value below or at which `fraction` of the values lie, as the middle of its bucket.
    double percentile(double fraction) const;
    std::uint64_t count() const { return count_; }

  private:
    using Octave = std::array<std::uint64_t, 64>;
    Octave *octave(std::int32_t number, TableMemory &memory);
    std::vector<std::pair<std::int32_t, std::unique_ptr<Octave>>> octaves_; // by sign and exponent, in order of value
    std::uint64_t count_ = 0;
    bool complete_ = true;
};

} // namespace ktrace::program
