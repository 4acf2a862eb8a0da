// Unwind (unwind.h): the walk from frame to frame, and the operations of call frame information.
#include "symbols/unwind/unwind.h"

#include <algorithm>
#include <array>
#include <optional>

#include <dwarf.h>

#include "symbols/unwind/stack_pages.h"
#include "symbols/unwind/unwind_rules.h"

namespace ktrace::symbols {

using arch::Host;
using Values = std::array<std::optional<std::uint64_t>, frame_registers>; // by DWARF number

/// The registers of a frame, and where it is.
struct Frame {
    Values values;
    std::uint64_t pc = 0;
    bool is_call = false;         // pc is behind a call instruction
    std::uint64_t callee_cfa = 0; // of the frame that it was found from

    std::optional<std::uint64_t> sp() const { return values[static_cast<unsigned>(Host::stack_pointer_dwarf)]; }
};

namespace {

Frame innermost(const Host::Registers &registers) {
    Frame frame;
    frame.pc = Host::pc(registers).value;
    for (const arch::RegisterInfo &info : Host::registers()) {
        bool is_general = info.file == arch::RegisterInfo::File::general && info.width == sizeof(std::uint64_t);
        if (!is_general || info.dwarf < 0 || info.dwarf >= static_cast<int>(frame_registers)) continue;
        std::uint64_t value;
        std::memcpy(&value, reinterpret_cast<const std::byte *>(&registers) + info.offset, sizeof value);
        frame.values[static_cast<unsigned>(info.dwarf)] = value;
    }
    return frame;
}

/// The stack machine of call frame expressions: address arithmetic, no branches (none are used there).
class Machine {
  public:
    Machine(const Values &values, Memory &memory, std::optional<std::uint64_t> cfa)
        : values_(values), memory_(memory), cfa_(cfa) {}

    std::optional<std::uint64_t> run(const std::vector<Dwarf_Op> &ops) {
        for (const Dwarf_Op &op : ops)
            if (!step(op) || size_ > most) return std::nullopt;
        return pop();
    }

  private:
    static constexpr std::size_t most = 64;

    bool push(std::optional<std::uint64_t> value) {
        if (!value || size_ == most) return false;
        stack_[size_++] = *value;
        return true;
    }
    std::optional<std::uint64_t> pop() {
        if (size_ == 0) return std::nullopt;
        return stack_[--size_];
    }
    std::optional<std::uint64_t> relative(std::uint64_t reg, std::uint64_t offset) const {
        if (reg >= frame_registers || !values_[reg]) return std::nullopt;
        return *values_[reg] + offset;
    }
    std::optional<std::uint64_t> pick(std::uint64_t below) const {
        if (below >= size_) return std::nullopt;
        return stack_[size_ - 1 - below];
    }
    std::optional<std::uint64_t> load(std::uint64_t size) {
        auto address = pop();
        std::uint64_t value = 0;
        if (!address || size == 0 || size > sizeof value) return std::nullopt;
        auto into = std::as_writable_bytes(std::span(&value, 1)).first(size);
        if (memory_.read(VirtAddr{*address}, into) != size) return std::nullopt;
        return value;
    }

    bool step(const Dwarf_Op &op) {
        std::uint8_t atom = op.atom;
        if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31) return push(atom - std::uint64_t{DW_OP_lit0});
        if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) return push(relative(atom - unsigned{DW_OP_breg0}, op.number));
        switch (atom) {
        case DW_OP_addr:
        case DW_OP_const1u:
        case DW_OP_const1s:
        case DW_OP_const2u:
        case DW_OP_const2s:
        case DW_OP_const4u:
        case DW_OP_const4s:
        case DW_OP_const8u:
        case DW_OP_const8s:
        case DW_OP_constu:
        case DW_OP_consts: return push(op.number);
        case DW_OP_bregx: return push(relative(op.number, op.number2));
        case DW_OP_call_frame_cfa: return push(cfa_);
        case DW_OP_deref: return push(load(sizeof(std::uint64_t)));
        case DW_OP_deref_size: return push(load(op.number));
        case DW_OP_dup: return push(pick(0));
        case DW_OP_over: return push(pick(1));
        case DW_OP_pick: return push(pick(op.number));
        case DW_OP_drop: return pop().has_value();
        case DW_OP_nop: return true;
        case DW_OP_plus_uconst: {
            auto a = pop();
            return a && push(*a + op.number);
        }
        case DW_OP_swap: {
            auto b = pop(), a = pop();
            return a && b && push(*b) && push(*a);
        }
        default: {
            auto b = pop(), a = pop();
            return a && b && push(combine(atom, *a, *b));
        }
        }
    }

