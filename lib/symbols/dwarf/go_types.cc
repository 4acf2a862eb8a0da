// Types of Go's that have descriptors at run time (dwarf.h: described_types).
#include <utility>

#include "symbols/dwarf/internal.h"

namespace ktrace::symbols {

namespace {

constexpr unsigned go_kind = 0x2900, go_runtime_type = 0x2904; // DW_AT_*, of Go's compiler
constexpr std::size_t most_types = 200'000;

/// True for a kind that is shown by more than its descriptor.
bool has_parts(std::uint64_t kind) {
    constexpr std::uint64_t complex64 = 15, complex128 = 16, array = 17, slice = 23, structure = 25;
    return kind == complex64 || kind == complex128 || kind == array || kind == slice || kind == structure;
}

/// It has the form of an address; 0: there is none.
std::uint64_t descriptor_of(Dwarf_Die die) {
    auto where = attribute(die, go_runtime_type);
    Dwarf_Addr descriptor = 0;
    return where && dwarf_formaddr(&*where, &descriptor) == 0 ? descriptor : 0;
}

} // namespace

void Dwarf::Impl::find_described_types() {
    for (Unit *unit : units.all()) {
        const Dwarf_Die top = units.top(*unit);
        if (units.language(top) != DW_LANG_Go) continue;
        for (Dwarf_Die die : children(top)) {
            if (described_types.size() == most_types) return;
            const std::uint64_t descriptor = tag(die) == DW_TAG_subprogram ? 0 : descriptor_of(die);
            if (descriptor == 0 || !has_parts(number(die, go_kind).value_or(0))) continue;
            described_types.push_back({std::string(own_name(die)), descriptor, described_dies.size()});
            described_dies.push_back(die);
        }
    }
}

const std::vector<DescribedType> &Dwarf::described_types() {
    if (!std::exchange(impl_->asked_described_types, true)) impl_->find_described_types();
    return impl_->described_types;
}

const value::Type *Dwarf::type_of(const DescribedType &type) {
    return type.die < impl_->described_dies.size() ? impl_->types.type(impl_->described_dies[type.die]) : nullptr;
}

} // namespace ktrace::symbols
