#include "symbols/debugfile.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <elfutils/debuginfod.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbols/minidebug.h"

namespace ktrace::symbols {

namespace {

constexpr const char *debug_folder = "/usr/lib/debug";

/// Opens an absolute path as a process sees it whose root directory is `root`: symbolic links do not lead out of it.
Fd open_in(const std::string &root, const std::string &path) {
    if (root.empty()) return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    Fd folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return Fd();
    open_how how = {};
    how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
    how.resolve = RESOLVE_IN_ROOT;
    long fd = ::syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how);
    if (fd >= 0 || errno != ENOSYS) return Fd(static_cast<int>(fd));
    return Fd(::open((root + path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)); // before Linux 5.6
}

std::unique_ptr<ElfFile> parse_debug(Fd fd, const std::string &path) {
    auto image = Image::map(std::move(fd), path);
    if (!image) return nullptr;
    auto file = ElfFile::parse(std::move(*image), path, ElfFile::Role::debug);
    return file ? std::move(*file) : nullptr;
}

bool same(std::span<const std::byte> a, std::span<const std::byte> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::string folder_of(const std::string &path) {
    std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string(".") : path.substr(0, slash);
}

DebugFile by_build_id(const ElfFile &file, const std::string &root) {
    if (file.build_id().size() < 2) return {};
    std::string id = hex(file.build_id());
    std::string path = std::string(debug_folder) + "/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug";
    std::vector<std::string> roots{root};
    if (!root.empty()) roots.emplace_back();
    for (const std::string &candidate : roots) {
        Fd fd = open_in(candidate, path);
        if (!fd) continue;
        auto elf = parse_debug(std::move(fd), path);
        if (elf && same(elf->build_id(), file.build_id())) return {std::move(elf), candidate + path};
    }
    return {};
}

DebugFile by_debug_link(const ElfFile &file, const std::string &shown_path, const std::string &root) {
    auto link = file.debug_link();
    if (!link) return {};
    std::string folder = folder_of(shown_path);
    std::string places[] = {folder + "/" + link->name, folder + "/.debug/" + link->name,
                            debug_folder + (folder.starts_with('/') ? folder : "/" + folder) + "/" + link->name};
    for (const std::string &path : places) {
        if (path == shown_path) continue;
        Fd fd = open_in(path.starts_with('/') ? root : std::string(), path);
        if (!fd) continue;
        auto elf = parse_debug(std::move(fd), path);
        if (!elf) continue;
        // The CRC is of the whole file, which may be large: build-ids tell sooner where both have one.
        bool fits = !file.build_id().empty() && !elf->build_id().empty() ? same(elf->build_id(), file.build_id())
                                                                         : crc32(elf->image().bytes()) == link->crc;
        if (fits) return {std::move(elf), root + path};
    }
    return {};
}

} // namespace

std::string hex(std::span<const std::byte> bytes) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (std::byte b : bytes) {
        text += digits[static_cast<unsigned>(b) >> 4U];
        text += digits[static_cast<unsigned>(b) & 15U];
    }
    return text;
}

DebugFile find_debug_file(const ElfFile &file, const std::string &shown_path, const std::string &root) {
    auto found = by_build_id(file, root);
    return found.elf ? std::move(found) : by_debug_link(file, shown_path, root);
}

// --- debuginfod

namespace {

constexpr std::uint64_t debuginfod_patience = 15'000'000'000; // ns without a byte more
constexpr std::uint64_t debuginfod_longest = 300'000'000'000; // ns in all

/// libdebuginfod, which brings in libcurl and much else: loaded when it is needed, kept until the end.
struct Debuginfod {
    decltype(&::debuginfod_begin) begin = nullptr;
    decltype(&::debuginfod_end) end = nullptr;
    decltype(&::debuginfod_find_debuginfo) find = nullptr;
    decltype(&::debuginfod_set_progressfn) set_progress = nullptr;
    decltype(&::debuginfod_set_user_data) set_data = nullptr;
    decltype(&::debuginfod_get_user_data) data = nullptr;

    Debuginfod() {
        void *library = ::dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!library) return;
        auto get = [library](auto &function, const char *name) {
            function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
        };
        get(begin, "debuginfod_begin");
        get(end, "debuginfod_end");
        get(find, "debuginfod_find_debuginfo");
        get(set_progress, "debuginfod_set_progressfn");
        get(set_data, "debuginfod_set_user_data");
        get(data, "debuginfod_get_user_data");
    }
    bool complete() const { return begin && end && find && set_progress && set_data && data; }
};

const Debuginfod &debuginfod() {
    static const Debuginfod library;
    return library;
}

/// How a download goes on, to end one that does not.
struct Progress {
    std::uint64_t started = 0, last = 0; // monotonic ns
    long bytes = 0;
};

int still_patient(debuginfod_client *client, long bytes, long /*of*/) {
    auto &progress = *static_cast<Progress *>(debuginfod().data(client));
    std::uint64_t now = monotonic_ns();
    if (bytes != progress.bytes) progress.last = now;
    progress.bytes = bytes;
    bool patient = now - progress.last < debuginfod_patience && now - progress.started < debuginfod_longest;
    return patient ? 0 : 1; // 1 ends the call
}

} // namespace

bool debuginfod_configured() {
    const char *urls = std::getenv("DEBUGINFOD_URLS");
    return urls && *urls != '\0';
}

DebugFile fetch_debug_file(std::span<const std::byte> build_id, std::string &why_not) {
    const Debuginfod &library = debuginfod();
    if (!library.complete()) {
        why_not = "DEBUGINFOD_URLS is set, but libdebuginfod cannot be loaded";
        return {};
    }
    debuginfod_client *client = library.begin();
    if (!client) {
        why_not = "libdebuginfod cannot start";
        return {};
    }
    std::uint64_t now = monotonic_ns();
    Progress progress{now, now, 0};
    library.set_data(client, &progress);
    library.set_progress(client, still_patient);
    char *path = nullptr;
    int fd = library.find(client, reinterpret_cast<const unsigned char *>(build_id.data()),
                          static_cast<int>(build_id.size()), &path);
    library.end(client);
    std::string shown = path ? path : "debuginfod's file";
    std::free(path);
    if (fd < 0) {
        why_not = std::string("debuginfod has none: ") + std::strerror(-fd);
        return {};
    }
    DebugFile found{parse_debug(Fd(fd), shown), shown};
    if (!found.elf) why_not = "what debuginfod gave (" + shown + ") is not a debug file";
    return found;
}

} // namespace ktrace::symbols
