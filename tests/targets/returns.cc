// returns CASE: calls in every way that a return probe has to understand. Prints "ready PID", waits for a line, does
// the case, prints "NAME entered N returned M" for every function, and waits for the end of its input.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <csignal>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define PROBED extern "C" __attribute__((noinline, noclone))
#define KEEP __asm__ volatile("" ::: "memory")

namespace {
struct Count {
    long entered = 0, returned = 0;
};
std::map<std::string, Count> truth;
jmp_buf jump;
} // namespace

PROBED long factorial(long n) {
    truth["factorial"].entered++;
    long result = n <= 1 ? 1 : n * factorial(n - 1);
    KEEP;
    truth["factorial"].returned++;
    return result;
}

PROBED long is_even(long n);
PROBED long is_odd(long n) {
    truth["is_odd"].entered++;
    long result = n == 0 ? 0 : is_even(n - 1);
    KEEP;
    truth["is_odd"].returned++;
    return result;
}
PROBED long is_even(long n) {
    truth["is_even"].entered++;
    long result = n == 0 ? 1 : is_odd(n - 1);
    KEEP;
    truth["is_even"].returned++;
    return result;
}

// Tail calls: last returns for all three.
PROBED long last(long n) {
    KEEP;
    return n + 1;
}
PROBED long middle(long n) {
    KEEP;
    return last(n + 1);
}
PROBED long first(long n) {
    KEEP;
    return middle(n + 1);
}

// Mutual tail calls: ping and pong share one frame.
PROBED long pong(long n);
PROBED long ping(long n) {
    KEEP;
    return n == 0 ? 7 : pong(n - 1);
}
PROBED long pong(long n) {
    KEEP;
    return n == 0 ? 8 : ping(n - 1);
}

PROBED long leaps(long n) {
    truth["leaps"].entered++;
    KEEP;
    if (n % 2) longjmp(jump, 1);
    truth["leaps"].returned++;
    return n;
}

PROBED long throws(long n) {
    truth["throws"].entered++;
    KEEP;
    if (n % 2) throw std::runtime_error("odd");
    truth["throws"].returned++;
    return n;
}

PROBED long passes_through(long n) {
    truth["passes_through"].entered++;
    std::string alive = std::to_string(n);
    long result = throws(n) + static_cast<long>(alive.size());
    truth["passes_through"].returned++;
    return result;
}

// Thrown, caught and thrown on in one function after the other.
PROBED long throws_on(long n) {
    truth["throws_on"].entered++;
    long result = 0;
    try {
        result = passes_through(n);
    } catch (const std::exception &) {
        KEEP;
        if (n % 4 == 1) throw;
        result = throws(n - 1);
    }
    truth["throws_on"].returned++;
    return result;
}

PROBED long catches(long n) {
    truth["catches"].entered++;
    long result = 0;
    try {
        result = throws_on(n);
    } catch (const std::exception &) {
        result = -1;
    }
    KEEP;
    truth["catches"].returned++;
    return result;
}

PROBED void ends_thread(long n) {
    truth["ends_thread"].entered++;
    KEEP;
    if (n) pthread_exit(nullptr);
    truth["ends_thread"].returned++;
}

PROBED long interrupted(long n) {
    truth["interrupted"].entered++;
    raise(SIGUSR1);
    KEEP;
    truth["interrupted"].returned++;
    return n * 2;
}

PROBED long in_handler(long n) {
    truth["in_handler"].entered++;
    KEEP;
    truth["in_handler"].returned++;
    return n + 100;
}

namespace {
ucontext_t main_context, fibers[2], carrier;
long switches;
} // namespace

PROBED long fiber_step(long which, long n) {
    truth["fiber_step"].entered++;
    switches++;
    swapcontext(&fibers[which], which ? &fibers[0] : &fibers[1]);
    truth["fiber_step"].returned++;
    return n + which;
}

PROBED long fiber_hand(long n) {
    swapcontext(&fibers[0], &carrier);
    KEEP;
    return n + 1;
}

PROBED long thrice(long n) {
    KEEP;
    return n * 3;
}

namespace {
long (*volatile also_thrice)(long) = thrice;
} // namespace

// Leaves by a jump, to a place that it names or that it looks up, or returns.
PROBED long leaves(long n) {
    if (n % 4 == 0) return thrice(n);
    if (n % 4 == 2) return also_thrice(n);
    KEEP;
    return n * 2;
}

