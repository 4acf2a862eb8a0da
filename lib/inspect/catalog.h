// Catalog: what can be probed in a process or a file: functions with their types, source lines, inlined instances.
// Reads only; nothing is traced.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/module.h"

namespace ktrace::inspect {

/// A module and where it is: bias 0 for a file that is not loaded.
struct CatalogModule {
    std::shared_ptr<symbols::Module> module;
    std::uint64_t bias = 0;
};

/// A place that can be probed.
struct CatalogEntry {
    enum class Kind : std::uint8_t { function, line, inlined, variable } kind = Kind::function;
    std::uint64_t address = 0; // in the process; of a file: as nm prints it
    std::string text;   // function: its signature as C writes it, or its name; line: FILE:LINE function+0xOFFSET;
                        // inlined: name inlined into function; variable: name and size
    std::string module; // base name
    std::string source; // function: FILE:LINE, empty where unknown
};

struct CatalogQuery {
    std::string pattern; // [MODULE:]NAME, exact or a glob; empty: everything
    bool lines = false;
    bool inlines = false;
};

/// Calls `show` for what fits, by module and address; for variables where no function does. Errors: usage (the
/// pattern), not_found (nothing fits; the nearest names as a hint), refused (lines or inlines are asked for and no
/// module has debug information).
Status list_catalog(const std::vector<CatalogModule> &modules, const CatalogQuery &query,
                    const std::function<void(const CatalogEntry &)> &show);

/// The modules of a running process. Errors: not_found, denied.
Result<std::vector<CatalogModule>> modules_of_process(Pid pid);

/// One ELF file. Errors: as symbols::Module::open.
Result<std::vector<CatalogModule>> module_of_file(const std::string &path);

/// `int do_work(int n, const char *name)`, by the debug information.
std::string signature(const symbols::Function &function, std::string_view name);

} // namespace ktrace::inspect
