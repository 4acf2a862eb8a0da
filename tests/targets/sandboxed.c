/*
 * sandboxed WHAT [later|beside]: a process that may not map or unmap memory; WHAT becomes of it when it tries: errno,
 * zero (as if it were done), trap (SIGSYS), kill; or strict: it may do nothing but read and write.
 *
 * Prints "ready PID"; for each line it calls do_work 50 times and prints "do_work 50 sum S". With `later` it confines
 * itself at the first line. With `beside` only another thread is confined, which never sleeps for long.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

volatile long noted;
static sem_t confined;

__attribute__((noinline)) long do_work(long n) {
    noted = n;
#ifdef __x86_64__
    __asm__ volatile("jmp 1f\n1:" ::: "memory"); /* a probe there needs no room */
#endif
    return n * 3 + 1;
}

static int confine(const char *what) {
    unsigned answer = strcmp(what, "errno") == 0  ? SECCOMP_RET_ERRNO | EPERM
                      : strcmp(what, "zero") == 0 ? SECCOMP_RET_ERRNO
                      : strcmp(what, "trap") == 0 ? SECCOMP_RET_TRAP
                                                  : SECCOMP_RET_KILL_PROCESS;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};

    if (strcmp(what, "strict") == 0) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static void *run_confined(void *what) {
    if (confine(what)) _exit(2);
    sem_post(&confined);
    for (;;) poll(NULL, 0, 1);
    return NULL;
}

static int confine_beside(char *what) {
    pthread_t other;

    sem_init(&confined, 0, 0);
    if (pthread_create(&other, NULL, run_confined, what)) return -1;
    return sem_wait(&confined);
}

int main(int argc, char **argv) {
    static char in[4096], out[4096]; /* stdio would map its own */
    char line[64];
    int later = argc > 2 && strcmp(argv[2], "later") == 0, beside = argc > 2 && !later;

    setvbuf(stdin, in, _IOFBF, sizeof(in));
    setvbuf(stdout, out, _IOFBF, sizeof(out));
    printf("ready %d\n", (int)getpid());
    if (argc < 2 || (!later && (beside ? confine_beside(argv[1]) : confine(argv[1])))) return 2;
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        long sum = 0;

        if (later && confine(argv[1])) return 2;
        later = 0;
        for (int i = 0; i < 50; i++) sum += do_work(i);
        printf("do_work 50 sum %ld\n", sum);
        fflush(stdout);
    }
    if (beside) return 0;
    syscall(SYS_exit, 0); /* exit_group is none of what strict allows */
    return 3;
}
