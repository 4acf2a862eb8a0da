#include "habits.h"

#include <array>
#include <utility>

namespace ktrace::cli {

namespace {

constexpr std::array<std::pair<char, const char *>, 8> habits{
    {{'c', "--count counts hits, and -r FUNCTION --stats measures calls"},
     {'d', "--duration 10s ends the trace after that time"},
     {'e', "a probe goes behind -j, -r or -k, for example -j libc:open"},
     {'g', "--stack prints the stack of each event, and --by stack counts them"},
     {'n', "--max-events N ends the trace after N events"},
     {'s', "--print 'str(arg0, 200)' shows 200 bytes of a text"},
     {'t', "each line begins with the time, and --if 'tid == N' picks a thread"},
     {'T', "-r FUNCTION shows how long each call took"}}};

} // namespace

std::string hint_for_habit(char letter) {
    for (auto [known, hint] : habits)
        if (known == letter) return hint;
    return {};
}

} // namespace ktrace::cli
