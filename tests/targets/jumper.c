/*
 * jumper: threads that call functions of all shapes at their entries, check each result, and know how often each of
 * them was called.
 *
 * usage: jumper THREADS [tick] [leap]
 *
 * tick: SIGALRM every millisecond, in one thread or another; its handler calls `counted`. leap: the handler leaves by
 * siglongjmp. Then only functions are called whose first instruction counts the call: that one is executed or not.
 *
 * Prints "ready PID" and obeys lines on standard input:
 *
 *     work N       each thread does N rounds: the line of counts, see below
 *     begin        the threads work without pause: "running"
 *     check N      when each of them has gone on by N rounds: "right M", all rounds so far
 *     back N M     the main thread calls goes_back M times, and each comes back into its first bytes N times: the line
 *                  of counts
 *     end          they end: the line of counts
 *     churn N      N more threads, at most four at once, do some rounds each: "churned N"
 *     fork         a child that waits: "child PID"
 *     release N    that child does N rounds and ends: "left STATUS"
 *     vfork N      a child by vfork becomes another jumper that does N rounds: "left STATUS"
 *     exec         becomes another jumper that knows its counts: "ready PID"
 *
 * The line of counts is "did" and for each function: its name, how often it was called so far in this process, and how
 * often in its children. A wrong result is printed and ends the process with status 3. At the end of its input it
 * leaves with status 0.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Each takes the place of its count, n, 1, and the place of far_count. Those called counted add to the count by their
 * first instruction.
 */
#define FUNCTION(name, code)                                                                                           \
    __asm__(".text\n.balign 16\n.globl " name "\n.type " name ", @function\n" name ": " code "; ret\n.size " name      \
            ", . - " name)
#if defined(__x86_64__)

FUNCTION("lea_ret", "lea (%rsi,%rsi,2), %rax");
FUNCTION("pushes", "push %rbp; push %rbx; push %r12; mov %rsi, %rbx; mov $2, %ebp; mov $5, %r12d; imul %rbp, %rbx; lea "
                   "(%rbx,%r12), %rax; pop %r12; pop %rbx; pop %rbp");
FUNCTION("loads", "mov seven(%rip), %rax; imul %rsi, %rax");
FUNCTION("called", "mov %rsi, %rax; shl $2, %rax");
FUNCTION("calls_last", "sub $8, %rsp; call called; add $8, %rsp; inc %rax");
FUNCTION("goes_on", "lea (%rsi,%rsi,4), %rsi; jmp called");
FUNCTION(
    "recurses",
    "test %rsi, %rsi; jle 1f; push %rsi; dec %rsi; call recurses; pop %rsi; add %rsi, %rax; ret; 1: xor %eax, %eax");
FUNCTION("loops", "dec %rsi; jns loops; mov %rsi, %rax");
FUNCTION("loop_inside", "xor %eax, %eax; 1: add %rsi, %rax; dec %rsi; jns 1b");
FUNCTION("goes_back", "mov %rsi, %rax; 1: dec %rsi; jns 1b");
FUNCTION("flags", "cmp $5, %rsi; setl %al; movzbl %al, %eax");
FUNCTION("red_zone", "mov %rsi, -8(%rsp); mov -8(%rsp), %rax");
FUNCTION("counted", "incq (%rdi); lea 9(%rsi), %rax");
FUNCTION(
    "counted_pushes",
    "incq (%rdi); push %rbx; push %rbp; mov %rsi, %rbx; mov %rsi, %rbp; lea 1(%rbx,%rbp), %rax; pop %rbp; pop %rbx");
FUNCTION("counted_locked", "lock incq (%rdi); mov %rsi, %rax");
FUNCTION("counted_far", "lock incq far_count(%rip); lea 2(%rsi), %rax");

#elif defined(__aarch64__)

__asm__(".arch_extension lse");
FUNCTION("lea_ret", "add x0, x1, x1, lsl #1");
FUNCTION("pushes",
         "stp x29, x30, [sp, #-32]!; stp x19, x20, [sp, #16]; mov x19, x1; mov x20, #2; mul x19, x19, x20; add "
         "x0, x19, #5; ldp x19, x20, [sp, #16]; ldp x29, x30, [sp], #32");
