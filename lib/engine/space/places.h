// Places: some of the probes of a site, by where they stand in its list. Those behind the 64th cost memory, the others
// none: nearly every site has one.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace ktrace::engine {

class Places {
  public:
    /// Each is added once.
    void add(std::size_t place) {
        if (place < near)
            bits_ |= std::uint64_t{1} << place;
        else
            far_.push_back(place);
    }
    bool empty() const { return bits_ == 0 && far_.empty(); }

    /// Calls visit(place) for each, in the order of the site's list if they were added in that.
    template <class F> void for_each(F &&visit) const {
        for (std::uint64_t rest = bits_; rest != 0; rest &= rest - 1)
            visit(static_cast<std::size_t>(std::countr_zero(rest)));
        for (std::size_t place : far_) visit(place);
    }

  private:
    static constexpr std::size_t near = 64;
    std::uint64_t bits_ = 0;
    std::vector<std::size_t> far_;
};

} // namespace ktrace::engine
