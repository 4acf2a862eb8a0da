// AddressSpace: the memory of one address space as its program knows it, and the sole keeper of the bytes that ktrace
// replaced in it. Several processes share one (vfork); a fork's child gets a copy.
//
// Invariants: (1) every byte of ours in the program's text is in a plant here; (2) read never shows a planted byte,
// write goes around them; (3) a byte is put back only where it is still ours; (4) a plant that was taken
// out is remembered until exec: a trap that was hit before is known as ours, and so is the copy of it that a fork made
// which was under way.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/memory.h"
#include "base/result.h"
#include "os/tracee/memory.h"

namespace ktrace::target {

class AddressSpace final : public Memory {
  public:
    static Result<std::unique_ptr<AddressSpace>> open(Pid pid);
    /// That of a fork's child: its plants are those that its memory holds a copy of, whatever became of them in the
    /// parent since the fork.
    Result<std::unique_ptr<AddressSpace>> copy_for(Pid child) const;

    std::size_t read(VirtAddr at, std::span<std::byte> into) override;
    bool write(VirtAddr at, std::span<const std::byte> bytes) override;

    /// Replaces bytes of the program. Errors: fault (unmapped), refused (there is a plant already, or writing failed).
    Status plant(VirtAddr at, std::span<const std::byte> bytes);
    /// Puts the original bytes back where ours are still there. False: the memory could not be written (unmapped, or
    /// the process is gone) or other bytes are in the trap's place; the plant is forgotten in any case.
    bool unplant(VirtAddr at);
    /// Other bytes of ours in the place of those of a plant, as many. False: the memory could not be written, or has
    /// become the program's; the plant is forgotten then.
    bool replant(VirtAddr at, std::span<const std::byte> bytes);
    /// A plant of another ktrace's, which was taken out: it may have been hit before.
    void recall(VirtAddr at, std::span<const std::byte> original, std::span<const std::byte> theirs);
    /// Forgets a plant whose memory is gone (munmap, dlclose).
    void forget(VirtAddr at);

    bool planted(VirtAddr at) const { return plants_.contains(at); }
    bool ever_planted(VirtAddr at) const { return plants_.contains(at) || removed_.contains(at); }
    std::vector<VirtAddr> plants() const;
    /// Of these plants, in ascending order, those whose bytes are not there any more. Those that cannot be read are
    /// left out.
    std::vector<VirtAddr> overwritten(std::span<const VirtAddr> plants) const;

    /// Memory of our own in the target (slots): written as it is, no plant.
    bool write_own(VirtAddr at, std::span<const std::byte> bytes) { return memory_.write(at, bytes); }

  private:
    struct Plant {
        std::vector<std::byte> original, ours;
    };
    explicit AddressSpace(os::ProcessMemory memory) : memory_(std::move(memory)) {}
    bool shows(VirtAddr at, std::span<const std::byte> bytes) const;
    template <class F> void for_plants_in(VirtAddr at, std::size_t size, F &&f);

    os::ProcessMemory memory_;
    std::map<VirtAddr, Plant> plants_;
    std::map<VirtAddr, Plant> removed_; // not in plants_ any more
    std::map<VirtAddr, Plant> former_;  // as plants were before they were changed: a fork's child may have those
    std::size_t longest_ = 0;           // bytes of the longest plant
};

} // namespace ktrace::target
