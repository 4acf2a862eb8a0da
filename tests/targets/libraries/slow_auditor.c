// An auditor (LD_AUDIT, rtld-audit(7)) that takes half a second before the loader maps the libraries of the program
// that SLOW names.
#define _GNU_SOURCE
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

unsigned la_version(unsigned version) {
    char self[4096] = "";
    const char *slow = getenv("SLOW");
    if (!slow || readlink("/proc/self/exe", self, sizeof self - 1) < 0 || strcmp(self, slow) != 0) return version;
    for (double end = now() + 0.5; now() < end;) usleep(10000);
    return version;
}
