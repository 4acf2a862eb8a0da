// Checks before libdw runs the programs of call frame information (DWARF 5, 6.4): one that names a register
// of a huge number makes it take memory for all registers up to there, and one that remembers many states as much for
// each.
#pragma once

#include <cstdint>
#include <span>

#include <elfutils/libdw.h>

namespace ktrace::symbols {

/// Whether a program of a CIE or FDE keeps within what compilers write: registers below `most_frame_registers`, and no
/// more than `most_remembered` states remembered at a time. `encoding`: of addresses in it (DW_EH_PE_*). Pure.
bool is_tame_program(std::span<const std::uint8_t> program, std::uint8_t encoding);
inline constexpr std::uint64_t most_frame_registers = 1024;
inline constexpr unsigned most_remembered = 64;

/// Whether all programs that libdw may come to by dwarf_getcfi_elf of this file are tame: those that the table of
/// .eh_frame_hdr leads to, or those of the whole section where there is none.
bool has_tame_eh_frames(Elf *elf);

/// The same of the .debug_frame of this file (dwarf_getcfi).
bool has_tame_debug_frames(Elf *elf);

} // namespace ktrace::symbols