namespace {

void on_signal(int) { in_handler(1); }

void fiber_body(int which) {
    for (long i = 0; i < 100; i++) fiber_step(which, i);
    setcontext(&main_context);
}

void case_recursion() {
    for (int i = 0; i < 100; i++) {
        if (factorial(10) != 3628800) std::exit(3);
        if (is_even(9) != 0 || is_odd(9) != 1) std::exit(3);
    }
}

void case_tail() {
    for (long i = 0; i < 100; i++) {
        if (first(i) != i + 3) std::exit(3);
        if (ping(6) != 7 || ping(7) != 8) std::exit(3);
    }
    for (const char *name : {"first", "middle", "last"}) truth[name] = {100, 100};
    truth["ping"] = {100 * (4 + 4), 100 * (4 + 4)};
    truth["pong"] = {100 * (3 + 4), 100 * (3 + 4)};
}

void case_longjmp() {
    for (volatile long i = 0; i < 200; i = i + 1)
        if (setjmp(jump) == 0 && leaps(i) != i) std::exit(3);
}

void case_exception() {
    long caught = 0;
    for (long i = 0; i < 200; i++) {
        try {
            passes_through(i);
        } catch (const std::exception &) {
            caught++;
        }
    }
    if (caught != 100) std::exit(3);
    // Throws, is caught in the caller, and is called again from the same place: its return address is where the
    // handler's code goes on, too.
    for (long i = 0; i < 200; i++) {
        try {
            throws(i);
        } catch (const std::exception &) {
            caught++;
        }
        KEEP;
    }
    if (caught != 200) std::exit(3);
}

void case_rethrow() {
    for (long i = 0; i < 200; i++)
        if (catches(i) != (i % 4 == 1 ? -1 : i % 4 == 3 ? i - 1 : i + static_cast<long>(std::to_string(i).size())))
            std::exit(3);
}

void case_thread() {
    for (long i = 0; i < 50; i++) std::thread([i] { ends_thread(i % 2); }).join();
}

void case_signal() {
    struct sigaction action {};
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, nullptr);
    for (long i = 0; i < 100; i++)
        if (interrupted(i) != i * 2) std::exit(3);
    std::vector<char> stack(65536);
    stack_t alternate{};
    alternate.ss_sp = stack.data();
    alternate.ss_size = stack.size();
    sigaltstack(&alternate, nullptr);
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    for (long i = 0; i < 100; i++)
        if (interrupted(i) != i * 2) std::exit(3);
    alternate.ss_flags = SS_DISABLE;
    sigaltstack(&alternate, nullptr);
}

void case_fiber() {
    std::vector<char> stacks[2] = {std::vector<char>(65536), std::vector<char>(65536)};
    for (int i = 0; i < 2; i++) {
        getcontext(&fibers[i]);
        fibers[i].uc_stack.ss_sp = stacks[i].data();
        fibers[i].uc_stack.ss_size = stacks[i].size();
        fibers[i].uc_link = &main_context;
        makecontext(&fibers[i], reinterpret_cast<void (*)()>(fiber_body), 1, i);
    }
    volatile bool back = false;
    getcontext(&main_context);
    if (!back) {
        back = true;
        setcontext(&fibers[0]);
    }
}

// Each call is begun by one thread and ended by another, which then ends itself.
void handed_over() {
    for (long i = 0; i < 100; i++) {
        truth["fiber_hand"].entered++;
        fiber_hand(i);
        truth["fiber_hand"].returned++;
        swapcontext(&fibers[0], &carrier);
    }
    setcontext(&carrier);
}

void case_hand() {
    std::vector<char> stack(65536);
    getcontext(&fibers[0]);
    fibers[0].uc_stack.ss_sp = stack.data();
    fibers[0].uc_stack.ss_size = stack.size();
    makecontext(&fibers[0], handed_over, 0);
    for (int i = 0; i < 100; i++) {
        swapcontext(&carrier, &fibers[0]);
        std::thread([] { swapcontext(&carrier, &fibers[0]); }).join();
    }
}

// Its callers are made at run time, where no return address may be trapped; each call comes from the same place.
void case_generated() {
#if defined(__x86_64__)
    // push %rax; call *%rsi; pop %rdx; ret
    const unsigned char code[] = {0x50, 0xff, 0xd6, 0x5a, 0xc3};
#else
    // stp x29, x30, [sp, #-16]!; blr x1; ldp x29, x30, [sp], #16; ret
    const unsigned char code[] = {0xfd, 0x7b, 0xbf, 0xa9, 0x20, 0x00, 0x3f, 0xd6,
                                  0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
#endif
    void *page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) std::exit(3);
    std::memcpy(page, code, sizeof code);
    if (::mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0) std::exit(3);
    char *begin = static_cast<char *>(page);
    __builtin___clear_cache(begin, begin + sizeof code);
    auto call = reinterpret_cast<long (*)(long, long (*)(long))>(page);
    for (long i = 0; i < 1000; i++) {
        truth["leaves"].entered++;
        truth["leaves"].returned += i % 2;
        if (call(i, leaves) != (i % 2 != 0 ? i * 2 : i * 3)) std::exit(3);
    }
    ::munmap(page, 4096);
}

} // namespace

int main(int argc, char **argv) {
    const std::map<std::string, void (*)()> cases = {
        {"recursion", case_recursion}, {"tail", case_tail},     {"longjmp", case_longjmp},
        {"exception", case_exception}, {"thread", case_thread}, {"signal", case_signal},
        {"fiber", case_fiber},         {"hand", case_hand},     {"rethrow", case_rethrow},
        {"generated", case_generated},
    };
    auto found = cases.find(argc > 1 ? argv[1] : "");
    if (found == cases.end()) return 2;
    std::printf("ready %d\n", static_cast<int>(getpid()));
    std::fflush(stdout);
    char line[64];
    if (!std::fgets(line, sizeof line, stdin)) return 0;
    found->second();
    for (const auto &[name, count] : truth)
        std::printf("%s entered %ld returned %ld\n", name.c_str(), count.entered, count.returned);
    std::printf("done\n");
    std::fflush(stdout);
    while (std::fgets(line, sizeof line, stdin)) {
    }
    return 0;
}
