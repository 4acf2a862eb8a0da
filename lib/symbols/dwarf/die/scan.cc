// Scan of a unit's DIEs (dwarf_scan.h). Forms: DWARF 5, 7.5.6 and the GNU extensions.
#include "symbols/dwarf/die/scan.h"

#include <libelf.h>

namespace ktrace::symbols {

namespace {

constexpr std::size_t most_abbreviations = 1 << 16;
constexpr std::size_t most_attributes = 1 << 10;
constexpr unsigned deepest = 1 << 12;

std::uint32_t bit_of(unsigned attribute_name, unsigned form) {
    switch (attribute_name) {
    case DW_AT_name: return has_name;
    case DW_AT_linkage_name:
    case DW_AT_MIPS_linkage_name: return has_linkage_name;
    case DW_AT_low_pc:
    case DW_AT_ranges: return has_code;
    case DW_AT_inline: return has_inline;
    case DW_AT_declaration: return has_declaration;
    case DW_AT_const_value: return has_const_value;
    case DW_AT_specification: return has_specification;
    case DW_AT_location:
        switch (form) {
        case DW_FORM_exprloc:
        case DW_FORM_block:
        case DW_FORM_block1:
        case DW_FORM_block2:
        case DW_FORM_block4: return has_location | has_single_location;
        default: return has_location;
        }
    case DW_AT_abstract_origin:
        switch (form) {
        case DW_FORM_ref1:
        case DW_FORM_ref2:
        case DW_FORM_ref4:
        case DW_FORM_ref8:
        case DW_FORM_ref_udata: return has_origin;
        default: return has_origin | has_foreign_origin;
        }
    default: return 0;
    }
}

std::span<const std::uint8_t> data_of(Elf_Scn *section) {
    Elf_Data *data = elf_getdata(section, nullptr);
    if (data == nullptr || data->d_buf == nullptr) return {};
    return {static_cast<const std::uint8_t *>(data->d_buf), data->d_size};
}

} // namespace

std::span<const std::uint8_t> section_of(Dwarf_Die die) {
    if (die.cu == nullptr) return {};
    Elf *elf = dwarf_getelf(dwarf_cu_getdwarf(die.cu));
    const auto *address = static_cast<const std::uint8_t *>(die.addr);
    for (Elf_Scn *section = nullptr; elf != nullptr && (section = elf_nextscn(elf, section)) != nullptr;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_PROGBITS) continue;
        if ((header.sh_flags & SHF_ALLOC) != 0) continue;
        auto bytes = data_of(section);
        if (!bytes.empty() && address >= bytes.data() && address < bytes.data() + bytes.size()) return bytes;
    }
    return {};
}

Scan::Scan(Dwarf_Die unit) : unit_(unit) {
    auto section = section_of(unit);
    if (section.empty()) {
        done_ = true;
        return;
    }
    if (dwarf_cu_info(unit.cu, &version_, nullptr, nullptr, nullptr, nullptr, &address_size_, &offset_size_) != 0) {
        done_ = true;
        return;
    }
    const auto *address = static_cast<const std::uint8_t *>(unit.addr);
    const std::uint8_t *begin = address - dwarf_cuoffset(&unit);
    const std::uint8_t *end = section.data() + section.size();
    if (begin < section.data() || begin > address) {
        done_ = true;
        return;
    }
    Bytes header(begin, end);
    std::uint64_t length = header.u32();
    if (length == 0xffffffffU) length = header.u64();
    header.limit(length <= header.left() ? length : header.left());
    if (address < header.at() || address > header.at() + header.left()) {
        done_ = true;
        return;
    }
    bytes_ = Bytes(address, header.at() + header.left());
    read_abbreviations();
}

