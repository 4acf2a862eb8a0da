// __errno_location adds a constant, or the number in a slot, to the thread pointer, in one of these orders:
//
//     adrp xN, PAGE                  mrs xM, tpidr_el0
//     ldr xN, [xN, OFFSET]           add x0, xM, HIGH, lsl 12     (or not there)
//     mrs xM, tpidr_el0              add x0, x0, LOW              (or not there)
//     add x0, xM, xN                 ret
//     ret
//
// The linker makes of the left one, in a static program, `movz xN, HIGH, lsl 16; movk xN, LOW` in place of adrp and
// ldr. The mrs may be anywhere before the add, a landing pad for branches before all.
#include "arm64/errno_location.h"

#include "arm64/words.h"

namespace ktrace::arch {

namespace {

constexpr std::uint32_t read_thread_pointer = 0xd53bd040, ret = 0xd65f03c0, bti_c = 0xd503245f;
constexpr std::size_t most_words = 8;

bool is_form(std::uint32_t word, std::uint32_t mask, std::uint32_t value) { return (word & mask) == value; }

/// The contents of registers, by the instructions so far.
struct Seen {
    std::optional<std::uint32_t> thread_pointer, loaded; // register numbers
    std::optional<std::uint64_t> constant;               // in `loaded`
    std::optional<std::uint64_t> page;
    std::optional<VirtAddr> slot;
    std::int64_t offset = 0;
    bool is_sum = false; // x0 is the address
};

/// False: it is none of those above.
bool take(std::uint32_t word, VirtAddr at, Seen &seen) {
    const std::uint32_t rd = a64_field(word, 0, 5), rn = a64_field(word, 5, 5);
    if (is_form(word, 0xffffffe0, read_thread_pointer)) {
        seen.thread_pointer = rd;
    } else if (is_form(word, 0x9f000000, 0x90000000)) { // adrp
        seen.page =
            (at.value & ~std::uint64_t{0xfff}) + static_cast<std::uint64_t>(*a64_displacement(word, A64Form::adrp));
    } else if (is_form(word, 0xffc00000, 0xf9400000) && seen.page && !seen.constant) { // ldr xN, [xN, imm]
        seen.slot = VirtAddr{*seen.page + 8 * a64_field(word, 10, 12)};
        seen.loaded = rd;
    } else if (is_form(word, 0xffe00000, 0xd2a00000) && !seen.slot) { // movz xN, HIGH, lsl 16
        seen.constant = std::uint64_t{a64_field(word, 5, 16)} << 16;
        seen.loaded = rd;
    } else if (is_form(word, 0xffe00000, 0xf2800000) && seen.constant && seen.loaded == rd) { // movk xN, LOW
        *seen.constant |= a64_field(word, 5, 16);
    } else if (is_form(word, 0xffe0fc00, 0x8b000000) && seen.thread_pointer && seen.loaded) { // add x0, xM, xN
        const std::uint32_t rm = a64_field(word, 16, 5);
        seen.is_sum = rd == 0 && ((rn == *seen.thread_pointer && rm == *seen.loaded) ||
                                  (rm == *seen.thread_pointer && rn == *seen.loaded));
        seen.offset = static_cast<std::int64_t>(seen.constant.value_or(0));
        return seen.is_sum;
    } else if (is_form(word, 0xff800000, 0x91000000) && seen.thread_pointer && !seen.slot) { // add x0, xM, imm
        if (rn != *seen.thread_pointer) return false;
        seen.offset += static_cast<std::int64_t>(a64_field(word, 10, 12)) << (a64_field(word, 22, 1) != 0 ? 12 : 0);
        seen.thread_pointer = rd;
        seen.is_sum = rd == 0;
    } else {
        return false;
    }
    return true;
}

} // namespace

std::optional<ErrnoOffset> Arm64Errno::offset(std::span<const std::byte> code, VirtAddr at) {
    Seen seen;
    for (std::size_t i = 0; i < most_words && (i + 1) * a64_size <= code.size(); i++) {
        const std::uint32_t word = a64_word(code, i * a64_size);
        if (word == ret) return seen.is_sum ? std::optional(ErrnoOffset{seen.offset, seen.slot}) : std::nullopt;
        if (i == 0 && word == bti_c) continue;
        if (!take(word, at + static_cast<std::int64_t>(i * a64_size), seen)) return std::nullopt;
    }
    return std::nullopt;
}

} // namespace ktrace::arch
