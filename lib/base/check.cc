#include "base/check.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace ktrace {

namespace {
CheckDump *first_dump = nullptr;
} // namespace

CheckDump::CheckDump() : next_(std::exchange(first_dump, this)) {}

CheckDump::~CheckDump() {
    CheckDump **at = &first_dump;
    while (*at != this) at = &(*at)->next_;
    *at = next_;
}

void check_failed(const char *condition, const char *file, int line) {
    std::fprintf(stderr, "ktrace: internal error: %s does not hold (%s:%d)\n", condition, file, line);
    const CheckDump *dump = std::exchange(first_dump, nullptr); // a check that fails in here shows nothing more
    for (; dump; dump = dump->next()) dump->dump();
    std::abort();
}

} // namespace ktrace
