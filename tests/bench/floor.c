// floor: the least that a ptrace loop by hand needs for what ktrace does, to compare ktrace with. One file on purpose,
// to be read from end to end. It owns the process that it traces from attach to detach.
//
// usage: floor -p PID -a ADDRESS [-m MODE]
//   entry    (default) at each hit the pc is moved to a copy of the first instruction, which jumps back behind it
//   args     the same with the registers read, and 4 bytes where the third argument points to
//   step     the pc is moved to the copy, which is single-stepped, then behind the instruction
//   return   entry, with the return address read and trapped (once for all calls); there the frame and the return
//            value are read, and the call's duration is taken
//
// It prints "armed" when all is in place, and "hits H returns R" when SIGINT or SIGTERM has ended it. It waits by
// waitpid(-1), resumes by PTRACE_CONT, and does not care for signals, new threads, or its own death: it leaves them out
// on purpose. x86-64 only; it knows the few instructions that hot.c begins functions with and has behind its call.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum mode { ENTRY, ARGS, STEP, RETURN };
enum { MAX_TASKS = 4096, SLOT = 64, LONGEST = 15, PC = offsetof(struct user, regs.rip) };

/// A trapped address and its copy.
struct site {
    unsigned long at, slot;
    unsigned char original;
    int length;
};

static pid_t tasks[MAX_TASKS];
static unsigned long started_ns[MAX_TASKS], frame_of[MAX_TASKS]; // of the call in flight, by task
static int task_count;
static int memory = -1; // /proc/PID/mem
static unsigned long page;
static struct site entry, back; // the function's entry; where its calls return to
static unsigned long hits, returns, total_ns, sum;
static volatile sig_atomic_t done;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void on_signal(int signal) {
    (void)signal;
    done = 1;
}

static unsigned long now_ns(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (unsigned long)ts.tv_sec * 1000000000UL + (unsigned long)ts.tv_nsec;
}

static void wait_for(pid_t tid) {
    if (waitpid(tid, NULL, __WALL) < 0) die("waitpid");
}

static void attach_all(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    if (!dir) die(path);
    struct dirent *found;
    while ((found = readdir(dir))) {
        pid_t tid = atoi(found->d_name);
        if (tid <= 0) continue;
        if (task_count == MAX_TASKS || ptrace(PTRACE_SEIZE, tid, 0, 0) < 0) die("seize");
        tasks[task_count++] = tid;
    }
    closedir(dir);
    snprintf(path, sizeof path, "/proc/%d/mem", pid);
    memory = open(path, O_RDWR);
    if (memory < 0) die(path);
}

static int index_of(pid_t tid) {
    static int last;
    if (tasks[last] != tid)
        for (last = 0; last < task_count - 1 && tasks[last] != tid;) last++;
    return last;
}

/// Has a task, which waits in a system call, map the page for the copies; the call is restarted by the kernel.
static void map_page(pid_t tid) {
    struct user_regs_struct own, regs;
    if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0) die("interrupt");
    wait_for(tid);
    ptrace(PTRACE_GETREGS, tid, 0, &own);
    regs = own;
    regs.rip -= 2; // the syscall instruction
    regs.rax = SYS_mmap;
    regs.orig_rax = (unsigned long)-1;
    regs.rdi = 0;
    regs.rsi = 4096;
    regs.rdx = PROT_READ | PROT_EXEC;
    regs.r10 = MAP_PRIVATE | MAP_ANONYMOUS;
    regs.r8 = (unsigned long)-1;
    regs.r9 = 0;
    ptrace(PTRACE_SETREGS, tid, 0, &regs);
    ptrace(PTRACE_SINGLESTEP, tid, 0, 0);
    wait_for(tid);
    ptrace(PTRACE_GETREGS, tid, 0, &regs);
    ptrace(PTRACE_SETREGS, tid, 0, &own);
    page = regs.rax;
    if (page > (unsigned long)-4096) {
        fprintf(stderr, "floor: mmap in the task failed\n");
        exit(1);
    }
    ptrace(PTRACE_CONT, tid, 0, 0);
}

/// Length of an instruction that means the same wherever it is.
static int length_of(const unsigned char *b) {
    if ((b[0] & 0xf0) == 0x50 || b[0] == 0x9d) return 1;                        // push, pop, popf
    if (b[0] == 0xf3 && b[1] == 0x0f && b[2] == 0x1e && b[3] == 0xfa) return 4; // endbr64
    if (b[0] == 0x49 && b[1] == 0x01 && b[2] == 0xc6) return 3;                 // add %rax, %r14
    if (b[0] == 0x48 && b[1] == 0x8d && b[2] == 0x44 && b[3] != 0x25) return 5; // lea d(%r, %r, n), %rax
    if (b[0] == 0x48 && b[1] == 0x83 && b[2] == 0xec) return 4;                 // sub $i, %rsp
    if (b[0] == 0x8d && b[1] == 0x87) return 6;                                 // lea d(%rdi), %eax
    fprintf(stderr, "floor: an instruction that it does not know: %02x %02x %02x %02x\n", b[0], b[1], b[2], b[3]);
    exit(1);
}

