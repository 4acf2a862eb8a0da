// Line tables (dwarf_line_table.h).
#include "symbols/dwarf/lines/line_table.h"

#include <climits>
#include <filesystem>

#include <libelf.h>

namespace ktrace::symbols {

namespace {

constexpr std::size_t most_files = 1 << 16;
constexpr std::size_t most_directories = 1 << 14;
constexpr std::size_t most_rows = 1 << 26;

struct EntryFormat {
    std::uint64_t content = 0, form = 0;
};

std::string_view string_at(std::span<const std::uint8_t> section, std::uint64_t offset) {
    if (offset >= section.size()) return {};
    return Bytes(section.subspan(offset)).string();
}

/// A path joined from parts that may be absolute, without `.` and `..`; cut to what a path can be.
std::string join(std::string_view directory, std::string_view name) {
    directory = directory.substr(0, PATH_MAX);
    name = name.substr(0, PATH_MAX);
    return (std::filesystem::path(directory) / name).lexically_normal().string();
}

/// DWARF 5, 6.2.4: the first directory is that of the compilation. Where both are relative to the same unknown
/// place
/// (-ffile-prefix-map, as in Debian's libc), it is not below itself.
std::string first_directory(std::string_view compilation_directory, std::string_view name) {
    return join(compilation_directory.starts_with('/') ? compilation_directory : std::string_view{}, name);
}

class HeaderReader {
  public:
    HeaderReader(const LineSections &sections, Bytes bytes, bool is_64)
        : sections_(sections), bytes_(bytes), offset_size_(is_64 ? 8 : 4) {}

    LineHeader read(std::string_view compilation_directory, std::string_view unit_name) {
        LineHeader header;
        header.version = bytes_.u16();
        if (header.version < 2 || header.version > 5) return {};
        if (header.version >= 5) bytes_.skip(2); // address size, segment selector size
        std::uint64_t header_length = bytes_.sized(offset_size_);
        Bytes program = bytes_;
        if (!program.skip(header_length)) return {};
        header.minimum_length = bytes_.u8();
        if (header.version >= 4) header.operations_per_instruction = bytes_.u8();
        header.default_is_statement = bytes_.u8() != 0;
        header.line_base = bytes_.read<std::int8_t>();
        header.line_range = bytes_.u8();
        header.opcode_base = bytes_.u8();
        if (header.line_range == 0 || header.opcode_base == 0) return {};
        for (int i = 1; i < header.opcode_base; ++i) header.operand_counts.push_back(bytes_.u8());
        if (header.version >= 5)
            read_tables(header, compilation_directory);
        else
            read_old_tables(header, compilation_directory, unit_name);
        header.program = program;
        return header;
    }

  private:
    void read_old_tables(LineHeader &header, std::string_view compilation_directory, std::string_view unit_name) {
        std::vector<std::string> directories{std::string(compilation_directory)};
        for (std::string_view name = bytes_.string(); !name.empty() && directories.size() < most_directories;
             name = bytes_.string())
            directories.push_back(join(compilation_directory, name));
        header.files.push_back(join(compilation_directory, unit_name));
        for (std::string_view name = bytes_.string(); !name.empty() && header.files.size() < most_files;
             name = bytes_.string()) {
            std::uint64_t directory = bytes_.uleb();
            bytes_.uleb(); // time
            bytes_.uleb(); // length
            header.files.push_back(directory < directories.size() ? join(directories[directory], name)
                                                                  : std::string(name));
        }
    }

    void read_tables(LineHeader &header, std::string_view compilation_directory) {
        std::vector<std::string> directories;
        auto formats = read_formats();
        std::uint64_t count = bytes_.uleb();
        for (std::uint64_t i = 0; i < count && i < most_directories && bytes_.ok() && !formats.empty(); ++i) {
            auto [name, directory] = read_entry(formats);
            directories.push_back(i == 0 ? first_directory(compilation_directory, name)
                                         : join(directories.front(), name));
        }
        formats = read_formats();
        count = bytes_.uleb();
        for (std::uint64_t i = 0; i < count && i < most_files && bytes_.ok() && !formats.empty(); ++i) {
            auto [name, directory] = read_entry(formats);
            header.files.push_back(directory < directories.size() ? join(directories[directory], name)
                                                                  : std::string(name));
        }
    }

