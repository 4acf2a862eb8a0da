#include "symbols/elf/eh_frame.h"

#include <algorithm>

#include "symbols/elf/bytes.h"

namespace ktrace::symbols {

namespace {

// Pointer encodings (DW_EH_PE_*): how a pointer is stored, and what it is relative to.
enum Encoding : std::uint8_t {
    absptr = 0x00,
    uleb128 = 0x01,
    udata2 = 0x02,
    udata4 = 0x03,
    udata8 = 0x04,
    sleb128 = 0x09,
    sdata2 = 0x0a,
    sdata4 = 0x0b,
    sdata8 = 0x0c,
    format_mask = 0x0f,
    pc_relative = 0x10,
    data_relative = 0x30,
    relative_mask = 0x70,
    indirect = 0x80,
    omit = 0xff,
};

/// A reader at an address of the file. After the first read that fails all fail.
class Reader {
  public:
    Reader(const ElfFile &file, std::uint64_t vaddr) : vaddr_(vaddr), bytes_(file.at(vaddr)) {}

    bool ok() const { return ok_; }
    std::uint64_t vaddr() const { return vaddr_ + at_; }
    void skip(std::uint64_t size) {
        if (size > bytes_.size() - std::min<std::uint64_t>(at_, bytes_.size()))
            ok_ = false;
        else
            at_ += size;
    }

    template <class T> T read() {
        auto value = ok_ ? load<T>(bytes_, at_) : std::nullopt;
        ok_ = value.has_value();
        at_ += ok_ ? sizeof(T) : 0;
        return value.value_or(T{});
    }

    std::string_view string() {
        std::string_view text = ok_ ? string_at(bytes_, at_) : std::string_view{};
        skip(text.size() + 1);
        return text;
    }

    std::uint64_t leb128(bool is_signed) {
        std::uint64_t value = 0;
        for (unsigned shift = 0; ok_; shift += 7) {
            auto byte = read<std::uint8_t>();
            if (shift < 64) value |= std::uint64_t{byte & 0x7fU} << shift;
            if (byte & 0x80U) continue;
            if (is_signed && (byte & 0x40U) && shift + 7 < 64) value |= ~std::uint64_t{0} << (shift + 7);
            break;
        }
        return value;
    }

    /// A pointer of this encoding; `data` is what data-relative ones count from.
    std::uint64_t pointer(std::uint8_t encoding, std::uint64_t data) {
        std::uint64_t here = vaddr();
        std::uint64_t value = stored(encoding & format_mask);
        switch (encoding & relative_mask) {
        case absptr: break;
        case pc_relative: value += here; break;
        case data_relative: value += data; break;
        default: ok_ = false;
        }
        if (encoding & indirect) ok_ = false; // it lies in memory, not in the file
        return value;
    }

    std::uint64_t stored(std::uint8_t format) {
        auto extended = [](auto value) { return static_cast<std::uint64_t>(std::int64_t{value}); };
        switch (format) {
        case absptr:
        case udata8:
        case sdata8: return read<std::uint64_t>();
        case uleb128: return leb128(false);
        case sleb128: return leb128(true);
        case udata2: return read<std::uint16_t>();
        case udata4: return read<std::uint32_t>();
        case sdata2: return extended(read<std::int16_t>());
        case sdata4: return extended(read<std::int32_t>());
        default: ok_ = false; return 0;
        }
    }

