// How an arm64 instruction is got over: plan (which method), probeable (may a probe be here at all), place (the slot).
#include "arm64/arm64.h"

#include <algorithm>

#include "arm64/words.h"
#include "base/check.h"

namespace ktrace::arch {

namespace {

constexpr std::uint32_t trap_word = 0xd4200000u | 0x6b74u << 5; // brk #0x6b74
constexpr auto trap = a64_bytes(trap_word);

constexpr int literal_scratch = 17; // x17, through which a SIMD literal is loaded that its copy does not reach

/// Architectures give exclusive sequences up to 128 bytes in which forward progress is promised (Arm ARM, B2.12.5).
constexpr std::uint64_t exclusive_reach = 128;

constexpr const char *between_exclusives =
    "it lies between a load-exclusive and its store, which a trap would make fail for ever";

/// Why an instruction of this form is refused; nullptr where it is not.
const char *refusal(A64Form form) {
    switch (form) {
    case A64Form::breakpoint: return "it is a breakpoint instruction itself";
    case A64Form::halt: return "it is a halt for an external debugger";
    case A64Form::privileged: return "it is a privileged instruction";
    case A64Form::transaction: return "a trap ends the memory transaction that it belongs to";
    case A64Form::load_exclusive:
    case A64Form::store_exclusive:
        return "it is a load-exclusive or store-exclusive, which a trap would make fail for ever";
    case A64Form::move_prefix: return "it is a movprfx, which the CPU runs together with the instruction behind it";
    case A64Form::memory_operation:
        return "it is one of the three instructions of a memory copy or set, which must stay together";
    case A64Form::sign_with_pc: return "it signs or checks a pointer with its own address";
    case A64Form::sign_prefix: return "it makes the instruction behind it sign with its own address";
    case A64Form::undefined: return "it is an undefined instruction (data, perhaps)";
    case A64Form::unknown: return "it is no instruction that ktrace knows (data, perhaps)";
    default: return nullptr;
    }
}

struct Way {
    Method method;
    Flow flow;
};

/// Method and flow of a form that is not refused.
Way way_over(A64Form form) {
    switch (form) {
    case A64Form::adr:
    case A64Form::adrp:
    case A64Form::literal_w:
    case A64Form::literal_x:
    case A64Form::literal_sw:
    case A64Form::literal_prefetch: return {Method::emulate, Flow::next};
    case A64Form::branch:
    case A64Form::branch_register: return {Method::emulate, Flow::jump};
    case A64Form::branch_link:
    case A64Form::branch_link_register: return {Method::emulate, Flow::call};
    case A64Form::branch_if:
    case A64Form::compare:
    case A64Form::test: return {Method::emulate, Flow::branch};
    case A64Form::branch_authenticated: return {Method::boost, Flow::jump};
    case A64Form::return_:
    case A64Form::return_authenticated: return {Method::boost, Flow::ret};
    case A64Form::branch_link_authenticated: return {Method::step, Flow::call}; // x30 would show the slot
    case A64Form::svc: return {Method::syscall, Flow::syscall};
    default: return {Method::boost, Flow::next};
    }
}

bool leaves_for_good(A64Form form) {
    switch (form) {
    case A64Form::branch:
    case A64Form::branch_register:
    case A64Form::branch_authenticated:
    case A64Form::return_:
    case A64Form::return_authenticated: return true;
    default: return false;
    }
}

/// Was a load-exclusive passed on the straight way to `offset`, whose store has not been?
bool behind_load_exclusive(std::span<const std::byte> function, std::uint64_t offset) {
    std::uint64_t first = offset > exclusive_reach ? offset - exclusive_reach : 0;
    while (offset > first) {
        offset -= a64_size;
        A64Form form = a64_form(a64_word(function, offset));
        if (form == A64Form::load_exclusive) return true;
        if (form == A64Form::store_exclusive || form == A64Form::clear_exclusive || leaves_for_good(form)) return false;
    }
    return false;
}

/// Does the straight way from `offset` come to a store-exclusive before any load-exclusive? Then the load lies behind
/// us, wherever that is.
bool ahead_of_store_exclusive(std::span<const std::byte> function, std::uint64_t offset) {
    std::uint64_t end = std::min<std::uint64_t>(function.size(), offset + exclusive_reach);
    for (; offset + a64_size <= end; offset += a64_size) {
        A64Form form = a64_form(a64_word(function, offset));
        if (form == A64Form::store_exclusive) return true;
        if (form == A64Form::load_exclusive || form == A64Form::clear_exclusive || leaves_for_good(form)) return false;
    }
    return false;
}

const char *refusal_by_neighbours(std::span<const std::byte> function, std::uint64_t offset) {
    if (offset >= a64_size && a64_form(a64_word(function, offset - a64_size)) == A64Form::sign_prefix)
        return "the pacm before it makes it sign a pointer with its own address";
    if (behind_load_exclusive(function, offset) || ahead_of_store_exclusive(function, offset))
        return between_exclusives;
    return nullptr;
}

Probeable off_boundary(std::uint64_t offset, std::uint64_t size) {
    Probeable answer{.ok = false, .why = "not at the start of an instruction", .before = {}, .after = {}};
    answer.before = offset - offset % a64_size;
    if (*answer.before + 2 * a64_size <= size) answer.after = *answer.before + a64_size;
    return answer;
}

void put(Placement &placed, std::uint32_t word) {
    auto bytes = a64_bytes(word);
    std::copy(bytes.begin(), bytes.end(), placed.bytes + placed.size);
    placed.size = static_cast<std::uint8_t>(placed.size + a64_size);
}

/// Where control never comes back from the copy there is nothing to jump back with.
bool comes_back(const Arm64Plan &plan) { return plan.flow != Flow::jump && plan.flow != Flow::ret; }

bool is_simd_literal(A64Form form) {
    return form == A64Form::literal_s || form == A64Form::literal_d || form == A64Form::literal_q;
}

/// ldr (immediate, unsigned offset 0) of the same SIMD register through x17.
std::uint32_t load_through_scratch(const Arm64Plan &plan) {
    std::uint32_t load = plan.form == A64Form::literal_s   ? 0xbd400000u
                         : plan.form == A64Form::literal_d ? 0xfd400000u
                                                           : 0x3dc00000u;
    return load | static_cast<std::uint32_t>(literal_scratch) << 5 | a64_field(plan.word, 0, 5);
}

/// The word that does in the slot what the instruction does at its site; lowers `placed` to step where it needs help.
std::uint32_t copy_of(const Arm64Plan &plan, VirtAddr site, VirtAddr slot, Placement &placed) {
    if (!is_simd_literal(plan.form)) return plan.word;
    VirtAddr literal = site + plan.displacement;
    if (auto word = a64_retarget_literal(plan.word, literal - slot)) return *word;
    placed.method = Method::step;
    placed.scratch = literal_scratch;
    placed.scratch_value = literal.value;
    return load_through_scratch(plan);
}

} // namespace

std::span<const std::byte> Arm64::trap_bytes() { return trap; }

Arm64Plan Arm64::plan(std::span<const std::byte> code, VirtAddr at) {
    Arm64Plan plan;
    plan.flow = Flow::other;
    if (code.size() < a64_size) {
        plan.why = "the instruction is cut off";
        return plan;
    }
    if (at.value % a64_size != 0) {
        plan.why = "not at the start of an instruction";
        return plan;
    }
    plan.length = a64_size;
    plan.word = a64_word(code);
    plan.form = a64_form(plan.word);
    plan.why = refusal(plan.form);
    if (plan.why != nullptr) return plan;

    Way way = way_over(plan.form);
    plan.method = way.method;
    plan.flow = way.flow;
    if (auto displacement = a64_displacement(plan.word, plan.form)) {
        plan.displacement = *displacement;
        if (plan.flow != Flow::next) plan.target = at + *displacement;
    }
    return plan;
}

Probeable Arm64::probeable(std::span<const std::byte> function, VirtAddr at, std::uint64_t offset) {
    if (offset % a64_size != 0 && offset < function.size()) return off_boundary(offset, function.size());
    if (offset >= function.size() || function.size() - offset < a64_size)
        return {.ok = false, .why = "behind the end of the function", .before = {}, .after = {}};
    Plan planned = plan(function.subspan(offset), at + static_cast<std::int64_t>(offset));
    const char *why = planned.why != nullptr ? planned.why : refusal_by_neighbours(function, offset);
    return {.ok = why == nullptr, .why = why, .before = {}, .after = {}};
}

Placement Arm64::place(const Plan &plan, VirtAddr site, VirtAddr slot) {
    KT_CHECK(slot.value % a64_size == 0);
    Placement placed;
    placed.method = plan.method;
    placed.why = plan.why;
    if (plan.method == Method::refuse || plan.method == Method::emulate) return placed;

    put(placed, copy_of(plan, site, slot, placed));
    placed.copy_end = placed.size;
    if (!comes_back(plan)) return placed;
    // The jump back follows the copy of a step, too: should the tracer be killed, the task goes on behind the site.
    if (auto back = a64_make_branch(site - slot)) { // from slot + 4 to site + 4
        put(placed, *back);
    } else {
        if (placed.method == Method::boost) placed.method = Method::step;
        put(placed, trap_word);
    }
    return placed;
}

} // namespace ktrace::arch
