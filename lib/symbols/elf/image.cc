#include "symbols/elf/image.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ktrace::symbols {

namespace {

tl::unexpected<Error> open_failed(const std::string &shown, int error) {
    Error::Kind kind = error == ENOENT || error == ENOTDIR ? Error::Kind::not_found
                       : error == EACCES || error == EPERM ? Error::Kind::denied
                                                           : Error::Kind::system;
    return fail(kind, "cannot open " + shown + ": " + std::strerror(error) + (error == EMFILE ? " (ulimit -n)" : ""));
}

Status check_regular(const Fd &fd, const std::string &shown, struct stat &status) {
    if (::fstat(fd.get(), &status) != 0) return open_failed(shown, errno);
    if (!S_ISREG(status.st_mode)) return fail(Error::Kind::refused, shown + " is not a regular file");
    return {};
}

/// Files of others leave some descriptors: without any, all that /proc shows of a process would seem to be gone.
bool is_one_of_the_last(const Fd &fd) {
    constexpr rlim_t most_left = 64;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    return static_cast<rlim_t>(fd.get()) >= limit.rlim_cur - std::min(most_left, limit.rlim_cur / 4);
}

} // namespace

Result<Fd> open_regular(Fd found, const std::string &shown) {
    struct stat status = {};
    if (auto regular = check_regular(found, shown, status); !regular) return tl::unexpected(regular.error());
    Fd fd(::open(("/proc/self/fd/" + std::to_string(found.get())).c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return open_failed(shown, errno);
    if (is_one_of_the_last(fd)) return open_failed(shown, EMFILE);
    return fd;
}

Result<Image> Image::open(const std::string &path) {
    Fd found(::open(path.c_str(), O_PATH | O_CLOEXEC));
    if (!found) return open_failed(path, errno);
    auto fd = open_regular(std::move(found), path);
    if (!fd) return tl::unexpected(fd.error());
    return map(std::move(*fd), path);
}

Result<Image> Image::map(Fd fd, const std::string &shown) {
    struct stat status = {};
    if (auto regular = check_regular(fd, shown, status); !regular) return tl::unexpected(regular.error());
    if (status.st_size <= 0) return fail(Error::Kind::refused, shown + " is empty");
    auto size = static_cast<std::size_t>(status.st_size);
    void *at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
    if (at == MAP_FAILED) return open_failed(shown, errno);
    Image image;
    image.fd_ = std::move(fd);
    image.bytes_ = {static_cast<const std::byte *>(at), size};
    image.mapped_ = true;
    return image;
}

Image Image::of(std::vector<std::byte> bytes) {
    Image image;
    image.owned_ = std::move(bytes);
    image.bytes_ = image.owned_;
    return image;
}

Image::Image(Image &&other) noexcept { *this = std::move(other); }

Image &Image::operator=(Image &&other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(owned_, other.owned_); // a vector's elements stay where they are
    std::swap(bytes_, other.bytes_);
    std::swap(mapped_, other.mapped_);
    return *this;
}

Image::~Image() {
    if (mapped_) ::munmap(const_cast<std::byte *>(bytes_.data()), bytes_.size());
}

void Image::forget(std::span<const std::byte> range) const {
    if (!mapped_ || range.empty() || range.data() < bytes_.data()) return;
    static const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    auto low = reinterpret_cast<std::uintptr_t>(range.data()) & ~(page - 1);
    auto high = reinterpret_cast<std::uintptr_t>(range.data() + range.size());
    ::madvise(reinterpret_cast<void *>(low), high - low, MADV_DONTNEED); // private and clean: nothing is lost
}

} // namespace ktrace::symbols