FUNCTION("loads", "adrp x2, seven; ldr x2, [x2, #:lo12:seven]; mul x0, x1, x2");
FUNCTION("called", "mov x0, x1; lsl x0, x0, #2");
FUNCTION("calls_last", "str x30, [sp, #-16]!; bl called; ldr x30, [sp], #16; add x0, x0, #1");
FUNCTION("goes_on", "add x1, x1, x1, lsl #2; b called");
FUNCTION("recurses",
         "cmp x1, #0; b.le 1f; stp x1, x30, [sp, #-16]!; sub x1, x1, #1; bl recurses; ldp x1, x30, [sp], #16; "
         "add x0, x0, x1; ret; 1: mov x0, #0");
FUNCTION("loops", "subs x1, x1, #1; b.pl loops; mov x0, x1");
FUNCTION("loop_inside", "mov x0, #0; 1: add x0, x0, x1; subs x1, x1, #1; b.pl 1b");
FUNCTION("goes_back", "mov x0, x1; 1: subs x1, x1, #1; b.pl 1b");
FUNCTION("flags", "cmp x1, #5; cset x0, lt");
FUNCTION("red_zone", "str x1, [sp, #-16]!; ldr x0, [sp], #16");
FUNCTION("counted", "stadd x2, [x0]; add x0, x1, #9");
FUNCTION("counted_pushes",
         "stadd x2, [x0]; stp x19, x20, [sp, #-16]!; mov x19, x1; mov x20, x1; add x0, x19, x20; add x0, "
         "x0, #1; ldp x19, x20, [sp], #16");
FUNCTION("counted_locked", "ldaddal x2, x3, [x0]; mov x0, x1");
FUNCTION("counted_far", "stadd x2, [x3]; add x0, x1, #2");

#endif

long seven = 7;
long far_count; /* of counted_far, since it was taken last */

#define DECLARE(name) long name(long *count, long n, long one, long *far);
/* clang-format off */
#define EACH(F) \
    F(lea_ret) F(pushes) F(loads) F(called) F(calls_last) F(goes_on) F(recurses) F(loops) F(loop_inside) \
    F(goes_back) F(flags) F(red_zone) F(counted) F(counted_pushes) F(counted_locked) F(counted_far)
/* clang-format on */
EACH(DECLARE)
#define NUMBER(name) in_##name,
enum { EACH(NUMBER) functions };
#define NAME(name) #name,
static const char *const names[] = {EACH(NAME)};

enum { most_threads = 64, at_once = 4, first_churned = 1 + most_threads, slots = first_churned + at_once };
struct counts {
    long own[slots][functions]; /* a slot is one thread's at a time; the first one is the main thread's */
    long children[functions];   /* one child at a time */
};

static struct counts *counts; /* in a file that lives on over exec */
static long threads, until;
static int ticking, leaping, through;
static long rounds_done[slots];
static _Thread_local long *mine;
static _Thread_local sigjmp_buf out;
static _Thread_local volatile int may_leap;

static void expect(int function, long n, long got, long right) {
    if (got == right) return;
    printf("wrong %s(%ld) = %ld\n", names[function], n, got);
    fflush(stdout);
    _exit(3);
}

static void call(int function, long (*called_function)(long *, long, long, long *), long n, long right) {
    expect(function, n, called_function(&mine[function], n, 1, &far_count), right);
}

static void call_counted(long n) {
    call(in_counted, counted, n, n + 9);
    call(in_counted_pushes, counted_pushes, n, 2 * n + 1);
    call(in_counted_locked, counted_locked, n, n);
    call(in_counted_far, counted_far, n, n + 2);
}

