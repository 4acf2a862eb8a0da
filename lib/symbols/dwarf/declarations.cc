// Functions of other files, as this one declares them (dwarf.h: declared_function).
#include "symbols/dwarf/internal.h"

namespace ktrace::symbols {

namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{256} << 20; // of .debug_info: a pass over more takes too long

} // namespace

void Dwarf::Impl::find_declarations() {
    if (units.info_size() > most_bytes) return;
    for (Unit *unit : units.all()) {
        for (Dwarf_Die die : children(units.top(*unit))) {
            if (tag(die) != DW_TAG_subprogram || !flag(die, DW_AT_declaration) || !flag(die, DW_AT_external)) continue;
            std::string_view name = linkage_name(die);
            if (name.empty()) name = own_name(die);
            if (!name.empty()) declarations.emplace(name, die);
        }
    }
}

const Function *Dwarf::declared_function(std::string_view linkage) {
    if (!std::exchange(impl_->asked_declarations, true)) impl_->find_declarations();
    auto found = impl_->declarations.find(std::string(linkage));
    return found == impl_->declarations.end() ? nullptr : &impl_->function(found->second).function;
}

} // namespace ktrace::symbols
