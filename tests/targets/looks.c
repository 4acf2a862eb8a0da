// Threads of every kind that can be looked at: one that runs, two that wait in one place, and one whose frame is found
// by a register alone. Counts the calls that were interrupted: without a tracer, none is.
#include <alloca.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int interrupted, waiting;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static volatile unsigned sink;

__attribute__((noinline)) static unsigned descend(unsigned depth) {
    for (volatile int i = 0; i < 200; i++) sink++;
    return depth == 0 ? sink : descend(depth - 1) + sink;
}

static void *run(void *name) {
    pthread_setname_np(pthread_self(), name);
    for (unsigned i = 0;; i++) sink += descend(i % 16);
    return NULL;
}

__attribute__((noinline)) static void wait_at(const char *name) {
    pthread_setname_np(pthread_self(), name);
    pthread_mutex_lock(&mutex);
    waiting++;
    while (1) pthread_cond_wait(&never, &mutex);
}

static void *twin(void *name) {
    wait_at(name);
    return NULL;
}

/// Its frame has no size that is known: its caller is found by the frame pointer, which `syscall` keeps in its
/// register.
__attribute__((noinline)) static int wait_by_register(int poll, size_t size) {
    char *room = alloca(size);
    memset(room, 1, size);
    long result = syscall(SYS_epoll_pwait, poll, room, 1, -1, NULL, 8);
    if (result < 0 && errno == EINTR) interrupted++;
    return room[size - 1];
}

static void *by_register(void *name) {
    pthread_setname_np(pthread_self(), name);
    int poll = epoll_create1(0);
    waiting++;
    for (size_t size = 100;; size++) sink += (unsigned)wait_by_register(poll, size);
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, run, "runner");
    pthread_create(&thread, NULL, twin, "twin-1");
    pthread_create(&thread, NULL, twin, "twin-2");
    pthread_create(&thread, NULL, by_register, "register");
    while (waiting != 3) usleep(100);
    printf("ready\n");
    fflush(stdout);
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        printf("interrupted %d\n", interrupted);
        fflush(stdout);
    }
    return 0;
}
