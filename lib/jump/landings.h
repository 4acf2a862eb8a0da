// Landings: the landings that are in use in one address space, packed: a new one lies in a page that has some already,
// else in a page beside one, so that no mapping more is needed, else where others can follow.
//
// Invariants: landings do not overlap, and none crosses the end of its page; pages lie in free ranges only.
#pragma once

#include <bitset>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "arch/isa_detour.h"
#include "jump/page.h"
#include "jump/room.h"

namespace ktrace::jump {

class Landings {
  public:
    /// `size`: bytes of a landing. `most_mappings`: runs of pages, each a mapping of the process.
    Landings(std::vector<Free> free, std::size_t size, std::size_t most_mappings);

    /// A landing that is in use already.
    void keep(VirtAddr landing);
    /// A range that is in use for something else from now on. No landing is in it.
    void exclude(VirtAddr start, VirtAddr end);

    /// Takes a place for a landing; nothing: there is none.
    std::optional<VirtAddr> take(const arch::LandingRule &rule);
    /// A landing that is used no more.
    void give_back(VirtAddr landing);

    /// The pages that landings are in, in order: to be mapped.
    std::vector<VirtAddr> pages() const;
    std::size_t mappings() const { return mappings_; }
    /// The ranges that pages may be taken from, or are, in order.
    const std::vector<Free> &free() const { return free_; }

  private:
    struct Page {
        std::bitset<page_size> used;
        std::size_t hint = 0; // all below it is used
    };
    struct Interval;
    struct Wanted;
    using Pages = std::map<std::uint64_t, Page>;

    std::optional<VirtAddr> in_known_page(const Wanted &wanted);
    std::optional<VirtAddr> beside_known_page(const Wanted &wanted);
    std::optional<VirtAddr> in_new_page(const Wanted &wanted);
    std::optional<VirtAddr> in_new_page(const Wanted &wanted, const Interval &interval, const Free &range);
    std::optional<VirtAddr> place_in(const Wanted &wanted, std::uint64_t page, const Interval &interval);
    std::optional<VirtAddr> use(std::uint64_t page, std::optional<VirtAddr> landing);
    bool is_free(std::uint64_t page) const;

    std::vector<Free> free_;
    std::size_t size_, most_mappings_, mappings_ = 0;
    Pages pages_;
};

} // namespace ktrace::jump
