#include "os/spawn.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/interrupts.h"
#include "os/ptrace.h"

namespace ktrace::os {

namespace {

/// In the child: waits until it is seized (the pipe closes), then becomes the program; tells errno through `report`.
[[noreturn]] void become(const std::vector<std::string> &program, int wait_fd, int report_fd) {
    std::vector<char *> argv;
    for (const std::string &argument : program) argv.push_back(const_cast<char *>(argument.c_str()));
    argv.push_back(nullptr);
    ::signal(SIGPIPE, SIG_DFL);
    Interrupts::unblock();
    char byte;
    while (::read(wait_fd, &byte, 1) < 0 && errno == EINTR) {
    }
    ::execvp(argv[0], argv.data());
    int error = errno;
    ssize_t ignored = ::write(report_fd, &error, sizeof error);
    static_cast<void>(ignored);
    ::_exit(127);
}

} // namespace

Result<Pid> spawn_seized(Waiter &waiter, const std::vector<std::string> &program) {
    int go[2], report[2];
    if (::pipe2(go, O_CLOEXEC) != 0 || ::pipe2(report, O_CLOEXEC) != 0)
        return fail(Error::Kind::system, std::string("no pipe: ") + std::strerror(errno));
    Fd go_read(go[0]), go_write(go[1]), report_read(report[0]), report_write(report[1]);
    pid_t child = ::fork();
    if (child < 0) return fail(Error::Kind::system, std::string("no new process: ") + std::strerror(errno));
    if (child == 0) {
        ::close(go_write.release());
        become(program, go_read.get(), report_write.get());
    }
    report_write = Fd();
    if (int error = seize(Tid{child}); error != 0) {
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        return fail(Error::Kind::denied, std::string("this user may not trace: ") + std::strerror(error));
    }
    go_write = Fd();
    while (true) {
        auto stop = waiter.next_of(Tid{child});
        if (!stop) return fail(Error::Kind::system, program[0] + " has vanished");
        if (stop->kind == Stop::Kind::exec) return Pid{child};
        if (stop->kind == Stop::Kind::exited || stop->kind == Stop::Kind::killed) break;
        resume(Tid{child}, Resume::run, stop->kind == Stop::Kind::signal ? stop->signal : 0);
        waiter.resumed(Tid{child});
    }
    waiter.forget(Tid{child});
    int error = 0;
    if (::read(report_read.get(), &error, sizeof error) != sizeof error)
        return fail(Error::Kind::system, program[0] + " ended before it was started");
    auto kind = error == ENOENT || error == ENOTDIR ? Error::Kind::not_found : Error::Kind::denied;
    return fail(kind, program[0] + ": " + std::strerror(error));
}

} // namespace ktrace::os
