// Units (dwarf_units.h).
#include "symbols/dwarf/units/units.h"

#include <algorithm>

#include "symbols/dwarf/die/guard.h"
#include "symbols/dwarf/die/scan.h"

namespace ktrace::symbols {

namespace {

constexpr std::size_t most_units = 1 << 20;

bool is_scope(unsigned tag) {
    switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
    case DW_TAG_enumeration_type:
    case DW_TAG_subprogram: return true;
    default: return false;
    }
}

bool is_definable(unsigned tag) {
    switch (tag) {
    case DW_TAG_structure_type:
    case DW_TAG_class_type:
    case DW_TAG_union_type:
    case DW_TAG_typedef:
    case DW_TAG_enumeration_type: return true;
    default: return false;
    }
}

/// Types may also lie elsewhere: in a type unit, in what dwz has shared.
bool is_sign_of_types(unsigned tag) {
    switch (tag) {
    case DW_TAG_base_type:
    case DW_TAG_formal_parameter:
    case DW_TAG_imported_unit:
    case DW_TAG_pointer_type:
    case DW_TAG_type_unit:
    case DW_TAG_typedef: return true;
    default: return is_definable(tag);
    }
}

/// True where a DIE of this unit may have such a tag. The table of abbreviations is short, the unit need not be read.
bool has_abbreviation(Dwarf_Die root, bool (*wanted)(unsigned tag)) {
    constexpr int most = 1 << 16;
    Dwarf_Off offset = 0;
    for (int i = 0; i < most; i++) {
        std::size_t length = 0;
        Dwarf_Abbrev *abbreviation = dwarf_getabbrev(&root, offset, &length);
        if (abbreviation == nullptr || abbreviation == DWARF_END_ABBREV) return false;
        if (wanted(dwarf_getabbrevtag(abbreviation))) return true;
        offset += length;
    }
    return false;
}

/// True where an expression begins with an address: a static.
bool has_address(Dwarf_Die die) {
    auto attr = attribute(die, DW_AT_location);
    Dwarf_Block block;
    if (!attr || dwarf_formblock(&*attr, &block) != 0 || block.length == 0) return false;
    switch (block.data[0]) {
    case DW_OP_addr:
    case DW_OP_addrx:
    case DW_OP_GNU_addr_index:
    case DW_OP_const8u: // a thread-local
    case DW_OP_const4u:
    case DW_OP_constx:
    case DW_OP_GNU_const_index: return true;
    default: return false;
    }
}

/// Fills an outline in as a scan goes over its unit.
class Outliner {
  public:
    Outliner(Outline &outline, Dwarf_CU *cu) : outline_(outline), cu_(cu) {}

    void add(const Scanned &at) {
        close(at.depth, at.address);
        int function = enclosing_function();
        switch (at.tag) {
        case DW_TAG_subprogram: add_function(at); break;
        case DW_TAG_inlined_subroutine: outline_.inlined_at.push_back(at.address); break;
        case DW_TAG_variable:
        case DW_TAG_member: // a static member, before DWARF 5
            add_variable(at, function >= 0);
            break;
        default:
            if (is_definable(at.tag) && (at.has & has_declaration) == 0 && (at.has & has_name) != 0)
                outline_.definitions.push_back(at.address);
        }
        if (is_scope(at.tag)) open(at);
    }
    void finish(const std::uint8_t *end) { close(0, end); }

  private:
    struct Open {
        unsigned depth;
        int scope;
    };

    void add_function(const Scanned &at) {
        if ((at.has & (has_code | has_inline)) == 0) return;
        outline_.functions.push_back(at.address);
        if ((at.has & has_code) == 0) return;
        for (auto [low, high] : address_ranges(die_at(at.address, cu_)))
            outline_.code.push_back({low, high, at.address});
    }

    void add_variable(const Scanned &at, bool in_function) {
        if (at.tag == DW_TAG_member && (at.has & has_const_value) == 0) return;
        if (in_function) {
            if ((at.has & has_single_location) == 0 || !has_address(die_at(at.address, cu_))) return;
        } else if ((at.has & (has_location | has_const_value)) == 0) {
            return;
        }
        outline_.variables.push_back(at.address);
    }

    void open(const Scanned &at) {
        open_.push_back({at.depth, static_cast<int>(outline_.scopes.size())});
        int parent = open_.size() > 1 ? open_[open_.size() - 2].scope : -1;
        outline_.scopes.push_back({at.address, at.address, parent, at.tag});
    }

