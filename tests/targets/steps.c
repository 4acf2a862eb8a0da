/*
 * steps: a program that steps itself, by the trap flag and a handler for SIGTRAP (x86).
 *
 * It steps through code with an instruction of each kind, from `step_nop` on, first untraced: each trap's place is what
 * has to come again. Prints "ready PID" and, for each line "N", "walked N unlike U first F": how many of N walks had
 * other traps than the first, and where the first of these differs: "NUMBER:OFFSET/OFFSET" (of the trap, and from
 * `step_nop`: what came, what had to come). For "N timer" a timer's signal comes meanwhile, each 100 us after the one
 * before.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

enum { most = 256 };

long step_data;
static char bytes[64];
static volatile long ticks;

struct walk {
    long places[most];
    long count, bad;
};
static struct walk first, now;
static struct walk *walking;

#if defined(__x86_64__)
extern char step_nop[];

static void on_trap(int sig, siginfo_t *info, void *context) {
    unsigned long pc = (unsigned long)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

    (void)sig;
    if (info->si_code != TRAP_TRACE || (unsigned long)info->si_addr != pc) walking->bad++;
    if (walking->count < most) walking->places[walking->count] = (long)(pc - (unsigned long)step_nop);
    walking->count++;
}

/* Answers the trap flag of an image that pushf has made meanwhile, and its own result: 0x100 and 42. */
__attribute__((noinline)) static long walk_once(void) {
    long flags = 0, result = 0;
    void *to = bytes;
    __asm__ volatile(".macro step name:vararg\n.globl step_\\name\n.type step_\\name, @function\nstep_\\name:\n.endm\n"
                     "subq $128, %%rsp\n" /* the red zone */
                     "pushfq\n"
                     "orl $0x100, (%%rsp)\n"
                     "popfq\n"
                     "step nop\n nop\n"
                     "step push\n pushq %%rdi\n"
                     "step pop\n popq %%rdi\n"
                     "step store\n movq %%rdi, step_data(%%rip)\n"
                     "step jump\n jmp 2f\n"
                     "step skipped\n ud2\n"
                     /* reached by a jump only: the byte before is an instruction of its own */
                     "step back\n pushq %%rdi\n"
                     "1: decl %%eax\n jz 3f\n"
                     "step jump_back\n jmp 1b\n"
                     "2: movl $2, %%eax\n"
                     "jmp 1b\n"
                     "3: xorl %%eax, %%eax\n"
                     "step taken\n jz 4f\n"
                     "ud2\n"
                     "4: \n"
                     "step not_taken\n jnz 4b\n"
                     "leaq 5f(%%rip), %%rdx\n"
                     "step jump_register\n jmp *%%rdx\n"
                     "ud2\n"
                     "5: \n"
                     "step call\n call 7f\n"
                     "leaq 7f(%%rip), %%rdx\n"
                     "step call_register\n call *%%rdx\n"
                     "movl $3, %%ecx\n"
                     "6: nop\n"
                     "step loop\n loop 6b\n"
                     "movl $3, %%ecx\n"
                     "step rep\n rep stosb\n"
                     "step pushf\n pushfq\n"
                     "popq %%rdx\n"
                     "step popf_before\n pushfq\n"
                     "step popf\n popfq\n"
                     "movl $39, %%eax\n" /* getpid */
                     "step syscall\n syscall\n"
                     "step behind\n nop\n"
                     "movl $42, %%eax\n"
                     "pushfq\n"
                     "andl $~0x100, (%%rsp)\n"
                     "step off\n popfq\n"
                     "step untold\n nop\n"
                     "addq $128, %%rsp\n"
                     "jmp 8f\n"
                     "step callee\n"
                     "7: nop\n"
                     "step return\n ret\n"
                     "8:\n"
                     : "=a"(result), "=d"(flags), "+D"(to)
                     :
                     : "rcx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
    return (flags & 0x100) + result;
}

static int is_like_first(void) {
    return now.count == first.count && now.bad == 0 && memcmp(now.places, first.places, sizeof(now.places)) == 0;
}
#else
static void on_trap(int sig, siginfo_t *info, void *context) { (void)sig, (void)info, (void)context; }
static long walk_once(void) { return 0x100 + 42; }
static int is_like_first(void) { return 1; }
#endif

static void walk(struct walk *into) {
    memset(into, 0, sizeof(*into));
    walking = into;
    if (walk_once() != 0x100 + 42) into->bad++;
}

static volatile long interval_us;

static void tick(void) {
    struct itimerval timer = {{0, 0}, {0, interval_us}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void tick_every(long us) {
    interval_us = us;
    tick();
}

/* The next comes a while after this one is done: if it were due before, the program would never come to an instruction.
 */
static void on_tick(int sig) {
    ticks += sig == SIGALRM;
    tick();
}

static void tell_difference(void) {
    long i = 0;
    while (i < most - 1 && now.places[i] == first.places[i]) i++;
    printf("%ld:%ld/%ld bad %ld", i, now.places[i], first.places[i], now.bad);
}

int main(void) {
    struct sigaction action;
    char line[64], how[32];
    long times;

    memset(&action, 0, sizeof(action));
    action.sa_sigaction = on_trap;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, NULL);
    signal(SIGALRM, on_tick);
    walk(&first);
    printf("ready %d first %ld bad %ld\n", (int)getpid(), first.count, first.bad);
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        long unlike = 0;
        how[0] = 0;
        if (sscanf(line, "%ld %31s", &times, how) < 1) return 2;
        if (how[0]) tick_every(100);
        printf("walked %ld", times);
        for (long i = 0; i < times; i++) {
            walk(&now);
            if (is_like_first() || unlike++ > 0) continue;
            printf(" first ");
            tell_difference();
        }
        if (how[0]) tick_every(0);
        printf(" unlike %ld\n", unlike);
        fflush(stdout);
    }
    return 0;
}
