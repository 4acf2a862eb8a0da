/*
 * processes: makes children in every way that there is, on request.
 *
 * Prints "ready PID" and obeys lines on standard input: `WAY CHILDREN CALLS`. Each child calls do_work CALLS times in
 * the memory that it was born with (but for posix_spawn and system), and says by its exit status whether it found
 * itself clean: no tracer, no executable memory without a file, its text as in the files. Answers
 *
 *     children N clean C calls M own P
 *
 * with all calls of do_work so far, and the parent's alone (one before and one behind each child). At the end of its
 * input it leaves with status 0.
 *
 * `dontfork 0 0` and `wipeonfork 0 0` keep executable memory without a file from the children to come: `kept N` says
 * how many mappings that were.
 *
 * As `processes look` it only looks at itself; as `processes work CALLS` it calls do_work and looks at itself; its
 * constructor calls `early` once, whatever it was started as.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char self[4096];
static volatile long early_calls;

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

__attribute__((noinline)) void early(void) { early_calls++; }

__attribute__((constructor)) static void before_main(void) { early(); }

static void work(long calls) {
    for (long i = 0; i < calls; i++)
        if (do_work(i) != i * 3 + 1) _exit(9);
}

/* The text of one mapping compared with its file; 0: the same. */
static int differs(const char *from, size_t size, const char *path, off_t offset) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char page[4096];
    int bad = 0;

    if (fd < 0) return 0;
    for (size_t at = 0; at < size; at += sizeof(page)) {
        ssize_t got = pread(fd, page, sizeof(page), offset + (off_t)at);

        if (got <= 0) break;
        if (memcmp(from + at, page, (size_t)got) != 0) bad = 1;
    }
    close(fd);
    return bad;
}

/* 0: clean; else what is not. Uses no memory but its own stack: a child of a threaded parent calls it. */
static int look(void) {
    static char text[1 << 16];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t got = read(fd, text, sizeof(text) - 1), size = 0;
    char *tracer, *line, *next;

    close(fd);
    text[got > 0 ? got : 0] = 0;
    tracer = strstr(text, "TracerPid:\t");
    if (!tracer || tracer[11] != '0') return 1;
    fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while ((got = read(fd, text + size, sizeof(text) - 1 - (size_t)size)) > 0) size += got;
    close(fd);
    text[size] = 0;
    for (line = text; *line; line = next) {
        unsigned long start, end, offset;
        char flags[8], path[1024] = "";

        next = strchr(line, '\n');
        *next++ = 0;
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %1023s", &start, &end, flags, &offset, path) < 4) return 4;
        if (flags[2] != 'x' || path[0] == '[') continue;
        if (path[0] != '/') return 2;
        if (differs((const char *)start, end - start, path, (off_t)offset)) return 3;
    }
    return 0;
}

static long calls_in_child;

static int child_main(void *arg) {
    (void)arg;
    work(calls_in_child);
    _exit(look());
}

static pid_t by_fork(long calls) {
    pid_t child = fork();

    if (child == 0) {
        int dirty = look();

        work(calls);
        _exit(dirty ? dirty : look());
    }
    return child;
}

static pid_t by_vfork(long calls) {
    static char *argv[] = {self, "look", NULL};
    pid_t child = vfork();

    if (child == 0) {
        for (long i = 0; i < calls; i++) do_work(i);
        execv(self, argv);
        _exit(8);
    }
    return child;
}

/* vfork and _exit without exec: the borrowed memory goes back as it is. */
static pid_t by_vfork_exit(long calls) {
    pid_t child = vfork();

    if (child == 0) {
        for (long i = 0; i < calls; i++) do_work(i);
        _exit(0);
    }
    return child;
}

static pid_t by_spawn(long calls) {
    char *argv[] = {self, "look", NULL};
    pid_t child = -1;

    (void)calls;
    return posix_spawn(&child, self, NULL, NULL, argv, environ) ? -1 : child;
}

/* A process that shares the memory for as long as it lives. It cannot be clean: only its calls count. */
static int shared_main(void *arg) {
    work((long)arg);
    return 0;
}

static pid_t by_clone_vm(long calls) {
    static char *stack;

    if (!stack) stack = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return clone(shared_main, stack + (1 << 16), CLONE_VM | SIGCHLD, (void *)calls);
}

/* clone without shared memory, by another stack, as container tools do. */
static pid_t by_clone(long calls) {
    static char stack[1 << 16] __attribute__((aligned(16)));

    calls_in_child = calls;
    return clone(child_main, stack + sizeof(stack), SIGCHLD, NULL);
}

/* The child forks again. */
static pid_t by_grandchild(long calls) {
    pid_t child = fork();

    if (child == 0) {
        int status = 0, dirty = look();
        pid_t grandchild = by_fork(calls);

        work(calls);
        while (waitpid(grandchild, &status, 0) < 0 && errno == EINTR)
            ;
        _exit(dirty ? dirty : WIFEXITED(status) ? WEXITSTATUS(status) : 7);
    }
    return child;
}

