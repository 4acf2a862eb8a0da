// unwound CASE: one call instruction that leads to several functions, as an interpreter's does. `divide` is left by a
// longjmp, an exception or a switch of contexts where it would divide by zero; the next function that is called from
// there, with the same stack pointer, returns to the same place. Prints "ready PID", waits for a line, does the case,
// prints "NAME entered N returned M" for every function, and waits for the end of its input.
#include <atomic>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <csignal>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define PROBED extern "C" __attribute__((noinline, noclone))
#if defined(__clang__)
#define AS_WRITTEN __attribute__((noinline, optnone))
#else
#define AS_WRITTEN __attribute__((noinline, optimize("O0")))
#endif
#define KEEP __asm__ volatile("" ::: "memory")

namespace {

struct Count {
    std::atomic<long> entered{0}, returned{0};
};
Count divisions, nestings;

enum class Way { longjmp, signal, exception, context };
thread_local Way way;
thread_local sigjmp_buf env;
thread_local ucontext_t begin;
thread_local long errors;

void on_signal(int) { siglongjmp(env, 1); }

[[noreturn]] void leave() {
    if (way == Way::exception) throw std::domain_error("division by zero");
    if (way == Way::context) setcontext(&begin);
    if (way == Way::signal) raise(SIGUSR1);
    siglongjmp(env, 1);
}

} // namespace

PROBED long divide(long a, long b) {
    divisions.entered++;
    KEEP;
    if (b == 0) leave();
    divisions.returned++;
    return a / b;
}
PROBED long modulo(long a, long b) {
    KEEP;
    return a % b;
}

namespace {
using Operation = long (*)(long, long);
Operation volatile operations[] = {modulo, divide};
Operation volatile nested_operation;
} // namespace

/// 100 / (i % 2), by one call instruction.
PROBED long evaluate(long i) {
    long value = 0;
    for (volatile int step = 0; step < 2; step = step + 1) {
        Operation next = operations[step];
        value = next(step == 0 ? i : 100, step == 0 ? 2 : value);
        KEEP;
    }
    return value;
}

/// The same with what is thrown caught where the call is made.
PROBED long evaluate_and_catch(long i) {
    long value = 0;
    for (volatile int step = 0; step < 2; step = step + 1) {
        Operation next = operations[step];
        try {
            value = next(step == 0 ? i : 100, step == 0 ? 2 : value);
            KEEP;
        } catch (const std::domain_error &) {
            errors++;
        }
        KEEP;
    }
    return value;
}

/// The call that leads to all: `nested` makes calls from there below a call from there.
PROBED long dispatch(Operation operation, long a, long b) {
    long value = operation(a, b);
    KEEP;
    return value;
}
PROBED long nested(long depth, long n) {
    nestings.entered++;
    long value = 0;
    try {
        if (depth > 0) value = dispatch(nested_operation, depth - 1, n);
        value += dispatch(modulo, n + depth, 3);
        if (dispatch(divide, 100, (n + depth) % 3) == 50 && depth % 2 == 0) throw std::out_of_range("depth");
    } catch (const std::domain_error &) {
        errors++;
        value += dispatch(modulo, n, 2);
    }
    KEEP;
    nestings.returned++;
    return value;
}

namespace {

void evaluate_often(Way by, long times) {
    way = by;
    errors = 0;
    for (volatile long i = 0; i < times; i = i + 1) {
        if (by == Way::exception) {
            try {
                evaluate(i);
            } catch (const std::domain_error &) {
                errors++;
            }
        } else if (sigsetjmp(env, 1) == 0) {
            if (evaluate(i) != 100) std::exit(3);
        } else {
            errors++;
        }
    }
    if (errors != times / 2) std::exit(3);
}

void case_longjmp() { evaluate_often(Way::longjmp, 400); }

/// The code behind the call is behind the jump, too.
AS_WRITTEN void divide_or_not(long n) {
    if (setjmp(env) == 0) divide(100, n % 2);
}

void case_merged() {
    way = Way::longjmp;
    for (volatile long n = 0; n < 400; n = n + 1) divide_or_not(n);
}

void case_signal() {
    struct sigaction action {};
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, nullptr);
    evaluate_often(Way::signal, 400);
    std::vector<char> stack(65536);
    stack_t alternate{};
    alternate.ss_sp = stack.data();
    alternate.ss_size = stack.size();
    sigaltstack(&alternate, nullptr);
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    evaluate_often(Way::signal, 400);
    alternate.ss_flags = SS_DISABLE;
    sigaltstack(&alternate, nullptr);
}

