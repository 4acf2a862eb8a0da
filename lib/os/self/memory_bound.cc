#include "os/self/memory_bound.h"

#include <cstdio>
#include <optional>

#include <sys/resource.h>
#include <unistd.h>

#include "os/proc/procfs.h"

namespace ktrace::os {

namespace {

rlimit memory_before{};
bool is_bounded = false;

/// Nothing: /proc does not show it.
std::optional<std::uint64_t> memory_now() {
    auto text = read_file("/proc/self/statm");
    unsigned long long pages = 0;
    if (!text || std::sscanf(text->c_str(), "%*u %*u %*u %*u %*u %llu", &pages) != 1) return std::nullopt;
    return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

} // namespace

void bound_memory() {
    const auto now = memory_now();
    if (!now || *now >= most_memory / 2) return;
    if (::getrlimit(RLIMIT_DATA, &memory_before) != 0 || memory_before.rlim_cur <= most_memory) return;
    is_bounded = true;
    const rlimit bound{most_memory, memory_before.rlim_max};
    ::setrlimit(RLIMIT_DATA, &bound);
}

void unbound_memory() {
    if (is_bounded) ::setrlimit(RLIMIT_DATA, &memory_before);
}

} // namespace ktrace::os
