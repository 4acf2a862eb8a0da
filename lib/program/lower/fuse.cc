#include "program/lower/fuse.h"

#include <optional>
#include <span>

namespace ktrace::program {

namespace {

bool is_jump(Opcode op) { return op >= Opcode::jump && op <= Opcode::or_else; }
bool is_comparison(Opcode op) { return op >= Opcode::lt_s && op <= Opcode::ne; }
bool is_true_or_false(Opcode op) {
    return is_comparison(op) || op == Opcode::compare_with || op == Opcode::compare_register;
}

std::size_t target_of(const Instrs &code, std::size_t at) {
    return static_cast<std::size_t>(static_cast<std::int64_t>(at) + 1 + code[at].imm);
}

/// By place, and one for the end: some jump leads there.
std::vector<bool> targets_of(const Instrs &code) {
    std::vector<bool> targets(code.size() + 1);
    for (std::size_t i = 0; i < code.size(); i++)
        if (is_jump(code[i].op) && target_of(code, i) < targets.size()) targets[target_of(code, i)] = true;
    return targets;
}

struct Fused {
    Instr instr;
    std::size_t length = 0; // instructions that it stands for
};

/// The first instructions in one; nothing: they stay. `rest`: up to the next target of a jump.
std::optional<Fused> first_fused(std::span<const Instr> rest) {
    if (rest.size() < 2) return std::nullopt;
    const Instr &one = rest[0], &two = rest[1];
    if (one.op == Opcode::push_register && !one.is_float && two.op == Opcode::narrow && two.size <= one.size) {
        Instr both = one;
        both.size = two.size;
        both.is_signed = two.is_signed;
        return Fused{both, 2};
    }
    if (one.op == Opcode::push) {
        const bool is_left = two.op == Opcode::swap;
        if (is_left && rest.size() < 3) return std::nullopt;
        const Opcode op = rest[is_left ? 2 : 1].op;
        if (!is_comparison(op)) return std::nullopt;
        Instr both{.op = Opcode::compare_with, .is_float = is_left, .reg = static_cast<std::uint32_t>(op)};
        both.imm = one.imm;
        return Fused{both, is_left ? 3U : 2U};
    }
    if (one.op == Opcode::push_register && !one.is_float && two.op == Opcode::compare_with) {
        Instr both = two;
        both.op = Opcode::compare_register;
        both.size = one.size;
        both.is_signed = one.is_signed;
        both.index = one.index;
        return Fused{both, 2};
    }
    if (is_true_or_false(one.op) && two.op == Opcode::truth) return Fused{one, 2};
    return std::nullopt;
}

/// Once through.
Instrs pass(const Instrs &code) {
    const std::vector<bool> targets = targets_of(code);
    std::vector<std::size_t> now(code.size() + 1); // place of each
    std::vector<std::size_t> was;                  // of each that stays: its place before
    Instrs made;
    for (std::size_t i = 0; i < code.size();) {
        std::size_t end = i + 1;
        while (end < code.size() && !targets[end]) end++;
        const auto fused = first_fused(std::span(code).subspan(i, end - i));
        const std::size_t length = fused ? fused->length : 1;
        for (std::size_t n = 0; n < length; n++) now[i + n] = made.size();
        was.push_back(i + length - 1);
        made.push_back(fused ? fused->instr : code[i]);
        i += length;
    }
    now[code.size()] = made.size();
    for (std::size_t i = 0; i < made.size(); i++) {
        if (!is_jump(made[i].op) || target_of(code, was[i]) > code.size()) continue;
        made[i].imm = static_cast<std::int64_t>(now[target_of(code, was[i])]) - static_cast<std::int64_t>(i) - 1;
    }
    return made;
}

} // namespace

Instrs fuse(const Instrs &code) {
    Instrs now = code;
    while (true) {
        Instrs next = pass(now);
        if (next.size() == now.size()) return now;
        now = std::move(next);
    }
}

} // namespace ktrace::program