    std::vector<EntryFormat> read_formats() {
        std::vector<EntryFormat> formats(bytes_.u8());
        for (EntryFormat &format : formats) {
            format.content = bytes_.uleb();
            format.form = bytes_.uleb();
        }
        if (!bytes_.ok()) formats.clear();
        return formats;
    }

    std::pair<std::string_view, std::uint64_t> read_entry(const std::vector<EntryFormat> &formats) {
        std::string_view name;
        std::uint64_t directory = 0;
        for (const EntryFormat &format : formats) {
            if (format.content == DW_LNCT_path)
                name = read_string(format.form);
            else if (format.content == DW_LNCT_directory_index)
                directory = read_number(format.form);
            else
                skip(format.form);
        }
        return {name, directory};
    }

    std::string_view read_string(std::uint64_t form) {
        switch (form) {
        case DW_FORM_string: return bytes_.string();
        case DW_FORM_line_strp: return string_at(sections_.line_str, bytes_.sized(offset_size_));
        case DW_FORM_strp: return string_at(sections_.str, bytes_.sized(offset_size_));
        default: skip(form); return {};
        }
    }

    std::uint64_t read_number(std::uint64_t form) {
        switch (form) {
        case DW_FORM_data1: return bytes_.u8();
        case DW_FORM_data2: return bytes_.u16();
        case DW_FORM_data4: return bytes_.u32();
        case DW_FORM_data8: return bytes_.u64();
        case DW_FORM_udata: return bytes_.uleb();
        default: skip(form); return 0;
        }
    }

    void skip(std::uint64_t form) {
        switch (form) {
        case DW_FORM_string: bytes_.string(); return;
        case DW_FORM_line_strp:
        case DW_FORM_strp:
        case DW_FORM_strp_sup: bytes_.skip(offset_size_); return;
        case DW_FORM_strx:
        case DW_FORM_udata: bytes_.uleb(); return;
        case DW_FORM_strx1:
        case DW_FORM_data1: bytes_.skip(1); return;
        case DW_FORM_strx2:
        case DW_FORM_data2: bytes_.skip(2); return;
        case DW_FORM_strx3: bytes_.skip(3); return;
        case DW_FORM_strx4:
        case DW_FORM_data4: bytes_.skip(4); return;
        case DW_FORM_data8: bytes_.skip(8); return;
        case DW_FORM_data16: bytes_.skip(16); return;
        case DW_FORM_block: bytes_.skip(bytes_.uleb()); return;
        default: bytes_.skip(bytes_.left() + 1); // not known: nothing behind it can be read
        }
    }

    const LineSections &sections_;
    Bytes bytes_;
    unsigned offset_size_;
};

/// The state machine of a line number program (6.2.2).
class Machine {
  public:
    Machine(const LineHeader &header, const std::function<bool(const LineRow &)> &row) : header_(header), row_(row) {}

    void run() {
        Bytes bytes = header_.program;
        reset();
        while (running_ && !bytes.at_end() && rows_ < most_rows) {
            std::uint8_t opcode = bytes.u8();
            if (opcode >= header_.opcode_base)
                special(static_cast<unsigned>(opcode - header_.opcode_base));
            else if (opcode == 0)
                extended(bytes);
            else
                standard(opcode, bytes);
        }
    }

  private:
    void reset() {
        at_ = LineRow{};
        at_.file = 1;
        at_.line = 1;
        at_.is_statement = header_.default_is_statement;
        operation_ = 0;
    }

    void emit() {
        ++rows_;
        running_ = row_(at_);
    }

    void advance(std::uint64_t operations) {
        std::uint64_t per = header_.operations_per_instruction;
        if (per <= 1) {
            at_.address += header_.minimum_length * operations;
            return;
        }
        at_.address += header_.minimum_length * ((operation_ + operations) / per);
        operation_ = (operation_ + operations) % per;
    }

    void special(unsigned adjusted) {
        advance(adjusted / header_.line_range);
        at_.line += static_cast<std::uint32_t>(header_.line_base + static_cast<int>(adjusted % header_.line_range));
        emit();
    }

