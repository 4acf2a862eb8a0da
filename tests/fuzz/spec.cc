// Any text as a SPEC: an error with a column within it, or a Spec; and as a pattern for names.
#include "probe/spec.h"
#include "fuzz.h"
#include "symbols/names/demangle.h"
#include "symbols/names/name_pattern.h"

using namespace ktrace;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
    std::string_view text = fuzz::text(data, size);
    auto spec = probe::parse_spec(text);
    if (!spec) {
        fuzz::require(!spec.error().message.empty() && spec.error().column <= static_cast<int>(text.size()));
        return 0;
    }
    if (spec->symbol.empty()) return 0;
    for (const char *name : {"do_work", "_ZN3Foo3barEPi", "Foo::bar(int*)", "operator+", "a.constprop.0"}) {
        symbols::NamePattern::exact(spec->symbol).matches(name);
        symbols::NamePattern::glob(spec->symbol).matches(name);
    }
    symbols::demangle(spec->symbol, symbols::Spelling::signature);
    symbols::split_clone(spec->symbol);
    return 0;
}
