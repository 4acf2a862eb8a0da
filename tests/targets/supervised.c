/*
 * supervised: makes a system call that a supervisor, another process, answers (SECCOMP_RET_USER_NOTIF).
 *
 * The supervisor prints "asked" when it has been asked, and answers once it has read a line; it refuses what it is
 * asked after that. Then the program calls do_work once, and prints
 *
 *     made RESULT ERRNO asked TIMES
 *
 * It prints "none" where the kernel has no such filters.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int *asked; /* shared */
volatile long awake;

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

static int supervise_mkdirat(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdirat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter);
}

static void answer(int listener) {
    char line[64];

    for (;;) {
        struct seccomp_notif question;
        struct seccomp_notif_resp response;

        memset(&question, 0, sizeof(question));
        memset(&response, 0, sizeof(response));
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &question) != 0) {
            if (errno == EINTR || errno == ENOENT) continue; /* withdrawn */
            _exit(1);
        }
        if ((*asked)++ == 0) {
            printf("asked\n");
            fflush(stdout);
            if (read(0, line, sizeof(line)) <= 0) _exit(1);
        }
        response.id = question.id;
        response.error = *asked > 1 ? -EEXIST : 0;
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
    }
}

/* Another thread, which may be stopped for nothing. */
static void *rest(void *arg) {
    for (;;) pause();
    return arg;
}

int main(void) {
    pthread_t other;
    int listener = supervise_mkdirat(), error;
    pid_t supervisor;
    long result;

    asked = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (listener < 0 || asked == MAP_FAILED) {
        printf("none\n");
        return 0;
    }
    supervisor = fork();
    if (supervisor == 0) answer(listener);
    pthread_create(&other, NULL, rest, NULL);
    errno = 0;
    result = mkdirat(AT_FDCWD, "/nowhere/to/be/made", 0700);
    error = errno;
    awake = 1;
    do_work(1);
    printf("made %ld %d asked %d\n", result, error, *asked);
    fflush(stdout);
    kill(supervisor, SIGKILL);
    waitpid(supervisor, NULL, 0);
    while (getchar() != EOF) continue;
    return 0;
}
