/*
 * ring: a process in which the kernel works with threads of its own: workers of io_uring.
 *
 * Prints "ready PID", or "none REASON" where there is no io_uring, and obeys lines on standard input, `WHAT N`:
 *
 *     work N    N system calls more are made by workers, which sleep in them (the opening of a pipe that has no writer
 *               yet); "workers M" when M threads more than the program's own are there
 *     call N    calls do_work N times, writes to `watched` each time, and takes what workers have done; "calls N"
 *     open      the pipe is opened at its other end: "opened M" when all workers' calls have succeeded
 *
 * At the end of its input it leaves with status 0.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { most = 32 };

static struct {
    int fd;
    atomic_uint *tail, *done_head, *done_tail;
    unsigned mask, done_mask;
    unsigned *array;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *results;
} ring;
static char pipe_name[64];
static long submitted, opened;
volatile long watched;

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

static void say(const char *what, long n) {
    printf("%s %ld\n", what, n);
    fflush(stdout);
}

static void *map(size_t size, off_t what) {
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, what);

    if (at == MAP_FAILED) exit(2);
    return at;
}

static int set_up(void) {
    struct io_uring_params params = {0};
    char *submit, *complete;

    ring.fd = (int)syscall(SYS_io_uring_setup, most, &params);
    if (ring.fd < 0) return 0;
    submit = map(params.sq_off.array + params.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
    complete = map(params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    ring.entries = map(params.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
    ring.tail = (atomic_uint *)(submit + params.sq_off.tail);
    ring.mask = *(unsigned *)(submit + params.sq_off.ring_mask);
    ring.array = (unsigned *)(submit + params.sq_off.array);
    ring.done_head = (atomic_uint *)(complete + params.cq_off.head);
    ring.done_tail = (atomic_uint *)(complete + params.cq_off.tail);
    ring.done_mask = *(unsigned *)(complete + params.cq_off.ring_mask);
    ring.results = (struct io_uring_cqe *)(complete + params.cq_off.cqes);
    return 1;
}

static long tasks(void) {
    DIR *dir = opendir("/proc/self/task");
    long count = 0;

    while (readdir(dir)) count++;
    closedir(dir);
    return count - 2;
}

static void work(long n) {
    for (long i = 0; i < n && submitted < most; i++, submitted++) {
        unsigned tail = *ring.tail;
        struct io_uring_sqe *entry = &ring.entries[tail & ring.mask];

        memset(entry, 0, sizeof *entry);
        entry->opcode = IORING_OP_OPENAT;
        entry->flags = IOSQE_ASYNC;
        entry->fd = AT_FDCWD;
        entry->addr = (unsigned long)pipe_name;
        entry->open_flags = O_RDONLY;
        ring.array[tail & ring.mask] = tail & ring.mask;
        *ring.tail = tail + 1;
        while (syscall(SYS_io_uring_enter, ring.fd, 1, 0, 0, NULL, 0) != 1)
            if (errno != EINTR) exit(3);
    }
    while (tasks() - 1 < submitted) sched_yield();
    say("workers", tasks() - 1);
}

static void take_results(void) {
    while (*ring.done_head != *ring.done_tail) {
        if (ring.results[*ring.done_head & ring.done_mask].res >= 0) opened++;
        *ring.done_head = *ring.done_head + 1;
    }
}

static void call(long n) {
    for (long i = 0; i < n; i++) watched = do_work(i);
    take_results();
    say("calls", n);
}

static void open_pipe(void) {
    int fd = open(pipe_name, O_WRONLY);

    while (opened < submitted) {
        take_results();
        sched_yield();
    }
    close(fd);
    say("opened", opened);
}

int main(void) {
    char line[64];

    if (!set_up()) {
        printf("none io_uring: %s\n", strerror(errno));
        return 0;
    }
    snprintf(pipe_name, sizeof pipe_name, "/tmp/ktrace-ring-%d", (int)getpid());
    if (mkfifo(pipe_name, 0600) != 0) return 2;
    say("ready", getpid());
    while (fgets(line, sizeof line, stdin)) {
        long n = strchr(line, ' ') ? atol(strchr(line, ' ')) : 0;

        if (strncmp(line, "work", 4) == 0) work(n);
        if (strncmp(line, "call", 4) == 0) call(n);
        if (strncmp(line, "open", 4) == 0) open_pipe();
    }
    unlink(pipe_name);
    return 0;
}
