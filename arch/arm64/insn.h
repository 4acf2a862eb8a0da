// A64 instructions, classified by the questions that probing asks: does it depend on its own address, does it leave the
// straight line, may anything come between it and its neighbours. Encodings: Arm Architecture Reference Manual, C4.1.
//
// Invariant: an instruction of the group "branches, exception generation and system" is known by name or it is
// Form::unknown (which is refused), since only that group, the literals and adr read the pc. In the other groups
// whatever is not named is plain.
#pragma once

#include <cstdint>
#include <optional>

namespace ktrace::arch {

inline constexpr std::size_t a64_size = 4; // bytes of every instruction

/// An instruction, as a tracer sees it.
enum class A64Form : std::uint8_t {
    plain, // reads no pc and goes on behind itself
    // pc-relative, and control flow
    adr,
    adrp,
    branch,      // b
    branch_link, // bl
    branch_if,   // b.cond, bc.cond
    compare,     // cbz, cbnz
    test,        // tbz, tbnz
    branch_register,
    branch_link_register,
    return_,
    branch_authenticated, // braa, brab, braaz, brabz
    branch_link_authenticated,
    return_authenticated, // retaa, retab, and with a register as second modifier (FEAT_PAuth_LR)
    literal_w,
    literal_x,
    literal_sw, // ldrsw
    literal_s,
    literal_d,
    literal_q,
    literal_prefetch,
    svc,
    // what cannot be probed
    breakpoint,
    halt,
    privileged,
    transaction,
    load_exclusive,
    store_exclusive,
    clear_exclusive,  // can be probed, but ends an exclusive sequence
    move_prefix,      // SVE movprfx
    memory_operation, // FEAT_MOPS: cpyp, cpym, cpye, setp, setm, sete
    sign_with_pc,     // FEAT_PAuth_LR: the pc goes into a signature
    sign_prefix,      // pacm: makes the next instruction one of those
    undefined,        // udf
    unknown,
};

A64Form a64_form(std::uint32_t word);

/// The signed displacement in bytes of a pc-relative instruction from its own address (adrp: from the page of its
/// address); nothing for other forms.
std::optional<std::int64_t> a64_displacement(std::uint32_t word, A64Form form);

/// `bits` of the word from bit `low` on.
constexpr std::uint32_t a64_field(std::uint32_t word, unsigned low, unsigned bits) {
    return (word >> low) & ((1u << bits) - 1);
}

/// ConditionHolds (Arm ARM, shared pseudocode) for a 4-bit condition and the flags in bits 31-28 of pstate.
bool a64_condition_holds(unsigned condition, std::uint64_t pstate);

/// `b` with this displacement; nothing where it is out of reach (-128 MB to 128 MB - 4) or not a multiple of 4.
std::optional<std::uint32_t> a64_make_branch(std::int64_t displacement);

/// The same load of a literal with another displacement; nothing out of reach (-1 MB to 1 MB - 4).
std::optional<std::uint32_t> a64_retarget_literal(std::uint32_t word, std::int64_t displacement);

} // namespace ktrace::arch
