#include "target/address_space.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ktrace::target {

Result<std::unique_ptr<AddressSpace>> AddressSpace::open(Pid pid) {
    auto memory = os::ProcessMemory::open(pid);
    if (!memory) return tl::make_unexpected(memory.error());
    return std::unique_ptr<AddressSpace>(new AddressSpace(std::move(*memory)));
}

namespace {

/// Reads small ranges in ascending order, a page at a time.
class PageReader {
  public:
    explicit PageReader(const os::ProcessMemory &memory) : memory_(memory) {}

    bool shows(VirtAddr at, std::span<const std::byte> bytes) {
        return reads(at, bytes.size()) &&
               std::equal(bytes.begin(), bytes.end(),
                          page_.begin() + static_cast<std::ptrdiff_t>(at.value - start_.value));
    }
    bool reads(VirtAddr at, std::size_t size) {
        const VirtAddr end = at + static_cast<std::int64_t>(size);
        if (at < start_ || end > start_ + static_cast<std::int64_t>(got_)) {
            start_ = at;
            got_ = memory_.read(at, page_);
        }
        return size <= got_;
    }

  private:
    const os::ProcessMemory &memory_;
    std::array<std::byte, 4096> page_{};
    VirtAddr start_;
    std::size_t got_ = 0;
};

} // namespace

bool AddressSpace::shows(VirtAddr at, std::span<const std::byte> bytes) const {
    std::vector<std::byte> now(bytes.size());
    return memory_.read(at, now) == now.size() && std::equal(now.begin(), now.end(), bytes.begin());
}

Result<std::unique_ptr<AddressSpace>> AddressSpace::copy_for(Pid child) const {
    auto copy = open(child);
    if (!copy) return copy;
    AddressSpace &to = **copy;
    to.longest_ = longest_;
    PageReader reader(to.memory_);
    for (const auto &[at, plant] : plants_)
        (reader.shows(at, plant.ours) ? to.plants_ : to.removed_).emplace(at, plant);
    for (const auto &[at, plant] : former_)
        if (!to.plants_.contains(at) && to.shows(at, plant.ours)) to.plants_.emplace(at, plant);
    for (const auto &[at, plant] : removed_) {
        // Where the parent has its own bytes again, ours in the child are a copy from before.
        bool copied = to.shows(at, plant.ours) && shows(at, plant.original);
        (copied ? to.plants_ : to.removed_).emplace(at, plant);
    }
    return copy;
}

/// Calls f(plant, first byte in the plant, first byte in the range, count) for all that overlaps [at, at + size).
template <class F> void AddressSpace::for_plants_in(VirtAddr at, std::size_t size, F &&f) {
    if (plants_.empty()) return;
    VirtAddr end = at + static_cast<std::int64_t>(size);
    VirtAddr from{at.value > longest_ ? at.value - longest_ : 0};
    for (auto it = plants_.lower_bound(from); it != plants_.end() && it->first < end; ++it) {
        Plant &plant = it->second;
        std::uint64_t low = std::max(it->first.value, at.value);
        std::uint64_t high = std::min(it->first.value + plant.ours.size(), end.value);
        if (low < high) f(plant, low - it->first.value, low - at.value, high - low);
    }
}

std::size_t AddressSpace::read(VirtAddr at, std::span<std::byte> into) {
    std::size_t got = memory_.read(at, into);
    for_plants_in(at, got, [&](Plant &plant, std::size_t from, std::size_t to, std::size_t count) {
        // Where the program has written over ktrace's bytes, the bytes there now are the program's.
        if (std::memcmp(into.data() + to, plant.ours.data() + from, count) == 0)
            std::memcpy(into.data() + to, plant.original.data() + from, count);
    });
    return got;
}

bool AddressSpace::write(VirtAddr at, std::span<const std::byte> bytes) {
    std::vector<std::byte> merged(bytes.begin(), bytes.end());
    for_plants_in(at, bytes.size(), [&](Plant &plant, std::size_t from, std::size_t to, std::size_t count) {
        std::memcpy(plant.original.data() + from, bytes.data() + to, count);
        std::memcpy(merged.data() + to, plant.ours.data() + from, count);
    });
    return memory_.write(at, merged);
}

Status AddressSpace::plant(VirtAddr at, std::span<const std::byte> bytes) {
    bool taken = false;
    for_plants_in(at, bytes.size(), [&](Plant &, std::size_t, std::size_t, std::size_t) { taken = true; });
    if (taken) return fail(Error::Kind::refused, "another patch of ours is there");
    Plant plant;
    plant.ours.assign(bytes.begin(), bytes.end());
    plant.original.resize(bytes.size());
    if (memory_.read(at, plant.original) != bytes.size()) return fail(Error::Kind::fault, "the memory is not mapped");
    if (!memory_.write(at, bytes)) return fail(Error::Kind::refused, "the memory cannot be written");
    longest_ = std::max(longest_, bytes.size());
    removed_.erase(at);
    plants_.emplace(at, std::move(plant));
    return {};
}

bool AddressSpace::unplant(VirtAddr at) {
    auto found = plants_.find(at);
    if (found == plants_.end()) return true;
    bool written = shows(at, found->second.ours) && memory_.write(at, found->second.original);
    forget(at);
    return written;
}

bool AddressSpace::replant(VirtAddr at, std::span<const std::byte> bytes) {
    const auto found = plants_.find(at);
    if (found == plants_.end() || found->second.ours.size() != bytes.size()) return false;
    Plant &plant = found->second;
    if (!shows(at, plant.ours) || !memory_.write(at, bytes)) {
        forget(at);
        return false;
    }
    former_[at] = plant;
    plant.ours.assign(bytes.begin(), bytes.end());
    return true;
}

void AddressSpace::recall(VirtAddr at, std::span<const std::byte> original, std::span<const std::byte> theirs) {
    removed_[at] = {{original.begin(), original.end()}, {theirs.begin(), theirs.end()}};
}

void AddressSpace::forget(VirtAddr at) {
    auto plant = plants_.extract(at);
    if (plant) removed_.insert(std::move(plant));
}

std::vector<VirtAddr> AddressSpace::plants() const {
    std::vector<VirtAddr> all;
    all.reserve(plants_.size());
    for (const auto &[at, plant] : plants_) all.push_back(at);
    return all;
}

std::vector<VirtAddr> AddressSpace::overwritten(std::span<const VirtAddr> plants) const {
    std::vector<VirtAddr> found;
    PageReader reader(memory_);
    for (VirtAddr at : plants) {
        const auto plant = plants_.find(at);
        if (plant == plants_.end()) continue;
        const std::vector<std::byte> &ours = plant->second.ours;
        if (reader.reads(at, ours.size()) && !reader.shows(at, ours)) found.push_back(at);
    }
    return found;
}

} // namespace ktrace::target
