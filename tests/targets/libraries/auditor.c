// A library that the loader calls during its work (LD_AUDIT, rtld-audit(7)). It only listens.
#define _GNU_SOURCE
#include <link.h>

unsigned la_version(unsigned version) {
    (void)version;
    return LAV_CURRENT;
}
