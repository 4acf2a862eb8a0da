// Programs of call frame information: what compilers write is tame, what makes libdw take memory without end is not.
#include <vector>

#include <dwarf.h>
#include <gtest/gtest.h>

#include "symbols/elf/unwind_guard.h"

namespace ktrace::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

bool tame(const Bytes &program) { return symbols::is_tame_program(program, DW_EH_PE_pcrel | DW_EH_PE_sdata4); }

TEST(CallFrameGuard, TakesWhatCompilersWrite) {
    EXPECT_TRUE(tame({}));
    EXPECT_TRUE(tame({DW_CFA_def_cfa, 7, 8, DW_CFA_offset | 16, 1, DW_CFA_nop, DW_CFA_nop}));
    EXPECT_TRUE(tame({DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 16, DW_CFA_offset | 6, 2, DW_CFA_remember_state,
                      DW_CFA_advance_loc1, 20, DW_CFA_restore | 6, DW_CFA_restore_state}));
    EXPECT_TRUE(tame({DW_CFA_set_loc, 1, 2, 3, 4, DW_CFA_expression, 16, 2, DW_OP_breg7, 0, DW_CFA_GNU_args_size, 32}));
    EXPECT_TRUE(tame({DW_CFA_def_cfa_expression, 3, DW_OP_breg7, 0xff, 0x7f, DW_CFA_undefined, 0xff, 0x07})); // 1023
}

TEST(CallFrameGuard, RefusesRegistersWithHugeNumbers) {
    EXPECT_FALSE(tame({DW_CFA_undefined, 0x80, 0x08})); // 1024
    EXPECT_FALSE(tame({DW_CFA_register, 3, 0xff, 0xff, 0xff, 0xff, 0x0f}));
    EXPECT_FALSE(tame({DW_CFA_offset_extended_sf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 8}));
    EXPECT_FALSE(tame({DW_CFA_same_value, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02}));
}

TEST(CallFrameGuard, RefusesManyRememberedStates) {
    Bytes program(symbols::most_remembered, DW_CFA_remember_state);
    EXPECT_TRUE(tame(program));
    program.push_back(DW_CFA_remember_state);
    EXPECT_FALSE(tame(program));
    Bytes balanced;
    for (int i = 0; i < 1000; i++) balanced.insert(balanced.end(), {DW_CFA_remember_state, DW_CFA_restore_state});
    EXPECT_TRUE(tame(balanced));
}

TEST(CallFrameGuard, RefusesWhatItCannotRead) {
    EXPECT_FALSE(tame({DW_CFA_def_cfa, 7}));
    EXPECT_FALSE(tame({DW_CFA_advance_loc4, 1, 2, 3}));
    EXPECT_FALSE(tame({DW_CFA_expression, 16, 200, 0}));
    EXPECT_FALSE(tame({0x1e})); // it has no meaning
}

} // namespace
} // namespace ktrace::test
