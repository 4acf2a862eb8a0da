// ctl: hands an order to the ktrace that traces a process, and shows its answer. It waits for as long as the tracing
// thread works: a large order takes its time. A tracer that does nothing for a while is reported as not answering.
#include <cerrno>
#include <string>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "commands.h"
#include "complain.h"
#include "ctl/wire.h"
#include "os/proc/procfs.h"
#include "os/self/local_socket.h"
#include "recovery/guardian.h"

namespace ktrace::cli {

namespace {

struct Tracer {
    Pid pid;
    Tid thread; // the one that traces
    Fd fd;      // the connection to it
};

/// Connects to what traces `pid`. Errors: not_found, denied.
Result<Tracer> connect_to_tracer(pid_t pid) {
    std::string id = std::to_string(pid);
    auto status = os::read_status(pid);
    if (!status) return fail(Error::Kind::not_found, "there is no process " + id, "pidof NAME prints the number");
    std::string process = "process " + id + " (" + status->name + ")";
    for (Tid tid : os::read_tasks(Pid{status->tgid})) { // a leader may have ended before its threads
        auto task = os::read_status(tid.value);
        auto tracer = task && task->tracer != 0 ? os::read_status(task->tracer) : std::nullopt;
        if (!tracer) continue;
        auto fd = os::connect_local("ktrace", Pid{tracer->tgid});
        if (fd) return Tracer{Pid{tracer->tgid}, Tid{task->tracer}, std::move(*fd)};
        auto leader = os::read_status(tracer->tgid);
        if (!leader || leader->name == recovery::tracing_process_name) return fail(fd.error());
        return fail(Error::Kind::not_found, process + " is not traced by ktrace, but by " + leader->name +
                                                " (process " + std::to_string(tracer->tgid) + ")");
    }
    return fail(Error::Kind::not_found, "no ktrace traces " + process, "ktrace attach -p " + id + " starts one");
}

/// Whether the tracing thread does something, by looks at it a while apart. One that waits is woken for an order again
/// and again, which is not much work.
class Liveliness {
  public:
    explicit Liveliness(const Tracer &tracer) : tracer_(tracer), worked_ms_(worked_ms()) {}
    bool is_there_still() {
        auto status = os::read_status(tracer_.thread.value);
        state_ = status ? status->state : 'X';
        const std::uint64_t before = worked_ms_;
        worked_ms_ = worked_ms();
        return state_ == 'R' || worked_ms_ >= before + least_work_ms;
    }
    bool is_stopped() const { return state_ == 'T' || state_ == 't'; }
    static constexpr int between_looks_ms = 1000;

  private:
    static constexpr std::uint64_t least_work_ms = between_looks_ms / 20;
    std::uint64_t worked_ms() const { return os::processor_time_ms(tracer_.pid, tracer_.thread); }

    const Tracer &tracer_;
    char state_ = '?';
    std::uint64_t worked_ms_;
};

tl::unexpected<Error> does_not_answer(const Tracer &tracer, bool is_stopped) {
    std::string id = std::to_string(tracer.pid.value);
    std::string message = "ktrace (process " + id + ") does not answer";
    if (is_stopped)
        return fail(Error::Kind::refused, message + ": it is stopped",
                    "kill -CONT " + id + " lets it go on, and it carries the order out then");
    return fail(Error::Kind::refused, message + ": it does nothing", "kill " + id + " ends it, or kill -9 " + id);
}

/// Waits until the connection is ready for `events`. Errors: refused: the tracer does nothing that it would be ready
/// by.
Status await(const Tracer &tracer, short events) {
    constexpr std::uint64_t patience_ns = 10'000'000'000;
    Liveliness liveliness(tracer);
    std::uint64_t last_seen_ns = monotonic_ns();
    while (true) {
        pollfd wait{tracer.fd.get(), events, 0};
        if (::poll(&wait, 1, Liveliness::between_looks_ms) > 0) return {};
        std::uint64_t now = monotonic_ns();
        if (liveliness.is_there_still())
            last_seen_ns = now;
        else if (now - last_seen_ns > patience_ns)
            return does_not_answer(tracer, liveliness.is_stopped());
    }
}

Status send_all(const Tracer &tracer, std::string_view bytes) {
    while (!bytes.empty()) {
        if (auto ready = await(tracer, POLLOUT); !ready) return ready;
        ssize_t sent = ::send(tracer.fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (sent < 0) return fail(Error::Kind::gone, "the trace has ended before it took the order");
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return {};
}

Result<ctl::Answer> receive(const Tracer &tracer) {
    std::string bytes;
    while (true) {
        if (auto ready = await(tracer, POLLIN); !ready) return tl::make_unexpected(ready.error());
        char some[65536];
        ssize_t got = ::recv(tracer.fd.get(), some, sizeof some, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return fail(Error::Kind::gone, "the trace has ended before it answered");
        bytes.append(some, static_cast<std::size_t>(got));
        auto answer = ctl::read_answer(bytes);
        if (!answer) return fail(answer.error());
        if (*answer) return std::move(**answer);
    }
}

Result<ctl::Answer> ask(pid_t pid, const std::vector<std::string> &arguments) {
    auto tracer = connect_to_tracer(pid);
    if (!tracer) return fail(tracer.error());
    std::string order = ctl::write_order(arguments);
    if (order.size() > ctl::most_order_bytes)
        return fail(Error::Kind::refused, "this order is too long", "add the probes in several orders");
    if (auto sent = send_all(*tracer, order); !sent) return fail(sent.error());
    return receive(*tracer);
}

} // namespace

int ctl(const Invocation &invocation, const std::vector<std::string> &arguments) {
    auto answer = ask(invocation.config.pids[0], arguments);
    if (!answer) {
        complain(answer.error());
        return failed;
    }
    // The tracer of another user's process need not be ktrace, nor mean well.
    relay(answer->err);
    return print(printable_lines(answer->out)) ? answer->status : failed;
}

} // namespace ktrace::cli
