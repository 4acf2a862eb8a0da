// Frames (dwarf_frames.h).
#include "symbols/dwarf/places/frames.h"

#include <algorithm>

#include <dwarf.h>

#include "symbols/elf/unwind_guard.h"

namespace ktrace::symbols {

Frames::~Frames() {
    if (eh_frame_ != nullptr) dwarf_cfi_end(eh_frame_);
}

void Frames::open() {
    if (std::exchange(opened_, true)) return;
    if (image_ != nullptr && has_tame_eh_frames(image_)) eh_frame_ = dwarf_getcfi_elf(image_);
    if (dwarf_ != nullptr && has_tame_debug_frames(dwarf_getelf(dwarf_))) debug_frame_ = dwarf_getcfi(dwarf_);
}

Frames::Frame Frames::frame_at(std::uint64_t vaddr) {
    open();
    for (Dwarf_CFI *cfi : {eh_frame_, debug_frame_}) {
        Dwarf_Frame *frame = nullptr;
        if (cfi != nullptr && dwarf_cfi_addrframe(cfi, vaddr, &frame) == 0) return Frame(frame);
    }
    return nullptr;
}

std::vector<Dwarf_Op> Frames::cfa_of(const Frame &frame) {
    Dwarf_Op *ops = nullptr;
    std::size_t count = 0;
    if (!frame || dwarf_frame_cfa(frame.get(), &ops, &count) != 0) return {};
    return {ops, ops + count};
}

std::optional<Frames::Rule> Frames::rule_of(const std::vector<Dwarf_Op> &ops) {
    if (ops.size() != 1) return std::nullopt;
    const Dwarf_Op &op = ops.front();
    if (op.atom == DW_OP_bregx) return Rule{static_cast<unsigned>(op.number), static_cast<std::int64_t>(op.number2)};
    if (op.atom < DW_OP_breg0 || op.atom > DW_OP_breg31) return std::nullopt;
    return Rule{op.atom - unsigned{DW_OP_breg0}, static_cast<std::int64_t>(op.number)};
}

std::optional<std::vector<Dwarf_Op>> Frames::cfa(std::uint64_t vaddr) {
    auto ops = cfa_of(frame_at(vaddr));
    return ops.empty() ? std::nullopt : std::optional(std::move(ops));
}

std::optional<Frames::Rule> Frames::cfa_rule(std::uint64_t vaddr) { return rule_of(cfa_of(frame_at(vaddr))); }

std::optional<Frames::Rule> Frames::usual_cfa_rule(std::uint64_t low, std::uint64_t high) {
    constexpr int most_rows = 256;
    auto known = usual_.find({low, high});
    if (known != usual_.end()) return known->second;
    std::map<Rule, std::uint64_t> bytes;
    std::uint64_t at = low;
    for (int row = 0; row < most_rows && at < high; ++row) {
        Frame frame = frame_at(at);
        Dwarf_Addr start = 0, end = 0;
        if (!frame || dwarf_frame_info(frame.get(), &start, &end, nullptr) < 0 || end <= at) break;
        if (auto rule = rule_of(cfa_of(frame))) bytes[*rule] += std::min<std::uint64_t>(end, high) - at;
        at = end;
    }
    auto most =
        std::max_element(bytes.begin(), bytes.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
    auto usual = most != bytes.end() ? std::optional(most->first) : std::nullopt;
    usual_.emplace(std::pair(low, high), usual);
    return usual;
}

} // namespace ktrace::symbols
