/*
 * guards: calls and jumps whose memory the program has closed, or that something else fills in. x86-64.
 *
 * Prints "ready" and, for each line "WAY N", "WAY faults F bad B calls C". WAY, N times:
 *
 *     closed     a call and a jump through a table that is PROT_NONE until the handler of SIGSEGV opens it
 *     cut        the same, through a mapping behind its file's end, until the handler of SIGBUS makes the file longer
 *     guard      a recursion that uses the stack by its calls alone ends at a guard page; below that lie bytes that
 *                no thread writes
 *     late       a call whose return address goes to a page of the stack, and one through a table, that another thread
 *                fills in by userfaultfd(2); F: pages filled in, -1: there is no such thing here
 *     watched    a call whose return address goes to `pushed`
 *     steps      a call, a call through a table and a jump through it with the trap flag set; F: steps that were
 *                delivered
 *
 * F is the number of faults, B of those with another code or address than they have, of return addresses that were not
 * there and bytes that were written, C of calls of do_work. Its status is 0 at the end of its input.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { page = 4096, stack_pages = 4, filler = 'f' };

volatile long calls;
static volatile long faults, bad, filled;
static void **table, **file_table;
static char *stack; /* a page that is not written, a guard page, the stack */
static int file, fills_in = -1;
static volatile enum { closed, cut, guard, steps } way;
static sigjmp_buf back;

#if defined(__x86_64__)
/* A stack of one word. */
__asm__(".bss\n"
        ".balign 4096\n"
        "  .zero 4088\n"
        ".type pushed, @object\n"
        ".globl pushed\n"
        "pushed: .zero 8\n"
        ".size pushed, 8\n");

/* Every instruction that uses memory here is one that is probed. */
__asm__(".text\n"
        ".type do_work, @function\n"
        ".globl do_work\n"
        "do_work: incq calls(%rip)\n"
        "  ret\n"
        ".size do_work, . - do_work\n"

        ".type recurse, @function\n"
        "recurse: lea -8(%rsp), %rsp\n"
        "recurse_call: call recurse\n"
        "  ret\n"
        ".size recurse, . - recurse\n"

        /* rdi: a table whose second entry is do_work. */
        ".type call_through, @function\n"
        ".globl call_through\n"
        "call_through: lea -8(%rsp), %rsp\n"
        "table_call: call *8(%rdi)\n"
        "  lea 8(%rsp), %rsp\n"
        "  ret\n"
        ".size call_through, . - call_through\n"

        ".type jump_through, @function\n"
        ".globl jump_through\n"
        "jump_through: jmp *8(%rdi)\n"
        ".size jump_through, . - jump_through\n"

        /* rdi: a stack to go to; al: 1 where the return address was there. */
        ".type on_stack, @function\n"
        ".globl on_stack\n"
        "on_stack: mov %rsp, %rax\n"
        "  mov %rdi, %rsp\n"
        "stack_call: call do_work\n"
        "behind_call: lea behind_call(%rip), %rdx\n"
        "  cmp -8(%rsp), %rdx\n"
        "  mov %rax, %rsp\n"
        "  sete %al\n"
        "  ret\n"
        ".size on_stack, . - on_stack\n"

        /* rdi: the table. Between the two popf, each instruction ends in a trap. */
        ".type stepped, @function\n"
        ".globl stepped\n"
        "stepped: pushf\n"
        "  pushf\n"
        "  orl $0x100, (%rsp)\n"
        "  popf\n"
        "stepped_call: call do_work\n"
        "stepped_table_call: call *8(%rdi)\n"
        "  lea 1f(%rip), %rdx\n"
        "  push %rdx\n"
        "stepped_table_jump: jmp *8(%rdi)\n"
        "1: popf\n"
        "  ret\n"
        ".size stepped, . - stepped\n");

extern long pushed;
long do_work(void);
void recurse(void);
void call_through(void **entries);
void jump_through(void **entries);
int on_stack(void *top);
void stepped(void **entries);

