#include "symbols/debugfile/debugfile.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "symbols/elf/minidebug.h"

namespace ktrace::symbols {

namespace {

constexpr const char *debug_folder = "/usr/lib/debug";
constexpr std::uint64_t largest_checked = std::uint64_t{8} << 30U; // bytes; a sparse file may claim any size

/// Finds an absolute path as a process sees it whose root directory is `root`: symbolic links do not lead out of it.
Fd find_in(const std::string &root, const std::string &path) {
    if (root.empty()) return Fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
    Fd folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder) return Fd();
    open_how how = {};
    how.flags = O_PATH | O_CLOEXEC;
    how.resolve = RESOLVE_IN_ROOT;
    long fd = ::syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how);
    if (fd >= 0 || errno != ENOSYS) return Fd(static_cast<int>(fd));
    return Fd(::open((root + path).c_str(), O_PATH | O_CLOEXEC)); // before Linux 5.6
}

/// nullptr: it is not there, or is no debug file.
std::unique_ptr<ElfFile> debug_file_in(const std::string &root, const std::string &path) {
    Fd found = find_in(root, path);
    if (!found) return nullptr;
    auto fd = open_regular(std::move(found), path);
    return fd ? parse_debug_file(std::move(*fd), path) : nullptr;
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
        auto elf = debug_file_in(candidate, path);
        if (elf && same(elf->build_id(), file.build_id())) return {std::move(elf), candidate + path};
    }
    return {};
}

/// The CRC is of the whole file, which may be large: build-ids decide sooner where both have one.
bool fits(const ElfFile &debug, const ElfFile &file, std::uint32_t crc) {
    if (!file.build_id().empty() && !debug.build_id().empty()) return same(debug.build_id(), file.build_id());
    return debug.image().bytes().size() <= largest_checked && crc32(debug.image().bytes()) == crc;
}

DebugFile by_debug_link(const ElfFile &file, const std::string &shown_path, const std::string &root) {
    auto link = file.debug_link();
    if (!link) return {};
    std::string folder = folder_of(shown_path);
    std::string places[] = {folder + "/" + link->name, folder + "/.debug/" + link->name,
                            debug_folder + (folder.starts_with('/') ? folder : "/" + folder) + "/" + link->name};
    for (const std::string &path : places) {
        if (path == shown_path) continue;
        auto elf = debug_file_in(path.starts_with('/') ? root : std::string(), path);
        if (elf && fits(*elf, file, link->crc)) return {std::move(elf), root + path};
    }
    return {};
}

} // namespace

std::unique_ptr<ElfFile> parse_debug_file(Fd fd, const std::string &path) {
    auto image = Image::map(std::move(fd), path);
    if (!image) return nullptr;
    auto file = ElfFile::parse(std::move(*image), path, ElfFile::Role::debug);
    return file ? std::move(*file) : nullptr;
}

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

} // namespace ktrace::symbols
