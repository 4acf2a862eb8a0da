// ways: threads that call functions in all the ways in which a call may begin and end, chosen by a random seed:
// plainly, nested, in recursions, by tail calls, by a pointer that leads to several functions, left by an exception, by
// longjmp, on the stacks of fibers, in handlers of signals.
//
//     ways THREADS [MICROSECONDS]    between two signals; 0: there are none
//
// For each line on standard input, "work SEED ROUNDS", it works in so many threads, and prints "did WRONG", and of each
// function "NAME ENTERED RETURNED", of all so far.
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#define WAY extern "C" __attribute__((noinline, noclone))
#define KEEP __asm__ volatile("" ::: "memory")

namespace {

enum Way { plain, other, outer, recursive, tail, throws, jumps, yields, ticked, ways };
const char *const names[ways] = {"way_plain",  "way_other", "way_outer",  "way_recursive", "way_tail",
                                 "way_throws", "way_jumps", "way_yields", "way_ticked"};
struct Count {
    long entered = 0, returned = 0;
};
thread_local volatile Count counts[ways]; // of a thread, until it ends
std::atomic<long> entered[ways], returned[ways];
std::atomic<long> wrong;

thread_local jmp_buf back;
thread_local ucontext_t main_context, fiber_context;
thread_local char fiber_stack[64 << 10];

} // namespace

WAY long way_plain(long n) {
    counts[plain].entered = counts[plain].entered + 1;
    KEEP;
    counts[plain].returned = counts[plain].returned + 1;
    return n * 2 + 1;
}

WAY long way_other(long n) {
    counts[other].entered = counts[other].entered + 1;
    KEEP;
    counts[other].returned = counts[other].returned + 1;
    return n * 2 + 1;
}

WAY long way_outer(long n) {
    counts[outer].entered = counts[outer].entered + 1;
    long sum = 0;
    for (long i = 0; i < 3; i++) sum += way_plain(n + i);
    counts[outer].returned = counts[outer].returned + 1;
    return sum;
}

WAY long way_recursive(long n) {
    counts[recursive].entered = counts[recursive].entered + 1;
    const long sum = n == 0 ? 0 : way_recursive(n - 1) + 1;
    KEEP;
    counts[recursive].returned = counts[recursive].returned + 1;
    return sum;
}

// Returns when way_plain does.
WAY long way_tail(long n) {
    counts[tail].entered = counts[tail].entered + 1;
    counts[tail].returned = counts[tail].returned + 1;
    return way_plain(n + 1);
}

WAY long way_throws(long n) {
    counts[throws].entered = counts[throws].entered + 1;
    const long got = way_plain(n);
    if (n % 3 == 0) throw std::runtime_error("three");
    counts[throws].returned = counts[throws].returned + 1;
    return got;
}

WAY long way_jumps(long n) {
    counts[jumps].entered = counts[jumps].entered + 1;
    const long got = way_other(n);
    if (n % 4 == 0) std::longjmp(back, 1);
    counts[jumps].returned = counts[jumps].returned + 1;
    return got;
}

WAY long way_yields(long n) {
    counts[yields].entered = counts[yields].entered + 1;
    swapcontext(&fiber_context, &main_context);
    const long got = way_plain(n);
    counts[yields].returned = counts[yields].returned + 1;
    return got;
}

WAY long way_ticked(long n) {
    counts[ticked].entered = counts[ticked].entered + 1;
    KEEP;
    counts[ticked].returned = counts[ticked].returned + 1;
    return n + 1;
}

namespace {

long (*volatile const pointers[])(long) = {way_plain, way_other, way_outer, way_tail};

void expect(long got, long wanted) {
    if (got != wanted) wrong++;
}

__attribute__((noinline)) void by_pointer(long n) {
    const unsigned which = static_cast<unsigned>(n) % 4;
    const long wanted[] = {n * 2 + 1, n * 2 + 1, 3 * (n * 2 + 1) + 6, (n + 1) * 2 + 1};
    expect(pointers[which](n), wanted[which]);
}

__attribute__((noinline)) void throwing(long n) {
    try {
        expect(way_throws(n), n * 2 + 1);
        if (n % 3 == 0) wrong++;
    } catch (const std::runtime_error &) {
        if (n % 3 != 0) wrong++;
    }
}

__attribute__((noinline)) void jumping(long n) {
    if (setjmp(back) == 0) {
        expect(way_jumps(n), n * 2 + 1);
        if (n % 4 == 0) wrong++;
    } else if (n % 4 != 0) {
        wrong++;
    }
}

thread_local long of_fiber;
void fiber() { expect(way_yields(of_fiber), of_fiber * 2 + 1); }

/// The fiber's function is under way while another one is called here.
__attribute__((noinline)) void yielding(long n) {
    of_fiber = n;
    getcontext(&fiber_context);
    fiber_context.uc_stack = {fiber_stack, 0, sizeof fiber_stack};
    fiber_context.uc_link = &main_context;
    makecontext(&fiber_context, fiber, 0);
    swapcontext(&main_context, &fiber_context);
    expect(way_outer(n), 3 * (n * 2 + 1) + 6);
    swapcontext(&main_context, &fiber_context);
}

void add_up() {
    for (int i = 0; i < ways; i++) {
        entered[i] += counts[i].entered;
        returned[i] += counts[i].returned;
        counts[i].entered = counts[i].returned = 0;
    }
}

void go(unsigned long seed, long rounds) {
    for (long i = 0; i < rounds; i++) {
        seed = seed * 6364136223846793005UL + 1442695040888963407UL;
        const unsigned long drawn = seed >> 33;
        const long n = static_cast<long>(drawn >> 8 & 0xff);
        switch (drawn % 16) {
        case 0: throwing(n); break;
        case 1: jumping(n); break;
        case 2: yielding(n); break;
        case 3:
        case 4: expect(way_recursive(n % 40), n % 40); break;
        case 5:
        case 6: expect(way_tail(n), (n + 1) * 2 + 1); break;
        case 7:
        case 8: expect(way_outer(n), 3 * (n * 2 + 1) + 6); break;
        default: by_pointer(n); break;
        }
    }
    sigset_t ticks;
    sigemptyset(&ticks);
    sigaddset(&ticks, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &ticks, nullptr);
    add_up();
}

void on_tick(int) {
    static std::atomic<long> count;
    const long n = count++;
    expect(way_ticked(n), n + 1);
}

} // namespace

int main(int argc, char **argv) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1, every = argc > 2 ? std::atoi(argv[2]) : 0;
    struct sigaction action = {};
    action.sa_handler = on_tick;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    std::printf("ready %d\n", getpid());
    std::fflush(stdout);
    char line[64];
    while (std::fgets(line, sizeof line, stdin)) {
        unsigned long seed = 0;
        long rounds = 0;
        if (std::sscanf(line, "work %lu %ld", &seed, &rounds) != 2) continue;
        const itimerval timer = {{0, every}, {0, every}}, none = {{0, 0}, {0, 0}};
        setitimer(ITIMER_REAL, &timer, nullptr);
        std::vector<std::thread> workers;
        for (int i = 0; i < threads; i++) workers.emplace_back(go, seed + static_cast<unsigned long>(i), rounds);
        for (std::thread &each : workers) each.join();
        setitimer(ITIMER_REAL, &none, nullptr);
        std::printf("did %ld", wrong.load());
        add_up();
        for (int i = 0; i < ways; i++) std::printf(" %s %ld %ld", names[i], entered[i].load(), returned[i].load());
        std::printf("\n");
        std::fflush(stdout);
    }
    return wrong != 0;
}
