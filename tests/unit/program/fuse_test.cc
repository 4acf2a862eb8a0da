#include "program/lower/fuse.h"

#include <gtest/gtest.h>

namespace ktrace::program {
namespace {

Instr op(Opcode which, std::int64_t imm = 0) {
    Instr made{.op = which};
    made.imm = imm;
    return made;
}
Instr reg(std::uint32_t offset, std::uint8_t size, bool is_signed) {
    Instr made{.op = Opcode::push_register, .size = size, .is_signed = is_signed};
    made.index = offset;
    return made;
}

std::vector<Opcode> ops(const Instrs &code) {
    std::vector<Opcode> all;
    for (const Instr &each : code) all.push_back(each.op);
    return all;
}

TEST(Fuse, ComparisonOfARegisterIsOneInstruction) {
    const Instrs made =
        fuse({reg(8, 4, true), op(Opcode::push, 3), op(Opcode::swap), op(Opcode::lt_s), op(Opcode::truth)});
    ASSERT_EQ(made.size(), 1u);
    EXPECT_EQ(made[0].op, Opcode::compare_register);
    EXPECT_EQ(static_cast<Opcode>(made[0].reg), Opcode::lt_s);
    EXPECT_EQ(std::tuple(made[0].index, made[0].size, made[0].is_signed, made[0].is_float, made[0].imm),
              std::tuple(8u, 4, true, true, 3))
        << "3 < register";
}

TEST(Fuse, NarrowedRegister) {
    Instr narrow = op(Opcode::narrow);
    narrow.size = 2;
    narrow.is_signed = true;
    const Instrs made = fuse({reg(16, 8, false), narrow});
    ASSERT_EQ(made.size(), 1u);
    EXPECT_EQ(std::tuple(made[0].size, made[0].is_signed), std::tuple(2, true));
    narrow.size = 8;
    EXPECT_EQ(fuse({reg(16, 4, false), narrow}).size(), 2u) << "that widens it";
}

TEST(Fuse, JumpsLeadWhereTheyDid) {
    // a > 3 && b: and_else over the second operand
    const Instrs made = fuse({reg(8, 8, true), op(Opcode::push, 3), op(Opcode::swap), op(Opcode::lt_s),
                              op(Opcode::truth), op(Opcode::and_else, 2), reg(16, 8, true), op(Opcode::truth)});
    EXPECT_EQ(ops(made),
              (std::vector{Opcode::compare_register, Opcode::and_else, Opcode::push_register, Opcode::truth}));
    EXPECT_EQ(made[1].imm, 2) << "the end";
}

TEST(Fuse, NothingIsFusedOverTheTargetOfAJump) {
    const Instrs code = {op(Opcode::jump, 1), op(Opcode::push, 3), op(Opcode::lt_s)};
    EXPECT_EQ(fuse(code).size(), 3u);
    const Instrs back = {reg(8, 8, false), op(Opcode::push, 1), op(Opcode::add), op(Opcode::jump, -3)};
    const Instrs made = fuse(back);
    ASSERT_EQ(made.size(), 4u);
    EXPECT_EQ(made[3].imm, -3);
}

} // namespace
} // namespace ktrace::program
