#include "os/spawn.h"

#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/interrupts.h"
#include "os/memory_bound.h"
#include "os/ptrace.h"
#include "os/yama.h"

namespace ktrace::os {

namespace {

/// In the child: waits until it is seized (the pipe closes), then becomes the program; tells errno through `report`.
[[noreturn]] void become(const std::vector<std::string> &program, const Interrupts &interrupts, Pid guardian,
                         int wait_fd, int report_fd) {
    let_trace(guardian);
    std::vector<char *> argv;
    for (const std::string &argument : program) argv.push_back(const_cast<char *>(argument.c_str()));
    argv.push_back(nullptr);
    interrupts.restore();
    unbound_memory();
    char byte;
    while (::read(wait_fd, &byte, 1) < 0 && errno == EINTR) {
    }
    ::execvp(argv[0], argv.data());
    int error = errno;
    ssize_t ignored = ::write(report_fd, &error, sizeof error);
    static_cast<void>(ignored);
    ::_exit(127);
}

Error may_not_trace(int error) {
    Error why{Error::Kind::system, "ktrace may not trace, not even a program of its own: ", {}, {}, -1, 1};
    if (auto refused = refusal_by_scope(true)) {
        why.message += refused->why;
        why.hint = refused->hint;
    } else {
        why.message += std::strerror(error);
        why.hint = "a container needs a seccomp profile that allows ptrace; a debugger on ktrace itself is in the way";
    }
    return why;
}

/// What exec's errno says of a program.
Error cannot_start(const std::string &program, int error) {
    Error why{Error::Kind::denied, program + " cannot be run: " + std::strerror(error), {}, {}, -1, 1};
    bool missing = error == ENOENT || error == ENOTDIR;
    if (missing && program.find('/') != std::string::npos && ::access(program.c_str(), F_OK) == 0) {
        why.hint = "its interpreter (the loader, or what stands behind #!) is missing";
    } else if (missing) {
        why.kind = Error::Kind::not_found;
        why.message = "there is no program " + program;
        why.hint = "check its name, or give a path";
    } else if (error == EACCES) {
        why.hint = "it is no executable file (chmod +x?), or in a directory that may not be entered";
    }
    return why;
}

} // namespace

Result<Pid> spawn_seized(Waiter &waiter, const Interrupts &interrupts, Pid guardian,
                         const std::vector<std::string> &program) {
    int go[2], report[2];
    if (::pipe2(go, O_CLOEXEC) != 0 || ::pipe2(report, O_CLOEXEC) != 0)
        return fail(Error::Kind::system, std::string("no pipe: ") + std::strerror(errno));
    Fd go_read(go[0]), go_write(go[1]), report_read(report[0]), report_write(report[1]);
    pid_t child = ::fork();
    if (child < 0) return fail(Error::Kind::system, std::string("no new process: ") + std::strerror(errno));
    if (child == 0) {
        ::close(go_write.release());
        become(program, interrupts, guardian, go_read.get(), report_write.get());
    }
    report_write = Fd();
    if (int error = seize(Tid{child}); error != 0) {
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        return fail(may_not_trace(error));
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
    return fail(cannot_start(program[0], error));
}

} // namespace ktrace::os
