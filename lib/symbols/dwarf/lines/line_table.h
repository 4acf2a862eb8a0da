// Line tables: the header (files) and the rows of one unit's line number program, read straight from .debug_line (DWARF
// 2 to 5, 6.2). libdw would decode and keep the rows of every unit that is only asked for its file names.
//
// Invariants: rows and files are bounded by the bytes of the program; a broken program gives the rows before the break.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "symbols/dwarf/die/bytes.h"
#include "symbols/dwarf/die/die.h"

namespace ktrace::symbols {

/// The sections that line tables lie in.
struct LineSections {
    std::span<const std::uint8_t> line, line_str, str;
};

/// The header of one program.
struct LineHeader {
    std::uint16_t version = 0;
    std::uint8_t minimum_length = 1, operations_per_instruction = 1, line_range = 1, opcode_base = 1;
    std::int8_t line_base = 0;
    bool default_is_statement = true;
    std::vector<std::uint8_t> operand_counts; // of standard opcodes, from 1
    std::vector<std::string> files;           // full paths where known; [0] is unused before version 5
    Bytes program;

    /// The path of a file by its number in rows, DW_AT_decl_file and DW_AT_call_file; empty where there is none.
    const std::string &file(std::uint64_t index) const;
};

struct LineRow {
    std::uint64_t address = 0;
    std::uint32_t file = 0, line = 0;
    bool is_statement = false;
    bool end_sequence = false; // `address` is the first byte behind the sequence
};

/// The sections of an ELF file.
LineSections line_sections(Elf *elf);

/// The header of the program at an offset of .debug_line; no files and an empty program where it cannot be read.
LineHeader read_line_header(const LineSections &sections, std::uint64_t offset, std::string_view compilation_directory,
                            std::string_view unit_name);

/// Runs a program; `row` returns false to stop.
void run_line_program(const LineHeader &header, const std::function<bool(const LineRow &)> &row);

/// True where `wanted` is `path` or its last whole components.
bool matches_path(std::string_view path, std::string_view wanted);

} // namespace ktrace::symbols