void Scan::read_abbreviations() {
    std::size_t offset = 0, length = 0;
    while (abbreviations_.size() < most_abbreviations) {
        Dwarf_Abbrev *raw = dwarf_getabbrev(&unit_, offset, &length);
        if (raw == nullptr || raw == DWARF_END_ABBREV) break;
        offset += length;
        Abbreviation abbreviation;
        abbreviation.tag = dwarf_getabbrevtag(raw);
        abbreviation.has_children = dwarf_abbrevhaschildren(raw) > 0;
        int fixed = 0;
        // Not bounded by dwarf_getattrcnt, which counts wrongly behind a DW_FORM_implicit_const (elfutils 0.188).
        for (std::size_t i = 0; i < most_attributes; ++i) {
            unsigned name = 0, form = 0;
            Dwarf_Sword data;
            if (dwarf_getabbrevattr_data(raw, i, &name, &form, &data, nullptr) != 0 || name == 0) break;
            abbreviation.has |= bit_of(name, form);
            abbreviation.forms.push_back(static_cast<std::uint16_t>(form));
            int size = fixed_form_size(form);
            fixed = fixed < 0 || size < 0 ? -1 : fixed + size;
        }
        abbreviation.fixed_size = fixed;
        std::uint64_t code = dwarf_getabbrevcode(raw);
        if (code != abbreviations_.size() + 1) dense_ = false;
        by_code_.emplace(code, static_cast<std::uint32_t>(abbreviations_.size()));
        abbreviations_.push_back(std::move(abbreviation));
    }
}

int Scan::fixed_form_size(unsigned form) const {
    switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const: return 0;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1: return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2: return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3: return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4: return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8: return 8;
    case DW_FORM_data16: return 16;
    case DW_FORM_addr: return address_size_;
    case DW_FORM_ref_addr: return version_ <= 2 ? address_size_ : offset_size_;
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_strp_sup:
    case DW_FORM_sec_offset:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt: return offset_size_;
    default: return -1;
    }
}

void Scan::skip_form(unsigned form) {
    int size = fixed_form_size(form);
    if (size >= 0) {
        bytes_.skip(static_cast<std::uint64_t>(size));
        return;
    }
    switch (form) {
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_str_index:
    case DW_FORM_GNU_addr_index: bytes_.uleb(); return;
    case DW_FORM_string: bytes_.string(); return;
    case DW_FORM_block1: bytes_.skip(bytes_.u8()); return;
    case DW_FORM_block2: bytes_.skip(bytes_.u16()); return;
    case DW_FORM_block4: bytes_.skip(bytes_.u32()); return;
    case DW_FORM_block:
    case DW_FORM_exprloc: bytes_.skip(bytes_.uleb()); return;
    case DW_FORM_indirect: {
        std::uint64_t inner = bytes_.uleb();
        if (inner == DW_FORM_indirect || inner == DW_FORM_implicit_const || inner > 0xffff)
            done_ = true;
        else
            skip_form(static_cast<unsigned>(inner));
        return;
    }
    default: done_ = true; // an unknown form: the data behind it cannot be found
    }
}

const Scan::Abbreviation *Scan::abbreviation(std::uint64_t code) const {
    if (dense_) return code >= 1 && code <= abbreviations_.size() ? &abbreviations_[code - 1] : nullptr;
    auto found = by_code_.find(code);
    return found != by_code_.end() ? &abbreviations_[found->second] : nullptr;
}

const Scanned *Scan::next() {
    while (!done_ && !bytes_.at_end()) {
        const std::uint8_t *address = bytes_.at();
        std::uint64_t code = bytes_.uleb();
        if (code == 0) {
            if (depth_ <= 1) break;
            --depth_;
            continue;
        }
        const Abbreviation *abbreviation = this->abbreviation(code);
        if (abbreviation == nullptr) break;
        if (abbreviation->fixed_size >= 0)
            bytes_.skip(static_cast<std::uint64_t>(abbreviation->fixed_size));
        else
            for (std::uint16_t form : abbreviation->forms) skip_form(form);
        if (done_ || !bytes_.ok()) break;
        current_ = {address, abbreviation->tag, depth_, abbreviation->has};
        if (abbreviation->has_children && ++depth_ > deepest) break;
        if (depth_ == 0) done_ = true; // a unit without children
        return &current_;
    }
    done_ = true;
    return nullptr;
}

} // namespace ktrace::symbols
