// Probeable: is an offset of a function the start of an instruction? x86 code does not show it, so it is decoded from
// the function's entry: first along the flow of control, which never meets data; where that does not come by (behind
// jumps through tables), onward from the nearest instruction that it did reach.
#include "x86_64/x86_64.h"

#include <limits>
#include <vector>

namespace ktrace::arch {

namespace {

using x86::Insn;
using x86::Kind;

constexpr const char *past_the_end = "it is behind the function's last byte";
constexpr const char *not_a_start = "it is not at the start of an instruction";
constexpr const char *in_data = "data lies in the code before it, so it is not certain where instructions start";

/// True where control can go on to the next instruction.
bool falls_through(Kind kind) {
    switch (kind) {
    case Kind::jump:
    case Kind::ret:
    case Kind::far_transfer:
    case Kind::interrupt_return: return false;
    default: return true;
    }
}

/// The instructions of a function that its entry reaches by direct jumps and branches.
class Reached {
  public:
    explicit Reached(std::span<const std::byte> function) : function_(function), lengths_(function.size(), 0) {
        std::vector<std::size_t> pending{0};
        while (!pending.empty()) {
            const std::size_t start = pending.back();
            pending.pop_back();
            follow(start, pending);
        }
    }

    /// The start of the last instruction that was reached at or before `offset` (0: at least the entry).
    std::size_t last_start(std::size_t offset) const {
        while (offset != 0 && lengths_[offset] == 0) --offset;
        return offset;
    }
    bool is_start(std::size_t offset) const { return lengths_[offset] != 0; }

  private:
    /// Decodes straight on from `at` until control leaves, or meets what is known; branch targets go to `pending`.
    void follow(std::size_t at, std::vector<std::size_t> &pending) {
        while (at < function_.size() && lengths_[at] == 0) {
            Insn insn;
            if (x86::decode(function_.subspan(at), insn) != x86::Decode::ok) return;
            lengths_[at] = insn.length;
            const std::size_t next = at + insn.length;
            if (insn.relative && insn.kind != Kind::call) add_target(next, *insn.relative, pending);
            if (!falls_through(insn.kind)) return;
            at = next;
        }
    }

    void add_target(std::size_t next, std::int64_t relative, std::vector<std::size_t> &pending) const {
        const std::uint64_t target = next + static_cast<std::uint64_t>(relative);
        if (target < function_.size() && lengths_[target] == 0) pending.push_back(target);
    }

    std::span<const std::byte> function_;
    std::vector<std::uint8_t> lengths_; // of the instruction that starts at this offset, 0: none does
};

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
    if (reached.is_start(offset)) return starts_here(function.subspan(offset));
    return sweep(function, reached.last_start(offset), offset);
}

} // namespace ktrace::arch
