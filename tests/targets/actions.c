/*
 * actions: a program that sets its action for SIGTRAP while it is traced.
 *
 * Prints "ready PID" and reads lines. "handler" sets a handler by sigaction(2), "other" another by signal(3), "ignore"
 * none, and no death; then a thread that blocks all signals calls do_work, SIGTRAP is raised, and do_work is called
 * once more. "back" sets the action that was there before "handler", and raises nothing. Each is answered by "WAY
 * handled T bad B": how many SIGTRAPs were delivered to the program's handlers so far, and how often its action was not
 * the one that it had set. "which" is answered by "action A": default, ignored, handler or other.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static sem_t asked, done;
static volatile sig_atomic_t handled;
static struct sigaction before;
static long bad;

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n * 3 + 1;
}

static void *work(void *unused) {
    sigset_t all;
    (void)unused;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    for (;;) {
        sem_wait(&asked);
        for (int i = 0; i < 20; i++) do_work(i);
        sem_post(&done);
    }
}

static void on_trap(int sig) { handled += sig == SIGTRAP; }

static void on_trap_otherwise(int sig) { handled += sig == SIGTRAP; }

static void have_it_work(void) {
    sem_post(&asked);
    while (sem_wait(&done) != 0) {
    }
}

static void (*current(void))(int) {
    struct sigaction now;
    sigaction(SIGTRAP, NULL, &now);
    return now.sa_handler;
}

/* Where the program has no handler, ktrace's stands for it while it traces. */
static void use(void (*handler)(int)) {
    for (int round = 0; round < 2; round++) {
        have_it_work();
        if (handler != SIG_IGN && current() != handler) bad++;
        if (round == 0) raise(SIGTRAP);
    }
}

int main(void) {
    char line[64];
    pthread_t thread;
    sem_init(&asked, 0, 0);
    sem_init(&done, 0, 0);
    pthread_create(&thread, NULL, work, NULL);
    printf("ready %d\n", getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (strcmp(line, "which") == 0) {
            void (*now)(int) = current();
            printf("action %s\n", now == SIG_DFL   ? "default"
                                  : now == SIG_IGN ? "ignored"
                                  : now == on_trap ? "handler"
                                                   : "other");
            fflush(stdout);
            continue;
        }
        if (strcmp(line, "handler") == 0) {
            struct sigaction action;
            memset(&action, 0, sizeof action);
            action.sa_handler = on_trap;
            sigaction(SIGTRAP, &action, &before);
            use(on_trap);
        } else if (strcmp(line, "other") == 0) {
            signal(SIGTRAP, on_trap_otherwise);
            use(on_trap_otherwise);
        } else if (strcmp(line, "ignore") == 0) {
            signal(SIGTRAP, SIG_IGN);
            use(SIG_IGN);
        } else if (strcmp(line, "back") == 0) {
            sigaction(SIGTRAP, &before, NULL);
            have_it_work();
        }
        printf("%s handled %d bad %ld\n", line, (int)handled, bad);
        fflush(stdout);
    }
    return 0;
}