    void extended(Bytes &bytes) {
        std::uint64_t length = bytes.uleb();
        Bytes operands = bytes;
        if (!operands.limit(length)) {
            running_ = false;
            return;
        }
        bytes.skip(length);
        switch (operands.u8()) {
        case DW_LNE_end_sequence:
            at_.end_sequence = true;
            emit();
            reset();
            return;
        case DW_LNE_set_address:
            at_.address = operands.sized(static_cast<unsigned>(operands.left()));
            operation_ = 0;
            return;
        default: return; // a discriminator, or a vendor's own
        }
    }

    void standard(std::uint8_t opcode, Bytes &bytes) {
        switch (opcode) {
        case DW_LNS_copy: emit(); return;
        case DW_LNS_advance_pc: advance(bytes.uleb()); return;
        case DW_LNS_advance_line: at_.line += static_cast<std::uint32_t>(bytes.sleb()); return;
        case DW_LNS_set_file: at_.file = static_cast<std::uint32_t>(bytes.uleb()); return;
        case DW_LNS_set_column: bytes.uleb(); return;
        case DW_LNS_negate_stmt: at_.is_statement = !at_.is_statement; return;
        case DW_LNS_set_basic_block:
        case DW_LNS_set_prologue_end:
        case DW_LNS_set_epilogue_begin: return;
        case DW_LNS_const_add_pc: advance((255U - header_.opcode_base) / header_.line_range); return;
        case DW_LNS_fixed_advance_pc:
            at_.address += bytes.u16();
            operation_ = 0;
            return;
        case DW_LNS_set_isa: bytes.uleb(); return;
        default:
            for (int i = 0; i < header_.operand_counts[opcode - 1U]; ++i) bytes.uleb();
        }
    }

    const LineHeader &header_;
    const std::function<bool(const LineRow &)> &row_;
    LineRow at_;
    std::uint64_t operation_ = 0;
    std::size_t rows_ = 0;
    bool running_ = true;
};

} // namespace

const std::string &LineHeader::file(std::uint64_t index) const {
    static const std::string none;
    return index < files.size() ? files[index] : none;
}

LineSections line_sections(Elf *elf) {
    LineSections sections;
    std::size_t names = 0;
    if (elf == nullptr || elf_getshdrstrndx(elf, &names) != 0) return sections;
    for (Elf_Scn *section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == nullptr || header.sh_type == SHT_NOBITS) continue;
        const char *raw_name = elf_strptr(elf, names, header.sh_name);
        std::string_view name = raw_name != nullptr ? raw_name : "";
        auto *into = name == ".debug_line" || name == ".zdebug_line"           ? &sections.line
                     : name == ".debug_line_str" || name == ".zdebug_line_str" ? &sections.line_str
                     : name == ".debug_str" || name == ".zdebug_str"           ? &sections.str
                                                                               : nullptr;
        Elf_Data *data = into != nullptr ? elf_getdata(section, nullptr) : nullptr;
        if (data != nullptr && data->d_buf != nullptr)
            *into = {static_cast<const std::uint8_t *>(data->d_buf), data->d_size};
    }
    return sections;
}

LineHeader read_line_header(const LineSections &sections, std::uint64_t offset, std::string_view compilation_directory,
                            std::string_view unit_name) {
    if (offset >= sections.line.size()) return {};
    Bytes bytes(sections.line.subspan(offset));
    std::uint64_t length = bytes.u32();
    bool is_64 = length == 0xffffffffU;
    if (is_64) length = bytes.u64();
    if (!bytes.limit(length)) return {};
    return HeaderReader(sections, bytes, is_64).read(compilation_directory, unit_name);
}

void run_line_program(const LineHeader &header, const std::function<bool(const LineRow &)> &row) {
    Machine(header, row).run();
}

bool matches_path(std::string_view path, std::string_view wanted) {
    while (wanted.starts_with("./")) wanted.remove_prefix(2);
    if (wanted.empty() || !path.ends_with(wanted)) return false;
    return path.size() == wanted.size() || wanted.front() == '/' || path[path.size() - wanted.size() - 1] == '/';
}

} // namespace ktrace::symbols