    void close(unsigned depth, const std::uint8_t *end) {
        while (!open_.empty() && open_.back().depth >= depth) {
            outline_.scopes[static_cast<std::size_t>(open_.back().scope)].end = end;
            open_.pop_back();
        }
    }

    int enclosing_function() const {
        for (auto scope = open_.rbegin(); scope != open_.rend(); ++scope)
            if (outline_.scopes[static_cast<std::size_t>(scope->scope)].tag == DW_TAG_subprogram) return scope->scope;
        return -1;
    }

    Outline &outline_;
    Dwarf_CU *cu_;
    std::vector<Open> open_;
};

} // namespace

Units::Units(::Dwarf *dwarf, std::vector<AddressRange> executable, std::string directory)
    : dwarf_(dwarf), executable_(std::move(executable)), directory_(std::move(directory)) {}

void Units::read_all() {
    if (std::exchange(all_read_, true)) return;
    Dwarf_CU *cu = nullptr;
    Dwarf_Die die;
    while (all_.size() < most_units && dwarf_get_units(dwarf_, cu, &cu, nullptr, nullptr, &die, nullptr) == 0) {
        if (die.addr == nullptr) continue;
        all_.push_back(&of(die));
    }
    if (!all_.empty()) info_size_ = section_of(all_.front()->skeleton).size();
}

const std::vector<Unit *> &Units::all() {
    read_all();
    return all_;
}

std::uint64_t Units::info_size() {
    read_all();
    return info_size_;
}

Unit &Units::of(Dwarf_Die die) {
    auto found = by_cu_.find(die.cu);
    if (found != by_cu_.end()) return *found->second;
    owned_.push_back(std::make_unique<Unit>());
    Unit &unit = *owned_.back();
    unit.skeleton = unit_die(die);
    by_cu_[die.cu] = &unit;
    return unit;
}

Dwarf_Die Units::top(Unit &unit) {
    if (std::exchange(unit.top_ready, true)) return unit.top;
    unit.top = unit.skeleton;
    std::uint8_t type = 0;
    if (unit.skeleton.cu == nullptr ||
        dwarf_cu_info(unit.skeleton.cu, nullptr, &type, nullptr, nullptr, nullptr, nullptr, nullptr) != 0 ||
        type != DW_UT_skeleton)
        return unit.top;
    auto readable = check_split_file(unit.skeleton, directory_);
    Dwarf_Die split{};
    if (readable &&
        dwarf_cu_info(unit.skeleton.cu, nullptr, nullptr, nullptr, &split, nullptr, nullptr, nullptr) == 0 &&
        split.addr != nullptr) {
        unit.top = split;
        by_cu_[split.cu] = &unit;
    } else if (missing_part_.empty()) {
        missing_part_ = readable ? "a file with debug information of it (.dwo) does not belong to it or is damaged"
                                 : readable.error().message;
        if (!readable && !readable.error().hint.empty()) missing_part_ += "; " + readable.error().hint;
    }
    return unit.top;
}

Outline &Units::outline(Unit &unit) {
    if (unit.outline) return *unit.outline;
    unit.outline = std::make_unique<Outline>();
    Outline &outline = *unit.outline;
    Dwarf_Die root = top(unit);
    if (root.addr == nullptr) return outline;
    Scan scan(root);
    Outliner outliner(outline, root.cu);
    while (const Scanned *at = scan.next()) outliner.add(*at);
    outliner.finish(scan.position());
    std::erase_if(outline.code, [this](const CodeRange &range) { return !executable(range.low); });
    std::stable_sort(outline.code.begin(), outline.code.end(),
                     [](const CodeRange &a, const CodeRange &b) { return a.low < b.low; });
    return outline;
}

const std::vector<Inlined> &Units::inlined(Unit &unit) {
    Outline &outline = this->outline(unit);
    if (std::exchange(outline.inlined_ready, true)) return outline.inlined;
    for (const std::uint8_t *at : outline.inlined_at) {
        Dwarf_Die instance = die_at(at, top(unit).cu);
        if (!attribute(instance, DW_AT_abstract_origin)) continue;
        Dwarf_Die origin = abstract_instance(instance);
        outline.inlined.push_back({origin.addr, origin.cu, at});
    }
    std::stable_sort(outline.inlined.begin(), outline.inlined.end(),
                     [](const Inlined &a, const Inlined &b) { return std::less<>()(a.origin, b.origin); });
    return outline.inlined;
}

