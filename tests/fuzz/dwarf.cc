// Any bytes as an ELF file with DWARF: functions, types, places, lines, inlined instances, stacks.
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "fuzz.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/module.h"

using namespace ktrace;

namespace {

constexpr std::size_t most_looked_at = 40;

void look_at(symbols::Dwarf &dwarf, const symbols::Function &function) {
    dwarf.entry_places(function, 0);
    dwarf.line_at(function.entry);
    dwarf.frames_at(function.entry);
    for (const std::string &name : dwarf.names_in_scope(function.entry)) dwarf.variable(name, function.entry, 0);
    for (const symbols::Parameter &parameter : function.parameters)
        if (parameter.type) dwarf.complete(parameter.type);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    Fd file(::memfd_create("crafted", MFD_CLOEXEC));
    if (!file || ::write(file.get(), data, size) != static_cast<ssize_t>(size)) return 0;
    auto opened = symbols::Dwarf::open("crafted", file.get());
    if (!opened) {
        fuzz::require(!opened.error().message.empty());
        return 0;
    }
    symbols::Dwarf &dwarf = **opened;
    std::size_t looked_at = 0;
    for (const std::string &name : dwarf.function_names()) {
        if (++looked_at > most_looked_at) break;
        for (const symbols::Function *function : dwarf.functions_named(name)) look_at(dwarf, *function);
        dwarf.inlined(name);
        dwarf.global(name, 0);
    }
    for (const std::string &source : dwarf.files()) {
        if (++looked_at > 2 * most_looked_at) break;
        for (int line = 1; line < 8; line++) dwarf.addresses_of(source, line);
        dwarf.nearest_line(source, 1);
    }
    return 0;
}
