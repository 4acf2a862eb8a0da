#include "plugin/places.h"

#include <array>

#include <unistd.h>

namespace ktrace::plugin {

namespace {

/// The folder of the running program.
std::string own_folder() {
    std::array<char, 4096> path;
    ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
    std::string text(path.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
    return text.substr(0, text.rfind('/'));
}

Result<std::string> first_of(const char *what, const std::vector<std::string> &candidates) {
    for (const std::string &path : candidates)
        if (::access(path.c_str(), R_OK) == 0) return path;
    return fail(Error::Kind::not_found, std::string(what) + " is not at " + candidates.front(),
                "install ktrace with its files for plugins (cmake --install)");
}

} // namespace

Result<std::string> host_program() {
    std::string here = own_folder();
    return first_of("ktrace's host for plugins", {here + "/" + KTRACE_LIBEXEC_FROM_BIN + "/ktrace/ktrace-plugin-host",
                                                  here + "/../../lib/plugin/host/ktrace-plugin-host",
                                                  here + "/../lib/plugin/host/ktrace-plugin-host"}); // of a test
}

Result<std::string> include_folder() {
    std::string here = own_folder();
    auto found =
        first_of("<linux/kprobes.h> of ktrace", {here + "/" + KTRACE_INCLUDE_FROM_BIN + "/ktrace/linux/kprobes.h",
                                                 std::string(KTRACE_SOURCE_INCLUDE) + "/linux/kprobes.h"});
    if (!found) return found;
    return found->substr(0, found->size() - std::string("/linux/kprobes.h").size());
}

} // namespace ktrace::plugin
