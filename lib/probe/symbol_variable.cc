#include "probe/symbol_variable.h"

#include "program/lower/types.h"

namespace ktrace::probe {

namespace {

using symbols::Symbol;
using value::Op;
using value::Type;

const Type *number_of(std::uint64_t size) {
    if (size >= 8) return &program::types::int64;
    if (size >= 4) return &program::types::int32;
    return size >= 2 ? &program::types::int16 : &program::types::int8;
}

const Symbol *variable_named(std::string_view name, const symbols::Module &module) {
    for (const Symbol *symbol : module.named(name))
        if ((symbol->kind == Symbol::Kind::object || symbol->kind == Symbol::Kind::tls) && symbol->size != 0)
            return symbol;
    return nullptr;
}

std::optional<program::Binding> bind(const Symbol &symbol, const Loaded &loaded) {
    value::Place place;
    std::vector<Op> &ops = place.pieces.emplace_back().ops;
    if (symbol.kind == Symbol::Kind::object) {
        ops.push_back({Op::Code::push, 8, 0, static_cast<std::int64_t>(symbol.vaddr + loaded.bias)});
    } else {
        auto block = loaded.module->program_tls();
        if (!block) return std::nullopt;
        ops.push_back({Op::Code::push, 8, 0, static_cast<std::int64_t>(symbol.vaddr)});
        ops.push_back({Op::Code::tls, 8, 0, *block});
    }
    return program::Binding{number_of(symbol.size), std::move(place)};
}

} // namespace

std::optional<program::Binding> symbol_variable(std::string_view name, const Loaded &own,
                                                std::span<const Loaded> modules) {
    const Symbol *here = own.module ? variable_named(name, *own.module) : nullptr;
    if (here && !here->global) return bind(*here, own);
    for (const Loaded &loaded : modules)
        if (const Symbol *symbol = loaded.is_program ? variable_named(name, *loaded.module) : nullptr;
            symbol && symbol->global)
            return bind(*symbol, loaded);
    if (here) return bind(*here, own);
    for (const Loaded &loaded : modules)
        if (const Symbol *symbol = variable_named(name, *loaded.module); symbol && symbol->global)
            return bind(*symbol, loaded);
    return std::nullopt;
}

} // namespace ktrace::probe
