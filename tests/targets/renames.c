/*
 * renames: threads that get other names all the time.
 *
 * Calls as_named(NAME, NEXT) N times in each of these ways, where NAME is what the thread is called then, and NEXT what
 * it is called when the function returns:
 *
 *     by prctl(PR_SET_NAME), as the thread of the program, and inside the function
 *     by another thread, through /proc, between two calls
 *     by an exec of the program, once
 *
 * usage: renames N
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static sem_t named, done;
static char name_of_other[16];
static int times;

__attribute__((noinline)) int as_named(const char *name, const char *next) {
    if (strcmp(name, next) != 0) prctl(PR_SET_NAME, next);
    return (int)strlen(next);
}

static void *other(void *unused) {
    (void)unused;
    for (int i = 0; i < times; i++) {
        sem_wait(&named);
        as_named(name_of_other, name_of_other);
        sem_post(&done);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc == 3) return as_named("renames", "renames") != 7; // behind the exec
    times = argc > 1 ? atoi(argv[1]) : 100;
    char before[16], after[16];
    for (int i = 0; i < times; i++) {
        snprintf(before, sizeof before, "before %d", i);
        snprintf(after, sizeof after, "after %d", i);
        prctl(PR_SET_NAME, before);
        as_named(before, after);
    }
    sem_init(&named, 0, 0);
    sem_init(&done, 0, 0);
    pthread_t thread;
    if (pthread_create(&thread, NULL, other, NULL) != 0) return 1;
    for (int i = 0; i < times; i++) {
        snprintf(name_of_other, sizeof name_of_other, "other %d", i);
        if (pthread_setname_np(thread, name_of_other) != 0) return 1;
        sem_post(&named);
        sem_wait(&done);
    }
    pthread_join(thread, NULL);
    prctl(PR_SET_NAME, "last");
    as_named("last", "last");
    execl(argv[0], argv[0], argc > 1 ? argv[1] : "100", "again", (char *)NULL);
    return 1;
}
