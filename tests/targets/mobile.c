/*
 * mobile [THREADS]: loads and unloads libraries on request, and calls their functions. With THREADS, so many others
 * call do_work all the time.
 *
 * Prints "ready PID" and reads lines:
 *
 *     open N PATH         dlopen as library N
 *     space N PATH        the same in a namespace of its own
 *     close N             dlclose
 *     block N             like close, and something else is mapped where the library's code was
 *     call N NAME TIMES   calls a function of library N
 *     leap N NAME         calls a function of library N that calls back, and leaves it by longjmp
 *
 * For each it prints "done RESULT" (a count of calls, or 0), or "failed WHY".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *libraries[16];
static jmp_buf out;
static volatile int busy = 1;

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n + 1;
}

static void *work(void *calls) {
    while (busy) *(long *)calls = do_work(*(long *)calls);
    return NULL;
}

static void leave(void) { longjmp(out, 1); }

static int answer(long result) { return printf("done %ld\n", result); }

static int failed(void) {
    const char *why = dlerror();

    return printf("failed %s\n", why ? why : "?");
}

static int block(int n) {
    struct link_map *map;
    void *start;

    if (dlinfo(libraries[n], RTLD_DI_LINKMAP, &map)) return failed();
    start = (void *)map->l_addr;
    if (dlclose(libraries[n])) return failed();
    return mmap(start, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == start
               ? answer(0)
               : printf("failed it is still there\n");
}

static int serve(const char *order, int n, const char *word, long times) {
    if (strcmp(order, "open") == 0) {
        libraries[n] = dlopen(word, RTLD_NOW);
        return libraries[n] ? answer(0) : failed();
    }
    if (strcmp(order, "space") == 0) {
        libraries[n] = dlmopen(LM_ID_NEWLM, word, RTLD_NOW);
        return libraries[n] ? answer(0) : failed();
    }
    if (strcmp(order, "close") == 0) return dlclose(libraries[n]) ? failed() : answer(0);
    if (strcmp(order, "block") == 0) return block(n);
    void *function = dlsym(libraries[n], word);

    if (!function) return failed();
    if (strcmp(order, "leap") == 0) {
        if (setjmp(out)) return answer(1);
        ((void (*)(void (*)(void)))function)(leave);
        return answer(0);
    }
    for (long i = 0; i < times; i++)
        if (((long (*)(long))function)(i) != 2 * i) return printf("failed a wrong result\n");
    return answer(times);
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 0;
    pthread_t id[16];
    long calls[16] = {0};
    char line[4096], order[32], word[4000];
    int n;
    long times;

    for (int i = 0; i < threads; i++)
        if (pthread_create(&id[i], NULL, work, &calls[i])) return 4;
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        order[0] = word[0] = 0;
        n = 0;
        times = 0;
        sscanf(line, "%31s %d %3999s %ld", order, &n, word, &times);
        if (n >= 0 && n < 16) serve(order, n, word, times);
        fflush(stdout);
    }
    busy = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(id[i], NULL);
        printf("worked %ld\n", calls[i]);
    }
    return 0;
}
