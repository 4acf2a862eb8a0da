/*
 * naps: sleeps in semtimedop(2) for some microseconds, again and again, and runs for as long in between: when one looks
 * twice, it is asleep in a call whose time-out would begin anew if that were interrupted, or it is not.
 *
 * Prints "ready PID", and when it has got a line "naps N", where N is how many there were; it leaves with status 0.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/sem.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) long do_work(long n) {
    __asm__ volatile("" ::: "memory");
    return n + 1;
}

int main(void) {
    struct sembuf take = {0, -1, 0};
    struct timespec time_out = {0, 20000};
    struct pollfd input = {0, POLLIN, 0};
    int semaphores = semget(IPC_PRIVATE, 1, 0600);
    long naps = 0;

    if (semaphores < 0) return 2;
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    while (poll(&input, 1, 0) == 0) {
        if (semtimedop(semaphores, &take, 1, &time_out) == 0 || errno != EAGAIN) return 1;
        naps = do_work(naps);
        for (volatile int i = 0; i < 20000; i++) continue;
    }
    printf("naps %ld\n", naps);
    semctl(semaphores, 0, IPC_RMID);
    return 0;
}
