// DIEs as values (dwarf_die.h).
#include "symbols/dwarf/die/die.h"

namespace ktrace::symbols {

namespace {

constexpr int longest_chain = 16;            // of abstract origins and specifications
constexpr std::size_t most_ranges = 1 << 16; // of one DIE
constexpr std::size_t most_children = 1 << 20;

std::optional<Dwarf_Die> referred(Dwarf_Attribute attr) {
    Dwarf_Die die;
    if (dwarf_formref_die(&attr, &die) == nullptr) return std::nullopt;
    return die;
}

std::string_view text_of(std::optional<Dwarf_Attribute> attr) {
    const char *text = attr ? dwarf_formstring(&*attr) : nullptr;
    return text != nullptr ? std::string_view(text) : std::string_view();
}

std::optional<std::uint64_t> number_of(std::optional<Dwarf_Attribute> attr) {
    Dwarf_Word value;
    if (!attr || dwarf_formudata(&*attr, &value) != 0) return std::nullopt;
    return value;
}

bool flag_of(std::optional<Dwarf_Attribute> attr) {
    bool value = false;
    return attr && dwarf_formflag(&*attr, &value) == 0 && value;
}

/// Go writes expressions in DWARF 4 as those before did, as blocks, which libdw refuses. Short ones are the same bytes.
void read_as_expression(Dwarf_Attribute &attr) {
    constexpr Dwarf_Word shortest_long = 0x80; // a length in one byte of LEB128 is less
    Dwarf_Block block;
    if (dwarf_whatform(&attr) != DW_FORM_block1 || dwarf_formblock(&attr, &block) != 0) return;
    if (block.length < shortest_long) attr.form = DW_FORM_exprloc;
}

} // namespace

Dwarf_Die die_at(const void *address, Dwarf_CU *unit) {
    Dwarf_Die die{};
    die.addr = const_cast<void *>(address);
    die.cu = unit;
    return die;
}

Dwarf_Die unit_die(Dwarf_Die die) {
    Dwarf_Die unit{};
    if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr) return Dwarf_Die{};
    return unit;
}

unsigned tag(Dwarf_Die die) {
    int value = dwarf_tag(&die);
    return value > 0 ? static_cast<unsigned>(value) : 0;
}

std::optional<Dwarf_Attribute> attribute(Dwarf_Die die, unsigned name) {
    Dwarf_Attribute attr;
    if (dwarf_attr(&die, name, &attr) == nullptr) return std::nullopt;
    if (name == DW_AT_location || name == DW_AT_frame_base) read_as_expression(attr);
    return attr;
}

std::optional<Dwarf_Attribute> inherited(Dwarf_Die die, unsigned name) {
    for (int step = 0; step < longest_chain; ++step) {
        if (auto attr = attribute(die, name)) return attr;
        auto next = attribute(die, DW_AT_abstract_origin);
        if (!next) next = attribute(die, DW_AT_specification);
        auto target = next ? referred(*next) : std::nullopt;
        if (!target) return std::nullopt;
        die = *target;
    }
    return std::nullopt;
}

std::optional<std::uint64_t> number(Dwarf_Die die, unsigned name) { return number_of(attribute(die, name)); }
std::optional<std::uint64_t> inherited_number(Dwarf_Die die, unsigned name) { return number_of(inherited(die, name)); }

std::optional<std::int64_t> signed_number(Dwarf_Die die, unsigned name) {
    auto attr = attribute(die, name);
    Dwarf_Sword value;
    if (!attr || dwarf_formsdata(&*attr, &value) != 0) return std::nullopt;
    return value;
}

bool flag(Dwarf_Die die, unsigned name) { return flag_of(attribute(die, name)); }
bool inherited_flag(Dwarf_Die die, unsigned name) { return flag_of(inherited(die, name)); }

std::optional<std::int64_t> constant_value(Dwarf_Die die, std::uint64_t size) {
    auto attr = inherited(die, DW_AT_const_value);
    if (!attr) return std::nullopt;
    unsigned form = dwarf_whatform(&*attr);
    std::uint64_t width = form == DW_FORM_data1 ? 1 : form == DW_FORM_data2 ? 2 : form == DW_FORM_data4 ? 4 : 8;
    Dwarf_Word plain;
    if (width < size && dwarf_formudata(&*attr, &plain) == 0 && form != DW_FORM_sdata && form != DW_FORM_implicit_const)
        return static_cast<std::int64_t>(plain);
    Dwarf_Sword value;
    if (dwarf_formsdata(&*attr, &value) != 0) return std::nullopt;
    return value;
}

