/*
 * c_library: calls functions of the C library, and prints each call as a tracer that knows them has to show it.
 *
 * A result that is an address is printed as R.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *error(int failed) { return failed ? strerrorname_np(errno) : ""; }

#define SHOW(format, ...) printf(format "\n", __VA_ARGS__)

int main(void) {
    char text[64];
    int file, other, ends[2], status;
    ssize_t n;
    void *area;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

    file = open("/nonexistent", O_RDONLY);
    SHOW("open(file=\"/nonexistent\", oflag=O_RDONLY) returned %d %s", file, error(file < 0));
    file = openat(AT_FDCWD, "/dev/zero", O_RDWR | O_CLOEXEC);
    SHOW("openat(fd=AT_FDCWD, file=\"/dev/zero\", oflag=O_RDWR|O_CLOEXEC) returned %d", file);
    area = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    SHOW("mmap(addr=0x0, len=%d, prot=PROT_READ|PROT_WRITE, flags=MAP_PRIVATE|MAP_ANONYMOUS, fd=-1, offset=0) returned "
         "%p",
         4096, area);
    area = mmap(NULL, 0, PROT_NONE, MAP_PRIVATE, file, 0);
    SHOW("mmap(addr=0x0, len=0, prot=PROT_NONE, flags=MAP_PRIVATE, fd=%d, offset=0) returned %p %s", file, area,
         error(area == MAP_FAILED));
    other = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    SHOW("socket(domain=AF_UNIX, type=SOCK_STREAM|SOCK_CLOEXEC, protocol=0) returned %d", other);
    if (pipe(ends)) return 1;
    n = write(ends[1], "to and\n", 7);
    SHOW("write(fd=%d, buf=\"to and\\n\", nbytes=7) returned %zd", ends[1], n);
    n = read(ends[0], text, sizeof(text));
    SHOW("read(fd=%d, buf=\"to and\\n\", nbytes=64) returned %zd", ends[0], n);
    n = read(-1, text, sizeof(text));
    SHOW("read(fd=-1, buf=\"\", nbytes=64) returned %zd %s", n, error(n < 0));
    pthread_mutex_lock(&mutex);
    status = pthread_mutex_trylock(&mutex);
    SHOW("pthread_mutex_trylock(mutex=%p) returned %s", (void *)&mutex, strerrorname_np(status));
    status = memcmp("hello", "help!", (size_t)getpid() ? 5 : 0);
    SHOW("memcmp(s1=\"hello\", s2=\"help!\", n=5) returned %d", status);
    status = snprintf(text, sizeof(text), "%d and %s", 5, "more");
    SHOW("snprintf(s=\"5 and more\", maxlen=64, format=\"%%d and %%s\") returned %d", status);
    return 0;
}
