#include "upgrade/agent_programs.h"

#include "agent/layout.h"
#include "arch/host.h"
#include "arch/in_process.h"

namespace ktrace::upgrade {

using program::Image;
using program::Instr;
using program::Opcode;

namespace {

constexpr const char *long_double = "a long double is asked for";
constexpr std::uint32_t most_captured = agent::captures_size / 4; // bytes of a call

const char *why_not_register(std::uint64_t offset, const Instr &instr) {
    if (instr.is_float) return nullptr;
    const bool is_seen = offset + instr.size <= arch::HostDetour::agent_sees;
    return is_seen ? nullptr : "a register is asked for that only a stop shows";
}

// One that is new has to be looked at: may the agent run it?
static_assert(static_cast<int>(Opcode::inject) == 117);

const char *why_not(const Instr &instr) {
    switch (instr.op) {
    case Opcode::compare_register: return why_not_register(instr.index, {.size = instr.size});
    case Opcode::push_register: return why_not_register(instr.index, instr);
    case Opcode::object_register: return why_not_register(static_cast<std::uint64_t>(instr.imm), instr);
    case Opcode::push_comm: return "comm is asked for";
    case Opcode::emit_caller:
    case Opcode::emit_stack: return "a stack is asked for";
    case Opcode::emit_registers: return "registers are asked for";
    case Opcode::object_upper: return "a wide vector is asked for";
    case Opcode::load_float:
    case Opcode::object_float: return instr.size > 8 ? long_double : nullptr;
    case Opcode::emit_raw: return instr.is_float && instr.size > 8 ? long_double : nullptr;
    default: break;
    }
    return instr.op == Opcode::inject ? "values are changed there" : nullptr;
}

const char *why_not(const Image &image, program::Part part) {
    for (const Instr &instr : image[part])
        if (const char *why = why_not(instr)) return why;
    return nullptr;
}

const char *why_not(const Image &image, program::Parts parts) {
    for (const program::Part part : image[parts])
        if (const char *why = why_not(image, part)) return why;
    return nullptr;
}

} // namespace

const char *why_stops(const Image &image, program::Moment when) {
    const auto &moment = image.moment(when);
    const bool is_at_entry = when == program::Moment::call || when == program::Moment::ret; // of all calls
    if (moment.selects && is_at_entry) return "--every, --chance or --first is asked for";
    if (moment.injections.count != 0) return "values are changed there";
    if ((moment.needs.floating || moment.needs.computes) && !arch::keeps_all_floats())
        return "floating point is asked for, and the processor has longer vectors (SVE)";
    if (const char *why = why_not(image, moment.condition)) return why;
    if (image.header().capture_size > most_captured) return "too much is kept for the return";
    if (!moment.aggregates) return why_not(image, moment.body);
    if (const char *why = why_not(image, moment.key)) return why;
    return moment.has_value ? why_not(image, moment.value) : nullptr;
}

} // namespace ktrace::upgrade
