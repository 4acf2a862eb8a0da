#include "output/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace ktrace::output {

bool is_able_terminal(int fd) {
    const char *kind = std::getenv("TERM");
    return ::isatty(fd) == 1 && kind && *kind != '\0' && std::string_view(kind) != "dumb";
}

bool takes_colours(int fd) {
    const char *refused = std::getenv("NO_COLOR");
    return is_able_terminal(fd) && (!refused || !*refused);
}

} // namespace ktrace::output
