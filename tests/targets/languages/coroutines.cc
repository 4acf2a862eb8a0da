// coroutines: C++20 coroutines that call probed functions, are suspended in the middle of them, and go on in another
// thread. Prints "ready", and for each line what was entered and returned.
#include <coroutine>
#include <cstdio>
#include <stdexcept>
#include <thread>

#define PROBED extern "C" __attribute__((noinline, noclone))
#define KEEP __asm__ volatile("" ::: "memory")

namespace {

long computed_entered, computed_returned, resumed_entered, resumed_returned, caught;

struct Generator {
    struct promise_type {
        long value = 0;
        Generator get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(long v) {
            value = v;
            return {};
        }
        void return_void() {}
        void unhandled_exception() { throw; }
    };
    std::coroutine_handle<promise_type> handle;
};

} // namespace

PROBED long computed(long n) {
    computed_entered++;
    KEEP;
    if (n % 10 == 9) throw std::runtime_error("nine");
    computed_returned++;
    return n * n;
}

namespace {

Generator squares(long count) {
    for (long i = 0; i < count; i++) {
        long value = -1;
        try {
            value = computed(i);
        } catch (const std::exception &) {
            caught++;
        }
        co_yield value;
    }
    computed(9); // leaves the coroutine
}

} // namespace

PROBED bool resumed(Generator *generator) {
    resumed_entered++;
    generator->handle.resume();
    KEEP;
    resumed_returned++;
    return !generator->handle.done();
}

int main() {
    std::puts("ready");
    std::fflush(stdout);
    char line[64];
    while (std::fgets(line, sizeof line, stdin)) {
        for (int round = 0; round < 10; round++) {
            Generator generator = squares(50);
            auto some = [&] {
                for (int i = 0; i < 20; i++) resumed(&generator);
            };
            some();
            std::thread(some).join();
            try {
                while (resumed(&generator)) KEEP;
            } catch (const std::exception &) {
                caught++;
            }
            generator.handle.destroy();
        }
        std::printf("computed entered %ld returned %ld\nresumed entered %ld returned %ld\ncaught %ld\n",
                    computed_entered, computed_returned, resumed_entered, resumed_returned, caught);
        std::fflush(stdout);
    }
    return 0;
}
