#include "symbols/module.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>

#include <elf.h>

#include "arch/host.h"
#include "base/log.h"
#include "base/text.h"
#include "symbols/debugfile/debugfile.h"
#include "symbols/debugfile/debuginfod.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/elf/eh_frame.h"
#include "symbols/elf/elf.h"
#include "symbols/elf/minidebug.h"
#include "symbols/elf/relocations.h"
#include "symbols/elf/sequences.h"
#include "symbols/names/demangle.h"
#include "symbols/names/symbol_set.h"

namespace ktrace::symbols {

struct Module::Impl {
    std::string path;  // what was opened
    std::string shown; // what users read
    std::string root;
    std::unique_ptr<ElfFile> elf;

    // All below is made on first use.
    std::unique_ptr<SymbolSet> symbols;
    std::optional<SymbolTable> dynamic; // also a table of `symbols`
    std::unique_ptr<ElfFile> mini_debug;
    bool has_full_table = false; // a .symtab of the file's own or of a debug file
    DebugFile debug;
    bool debug_searched = false, debug_fetched = false;
    std::unique_ptr<Relocations> relocations;
    std::unique_ptr<Sequences> sequences;
    std::unique_ptr<Dwarf> dwarf;
    bool dwarf_searched = false, dwarf_fetched = false;
    std::string why_no_dwarf, unread;
    std::unordered_map<const char *, std::string_view> names[2]; // demangled, by the symbol's name and spelling
    std::deque<std::string> name_texts;

    Impl(std::string opened, std::string shown_path, std::string root_folder, std::unique_ptr<ElfFile> file)
        : path(std::move(opened)), shown(std::move(shown_path)), root(std::move(root_folder)), elf(std::move(file)) {}

