#include "recovery/guardian.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string>

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/proc/procfs.h"
#include "os/self/own_signals.h"
#include "os/self/process_name.h"

namespace ktrace::recovery {

namespace {

constexpr std::initializer_list<int> passed_on = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

volatile pid_t tracing_process = 0;
volatile bool terminal_is_shared = false;

/// A signal of the terminal's goes to all of its foreground processes: to the tracing process, too, where that is one.
void pass_on(int signal, siginfo_t *info, void *) {
    int error = errno;
    bool from_terminal = info->si_code == SI_KERNEL;
    if (tracing_process > 0 && !(from_terminal && terminal_is_shared)) ::kill(tracing_process, signal);
    errno = error;
}

/// The signals that are passed on, blocked until the process that they go to is known.
class Blocked {
  public:
    Blocked() {
        sigset_t set;
        sigemptyset(&set);
        for (int signal : passed_on) sigaddset(&set, signal);
        ::sigprocmask(SIG_BLOCK, &set, &before_);
    }
    ~Blocked() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
    Blocked(const Blocked &) = delete;

  private:
    sigset_t before_;
};

void listen() {
    for (int signal : passed_on) {
        if (signal == SIGQUIT && !terminal_is_shared) continue; // it ends this process, and the other one detaches
        if (os::OwnSignals::stays_ignored(signal)) continue;    // by both
        struct sigaction action {};
        action.sa_sigaction = pass_on;
        action.sa_flags = SA_SIGINFO | SA_RESTART;
        sigfillset(&action.sa_mask);
        ::sigaction(signal, &action, nullptr);
    }
}

[[noreturn]] void be_tracing_process(Terminal terminal, pid_t guardian, const std::function<int(Ledger &)> &trace,
                                     Ledger &ledger) {
    os::OwnSignals::on_death_of_parent();
    if (::getppid() != guardian) ::_exit(EXIT_FAILURE);
    if (terminal == Terminal::left) {
        // A process group, no session: the scheduler shares a processor out by sessions (sched(7), autogroup), and
        // would run the tracer at once at every stop of one thread among many, instead of when some have stopped.
        ::setpgid(0, 0);
        ::signal(SIGTTOU, SIG_IGN); // it may write to the terminal, as the guardian may
    }
    os::set_title(tracing_process_name, std::string(tracing_process_name) + " of " + std::to_string(guardian));
    std::exit(trace(ledger));
}

/// How the child has ended (waitpid(2)). SIGCHLD may have been ignored by the process that started this one: the status
/// would be lost.
int wait_for(pid_t child) {
    ::signal(SIGCHLD, SIG_DFL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

/// True for a signal that was passed on, or might have been: it asks ktrace to end.
bool is_passed_on(int signal) { return std::find(passed_on.begin(), passed_on.end(), signal) != passed_on.end(); }

/// Ends as the tracing process has ended.
int end_by(int signal) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);
    return 128 + signal;
}

bool is_same_file(const struct stat &one, const struct stat &other) {
    return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/// Nothing: the process is gone, or belongs to another user.
std::optional<struct stat> program_of(pid_t pid) {
    struct stat file;
    if (::stat(("/proc/" + std::to_string(pid) + "/exe").c_str(), &file) != 0) return std::nullopt;
    return file;
}

} // namespace

bool is_abandoned(Tid tracer) {
    auto status = os::read_status(tracer.value);
    if (!status || status->name != tracing_process_name) return false;
    auto program = program_of(tracer.value);
    auto parents = program_of(status->ppid); // a guardian runs the same one, as the same user
    return program && !(parents && is_same_file(*program, *parents));
}

int guarded(Terminal terminal, const std::function<int(Ledger &)> &trace,
            const std::function<int(const Ledger &, int signal)> &mend) {
    Ledger ledger;
    const pid_t guardian = ::getpid();
    pid_t child = 0;
    {
        Blocked blocked;
        child = ::fork();
        if (child > 0) {
            tracing_process = child;
            terminal_is_shared = terminal == Terminal::kept;
            listen();
        }
    }
    if (child < 0) return trace(ledger); // no process to be had: unguarded, then
    if (child == 0) be_tracing_process(terminal, guardian, trace, ledger);
    const int status = wait_for(child);
    tracing_process = 0;
    if (WIFEXITED(status)) return WEXITSTATUS(status);
    const int signal = WTERMSIG(status);
    const bool had_begun = !ledger.empty() || ledger.program().value != 0;
    return !had_begun && is_passed_on(signal) ? end_by(signal) : mend(ledger, signal);
}

} // namespace ktrace::recovery
