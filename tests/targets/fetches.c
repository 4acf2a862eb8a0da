/*
 * fetches: reads a file of a file system in user space, which its child serves (fuse(4)).
 *
 * The child prints "asked" when it is asked for the file's bytes, and answers once it has read a line. At a request
 * that the reader was interrupted it answers with EINTR. Then the program calls do_work once, and prints
 *
 *     made RESULT ERRNO asked TIMES
 *
 * RESULT and ERRNO are those of read; TIMES: how many reads or interrupts the child was asked to serve. It prints
 * "none" where it may not mount such a file system.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { root_node = FUSE_ROOT_ID, file_node, size = 5 };

static int device;
static volatile int *asked; /* shared */
volatile long awake;

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

static void reply(unsigned long to, int error, void *data, size_t length) {
    struct fuse_out_header header = {.len = (unsigned)(sizeof(header) + length), .error = -error, .unique = to};
    struct iovec parts[2] = {{&header, sizeof(header)}, {data, length}};

    if (writev(device, parts, length ? 2 : 1) < 0 && errno != ENOENT) _exit(1);
}

static struct fuse_attr attributes(unsigned long node) {
    return node == root_node ? (struct fuse_attr){.ino = root_node, .mode = S_IFDIR | 0755, .nlink = 2}
                             : (struct fuse_attr){.ino = file_node, .mode = S_IFREG | 0644, .nlink = 1, .size = size};
}

static unsigned long held; /* the read that is not answered yet */

static void answer(const struct fuse_in_header *request) {
    struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = 4096};
    struct fuse_attr_out attr = {.attr_valid = 100, .attr = attributes(request->nodeid)};
    struct fuse_entry_out entry = {
        .nodeid = file_node, .entry_valid = 100, .attr_valid = 100, .attr = attributes(file_node)};
    struct fuse_open_out opened = {.open_flags = FOPEN_DIRECT_IO};

    switch (request->opcode) {
    case FUSE_INIT: reply(request->unique, 0, &init, sizeof(init)); break;
    case FUSE_GETATTR: reply(request->unique, 0, &attr, sizeof(attr)); break;
    case FUSE_LOOKUP: reply(request->unique, 0, &entry, sizeof(entry)); break;
    case FUSE_OPEN: reply(request->unique, 0, &opened, sizeof(opened)); break;
    case FUSE_READ:
        held = request->unique;
        if ((*asked)++ > 0) break;
        printf("asked\n");
        fflush(stdout);
        break;
    case FUSE_INTERRUPT:
        ++*asked;
        reply(held, EINTR, NULL, 0);
        break;
    case FUSE_FORGET: break;
    case FUSE_FLUSH:
    case FUSE_RELEASE: reply(request->unique, 0, NULL, 0); break;
    default: reply(request->unique, ENOSYS, NULL, 0);
    }
}

static void serve(void) {
    static char request[FUSE_MIN_READ_BUFFER];
    char line[64];

    for (;;) {
        struct pollfd wanted[2] = {{device, POLLIN, 0}, {held ? 0 : -1, POLLIN, 0}};

        poll(wanted, 2, -1);
        if (wanted[1].revents) {
            if (read(0, line, sizeof(line)) <= 0) _exit(1);
            reply(held, 0, "hello", size);
            held = 0;
        } else if (read(device, request, sizeof(request)) > 0) {
            answer((const struct fuse_in_header *)request);
        } else if (errno == ENODEV) {
            _exit(0);
        }
    }
}

/* 0: the file system is there, for this process alone. */
static int mount_it(void) {
    char options[128];

    device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device < 0 || unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return -1;
    snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
    return mount("fetches", "/mnt", "fuse", 0, options);
}

/* Another thread, which may be stopped for nothing. */
static void *rest(void *arg) {
    for (;;) pause();
    return arg;
}

int main(void) {
    pthread_t other;
    char bytes[size];
    pid_t child;
    int file, error;
    long result;

    asked = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (asked == MAP_FAILED || mount_it() != 0) {
        printf("none\n");
        return 0;
    }
    child = fork();
    if (child == 0) serve();
    close(device);
    file = open("/mnt/file", O_RDONLY);
    pthread_create(&other, NULL, rest, NULL);
    errno = 0;
    result = read(file, bytes, sizeof(bytes));
    error = errno;
    awake = 1;
    do_work(1);
    printf("made %ld %d asked %d\n", result, error, *asked);
    fflush(stdout);
    close(file);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    while (getchar() != EOF) continue;
    return 0;
}
