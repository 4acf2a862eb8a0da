/* wide_vectors: vectors of 32 bytes, in registers. */
#include <immintrin.h>

struct box {
    __m256d v;
};

__attribute__((noinline)) double sum(__m256d v, __m128d w, int n) {
    __asm__ volatile("");
    return v[3] + w[1] + n;
}

__attribute__((noinline)) double boxed(struct box b, int n) {
    __asm__ volatile("");
    return b.v[2] + n;
}

int main(void) {
    struct box b = {_mm256_setr_pd(1, 2, 3, 4)};
    return sum(b.v, _mm_setr_pd(5, 6), 7) + boxed(b, 8) == 0;
}
