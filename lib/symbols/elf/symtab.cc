#include "symbols/elf/symtab.h"

#include <algorithm>

#include <elf.h>

namespace ktrace::symbols {

namespace {

constexpr std::uint16_t hidden_bit = 0x8000;

/// The name at an offset of a string table; empty where it is longer than any compiler makes them.
std::string_view symbol_name(std::span<const std::byte> strings, std::uint32_t offset) {
    constexpr std::size_t longest = 65536;
    if (offset >= strings.size()) return {};
    return string_at(strings.subspan(offset, std::min<std::size_t>(longest, strings.size() - offset)), 0);
}

/// DT_GNU_HASH: four words, a Bloom filter of 64-bit words, buckets, then a hash value for each symbol from `first` on,
/// in which the lowest bit ends a bucket's chain.
struct GnuHash {
    std::uint32_t buckets = 0, first = 0, bloom_words = 0, bloom_shift = 0;
    std::uint64_t buckets_at = 0, chains_at = 0;

    static std::optional<GnuHash> read(std::span<const std::byte> bytes) {
        struct Header {
            std::uint32_t buckets, first, bloom_words, bloom_shift;
        };
        auto header = load<Header>(bytes, 0);
        if (!header || header->buckets == 0 || header->bloom_words == 0) return std::nullopt;
        GnuHash hash{header->buckets, header->first, header->bloom_words, header->bloom_shift & 31U};
        hash.buckets_at = sizeof(Header) + std::uint64_t{hash.bloom_words} * sizeof(std::uint64_t);
        hash.chains_at = hash.buckets_at + std::uint64_t{hash.buckets} * sizeof(std::uint32_t);
        if (hash.chains_at > bytes.size()) return std::nullopt;
        return hash;
    }

    static std::uint32_t of(std::string_view name) {
        std::uint32_t h = 5381;
        for (char c : name) h = h * 33 + static_cast<unsigned char>(c);
        return h;
    }

