// doctor: reports what this machine lets this user trace, and the one command that mends what it does not.
#include <fmt/format.h>

#include "commands.h"
#include "complain.h"
#include "inspect/doctor.h"

namespace ktrace::cli {

namespace {

const char *word(inspect::Finding::State state) {
    switch (state) {
    case inspect::Finding::State::good: return "ok";
    case inspect::Finding::State::limited: return "limited";
    case inspect::Finding::State::bad: return "no";
    }
    return "";
}

} // namespace

int doctor() {
    bool works = true;
    std::string text;
    for (const inspect::Finding &found : inspect::examine()) {
        works = works && found.state != inspect::Finding::State::bad;
        text += fmt::format("{:<8} {}: {}\n", word(found.state), found.what, found.told);
        if (!found.fix.empty()) text += fmt::format("         to change that: {}\n", found.fix);
    }
    return print(text) && works ? 0 : 1;
}

} // namespace ktrace::cli
