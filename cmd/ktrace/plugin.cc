// plugin: builds plugins from sources in the kernel's style.
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "commands.h"
#include "complain.h"
#include "os/self/descriptors.h"
#include "os/self/memory_bound.h"
#include "plugin/places.h"

namespace ktrace::cli {

namespace {

bool is_cxx(const std::string &source) {
    for (const char *ending : {".cc", ".cpp", ".cxx", ".C"})
        if (source.ends_with(ending)) return true;
    return false;
}

/// FILE.so for FILE.c, in the current directory's terms as the source is.
std::string made_of(const std::string &source) {
    std::size_t dot = source.rfind('.');
    std::size_t slash = source.rfind('/');
    bool has_ending = dot != std::string::npos && (slash == std::string::npos || dot > slash);
    return (has_ending ? source.substr(0, dot) : source) + ".so";
}

/// The name of a module, as the kernel's build gives it: what C allows of the file's.
std::string module_name(const std::string &source) {
    std::string name(text::base_name(made_of(source)));
    name.resize(name.size() - std::strlen(".so"));
    for (char &c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
    return name;
}

/// Runs a compiler to its end; its exit status, 127: there is none.
int execute(const std::vector<std::string> &command) {
    std::vector<char *> arguments;
    for (const std::string &word : command) arguments.push_back(const_cast<char *>(word.c_str()));
    arguments.push_back(nullptr);
    os::unbound_memory(); // the compiler's limits are none of ours
    os::restore_descriptor_limit();
    pid_t child = 0;
    if (::posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) != 0) return 127;
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/// $CC or the first compiler that there is.
int compile(const char *variable, const std::vector<std::string> &candidates, std::vector<std::string> command) {
    std::vector<std::string> compilers = candidates;
    if (const char *given = std::getenv(variable); given && *given) compilers = {given};
    int status = 127;
    for (const std::string &compiler : compilers) {
        command[0] = compiler;
        status = execute(command);
        if (status != 127) return status;
    }
    return status;
}

int build(const std::string &source, const std::string &output) {
    auto include = plugin::include_folder();
    if (!include) {
        complain(include.error());
        return 1;
    }
    if (::access(source.c_str(), R_OK) != 0) {
        complain(
            {Error::Kind::not_found, text::escape(source) + " cannot be read: " + std::strerror(errno), {}, {}, -1, 1});
        return 1;
    }
    bool cxx = is_cxx(source);
    std::string made = output.empty() ? made_of(source) : output;
    std::string name = module_name(source);
    std::vector<std::string> command = {"",
                                        cxx ? "-std=gnu++17" : "-std=gnu11",
                                        "-O2",
                                        "-g",
                                        "-Wall",
                                        "-fPIC",
                                        "-shared",
                                        "-fno-strict-aliasing",
                                        "-isystem",
                                        *include,
                                        "-DKBUILD_MODNAME=\"" + name + "\"",
                                        "-o",
                                        made,
                                        source};
    int status =
        cxx ? compile("CXX", {"c++", "g++", "clang++"}, command) : compile("CC", {"cc", "gcc", "clang"}, command);
    if (status == 127)
        complain({Error::Kind::not_found, "there is no compiler", "install gcc, or name one in $CC", {}, -1, 1});
    else if (status != 0)
        complain({Error::Kind::refused, text::escape(source) + " could not be compiled", {}, {}, -1, 1});
    return status == 0 ? 0 : 1;
}

} // namespace

int plugin(const Invocation &invocation) { return build(invocation.operands.at(1), invocation.config.output); }

} // namespace ktrace::cli