void Units::add_arange_units(std::unordered_map<std::uint64_t, Unit *> &by_offset, std::vector<Unit *> &without) {
    Dwarf_Aranges *aranges = nullptr;
    std::size_t count = 0;
    if (dwarf_getaranges(dwarf_, &aranges, &count) != 0) count = 0;
    std::unordered_map<Unit *, bool> with;
    for (std::size_t i = 0; i < count; ++i) {
        Dwarf_Addr low;
        Dwarf_Word length;
        Dwarf_Off offset;
        Dwarf_Arange *arange = dwarf_onearange(aranges, i);
        if (arange == nullptr || dwarf_getarangeinfo(arange, &low, &length, &offset) != 0) continue;
        auto unit = by_offset.find(offset);
        if (unit == by_offset.end() || length == 0 || low + length < low) continue;
        with[unit->second] = true;
        if (executable(low)) ranges_.push_back({low, low + length, 0, unit->second});
    }
    for (auto &[offset, unit] : by_offset)
        if (with.find(unit) == with.end()) without.push_back(unit);
}

void Units::read_ranges() {
    if (std::exchange(ranges_read_, true)) return;
    std::unordered_map<std::uint64_t, Unit *> by_offset;
    std::vector<Unit *> without;
    for (Unit *unit : all()) {
        unsigned kind = tag(unit->skeleton);
        if (kind != DW_TAG_compile_unit && kind != DW_TAG_skeleton_unit) continue;
        by_offset[dwarf_dieoffset(&unit->skeleton)] = unit;
    }
    add_arange_units(by_offset, without);
    for (Unit *unit : without)
        for (auto [low, high] : address_ranges(unit->skeleton))
            if (executable(low)) ranges_.push_back({low, high, 0, unit});
    std::sort(ranges_.begin(), ranges_.end(), [](const UnitRange &a, const UnitRange &b) { return a.low < b.low; });
    std::uint64_t highest = 0;
    for (UnitRange &range : ranges_) range.highest = highest = std::max(highest, range.high);
}

std::vector<Unit *> Units::covering(std::uint64_t vaddr) {
    read_ranges();
    std::vector<Unit *> units;
    auto range = std::upper_bound(ranges_.begin(), ranges_.end(), vaddr,
                                  [](std::uint64_t at, const UnitRange &r) { return at < r.low; });
    while (range != ranges_.begin()) {
        --range;
        if (range->highest <= vaddr) break;
        if (range->high > vaddr && std::find(units.begin(), units.end(), range->unit) == units.end())
            units.push_back(range->unit);
    }
    return units;
}

std::optional<Dwarf_Die> Units::function(std::uint64_t vaddr) {
    for (Unit *unit : covering(vaddr)) {
        const Outline &outline = this->outline(*unit);
        auto range = std::upper_bound(outline.code.begin(), outline.code.end(), vaddr,
                                      [](std::uint64_t at, const CodeRange &r) { return at < r.low; });
        // Functions do not overlap, but for a nested one inside another, which comes later.
        for (int step = 0; range != outline.code.begin() && step < 64; ++step) {
            --range;
            if (range->high > vaddr) return die_at(range->function, top(*unit).cu);
        }
    }
    return std::nullopt;
}

int Units::innermost_scope(const Outline &outline, const std::uint8_t *at) const {
    auto next = std::upper_bound(outline.scopes.begin(), outline.scopes.end(), at,
                                 [](const std::uint8_t *address, const Scope &s) { return address < s.begin; });
    int index = static_cast<int>(next - outline.scopes.begin()) - 1;
    while (index >= 0) {
        const Scope &scope = outline.scopes[static_cast<std::size_t>(index)];
        if (at > scope.begin && at < scope.end) return index;
        index = scope.parent;
    }
    return -1;
}

std::string Units::scope_prefix(Dwarf_Die die) {
    constexpr std::size_t longest = 4096;
    Unit &unit = of(die);
    const Outline &outline = this->outline(unit);
    std::string prefix;
    int index = innermost_scope(outline, static_cast<const std::uint8_t *>(die.addr));
    while (index >= 0 && prefix.size() < longest) {
        const Scope &scope = outline.scopes[static_cast<std::size_t>(index)];
        Dwarf_Die around = die_at(scope.begin, die.cu);
        bool counts =
            scope.tag != DW_TAG_subprogram && (scope.tag != DW_TAG_enumeration_type || flag(around, DW_AT_enum_class));
        if (counts) {
            std::string_view name = own_name(around);
            if (!name.empty())
                prefix.insert(0, std::string(name) + "::");
            else if (scope.tag == DW_TAG_namespace)
                prefix.insert(0, "(anonymous namespace)::");
        }
        index = scope.parent;
    }
    return prefix;
}

