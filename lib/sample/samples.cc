#include "sample/samples.h"

#include <fmt/format.h>

#include "base/text.h"
#include "sample/stack_text.h"

namespace ktrace::sample {

std::vector<NamedSample> name_all(const Samples &samples, output::Symbolizer &symbolizer) {
    std::vector<NamedSample> named;
    for (const auto &[key, sample] : samples)
        named.push_back({key, sample, name_stack(key.pid, key.stack, symbolizer)});
    return named;
}

std::string name_of(const output::NamedFrame &frame) {
    if (!frame.symbol.empty()) return text::escape(frame.symbol);
    if (frame.module.empty()) return fmt::format("{:#x}", frame.address);
    return fmt::format("{}:{:#x}", text::escape(frame.module), frame.offset);
}

} // namespace ktrace::sample
