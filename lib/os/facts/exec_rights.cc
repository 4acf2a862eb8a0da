#include "os/facts/exec_rights.h"

#include <climits>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "os/proc/procfs.h"

namespace ktrace::os {

namespace {

std::string string_at(Memory &memory, VirtAddr at) {
    std::string text;
    char c = 0;
    while (text.size() < PATH_MAX &&
           memory.read(at + static_cast<std::int64_t>(text.size()), std::as_writable_bytes(std::span(&c, 1))) == 1 &&
           c != '\0')
        text += c;
    return text;
}

/// The file as the process itself would find it.
std::string path_of(Pid pid, const os::SyscallEntry &entry, Memory &memory) {
    bool at_directory = entry.number == SYS_execveat;
    std::string name = string_at(memory, VirtAddr{entry.arguments[at_directory ? 1 : 0]});
    std::string folder = os::process_folder(pid);
    if (name.starts_with('/')) return folder + "/root" + name;
    int directory = at_directory ? static_cast<int>(entry.arguments[0]) : AT_FDCWD;
    std::string from = directory == AT_FDCWD ? "/cwd" : "/fd/" + std::to_string(directory);
    return folder + from + (name.empty() ? "" : "/" + name);
}

} // namespace

bool gains_rights(Pid pid, const os::SyscallEntry &entry, Memory &memory) {
    std::string path = path_of(pid, entry, memory);
    struct stat file {};
    if (::stat(path.c_str(), &file) != 0) return false;
    bool set_group = (file.st_mode & S_ISGID) != 0 && (file.st_mode & S_IXGRP) != 0;
    return (file.st_mode & S_ISUID) != 0 || set_group ||
           ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

} // namespace ktrace::os
