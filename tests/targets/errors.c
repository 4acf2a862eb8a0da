/*
 * errors: what functions of the C library return, and errno behind them.
 *
 * Prints "ready"; for each line "PATH" it calls open and close, in a thread of its own as well, and prints "open R
 * errno E" and "close R errno E", errno being 7 before each call. At the end of its input it leaves with status 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void *call(void *path) {
    int result, error;

    errno = 7;
    result = open(path, O_RDONLY);
    error = errno;
    printf("open %d errno %d\n", result < 0 ? result : 0, error);
    errno = 7;
    result = close(result);
    error = errno;
    printf("close %d errno %d\n", result, error);
    fflush(stdout);
    return NULL;
}

int main(void) {
    char line[256];
    pthread_t thread;

    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        call(line);
        if (pthread_create(&thread, NULL, call, line)) return 4;
        pthread_join(thread, NULL);
    }
    return 0;
}
