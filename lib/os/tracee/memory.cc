#include "os/tracee/memory.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/ptrace.h>
#include <unistd.h>

#include "os/proc/procfs.h"

namespace ktrace::os {

Result<ProcessMemory> ProcessMemory::open(Pid pid) {
    std::string path = process_folder(pid) + "/mem";
    Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd) {
        auto kind = errno == ENOENT || errno == ESRCH ? Error::Kind::gone : Error::Kind::denied;
        return fail(kind, path + " cannot be opened: " + std::strerror(errno));
    }
    return ProcessMemory(std::move(fd), pid);
}

std::size_t ProcessMemory::read(VirtAddr at, std::span<std::byte> into) const {
    std::size_t done = 0;
    while (done < into.size()) {
        ssize_t got = ::pread(fd_.get(), into.data() + done, into.size() - done, static_cast<off_t>(at.value + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += static_cast<std::size_t>(got);
    }
    return done;
}

bool ProcessMemory::write(VirtAddr at, std::span<const std::byte> bytes) const {
    std::size_t done = 0;
    while (done < bytes.size()) {
        ssize_t put =
            ::pwrite(fd_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(at.value + done));
        if (put < 0 && errno == EINTR) continue;
        // proc_mem.force_override= may forbid writing read-only text here; ptrace's own requests are then still
        // allowed.
        if (put <= 0) return poke(at + static_cast<std::int64_t>(done), bytes.subspan(done));
        done += static_cast<std::size_t>(put);
    }
    return true;
}

/// POKETEXT needs a stopped task, and any will do that has the process's id: the leader's, where it is stopped.
bool ProcessMemory::poke(VirtAddr at, std::span<const std::byte> bytes) const {
    for (std::size_t done = 0; done < bytes.size();) {
        std::uint64_t word_at = (at.value + done) & ~std::uint64_t{7};
        errno = 0;
        long word = ::ptrace(PTRACE_PEEKTEXT, pid_.value, word_at, nullptr);
        if (word == -1 && errno != 0) return false;
        std::size_t from = at.value + done - word_at;
        std::size_t count = std::min<std::size_t>(8 - from, bytes.size() - done);
        std::memcpy(reinterpret_cast<char *>(&word) + from, bytes.data() + done, count);
        if (::ptrace(PTRACE_POKETEXT, pid_.value, word_at, word) != 0) return false;
        done += count;
    }
    return true;
}

} // namespace ktrace::os