/* The child becomes `processes work CALLS`. */
static pid_t by_exec(long calls) {
    pid_t child = fork();

    if (child == 0) {
        char number[32];

        snprintf(number, sizeof(number), "%ld", calls);
        execl(self, self, "work", number, (char *)NULL);
        _exit(8);
    }
    return child;
}

/* Returns twice, with different values, from one call. */
__attribute__((noinline)) pid_t fork_here(void) {
    pid_t child = fork();

    __asm__ volatile("" ::: "memory");
    return child;
}

static pid_t by_inside(long calls) {
    pid_t child = fork_here();

    if (child == 0) {
        work(calls);
        _exit(look());
    }
    return child;
}

struct way {
    const char *name;
    pid_t (*start)(long calls);
    int calls_counted; /* do_work calls of a child: 0 none, else times CALLS */
};

static const struct way ways[] = {
    {"fork", by_fork, 1},        {"vfork", by_vfork, 1}, {"vforkexit", by_vfork_exit, 1},  {"spawn", by_spawn, 0},
    {"clonevm", by_clone_vm, 1}, {"clone", by_clone, 1}, {"grandchild", by_grandchild, 2}, {"exec", by_exec, 1},
    {"inside", by_inside, 1},
};

static volatile int stop_workers;

static void *busy(void *arg) {
    long calls = 0;

    (void)arg;
    while (!stop_workers)
        if (do_work(calls) == calls * 3 + 1) calls++;
    return (void *)calls;
}

static long total, own; /* calls of do_work */

static int reap(pid_t child) {
    int status;

    if (child < 0) return 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) printf("child %d: status 0x%x\n", (int)child, status);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int one_by_one(const struct way *way, int children, long calls) {
    int clean = 0;

    for (int i = 0; i < children; i++) {
        pid_t child;

        do_work(i);
        fflush(stdout);
        child = way->start(calls);
        clean += reap(child);
        do_work(i);
        own += 2;
        total += 2 + way->calls_counted * calls;
    }
    return clean;
}

/* All children at once, while four threads work. */
static int bomb(int children, long calls) {
    pthread_t threads[4];
    pid_t *started = calloc((size_t)children, sizeof(*started));
    int clean = 0;

    stop_workers = 0;
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, busy, NULL);
    for (int i = 0; i < children; i++) {
        started[i] = by_fork(calls);
        total += calls;
    }
    for (int i = 0; i < children; i++) clean += reap(started[i]);
    stop_workers = 1;
    for (int i = 0; i < 4; i++) {
        void *part;

        pthread_join(threads[i], &part);
        total += (long)part;
        own += (long)part;
    }
    free(started);
    return clean;
}

static int by_system(int children) {
    char command[4200];
    int clean = 0;

    snprintf(command, sizeof(command), "%s look", self);
    for (int i = 0; i < children; i++) {
        do_work(i);
        fflush(stdout);
        clean += system(command) == 0;
        do_work(i);
        total += 2;
        own += 2;
    }
    return clean;
}

/* Whose is it? This program makes no code. */
static int keep_from_children(int advice) {
    char line[512], rights[8], path[256];
    unsigned long start[64], end[64];
    int found = 0, kept = 0;
    FILE *maps = fopen("/proc/self/maps", "r");

    while (found < 64 && fgets(line, sizeof(line), maps)) {
        path[0] = 0;
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &start[found], &end[found], rights, path) < 3) continue;
        if (strchr(rights, 'x') != NULL && path[0] == 0) found++;
    }
    fclose(maps);
    for (int i = 0; i < found; i++) kept += madvise((void *)start[i], end[i] - start[i], advice) == 0;
    return kept;
}

int main(int argc, char **argv) {
    char line[128], name[32];
    int children;
    long calls;
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[length > 0 ? length : 0] = 0;
    if (argc > 1 && strcmp(argv[1], "look") == 0) return look();
    if (argc > 2 && strcmp(argv[1], "work") == 0) {
        work(atol(argv[2]));
        printf("early %ld do_work %s\n", early_calls, argv[2]);
        fflush(stdout);
        return look();
    }
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        int clean = -1;

        if (sscanf(line, "%31s %d %ld", name, &children, &calls) != 3) return 2;
        if (strcmp(name, "dontfork") == 0 || strcmp(name, "wipeonfork") == 0) {
            printf("kept %d\n", keep_from_children(name[0] == 'd' ? MADV_DONTFORK : MADV_WIPEONFORK));
            fflush(stdout);
            continue;
        }
        if (strcmp(name, "bomb") == 0) clean = bomb(children, calls);
        if (strcmp(name, "system") == 0) clean = by_system(children);
        for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
            if (strcmp(name, ways[i].name) == 0) clean = one_by_one(&ways[i], children, calls);
        printf("children %d clean %d calls %ld own %ld\n", children, clean, total, own);
        fflush(stdout);
    }
    return 0;
}
