// Identities that must not be mixed up: a process, a task (thread) of it.
#pragma once

#include <compare>
#include <functional>
#include <sys/types.h>

namespace ktrace {

/// A process (a thread group), as ktrace's own pid namespace names it.
struct Pid {
    pid_t value = 0;
    constexpr auto operator<=>(const Pid &) const = default;
};

/// A task (one thread), as ktrace's own pid namespace names it.
struct Tid {
    pid_t value = 0;
    constexpr auto operator<=>(const Tid &) const = default;
};

} // namespace ktrace

template <> struct std::hash<ktrace::Pid> {
    std::size_t operator()(ktrace::Pid p) const noexcept { return std::hash<pid_t>{}(p.value); }
};
template <> struct std::hash<ktrace::Tid> {
    std::size_t operator()(ktrace::Tid t) const noexcept { return std::hash<pid_t>{}(t.value); }
};
