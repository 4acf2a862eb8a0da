// Any bytes as an ELF file: its symbols, extents, slots, segments.
#include "fuzz.h"
#include "symbols/module.h"
#include "symbols/names/name_pattern.h"

using namespace ktrace;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    auto input = fuzz::bytes(data, size);
    auto opened = symbols::Module::from_bytes({input.begin(), input.end()}, "crafted");
    if (!opened) {
        fuzz::require(!opened.error().message.empty());
        return 0;
    }
    const symbols::Module &module = **opened;
    module.named("main");
    module.matching(symbols::NamePattern::glob("*"));
    std::size_t looked_at = 0;
    for (const symbols::Symbol &symbol : module.symbols()) {
        if (++looked_at > 200) break;
        module.demangled(symbol, true);
        fuzz::require(module.function_end(symbol.vaddr) >= symbol.vaddr);
        module.function_at(symbol.vaddr);
        module.covering(symbol.vaddr + 1);
        module.got_slots(symbol.name, symbol.version);
        module.bytes_at(symbol.vaddr, 64);
        module.in_sequence(symbol.vaddr, 5);
    }
    module.irelative_slots();
    module.interpreter();
    module.soname();
    module.program_tls();
    for (const symbols::Segment &segment : module.segments()) module.vaddr_of_offset(segment.file_offset);
    module.in_plt(module.entry());
    return 0;
}