static void call_others(long n) {
    long small = n & 7;

    call(in_lea_ret, lea_ret, n, 3 * n);
    call(in_pushes, pushes, n, 2 * n + 5);
    call(in_loads, loads, n, 7 * n);
    call(in_called, called, n, 4 * n);
    call(in_calls_last, calls_last, n, 4 * n + 1);
    call(in_goes_on, goes_on, n, 20 * n);
    call(in_recurses, recurses, small, small * (small + 1) / 2);
    call(in_loops, loops, small, -1);
    call(in_flags, flags, n, n < 5);
    call(in_red_zone, red_zone, n, n);
    mine[in_lea_ret]++;
    mine[in_pushes]++;
    mine[in_loads]++;
    mine[in_called] += 3;
    mine[in_calls_last]++;
    mine[in_goes_on]++;
    mine[in_recurses] += small + 1;
    mine[in_loops] += small + 1;
    mine[in_flags]++;
    mine[in_red_zone]++;
    if (n % 64 != 0) return;
    call(in_loop_inside, loop_inside, 3, 6);
    mine[in_loop_inside]++;
}

static void do_rounds(long slot, volatile long rounds) {
    volatile long n = 0;

    mine = counts->own[slot];
    if (leaping) sigsetjmp(out, 1);
    while (rounds < 0 ? !__atomic_load_n(&through, __ATOMIC_ACQUIRE) : n < rounds) {
        n++;
        __atomic_add_fetch(&rounds_done[slot], 1, __ATOMIC_RELEASE);
        may_leap = leaping;
        call_counted(n);
        may_leap = 0;
        if (!leaping) call_others(n);
    }
}

static void tick(int sig) {
    (void)sig;
    call(in_counted, counted, 1, 10);
    if (!may_leap) return;
    may_leap = 0;
    siglongjmp(out, 1);
}

static void block_ticks(int how) {
    sigset_t ticks;

    sigemptyset(&ticks);
    sigaddset(&ticks, SIGALRM);
    pthread_sigmask(how, &ticks, NULL);
}

static void start_ticks(void) {
    struct sigaction action = {.sa_handler = tick, .sa_flags = SA_RESTART};
    struct itimerval each = {{0, 1000}, {0, 1000}};

    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &each, NULL);
}

static void *work(void *slot) {
    mine = counts->own[(long)slot];
    block_ticks(SIG_UNBLOCK);
    do_rounds((long)slot, until);
    block_ticks(SIG_BLOCK);
    return NULL;
}

static void *work_a_little(void *slot) {
    do_rounds((long)slot, 20);
    return NULL;
}

static pthread_t ids[slots];

static void start(long rounds) {
    until = rounds;
    through = 0;
    for (long i = 1; i <= threads; i++)
        if (pthread_create(&ids[i], NULL, work, (void *)i)) exit(4);
}

static void join(void) {
    for (long i = 1; i <= threads; i++) pthread_join(ids[i], NULL);
}

static void check(long more) {
    long before[slots], sum = 0;

    for (long i = 1; i <= threads; i++) before[i] = __atomic_load_n(&rounds_done[i], __ATOMIC_ACQUIRE);
    for (long i = 1; i <= threads; i++) {
        while (__atomic_load_n(&rounds_done[i], __ATOMIC_ACQUIRE) < before[i] + more) sched_yield();
        sum += __atomic_load_n(&rounds_done[i], __ATOMIC_ACQUIRE);
    }
    printf("right %ld\n", sum);
}

static void churn(long wanted) {
    for (long made = 0; made < wanted; made += at_once) {
        for (long i = first_churned; i < slots; i++)
            if (pthread_create(&ids[i], NULL, work_a_little, (void *)i)) exit(4);
        for (long i = first_churned; i < slots; i++) pthread_join(ids[i], NULL);
    }
    printf("churned %ld\n", wanted);
}

/* No thread calls counted_far meanwhile. */
static void take_far_count(void) {
    counts->own[0][in_counted_far] += far_count;
    far_count = 0;
}

static void print_counts(void) {
    take_far_count();
    printf("did");
    for (int f = 0; f < functions; f++) {
        long own = 0;

        for (int slot = 0; slot < slots; slot++) own += counts->own[slot][f];
        printf(" %s %ld %ld", names[f], own, counts->children[f]);
    }
    printf("\n");
}

