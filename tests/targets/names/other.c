/* other: a static function with the name of another file's. */
#include "names.h"

__attribute__((noinline)) static int same_name(int n) {
    __asm__ volatile("" ::: "memory");
    return n * 5;
}

int other_file(int n) { return same_name(n) + 1; }
