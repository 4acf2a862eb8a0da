// Reads what libdw reads, in the way in which it comes to it: the entries that the table of .eh_frame_hdr leads to may
// lie anywhere (Linux Standard Base, Exception Frames).
#include "symbols/elf/unwind_guard.h"

#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_map>

#include <dwarf.h>
#include <gelf.h>

namespace ktrace::symbols {

namespace {

constexpr std::uint8_t format_bits = 0x0f, application_bits = 0x70; // of the pointer encodings, DW_EH_PE_*

/// A reader of numbers that never leaves its bytes; once it would have, it is `bad`.
class GuardedReader {
  public:
    explicit GuardedReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

    bool bad() const { return bad_; }
    bool at_end() const { return bytes_.empty(); }
    std::span<const std::uint8_t> rest() const { return bytes_; }

    void skip(std::uint64_t count) {
        if (count > bytes_.size()) {
            bad_ = true;
            count = bytes_.size();
        }
        bytes_ = bytes_.subspan(count);
    }
    std::uint8_t byte() {
        if (bytes_.empty()) {
            bad_ = true;
            return 0;
        }
        const std::uint8_t first = bytes_.front();
        bytes_ = bytes_.subspan(1);
        return first;
    }
    std::uint64_t leb() { // of a signed one only the length counts
        std::uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            const std::uint8_t next = byte();
            const std::uint64_t bits = next & 0x7fU;
            if (shift >= 64 ? bits != 0 : (bits << shift >> shift) != bits) value = ~std::uint64_t{0};
            if (shift < 64 && value != ~std::uint64_t{0}) value |= bits << shift;
            if ((next & 0x80) == 0 || bad_) return value;
        }
    }
    void block() { skip(leb()); }
    /// An address in one of the encodings of pointers.
    void pointer(std::uint8_t encoding) {
        if (encoding == DW_EH_PE_omit) return;
        if ((encoding & application_bits) == DW_EH_PE_aligned) bad_ = true; // no compiler writes that
        switch (encoding & format_bits) {
        case DW_EH_PE_absptr:
        case DW_EH_PE_udata8:
        case DW_EH_PE_sdata8: return skip(8);
        case DW_EH_PE_udata4:
        case DW_EH_PE_sdata4: return skip(4);
        case DW_EH_PE_udata2:
        case DW_EH_PE_sdata2: return skip(2);
        case DW_EH_PE_uleb128:
        case DW_EH_PE_sleb128: leb(); return;
        default: bad_ = true;
        }
    }

  private:
    std::span<const std::uint8_t> bytes_;
    bool bad_ = false;
};

/// The part of its CIE that an FDE needs.
struct Common {
    bool tame = false, sized = false; // augmentation data of its FDEs have their size in front
    std::uint8_t encoding = DW_EH_PE_absptr;
    std::size_t skipped = 0; // else so many bytes of them
};

Common read_common(const Dwarf_CIE &cie) {
    Common common;
    common.skipped = cie.fde_augmentation_data_size;
    GuardedReader data({cie.augmentation_data, cie.augmentation_data != nullptr ? cie.augmentation_data_size : 0});
    for (const char letter : std::string_view(cie.augmentation)) {
        if (letter == 'z') common.sized = true;
        if (letter == 'R') common.encoding = data.byte();
        if (letter == 'L') data.byte();
        if (letter == 'P') data.pointer(data.byte());
        if (data.bad()) return {};
    }
    common.tame = is_tame_program({cie.initial_instructions, cie.initial_instructions_end}, common.encoding);
    return common;
}

/// One section, or what libdw takes for one.
class Section {
  public:
    Section(Elf *elf, Elf_Data *data, bool is_eh)
        : identity_(reinterpret_cast<const unsigned char *>(elf_getident(elf, nullptr))), data_(data), is_eh_(is_eh) {}

