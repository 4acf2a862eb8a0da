#include "probe/probe.h"

namespace ktrace::probe {

namespace {

constexpr std::string_view truth = "!!(";

} // namespace

std::string truth_of(const std::string &expression) { return std::string(truth) + expression + ')'; }

Error OwnOptions::pointing(Error error) const {
    const int front = static_cast<int>(truth.size());
    if (error.source.starts_with(truth) && error.column >= front && quoted.find(error.source, spec) == quoted.npos) {
        error.source = error.source.substr(truth.size(), error.source.size() - truth.size() - 1);
        error.column -= front;
    }
    const std::size_t at = error.source.empty() ? quoted.npos : quoted.find(error.source, spec);
    if (error.column < 0 || at == quoted.npos) return error;
    error.column += static_cast<int>(at);
    error.source = quoted;
    return error;
}

} // namespace ktrace::probe
