/*
 * whole CALL [other]: sleeps in a system call that has done a part of its work. Interrupted it would answer with that
 * part. With `other` a second thread sleeps in pause(2).
 *
 * Prints "ready PID" and sleeps. A helper process, which is not traced, reads a line and does what the call waits for.
 * Then the variable `awake` is written, do_work called, and "did RESULT of WANTED" printed; the process leaves with
 * status 0 when its input has ended.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { size = 1 << 20, packets = 4 };

static char bytes[size];
static int pipe_fds[2], pair[2], keyboard, terminal, sender, receiver, without[2];
static volatile int *is_read; /* shared with the helper */
static const char *call;
volatile long awake;

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

static long by_write(void) { return write(pipe_fds[1], bytes, size); }
static long by_writev(void) {
    struct iovec whole = {bytes, size};

    return writev(pipe_fds[1], &whole, 1);
}
static long by_send(void) { return send(pair[0], bytes, size, 0); }
static long by_sendmsg(void) {
    struct iovec whole = {bytes, size};
    struct msghdr message = {.msg_iov = &whole, .msg_iovlen = 1};

    return sendmsg(pair[0], &message, 0);
}
static long by_recv(void) { return recv(pair[0], bytes, size, MSG_WAITALL); }
static long by_recvmmsg(void) {
    struct mmsghdr messages[packets];
    struct iovec parts[packets];

    memset(messages, 0, sizeof(messages));
    for (int i = 0; i < packets; i++) {
        parts[i] = (struct iovec){bytes + i, 1};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    return recvmmsg(pair[0], messages, packets, 0, NULL);
}

static long by_pwritev2(void) {
    struct iovec whole = {bytes, size};

    return pwritev2(pipe_fds[1], &whole, 1, -1, 0);
}
/* Of a terminal that answers with so many bytes at once. */
static long by_terminal(void) { return read(terminal, bytes, packets); }
/* Of a socket that does not answer with less. */
static long by_socket(void) {
    int least = packets;

    if (setsockopt(pair[0], SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)) != 0) return -1;
    return read(pair[0], bytes, size);
}
/* Of a socket that waits then until its peer has read everything. */
static long by_close(void) { return close(sender) == 0 && *is_read; }

static void open_terminal(void) {
    struct termios mode;

    keyboard = posix_openpt(O_RDWR | O_NOCTTY);
    if (grantpt(keyboard) != 0 || unlockpt(keyboard) != 0) exit(2);
    terminal = open(ptsname(keyboard), O_RDWR | O_NOCTTY);
    if (tcgetattr(terminal, &mode) != 0) exit(2);
    cfmakeraw(&mode);
    mode.c_cc[VMIN] = packets;
    tcsetattr(terminal, TCSANOW, &mode);
    if (write(keyboard, "x", 1) != 1) exit(2); // the part that is done
}

static void open_lingering(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    struct linger linger = {1, 1000};
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    is_read = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sender = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1) != 0) exit(2);
    getsockname(listener, (struct sockaddr *)&address, &length);
    connect(sender, (struct sockaddr *)&address, length);
    receiver = accept(listener, NULL, NULL);
    while (write(sender, bytes, size) > 0) continue;
    setsockopt(sender, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

static void drain(int fd) {
    while (read(fd, bytes, size) > 0) continue;
}

static void fill(int fd, long length) {
    for (long done = 0, got; done < length; done += got) {
        got = write(fd, bytes, (size_t)(length - done));
        if (got <= 0) _exit(1);
    }
}

/* The event that the call waits for. */
static void do_rest(void) {
    if (strcmp(call, "recv") == 0) fill(pair[1], size - 1);
    if (strcmp(call, "recvmmsg") == 0)
        for (int i = 1; i < packets; i++) fill(pair[1], 1);
    if (strcmp(call, "socket") == 0) fill(pair[1], packets - 1);
    if (strcmp(call, "terminal") == 0) fill(keyboard, packets - 1);
    if (strcmp(call, "close") == 0) {
        *is_read = 1;
        drain(receiver);
    }
    if (strstr(call, "write")) drain(pipe_fds[0]);
    if (strncmp(call, "send", 4) == 0) drain(pair[1]);
}

static const struct {
    const char *name;
    long (*make)(void);
    long wanted;
} calls[] = {
    {"write", by_write, size},       {"writev", by_writev, size},
    {"send", by_send, size},         {"sendmsg", by_sendmsg, size},
    {"recv", by_recv, size},         {"recvmmsg", by_recvmmsg, packets},
    {"pwritev2", by_pwritev2, size}, {"terminal", by_terminal, packets},
    {"socket", by_socket, packets},  {"close", by_close, 1},
};

static void *rest(void *arg) {
    for (;;) pause();
    return arg;
}

int main(int argc, char **argv) {
    char line[64];
    pthread_t other;
    pid_t self = getpid(), helper;

    call = argc > 1 ? argv[1] : "";
    if (pipe(pipe_fds) != 0 || pipe(without) != 0) return 2;
    if (socketpair(AF_UNIX, strcmp(call, "recvmmsg") == 0 ? SOCK_DGRAM : SOCK_STREAM, 0, pair) != 0) return 2;
    fill(pair[1], strncmp(call, "recv", 4) == 0 || strcmp(call, "socket") == 0); // the part that is done
    open_terminal();
    open_lingering();
    helper = fork();
    if (helper == 0) {
        close(sender); // whose last user the call is then
        if (write(without[1], "x", 1) != 1) _exit(1);
        close(pipe_fds[1]);
        close(pair[0]);
        if (fgets(line, sizeof(line), stdin)) do_rest();
        while (fgets(line, sizeof(line), stdin)) continue;
        _exit(0);
    }
    if (read(without[0], line, 1) != 1) return 2;
    if (argc > 2) pthread_create(&other, NULL, rest, NULL);
    printf("ready %d\n", (int)self);
    fflush(stdout);
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (strcmp(call, calls[i].name) == 0) {
            long did = calls[i].make();

            awake = do_work(1);
            printf("did %ld of %ld\n", did, calls[i].wanted);
            fflush(stdout);
        }
    close(pipe_fds[1]);
    close(pair[0]);
    while (waitpid(helper, NULL, 0) < 0 && errno == EINTR) continue;
    return 0;
}
