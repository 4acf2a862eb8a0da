#include "probe/probe.h"

namespace ktrace::probe {

Error OwnOptions::pointing(Error error) const {
    const std::size_t at = error.source.empty() ? quoted.npos : quoted.find(error.source, spec);
    if (error.column < 0 || at == quoted.npos) return error;
    error.column += static_cast<int>(at);
    error.source = quoted;
    return error;
}

} // namespace ktrace::probe
