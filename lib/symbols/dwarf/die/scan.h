// Scan: all DIEs of one unit in the order of the file, fast: a unit is read once, linearly, attributes are skipped by
// their forms without being looked at. (libdw walks siblings, which without DW_AT_sibling reads every subtree once per
// level.)
//
// Invariants: reads stay inside the unit's bytes; a scan of a crafted unit ends, since every step goes forward.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "symbols/dwarf/die/bytes.h"
#include "symbols/dwarf/die/die.h"

namespace ktrace::symbols {

/// Facts of a DIE by its abbreviation alone.
enum Has : std::uint32_t {
    has_name = 1U << 0,
    has_linkage_name = 1U << 1,
    has_code = 1U << 2, // low_pc or ranges
    has_inline = 1U << 3,
    has_declaration = 1U << 4,
    has_location = 1U << 5,
    has_single_location = 1U << 6, // an expression, not a list
    has_const_value = 1U << 7,
    has_specification = 1U << 8,
    has_origin = 1U << 9,
    has_foreign_origin = 1U << 10, // in another unit or file
};

/// One DIE met by a scan.
struct Scanned {
    const std::uint8_t *address = nullptr; // Dwarf_Die::addr
    unsigned tag = 0;
    unsigned depth = 0; // 0: the unit's own DIE
    std::uint32_t has = 0;
};

/// The bytes of the debug section that holds this DIE, empty where that is not known.
std::span<const std::uint8_t> section_of(Dwarf_Die die);

class Scan {
  public:
    /// Over the unit whose own DIE this is.
    explicit Scan(Dwarf_Die unit);

    /// The next DIE, nullptr at the end. Valid until the next call.
    const Scanned *next();
    /// Behind the last DIE returned and its attributes.
    const std::uint8_t *position() const { return bytes_.at(); }
    Dwarf_Die die(const Scanned &scanned) const { return die_at(scanned.address, unit_.cu); }

  private:
    struct Abbreviation {
        unsigned tag = 0;
        bool has_children = false;
        std::uint32_t has = 0;
        int fixed_size = -1; // bytes of all attributes together, -1: it depends
        std::vector<std::uint16_t> forms;
    };

    void read_abbreviations();
    int fixed_form_size(unsigned form) const;
    void skip_form(unsigned form);
    const Abbreviation *abbreviation(std::uint64_t code) const;

    Dwarf_Die unit_;
    Bytes bytes_;
    std::uint8_t address_size_ = 8, offset_size_ = 4;
    std::uint16_t version_ = 0;
    std::vector<Abbreviation> abbreviations_; // by position
    std::unordered_map<std::uint64_t, std::uint32_t> by_code_;
    bool dense_ = true; // codes are 1, 2, 3 …
    unsigned depth_ = 0;
    bool done_ = false;
    Scanned current_;
};

} // namespace ktrace::symbols
