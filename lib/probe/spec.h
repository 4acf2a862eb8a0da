// Spec: a SPEC as the user wrote it, parsed. Syntax only; its meaning in a process is resolve's business.
//
// Spec → Probe → Location → Attachment → Site: the first step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ktrace::probe {

/// SPEC = [MODULE:]SYMBOL[+OFFSET] · [MODULE:]FILE:LINE · 0xADDRESS · MODULE:0xVADDR
struct Spec {
    enum class Form : std::uint8_t { symbol, line, address, module_address };
    Form form = Form::symbol;
    std::string text;   // as given
    std::string module; // empty: none given
    std::string symbol; // form symbol: without offset; `@VERSION` is in `version`
    std::string version;
    std::uint64_t offset = 0;
    bool has_offset = false;
    std::string file; // form line
    int line = 0;
    std::uint64_t address = 0; // forms address, module_address
    int symbol_column = 0;     // where the symbol starts in `text`
    int offset_column = 0;     // where the offset's number starts
};

/// Parses a SPEC. Where it can be read in more than one way (`a.c:12`, `ns::f`, `libfoo:bar`) C++'s `::` binds first,
/// then FILE:LINE (digits only behind the last colon), then MODULE:. Error: usage, with the column.
Result<Spec> parse_spec(std::string_view text);

} // namespace ktrace::probe
