// ElfFile: the structure of one ELF file: segments, sections, the dynamic section's entries, notes, debug link. The
// only user of libelf.
//
// Invariants: 64-bit, little-endian; every section and segment that is listed lies within the file (a file for which
// that is not so is refused), but for the segments of a separate debug file, which have addresses and no contents. All
// views are into the Image and live as long as the ElfFile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbols/elf/image.h"
#include "symbols/elf/symbol.h"

struct Elf;

namespace ktrace::symbols {

struct Section {
    std::string_view name;
    std::uint32_t type = 0;  // SHT_*
    std::uint64_t flags = 0; // SHF_*
    std::uint64_t vaddr = 0, offset = 0, size = 0;
    std::uint32_t link = 0;
    bool executable() const;
    bool allocated() const;
};

/// .gnu_debuglink: the separate debug file's base name, and the CRC-32 of its bytes.
struct DebugLink {
    std::string name;
    std::uint32_t crc = 0;
};

class ElfFile {
  public:
    enum class Role : std::uint8_t {
        loaded, // a program or library: its segments have contents, its machine is the host's
        debug,  // a separate debug file, or .gnu_debugdata: symbols and DWARF for a file of role loaded
    };

    /// Checks the file's structure. Errors: refused, with what is wrong in `shown`.
    static Result<std::unique_ptr<ElfFile>> parse(Image image, const std::string &shown, Role role);
    ~ElfFile();
    ElfFile(const ElfFile &) = delete;

    const Image &image() const { return image_; }
    std::uint16_t type() const { return type_; }       // ET_EXEC, ET_DYN
    std::uint16_t machine() const { return machine_; } // EM_*
    std::uint64_t entry() const { return entry_; }
    std::span<const Segment> segments() const { return segments_; }

    std::span<const Section> sections() const { return sections_; }
    /// The first section with this name or type; nullptr where there is none.
    const Section *section(std::string_view name) const;
    const Section *section_of_type(std::uint32_t type) const;
    /// The section that covers an address (allocated sections only).
    const Section *section_at(std::uint64_t vaddr) const;
    /// A section's bytes in the file; empty for SHT_NOBITS.
    std::span<const std::byte> contents(const Section &section) const;

    /// The file's bytes for [vaddr, vaddr + size), fewer where the segment's file part ends before; empty outside of
    /// it.
    std::span<const std::byte> at(std::uint64_t vaddr, std::uint64_t size = UINT64_MAX) const;
    /// True where vaddr lies in a segment that is executed.
    bool executable(std::uint64_t vaddr) const;

    std::string_view interpreter() const { return interpreter_; } // PT_INTERP
    std::span<const std::byte> build_id() const { return build_id_; }
    std::optional<DebugLink> debug_link() const;
    /// PT_TLS: the size in memory and the alignment of each thread's block.
    struct TlsBlock {
        std::uint64_t size = 0, alignment = 1;
    };
    std::optional<TlsBlock> tls_block() const { return tls_block_; }
    /// PT_GNU_EH_FRAME's address.
    std::optional<std::uint64_t> eh_frame_header() const { return eh_frame_header_; }
    /// The value of the first dynamic entry with this tag (DT_*).
    std::optional<std::uint64_t> dynamic(std::int64_t tag) const;
    /// A string of the dynamic string table (DT_STRTAB).
    std::string_view dynamic_string(std::uint64_t offset) const;
    /// The dynamic string table, as far as the file holds it.
    std::span<const std::byte> dynamic_strings() const;

  private:
    ElfFile(Image image, std::string shown) : image_(std::move(image)), shown_(std::move(shown)) {}
    Status check_header(Role role);
    Status read_segments(Role role);
    Status read_sections();
    void read_notes(std::span<const std::byte> notes, std::uint64_t alignment);
    tl::unexpected<Error> bad(const std::string &why) const;

    Image image_;
    std::string shown_;
    Elf *elf_ = nullptr;
    std::uint16_t type_ = 0, machine_ = 0;
    std::uint64_t entry_ = 0;
    std::vector<Segment> segments_;
    std::vector<Section> sections_;
    std::string_view interpreter_;
    std::span<const std::byte> dynamic_; // PT_DYNAMIC
    std::span<const std::byte> build_id_;
    std::optional<std::uint64_t> eh_frame_header_;
    std::optional<TlsBlock> tls_block_;
};

} // namespace ktrace::symbols
