// Any bytes as an ELF file whose call frame information unwinds a made-up stack in made-up memory.
#include <array>
#include <cstring>

#include "fuzz.h"
#include "symbols/unwind/unwind.h"

using namespace ktrace;

namespace {

/// Memory that answers everywhere: words that point near each other, so that chains of frames go on.
class Anywhere final : public Memory {
  public:
    explicit Anywhere(std::uint64_t pc) : pc_(pc) {}
    std::size_t read(VirtAddr at, std::span<std::byte> into) override {
        for (std::size_t i = 0; i < into.size(); i++) {
            std::uint64_t word = (at.value + i) / 8;
            std::uint64_t value = word % 2 != 0 ? pc_ + word % 64 : (word + 4) * 8;
            into[i] = static_cast<std::byte>(value >> (8 * ((at.value + i) % 8)));
        }
        return into.size();
    }
    bool write(VirtAddr, std::span<const std::byte>) override { return false; }

  private:
    std::uint64_t pc_;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    auto input = fuzz::bytes(data, size);
    auto opened = symbols::Module::from_bytes({input.begin(), input.end()}, "crafted");
    if (!opened) return 0;
    std::shared_ptr<symbols::Module> module = std::move(*opened);
    symbols::Unwinder unwinder;
    std::size_t looked_at = 0;
    for (const symbols::Segment &segment : module->segments()) {
        if (!segment.executable) continue;
        for (std::uint64_t offset = 0; offset < segment.file_size && looked_at < 64; offset += 13, looked_at++) {
            std::uint64_t pc = segment.vaddr + offset;
            Anywhere memory(pc);
            arch::Host::Registers registers;
            std::memset(&registers, 0, sizeof registers);
            arch::Host::set_pc(registers, VirtAddr{pc});
            registers.sp = 0x7000'0000;
            std::array<symbols::StackFrame, 200> frames;
            std::size_t count = unwinder.unwind(
                registers, memory,
                [&](VirtAddr) {
                    return symbols::ModuleAt{module, 0};
                },
                frames);
            fuzz::require(count <= frames.size());
        }
    }
    return 0;
}