    static std::optional<std::uint64_t> combine(std::uint8_t atom, std::uint64_t a, std::uint64_t b) {
        auto sa = static_cast<std::int64_t>(a), sb = static_cast<std::int64_t>(b);
        switch (atom) {
        case DW_OP_plus: return a + b;
        case DW_OP_minus: return a - b;
        case DW_OP_mul: return a * b;
        case DW_OP_and: return a & b;
        case DW_OP_or: return a | b;
        case DW_OP_xor: return a ^ b;
        case DW_OP_shl: return b < 64 ? a << b : 0;
        case DW_OP_shr: return b < 64 ? a >> b : 0;
        case DW_OP_eq: return a == b;
        case DW_OP_ne: return a != b;
        case DW_OP_ge: return sa >= sb;
        case DW_OP_gt: return sa > sb;
        case DW_OP_le: return sa <= sb;
        case DW_OP_lt: return sa < sb;
        default: return std::nullopt;
        }
    }

    const Values &values_;
    Memory &memory_;
    std::optional<std::uint64_t> cfa_;
    std::array<std::uint64_t, most> stack_{};
    std::size_t size_ = 0;
};

std::optional<std::uint64_t> caller_value(const RegisterRule &rule, const Frame &frame, Memory &memory,
                                          std::uint64_t cfa) {
    auto load = [&memory](std::optional<std::uint64_t> address) {
        return address ? memory.read_value<std::uint64_t>(VirtAddr{*address}) : std::nullopt;
    };
    std::uint64_t at = cfa + static_cast<std::uint64_t>(rule.number);
    switch (rule.kind) {
    case RegisterRule::Kind::undefined: return std::nullopt;
    case RegisterRule::Kind::at_cfa: return load(at);
    case RegisterRule::Kind::cfa: return at;
    case RegisterRule::Kind::register_:
        if (rule.number < 0 || rule.number >= static_cast<std::int64_t>(frame_registers)) return std::nullopt;
        return frame.values[static_cast<std::size_t>(rule.number)];
    case RegisterRule::Kind::at_address: return load(Machine(frame.values, memory, cfa).run(rule.ops));
    case RegisterRule::Kind::value: return Machine(frame.values, memory, cfa).run(rule.ops);
    }
    return std::nullopt;
}

/// The caller of a frame by its rules; nothing where the rules say that it has none, or memory cannot be read.
std::optional<Frame> by_rules(const FrameRules &rules, const Frame &frame, Memory &memory) {
    std::optional<std::uint64_t> cfa;
    if (!rules.cfa_ops.empty())
        cfa = Machine(frame.values, memory, std::nullopt).run(rules.cfa_ops);
    else if (frame.values[rules.cfa_register])
        cfa = *frame.values[rules.cfa_register] + static_cast<std::uint64_t>(rules.cfa_offset);
    if (!cfa) return std::nullopt;
    Frame caller;
    caller.callee_cfa = *cfa;
    caller.values = frame.values;
    for (const RegisterRule &rule : rules.registers) caller.values[rule.reg] = caller_value(rule, frame, memory, *cfa);
    if (!rules.restores_sp) // 6.4.1: the CFA is the caller's sp
        caller.values[static_cast<unsigned>(Host::stack_pointer_dwarf)] = *cfa;
    auto pc = caller.values[rules.return_address];
    if (!pc || *pc == 0) return std::nullopt;
    caller.pc = Host::code_address(*pc).value;
    caller.is_call = !rules.is_signal_frame;
    bool progresses = rules.is_signal_frame || (frame.sp() && caller.sp() && *caller.sp() >= *frame.sp() &&
                                                (*caller.sp() > *frame.sp() || caller.pc != frame.pc));
    return progresses ? std::optional(caller) : std::nullopt;
}

