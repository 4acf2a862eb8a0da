#include "os/self/local_socket.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"
#include "os/proc/procfs.h"

namespace ktrace::os {

namespace {

constexpr const char *suffix = ".sock";

std::string reason() { return std::strerror(errno); }

/// The name of a process's socket. The number is the one that it has in its own pid namespace.
struct SocketName {
    std::uint64_t pid = 0;
    std::uint64_t pid_namespace = 0; // its inode; 0: not known
};

std::string socket_path(const std::string &directory, SocketName name) {
    return directory + "/" + std::to_string(name.pid) + "-" + std::to_string(name.pid_namespace) + suffix;
}

/// The name that a file of the directory has; `PID.sock` was that of earlier versions.
std::optional<SocketName> parse_name(std::string_view file) {
    if (!file.ends_with(suffix)) return std::nullopt;
    file.remove_suffix(std::strlen(suffix));
    std::size_t dash = file.find('-');
    auto pid = text::parse_u64(file.substr(0, dash));
    auto pid_namespace = dash == file.npos ? std::optional<std::uint64_t>(0) : text::parse_u64(file.substr(dash + 1));
    if (!pid || !pid_namespace) return std::nullopt;
    return SocketName{*pid, *pid_namespace};
}

SocketName own_name() {
    struct stat st;
    bool known = ::stat("/proc/self/ns/pid", &st) == 0;
    return {static_cast<std::uint64_t>(::getpid()), known ? st.st_ino : 0};
}

std::optional<sockaddr_un> address_of(const std::string &path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return std::nullopt;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

bool is_private(const std::string &directory, uid_t owner) {
    struct stat st;
    return ::lstat(directory.c_str(), &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == owner && (st.st_mode & 077) == 0;
}

std::string in_tmp(const std::string &program, uid_t user) { return "/tmp/" + program + "-" + std::to_string(user); }

/// The user's own directory for sockets, as the environment names it; empty: it names none that is this user's.
std::string runtime_directory() {
    const char *directory = std::getenv("XDG_RUNTIME_DIR");
    struct stat st;
    if (!directory || directory[0] != '/' || ::stat(directory, &st) != 0 || st.st_uid != ::geteuid()) return {};
    return directory;
}

Result<std::string> make_directory(const std::string &program) {
    std::string runtime = runtime_directory();
    std::vector<std::string> candidates;
    if (!runtime.empty()) candidates.push_back(runtime + "/" + program);
    candidates.push_back(in_tmp(program, ::geteuid()));
    std::string why;
    for (const std::string &directory : candidates) {
        if (!address_of(socket_path(directory, {~std::uint64_t{0}, ~std::uint64_t{0}}))) continue;
        if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
            why = directory + " cannot be made: " + reason();
        else if (is_private(directory, ::geteuid()))
            return directory;
        else
            why = directory + " belongs to another user, or is open to others";
    }
    return fail(Error::Kind::denied, why, "take it away, or set XDG_RUNTIME_DIR to a directory of your own");
}

/// A process of another container, which is not seen in this /proc, may listen there.
bool somebody_listens(const std::string &path) {
    auto address = address_of(path);
    Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    return fd && address &&
           (::connect(fd.get(), reinterpret_cast<const sockaddr *>(&*address), sizeof *address) == 0 ||
            errno != ECONNREFUSED);
}

/// True where the socket is so new that its process, which is not seen from here, may be about to listen.
bool is_new(const std::string &path) {
    constexpr std::time_t long_enough = 60; // seconds
    struct stat st;
    return ::stat(path.c_str(), &st) == 0 && ::time(nullptr) - st.st_mtime < long_enough;
}

/// True where the process of that name has ended without taking its socket away (kill -9).
bool is_stale(const std::string &path, SocketName name, std::uint64_t here) {
    bool is_seen = name.pid_namespace == 0 || name.pid_namespace == here;
    bool may_live = is_seen ? read_status(static_cast<pid_t>(name.pid)).has_value() : is_new(path);
    return !may_live && !somebody_listens(path);
}

void take_away_stale(const std::string &directory) {
    DIR *opened = ::opendir(directory.c_str());
    if (!opened) return;
    std::uint64_t here = own_name().pid_namespace;
    while (const dirent *entry = ::readdir(opened)) {
        auto name = parse_name(entry->d_name);
        if (name && is_stale(directory + "/" + entry->d_name, *name, here))
            ::unlinkat(::dirfd(opened), entry->d_name, 0);
    }
    ::closedir(opened);
}

/// Sockets in a directory that a process of this number has made; those of other containers are among them. errno says
/// why there are none.
std::vector<std::string> sockets_of(const std::string &directory, std::uint64_t pid) {
    std::vector<std::string> paths;
    errno = 0;
    DIR *opened = ::opendir(directory.c_str());
    if (!opened) return paths;
    while (const dirent *entry = ::readdir(opened)) {
        auto name = parse_name(entry->d_name);
        if (name && name->pid == pid) paths.push_back(directory + "/" + entry->d_name);
    }
    ::closedir(opened);
    return paths;
}

std::optional<ucred> peer_of(int fd) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
    return peer;
}

/// XDG_RUNTIME_DIR of another process; empty: not known.
std::string runtime_directory_of(Pid pid) {
    auto environment = read_file(process_folder(pid) + "/environ");
    if (!environment) return {};
    constexpr std::string_view name = "XDG_RUNTIME_DIR=";
    for (std::string_view each : text::split(*environment, '\0'))
        if (each.starts_with(name)) return std::string(each.substr(name.size()));
    return {};
}

std::vector<std::string> directories_of(const std::string &program, Pid server, uid_t user) {
    std::vector<std::string> directories;
    for (const std::string &runtime : {runtime_directory_of(server), runtime_directory()})
        if (!runtime.empty()) directories.push_back(runtime + "/" + program);
    directories.push_back("/run/user/" + std::to_string(user) + "/" + program);
    directories.push_back(in_tmp(program, user));
    return directories;
}

} // namespace

Result<LocalListener> LocalListener::open(const std::string &program) {
    auto directory = make_directory(program);
    if (!directory) return fail(directory.error());
    take_away_stale(*directory);
    std::string path = socket_path(*directory, own_name());
    sockaddr_un address = *address_of(path);
    ::unlink(path.c_str()); // of an earlier process with this number
    Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    // Its name is made with the mode that the socket has: at no time may others open it.
    bool made = fd && ::fchmod(fd.get(), 0600) == 0 &&
                ::bind(fd.get(), reinterpret_cast<const sockaddr *>(&address), sizeof address) == 0;
    if (!made) return fail(Error::Kind::system, path + " cannot be made: " + reason());
    LocalListener listener(std::move(fd), path);
    if (::chmod(path.c_str(), 0600) != 0 || ::listen(listener.fd(), SOMAXCONN) != 0)
        return fail(Error::Kind::system, path + " cannot be listened at: " + reason());
    return listener;
}

LocalListener::LocalListener(LocalListener &&other) noexcept
    : fd_(std::move(other.fd_)), path_(std::exchange(other.path_, {})) {}

LocalListener::~LocalListener() {
    if (!path_.empty()) ::unlink(path_.c_str());
}

std::optional<Fd> LocalListener::accept() const {
    Fd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return std::nullopt;
    auto peer = peer_of(fd.get());
    if (!peer || (peer->uid != ::geteuid() && peer->uid != 0)) return std::nullopt;
    return fd;
}

Result<Fd> connect_local(const std::string &program, Pid server) {
    auto status = read_status(server.value);
    if (!status) return fail(Error::Kind::not_found, "process " + std::to_string(server.value) + " has ended");
    bool denied = false;
    std::uint64_t number = innermost_id(Tid{server.value});
    for (const std::string &directory : directories_of(program, server, status->euid)) {
        std::vector<std::string> paths = sockets_of(directory, number);
        denied = denied || errno == EACCES;
        for (const std::string &path : paths) {
            auto address = address_of(path);
            if (!address) continue;
            Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
            if (!fd) return fail(Error::Kind::system, "no socket can be had: " + reason());
            if (::connect(fd.get(), reinterpret_cast<const sockaddr *>(&*address), sizeof *address) != 0) {
                denied = denied || errno == EACCES;
                continue;
            }
            auto peer = peer_of(fd.get());
            if (peer && peer->pid == server.value) return fd;
        }
    }
    std::string who = program + " (process " + std::to_string(server.value) + ")";
    if (denied || (::geteuid() != 0 && status->euid != ::geteuid()))
        return fail(Error::Kind::denied, who + " belongs to another user (uid " + std::to_string(status->euid) + ")",
                    "only that user and root may talk to it");
    return fail(Error::Kind::not_found, who + " does not listen");
}

} // namespace ktrace::os