std::string Units::qualified_name(Dwarf_Die die) {
    std::string_view name = inherited_name(die);
    if (name.empty()) return {};
    return scope_prefix(declaration(die)) + std::string(name);
}

std::optional<Dwarf_Die> Units::function_around(Dwarf_Die die) {
    const Outline &outline = this->outline(of(die));
    int index = innermost_scope(outline, static_cast<const std::uint8_t *>(die.addr));
    while (index >= 0) {
        const Scope &scope = outline.scopes[static_cast<std::size_t>(index)];
        if (scope.tag == DW_TAG_subprogram) return die_at(scope.begin, die.cu);
        index = scope.parent;
    }
    return std::nullopt;
}

const LineHeader &Units::line_header(Unit &unit) {
    if (unit.lines) return *unit.lines;
    unit.lines = std::make_unique<LineHeader>();
    Dwarf_Word offset = 0;
    auto attr = attribute(unit.skeleton, DW_AT_stmt_list);
    if (!attr || dwarf_formudata(&*attr, &offset) != 0) return *unit.lines;
    ::Dwarf *file = dwarf_cu_getdwarf(unit.skeleton.cu);
    auto sections = line_sections_.find(file);
    if (sections == line_sections_.end())
        sections = line_sections_.emplace(file, line_sections(dwarf_getelf(file))).first;
    *unit.lines =
        read_line_header(sections->second, offset, text(unit.skeleton, DW_AT_comp_dir), own_name(unit.skeleton));
    return *unit.lines;
}

const std::vector<LineRow> &Units::line_rows(Unit &unit) {
    if (unit.rows) return *unit.rows;
    unit.rows = std::make_unique<std::vector<LineRow>>();
    std::vector<std::vector<LineRow>> sequences(1);
    run_line_program(line_header(unit), [&](const LineRow &row) {
        sequences.back().push_back(row);
        if (!row.end_sequence) return true;
        if (!executable(sequences.back().front().address)) sequences.pop_back();
        sequences.emplace_back();
        return true;
    });
    sequences.pop_back(); // one that has no end
    std::stable_sort(sequences.begin(), sequences.end(),
                     [](const std::vector<LineRow> &a, const std::vector<LineRow> &b) {
                         return a.front().address < b.front().address;
                     });
    for (const auto &sequence : sequences) unit.rows->insert(unit.rows->end(), sequence.begin(), sequence.end());
    return *unit.rows;
}

std::string Units::file_of(Dwarf_Die die, std::uint64_t index) { return line_header(of(die)).file(index); }

bool Units::is_made_by_early_clang(Dwarf_Die die) {
    constexpr std::string_view name = "clang version ";
    constexpr unsigned mended = 18;
    const std::string_view producer = text(of(die).skeleton, DW_AT_producer);
    const std::size_t at = producer.find(name);
    if (at == std::string_view::npos) return false;
    unsigned version = 0;
    for (std::size_t i = at + name.size(); i < producer.size() && producer[i] >= '0' && producer[i] <= '9'; ++i)
        version = version * 10 + static_cast<unsigned>(producer[i] - '0');
    return version != 0 && version < mended;
}

bool Units::tells_types(Unit &unit) {
    if (unit.tells_types) return *unit.tells_types;
    Dwarf_Die root = top(unit);
    bool assembly = dwarf_srclang(&unit.skeleton) == DW_LANG_Mips_Assembler;
    unit.tells_types = !assembly && has_abbreviation(root, is_sign_of_types);
    return *unit.tells_types;
}

std::optional<std::uint64_t> Units::language(Dwarf_Die die) {
    if (auto own = number(of(die).skeleton, DW_AT_language)) return own;
    for (std::size_t i = 0; i < all().size() && !language_; ++i) language_ = number(all()[i]->skeleton, DW_AT_language);
    return language_;
}

bool Units::is_c(Dwarf_Die die) {
    switch (language(die).value_or(DW_LANG_C)) {
    case DW_LANG_C89:
    case DW_LANG_C:
    case DW_LANG_C99:
    case DW_LANG_C11: return true;
    default: return false;
    }
}

bool Units::executable(std::uint64_t vaddr) const {
    if (executable_.empty()) return vaddr != 0;
    return std::any_of(executable_.begin(), executable_.end(),
                       [vaddr](const AddressRange &range) { return vaddr >= range.first && vaddr < range.second; });
}

} // namespace ktrace::symbols