/// True where the rules need a register of the frame whose value is not known.
bool lacks_register(const FrameRules &rules, const Frame &frame) {
    auto is_known = [&frame](std::uint64_t reg) { return reg < frame_registers && frame.values[reg].has_value(); };
    auto lacks = [&is_known](const std::vector<Dwarf_Op> &ops) {
        return std::any_of(ops.begin(), ops.end(), [&is_known](const Dwarf_Op &op) {
            if (op.atom == DW_OP_bregx) return !is_known(op.number);
            return op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31 && !is_known(op.atom - unsigned{DW_OP_breg0});
        });
    };
    if (rules.cfa_ops.empty() ? !is_known(rules.cfa_register) : lacks(rules.cfa_ops)) return true;
    for (const RegisterRule &rule : rules.registers) {
        if (rule.reg != rules.return_address) continue;
        if (rule.kind == RegisterRule::Kind::register_) return !is_known(static_cast<std::uint64_t>(rule.number));
        return lacks(rule.ops);
    }
    return !is_known(rules.return_address); // it still is where it was at the call
}

/// The caller of a function that is at its first instruction: nothing of it lies on the stack yet.
std::optional<Frame> by_return_address(const Host::Registers &registers, const Frame &frame, Memory &memory) {
    auto to = Host::return_address(registers, memory);
    if (!to || to->value == 0 || !frame.sp()) return std::nullopt;
    Frame caller;
    caller.values = frame.values;
    caller.pc = to->value;
    caller.is_call = true;
    caller.callee_cfa = *frame.sp() + static_cast<std::uint64_t>(Host::return_pop);
    caller.values[static_cast<unsigned>(Host::stack_pointer_dwarf)] = caller.callee_cfa;
    return caller;
}

/// The frame that a signal interrupted, where `frame` is the code that its handler returns to.
std::optional<Frame> by_signal_frame(const Frame &frame, Memory &memory) {
    const std::span<const std::byte> wanted = Host::signal_trampoline();
    std::array<std::byte, 16> code;
    const auto there = std::span(code).first(std::min(wanted.size(), code.size()));
    if (!frame.is_call || !frame.sp() || memory.read(VirtAddr{frame.pc}, there) != there.size()) return std::nullopt;
    if (!std::equal(wanted.begin(), wanted.end(), there.begin(), there.end())) return std::nullopt;
    const auto registers = Host::interrupted(VirtAddr{*frame.sp()}, memory);
    if (!registers || Host::pc(*registers).value == 0) return std::nullopt;
    Frame caller = innermost(*registers);
    caller.callee_cfa = *frame.sp();
    return caller;
}

/// The caller by the frame pointer, which points at the caller's frame pointer and, behind it, the return address.
std::optional<Frame> by_frame_pointer(const Frame &frame, Memory &memory) {
    constexpr std::uint64_t farthest = 8U << 20; // from the stack pointer
    constexpr unsigned fp_register = Host::frame_pointer_dwarf;
    auto fp = frame.values[fp_register], sp = frame.sp();
    bool sound = fp && sp && *fp % 8 == 0 && *fp >= *sp && *fp - *sp < farthest;
    if (!sound) return std::nullopt;
    auto caller_fp = memory.read_value<std::uint64_t>(VirtAddr{*fp});
    auto pc = memory.read_value<std::uint64_t>(VirtAddr{*fp + 8});
    if (!caller_fp || !pc || *pc == 0) return std::nullopt;
    Frame caller;
    caller.pc = Host::code_address(*pc).value;
    caller.is_call = true;
    caller.callee_cfa = *fp + 16;
    caller.values[fp_register] = *caller_fp;
    caller.values[static_cast<unsigned>(Host::stack_pointer_dwarf)] = caller.callee_cfa;
    return caller;
}

