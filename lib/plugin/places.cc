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

/// A file of ours: where an installation has it, as seen from the folder of the program, or in lib/plugin of a build
/// tree, whose programs lie in tests and in cmd/ktrace (from tests, two folders up may be the sources).
Result<std::string> find(const char *what, const std::string &installed, const std::string &built) {
    const std::string here = own_folder();
    const std::string first = here + "/" + installed;
    for (const std::string &path : {first, here + "/../lib/plugin/" + built, here + "/../../lib/plugin/" + built})
        if (::access(path.c_str(), R_OK) == 0) return path;
    return fail(Error::Kind::not_found, std::string(what) + " is not at " + first,
                "install ktrace with its files for plugins (cmake --install)");
}

} // namespace

Result<std::string> host_program() {
    return find("ktrace's host for plugins", KTRACE_LIBEXEC_FROM_BIN "/ktrace/ktrace-plugin-host",
                "host/ktrace-plugin-host");
}

Result<std::string> include_folder() {
    const std::string header = "/linux/kprobes.h";
    auto found = find("<linux/kprobes.h> of ktrace", KTRACE_INCLUDE_FROM_BIN "/ktrace" + header, "include" + header);
    if (!found) return found;
    return found->substr(0, found->size() - header.size());
}

} // namespace ktrace::plugin