  private:
    std::uint64_t vaddr_;
    std::span<const std::byte> bytes_;
    std::uint64_t at_ = 0;
    bool ok_ = true;
};

/// The length of a CIE or FDE, and the address behind it; nothing at the end of the section.
struct Record {
    std::uint64_t content = 0, end = 0;
};

std::optional<Record> record_at(Reader &reader) {
    std::uint64_t length = reader.read<std::uint32_t>();
    if (length == 0xffffffff) length = reader.read<std::uint64_t>();
    std::uint64_t content = reader.vaddr();
    if (!reader.ok() || length == 0 || content + length < content) return std::nullopt;
    return Record{content, content + length};
}

/// How the FDEs of the CIE at vaddr store their addresses: the augmentation's 'R'.
std::optional<std::uint8_t> address_encoding(const ElfFile &file, std::uint64_t cie) {
    Reader reader(file, cie);
    if (!record_at(reader) || reader.read<std::uint32_t>() != 0) return std::nullopt;
    auto version = reader.read<std::uint8_t>();
    std::string_view augmentation = reader.string();
    if (augmentation.empty() || augmentation[0] != 'z') return absptr;
    reader.leb128(false); // code alignment
    reader.leb128(true);  // data alignment
    if (version == 1)
        reader.read<std::uint8_t>();
    else
        reader.leb128(false); // return address register
    reader.leb128(false);     // length of the augmentation's data
    for (char c : augmentation.substr(1)) {
        if (!reader.ok()) return std::nullopt;
        if (c == 'R') return reader.read<std::uint8_t>();
        if (c == 'L') reader.read<std::uint8_t>();
        if (c == 'P') {
            auto encoding = reader.read<std::uint8_t>();
            reader.stored(encoding & format_mask);
        }
    }
    return absptr;
}

/// The extent that the FDE at vaddr describes; nothing where it is a CIE.
std::optional<Extent> extent_of(const ElfFile &file, std::uint64_t fde) {
    Reader reader(file, fde);
    if (!record_at(reader)) return std::nullopt;
    std::uint64_t pointer_at = reader.vaddr();
    auto distance = reader.read<std::uint32_t>();
    if (!reader.ok() || distance == 0) return std::nullopt;
    auto encoding = address_encoding(file, pointer_at - distance);
    if (!encoding || *encoding == omit) return std::nullopt;
    std::uint64_t start = reader.pointer(*encoding, 0);
    std::uint64_t size = reader.stored(*encoding & format_mask);
    if (!reader.ok() || size == 0 || start + size < start) return std::nullopt;
    return Extent{start, start + size};
}

std::optional<Extent> covering_by_reading(const ElfFile &file, std::uint64_t section, std::uint64_t vaddr) {
    constexpr int most_records = 1'000'000;
    for (int i = 0; i < most_records; i++) {
        Reader reader(file, section);
        auto record = record_at(reader);
        if (!record) return std::nullopt;
        auto extent = extent_of(file, section);
        if (extent && vaddr >= extent->start && vaddr < extent->end) return extent;
        section = record->end;
    }
    return std::nullopt;
}

} // namespace

std::optional<Extent> EhFrame::covering(std::uint64_t vaddr) const {
    auto header = file_->eh_frame_header();
    if (!header) {
        const Section *section = file_->section(".eh_frame");
        return section ? covering_by_reading(*file_, section->vaddr, vaddr) : std::nullopt;
    }
    Reader reader(*file_, *header);
    auto version = reader.read<std::uint8_t>();
    auto frame_encoding = reader.read<std::uint8_t>();
    auto count_encoding = reader.read<std::uint8_t>();
    auto table_encoding = reader.read<std::uint8_t>();
    if (!reader.ok() || version != 1 || frame_encoding == omit) return std::nullopt;
    std::uint64_t frames = reader.pointer(frame_encoding, *header);
    constexpr std::uint8_t sorted_pairs = data_relative | sdata4; // what every linker writes
    if (count_encoding == omit || table_encoding != sorted_pairs) return covering_by_reading(*file_, frames, vaddr);
    std::uint64_t count = reader.pointer(count_encoding, *header);
    struct Row {
        std::int32_t start, fde;
    };
    auto table = file_->at(reader.vaddr());
    std::uint64_t low = 0, high = std::min<std::uint64_t>(count, table.size() / sizeof(Row));
    while (low < high) { // the first row that starts behind vaddr
        std::uint64_t middle = low + (high - low) / 2;
        auto row = *load<Row>(table, middle * sizeof(Row));
        if (*header + static_cast<std::uint64_t>(std::int64_t{row.start}) <= vaddr)
            low = middle + 1;
        else
            high = middle;
    }
    if (!reader.ok() || low == 0) return std::nullopt;
    auto row = *load<Row>(table, (low - 1) * sizeof(Row));
    auto extent = extent_of(*file_, *header + static_cast<std::uint64_t>(std::int64_t{row.fde}));
    if (!extent || vaddr < extent->start || vaddr >= extent->end) return std::nullopt;
    return extent;
}

} // namespace ktrace::symbols
