// DIEs as values: what of libdw's C interface this room needs, taking DIEs by value and giving optionals.
//
// Invariant: "inherited" means through DW_AT_abstract_origin and DW_AT_specification, at most a fixed number of steps,
// so that a cycle in the file ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dwarf.h>
#include <elfutils/libdw.h>

#include "value/type.h"

namespace ktrace::symbols {

using AddressRange = std::pair<std::uint64_t, std::uint64_t>; // [low, high)

/// The DIE at an address of a unit's bytes (a Dwarf_Die::addr seen before).
Dwarf_Die die_at(const void *address, Dwarf_CU *unit);

/// The unit's own DIE (of the split unit, where `die` is in one).
Dwarf_Die unit_die(Dwarf_Die die);

unsigned tag(Dwarf_Die die);

std::optional<Dwarf_Attribute> attribute(Dwarf_Die die, unsigned name);
std::optional<Dwarf_Attribute> inherited(Dwarf_Die die, unsigned name);

std::optional<std::uint64_t> number(Dwarf_Die die, unsigned name);
std::optional<std::int64_t> signed_number(Dwarf_Die die, unsigned name);
std::optional<std::uint64_t> inherited_number(Dwarf_Die die, unsigned name);
/// DW_AT_const_value (inherited) where it is a number of something of `size` bytes. Forms of a fixed size do not say
/// whether they are signed: they are negative only where they are as wide as the thing itself.
std::optional<std::int64_t> constant_value(Dwarf_Die die, std::uint64_t size);
bool flag(Dwarf_Die die, unsigned name);
bool inherited_flag(Dwarf_Die die, unsigned name);

/// The DIE that an attribute refers to (in another unit, a type unit or a dwz file too).
std::optional<Dwarf_Die> reference(Dwarf_Die die, unsigned name);
std::optional<Dwarf_Die> inherited_reference(Dwarf_Die die, unsigned name);

/// A string attribute, empty without one. Lives as long as the file is open.
std::string_view text(Dwarf_Die die, unsigned name);
/// DW_AT_name, empty without one. Lives as long as the file is open.
std::string_view own_name(Dwarf_Die die);
std::string_view inherited_name(Dwarf_Die die);
/// DW_AT_linkage_name (or DW_AT_MIPS_linkage_name), inherited.
std::string_view linkage_name(Dwarf_Die die);

/// The DIE at the end of the chain of abstract origins and specifications: the one that has a place among scopes. With
/// `origins_only` the chain of abstract origins alone: the abstract instance.
Dwarf_Die declaration(Dwarf_Die die);
Dwarf_Die abstract_instance(Dwarf_Die die);

/// Address ranges, at most a bounded number, empty and reversed ones left out.
std::vector<AddressRange> address_ranges(Dwarf_Die die);
bool covers(Dwarf_Die die, std::uint64_t address);
/// Where it is entered: DW_AT_entry_pc, else its low_pc, else the start of its first range.
std::optional<std::uint64_t> entry_address(Dwarf_Die die);

/// Its children, in order, at most a bounded number.
std::vector<Dwarf_Die> children(Dwarf_Die die);

/// A variable or parameter that a scope declares; the parameters of a pack `args` are called args#0, args#1, … (gcc
/// often does not name the pack).
struct Declared {
    Dwarf_Die die{};
    std::string name; // empty where it has none
};
std::vector<Declared> declared_in(Dwarf_Die scope);

} // namespace ktrace::symbols
