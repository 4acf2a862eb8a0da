/* A small server to look into: four threads that take requests and work on them, most of them fast, some slow.
 *
 *     cc -O2 -g -pthread server.c -o server && ./server [SECONDS]
 *
 * It has no network, so that it runs anywhere: requests are made up. It says its process number and then nothing more.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { threads = 4 };

enum op { READ, WRITE, SCAN };

struct request {
    int id;
    enum op op;
    char path[16];
};

static const char *const users[] = {"alice", "bob", "carol", "dave"};

static void pause_us(long us) {
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    while (nanosleep(&time, &time) != 0) {
    }
}

/* What a request costs: 0.2 ms for a read, 1 ms for a write; every scan waits for a disk. Returns the bytes served. */
__attribute__((noinline)) int do_work(int n, const char *name, const struct request *request) {
    static const long cost_us[] = {200, 1000, 30000};
    pause_us(cost_us[request->op] + n % 7 * 50);
    return n * 64 + name[0];
}

static void *serve(void *argument) {
    int thread = (int)(intptr_t)argument;
    unsigned seed = (unsigned)thread + 1;
    for (int i = 0;; i++) {
        enum op op = rand_r(&seed) % 10 == 0 ? SCAN : (enum op)(i % 2);
        struct request request = {i, op, ""};
        snprintf(request.path, sizeof request.path, "/item/%d", i % 100);
        if (do_work(i, users[thread % 4], &request) < 0) return NULL;
        pause_us(250000);
    }
}

int main(int argc, char **argv) {
    /* Where the kernel lets only parents trace (yama), let any process of this user do it. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    printf("%d\n", (int)getpid());
    fflush(stdout);
    for (intptr_t i = 0; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, serve, (void *)i) != 0) return 1;
    }
    sleep(argc > 1 ? (unsigned)atoi(argv[1]) : 3600);
    return 0;
}