/// False where a frame pointer that was not one led to an address that is no code. Generated code calls generated code.
bool is_code(std::uint64_t address, const ModuleAt &callee, Memory &memory, const ModuleFinder &find) {
    if (find(VirtAddr{address}).module) return true;
    return !callee.module && memory.read_value<std::uint8_t>(VirtAddr{address}).has_value();
}

bool is_first_instruction(const ModuleAt &at, std::uint64_t pc) {
    if (!at.module) return false;
    const Symbol *symbol = at.module->covering(pc - at.bias);
    return symbol != nullptr && symbol->vaddr == pc - at.bias;
}

} // namespace

Unwinder::Unwinder() : pages_(std::make_unique<StackPages>()) {}
Unwinder::~Unwinder() = default;

CallFrames *Unwinder::frames_of(const ModuleAt &at) {
    if (!at.module) return nullptr;
    auto &frames = by_module_[at.module.get()];
    if (!frames) frames = std::make_unique<CallFrames>(at.module);
    return frames.get();
}

/// A stack that is being unwound.
struct Unwinder::Walk {
    Frame frame;
    const Host::Registers *registers = nullptr; // of the innermost frame; nullptr: pc and sp alone are known
    bool lacks = false;                         // it ended where a register was not known
};

std::size_t Unwinder::unwind(const Host::Registers &registers, Memory &memory, const ModuleFinder &find,
                             std::span<StackFrame> into) {
    Walk walk{innermost(registers), &registers};
    return go(walk, memory, find, into);
}

Unwound Unwinder::unwind(VirtAddr pc, VirtAddr sp, Memory &memory, const ModuleFinder &find,
                         std::span<StackFrame> into) {
    Walk walk;
    walk.frame.pc = pc.value;
    walk.frame.values[static_cast<unsigned>(Host::stack_pointer_dwarf)] = sp.value;
    const std::size_t frames = go(walk, memory, find, into);
    return {frames, walk.lacks};
}

std::size_t Unwinder::go(Walk &walk, Memory &memory, const ModuleFinder &find, std::span<StackFrame> into) {
    if (into.empty()) return 0;
    StackPages &stack = *pages_;
    stack.begin(memory);
    Frame &frame = walk.frame;
    std::size_t count = 0;
    into[count++] = {frame.pc, false, 0};
    while (true) {
        // A return address may lie behind the end of a function that never returns: look at the call.
        std::uint64_t looked_at = frame.pc - (frame.is_call ? 1 : 0);
        ModuleAt at = find(VirtAddr{looked_at});
        CallFrames *frames = frames_of(at);
        const FrameRules *rules = frames != nullptr ? frames->at(looked_at - at.bias) : nullptr;
        std::optional<Frame> caller;
        if (rules != nullptr)
            caller = by_rules(*rules, frame, stack);
        else if (count == 1 && walk.registers && is_first_instruction(at, frame.pc))
            caller = by_return_address(*walk.registers, frame, stack);
        else if (caller = by_signal_frame(frame, memory); !caller)
            caller = by_frame_pointer(frame, stack);
        if (!caller) {
            walk.lacks = rules != nullptr ? lacks_register(*rules, frame) : !frame.values[Host::frame_pointer_dwarf];
            break;
        }
        if (rules == nullptr && !is_code(caller->pc - (caller->is_call ? 1 : 0), at, stack, find)) break;
        into[count - 1].cfa = caller->callee_cfa;
        if (count == into.size()) break;
        frame = *caller;
        into[count++] = {frame.pc, frame.is_call, 0};
    }
    return count;
}

void Unwinder::forget_unused() {
    std::erase_if(by_module_, [](const auto &each) { return each.second->is_unused(); });
}

} // namespace ktrace::symbols
