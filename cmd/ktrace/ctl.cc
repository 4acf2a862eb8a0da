// ctl: hands an order to the ktrace that traces a process, and shows its answer.
#include <cerrno>
#include <cstdio>
#include <string>

#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "commands.h"
#include "complain.h"
#include "os/local_socket.h"
#include "os/procfs.h"
#include "rescue/guardian.h"
#include "session/control_wire.h"

namespace ktrace::cli {

namespace {

constexpr int failed = 1;

/// Connects to what traces `pid`. Errors: not_found, denied.
Result<Fd> connect_to_tracer(pid_t pid) {
    std::string id = std::to_string(pid);
    auto status = os::read_status(pid);
    if (!status) return fail(Error::Kind::not_found, "there is no process " + id, "pidof NAME tells the number");
    std::string process = "process " + id + " (" + status->name + ")";
    for (Tid tid : os::read_tasks(Pid{status->tgid})) { // a leader may have ended before its threads
        auto task = os::read_status(tid.value);
        auto tracer = task && task->tracer != 0 ? os::read_status(task->tracer) : std::nullopt;
        if (!tracer) continue;
        auto fd = os::connect_local("ktrace", Pid{tracer->tgid});
        auto leader = os::read_status(tracer->tgid);
        if (fd || !leader || leader->name == rescue::tracing_process_name) return fd;
        return fail(Error::Kind::not_found, process + " is not traced by ktrace, but by " + leader->name +
                                                " (process " + std::to_string(tracer->tgid) + ")");
    }
    return fail(Error::Kind::not_found, "no ktrace traces " + process, "ktrace attach -p " + id + " starts one");
}

Status send_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) return fail(Error::Kind::gone, "the trace has ended before it took the order");
        bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return {};
}

Result<session::Answer> receive(int fd) {
    std::string bytes;
    while (true) {
        char some[65536];
        ssize_t got = ::recv(fd, some, sizeof some, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return fail(Error::Kind::gone, "the trace has ended before it answered");
        bytes.append(some, static_cast<std::size_t>(got));
        auto answer = session::read_answer(bytes);
        if (!answer) return fail(answer.error());
        if (*answer) return std::move(**answer);
    }
}

Result<session::Answer> ask(pid_t pid, const std::vector<std::string> &arguments) {
    auto fd = connect_to_tracer(pid);
    if (!fd) return fail(fd.error());
    std::string order = session::write_order(arguments);
    if (order.size() > session::most_order_bytes)
        return fail(Error::Kind::refused, "this order is too long", "add the probes in several orders");
    if (auto sent = send_all(fd->get(), order); !sent) return fail(sent.error());
    return receive(fd->get());
}

} // namespace

int ctl(const Invocation &invocation, const std::vector<std::string> &arguments) {
    auto answer = ask(invocation.config.pids[0], arguments);
    if (!answer) {
        complain(answer.error());
        return failed;
    }
    // Who traces a process of another user's need not be ktrace, nor mean well.
    relay(answer->err);
    std::string out = printable_lines(answer->out);
    bool written = std::fwrite(out.data(), 1, out.size(), stdout) == out.size();
    if (std::fflush(stdout) == 0 && written) return answer->status;
    notify("cannot write to standard output");
    return failed;
}

} // namespace ktrace::cli
