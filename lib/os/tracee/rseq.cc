#include "os/tracee/rseq.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <linux/rseq.h>
#include <sys/ptrace.h>

namespace ktrace::os {

namespace {

/// Reads a structure of a stopped task, word by word. False: it is not there.
template <class T> bool peek(Tid task, std::uint64_t at, T &value) {
    static_assert(sizeof value % sizeof(long) == 0);
    for (std::size_t offset = 0; offset < sizeof value; offset += sizeof(long)) {
        errno = 0;
        const long word = ::ptrace(PTRACE_PEEKDATA, task.value, at + offset, nullptr);
        if (errno != 0) return false;
        std::memcpy(reinterpret_cast<char *>(&value) + offset, &word, sizeof word);
    }
    return true;
}

} // namespace

std::optional<VirtAddr> abort_of_sequence(Tid task, VirtAddr pc) {
    __ptrace_rseq_configuration area{};
    if (::ptrace(PTRACE_GET_RSEQ_CONFIGURATION, task.value, sizeof area, &area) < 0 || area.rseq_abi_pointer == 0)
        return std::nullopt;
    std::uint64_t at = 0;
    rseq_cs sequence{};
    if (!peek(task, area.rseq_abi_pointer + offsetof(rseq, rseq_cs), at) || at == 0) return std::nullopt;
    if (!peek(task, at, sequence) || pc.value - sequence.start_ip >= sequence.post_commit_offset) return std::nullopt;
    return VirtAddr{sequence.abort_ip};
}

} // namespace ktrace::os
