/*
 * awaits: a thread that waits in the middle of a system call for a page that userfaultfd(2) has to fill in.
 *
 *     awaits [busy]
 *
 * One thread reads a pipe into that page, and calls do_work then; `busy`: another one calls it all the time, and fills
 * in the page. Prints "ready" when the page is waited for, or "none" where there is no such thing here. A line `signal`
 * sends the reader a signal, which it handles when it has read; behind another one the page is filled in: "read N
 * TEXT". At the end of the input it prints "calls N", of do_work, and leaves with status 0.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { page = 4096 };

atomic_long calls;
static atomic_int stop, wanted, handled;
static pthread_t reading;
static int fills_in, ends[2];
static char *awaited;

__attribute__((noinline, noclone)) long do_work(long n) {
    calls++;
    return n + 1;
}

static void *reader(void *unused) {
    long got = read(ends[0], awaited, 16);

    do_work(got);
    printf("read %ld %s\n", got, awaited);
    return unused;
}

static void fill_in(void) {
    static char source[page];
    struct uffdio_copy copy = {.dst = (unsigned long)awaited, .src = (unsigned long)source, .len = page};

    ioctl(fills_in, UFFDIO_COPY, &copy);
    wanted = 0;
}

static void *worker(void *unused) {
    while (!stop) {
        do_work(1);
        if (wanted) fill_in();
    }
    return unused;
}

static void on_signal(int sig) {
    (void)sig;
    handled++;
}

/* The page is asked for. */
static int begin(void) {
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register range = {.range.len = page, .mode = UFFDIO_REGISTER_MODE_MISSING};
    struct pollfd asked = {.events = POLLIN};

    asked.fd = fills_in = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (fills_in < 0 || ioctl(fills_in, UFFDIO_API, &api)) return 0;
    awaited = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    range.range.start = (unsigned long)awaited;
    if (ioctl(fills_in, UFFDIO_REGISTER, &range) || pipe(ends) || write(ends[1], "hello", 6) != 6) return 0;
    return pthread_create(&reading, NULL, reader, NULL) == 0 && poll(&asked, 1, -1) == 1;
}

int main(int argc, char **argv) {
    const int is_busy = argc > 1 && strcmp(argv[1], "busy") == 0;
    pthread_t busy;
    char line[16];

    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGUSR1, on_signal);
    if (!begin()) {
        printf("none\n");
        return 0;
    }
    if (is_busy) pthread_create(&busy, NULL, worker, NULL);
    printf("ready\n");
    while (fgets(line, sizeof line, stdin)) {
        wanted = strcmp(line, "signal\n") != 0;
        if (!wanted)
            pthread_kill(reading, SIGUSR1);
        else if (!is_busy)
            fill_in();
    }
    stop = 1;
    if (is_busy) pthread_join(busy, NULL);
    printf("calls %ld\n", calls);
    return 0;
}
