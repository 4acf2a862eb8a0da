// Any bytes as code, for both instruction sets: planned, placed, stepped and emulated on made-up registers and memory.
#include <cstring>

#include "arm64/arm64.h"
#include "fuzz.h"
#include "x86_64/x86_64.h"

using namespace ktrace;

namespace {

/// A page that can be read and written; all else is unmapped.
class OnePage final : public Memory {
  public:
    std::size_t read(VirtAddr at, std::span<std::byte> into) override {
        std::size_t count = room(at, into.size());
        if (count) std::memcpy(into.data(), page_ + (at.value - start), count);
        return count;
    }
    bool write(VirtAddr at, std::span<const std::byte> bytes) override {
        if (room(at, bytes.size()) != bytes.size()) return false;
        if (!bytes.empty()) std::memcpy(page_ + (at.value - start), bytes.data(), bytes.size());
        return true;
    }
    static constexpr std::uint64_t start = 0x10000;

  private:
    static std::size_t room(VirtAddr at, std::size_t size) {
        if (at.value < start || at.value >= start + sizeof page_) return 0;
        return std::min<std::uint64_t>(size, start + sizeof page_ - at.value);
    }
    std::byte page_[4096] = {};
};

template <class Isa> void run(std::span<const std::byte> rest) {
    VirtAddr site{fuzz::take<std::uint32_t>(rest)},
        slot{site.value + 0x10000 + (fuzz::take<std::uint16_t>(rest) << 6U)};
    typename Isa::Registers registers;
    std::memset(&registers, 0, sizeof registers);
    std::size_t from_input = std::min<std::size_t>(sizeof registers, rest.size() / 2);
    if (from_input) std::memcpy(&registers, rest.data(), from_input);
    rest = rest.subspan(from_input);
    if (rest.empty()) return;
    auto plan = Isa::plan(rest, site);
    fuzz::require(plan.length <= Isa::longest && plan.length <= rest.size());
    Isa::probeable(rest, site, rest.size() / 2);
    Isa::call_before(rest, site);
    Isa::plt_target_slot(rest, site);
    if (plan.method == arch::Method::refuse) {
        fuzz::require(plan.why != nullptr);
        return;
    }
    OnePage memory;
    arch::Placement placed = Isa::place(plan, site, slot);
    fuzz::require(placed.size <= arch::slot_size);
    Isa::set_pc(registers, site);
    if (plan.method == arch::Method::emulate) {
        auto emulated = registers;
        Isa::emulate(plan, site, emulated, memory);
    }
    if (placed.method == arch::Method::refuse || placed.method == arch::Method::emulate) return;
    auto old_scratch = Isa::begin_step(placed, slot, registers);
    for (std::uint64_t offset = 0; offset <= arch::slot_size; offset++)
        Isa::slot_position(placed, slot, slot + static_cast<std::int64_t>(offset));
    auto stepped = registers;
    Isa::set_pc(stepped, slot + static_cast<std::int64_t>(plan.length));
    Isa::finish_step(plan, placed, site, slot, old_scratch, stepped, memory);
    Isa::abort_step(placed, site, slot, old_scratch, registers);
    fuzz::require(Isa::pc(registers) == site);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    auto input = fuzz::bytes(data, size);
    if (input.empty()) return 0;
    if (data[0] & 1U)
        run<arch::Arm64>(input.subspan(1));
    else
        run<arch::X86_64>(input.subspan(1));
    return 0;
}