std::optional<Dwarf_Die> reference(Dwarf_Die die, unsigned name) {
    auto attr = attribute(die, name);
    return attr ? referred(*attr) : std::nullopt;
}

std::optional<Dwarf_Die> inherited_reference(Dwarf_Die die, unsigned name) {
    auto attr = inherited(die, name);
    return attr ? referred(*attr) : std::nullopt;
}

std::string_view text(Dwarf_Die die, unsigned name) { return text_of(attribute(die, name)); }
std::string_view own_name(Dwarf_Die die) { return text(die, DW_AT_name); }
std::string_view inherited_name(Dwarf_Die die) { return text_of(inherited(die, DW_AT_name)); }

std::string_view linkage_name(Dwarf_Die die) {
    std::string_view name = text_of(inherited(die, DW_AT_linkage_name));
    return !name.empty() ? name : text_of(inherited(die, DW_AT_MIPS_linkage_name));
}

Dwarf_Die declaration(Dwarf_Die die) {
    for (int step = 0; step < longest_chain; ++step) {
        auto next = reference(die, DW_AT_abstract_origin);
        if (!next) next = reference(die, DW_AT_specification);
        if (!next) break;
        die = *next;
    }
    return die;
}

Dwarf_Die abstract_instance(Dwarf_Die die) {
    for (int step = 0; step < longest_chain; ++step) {
        auto next = reference(die, DW_AT_abstract_origin);
        if (!next) break;
        die = *next;
    }
    return die;
}

std::vector<AddressRange> address_ranges(Dwarf_Die die) {
    std::vector<AddressRange> ranges;
    Dwarf_Addr base = 0, low = 0, high = 0;
    ptrdiff_t at = 0;
    while ((at = dwarf_ranges(&die, at, &base, &low, &high)) > 0) {
        if (low < high) ranges.emplace_back(low, high);
        if (ranges.size() >= most_ranges) break;
    }
    return ranges;
}

bool covers(Dwarf_Die die, std::uint64_t address) { return dwarf_haspc(&die, address) > 0; }

std::optional<std::uint64_t> entry_address(Dwarf_Die die) {
    if (auto attr = attribute(die, DW_AT_entry_pc)) {
        Dwarf_Addr entry;
        if (dwarf_formaddr(&*attr, &entry) == 0) return entry;
        // DWARF 5, 2.18: a constant is an offset from the base address: low_pc, else the first range's start.
        auto offset = number_of(attr);
        auto ranges = address_ranges(die);
        if (offset && !ranges.empty()) return ranges.front().first + *offset;
    }
    Dwarf_Addr low;
    if (attribute(die, DW_AT_low_pc) && dwarf_lowpc(&die, &low) == 0) return low;
    auto ranges = address_ranges(die);
    if (ranges.empty()) return std::nullopt;
    return ranges.front().first;
}

std::vector<Dwarf_Die> children(Dwarf_Die die) {
    std::vector<Dwarf_Die> all;
    Dwarf_Die child;
    if (dwarf_child(&die, &child) != 0) return all;
    do all.push_back(child);
    while (all.size() < most_children && dwarf_siblingof(&child, &child) == 0);
    return all;
}

std::vector<Declared> declared_in(Dwarf_Die scope) {
    std::vector<Declared> all;
    for (Dwarf_Die child : children(scope)) {
        unsigned kind = tag(child);
        if (kind == DW_TAG_variable || kind == DW_TAG_formal_parameter)
            all.push_back({child, std::string(inherited_name(child))});
        if (kind != DW_TAG_GNU_formal_parameter_pack) continue;
        std::string pack(inherited_name(child));
        int index = 0;
        for (Dwarf_Die element : children(child))
            if (tag(element) == DW_TAG_formal_parameter) all.push_back({element, pack + "#" + std::to_string(index++)});
    }
    return all;
}

} // namespace ktrace::symbols