void case_exception() { evaluate_often(Way::exception, 400); }

void case_caught() {
    way = Way::exception;
    for (volatile long i = 0; i < 400; i = i + 1) evaluate_and_catch(i);
    if (errors != 200) std::exit(3);
}

void case_recursion() {
    way = Way::exception;
    nested_operation = nested;
    for (volatile long n = 0; n < 60; n = n + 1) {
        try {
            nested(n % 12, n);
        } catch (const std::out_of_range &) {
        }
        if (dispatch(modulo, n, 7) != n % 7) std::exit(3);
    }
}

void case_threads() {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; t++)
        threads.emplace_back([t] { evaluate_often(t % 2 != 0 ? Way::longjmp : Way::exception, 200); });
    for (std::thread &thread : threads) thread.join();
}

void case_context() {
    way = Way::context;
    static volatile long i;
    i = 0;
    getcontext(&begin);
    if (i == 400) return;
    i = i + 1;
    evaluate(i);
    setcontext(&begin);
}

ucontext_t fiber, carrier;

/// Ends on another thread than it began on, by a throw if n is even.
long divide_elsewhere(long n) {
    long value = 0;
    try {
        value = dispatch(nested_operation, 100, n % 2);
    } catch (const std::domain_error &) {
        errors++;
    }
    value += dispatch(modulo, n, 3);
    return value;
}

void fiber_body() {
    for (long n = 0; n < 100; n++) {
        divide_elsewhere(n);
        swapcontext(&fiber, &carrier);
    }
    setcontext(&carrier);
}

} // namespace

/// Hands its thread's stack over before it divides or throws.
PROBED long handed(long a, long b) {
    nestings.entered++;
    swapcontext(&fiber, &carrier);
    way = Way::exception;
    if (b == 0) leave();
    nestings.returned++;
    return a / b;
}

namespace {

void case_handed() {
    nested_operation = handed;
    std::vector<char> stack(262144);
    getcontext(&fiber);
    fiber.uc_stack.ss_sp = stack.data();
    fiber.uc_stack.ss_size = stack.size();
    makecontext(&fiber, fiber_body, 0);
    for (int i = 0; i < 100; i++) {
        swapcontext(&carrier, &fiber);
        std::thread([] { swapcontext(&carrier, &fiber); }).join();
    }
}

/// Lets a child make calls from where calls are in doubt.
void fork_and_call() {
    const pid_t child = fork();
    if (child == 0) {
        for (long n = 0; n < 10; n++)
            if (dispatch(modulo, n, 3) + dispatch(divide, 100, 1) != n % 3 + 100) _exit(3);
        _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) std::exit(3);
}

/// In doubt, and waits.
long waits(long a, long b) {
    try {
        dispatch(divide, a, 0);
    } catch (const std::domain_error &) {
        errors++;
    }
    dispatch(modulo, a, 2);
    fork_and_call();
    std::printf("held\n");
    std::fflush(stdout);
    char line[64];
    if (!std::fgets(line, sizeof line, stdin)) std::exit(3);
    fork_and_call();
    return dispatch(modulo, a, b);
}

} // namespace

PROBED long held(long a, long b) {
    nestings.entered++;
    long value = waits(a, b);
    nestings.returned++;
    return value;
}

namespace {

void case_held() {
    way = Way::exception;
    nested_operation = held;
    if (dispatch(nested_operation, 100, 7) != 100 % 7 || dispatch(modulo, 5, 3) != 2) std::exit(3);
}

void print(const char *name, const Count &count) {
    std::printf("%s entered %ld returned %ld\n", name, count.entered.load(), count.returned.load());
}

} // namespace

int main(int argc, char **argv) {
    const std::map<std::string, void (*)()> cases = {
        {"held", case_held},           {"longjmp", case_longjmp},     {"merged", case_merged},
        {"signal", case_signal},       {"exception", case_exception}, {"caught", case_caught},
        {"recursion", case_recursion}, {"threads", case_threads},     {"context", case_context},
        {"handed", case_handed},
    };
    auto found = cases.find(argc > 1 ? argv[1] : "");
    if (found == cases.end()) return 2;
    std::printf("ready %d\n", static_cast<int>(getpid()));
    std::fflush(stdout);
    char line[64];
    if (!std::fgets(line, sizeof line, stdin)) return 0;
    found->second();
    print("divide", divisions);
    print("nested", nestings);
    print("handed", nestings);
    print("held", nestings);
    std::printf("done\n");
    std::fflush(stdout);
    while (std::fgets(line, sizeof line, stdin)) {
    }
    return 0;
}