    std::optional<std::uint32_t> bucket(std::span<const std::byte> bytes, std::uint32_t index) const {
        return load<std::uint32_t>(bytes, buckets_at + std::uint64_t{index} * sizeof(std::uint32_t));
    }
    std::optional<std::uint32_t> chain(std::span<const std::byte> bytes, std::uint64_t symbol) const {
        if (symbol < first) return std::nullopt;
        return load<std::uint32_t>(bytes, chains_at + (symbol - first) * sizeof(std::uint32_t));
    }
    bool maybe(std::span<const std::byte> bytes, std::uint32_t h) const {
        auto word = load<std::uint64_t>(bytes, 16 + std::uint64_t{(h / 64) % bloom_words} * 8);
        if (!word) return false;
        return ((*word >> (h % 64)) & (*word >> ((h >> bloom_shift) % 64)) & 1U) != 0;
    }
};

/// How many dynamic symbols there are: no dynamic entry has it, but a section header or a hash table does.
std::uint64_t dynamic_count(const ElfFile &file, std::uint64_t table) {
    const Section *section = file.section_of_type(SHT_DYNSYM);
    if (section && section->vaddr == table) return section->size / sizeof(Elf64_Sym);
    if (auto hash = file.dynamic(DT_HASH))
        if (auto chains = load<std::uint32_t>(file.at(*hash), sizeof(std::uint32_t))) return *chains;
    auto address = file.dynamic(DT_GNU_HASH);
    if (!address) return 0;
    auto bytes = file.at(*address);
    auto hash = GnuHash::read(bytes);
    if (!hash) return 0;
    std::uint64_t last = 0;
    for (std::uint32_t i = 0; i < hash->buckets; i++)
        last = std::max<std::uint64_t>(last, hash->bucket(bytes, i).value_or(0));
    if (last < hash->first) return hash->first;
    while (true) {
        auto value = hash->chain(bytes, last++);
        if (!value || (*value & 1U)) return last;
    }
}

} // namespace

// --- versions

SymbolVersions::SymbolVersions(const ElfFile &file) {
    auto numbers = file.dynamic(DT_VERSYM);
    if (!numbers) return;
    numbers_ = file.at(*numbers);
    read_definitions(file);
    read_needs(file);
}

void SymbolVersions::set(std::uint16_t number, std::string_view name) {
    std::size_t index = number & ~hidden_bit;
    if (index >= names_.size()) names_.resize(index + 1);
    names_[index] = name;
}

void SymbolVersions::read_definitions(const ElfFile &file) {
    std::uint64_t at = file.dynamic(DT_VERDEF).value_or(0);
    for (std::uint64_t left = file.dynamic(DT_VERDEFNUM).value_or(0); left != 0; left--) {
        auto bytes = file.at(at);
        auto definition = load<Elf64_Verdef>(bytes, 0);
        if (!definition) return;
        auto auxiliary = load<Elf64_Verdaux>(bytes, definition->vd_aux);
        bool names_file = (definition->vd_flags & VER_FLG_BASE) != 0;
        if (auxiliary && !names_file) set(definition->vd_ndx, file.dynamic_string(auxiliary->vda_name));
        if (definition->vd_next == 0) return;
        at += definition->vd_next;
    }
}

void SymbolVersions::read_needs(const ElfFile &file) {
    std::uint64_t at = file.dynamic(DT_VERNEED).value_or(0);
    int names_left = 0x8000; // as many as there are numbers for
    for (std::uint64_t left = file.dynamic(DT_VERNEEDNUM).value_or(0); left != 0; left--) {
        auto need = load<Elf64_Verneed>(file.at(at), 0);
        if (!need) return;
        std::uint64_t auxiliary_at = at + need->vn_aux;
        for (std::uint16_t i = 0; i < need->vn_cnt; i++) {
            if (names_left-- == 0) return;
            auto auxiliary = load<Elf64_Vernaux>(file.at(auxiliary_at), 0);
            if (!auxiliary) break;
            set(auxiliary->vna_other, file.dynamic_string(auxiliary->vna_name));
            if (auxiliary->vna_next == 0) break;
            auxiliary_at += auxiliary->vna_next;
        }
        if (need->vn_next == 0) return;
        at += need->vn_next;
    }
}

SymbolVersions::Version SymbolVersions::of(std::uint64_t symbol_index) const {
    auto number = load<std::uint16_t>(numbers_, symbol_index * sizeof(std::uint16_t));
    if (!number) return {};
    std::size_t index = *number & ~hidden_bit;
    return {index < names_.size() ? names_[index] : std::string_view{}, (*number & hidden_bit) != 0};
}

// --- tables

std::optional<SymbolTable> SymbolTable::static_of(const ElfFile &file, const ElfFile &loaded) {
    const Section *section = file.section_of_type(SHT_SYMTAB);
    if (!section || section->link >= file.sections().size()) return std::nullopt;
    SymbolTable table(file, loaded, false);
    table.entries_ = file.contents(*section);
    table.strings_ = file.contents(file.sections()[section->link]);
    table.count_ = table.entries_.size() / sizeof(Elf64_Sym);
    if (table.count_ < 2 || table.strings_.empty()) return std::nullopt;
    return table;
}

std::optional<SymbolTable> SymbolTable::dynamic_of(const ElfFile &file) {
    auto address = file.dynamic(DT_SYMTAB);
    if (!address) return std::nullopt;
    SymbolTable table(file, file, true);
    table.entries_ = file.at(*address);
    table.count_ = std::min<std::uint64_t>(dynamic_count(file, *address), table.entries_.size() / sizeof(Elf64_Sym));
    table.entries_ = table.entries_.first(table.count_ * sizeof(Elf64_Sym));
    table.strings_ = file.dynamic_strings();
    if (table.count_ < 2 || table.strings_.empty()) return std::nullopt;
    table.versions_ = std::make_shared<SymbolVersions>(file);
    if (auto hash = file.dynamic(DT_GNU_HASH)) {
        table.hash_ = file.at(*hash);
        if (!GnuHash::read(table.hash_)) table.hash_ = {};
    }
    return table;
}

std::string_view SymbolTable::name(std::uint64_t index) const {
    auto entry = load<Elf64_Sym>(entries_, index * sizeof(Elf64_Sym));
    return entry ? symbol_name(strings_, entry->st_name) : std::string_view{};
}

std::string_view SymbolTable::version(std::uint64_t index) const {
    return versions_ ? versions_->of(index).name : std::string_view{};
}

bool SymbolTable::maybe_told(std::uint64_t index) const {
    auto entry = load<Elf64_Sym>(entries_, index * sizeof(Elf64_Sym));
    if (!entry || entry->st_shndx == SHN_UNDEF || entry->st_shndx == SHN_COMMON) return false;
    switch (ELF64_ST_TYPE(entry->st_info)) {
    case STT_TLS: return true;
    case STT_FUNC:
    case STT_GNU_IFUNC:
    case STT_OBJECT:
    case STT_NOTYPE: return entry->st_value != 0;
    default: return false;
    }
}

namespace {

/// A symbol without a type in an executed section is a function written in assembly; one at the section's end is a mark
/// of the linker's (_etext), and `$x` separates code from data (arm64).
bool is_assembly_function(const ElfFile &file, const Elf64_Sym &entry, std::string_view name) {
    if (entry.st_shndx >= file.sections().size() || name.starts_with('$') || name.starts_with(".L")) return false;
    const Section &section = file.sections()[entry.st_shndx];
    return section.executable() && entry.st_value >= section.vaddr && entry.st_value - section.vaddr < section.size;
}

std::optional<Symbol::Kind> kind_of(const ElfFile &file, const Elf64_Sym &entry, std::string_view name) {
    switch (ELF64_ST_TYPE(entry.st_info)) {
    case STT_TLS: return Symbol::Kind::tls;
    case STT_FUNC: return Symbol::Kind::function;
    case STT_GNU_IFUNC: return Symbol::Kind::ifunc;
    case STT_OBJECT: return entry.st_shndx == SHN_ABS ? std::nullopt : std::optional(Symbol::Kind::object);
    case STT_NOTYPE:
        return is_assembly_function(file, entry, name) ? std::optional(Symbol::Kind::function) : std::nullopt;
    default: return std::nullopt;
    }
}

} // namespace

std::optional<Symbol> SymbolTable::symbol(std::uint64_t index) const {
    if (index >= count_ || !maybe_told(index)) return std::nullopt;
    auto entry = *load<Elf64_Sym>(entries_, index * sizeof(Elf64_Sym));
    Symbol symbol;
    symbol.name = symbol_name(strings_, entry.st_name);
    if (symbol.name.empty()) return std::nullopt;
    auto kind = kind_of(*file_, entry, symbol.name);
    if (!kind) return std::nullopt;
    symbol.kind = *kind;
    if (symbol.is_function() && !loaded_->executable(entry.st_value)) return std::nullopt;
    symbol.vaddr = entry.st_value;
    symbol.size = entry.st_size;
    if (symbol.vaddr + symbol.size < symbol.vaddr) symbol.size = 0;
    symbol.global = ELF64_ST_BIND(entry.st_info) != STB_LOCAL;
    if (versions_) {
        auto version = versions_->of(index);
        symbol.version = version.name;
        symbol.default_version = !version.hidden;
    } else if (auto at = symbol.name.find('@'); at != std::string_view::npos && at != 0) {
        // .symtab names of versioned symbols: name@VERSION, name@@VERSION for the default one.
        symbol.default_version = symbol.name.substr(at).starts_with("@@");
        symbol.version = symbol.name.substr(at + (symbol.default_version ? 2 : 1));
        symbol.name = symbol.name.substr(0, at);
    }
    return symbol;
}

std::vector<std::uint64_t> SymbolTable::lookup(std::string_view name) const {
    std::vector<std::uint64_t> found;
    auto hash = GnuHash::read(hash_);
    std::uint32_t wanted = GnuHash::of(name);
    if (!hash || !hash->maybe(hash_, wanted)) return found;
    std::uint64_t index = hash->bucket(hash_, wanted % hash->buckets).value_or(0);
    if (index < hash->first) return found;
    for (; index < count_; index++) {
        auto value = hash->chain(hash_, index);
        if (!value) break;
        if ((*value | 1U) == (wanted | 1U) && this->name(index) == name) found.push_back(index);
        if (*value & 1U) break;
    }
    return found;
}

} // namespace ktrace::symbols
