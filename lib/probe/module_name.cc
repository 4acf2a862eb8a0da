// Which modules a MODULE of a SPEC names.
#include "probe/resolve.h"

#include <algorithm>
#include <climits>
#include <cstdlib>

#include <sys/stat.h>

#include "base/text.h"

namespace ktrace::probe {

namespace {

/// True for what may follow a library's short name: `.so`, `.so.6`, `-2.31.so`, `-2.0.so.0.7400.6`, `3.11`'s `.11`.
bool is_version_suffix(std::string_view rest) {
    if (rest.empty() || (rest[0] != '.' && rest[0] != '-')) return false;
    for (std::string_view part : text::split(rest.substr(1), '.')) {
        if (part == "so") continue;
        bool number = !part.empty() &&
                      std::all_of(part.begin(), part.end(), [](char c) { return (c >= '0' && c <= '9') || c == '-'; });
        if (!number) return false;
    }
    return true;
}

bool names(std::string_view wanted, std::string_view name) {
    if (name.empty()) return false;
    if (name == wanted) return true;
    if (text::is_glob(wanted)) return text::glob_match(wanted, name);
    return name.starts_with(wanted) && is_version_suffix(name.substr(wanted.size()));
}

/// The path with its symbolic links followed and `./` taken away; as it is where it leads nowhere.
std::string real_path(std::string_view path) {
    char buffer[PATH_MAX];
    const std::string given(path);
    return ::realpath(given.c_str(), buffer) ? std::string(buffer) : given;
}

/// True where a symbolic link of this name lies beside the file and leads to it: redis-server is one to
/// redis-check-rdb, and a user that started it by that name knows no other.
bool is_linked_as(std::string_view wanted, std::string_view path) {
    std::string beside(path.substr(0, path.size() - text::base_name(path).size()));
    beside += wanted;
    struct stat found {};
    return ::lstat(beside.c_str(), &found) == 0 && S_ISLNK(found.st_mode) && real_path(beside) == path;
}

} // namespace

bool names_module(std::string_view wanted, const symbols::Module &module) {
    std::string_view path = module.path();
    constexpr std::string_view deleted = " (deleted)";
    if (path.ends_with(deleted)) path.remove_suffix(deleted.size());
    if (wanted == path) return true;
    if (wanted.find('/') != std::string_view::npos)
        return text::is_glob(wanted) ? text::glob_match(wanted, path)
                                     : real_path(wanted) == path || real_path(path) == real_path(wanted);
    return names(wanted, text::base_name(path)) || names(wanted, module.soname()) ||
           (!wanted.empty() && path.starts_with('/') && !text::is_glob(wanted) && is_linked_as(wanted, path));
}

} // namespace ktrace::probe
