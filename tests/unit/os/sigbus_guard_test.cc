// A mapped file that is cut short: zeros are read, and it is reported; other reasons for SIGBUS stay what they are.
#include "os/self/sigbus_guard.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ktrace::os {
namespace {

constexpr std::size_t page = 4096, pages = 64;

/// A file of ones that is mapped.
class MappedFile {
  public:
    explicit MappedFile(int protection, int flags) {
        char path[] = "/tmp/ktrace-cut-XXXXXX";
        fd_ = ::mkstemp(path);
        path_ = path;
        std::string ones(page * pages, '\1');
        EXPECT_EQ(::write(fd_, ones.data(), ones.size()), static_cast<ssize_t>(ones.size()));
        bytes = static_cast<volatile char *>(::mmap(nullptr, ones.size(), protection, flags, fd_, 0));
    }
    ~MappedFile() {
        ::munmap(const_cast<char *>(bytes), page * pages);
        ::close(fd_);
        ::unlink(path_.c_str());
    }
    void cut(std::size_t size) const { ASSERT_EQ(::ftruncate(fd_, static_cast<off_t>(size)), 0); }
    bool is_told(const std::vector<std::string> &notices) const {
        return std::any_of(notices.begin(), notices.end(),
                           [&](const auto &n) { return n.starts_with(path_ + " was"); });
    }

    volatile char *bytes;

  private:
    int fd_;
    std::string path_;
};

TEST(CutFiles, AreZerosBehindTheirEnd) {
    survive_cut_files();
    MappedFile file(PROT_READ, MAP_PRIVATE), other(PROT_READ, MAP_PRIVATE);
    file.cut(10 * page + 100);
    for (std::size_t at : {9 * page, 10 * page + 99}) EXPECT_EQ(file.bytes[at], 1) << at;
    EXPECT_TRUE(take_cut_file_notices().empty());
    for (std::size_t at : {10 * page + 100, 40 * page + 7, 11 * page, pages * page - 1}) EXPECT_EQ(file.bytes[at], 0);
    for (std::size_t at : {9 * page, 10 * page + 99}) EXPECT_EQ(file.bytes[at], 1) << at;
    for (std::size_t at = 0; at < pages * page; at += page) EXPECT_EQ(other.bytes[at], 1) << at;
    auto notices = take_cut_file_notices();
    EXPECT_TRUE(file.is_told(notices));
    EXPECT_FALSE(other.is_told(notices));
    EXPECT_TRUE(take_cut_file_notices().empty());
}

TEST(CutFiles, ThatAreSharedOrWrittenToAreNotMended) {
    auto touch = [](int protection, int flags) {
        ::signal(SIGBUS, SIG_DFL); // not that of a sanitizer
        survive_cut_files();
        MappedFile file(protection, flags);
        file.cut(0);
        std::exit(file.bytes[0]);
    };
    EXPECT_EXIT(touch(PROT_READ, MAP_SHARED), testing::KilledBySignal(SIGBUS), "");
    EXPECT_EXIT(touch(PROT_READ | PROT_WRITE, MAP_PRIVATE), testing::KilledBySignal(SIGBUS), "");
}

} // namespace
} // namespace ktrace::os