    /// True, too, where libdw will not understand what is at that offset. `next`: of the entry behind it.
    bool is_tame_at(Dwarf_Off offset, Dwarf_Off &next) {
        Dwarf_CFI_Entry entry;
        if (!read(offset, next, entry)) return true;
        if (dwarf_cfi_cie_p(&entry)) return common_at(offset).tame;
        const Common &common = common_at(entry.fde.CIE_pointer);
        GuardedReader fde({entry.fde.start, entry.fde.end});
        fde.pointer(common.encoding);
        fde.pointer(common.encoding & format_bits);
        if (common.sized)
            fde.block();
        else
            fde.skip(common.skipped);
        return common.tame && !fde.bad() && is_tame_program(fde.rest(), common.encoding);
    }

    bool is_tame() {
        Dwarf_Off next = 0;
        for (Dwarf_Off offset = 0; offset < data_->d_size; offset = next) {
            next = offset;
            if (!is_tame_at(offset, next)) return false;
            if (next <= offset) return true; // libdw ends there, too
        }
        return true;
    }

  private:
    bool read(Dwarf_Off offset, Dwarf_Off &next, Dwarf_CFI_Entry &entry) const {
        next = offset;
        return offset < data_->d_size && dwarf_next_cfi(identity_, data_, is_eh_, offset, &next, &entry) == 0;
    }

    const Common &common_at(Dwarf_Off offset) {
        auto [known, is_new] = commons_.try_emplace(offset);
        Dwarf_CFI_Entry entry;
        Dwarf_Off next = 0;
        if (is_new && read(offset, next, entry) && dwarf_cfi_cie_p(&entry)) known->second = read_common(entry.cie);
        return known->second;
    }

    const unsigned char *identity_;
    Elf_Data *data_;
    bool is_eh_;
    std::unordered_map<Dwarf_Off, Common> commons_;
};

template <class T> T value_at(std::span<const std::uint8_t> bytes, std::size_t at) {
    T value;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    return value;
}

/// By the header that the program header points to. Linkers write it in one form; another one is refused.
bool is_tame_by_header(Elf *elf, const GElf_Phdr &segment) {
    constexpr std::size_t encodings_at = 1, pointer_at = 4, count_at = 8, table_at = 12, entry_size = 8;
    constexpr std::uint8_t relative = DW_EH_PE_pcrel | DW_EH_PE_sdata4, table_form = DW_EH_PE_datarel | DW_EH_PE_sdata4;
    Elf_Data *header =
        elf_getdata_rawchunk(elf, static_cast<std::int64_t>(segment.p_offset), segment.p_filesz, ELF_T_BYTE);
    if (header == nullptr || header->d_buf == nullptr || header->d_size < count_at) return false;
    const std::span bytes(static_cast<const std::uint8_t *>(header->d_buf), header->d_size);
    if (bytes[encodings_at] != relative) return false;
    const std::uint64_t frames = pointer_at + static_cast<std::uint64_t>(value_at<std::int32_t>(bytes, pointer_at));
    const std::uint64_t offset = segment.p_offset + frames; // of .eh_frame, from the header on
    std::size_t file_size = 0;
    if (elf_rawfile(elf, &file_size) == nullptr || offset >= file_size) return false;
    Elf_Data *data = elf_getdata_rawchunk(elf, static_cast<std::int64_t>(offset), file_size - offset, ELF_T_BYTE);
    if (data == nullptr || data->d_buf == nullptr) return false;
    Section section(elf, data, true);
    if (bytes[encodings_at + 1] == DW_EH_PE_omit || bytes[encodings_at + 2] == DW_EH_PE_omit) return section.is_tame();
    if (bytes[encodings_at + 1] != DW_EH_PE_udata4 || bytes[encodings_at + 2] != table_form) return false;
    if (bytes.size() < table_at) return false;
    const std::uint64_t count = value_at<std::uint32_t>(bytes, count_at);
    if (count > (bytes.size() - table_at) / entry_size) return false;
    for (std::uint64_t i = 0; i < count; i++) {
        const auto from_header = value_at<std::int32_t>(bytes, table_at + i * entry_size + entry_size / 2);
        Dwarf_Off next = 0;
        if (!section.is_tame_at(static_cast<std::uint64_t>(from_header) - frames, next)) return false;
    }
    return true;
}

Elf_Data *section_data(Elf *elf, std::string_view name, std::string_view other_name = {}) {
    std::size_t names = 0;
    if (elf_getshdrstrndx(elf, &names) != 0) return nullptr;
    Elf_Scn *section = nullptr;
    while ((section = elf_nextscn(elf, section)) != nullptr) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
        const char *own = elf_strptr(elf, names, header.sh_name);
        if (own == nullptr || (own != name && (other_name.empty() || own != other_name))) continue;
        return elf_rawdata(section, nullptr);
    }
    return nullptr;
}

