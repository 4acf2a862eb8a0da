/*
 * A library for the target mobile. Its constructor calls NAME_made once, its destructor NAME_ended. FILL moves the
 * functions: a library of the same size class with its code elsewhere.
 */
#ifndef NAME
#define NAME part
#endif
#define JOIN2(a, b) a##_##b
#define JOIN(a, b) JOIN2(a, b)

#ifdef FILL
__asm__(".skip 512, 0x90");
#endif

__attribute__((noinline)) long JOIN(NAME, made)(void) {
    __asm__ volatile("" ::: "memory");
    return 1;
}

__attribute__((noinline)) long JOIN(NAME, ended)(void) {
    __asm__ volatile("" ::: "memory");
    return 2;
}

__attribute__((noinline)) long JOIN(NAME, work)(long n) {
    __asm__ volatile("" ::: "memory");
    return 2 * n;
}

__attribute__((noinline)) void JOIN(NAME, leap)(void (*leave)(void)) {
    leave();
    __asm__ volatile("" ::: "memory");
}

__attribute__((constructor)) static void begin(void) { JOIN(NAME, made)(); }
__attribute__((destructor)) static void end(void) { JOIN(NAME, ended)(); }