/* In a child: its counts go where those of children are. */
static void work_as_child(long rounds) {
    struct counts *all = counts, *alone = calloc(1, sizeof *alone);

    far_count = 0;
    counts = alone;
    do_rounds(0, rounds);
    take_far_count();
    for (int f = 0; f < functions; f++) all->children[f] += alone->own[0][f];
}

static pid_t child;
static int to_child[2];

static void make_child(void) {
    long rounds = 0;

    if (pipe(to_child)) exit(5);
    child = fork();
    if (child == 0) {
        if (read(to_child[0], &rounds, sizeof rounds) != sizeof rounds) _exit(6);
        work_as_child(rounds);
        _exit(0);
    }
    printf("child %d\n", child);
}

static void reap(void) {
    int status = -1;

    while (waitpid(child, &status, 0) < 0) continue;
    printf("left %d\n", status);
}

static void release(long rounds) {
    if (write(to_child[1], &rounds, sizeof rounds) != sizeof rounds) exit(5);
    close(to_child[0]);
    close(to_child[1]);
    reap();
}

static void become(const char *how, int file, long rounds) {
    char self[4096], words[4][32];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

    if (length < 0) _exit(7);
    self[length] = 0;
    snprintf(words[0], sizeof words[0], "%ld", threads);
    snprintf(words[1], sizeof words[1], "%s", how);
    snprintf(words[2], sizeof words[2], "%d", file);
    snprintf(words[3], sizeof words[3], "%ld", rounds);
    execl(self, self, words[0], words[1], words[2], words[3], (char *)NULL);
    _exit(8);
}

static void make_child_by_vfork(int file, long rounds) {
    child = vfork();
    if (child == 0) become("child", file, rounds);
    reap();
}

static void go_back(long times, long calls) {
    mine = counts->own[0];
    for (long i = 0; i < calls; i++) {
        call(in_goes_back, goes_back, times, times);
        mine[in_goes_back]++;
    }
    print_counts();
}

static void serve(const char *order, long number, long calls, int file) {
    if (strcmp(order, "work") == 0) {
        start(number);
        join();
        print_counts();
    }
    if (strcmp(order, "begin") == 0) {
        start(-1);
        printf("running\n");
    }
    if (strcmp(order, "end") == 0) {
        __atomic_store_n(&through, 1, __ATOMIC_RELEASE);
        join();
        print_counts();
    }
    if (strcmp(order, "back") == 0) go_back(number, calls);
    if (strcmp(order, "check") == 0) check(number);
    if (strcmp(order, "churn") == 0) churn(number);
    if (strcmp(order, "fork") == 0) make_child();
    if (strcmp(order, "release") == 0) release(number);
    if (strcmp(order, "vfork") == 0) make_child_by_vfork(file, number);
    if (strcmp(order, "exec") == 0) {
        take_far_count();
        become("again", file, 0);
    }
}

int main(int argc, char **argv) {
    char line[64], order[32];
    long number, calls, rounds = 0;
    int file = -1, is_child = 0;

    threads = argc > 1 ? atol(argv[1]) : 1;
    if (threads < 1 || threads > most_threads) return 2;
    for (int i = 2; i < argc; i++) {
        ticking |= strcmp(argv[i], "tick") == 0;
        leaping |= strcmp(argv[i], "leap") == 0;
        is_child |= strcmp(argv[i], "child") == 0;
        if (is_child || strcmp(argv[i], "again") == 0) {
            file = atoi(argv[++i]);
            rounds = atol(argv[++i]);
        }
    }
    if (file < 0) {
        file = memfd_create("counts", 0);
        if (ftruncate(file, sizeof *counts)) return 5;
    }
    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (counts == MAP_FAILED) return 5;
    if (is_child) {
        work_as_child(rounds);
        return 0;
    }
    block_ticks(SIG_BLOCK);
    if (ticking || leaping) start_ticks();
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("ready %d\n", getpid());
    while (fgets(line, sizeof line, stdin)) {
        number = calls = 0;
        sscanf(line, "%31s %ld %ld", order, &number, &calls);
        serve(order, number, calls, file);
    }
    return 0;
}