static void on_fault(int sig, siginfo_t *info, void *context) {
    const void *at = way == closed ? &table[1] : &file_table[1];

    (void)context;
    faults++;
    if (way == steps) {
        if (sig != SIGTRAP || info->si_code != TRAP_TRACE) bad++;
        if ((greg_t)info->si_addr != ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP]) bad++;
    } else if (way == guard) {
        const char *where = info->si_addr;
        if (sig != SIGSEGV || info->si_code != SEGV_ACCERR || where != stack + 2 * page - 8) bad++;
        siglongjmp(back, 1);
    } else {
        if (info->si_addr != at) bad++;
        if (way == closed ? info->si_code != SEGV_ACCERR : sig != SIGBUS || info->si_code != BUS_ADRERR) bad++;
        if (way == closed) mprotect(table, page, PROT_READ | PROT_WRITE);
        void *entry = (void *)do_work;
        if (way == cut && pwrite(file, &entry, sizeof entry, sizeof entry) != sizeof entry) abort();
    }
}

static void run_closed(void) {
    way = closed;
    mprotect(table, page, PROT_NONE);
    call_through(table);
    mprotect(table, page, PROT_NONE);
    jump_through(table);
}

static void run_cut(void) {
    way = cut;
    if (ftruncate(file, 0)) abort();
    call_through(file_table);
    if (ftruncate(file, 0)) abort();
    jump_through(file_table);
}

static void run_guard(void) {
    way = guard;
    memset(stack, filler, page);
    if (!sigsetjmp(back, 1)) __asm__ volatile("mov %0, %%rsp\ncall recurse" ::"r"(stack + (2 + stack_pages) * page));
    for (int i = 0; i < page; i++) bad += stack[i] != filler;
}

static void *fill_in(void *unused) {
    static void *source[page / sizeof(void *)];

    (void)unused;
    source[1] = (void *)do_work;
    for (;;) {
        struct uffd_msg message;
        if (read(fills_in, &message, sizeof message) != sizeof message) continue;
        struct uffdio_copy copy = {
            .dst = message.arg.pagefault.address & ~(page - 1UL), .src = (unsigned long)source, .len = page};
        filled++;
        ioctl(fills_in, UFFDIO_COPY, &copy);
    }
    return NULL;
}

static char *late; /* two pages */

static int begin_late(void) {
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.range.len = 2 * page, .mode = UFFDIO_REGISTER_MODE_MISSING};
    pthread_t thread;

    if (late) return 1;
    fills_in = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    if (fills_in < 0 || ioctl(fills_in, UFFDIO_API, &api)) return 0;
    late = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    range.range.start = (unsigned long)late;
    return ioctl(fills_in, UFFDIO_REGISTER, &range) == 0 && pthread_create(&thread, NULL, fill_in, NULL) == 0;
}

static void run_late(void) {
    madvise(late, 2 * page, MADV_DONTNEED);
    if (!on_stack(late + page)) bad++;
    call_through((void **)(late + page));
    faults = filled;
}

static void run_watched(void) {
    if (!on_stack(&pushed + 1)) bad++;
}

static void run_steps(void) {
    way = steps;
    mprotect(table, page, PROT_READ | PROT_WRITE);
    stepped(table);
}

static void set_up(void) {
    static char alternate[65536];
    stack_t ss = {.ss_sp = alternate, .ss_size = sizeof alternate};
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    sigaltstack(&ss, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    sigaction(SIGTRAP, &action, NULL);
    file = memfd_create("table", 0);
    table = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    file_table = mmap(NULL, page, PROT_READ, MAP_SHARED, file, 0);
    stack = mmap(NULL, (2 + stack_pages) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(stack + page, page, PROT_NONE);
    table[1] = (void *)do_work;
}

int main(void) {
    static const struct {
        const char *name;
        void (*run)(void);
    } ways[] = {{"closed", run_closed}, {"cut", run_cut},     {"guard", run_guard},
                {"late", run_late},     {"steps", run_steps}, {"watched", run_watched}};
    char line[64], name[16];
    long times;

    setvbuf(stdout, NULL, _IOLBF, 0);
    set_up();
    printf("ready\n");
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "%15s %ld", name, &times) != 2) return 2;
        calls = faults = bad = filled = 0;
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            if (strcmp(name, ways[i].name)) continue;
            if (ways[i].run == run_late && !begin_late()) faults = -1;
            for (long n = 0; n < times && faults >= 0; n++) ways[i].run();
        }
        printf("%s faults %ld bad %ld calls %ld\n", name, faults, bad, calls);
    }
    return 0;
}
#else
int main(void) {
    puts("ready");
    return 0;
}
#endif