    SymbolSet &symbol_set();
    void add_mini_debug();
    void add_described();
    bool add_static_table(const ElfFile &file);
    DebugFile &debug_file();
    bool fetch_debug();
    Relocations &relocation_index();
    void open_dwarf();
    void explain_no_dwarf();
};

namespace {

bool has_debug_info(const ElfFile &file) {
    return file.section(".debug_info") != nullptr || file.section(".zdebug_info") != nullptr;
}

void note(const std::string &text) { KT_LOG_INFO(text); }

} // namespace

// --- opening

Module::Module(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Module::~Module() = default;

Result<std::shared_ptr<Module>> Module::open(const std::string &path, const std::string &shown,
                                             const std::string &root) {
    auto image = Image::open(path);
    if (!image) return tl::unexpected(image.error());
    auto elf = ElfFile::parse(std::move(*image), shown, ElfFile::Role::loaded);
    if (!elf) return tl::unexpected(elf.error());
    return std::shared_ptr<Module>(new Module(std::make_unique<Impl>(path, shown, root, std::move(*elf))));
}

Result<std::shared_ptr<Module>> Module::from_bytes(std::vector<std::byte> bytes, const std::string &shown) {
    auto elf = ElfFile::parse(Image::of(std::move(bytes)), shown, ElfFile::Role::loaded);
    if (!elf) return tl::unexpected(elf.error());
    return std::shared_ptr<Module>(
        new Module(std::make_unique<Impl>(std::string{}, shown, std::string{}, std::move(*elf))));
}

// --- what the headers say

const std::string &Module::path() const { return impl_->shown; }
std::string_view Module::name() const { return text::base_name(impl_->shown); }
bool Module::is_vdso() const { return impl_->elf->image().fd() < 0; }
bool Module::position_independent() const { return impl_->elf->type() == ET_DYN; }
std::uint64_t Module::entry() const { return impl_->elf->entry(); }
std::string Module::interpreter() const { return std::string(impl_->elf->interpreter()); }
std::span<const std::byte> Module::build_id() const { return impl_->elf->build_id(); }
std::span<const Segment> Module::segments() const { return impl_->elf->segments(); }
std::span<const std::byte> Module::image() const { return impl_->elf->image().bytes(); }

int Module::debug_frame_file() const {
    auto has_it = [](const ElfFile &file) { return file.section(".debug_frame") || file.section(".zdebug_frame"); };
    if (has_it(*impl_->elf)) return impl_->elf->image().fd();
    const DebugFile &debug = impl_->debug_file();
    return debug.elf && has_it(*debug.elf) ? debug.elf->image().fd() : -1;
}

std::optional<std::int64_t> Module::program_tls() const {
    constexpr std::uint64_t pie = 0x08000000; // DF_1_PIE
    bool is_program = !position_independent() || (impl_->elf->dynamic(DT_FLAGS_1).value_or(0) & pie) != 0 ||
                      (!impl_->elf->interpreter().empty() && soname().empty());
    auto block = impl_->elf->tls_block();
    if (!is_program || !block) return std::nullopt;
    return arch::Host::program_tls(block->size, block->alignment);
}

std::string Module::soname() const {
    auto offset = impl_->elf->dynamic(DT_SONAME);
    return offset ? std::string(impl_->elf->dynamic_string(*offset)) : std::string{};
}

std::optional<std::uint64_t> Module::vaddr_of_offset(std::uint64_t file_offset) const {
    for (const Segment &segment : segments())
        if (file_offset >= segment.file_offset && file_offset - segment.file_offset < segment.file_size)
            return segment.vaddr + (file_offset - segment.file_offset);
    return std::nullopt;
}

std::vector<std::byte> Module::bytes_at(std::uint64_t vaddr, std::size_t size) const {
    auto bytes = impl_->elf->at(vaddr, size);
    return {bytes.begin(), bytes.end()};
}

bool Module::executable(std::uint64_t vaddr) const { return impl_->elf->executable(vaddr); }

bool Module::in_plt(std::uint64_t vaddr) const {
    const Section *section = impl_->elf->section_at(vaddr);
    return section && (section->name.starts_with(".plt") || section->name.starts_with(".iplt"));
}

std::optional<InSequence> Module::in_sequence(std::uint64_t vaddr, std::uint64_t length) const {
    if (!impl_->sequences) impl_->sequences = std::make_unique<Sequences>(*impl_->elf);
    return impl_->sequences->around(vaddr, length);
}

// --- symbols

bool Module::Impl::add_static_table(const ElfFile &file) {
    auto table = SymbolTable::static_of(file, *elf);
    if (table) symbols->add(std::move(*table));
    return table.has_value();
}

void Module::Impl::add_mini_debug() {
    const Section *section = elf->section(".gnu_debugdata");
    if (!section) return;
    auto bytes = decompress_xz(elf->contents(*section));
    if (!bytes) return note(shown + ": " + bytes.error().message);
    auto file = ElfFile::parse(Image::of(std::move(*bytes)), shown + " (.gnu_debugdata)", ElfFile::Role::debug);
    if (!file) return note(file.error().message);
    mini_debug = std::move(*file);
    add_static_table(*mini_debug);
}

SymbolSet &Module::Impl::symbol_set() {
    if (symbols) return *symbols;
    symbols = std::make_unique<SymbolSet>();
    dynamic = SymbolTable::dynamic_of(*elf);
    if (dynamic) symbols->add(*dynamic);
    has_full_table = add_static_table(*elf) || (debug_file().elf && add_static_table(*debug_file().elf));
    if (!has_full_table) add_mini_debug();
    if (!has_full_table) add_described();
    return *symbols;
}

/// The functions of a stripped file that has kept its debug information.
void Module::Impl::add_described() {
    if (!has_debug_info(*elf)) return;
    if (!std::exchange(dwarf_searched, true)) open_dwarf();
    if (!dwarf) return;
    std::vector<Symbol> described;
    for (DescribedCode &code : dwarf->described()) {
        Symbol &symbol = described.emplace_back();
        symbol.name = name_texts.emplace_back(std::move(is_mangled(code.linkage) ? code.linkage : code.qualified));
        symbol.vaddr = code.entry;
        symbol.size = code.end - code.entry;
    }
    has_full_table = !described.empty();
    symbols->add(std::move(described));
}

DebugFile &Module::Impl::debug_file() {
    if (!debug_searched) {
        debug_searched = true;
        debug = find_debug_file(*elf, shown, root);
        if (debug.elf) note(shown + ": its debug file is " + debug.path);
    }
    return debug;
}

bool Module::Impl::fetch_debug() {
    if (debug_fetched) return debug.elf != nullptr; // for symbols after DWARF, or the other way round
    if (debug_file().elf || elf->build_id().empty() || !debuginfod_configured()) return false;
    debug_fetched = true;
    debug = fetch_debug_file(elf->build_id(), why_no_dwarf);
    if (debug.elf) note(shown + ": its debug file is " + debug.path + ", from debuginfod");
    return debug.elf != nullptr;
}

bool Module::fetch_symbols() const {
    impl_->symbol_set();
    if (impl_->has_full_table || !impl_->fetch_debug()) return false;
    impl_->has_full_table = impl_->add_static_table(*impl_->debug.elf);
    return impl_->has_full_table;
}

bool Module::is_stripped() const {
    impl_->symbol_set();
    return !impl_->has_full_table && !impl_->mini_debug && !is_vdso();
}

std::span<const Symbol> Module::symbols() const { return impl_->symbol_set().all(); }
std::vector<const Symbol *> Module::named(std::string_view name) const { return impl_->symbol_set().named(name); }

std::vector<const Symbol *> Module::matching(const NamePattern &pattern, const std::function<bool()> &gives_up) const {
    return impl_->symbol_set().matching(pattern, gives_up);
}

const Symbol *Module::covering(std::uint64_t vaddr) const {
    if (!executable(vaddr)) return nullptr;
    const Symbol *symbol = impl_->symbol_set().covering(vaddr);
    if (!symbol || symbol->size != 0) return symbol;
    return vaddr < function_end(symbol->vaddr) ? symbol : nullptr;
}

std::string_view Module::demangled(const Symbol &symbol, bool full) const {
    if (!is_mangled(symbol.name)) return symbol.name;
    auto &cache = impl_->names[full ? 1 : 0];
    auto [entry, is_new] = cache.try_emplace(symbol.name.data(), symbol.name);
    if (!is_new) return entry->second;
    auto clone = split_clone(symbol.name);
    auto text = demangle(clone.base, full ? Spelling::signature : Spelling::name);
    if (text) {
        text->append(clone.suffix);
        entry->second = impl_->name_texts.emplace_back(std::move(*text));
    }
    return entry->second;
}

// --- extents of functions

std::uint64_t Module::function_end(std::uint64_t vaddr) const {
    SymbolSet &symbols = impl_->symbol_set();
    const Symbol *symbol = symbols.covering(vaddr);
    // No end lies before its start, whatever the file says.
    if (symbol && symbol->vaddr == vaddr && symbol->size != 0) return std::max(vaddr, vaddr + symbol->size);
    auto frame = EhFrame(*impl_->elf).covering(vaddr);
    if (frame && frame->start == vaddr) return std::max(vaddr, frame->end);
    std::uint64_t end = UINT64_MAX;
    if (const Section *section = impl_->elf->section_at(vaddr)) end = section->vaddr + section->size;
    for (const Segment &segment : segments())
        if (vaddr >= segment.vaddr && vaddr - segment.vaddr < segment.memory_size)
            end = std::min(end, segment.vaddr + segment.memory_size);
    if (const Symbol *next = symbols.function_after(vaddr)) end = std::min(end, next->vaddr);
    return end == UINT64_MAX ? vaddr : std::max(vaddr, end);
}

std::optional<Module::Extent> Module::function_at(std::uint64_t vaddr) const {
    if (const Symbol *symbol = covering(vaddr)) return Extent{symbol->vaddr, function_end(symbol->vaddr)};
    if (in_plt(vaddr)) return std::nullopt; // one frame description covers all stubs
    auto frame = EhFrame(*impl_->elf).covering(vaddr);
    return frame ? std::optional(Extent{frame->start, frame->end}) : std::nullopt;
}

// --- slots that the dynamic linker fills

Relocations &Module::Impl::relocation_index() {
    symbol_set();
    if (!relocations) relocations = std::make_unique<Relocations>(*elf, dynamic ? &*dynamic : nullptr);
    return *relocations;
}

std::vector<std::uint64_t> Module::got_slots(std::string_view name, std::string_view version) const {
    return impl_->relocation_index().slots(name, version);
}

std::optional<std::string_view> Module::got_symbol(std::uint64_t slot_vaddr) const {
    const Relocations &relocations = impl_->relocation_index();
    if (const auto *slot = relocations.slot_at(slot_vaddr)) return impl_->dynamic->name(slot->symbol);
    for (const Irelative &irelative : relocations.irelative()) {
        if (irelative.slot != slot_vaddr) continue;
        const Symbol *resolver = covering(irelative.resolver);
        return resolver ? std::optional(resolver->name) : std::nullopt;
    }
    return std::nullopt;
}

std::vector<Irelative> Module::irelative_slots() const { return impl_->relocation_index().irelative(); }

// --- debug information

void Module::Impl::explain_no_dwarf() {
    if (path.empty()) {
        why_no_dwarf = shown + " is no file";
        return;
    }
    std::string asked = debug_fetched && !why_no_dwarf.empty() ? "; " + why_no_dwarf : "";
    std::string id = elf->build_id().empty() ? std::string("has no build-id to find a debug file by")
                                             : "no debug file with build-id " + hex(elf->build_id()) + " is installed";
    why_no_dwarf =
        shown + " was built without -g or stripped, and " + (elf->build_id().empty() ? "it " : "") + id + asked;
}

void Module::Impl::open_dwarf() {
    bool own = has_debug_info(*elf);
    const ElfFile *file = own ? elf.get() : debug.elf.get();
    if (!file || !has_debug_info(*file) || file->image().fd() < 0) return explain_no_dwarf();
    const std::string &from = own ? path : debug.path;
    // A debug file has no bytes of the program: libdw takes call frame information from the file that is loaded.
    auto opened =
        own ? Dwarf::open(from, file->image().fd()) : Dwarf::open(from, file->image().fd(), path, elf->image().fd());
    if (opened) {
        dwarf = std::move(*opened);
        why_no_dwarf.clear();
        unread.clear();
    } else {
        why_no_dwarf = opened.error().message;
        unread = why_no_dwarf + (opened.error().hint.empty() ? "" : "; " + opened.error().hint);
        note(shown + ": " + why_no_dwarf);
    }
}

Dwarf *Module::dwarf(DebugSource source) const {
    Impl &impl = *impl_;
    if (impl.dwarf) return impl.dwarf.get();
    if (!impl.dwarf_searched) {
        impl.dwarf_searched = true;
        if (!has_debug_info(*impl.elf)) impl.debug_file();
        impl.open_dwarf();
    }
    if (!impl.dwarf && source == DebugSource::remote && !impl.dwarf_fetched) {
        impl.dwarf_fetched = true;
        if (!has_debug_info(*impl.elf)) impl.fetch_debug();
        impl.open_dwarf();
    }
    return impl.dwarf.get();
}

const std::string &Module::why_no_dwarf() const {
    dwarf(DebugSource::local);
    return impl_->why_no_dwarf;
}

std::string Module::unread_debug_information() const {
    if (!impl_->dwarf) return impl_->unread;
    const std::string &missing = impl_->dwarf->missing_part();
    return missing.empty() ? "" : impl_->shown + ": " + missing;
}

} // namespace ktrace::symbols
