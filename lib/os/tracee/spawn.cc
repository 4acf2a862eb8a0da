#include "os/tracee/spawn.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/proc/yama.h"
#include "os/self/descriptors.h"
#include "os/self/memory_bound.h"
#include "os/self/own_signals.h"
#include "os/tracee/ptrace.h"

namespace ktrace::os {

namespace {

/// In the child, with all signals blocked: waits until it is seized (a byte comes), then becomes the program; reports
/// errno through `report`.
[[noreturn]] void become(const std::vector<std::string> &program, const OwnSignals &interrupts, Pid parent,
                         Pid guardian, int wait_fd, int report_fd) {
    // Others that are forked meanwhile may keep the pipe open.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent.value) ::_exit(127);
    let_trace(guardian);
    std::vector<char *> argv;
    for (const std::string &argument : program) argv.push_back(const_cast<char *>(argument.c_str()));
    argv.push_back(nullptr);
    char byte;
    if (::read(wait_fd, &byte, 1) != 1) ::_exit(127);
    ::prctl(PR_SET_PDEATHSIG, 0);
    unbound_memory();
    restore_descriptor_limit();
    interrupts.restore();
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

/// The meaning of exec's errno for a program.
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

Error no_new_task(std::string_view what, int error) {
    const std::string none = "no " + std::string(what) + " can be started: ";
    if (error != EAGAIN) return {Error::Kind::system, none + std::strerror(error), {}, {}, -1, 1};
    return {Error::Kind::system,
            none + "this user, or this control group, has as many as it may have",
            "end some, or raise the limit (ulimit -u, pids.max)",
            {},
            -1,
            1};
}

Spawn::Spawn(std::vector<std::string> program, pid_t child, Fd go, Fd report)
    : program_(std::move(program)), child_(child), go_(std::move(go)), report_(std::move(report)) {}

Spawn::Spawn(Spawn &&other) noexcept
    : program_(std::move(other.program_)), child_(std::exchange(other.child_, 0)), go_(std::move(other.go_)),
      report_(std::move(other.report_)) {}

Spawn::~Spawn() {
    if (child_ == 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
}

Result<Spawn> Spawn::fork(const OwnSignals &interrupts, Pid guardian, std::vector<std::string> program) {
    int go[2], report[2];
    if (::pipe2(go, O_CLOEXEC) != 0 || ::pipe2(report, O_CLOEXEC) != 0)
        return fail(Error::Kind::system, std::string("no pipe: ") + std::strerror(errno));
    Fd go_read(go[0]), go_write(go[1]), report_read(report[0]), report_write(report[1]);
    const Pid parent{::getpid()};
    sigset_t all, before;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before); // no handler of ours is to run in the child
    pid_t child = ::fork();
    if (child == 0) {
        ::close(go_write.release());
        become(program, interrupts, parent, guardian, go_read.get(), report_write.get());
    }
    const int error = errno;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (child < 0) return fail(no_new_task("process", error));
    return Spawn(std::move(program), child, std::move(go_write), std::move(report_read));
}

Result<Pid> Spawn::start_seized(Waiter &waiter) {
    if (int error = seize(Tid{child_}); error != 0) return fail(may_not_trace(error));
    const pid_t child = std::exchange(child_, 0);
    const char go = 0;
    ssize_t ignored = ::write(go_.get(), &go, 1); // its end is seen below
    static_cast<void>(ignored);
    go_ = Fd();
    while (true) {
        auto stop = waiter.next_of(Tid{child});
        if (!stop) return fail(Error::Kind::system, program_[0] + " has vanished");
        if (stop->kind == Stop::Kind::exec) return Pid{child};
        if (stop->kind == Stop::Kind::exited || stop->kind == Stop::Kind::killed) break;
        resume(Tid{child}, Resume::run, stop->kind == Stop::Kind::signal ? stop->signal : 0);
        waiter.resumed(Tid{child});
    }
    waiter.forget(Tid{child});
    int error = 0;
    if (::read(report_.get(), &error, sizeof error) != sizeof error)
        return fail(Error::Kind::system, program_[0] + " ended before it was started");
    return fail(cannot_start(program_[0], error));
}

} // namespace ktrace::os