bool is_tame_section(Elf *elf, Elf_Data *data, bool is_eh) {
    return data == nullptr || data->d_buf == nullptr || Section(elf, data, is_eh).is_tame();
}

} // namespace

bool is_tame_program(std::span<const std::uint8_t> program, std::uint8_t encoding) {
    GuardedReader reader(program);
    unsigned remembered = 0;
    bool tame = true;
    auto reg = [&] { tame = reader.leb() < most_frame_registers && tame; };
    while (!reader.at_end() && tame && !reader.bad()) {
        const std::uint8_t code = reader.byte();
        constexpr std::uint8_t packed = 0xc0;
        switch ((code & packed) != 0 ? code & packed : code) {
        case DW_CFA_nop:
        case DW_CFA_advance_loc:
        case DW_CFA_restore:
        case DW_CFA_GNU_window_save: break;
        case DW_CFA_set_loc: reader.pointer(encoding); break;
        case DW_CFA_advance_loc1: reader.skip(1); break;
        case DW_CFA_advance_loc2: reader.skip(2); break;
        case DW_CFA_advance_loc4: reader.skip(4); break;
        case DW_CFA_MIPS_advance_loc8: reader.skip(8); break;
        case DW_CFA_remember_state: tame = ++remembered <= most_remembered; break;
        case DW_CFA_restore_state: remembered -= remembered > 0 ? 1 : 0; break;
        case DW_CFA_offset:
        case DW_CFA_def_cfa_offset:
        case DW_CFA_def_cfa_offset_sf:
        case DW_CFA_GNU_args_size: reader.leb(); break;
        case DW_CFA_restore_extended:
        case DW_CFA_undefined:
        case DW_CFA_same_value:
        case DW_CFA_def_cfa_register: reg(); break;
        case DW_CFA_register:
            reg();
            reg();
            break;
        case DW_CFA_offset_extended:
        case DW_CFA_offset_extended_sf:
        case DW_CFA_def_cfa:
        case DW_CFA_def_cfa_sf:
        case DW_CFA_val_offset:
        case DW_CFA_val_offset_sf:
        case DW_CFA_GNU_negative_offset_extended:
            reg();
            reader.leb();
            break;
        case DW_CFA_def_cfa_expression: reader.block(); break;
        case DW_CFA_expression:
        case DW_CFA_val_expression:
            reg();
            reader.block();
            break;
        default: return false;
        }
    }
    return tame && !reader.bad();
}

bool has_tame_eh_frames(Elf *elf) {
    std::size_t count = 0;
    if (elf_getphdrnum(elf, &count) != 0) return false;
    for (std::size_t i = 0; i < count; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr) return false;
        if (segment.p_type == PT_GNU_EH_FRAME) return is_tame_by_header(elf, segment);
    }
    return section_data(elf, ".eh_frame_hdr") == nullptr && is_tame_section(elf, section_data(elf, ".eh_frame"), true);
}

bool has_tame_debug_frames(Elf *elf) {
    return is_tame_section(elf, section_data(elf, ".debug_frame", ".zdebug_frame"), false);
}

} // namespace ktrace::symbols
