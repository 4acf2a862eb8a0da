/*
 * confines: a process that gives up what it may do, or goes elsewhere, while it may be looked at.
 *
 * Prints "ready PID" and reads lines: `work N` calls do_work N times in each of two threads ("worked 2N"); the others
 * are answered by "WHAT RESULT", 0 or the errno:
 *
 *     undumpable        prctl(PR_SET_DUMPABLE, 0)
 *     user ID           another user and group for good, without any capability
 *     root DIR          chroot(2), and into it
 *     unshare           namespaces of its own: mounts (private, with another /proc), names, IPC, network
 *     user_namespace    a user namespace of its own, and mounts
 *     join PID          the mount, IPC and name namespaces of that process
 *     fork N            a child calls do_work N times; 0 where it found no other bytes there than before, and ended
 * well spawn N           the same in a child that borrows the memory (vfork), which does not look load FILE dlopen(3)
 *     unprivileged      no_new_privs, and no capability any more
 *
 * At the end of its input it leaves with status 0.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

volatile long worked;

static void *work(void *times) {
    for (long i = 0; i < (long)times; i++) {
        if (do_work(i) != i * 3 + 1) _exit(3);
        __sync_fetch_and_add(&worked, 1);
    }
    return NULL;
}

static void work_in_two(long times) {
    pthread_t other;

    worked = 0;
    pthread_create(&other, NULL, work, (void *)times);
    work((void *)times);
    pthread_join(other, NULL);
}

static int become(unsigned id) {
    if (setgroups(0, NULL) != 0 || setresgid(id, id, id) != 0) return -1;
    return setresuid(id, id, id);
}

static int change_root(const char *to) { return chroot(to) != 0 ? -1 : chdir("/"); }

static int leave_namespaces(void) {
    if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET) != 0) return -1;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return -1;
    return mount("none", "/tmp", "tmpfs", 0, NULL); /* over what its files may be under */
}

/* For those with one thread alone; a joined thread may still be on its way out. */
static int leave_user_namespace(void) {
    struct stat tasks;

    while (stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 3) usleep(100);
    return unshare(CLONE_NEWUSER | CLONE_NEWNS);
}

static int join(const char *pid) {
    static const char *const names[] = {"ipc", "uts", "mnt"};
    int fds[3];

    for (int i = 0; i < 3; i++) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/%s/ns/%s", pid, names[i]);
        fds[i] = open(path, O_RDONLY | O_CLOEXEC);
        if (fds[i] < 0) return -1;
    }
    for (int i = 0; i < 3; i++)
        if (setns(fds[i], 0) != 0) return -1;
    return 0;
}

static int drop_capabilities(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2];

    memset(none, 0, sizeof(none));
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return (int)syscall(SYS_capset, &header, none);
}

static unsigned char text[16]; /* of do_work */

static int have_child(int borrows, long times) {
    int status = 0;
    pid_t child = borrows ? vfork() : fork();

    if (child == 0) {
        if (!borrows && memcmp(text, (const void *)do_work, sizeof(text)) != 0) _exit(7);
        work((void *)times);
        _exit(0);
    }
    waitpid(child, &status, 0);
    errno = status;
    return status == 0 ? 0 : -1;
}

static int obey(const char *what, const char *argument) {
    if (strcmp(what, "undumpable") == 0) return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (strcmp(what, "user") == 0) return become((unsigned)atoi(argument));
    if (strcmp(what, "root") == 0) return change_root(argument);
    if (strcmp(what, "unshare") == 0) return leave_namespaces();
    if (strcmp(what, "user_namespace") == 0) return leave_user_namespace();
    if (strcmp(what, "join") == 0) return join(argument);
    if (strcmp(what, "unprivileged") == 0) return drop_capabilities();
    if (strcmp(what, "fork") == 0) return have_child(0, atol(argument));
    if (strcmp(what, "spawn") == 0) return have_child(1, atol(argument));
    if (strcmp(what, "load") == 0) return dlopen(argument, RTLD_NOW) ? 0 : -1;
    errno = EINVAL;
    return -1;
}

int main(void) {
    char line[4096], what[64], argument[4000];

    memcpy(text, (const void *)do_work, sizeof(text));
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        argument[0] = 0;
        if (sscanf(line, "%63s %3999s", what, argument) < 1) return 2;
        errno = 0;
        if (strcmp(what, "work") == 0) {
            work_in_two(atol(argument));
            printf("worked %ld\n", worked);
        } else {
            int error = obey(what, argument) == 0 ? 0 : errno;

            printf("%s %d\n", what, error);
        }
        fflush(stdout);
    }
    return 0;
}
