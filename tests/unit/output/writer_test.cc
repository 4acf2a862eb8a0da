// The writer against descriptors that take all, nothing, or little at a time.
#include <array>
#include <csignal>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "output/writer.h"

namespace ktrace::test {
namespace {

struct Pipe {
    Pipe() {
        int ends[2];
        EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
        reader = Fd(ends[0]);
        writer = Fd(ends[1]);
    }
    Fd reader, writer;
};

std::string read_all(int fd) {
    std::string all;
    std::array<char, 4096> buffer;
    for (ssize_t n; (n = ::read(fd, buffer.data(), buffer.size())) > 0;)
        all.append(buffer.data(), static_cast<std::size_t>(n));
    return all;
}

TEST(Writer, HoldsTextUntilFlushed) {
    Pipe pipe;
    output::Writer writer(pipe.writer.get(), "pipe");
    writer.write("hello");
    EXPECT_TRUE(writer.pending());
    ASSERT_EQ(::fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK), 0);
    char c;
    EXPECT_EQ(::read(pipe.reader.get(), &c, 1), -1);
    writer.flush();
    EXPECT_FALSE(writer.pending());
    EXPECT_EQ(read_all(pipe.reader.get()), "hello");
}

TEST(Writer, WritesWhenTheBufferIsFull) {
    int fd = ::memfd_create("out", MFD_CLOEXEC);
    Fd owner(fd);
    output::Writer writer(fd, "out");
    writer.write(std::string(output::Writer::buffer_size, 'x'));
    EXPECT_FALSE(writer.pending());
    EXPECT_EQ(::lseek(fd, 0, SEEK_END), static_cast<off_t>(output::Writer::buffer_size));
}

TEST(Writer, InTheBackgroundNobodyWaitsForAReader) {
    constexpr std::size_t most = 1 << 20;
    Pipe pipe;
    output::Writer writer(pipe.writer.get(), "pipe");
    writer.write_in_background(most, [] {});
    std::string written;
    while (writer.has_room()) {
        std::string text(1000, static_cast<char>('a' + written.size() / 1000 % 26));
        writer.write(text);
        writer.flush();
        written += text;
    }
    EXPECT_GE(written.size(), most);
    std::string seen;
    std::thread reader([&] {
        while (seen.size() < written.size()) {
            std::array<char, 4096> buffer;
            ssize_t n = ::read(pipe.reader.get(), buffer.data(), buffer.size());
            if (n <= 0) return;
            seen.append(buffer.data(), static_cast<std::size_t>(n));
        }
    });
    writer.finish([] { return false; });
    reader.join();
    EXPECT_EQ(seen, written);
    EXPECT_FALSE(writer.failed());
}

TEST(Writer, AWaitForAReaderCanBeEnded) {
    // Its thread stays in its write until the pipe is closed, when the process ends.
    static Pipe pipe;
    output::Writer writer(pipe.writer.get(), "pipe");
    writer.write_in_background(1, [] {});
    writer.write(std::string(1 << 20, 'x'));
    writer.finish([] { return true; });
    EXPECT_TRUE(writer.failed());
    EXPECT_TRUE(writer.take_error().has_value());
    pipe.reader = Fd(); // EPIPE
}

TEST(Writer, InTheBackgroundAFailureWakes) {
    Pipe pipe;
    pipe.reader = Fd();
    output::Writer writer(pipe.writer.get(), "pipe");
    std::promise<void> woken;
    writer.write_in_background(1 << 20, [&, told = false]() mutable {
        if (!std::exchange(told, true)) woken.set_value();
    });
    writer.write("lost");
    writer.flush();
    woken.get_future().wait();
    EXPECT_TRUE(writer.failed());
    EXPECT_TRUE(writer.closed());
    writer.finish([] { return false; });
}

TEST(Writer, AClosedPipeIsNoSignalAndNoError) {
    struct sigaction before;
    struct sigaction deadly {};
    deadly.sa_handler = SIG_DFL;
    sigaction(SIGPIPE, &deadly, &before);
    Pipe pipe;
    pipe.reader = Fd();
    output::Writer writer(pipe.writer.get(), "pipe");
    writer.write("lost");
    writer.flush();
    EXPECT_TRUE(writer.failed());
    EXPECT_TRUE(writer.closed());
    EXPECT_TRUE(writer.take_error().has_value());
    sigset_t pending;
    sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    EXPECT_EQ(sigismember(&mask, SIGPIPE), 0);
    sigaction(SIGPIPE, &before, nullptr);
}

TEST(Writer, AFullDiskIsToldOnce) {
    auto writer = output::Writer::create("/dev/full");
    ASSERT_TRUE(writer.has_value());
    writer->write("x");
    writer->flush();
    EXPECT_TRUE(writer->failed());
    EXPECT_FALSE(writer->closed());
    auto error = writer->take_error();
    ASSERT_FALSE(error.has_value());
    EXPECT_NE(error.error().message.find("/dev/full"), std::string::npos);
    EXPECT_NE(error.error().message.find("No space left"), std::string::npos);
    EXPECT_FALSE(error.error().hint.empty());
    writer->write("y");
    writer->flush();
    EXPECT_TRUE(writer->take_error().has_value());
}

TEST(Writer, AFileThatCannotBeMadeSaysWhy) {
    auto writer = output::Writer::create("/nonexistent/dir/file");
    ASSERT_FALSE(writer.has_value());
    EXPECT_EQ(writer.error().kind, Error::Kind::not_found);
    EXPECT_NE(writer.error().message.find("/nonexistent/dir/file"), std::string::npos);
}

TEST(Writer, WaitsForASlowNonBlockingReader) {
    Pipe pipe;
    ASSERT_EQ(::fcntl(pipe.writer.get(), F_SETFL, O_NONBLOCK), 0);
    std::string sent(1 << 20, 'z');
    std::string got;
    std::thread reader([&] { got = read_all(pipe.reader.get()); });
    {
        output::Writer writer(pipe.writer.get(), "pipe");
        writer.write(sent);
        writer.flush();
        EXPECT_FALSE(writer.failed());
    }
    pipe.writer = Fd();
    reader.join();
    EXPECT_EQ(got, sent);
}

} // namespace
} // namespace ktrace::test
