/*
 * assembly: calls a function that is written in assembly, asm_work(3, 39), once for each line of its input.
 *
 * Prints "ready", then "result 42" for each line.
 */
#include <stdio.h>

long asm_work(long a, long b);

int main(void) {
    char line[64];

    printf("ready\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        printf("result %ld\n", asm_work(3, 39));
        fflush(stdout);
    }
    return 0;
}
