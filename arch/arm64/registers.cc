// The register table of arm64: names of the kernel's user_pt_regs, DWARF numbers of AADWARF64 (4.1).
#include "arm64/arm64.h"

#include <array>

namespace ktrace::arch {

namespace {

using File = RegisterInfo::File;

constexpr std::string_view x_names[31] = {"x0",  "x1",  "x2",  "x3",  "x4",  "x5",  "x6",  "x7",  "x8",  "x9",  "x10",
                                          "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
                                          "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30"};
constexpr std::string_view v_names[32] = {"v0",  "v1",  "v2",  "v3",  "v4",  "v5",  "v6",  "v7",  "v8",  "v9",  "v10",
                                          "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21",
                                          "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"};
constexpr std::string_view q_names[32] = {"q0",  "q1",  "q2",  "q3",  "q4",  "q5",  "q6",  "q7",  "q8",  "q9",  "q10",
                                          "q11", "q12", "q13", "q14", "q15", "q16", "q17", "q18", "q19", "q20", "q21",
                                          "q22", "q23", "q24", "q25", "q26", "q27", "q28", "q29", "q30", "q31"};

constexpr std::string_view x_alias(unsigned n) {
    if (n == 16) return "ip0";
    if (n == 17) return "ip1";
    if (n == 29) return "fp";
    if (n == 30) return "lr";
    return {};
}

constexpr std::size_t count = 31 + 4 + 32 + 2;

constexpr std::array<RegisterInfo, count> make_table() {
    std::array<RegisterInfo, count> table{};
    std::size_t next = 0;
    for (unsigned n = 0; n < 31; ++n)
        table[next++] = {x_names[n],
                         x_alias(n),
                         static_cast<int>(n),
                         File::general,
                         static_cast<std::uint16_t>(offsetof(Arm64Registers, x) + 8 * n),
                         8};
    table[next++] = {"sp", "", arm64_dwarf::sp, File::general, offsetof(Arm64Registers, sp), 8};
    table[next++] = {"pc", "", arm64_dwarf::pc, File::general, offsetof(Arm64Registers, pc), 8};
    table[next++] = {"pstate", "", -1, File::general, offsetof(Arm64Registers, pstate), 8};
    table[next++] = {"tpidr", "tpidr_el0", arm64_dwarf::tpidr, File::general, offsetof(Arm64Registers, tpidr), 8};
    for (unsigned n = 0; n < 32; ++n)
        table[next++] = {v_names[n],
                         q_names[n],
                         arm64_dwarf::v0 + static_cast<int>(n),
                         File::floating,
                         static_cast<std::uint16_t>(offsetof(Arm64FpRegisters, v) + 16 * n),
                         16};
    table[next++] = {"fpsr", "", -1, File::floating, offsetof(Arm64FpRegisters, fpsr), 4};
    table[next++] = {"fpcr", "", -1, File::floating, offsetof(Arm64FpRegisters, fpcr), 4};
    return table;
}

constexpr std::array<RegisterInfo, count> table = make_table();

} // namespace

std::span<const RegisterInfo> Arm64::registers() { return table; }

} // namespace ktrace::arch
