#include "plugin/channel.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <ctime>
#include <new>
#include <vector>

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/facts/blocked_syscall.h"
#include "os/self/descriptors.h"
#include "os/self/memory_bound.h"
#include "os/tracee/spawn.h"
#include "plugin/places.h"

namespace ktrace::plugin {

namespace {

constexpr std::uint64_t start_ns = 60'000'000'000U;    // one that cannot start is dead long before
constexpr std::uint64_t look_at_life_ns = 20'000'000U; // how often, while the host does not answer

/// In a forked child, which only makes system calls: the host must not be ktrace's child, so this one forks again and
/// ends.
[[noreturn]] void become_host(const char *path, char *const *arguments, int wire, int life) {
    if (::fork() != 0) ::_exit(0);
    ::setsid(); // the terminal's Ctrl-C is ktrace's
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::fcntl(wire, F_SETFD, 0);
    ::fcntl(life, F_SETFD, 0);
    ::dup2(STDERR_FILENO, STDOUT_FILENO); // standard output is for events
    os::unbound_memory();
    os::restore_descriptor_limit();
    ::execv(path, arguments);
    ::_exit(127);
}

Status spawn(const std::string &path, const Window &window, int wire, int life) {
    std::vector<std::string> words = {path,
                                      "--window",
                                      std::to_string(window.start),
                                      std::to_string(window.size),
                                      "--wire",
                                      std::to_string(wire),
                                      "--life",
                                      std::to_string(life)};
    std::vector<char *> arguments;
    for (std::string &word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t child = ::fork();
    if (child < 0) return fail(os::no_new_task("process", errno));
    if (child == 0) become_host(path.c_str(), arguments.data(), wire, life);
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    return {};
}

int send_signal(int process, int signal) {
    return static_cast<int>(::syscall(SYS_pidfd_send_signal, process, signal, nullptr, 0));
}

} // namespace

Result<std::unique_ptr<Channel>> Channel::start(const Window &window) {
    auto path = host_program();
    if (!path) return tl::make_unexpected(path.error());
    std::unique_ptr<Channel> channel(new Channel);
    Fd wire(::memfd_create("ktrace-plugin", MFD_CLOEXEC));
    if (!wire || ::ftruncate(wire.get(), static_cast<off_t>(wire_size)) != 0)
        return fail(Error::Kind::system, std::string("no shared memory: ") + std::strerror(errno));
    void *mapped = ::mmap(nullptr, wire_size, PROT_READ | PROT_WRITE, MAP_SHARED, wire.get(), 0);
    if (mapped == MAP_FAILED)
        return fail(Error::Kind::system, std::string("no shared memory: ") + std::strerror(errno));
    channel->memory_ = static_cast<std::byte *>(mapped);
    channel->wire_ = new (mapped) Wire;
    int life[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, life) != 0)
        return fail(Error::Kind::system, std::string("no socket: ") + std::strerror(errno));
    channel->life_ = Fd(life[0]);
    Fd theirs(life[1]);
    channel->wire_->turn = turn_host;
    if (auto spawned = spawn(*path, window, wire.get(), theirs.get()); !spawned)
        return tl::make_unexpected(spawned.error());
    theirs = Fd();
    Allowance for_start{start_ns, 0, {}};
    if (!channel->wait(for_start)) {
        channel->dead_ = true;
        return fail(Error::Kind::system, "its host, " + *path + ", does not start");
    }
    Wire &ours = channel->wire();
    ours.text[sizeof ours.text - 1] = 0;
    if (ours.result != 0) return fail(Error::Kind::refused, std::string("its host cannot start: ") + ours.text);
    channel->pid_ = ours.pid;
    channel->process_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, ours.pid, 0)));
    return channel;
}

Channel::~Channel() {
    kill();
    if (memory_) ::munmap(memory_, wire_size);
}

void Channel::hand_over(Call call) {
    follow_processor();
    wire_->kind = static_cast<std::uint32_t>(call);
    wire_->turn.store(turn_host, std::memory_order_release);
    ::syscall(SYS_futex, &wire_->turn, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// A wake-up on the same processor is several times cheaper than one of another.
void Channel::follow_processor() {
    int here = ::sched_getcpu();
    if (here < 0 || here == processor_) return;
    processor_ = here;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<unsigned>(here), &set);
    ::sched_setaffinity(pid_, sizeof set, &set);
}

/// Nothing: the host has not said its number, or is gone.
std::optional<std::uint64_t> Channel::processor_ns() const {
    clockid_t clock{};
    timespec time{};
    if (pid_ == 0 || ::clock_getcpuclockid(pid_, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
        return std::nullopt;
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
}

/// Takes off what it has spent since the last look, if that is a while ago. In a while in which it has not run it
/// sleeps or waits for a processor. How long ktrace itself has waited for one is not known: it has slept for no longer
/// than one wait takes.
void Channel::spend(Allowance &allowance, bool is_its_turn) {
    const std::uint64_t now = monotonic_ns();
    if (allowance.looked_ns == 0) allowance.looked_ns = now;
    const std::uint64_t passed = now - allowance.looked_ns;
    if (passed < look_at_life_ns) return;
    const auto ran = processor_ns();
    std::uint64_t spent = 0;
    if (!ran)
        spent = passed;
    else if (allowance.ran_ns)
        spent = *ran - *allowance.ran_ns;
    if (ran && spent == 0 && is_its_turn && !os::is_runnable(Tid{pid_})) spent = look_at_life_ns;
    allowance.left_ns -= std::min(allowance.left_ns, spent);
    allowance.looked_ns = now;
    allowance.ran_ns = ran;
}

bool Channel::wait(Allowance &allowance) {
    spend(allowance, false);
    while (wire_->turn.load(std::memory_order_acquire) != turn_ktrace) {
        timespec slice{0, static_cast<long>(look_at_life_ns)};
        if (::syscall(SYS_futex, &wire_->turn, FUTEX_WAIT, turn_host, &slice, nullptr, 0) == 0) continue;
        if (wire_->turn.load(std::memory_order_acquire) == turn_ktrace) break;
        if (dead()) return false;
        spend(allowance, true);
        if (allowance.left_ns == 0) return false;
    }
    return true;
}

void Channel::tell_late() { send_signal(process_.get(), SIGALRM); }

bool Channel::dead() {
    if (dead_) return true;
    pollfd poll{life_.get(), POLLIN, 0};
    dead_ = ::poll(&poll, 1, 0) > 0 && (poll.revents & (POLLHUP | POLLERR)) != 0;
    return dead_;
}

void Channel::kill() {
    if (process_) send_signal(process_.get(), SIGKILL);
    life_ = Fd();
    process_ = Fd();
    dead_ = true;
}

} // namespace ktrace::plugin
