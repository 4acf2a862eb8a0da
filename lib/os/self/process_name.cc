#include "os/self/process_name.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <sys/prctl.h>

#include "os/proc/procfs.h"

namespace ktrace::os {

void set_title(const std::string &name, const std::string &command) {
    ::prctl(PR_SET_NAME, name.c_str());
    std::ofstream("/proc/self/comm") << name;
    auto shown = read_file("/proc/self/cmdline");
    char *arguments = ::program_invocation_name; // glibc: argv[0], behind which the others lie
    // Where the two differ, the memory is not what it is taken for.
    if (!shown || shown->empty() || std::memcmp(arguments, shown->c_str(), std::strlen(arguments) + 1) != 0) return;
    std::memset(arguments, 0, shown->size());
    std::memcpy(arguments, command.data(), std::min(command.size(), shown->size() - 1));
}

} // namespace ktrace::os