static void arm(struct site *site, unsigned long at, unsigned long slot) {
    unsigned char code[SLOT];
    if (pread(memory, code, LONGEST, (off_t)at) != LONGEST) die("pread");
    site->at = at;
    site->slot = slot;
    site->original = code[0];
    site->length = length_of(code);
    unsigned long behind = at + (unsigned long)site->length;
    memcpy(code + site->length, "\xff\x25\0\0\0\0", 6); // jmp *0(%rip)
    memcpy(code + site->length + 6, &behind, 8);
    if (pwrite(memory, code, SLOT, (off_t)slot) != SLOT || pwrite(memory, "\xcc", 1, (off_t)at) != 1) die("pwrite");
}

static void set_pc(pid_t tid, unsigned long pc) { ptrace(PTRACE_POKEUSER, tid, PC, pc); }

static void read_arguments(const struct user_regs_struct *regs) {
    int word = 0;
    if (pread(memory, &word, sizeof word, (off_t)regs->rdx) == sizeof word) sum += (unsigned long)word + regs->rdi;
}

static void begin_call(pid_t tid) {
    struct user_regs_struct regs;
    unsigned long address = 0;
    ptrace(PTRACE_GETREGS, tid, 0, &regs);
    if (pread(memory, &address, sizeof address, (off_t)regs.rsp) != sizeof address) return;
    if (!back.at) arm(&back, address, page + SLOT);
    int i = index_of(tid);
    frame_of[i] = regs.rsp;
    set_pc(tid, entry.slot);
    started_ns[i] = now_ns();
}

static void end_call(pid_t tid, unsigned long seen_ns) {
    struct user_regs_struct regs;
    ptrace(PTRACE_GETREGS, tid, 0, &regs);
    int i = index_of(tid);
    if (regs.rsp == frame_of[i] + 8) {
        returns++;
        sum += regs.rax;
        total_ns += seen_ns - started_ns[i];
    }
    set_pc(tid, back.slot);
}

static void on_entry(pid_t tid, enum mode mode) {
    struct user_regs_struct regs;
    hits++;
    switch (mode) {
    case ENTRY: set_pc(tid, entry.slot); break;
    case ARGS:
        ptrace(PTRACE_GETREGS, tid, 0, &regs);
        read_arguments(&regs);
        set_pc(tid, entry.slot);
        break;
    case STEP:
        set_pc(tid, entry.slot);
        ptrace(PTRACE_SINGLESTEP, tid, 0, 0);
        return;
    case RETURN: begin_call(tid); break;
    }
    ptrace(PTRACE_CONT, tid, 0, 0);
}

static void serve(pid_t pid, enum mode mode) {
    int status;
    while (!done) {
        pid_t tid = waitpid(-1, &status, __WALL);
        if (tid < 0) continue;
        unsigned long seen_ns = mode == RETURN ? now_ns() : 0;
        if (!WIFSTOPPED(status)) {
            if (tid == pid) return;
            continue;
        }
        if (WSTOPSIG(status) != SIGTRAP || status >> 16) {
            ptrace(PTRACE_CONT, tid, 0, status >> 16 ? 0 : WSTOPSIG(status));
            continue;
        }
        unsigned long pc = (unsigned long)ptrace(PTRACE_PEEKUSER, tid, PC, 0);
        if (pc == entry.at + 1) {
            on_entry(tid, mode);
            continue;
        }
        if (pc == back.at + 1)
            end_call(tid, seen_ns);
        else if (pc == entry.slot + (unsigned long)entry.length) // stepped
            set_pc(tid, entry.at + (unsigned long)entry.length);
        ptrace(PTRACE_CONT, tid, 0, 0);
    }
}

static void disarm(const struct site *site) {
    if (site->at && pwrite(memory, &site->original, 1, (off_t)site->at) != 1) perror("pwrite");
}

/// Nothing of the function runs when it is ended: no pc is in a slot.
static void detach_all(void) {
    disarm(&entry);
    disarm(&back);
    for (int i = 0; i < task_count; i++) {
        if (ptrace(PTRACE_INTERRUPT, tasks[i], 0, 0) < 0) continue;
        wait_for(tasks[i]);
        ptrace(PTRACE_DETACH, tasks[i], 0, 0);
    }
}

int main(int argc, char **argv) {
    static const char *const modes[] = {"entry", "args", "step", "return"};
    struct sigaction action = {.sa_handler = on_signal};
    enum mode mode = ENTRY;
    unsigned long at = 0;
    pid_t pid = 0;
    int opt;
    while ((opt = getopt(argc, argv, "p:a:m:")) != -1) switch (opt) {
        case 'p': pid = atoi(optarg); break;
        case 'a': at = strtoul(optarg, NULL, 16); break;
        case 'm':
            while (mode < RETURN && strcmp(modes[mode], optarg) != 0) mode++;
            break;
        default: return 2;
        }
    if (!pid || !at) {
        fprintf(stderr, "usage: floor -p PID -a ADDRESS -m entry|args|step|return\n");
        return 2;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    attach_all(pid);
    map_page(pid);
    arm(&entry, at, page);
    printf("armed\n");
    fflush(stdout);
    serve(pid, mode);
    detach_all();
    printf("hits %lu returns %lu mean %lu sum %lu\n", hits, returns, returns ? total_ns / returns : 0, sum);
    return 0;
}
