// Module: one ELF file (program or library) and all that can be known of it: headers, symbols, text, debug information.
// Everything beyond the headers is loaded on first use, so that a large library costs nothing until it is asked.
//
// Invariants: all addresses here are the file's own (vaddr, as nm prints them); the loader's bias is added in the room
// that knows the process (target/). The file may be crafted: no reader trusts a size, an offset or a count of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbols/elf/symbol.h"

namespace ktrace::symbols {

class Dwarf;
class NamePattern;

/// Where debug information may come from.
enum class DebugSource : std::uint8_t {
    local,  // files on this machine
    remote, // also debuginfod servers, where DEBUGINFOD_URLS names some: may take seconds
};

class Module {
  public:
    /// Opens an ELF file. `path` is what is opened (perhaps through /proc/PID/root or map_files), `shown` what users
    /// read, `root` the directory that stands for / when separate debug files are looked for (empty: /). Errors:
    /// not_found, denied, refused (not an ELF file, truncated, another machine, 32-bit).
    static Result<std::shared_ptr<Module>> open(const std::string &path, const std::string &shown,
                                                const std::string &root = {});
    /// The same from bytes in memory (the vdso).
    static Result<std::shared_ptr<Module>> from_bytes(std::vector<std::byte> bytes, const std::string &shown);

    ~Module();
    Module(const Module &) = delete;

    const std::string &path() const;   // shown path
    std::string_view name() const;     // its base name: libc.so.6
    bool is_vdso() const;              // code of the kernel's, which is in no file
    bool position_independent() const; // ET_DYN
    std::uint64_t entry() const;       // e_entry
    std::string interpreter() const;   // PT_INTERP, empty for static programs
    std::string soname() const;
    /// Where the thread-local block of this module starts, from the thread pointer: for programs, whose block has a
    /// fixed place. Nothing for libraries, and where there is none.
    std::optional<std::int64_t> program_tls() const;
    std::span<const std::byte> build_id() const;
    std::span<const Segment> segments() const;
    /// All bytes of the file, mapped.
    std::span<const std::byte> image() const;
    /// The file with its .debug_frame: its own, else a separate debug file on this machine, or one that a debuginfod
    /// server was asked for already. A descriptor of the Module's; -1: there is none.
    int debug_frame_file() const;
    /// The vaddr of a file offset, as far as a PT_LOAD holds it.
    std::optional<std::uint64_t> vaddr_of_offset(std::uint64_t file_offset) const;

    /// Bytes of the file's image at vaddr, at most `size` (less at the end of a segment's file part, empty outside).
    std::vector<std::byte> bytes_at(std::uint64_t vaddr, std::size_t size) const;

    /// All function, ifunc, object and TLS symbols, by address: of .symtab (the file's own, else its separate debug
    /// file's), .dynsym and .gnu_debugdata together, without doubles.
    std::span<const Symbol> symbols() const;
    /// The symbols with this exact name (mangled as in the file).
    std::vector<const Symbol *> named(std::string_view name) const;
    /// The symbols whose names a pattern matches, by address. Like `named` it does not make the table of all symbols.
    /// `gives_up` is asked now and then; once it says so, no more are found.
    std::vector<const Symbol *> matching(const NamePattern &pattern, const std::function<bool()> &gives_up = {}) const;
    /// The function symbol that covers vaddr; where sizes are 0, the nearest before it.
    const Symbol *covering(std::uint64_t vaddr) const;
    /// The demangled name, or the name itself; lives as long as the Module. `full`: with parameters.
    std::string_view demangled(const Symbol &symbol, bool full) const;
    /// A function's extent: symbol size, else up to the next symbol or the section's end; DWARF or .eh_frame where the
    /// file is stripped. [vaddr, end)
    std::uint64_t function_end(std::uint64_t vaddr) const;
    /// The function that covers vaddr, [start, end): by its symbol, else by .eh_frame. Nothing where neither knows one.
    struct Extent {
        std::uint64_t start = 0, end = 0;
    };
    std::optional<Extent> function_at(std::uint64_t vaddr) const;
    /// True where vaddr is code: in a segment that is executed.
    bool executable(std::uint64_t vaddr) const;
    /// True where vaddr lies in a procedure linkage table: stubs, not functions.
    bool in_plt(std::uint64_t vaddr) const;
    /// Whether the instruction [vaddr, vaddr + length) belongs to a restartable sequence (elf/symbol.h).
    std::optional<InSequence> in_sequence(std::uint64_t vaddr, std::uint64_t length) const;

    /// GOT slots that hold the address of `name` once bound (.rela.plt, .rela.dyn): vaddrs of the slots. With a
    /// version: only those that ask for it, or for none.
    std::vector<std::uint64_t> got_slots(std::string_view name, std::string_view version = {}) const;
    /// The dynamic symbol or the address (R_*_IRELATIVE addend) that a GOT slot at this vaddr is for.
    std::optional<std::string_view> got_symbol(std::uint64_t slot_vaddr) const;
    /// The slots of R_*_IRELATIVE relocations.
    std::vector<Irelative> irelative_slots() const;

    /// Debug information: of this file, else of its separate debug file (build-id, debuglink, debuginfod), loaded on
    /// first call. nullptr where there is none; then `why_no_dwarf` is a clause that says why.
    Dwarf *dwarf(DebugSource source = DebugSource::remote) const;
    const std::string &why_no_dwarf() const;
    /// A sentence for users on debug information that is there, was asked for and could not be read, all or in part;
    /// empty: there is nothing to report.
    std::string unread_debug_information() const;
    /// Makes `symbols`, `named` and the rest know also what a debuginfod server knows, where one is configured and the
    /// file has no full symbol table here. True where there is more to know than before.
    bool fetch_symbols() const;
    /// Has it lost the names of the functions that it does not export?
    bool is_stripped() const;

    struct Impl;

  private:
    explicit Module(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

} // namespace ktrace::symbols
