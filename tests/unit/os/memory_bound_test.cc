// The memory of this process is bounded, that of programs that it starts is not.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/self/memory_bound.h"

namespace ktrace::test {
namespace {

enum class Got : std::uint8_t { as_it_should = 0, no_bound = 1, more_than_bound = 2, not_unbound = 3 };

bool can_be_had(std::uint64_t size) {
    void *memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    ::munmap(memory, size);
    return true;
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool has_much_already = true;
#elif defined(__has_feature)
constexpr bool has_much_already = __has_feature(address_sanitizer);
#else
constexpr bool has_much_already = false;
#endif

Got bound_and_unbound() {
    os::bound_memory();
    rlimit now{};
    if (::getrlimit(RLIMIT_DATA, &now) != 0 || now.rlim_cur != os::most_memory) return Got::no_bound;
    if (can_be_had(os::most_memory) || !can_be_had(os::most_memory / 2)) return Got::more_than_bound;
    os::unbound_memory();
    return can_be_had(os::most_memory) ? Got::as_it_should : Got::not_unbound;
}

TEST(MemoryBound, HoldsUntilItIsTakenAway) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_DATA, &before), 0);
    if (before.rlim_cur <= os::most_memory) GTEST_SKIP() << "less is allowed here anyway";
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(static_cast<int>(bound_and_unbound()));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    if (has_much_already) GTEST_SKIP() << "AddressSanitizer has more anyway";
    EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(Got::as_it_should));
}

} // namespace
} // namespace ktrace::test
