// Image: the bytes of one file, mapped read-only (or held in memory, as the vdso's are), with the descriptor that they
// came from. The mapping is private and never written; nothing is read until it is touched.
//
// A file that is cut short while it is mapped has zeros behind its new end (os/cut_files).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace ktrace::symbols {

/// Opens for reading a file that was opened with O_PATH: only a regular file, since opening a device may set it going,
/// and opening a FIFO may wait. `shown` is what errors call it. Errors: refused (something else), denied, system.
Result<Fd> open_regular(Fd found, const std::string &shown);

class Image {
  public:
    /// Opens and maps a regular file. Errors: not_found, denied, refused (not a regular file, empty), system.
    static Result<Image> open(const std::string &path);
    /// Maps the regular file that `fd` refers to, and takes the descriptor. `shown` is what errors call it.
    static Result<Image> map(Fd fd, const std::string &shown);
    /// Takes bytes that are in memory.
    static Image of(std::vector<std::byte> bytes);

    Image(Image &&other) noexcept;
    Image &operator=(Image &&other) noexcept;
    ~Image();

    std::span<const std::byte> bytes() const { return bytes_; }
    /// The file's descriptor, -1 for bytes in memory.
    int fd() const { return fd_.get(); }
    /// Lets go of the memory that a range of the mapping takes; it is read again when it is touched again.
    void forget(std::span<const std::byte> range) const;

  private:
    Image() = default;

    Fd fd_;
    std::vector<std::byte> owned_;
    std::span<const std::byte> bytes_;
    bool mapped_ = false;
};

} // namespace ktrace::symbols
