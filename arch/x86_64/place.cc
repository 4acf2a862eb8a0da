// Place: the bytes of a slot. A slot holds the copy of one instruction, with its pc-relative parts rewritten for where
// it now is, and, where control goes on behind it, a jump back to the instruction behind the site:
//
//     copy_at = 0: copy of the instruction | copy_end: jmp rel32 to site + length
//
// A jump through memory is a copy without the jump back. A call becomes a push of its return address and a jump:
//
//     push [rip + the return address, which lies behind] | jmp to the target, or *[target]
//
// So it is the processor that uses the program's memory, by the rights that the program has there, and waits or faults
// where that does; a task that faults in the jump has pushed already, and that is undone (abort_step). To write for it
// (/proc/PID/mem) would go over guard pages. No address of a slot is ever on the stack, and it is written once.
//
// Invariants: but for calls and jumps the copy is exactly as long as the original, so that offsets of its fields and
// the distance of its end from its start are the same; a slot is shared by threads, so nothing of a thread is in it.
#include "x86_64/x86_64.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "x86_64/general.h"

namespace ktrace::arch {

namespace {

constexpr std::size_t jump_size = 5; // e9 rel32
constexpr std::byte jump_opcode{0xe9};

bool fits32(std::int64_t value) {
    return value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max();
}

std::int32_t read32(const std::byte *at) {
    std::int32_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

void write32(std::byte *at, std::int32_t value) { std::memcpy(at, &value, sizeof value); }

/// A general register that the instruction does not touch and that needs neither a REX bit nor a SIB byte as a base. bp
/// comes last: as a base it means the stack segment, whose faults differ.
int scratch_register(std::uint16_t used) {
    for (int number : {0, 1, 2, 3, 6, 7, 5})
        if ((used & (1u << number)) == 0) return number;
    return -1;
}

/// Turns the copy's [rip + disp32] into [scratch + disp32]: ModRM.mod = 10, rm = scratch, the extension bit for rm 0-7.
void use_scratch(const x86::Insn &insn, int scratch, std::byte *copy) {
    std::byte &modrm = copy[insn.modrm_offset];
    modrm = (modrm & std::byte{0x38}) | std::byte{0x80} | static_cast<std::byte>(scratch);
    if (insn.extension.offset < 0) return;
    std::byte &holder = copy[insn.extension.offset];
    const std::byte mask{insn.extension.mask};
    holder = insn.extension.inverted ? holder | mask : holder & ~mask;
}

/// Rewrites a pc-relative operand for the copy at `to`.
void relocate_operand(const X86_64Plan &plan, VirtAddr site, VirtAddr to, Placement &placed) {
    const x86::Insn &insn = plan.insn;
    std::byte *displacement = placed.bytes + placed.copy_at + insn.displacement_offset;
    const std::int64_t moved = read32(displacement) + (site - to);
    // With a 32-bit address size the sum is truncated: every operand reaches.
    if (insn.address_size == 4 || fits32(moved)) {
        write32(displacement, static_cast<std::int32_t>(moved));
        return;
    }
    const int scratch = scratch_register(insn.used);
    if (scratch < 0) {
        placed.method = Method::refuse;
        placed.why = "its operand is too far from every free place, and it uses all registers";
        return;
    }
    use_scratch(insn, scratch, placed.bytes + placed.copy_at);
    placed.method = Method::step;
    placed.scratch = scratch;
    placed.scratch_value = (site + plan.length).value;
}

/// Rewrites the relative target (xbegin's) for the copy at `to`.
void relocate_target(const X86_64Plan &plan, VirtAddr to, Placement &placed) {
    const std::int64_t moved = *plan.target - (to + plan.length);
    if (plan.insn.relative_size != 4 || !fits32(moved)) {
        placed.method = Method::refuse;
        placed.why = "its target is too far from every free place";
        return;
    }
    write32(placed.bytes + placed.copy_at + plan.insn.relative_offset, static_cast<std::int32_t>(moved));
}

/// A boosted copy needs the jump. A stepped one is better with it: a step goes over two instructions after a load of
/// ss.
void append_jump_back(VirtAddr site_end, VirtAddr slot, Placement &placed) {
    const std::int64_t distance = site_end - (slot + placed.copy_end + static_cast<std::int64_t>(jump_size));
    if (!fits32(distance)) {
        if (placed.method == Method::boost) placed.method = Method::step;
        return;
    }
    placed.bytes[placed.copy_end] = jump_opcode;
    write32(placed.bytes + placed.copy_end + 1, static_cast<std::int32_t>(distance));
    placed.size = static_cast<std::uint8_t>(placed.copy_end + jump_size);
}

// -- calls, and jumps through memory --

constexpr int number_sp = 4;
constexpr std::int64_t word = 8; // what a call pushes

/// Appends to a slot.
class Writer {
  public:
    Writer(Placement &placed, VirtAddr slot) : placed_{placed}, slot_{slot} {}

    void bytes(std::initializer_list<unsigned> all) {
        for (unsigned one : all) placed_.bytes[placed_.size++] = static_cast<std::byte>(one);
    }
    void number32(std::uint64_t value) {
        write32(placed_.bytes + placed_.size, static_cast<std::int32_t>(static_cast<std::uint32_t>(value)));
        placed_.size += 4;
    }
    void number64(std::uint64_t value) {
        number32(value);
        number32(value >> 32);
    }
    VirtAddr at() const { return slot_ + placed_.size; }

  private:
    Placement &placed_;
    VirtAddr slot_;
};

/// Opcode ff with an operand in memory, once more: `moved` is added to its displacement. False: it does not reach.
bool write_jump_through_memory(Writer &writer, const X86_64Plan &plan, VirtAddr site, std::int64_t moved) {
    const x86::MemoryOperand &operand = *plan.insn.target_memory;
    const bool relative = operand.base == x86::register_ip, wraps = plan.insn.address_size == 4;
    const bool has_base = operand.base != x86::no_register && !relative;
    const bool has_index = operand.index != x86::no_register;
    if (operand.segment == x86::segment_fs) writer.bytes({0x64});
    if (operand.segment == x86::segment_gs) writer.bytes({0x65});
    if (wraps) writer.bytes({0x67});
    const unsigned high_base = has_base ? static_cast<unsigned>(operand.base) >> 3 : 0;
    const unsigned high_index = has_index ? static_cast<unsigned>(operand.index) >> 3 : 0;
    if (high_base || high_index) writer.bytes({0x40 | high_index << 1 | high_base});
    constexpr unsigned middle = 4 << 3; // ModRM.reg: a jump
    std::int64_t displacement = operand.displacement + moved;
    if (relative) {
        writer.bytes({0xff, middle | 5}); // [rip + disp32]
        displacement += (site + plan.length) - (writer.at() + 4);
    } else {
        // [base + index * scale + disp32], always with an SIB byte; without a base that is 5, with ModRM.mod = 0.
        const unsigned base = has_base ? static_cast<unsigned>(operand.base) & 7 : 5;
        const unsigned index = has_index ? static_cast<unsigned>(operand.index) & 7 : 4;
        const auto scale = static_cast<unsigned>(std::countr_zero(operand.scale));
        writer.bytes({0xff, (has_base ? 0x80 : 0x00) | middle | 4, scale << 6 | index << 3 | base});
    }
    writer.number32(static_cast<std::uint64_t>(displacement));
    return fits32(displacement) || wraps;
}

/// A jump to the target of a direct call or one through a register.
void write_jump(Writer &writer, const X86_64Plan &plan) {
    if (!plan.target) {
        const auto number = static_cast<unsigned>(plan.insn.target_register);
        if (number >= 8) writer.bytes({0x41});
        writer.bytes({0xff, 0xe0 | (number & 7)});
        return;
    }
    const std::int64_t distance = *plan.target - (writer.at() + static_cast<std::int64_t>(jump_size));
    if (fits32(distance)) {
        writer.bytes({0xe9});
        writer.number32(static_cast<std::uint64_t>(distance));
        return;
    }
    writer.bytes({0xff, 0x25, 0, 0, 0, 0}); // jmp *[rip + 0]
    writer.number64(plan.target->value);
}

/// Is the target one that the push takes away?
bool is_changed_by_push(const x86::Insn &insn) {
    if (!insn.target_memory) return insn.target_register == number_sp;
    const x86::MemoryOperand &operand = *insn.target_memory;
    const bool is_near_top = operand.base == number_sp && operand.displacement > -2 * word && operand.displacement < 0;
    return is_near_top && operand.segment == x86::no_register;
}

/// The slot of a call, or of a jump through memory. False: it can only be emulated.
bool place_transfer(const X86_64Plan &plan, VirtAddr site, VirtAddr slot, Placement &placed) {
    const bool pushes = plan.insn.kind == x86::Kind::call;
    Writer writer(placed, slot);
    if (pushes && is_changed_by_push(plan.insn)) return false;
    if (pushes) writer.bytes({0xff, 0x35, 0, 0, 0, 0}); // push [rip + to what lies behind the jump]
    const std::uint8_t pushed_at = placed.size;
    if (!plan.insn.target_memory)
        write_jump(writer, plan);
    else if (!write_jump_through_memory(writer, plan, site,
                                        pushes && plan.insn.target_memory->base == number_sp ? word : 0))
        return false;
    if (pushes) {
        write32(placed.bytes + pushed_at - 4, placed.size - pushed_at);
        writer.number64((site + plan.length).value);
    }
    placed.method = Method::boost;
    placed.copy_end = placed.size;
    placed.pushed = pushes ? word : 0;
    return true;
}

} // namespace

Placement X86_64::place(const Plan &plan, VirtAddr site, VirtAddr slot) {
    Placement placed;
    placed.method = plan.method;
    placed.why = plan.why;
    if (plan.method == Method::emulate && plan.uses_memory && !place_transfer(plan, site, slot, placed))
        placed.size = 0;
    if (plan.method == Method::refuse || plan.method == Method::emulate) return placed;

    std::copy_n(plan.bytes, plan.length, placed.bytes + placed.copy_at);
    placed.copy_end = static_cast<std::uint8_t>(placed.copy_at + plan.length);
    placed.size = placed.copy_end;
    placed.sets_trap_flag = plan.insn.kind == x86::Kind::pop_flags;
    if (plan.insn.displacement_offset != 0) relocate_operand(plan, site, slot + placed.copy_at, placed);
    if (plan.insn.relative_size != 0) relocate_target(plan, slot + placed.copy_at, placed);
    if (plan.flow != Flow::ret) append_jump_back(site + plan.length, slot, placed);
    KT_CHECK(placed.size <= slot_size);
    return placed;
}

SlotPosition X86_64::slot_position(const Placement &placed, VirtAddr slot, VirtAddr pc) {
    if (placed.size == 0 || pc < slot) return SlotPosition::elsewhere;
    const std::uint64_t offset = static_cast<std::uint64_t>(pc - slot);
    if (offset <= placed.copy_at) return SlotPosition::at_start;
    if (offset < placed.copy_end) return SlotPosition::inside;
    // Without a jump back the pc may stand right behind the copy, but not further.
    return offset < std::max<std::size_t>(placed.size, placed.copy_end + 1u) ? SlotPosition::after
                                                                             : SlotPosition::elsewhere;
}

} // namespace ktrace::arch
