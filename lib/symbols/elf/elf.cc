#include "symbols/elf/elf.h"

#include <algorithm>
#include <bit>

#include <elf.h>
#include <gelf.h>
#include <libelf.h>

#include "arch/host.h"
#include "symbols/elf/bytes.h"

namespace ktrace::symbols {

static_assert(std::endian::native == std::endian::little); // the tables are read as they lie in the file

namespace {

/// The name by which a user knows a machine.
std::string machine_name(std::uint16_t machine) {
    switch (machine) {
    case EM_X86_64: return "x86-64";
    case EM_386: return "x86";
    case EM_AARCH64: return "arm64";
    case EM_ARM: return "arm";
    case EM_RISCV: return "RISC-V";
    case EM_PPC64: return "POWER";
    case EM_S390: return "s390";
    default: return "machine type " + std::to_string(machine);
    }
}

} // namespace

bool Section::executable() const { return (flags & SHF_EXECINSTR) != 0; }
bool Section::allocated() const { return (flags & SHF_ALLOC) != 0; }

tl::unexpected<Error> ElfFile::bad(const std::string &why) const {
    return fail(Error::Kind::refused, shown_ + " " + why);
}

Result<std::unique_ptr<ElfFile>> ElfFile::parse(Image image, const std::string &shown, Role role) {
    std::unique_ptr<ElfFile> file(new ElfFile(std::move(image), shown));
    if (auto status = file->check_header(role); !status) return tl::unexpected(status.error());
    ::elf_version(EV_CURRENT);
    // libelf only reads an image that it is given this way (ELF_C_READ).
    auto *bytes = const_cast<char *>(reinterpret_cast<const char *>(file->image_.bytes().data()));
    file->elf_ = ::elf_memory(bytes, file->image_.bytes().size());
    if (!file->elf_ || ::elf_kind(file->elf_) != ELF_K_ELF) return file->bad("is not a readable ELF file");
    if (auto status = file->read_segments(role); !status) return tl::unexpected(status.error());
    if (auto status = file->read_sections(); !status) return tl::unexpected(status.error());
    return file;
}

ElfFile::~ElfFile() { ::elf_end(elf_); }

Status ElfFile::check_header(Role role) {
    auto bytes = image_.bytes();
    auto magic = load<std::uint32_t>(bytes, 0);
    if (!magic || std::memcmp(&*magic, ELFMAG, SELFMAG) != 0) return bad("is not an ELF file");
    auto ident = part(bytes, 0, EI_NIDENT);
    if (!ident) return bad("is truncated: it ends inside the ELF header");
    auto elf_class = static_cast<unsigned char>((*ident)[EI_CLASS]);
    if (elf_class == ELFCLASS32) return bad("is a 32-bit ELF file; ktrace traces 64-bit ones");
    if (elf_class != ELFCLASS64) return bad("has an ELF header of an unknown class");
    if (static_cast<unsigned char>((*ident)[EI_DATA]) != ELFDATA2LSB) return bad("is a big-endian ELF file");
    auto header = load<Elf64_Ehdr>(bytes, 0);
    if (!header) return bad("is truncated: it ends inside the ELF header");
    if (header->e_machine != arch::Host::elf_machine)
        return bad("is for another machine (" + machine_name(header->e_machine) + ", not " +
                   machine_name(arch::Host::elf_machine) + ")");
    if (header->e_type != ET_EXEC && header->e_type != ET_DYN)
        return bad(header->e_type == ET_REL    ? "is an object file that is not linked"
                   : header->e_type == ET_CORE ? "is a core dump"
                                               : "is neither a program nor a library");
    if (header->e_phoff != 0 && header->e_phentsize != sizeof(Elf64_Phdr))
        return bad("is corrupt: its program headers have an impossible size");
    if (header->e_shoff != 0 && header->e_shentsize != sizeof(Elf64_Shdr))
        return bad("is corrupt: its section headers have an impossible size");
    // Where the counts are too great for the ELF header, the first section header has them (ELF gABI, e_shnum,
    // PN_XNUM).
    auto first = load<Elf64_Shdr>(bytes, header->e_shoff);
    if (header->e_shoff != 0 && !first) return bad("is truncated: section headers lie behind the end of the file");
    bool extended = header->e_shoff != 0;
    std::uint64_t sections = header->e_shnum != 0 ? header->e_shnum : extended ? first->sh_size : 0;
    std::uint64_t segments = header->e_phnum != PN_XNUM ? header->e_phnum : extended ? first->sh_info : 0;
    if (sections > bytes.size() / sizeof(Elf64_Shdr) ||
        (header->e_shoff != 0 && !part(bytes, header->e_shoff, sections * sizeof(Elf64_Shdr))))
        return bad("is truncated: section headers lie behind the end of the file");
    if (segments != 0 && !part(bytes, header->e_phoff, segments * sizeof(Elf64_Phdr)))
        return bad("is truncated: program headers lie behind the end of the file");
    if (segments == 0 && role == Role::loaded) return bad("has no program headers, so nothing of it can be loaded");
    type_ = header->e_type;
    machine_ = header->e_machine;
    entry_ = header->e_entry;
    return {};
}

Status ElfFile::read_segments(Role role) {
    std::size_t count = 0;
    if (::elf_getphdrnum(elf_, &count) != 0) return bad("is corrupt: its program headers cannot be read");
    for (std::size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (!::gelf_getphdr(elf_, static_cast<int>(i), &header))
            return bad("is corrupt: its program headers cannot be read");
        auto contents = part(image_.bytes(), header.p_offset, header.p_filesz);
        bool is_load = header.p_type == PT_LOAD;
        if (is_load) {
            if (role == Role::loaded && !contents)
                return bad("is truncated: a segment lies behind the end of the file");
            if (header.p_vaddr + header.p_memsz < header.p_vaddr || header.p_filesz > header.p_memsz)
                return bad("is corrupt: a segment has an impossible size");
            segments_.push_back({header.p_vaddr, header.p_offset, contents ? header.p_filesz : 0, header.p_memsz,
                                 (header.p_flags & PF_X) != 0, (header.p_flags & PF_W) != 0});
        }
        // The rest only adds knowledge; a debug file repeats these headers without the contents.
        if (!contents || role == Role::debug) continue;
        if (header.p_type == PT_INTERP) interpreter_ = string_at(*contents, 0);
        if (header.p_type == PT_DYNAMIC) dynamic_ = *contents;
        if (header.p_type == PT_GNU_EH_FRAME) eh_frame_header_ = header.p_vaddr;
        if (header.p_type == PT_TLS) tls_block_ = TlsBlock{header.p_memsz, std::max<std::uint64_t>(header.p_align, 1)};
        if (header.p_type == PT_NOTE && build_id_.empty()) read_notes(*contents, header.p_align);
    }
    return {};
}

Status ElfFile::read_sections() {
    std::size_t count = 0, names = 0;
    if (::elf_getshdrnum(elf_, &count) != 0 || count == 0) return {};
    bool has_names = ::elf_getshdrstrndx(elf_, &names) == 0;
    // libelf would expand them, to whatever size they claim.
    GElf_Shdr of_names;
    if (has_names && ::gelf_getshdr(::elf_getscn(elf_, names), &of_names) && (of_names.sh_flags & SHF_COMPRESSED) != 0)
        return bad("is crafted or damaged: the names of its sections are compressed");
    sections_.reserve(count);
    for (std::size_t i = 0; i < count; i++) {
        GElf_Shdr header;
        Elf_Scn *scn = ::elf_getscn(elf_, i);
        if (!scn || !::gelf_getshdr(scn, &header)) return bad("is corrupt: its section headers cannot be read");
        const char *name = has_names && i != 0 ? ::elf_strptr(elf_, names, header.sh_name) : nullptr;
        Section section{name ? name : "", header.sh_type, header.sh_flags, header.sh_addr,
                        header.sh_offset, header.sh_size, header.sh_link};
        bool in_file = header.sh_type != SHT_NOBITS && header.sh_type != SHT_NULL;
        if (in_file && !part(image_.bytes(), section.offset, section.size))
            return bad("is truncated: section " + std::string(section.name) + " lies behind the end of the file");
        if (header.sh_type == SHT_NOTE && build_id_.empty()) read_notes(contents(section), header.sh_addralign);
        sections_.push_back(section);
    }
    return {};
}

void ElfFile::read_notes(std::span<const std::byte> notes, std::uint64_t alignment) {
    std::uint64_t align = alignment == 8 ? 8 : 4;
    auto padded = [align](std::uint64_t size) { return (size + align - 1) & ~(align - 1); };
    std::uint64_t at = 0;
    while (auto header = load<Elf64_Nhdr>(notes, at)) {
        std::uint64_t name_at = at + sizeof(*header);
        std::uint64_t contents_at = name_at + padded(header->n_namesz);
        auto name = part(notes, name_at, header->n_namesz);
        auto contents = part(notes, contents_at, header->n_descsz);
        if (!name || !contents) return;
        constexpr std::uint64_t longest_build_id = 64;
        if (header->n_type == NT_GNU_BUILD_ID && name->size() == 4 && std::memcmp(name->data(), "GNU", 4) == 0 &&
            !contents->empty() && contents->size() <= longest_build_id) {
            build_id_ = *contents;
            return;
        }
        at = contents_at + padded(header->n_descsz);
    }
}

const Section *ElfFile::section(std::string_view name) const {
    auto found = std::find_if(sections_.begin(), sections_.end(), [&](const Section &s) { return s.name == name; });
    return found == sections_.end() ? nullptr : &*found;
}

const Section *ElfFile::section_of_type(std::uint32_t type) const {
    auto found = std::find_if(sections_.begin(), sections_.end(), [&](const Section &s) { return s.type == type; });
    return found == sections_.end() ? nullptr : &*found;
}

const Section *ElfFile::section_at(std::uint64_t vaddr) const {
    for (const Section &section : sections_) {
        bool tls_template = (section.flags & SHF_TLS) != 0; // .tbss takes no addresses
        if (section.allocated() && !tls_template && vaddr >= section.vaddr && vaddr - section.vaddr < section.size)
            return &section;
    }
    return nullptr;
}

std::span<const std::byte> ElfFile::contents(const Section &section) const {
    if (section.type == SHT_NOBITS || section.type == SHT_NULL) return {};
    return part(image_.bytes(), section.offset, section.size).value_or(std::span<const std::byte>{});
}

std::span<const std::byte> ElfFile::at(std::uint64_t vaddr, std::uint64_t size) const {
    for (const Segment &segment : segments_) {
        if (vaddr < segment.vaddr || vaddr - segment.vaddr >= segment.file_size) continue;
        std::uint64_t skip = vaddr - segment.vaddr;
        auto found = part(image_.bytes(), segment.file_offset + skip, std::min(size, segment.file_size - skip));
        return found.value_or(std::span<const std::byte>{});
    }
    return {};
}

bool ElfFile::executable(std::uint64_t vaddr) const {
    return std::any_of(segments_.begin(), segments_.end(), [vaddr](const Segment &s) {
        return s.executable && vaddr >= s.vaddr && vaddr - s.vaddr < s.memory_size;
    });
}

std::optional<DebugLink> ElfFile::debug_link() const {
    const Section *section = this->section(".gnu_debuglink");
    if (!section) return std::nullopt;
    auto bytes = contents(*section);
    std::string_view name = string_at(bytes, 0);
    auto crc = load<std::uint32_t>(bytes, (name.size() + 1 + 3) & ~std::size_t{3});
    // It is a base name; anything else would lead out of the folders that are searched.
    if (name.empty() || name.find('/') != std::string_view::npos || name == ".." || !crc) return std::nullopt;
    return DebugLink{std::string(name), *crc};
}

std::optional<std::uint64_t> ElfFile::dynamic(std::int64_t tag) const {
    for (std::uint64_t at = 0; auto entry = load<Elf64_Dyn>(dynamic_, at); at += sizeof(Elf64_Dyn)) {
        if (entry->d_tag == DT_NULL) break;
        if (entry->d_tag == tag) return entry->d_un.d_val;
    }
    return std::nullopt;
}

std::span<const std::byte> ElfFile::dynamic_strings() const {
    auto strings = dynamic(DT_STRTAB);
    auto size = dynamic(DT_STRSZ);
    if (!strings || !size) return {};
    return at(*strings, *size);
}

std::string_view ElfFile::dynamic_string(std::uint64_t offset) const { return string_at(dynamic_strings(), offset); }

} // namespace ktrace::symbols
