#include "symbols/stripped.h"

#include <set>

#include "symbols/debugfile/debuginfod.h"

namespace ktrace::symbols {

std::string stripped_notice(const Module &module) {
    if (!module.is_stripped()) return {};
    std::set<std::string_view> names;
    for (const Symbol &symbol : module.symbols())
        if (symbol.is_function()) names.insert(symbol.name);
    return std::string(module.name()) + " is stripped: " + std::to_string(names.size()) +
           (names.size() == 1 ? " name is known; " : " names are known; ") +
           (debuginfod_configured() ? "the servers of DEBUGINFOD_URLS know no more" : "DEBUGINFOD_URLS is not set");
}

} // namespace ktrace::symbols
