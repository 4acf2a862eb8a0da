#include "tracees/access_errors.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <linux/capability.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/facts/freezer.h"
#include "os/proc/procfs.h"
#include "os/proc/yama.h"
#include "recovery/guardian.h"

namespace ktrace::tracees {

namespace {

/// Of another ktrace, the guardian: to end the trace, the user ends that process.
std::string tracer_name(pid_t pid) {
    auto status = os::read_status(pid);
    if (!status) return std::to_string(pid);
    if (status->name == recovery::tracing_process_name && !recovery::is_abandoned(Tid{pid}))
        return "ktrace (" + std::to_string(status->ppid) + ")";
    return status->name + " (" + std::to_string(pid) + ")";
}

} // namespace

Error denied(pid_t pid) {
    Error error{Error::Kind::denied, "process " + std::to_string(pid) + " may not be traced", {}, {}, -1, 1};
    auto status = os::read_status(pid);
    if (status && status->tracer != 0) {
        error.message = "process " + std::to_string(pid) + " is traced already, by " + tracer_name(status->tracer);
        error.hint = "end that tracer first";
        return error;
    }
    if (status && ::geteuid() != 0 && (status->uid != ::getuid() || status->euid != ::getuid())) {
        error.message += ": it belongs to another user (uid " + std::to_string(status->euid) + ")";
        error.hint = "run ktrace as that user or as root";
        return error;
    }
    if (auto refused = os::refusal_by_scope(false)) {
        error.message += ": " + refused->why;
        error.hint = refused->hint;
        return error;
    }
    if (!os::read_auxv(Pid{pid}, 0) && ::geteuid() != 0) {
        error.message += ": it is not dumpable (setuid, or it called prctl(PR_SET_DUMPABLE, 0))";
        error.hint = "run ktrace as root";
        return error;
    }
    if (::geteuid() != 0) {
        error.hint = "run ktrace as root";
    } else if (!os::has_capability(CAP_SYS_PTRACE)) {
        error.message += ": root has no CAP_SYS_PTRACE here";
        error.hint = cap_add;
    } else {
        error.message += ": the kernel forbids it to root, too";
        error.hint = "run ktrace outside of this container, or change the rules of its security module";
    }
    return error;
}

Error unseen(pid_t pid) {
    const int error = errno;
    const std::string id = std::to_string(pid);
    if (::kill(pid, 0) != 0 && errno == ESRCH) return {Error::Kind::not_found, "no process " + id, {}, {}, -1, 1};
    Error unseen{
        Error::Kind::refused, "process " + id + " cannot be looked at: /proc/" + id + "/status: ", {}, {}, -1, 1};
    unseen.message += std::strerror(error);
    if (error == ENOENT) unseen.hint = "mount /proc, or run ktrace as root where it hides processes (hidepid)";
    return unseen;
}

Status refuse_frozen(Pid pid) {
    auto freezer = os::frozen_by(pid);
    if (!freezer) return {};
    return fail(Error::Kind::refused,
                "process " + std::to_string(pid.value) + " is frozen by its control group, and runs nothing",
                "thaw it: " + freezer->thawing());
}

bool is_32_bit(Pid pid) {
    Fd exe(::open((os::process_folder(pid) + "/exe").c_str(), O_RDONLY | O_CLOEXEC));
    std::array<unsigned char, 5> head{};
    return exe && ::read(exe.get(), head.data(), head.size()) == 5 && std::memcmp(head.data(), "\177ELF", 4) == 0 &&
           head[4] == 1;
}

} // namespace ktrace::tracees
