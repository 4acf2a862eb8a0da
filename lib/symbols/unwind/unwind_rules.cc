// Unwind rules, by libdw (unwind_rules.h).
#include "symbols/unwind/unwind_rules.h"

#include <cstdlib>
#include <utility>

#include <dwarf.h>
#include <libelf.h>

#include "arch/host.h"
#include "symbols/dwarf/die/guard.h"
#include "symbols/elf/unwind_guard.h"

namespace ktrace::symbols {

namespace {

constexpr std::size_t most_known = 65536; // addresses remembered for a module

/// The rule that libdw's operations for a register amount to; those that it makes for offsets from the CFA are
/// recognised apart, since nearly all are. Nothing: the register is unchanged.
std::optional<RegisterRule> rule_of(std::uint8_t reg, const Dwarf_Op *ops, std::size_t count, bool is_undefined) {
    using Kind = RegisterRule::Kind;
    if (count == 0) return is_undefined ? std::optional(RegisterRule{Kind::undefined, reg, 0, {}}) : std::nullopt;
    bool is_value = ops[count - 1].atom == DW_OP_stack_value;
    std::size_t plain = is_value ? count - 1 : count;
    bool has_offset = plain == 2 && ops[1].atom == DW_OP_plus_uconst;
    if (ops[0].atom == DW_OP_call_frame_cfa && (plain == 1 || has_offset)) {
        auto offset = has_offset ? static_cast<std::int64_t>(ops[1].number) : 0;
        return RegisterRule{is_value ? Kind::cfa : Kind::at_cfa, reg, offset, {}};
    }
    if (count == 1 && ops[0].atom == DW_OP_regx)
        return RegisterRule{Kind::register_, reg, static_cast<std::int64_t>(ops[0].number), {}};
    return RegisterRule{is_value ? Kind::value : Kind::at_address, reg, 0, {ops, ops + plain}};
}

} // namespace

DebugFrames::DebugFrames(int fd) {
    elf_version(EV_CURRENT);
    // To uncompress a section libelf writes to the headers of an image in memory, but not to those of a mapped file.
    elf_ = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, nullptr) : nullptr;
    bool bounded = elf_ != nullptr && check_expansion(elf_, "").has_value();
    dwarf_ = bounded ? dwarf_begin_elf(elf_, DWARF_C_READ, nullptr) : nullptr;
    if (dwarf_ != nullptr && has_tame_debug_frames(elf_)) frames_ = dwarf_getcfi(dwarf_);
}

DebugFrames::~DebugFrames() {
    if (dwarf_ != nullptr) dwarf_end(dwarf_); // ends frames_, too
    if (elf_ != nullptr) elf_end(elf_);
}

Dwarf_Frame *DebugFrames::find(std::uint64_t vaddr) {
    Dwarf_Frame *frame = nullptr;
    return frames_ != nullptr && dwarf_cfi_addrframe(frames_, vaddr, &frame) == 0 ? frame : nullptr;
}

CallFrames::CallFrames(std::shared_ptr<const Module> module) : module_(std::move(module)) {
    std::span<const std::byte> image = module_->image();
    elf_version(EV_CURRENT);
    // libelf does not write to an image that it is given to read, as long as no compressed section is asked for.
    char *bytes = const_cast<char *>(reinterpret_cast<const char *>(image.data()));
    elf_ = image.empty() ? nullptr : elf_memory(bytes, image.size());
    if (elf_ != nullptr && has_tame_eh_frames(elf_)) eh_frame_ = dwarf_getcfi_elf(elf_);
}

CallFrames::~CallFrames() {
    if (eh_frame_ != nullptr) dwarf_cfi_end(eh_frame_);
    if (elf_ != nullptr) elf_end(elf_);
}

/// A program that was compiled without .eh_frame still has that of the C library's start-up code.
Dwarf_Frame *CallFrames::find(std::uint64_t vaddr) {
    Dwarf_Frame *frame = nullptr;
    if (eh_frame_ != nullptr && dwarf_cfi_addrframe(eh_frame_, vaddr, &frame) == 0) return frame;
    if (!debug_frame_) debug_frame_.emplace(module_->debug_frame_file());
    return debug_frame_->find(vaddr);
}

const FrameRules *CallFrames::at(std::uint64_t vaddr) {
    if (known_.size() >= most_known) known_.clear();
    auto [known, is_new] = known_.try_emplace(vaddr);
    if (is_new) known->second = read(vaddr);
    return known->second ? &*known->second : nullptr;
}

std::optional<FrameRules> CallFrames::read(std::uint64_t vaddr) {
    std::unique_ptr<Dwarf_Frame, decltype(&std::free)> frame(find(vaddr), &std::free);
    if (!frame) return std::nullopt;
    FrameRules rules;
    Dwarf_Op *ops = nullptr;
    std::size_t count = 0;
    bool is_signal = false;
    int return_address = dwarf_frame_info(frame.get(), nullptr, nullptr, &is_signal);
    if (return_address < 0 || return_address >= static_cast<int>(frame_registers)) return std::nullopt;
    if (dwarf_frame_cfa(frame.get(), &ops, &count) != 0 || count == 0) return std::nullopt;
    rules.return_address = static_cast<unsigned>(return_address);
    rules.is_signal_frame = is_signal;
    if (count == 1 && ops[0].atom == DW_OP_bregx && ops[0].number < frame_registers) {
        rules.cfa_register = static_cast<unsigned>(ops[0].number);
        rules.cfa_offset = static_cast<std::int64_t>(ops[0].number2);
    } else {
        rules.cfa_ops.assign(ops, ops + count);
    }
    for (unsigned reg = 0; reg < frame_registers; ++reg) {
        Dwarf_Op own[3];
        if (dwarf_frame_register(frame.get(), static_cast<int>(reg), own, &ops, &count) != 0) count = 0, ops = own;
        if (auto rule = rule_of(static_cast<std::uint8_t>(reg), ops, count, ops == own)) {
            bool is_sp = reg == static_cast<unsigned>(arch::Host::stack_pointer_dwarf);
            rules.restores_sp = rules.restores_sp || (is_sp && rule->kind != RegisterRule::Kind::undefined);
            rules.registers.push_back(std::move(*rule));
        }
    }
    return rules;
}

} // namespace ktrace::symbols
