// Probeable: is an offset of a function the start of an instruction? x86 code does not show it, so it is decoded from
// the function's entry: first along the flow of control, which never meets data; where that does not come by (behind
// jumps through tables), onward from the nearest instruction that it did reach.
#include "x86_64/probeable.h"
#include "x86_64/x86_64.h"

namespace ktrace::arch::x86 {

bool falls_through(Kind kind) {
    switch (kind) {
    case Kind::jump:
    case Kind::ret:
    case Kind::far_transfer:
    case Kind::interrupt_return: return false;
    default: return true;
    }
}

Reached::Reached(std::span<const std::byte> function) : function_(function), lengths_(function.size(), 0) {
    follow_all(0);
}

std::size_t Reached::last_start(std::size_t offset) const {
    while (offset != 0 && lengths_[offset] == 0) --offset;
    return offset;
}

bool Reached::is_within(std::size_t offset) const {
    constexpr std::size_t longest = 15;
    for (std::size_t back = 1; back < longest && back <= offset; ++back)
        if (lengths_[offset - back] > back) return true;
    return false;
}

void Reached::reach_the_rest() {
    for (std::size_t at = 0; at < function_.size(); at += lengths_[at] != 0 ? lengths_[at] : 1) follow_all(at);
}

void Reached::follow_all(std::size_t start) {
    pending_.push_back(start);
    while (!pending_.empty()) {
        const std::size_t next = pending_.back();
        pending_.pop_back();
        follow(next);
    }
}

/// Decodes straight on from `at` until control leaves, or meets what is known.
void Reached::follow(std::size_t at) {
    while (at < function_.size() && lengths_[at] == 0) {
        Insn insn;
        if (decode(function_.subspan(at), insn) != Decode::ok) return;
        lengths_[at] = insn.length;
        const std::size_t next = at + insn.length;
        if (insn.relative) add_target(next, insn);
        if (!falls_through(insn.kind)) return;
        at = next;
    }
}

void Reached::add_target(std::size_t next, const Insn &insn) {
    const std::uint64_t target = next + static_cast<std::uint64_t>(*insn.relative);
    if (target >= function_.size()) return;
    targets_.push_back(target);
    if (insn.kind != Kind::call && lengths_[target] == 0) pending_.push_back(target);
}

} // namespace ktrace::arch::x86

namespace ktrace::arch {

namespace {

using x86::Insn;
using x86::Reached;

constexpr const char *past_the_end = "it is behind the function's last byte";
constexpr const char *not_a_start = "it is not at the start of an instruction";
constexpr const char *within_another =
    "it lies within an instruction that starts before it, which would become another (a prefix is jumped over)";
constexpr const char *in_data = "data lies in the code before it, so it is not certain where instructions start";

Probeable refused(const char *why) {
    Probeable answer;
    answer.why = why;
    return answer;
}

Probeable starts_here(std::span<const std::byte> code) {
    Insn insn;
    switch (x86::decode(code, insn)) {
    case x86::Decode::ok: break;
    case x86::Decode::truncated: return refused("the code ends in the middle of it");
    case x86::Decode::invalid: return refused("the bytes there are no instruction");
    }
    Probeable answer;
    answer.ok = true;
    return answer;
}

/// Decodes on from `start`, where an instruction starts, up to `offset`.
Probeable sweep(std::span<const std::byte> function, std::size_t start, std::size_t offset) {
    while (start < offset) {
        Insn insn;
        if (x86::decode(function.subspan(start), insn) != x86::Decode::ok) return refused(in_data);
        const std::size_t next = start + insn.length;
        if (next > offset) {
            Probeable answer = refused(not_a_start);
            answer.before = start;
            if (next < function.size()) answer.after = next;
            return answer;
        }
        start = next;
    }
    return starts_here(function.subspan(offset));
}

} // namespace

Probeable X86_64::probeable(std::span<const std::byte> function, VirtAddr, std::uint64_t offset) {
    if (offset >= function.size()) return refused(past_the_end);
    if (offset == 0) return starts_here(function);
    const Reached reached(function);
    if (reached.is_start(offset))
        return reached.is_within(offset) ? refused(within_another) : starts_here(function.subspan(offset));
    return sweep(function, reached.last_start(offset), offset);
}

} // namespace ktrace::arch
