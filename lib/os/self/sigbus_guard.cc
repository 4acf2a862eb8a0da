#include "os/self/sigbus_guard.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ktrace::os {

namespace {

// All that the handler does is system calls and memory of its own.

constexpr std::size_t longest_line = 4096 + 128; // a path and what stands before it
constexpr std::size_t most_remembered = 8;

/// Of a file that is still to be reported: `taken` by the handler that writes it, or by its reader.
struct Remembered {
    enum class State : int { free, taken, written };
    std::atomic<State> state = State::free;
    std::array<char, longest_line> path{};

    bool change(State from, State to) { return state.compare_exchange_strong(from, to); }
};
std::array<Remembered, most_remembered> remembered;

struct sigaction before;

/// Takes a hexadecimal number and the character behind it from the front of a line.
std::uint64_t take_number(std::string_view &line) {
    std::uint64_t value = 0;
    while (!line.empty()) {
        char c = line.front();
        line.remove_prefix(1);
        if (c >= '0' && c <= '9')
            value = value * 16 + static_cast<std::uint64_t>(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value * 16 + static_cast<std::uint64_t>(c - 'a' + 10);
        else
            break;
    }
    return value;
}

/// A line of /proc/self/maps.
struct Mapped {
    std::uint64_t start = 0, end = 0;
    std::string_view rights, path;
};

Mapped parse(std::string_view line) {
    Mapped mapped;
    mapped.start = take_number(line);
    mapped.end = take_number(line);
    mapped.rights = line.substr(0, 4);
    std::size_t path = line.find('/');
    if (path != std::string_view::npos) mapped.path = line.substr(path);
    return mapped;
}

void remember(std::string_view path) {
    using enum Remembered::State;
    for (Remembered &place : remembered) {
        if (!place.change(free, taken)) continue;
        const std::size_t size = std::min(path.size(), longest_line - 1);
        std::memcpy(place.path.data(), path.data(), size);
        place.path[size] = '\0';
        place.state.store(written);
        return;
    }
}

/// Maps zeros from the page of `at` to the end of its mapping, if that is one to be mended.
bool mend(const Mapped &mapped, std::uint64_t at) {
    if (mapped.path.empty() || mapped.rights.size() != 4 || mapped.rights[1] == 'w' || mapped.rights[3] != 'p')
        return false;
    auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    std::uint64_t from = at & ~(page - 1);
    if (::mmap(reinterpret_cast<void *>(from), mapped.end - from, PROT_READ,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
        return false;
    remember(mapped.path);
    return true;
}

/// Finds the mapping that holds an address, and mends it.
bool mend_at(std::uint64_t at) {
    int maps = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (maps < 0) return false;
    std::array<char, longest_line> text;
    std::size_t held = 0;
    bool mended = false, searching = true;
    while (searching) {
        ssize_t got = ::read(maps, text.data() + held, text.size() - held);
        if (got <= 0) break;
        held += static_cast<std::size_t>(got);
        std::string_view rest(text.data(), held);
        for (std::size_t end = rest.find('\n'); searching && end != std::string_view::npos; end = rest.find('\n')) {
            Mapped mapped = parse(rest.substr(0, end));
            rest.remove_prefix(end + 1);
            if (at < mapped.start || at >= mapped.end) continue;
            mended = mend(mapped, at);
            searching = false;
        }
        std::memmove(text.data(), rest.data(), rest.size());
        held = rest.size();
        if (held == text.size()) break; // no line is that long
    }
    ::close(maps);
    return mended;
}

void on_bus_error(int, siginfo_t *info, void *) {
    int error = errno;
    // A fault that cannot be mended comes again, and ends the process as it would have.
    if (info->si_code != BUS_ADRERR || !mend_at(reinterpret_cast<std::uint64_t>(info->si_addr)))
        ::sigaction(SIGBUS, &before, nullptr);
    errno = error;
}

} // namespace

void survive_cut_files() {
    struct sigaction action = {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(SIGBUS, &action, &before);
}

std::vector<std::string> take_cut_file_notices() {
    using enum Remembered::State;
    std::vector<std::string> notices;
    for (Remembered &place : remembered) {
        if (!place.change(written, taken)) continue;
        notices.push_back(std::string(place.path.data()) +
                          " was cut short while ktrace read it; its names, types and lines are not to be relied on");
        place.state.store(free);
    }
    return notices;
}

} // namespace ktrace::os
