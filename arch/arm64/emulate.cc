// The effects of arm64 instructions that read the pc, done on the registers.
#include "arm64/arm64.h"

#include "base/check.h"

namespace ktrace::arch {

namespace {

constexpr unsigned zero_register = 31;
constexpr std::uint64_t btype_mask = 3u << 10;
constexpr std::uint64_t btype_jump = 1u << 10; // by br from anywhere: any landing pad will do
constexpr std::uint64_t btype_call = 2u << 10; // left by blr: the target must be a landing pad for calls

std::uint64_t read(const Arm64Registers &regs, unsigned n) { return n == zero_register ? 0 : regs.x[n]; }

void write(Arm64Registers &regs, unsigned n, std::uint64_t value) {
    if (n != zero_register) regs.x[n] = value;
}

/// A branch to a register drops the tag in its top byte (BranchAddr; Linux has TBI on for EL0, instructions included).
std::uint64_t branch_address(std::uint64_t value) {
    constexpr std::uint64_t top_byte = 0xffull << 56;
    return (value >> 55 & 1) != 0 ? value | top_byte : value & ~top_byte;
}

bool branch_taken(const Arm64Plan &plan, const Arm64Registers &regs) {
    std::uint64_t value = read(regs, a64_field(plan.word, 0, 5));
    bool negated = a64_field(plan.word, 24, 1) != 0; // cbnz, tbnz
    switch (plan.form) {
    case A64Form::branch_if: return a64_condition_holds(a64_field(plan.word, 0, 4), regs.pstate);
    case A64Form::compare: {
        bool wide = plan.word >> 31 != 0;
        return ((wide ? value : value & 0xffffffff) != 0) == negated;
    }
    case A64Form::test: {
        unsigned bit = a64_field(plan.word, 31, 1) << 5 | a64_field(plan.word, 19, 5);
        return ((value >> bit & 1) != 0) == negated;
    }
    default: KT_CHECK(!"a branch"); return false;
    }
}

/// The value of a general register's literal at `literal`, extended to 64 bits; nothing where it cannot be read in
/// full. `readable`: how many bytes could be.
std::optional<std::uint64_t> load_literal(A64Form form, VirtAddr literal, Memory &memory, std::size_t &readable) {
    std::uint64_t value = 0;
    std::size_t size = form == A64Form::literal_x ? 8 : 4;
    readable = memory.read(literal, std::as_writable_bytes(std::span(&value, 1)).first(size));
    if (readable < size) return std::nullopt;
    if (form == A64Form::literal_sw)
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(value)));
    return value;
}

} // namespace

Emulated Arm64::emulate(const Plan &plan, VirtAddr site, Registers &regs, Memory &memory) {
    KT_CHECK(plan.method == Method::emulate);
    unsigned rt = a64_field(plan.word, 0, 5);
    VirtAddr next = site + plan.length, target = site + plan.displacement;
    VirtAddr pc = next;
    std::uint64_t btype = 0;

    switch (plan.form) {
    case A64Form::adr: write(regs, rt, target.value); break;
    case A64Form::adrp:
        write(regs, rt, (site.value & ~0xfffull) + static_cast<std::uint64_t>(plan.displacement));
        break;
    case A64Form::branch: pc = target; break;
    case A64Form::branch_register:
        pc = VirtAddr{branch_address(read(regs, a64_field(plan.word, 5, 5)))};
        btype = btype_jump;
        break;
    case A64Form::branch_link:
        write(regs, 30, next.value);
        pc = target;
        break;
    case A64Form::branch_link_register:
        pc = VirtAddr{branch_address(read(regs, a64_field(plan.word, 5, 5)))}; // before x30 changes: blr x30
        write(regs, 30, next.value);
        btype = btype_call;
        break;
    case A64Form::branch_if:
    case A64Form::compare:
    case A64Form::test:
        if (branch_taken(plan, regs)) pc = target;
        break;
    case A64Form::literal_w:
    case A64Form::literal_x:
    case A64Form::literal_sw: {
        std::size_t readable = 0;
        auto value = load_literal(plan.form, target, memory, readable);
        if (!value) return {Emulated::Outcome::fault, target + static_cast<std::int64_t>(readable)};
        write(regs, rt, *value);
        break;
    }
    case A64Form::literal_prefetch: break; // a hint
    default: KT_CHECK(!"emulated");
    }
    regs.pstate = (regs.pstate & ~btype_mask) | btype;
    regs.pc = pc.value;
    return {};
}

} // namespace ktrace::arch
