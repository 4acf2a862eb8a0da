// The encodings of A64 that matter to a tracer, as a table: first match wins.
#include "arm64/insn.h"

namespace ktrace::arch {

namespace {

using enum A64Form;

struct Encoding {
    std::uint32_t mask, value;
    A64Form form;
};

constexpr Encoding encodings[] = {
    // PC-relative addressing (C4.1.93.1)
    {0x9f000000, 0x10000000, adr},
    {0x9f000000, 0x90000000, adrp},
    // Branches
    {0xfc000000, 0x14000000, branch},
    {0xfc000000, 0x94000000, branch_link},
    {0xff000000, 0x54000000, branch_if}, // bit 4: bc.cond
    {0x7e000000, 0x34000000, compare},
    {0x7e000000, 0x36000000, test},
    {0xfffffc1f, 0xd61f0000, branch_register},
    {0xfffffc1f, 0xd63f0000, branch_link_register},
    {0xfffffc1f, 0xd65f0000, return_},
    {0xfffff81f, 0xd61f081f, branch_authenticated}, // braaz, brabz
    {0xfffff800, 0xd71f0800, branch_authenticated},
    {0xfffff81f, 0xd63f081f, branch_link_authenticated},
    {0xfffff800, 0xd73f0800, branch_link_authenticated},
    {0xfffffbe0, 0xd65f0be0, return_authenticated}, // Rm 31: retaa, retab; else retaasppc Xm
    {0xffdfffff, 0xd69f03e0, privileged},           // eret, drps (bit 21)
    {0xfffffbff, 0xd69f0bff, privileged},           // eretaa, eretab
    // Exception generation
    {0xffe0001f, 0xd4000001, svc},
    {0xffe0001f, 0xd4000002, privileged}, // hvc
    {0xffe0001f, 0xd4000003, privileged}, // smc
    {0xffe0001f, 0xd4200000, breakpoint},
    {0xffe0001f, 0xd4400000, halt},
    {0xffe0001f, 0xd4600000, transaction}, // tcancel
    {0xffe0001c, 0xd4a00000, privileged},  // dcps1-3
    // System
    {0xffffffe0, 0xd5031000, plain},           // wfet
    {0xffffffe0, 0xd5031020, plain},           // wfit
    {0xffffffff, 0xd50324ff, sign_prefix},     // pacm
    {0xfffff01f, 0xd503201f, plain},           // hints: nop, yield, wfe, bti, paciasp, …
    {0xfffff0ff, 0xd503305f, clear_exclusive}, // clrex
    {0xfffff0ff, 0xd503309f, plain},           // dsb
    {0xfffff0ff, 0xd50330bf, plain},           // dmb
    {0xfffff0ff, 0xd50330df, plain},           // isb
    {0xfffff3ff, 0xd503323f, plain},           // dsb nXS
    {0xffffffff, 0xd50330ff, plain},           // sb
    {0xffffffff, 0xd503307f, transaction},     // tcommit
    {0xfffffee0, 0xd5233060, transaction},     // tstart, ttest
    {0xfffff0ff, 0xd500401f, plain},           // cfinv
    {0xfffff0ff, 0xd500403f, plain},           // xaflag
    {0xfffff0ff, 0xd500405f, plain},           // axflag
    {0xfffff0ff, 0xd503403f, plain},           // msr ssbs
    {0xfffff0ff, 0xd503405f, plain},           // msr dit
    {0xfffff0ff, 0xd503407f, plain},           // smstart, smstop
    {0xfffff0ff, 0xd503409f, plain},           // msr tco
    {0xfff8f01f, 0xd500401f, privileged},      // msr (immediate) of all other fields: daifset, spsel, pan, …
    {0xfff80000, 0xd5080000, privileged},      // sys: EL0 may use op1 = 3 only, which is asked below
    {0xfff80000, 0xd5280000, privileged},      // sysl
    {0xfff00000, 0xd5100000, privileged},      // msr
    {0xfff00000, 0xd5300000, privileged},      // mrs
    {0xffd00000, 0xd5400000, privileged},      // sysp (bit 19), msrr
    {0xffd00000, 0xd5500000, privileged},      // msrr, mrrs
    // Loads and stores
    {0xff000000, 0x18000000, literal_w},
    {0xff000000, 0x58000000, literal_x},
    {0xff000000, 0x98000000, literal_sw},
    {0xff000000, 0xd8000000, literal_prefetch},
    {0xff000000, 0x1c000000, literal_s},
    {0xff000000, 0x5c000000, literal_d},
    {0xff000000, 0x9c000000, literal_q},
    {0xff000000, 0xdc000000, unknown},
    {0x3ea00000, 0x08000000,
     store_exclusive}, // stxr, stlxr of all sizes; bit 22: load; bit 24: unprivileged (FEAT_LSUI)
    {0xbea00000, 0x88200000, store_exclusive}, // stxp, stlxp (bit 31 clear: casp)
    {0x3b200c00, 0x19000400, memory_operation},
    // SVE
    {0xfffffc00, 0x0420bc00, move_prefix},
    {0xff3ee000, 0x04102000, move_prefix}, // predicated
    // Data processing with the pc in it (FEAT_PAuth_LR)
    {0xffc0001f, 0xf380001f, sign_with_pc}, // autiasppc, autibsppc label
    {0xffffdbff, 0xdac183fe, sign_with_pc}, // paciasppc, pacibsppc, pacnbiasppc, pacnbibsppc
    {0xffc0001f, 0x5500001f, sign_with_pc}, // retaasppc, retabsppc label
    {0xffff0000, 0x00000000, undefined},
};

constexpr std::uint32_t load_bit = 1u << 22; // exclusives: a load

/// MRS, MSR, SYS, SYSL: may EL0 run it? By op1 (bits 18-16); ID registers (op0 3, op1 0, CRn 0) are read for it by
/// Linux.
bool for_user(std::uint32_t word) {
    if (a64_field(word, 22, 10) != 0x354 || a64_field(word, 19, 2) == 0) return false; // not these four
    bool is_mrs = a64_field(word, 20, 2) == 3;
    unsigned op1 = a64_field(word, 16, 3);
    return op1 == 3 || (is_mrs && op1 == 0 && a64_field(word, 19, 1) == 1 && a64_field(word, 12, 4) == 0);
}

/// An instruction that is in no row: by its group (bits 28-25; Arm ARM, C4.1).
A64Form form_by_group(std::uint32_t word) {
    switch (a64_field(word, 25, 4)) {
    case 0b0000: return (word >> 31) != 0 ? plain : unknown; // SME, else reserved
    case 0b0001:
    case 0b0011: return unknown; // unallocated
    case 0b1010:
    case 0b1011: return unknown; // branches, exception generation and system
    default: return plain;
    }
}

std::int64_t sign_extend(std::uint32_t value, unsigned bits) {
    std::int64_t sign = std::int64_t{1} << (bits - 1);
    return (static_cast<std::int64_t>(value) ^ sign) - sign;
}

} // namespace

A64Form a64_form(std::uint32_t word) {
    for (const Encoding &encoding : encodings) {
        if ((word & encoding.mask) != encoding.value) continue;
        if (encoding.form == store_exclusive && (word & load_bit) != 0) return load_exclusive;
        if (encoding.form == privileged && for_user(word)) return plain;
        return encoding.form;
    }
    return form_by_group(word);
}

std::optional<std::int64_t> a64_displacement(std::uint32_t word, A64Form form) {
    switch (form) {
    case adr: return sign_extend(a64_field(word, 5, 19) << 2 | a64_field(word, 29, 2), 21);
    case adrp: return sign_extend(a64_field(word, 5, 19) << 2 | a64_field(word, 29, 2), 21) * 4096;
    case branch:
    case branch_link: return sign_extend(a64_field(word, 0, 26), 26) * 4;
    case test: return sign_extend(a64_field(word, 5, 14), 14) * 4;
    case branch_if:
    case compare:
    case literal_w:
    case literal_x:
    case literal_sw:
    case literal_s:
    case literal_d:
    case literal_q:
    case literal_prefetch: return sign_extend(a64_field(word, 5, 19), 19) * 4;
    default: return std::nullopt;
    }
}

bool a64_condition_holds(unsigned condition, std::uint64_t pstate) {
    bool n = (pstate >> 31) & 1, z = (pstate >> 30) & 1, c = (pstate >> 29) & 1, v = (pstate >> 28) & 1;
    bool holds = false;
    switch (condition >> 1) {
    case 0: holds = z; break;            // eq, ne
    case 1: holds = c; break;            // cs, cc
    case 2: holds = n; break;            // mi, pl
    case 3: holds = v; break;            // vs, vc
    case 4: holds = c && !z; break;      // hi, ls
    case 5: holds = n == v; break;       // ge, lt
    case 6: holds = n == v && !z; break; // gt, le
    default: return true;                // al, nv
    }
    return (condition & 1) != 0 ? !holds : holds;
}

std::optional<std::uint32_t> a64_make_branch(std::int64_t displacement) {
    constexpr std::int64_t far = std::int64_t{1} << 27;
    if (displacement % 4 != 0 || displacement < -far || displacement >= far) return std::nullopt;
    return 0x14000000u | (static_cast<std::uint32_t>(displacement / 4) & 0x03ffffffu);
}

std::optional<std::uint32_t> a64_retarget_literal(std::uint32_t word, std::int64_t displacement) {
    constexpr std::int64_t far = std::int64_t{1} << 20;
    if (displacement % 4 != 0 || displacement < -far || displacement >= far) return std::nullopt;
    return (word & 0xff00001fu) | (static_cast<std::uint32_t>(displacement / 4) & 0x7ffffu) << 5;
}

} // namespace ktrace::arch
