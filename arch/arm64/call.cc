// Calls and returns of arm64: arguments (AAPCS64, 6.8.2), the call before a return address, PLT stubs.
#include "arm64/arm64.h"

#include <algorithm>
#include <array>
#include <span>

#include "arm64/words.h"

namespace ktrace::arch {

namespace {

constexpr unsigned argument_registers = 8;

constexpr std::uint32_t bti_c = 0xd503245f, autia1716 = 0xd503219f;
constexpr std::uint32_t branch_authenticated_x17_x16 = 0xd71f0a30;

/// Walks the instructions of a stub; every `take` moves on where the next word is as asked.
class Stub {
  public:
    explicit Stub(std::span<const std::byte> code) : code_(code) {}

    bool take(std::uint32_t mask, std::uint32_t value) {
        if (code_.size() - at_ < a64_size) return false;
        std::uint32_t word = a64_word(code_, at_);
        if ((word & mask) != value) return false;
        word_ = word;
        at_ += a64_size;
        return true;
    }
    std::uint32_t word() const { return word_; } // the one taken last
    std::size_t at() const { return at_ - a64_size; }

  private:
    std::span<const std::byte> code_;
    std::size_t at_ = 0;
    std::uint32_t word_ = 0;
};

} // namespace

std::optional<std::uint64_t> Arm64::argument(const Registers &regs, Memory &memory, unsigned n) {
    if (n < argument_registers) return regs.x[n];
    return memory.read_value<std::uint64_t>(sp(regs) + 8 * static_cast<std::int64_t>(n - argument_registers));
}

// A function that calls others saves x30 in its frame: gcc at the frame's lower end, clang at its upper one.
bool Arm64::is_on_stack(const Frame &frame, Memory &memory) {
    constexpr std::int64_t most = 16384, at_once = 1024;
    std::array<std::uint64_t, at_once / 8> words;
    for (VirtAddr at = frame.sp - at_once; frame.sp - at <= most; at = at - at_once) {
        const auto bytes = std::as_writable_bytes(std::span(words));
        if (memory.read(at, bytes) != bytes.size()) return false;
        if (std::ranges::any_of(words, [&](std::uint64_t word) { return code_address(word) == frame.return_address; }))
            return true;
    }
    return false;
}

std::optional<CallBefore> Arm64::call_before(std::span<const std::byte> code, VirtAddr end) {
    if (code.size() < a64_size) return std::nullopt;
    std::uint32_t word = a64_word(code, code.size() - a64_size);
    A64Form form = a64_form(word);
    switch (form) {
    case A64Form::branch_link: return CallBefore{a64_size, end - a64_size + *a64_displacement(word, form)};
    case A64Form::branch_link_register:
    case A64Form::branch_link_authenticated: return CallBefore{a64_size, std::nullopt};
    default: return std::nullopt;
    }
}

std::optional<VirtAddr> Arm64::plt_target_slot(std::span<const std::byte> code, VirtAddr at) {
    // [bti c] · adrp x16, page · ldr x17, [x16, #offset] · [add x16, x16, #offset] · [autia1716] · br x17
    Stub stub(code);
    stub.take(~0u, bti_c);
    if (!stub.take(0x9f00001f, 0x90000010)) return std::nullopt;
    std::uint64_t page = (at.value + stub.at()) & ~0xfffull;
    page += static_cast<std::uint64_t>(*a64_displacement(stub.word(), A64Form::adrp));
    if (!stub.take(0xffc003ff, 0xf9400211)) return std::nullopt;
    std::uint64_t slot = page + 8 * a64_field(stub.word(), 10, 12);
    stub.take(0xffc003ff, 0x91000210);
    stub.take(~0u, autia1716);
    if (!stub.take(~0u, 0xd61f0220) && !stub.take(~0u, branch_authenticated_x17_x16)) return std::nullopt;
    return VirtAddr{slot};
}

} // namespace ktrace::arch
