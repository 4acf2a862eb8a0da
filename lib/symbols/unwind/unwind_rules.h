// Unwind rules: how to get from a frame to its caller at one address of one module, by its call frame information
// (DWARF 5, 6.4), as data.
//
// Invariant: rules hold no pointer into libdw beyond operations that live as long as the CallFrames that made them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include <elfutils/libdw.h>

#include "symbols/module.h"

namespace ktrace::symbols {

/// DWARF numbers of the registers that frames restore: the general ones of every ISA here, its pc included.
inline constexpr unsigned frame_registers = 33;

/// Where the caller's value of a register is.
struct RegisterRule {
    enum class Kind : std::uint8_t {
        undefined,  // lost
        at_cfa,     // in memory at CFA + number
        cfa,        // CFA + number itself
        register_,  // in register `number`
        at_address, // in memory where `ops` say
        value,      // what `ops` leave
    };
    Kind kind = Kind::undefined;
    std::uint8_t reg = 0; // whose
    std::int64_t number = 0;
    std::vector<Dwarf_Op> ops;
};

struct FrameRules {
    unsigned cfa_register = 0; // the CFA is this register + offset, unless there are ops
    std::int64_t cfa_offset = 0;
    std::vector<Dwarf_Op> cfa_ops;
    std::vector<RegisterRule> registers; // those that are not unchanged
    bool restores_sp = false;            // one of them is the stack pointer's; else the CFA is it
    unsigned return_address = 0;         // the register whose caller's value is the caller's pc
    bool is_signal_frame = false;        // its caller was interrupted: its pc is exact, not behind a call
};

/// The .debug_frame of one file.
class DebugFrames {
  public:
    /// `fd` stays open longer; -1: there is none.
    explicit DebugFrames(int fd);
    ~DebugFrames();
    DebugFrames(const DebugFrames &) = delete;

    /// nullptr where it does not describe the vaddr. The caller frees it.
    Dwarf_Frame *find(std::uint64_t vaddr);

  private:
    Elf *elf_ = nullptr;
    ::Dwarf *dwarf_ = nullptr;
    Dwarf_CFI *frames_ = nullptr; // dwarf_'s
};

/// The call frame information of one module: .eh_frame, and for what that does not describe .debug_frame, which may be
/// in a separate debug file.
class CallFrames {
  public:
    explicit CallFrames(std::shared_ptr<const Module> module);
    ~CallFrames();
    CallFrames(const CallFrames &) = delete;

    /// The rules at a vaddr, nullptr where nothing describes it. Valid until the next call.
    const FrameRules *at(std::uint64_t vaddr);
    /// True where nothing else holds the module any more.
    bool is_unused() const { return module_.use_count() == 1; }

  private:
    Dwarf_Frame *find(std::uint64_t vaddr);
    std::optional<FrameRules> read(std::uint64_t vaddr);

    std::shared_ptr<const Module> module_;
    Elf *elf_ = nullptr;
    Dwarf_CFI *eh_frame_ = nullptr;
    std::optional<DebugFrames> debug_frame_; // opened when it is asked first
    std::unordered_map<std::uint64_t, std::optional<FrameRules>> known_;
};

} // namespace ktrace::symbols
