// Plan: which method gets over an instruction. Near transfers of control are emulated, for their targets and pushed
// return addresses are pc-relative; those that use memory only where nothing in a slot does the same (place.cc).
// Instructions that show or take the slot's address in another way are stepped, run as a system call, or refused;
// everything else runs from a copy.
#include "x86_64/x86_64.h"

#include <algorithm>

namespace ktrace::arch {

namespace {

using x86::Insn;
using x86::Kind;

/// loope or loopne with prefix f2 or f3. The manuals say nothing of it, and AMD's Zen 3 decides otherwise than Intel's
/// processors. The opcode and its distance are the last two bytes.
bool is_prefixed_loop(const Insn &insn, std::span<const std::byte> code) {
    if (insn.kind != Kind::loop_equal && insn.kind != Kind::loop_not_equal) return false;
    const auto prefixes = code.first(insn.length - 2);
    return std::any_of(prefixes.begin(), prefixes.end(),
                       [](std::byte one) { return one == std::byte{0xf2} || one == std::byte{0xf3}; });
}

Method method_of(const Insn &insn) {
    if (insn.narrow_branch) return Method::refuse;
    switch (insn.kind) {
    case Kind::jump:
    case Kind::call:
    case Kind::branch:
    case Kind::loop:
    case Kind::loop_equal:
    case Kind::loop_not_equal:
    case Kind::branch_count_zero: return Method::emulate;
    // A trap flag that popf sets takes effect one instruction later: that must not be our jump back.
    case Kind::pop_flags: return Method::step;
    case Kind::syscall:
    case Kind::syscall32: return Method::syscall;
    case Kind::sysenter:
    case Kind::breakpoint:
    case Kind::interrupt:
    case Kind::far_transfer:
    case Kind::interrupt_return:
    case Kind::enclave: return Method::refuse;
    case Kind::plain:
    case Kind::ret:
    case Kind::transaction:
    case Kind::undefined:
    case Kind::push_flags: return Method::boost;
    }
    return Method::refuse;
}

Flow flow_of(Kind kind) {
    switch (kind) {
    case Kind::jump: return Flow::jump;
    case Kind::call: return Flow::call;
    case Kind::ret: return Flow::ret;
    case Kind::branch:
    case Kind::loop:
    case Kind::loop_equal:
    case Kind::loop_not_equal:
    case Kind::branch_count_zero: return Flow::branch;
    case Kind::syscall:
    case Kind::syscall32:
    case Kind::sysenter: return Flow::syscall;
    case Kind::transaction:
    case Kind::breakpoint:
    case Kind::interrupt:
    case Kind::far_transfer:
    case Kind::interrupt_return:
    case Kind::enclave: return Flow::other;
    case Kind::plain:
    case Kind::undefined:
    case Kind::push_flags:
    case Kind::pop_flags: return Flow::next;
    }
    return Flow::other;
}

const char *why_refused(const Insn &insn) {
    if (insn.narrow_branch) return "it is a branch with a 16-bit operand, which processors disagree about";
    switch (insn.kind) {
    case Kind::sysenter: return "it is a sysenter, which does not return to where it was called";
    case Kind::breakpoint:
        return "it is a breakpoint (int3 or int1): the program's own, or a uprobe's (bpftrace, perf)";
    case Kind::interrupt: return "it is a software interrupt, which Linux does not define";
    case Kind::far_transfer: return "it is a far call, jump or return, which changes the code segment";
    case Kind::interrupt_return: return "it returns from an interrupt, which reloads the whole execution state";
    case Kind::enclave: return "it enters an enclave, which would keep the address of our copy";
    default: return nullptr;
    }
}

X86_64Plan refused(const char *why) {
    X86_64Plan plan;
    plan.why = why;
    return plan;
}

} // namespace

X86_64Plan X86_64::plan(std::span<const std::byte> code, VirtAddr at) {
    Insn insn;
    switch (x86::decode(code, insn)) {
    case x86::Decode::truncated: return refused("the code ends in the middle of it");
    case x86::Decode::invalid: return refused("the bytes there are no instruction");
    case x86::Decode::ok: break;
    }
    Plan plan;
    const bool prefixed = is_prefixed_loop(insn, code);
    plan.method = prefixed ? Method::refuse : method_of(insn);
    plan.flow = flow_of(insn.kind);
    plan.length = insn.length;
    plan.repeats = insn.repeats;
    plan.why = prefixed                        ? "it is a loop with a rep prefix, which processors disagree about"
               : plan.method == Method::refuse ? why_refused(insn)
                                               : nullptr;
    if (insn.relative) plan.target = at + insn.length + *insn.relative;
    plan.uses_memory = insn.kind == Kind::call || (insn.kind == Kind::jump && insn.target_memory);
    plan.insn = insn;
    std::copy_n(code.begin(), insn.length, plan.bytes);
    return plan;
}

} // namespace ktrace::arch
