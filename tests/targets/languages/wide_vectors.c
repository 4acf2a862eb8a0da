/* wide_vectors: vectors of 32 bytes, and of 64 where the processor has them, in registers. Prints the line of each
 * call. */
#include <immintrin.h>
#include <stdio.h>

struct box {
    __m256d v;
};

__attribute__((noinline)) __m256d sum(__m256d v, __m128d w, __m256i n, int k) {
    __asm__ volatile("" : : "x"(n));
    return v + w[1] + k;
}

__attribute__((noinline)) struct box boxed(struct box b, int n) {
    __asm__ volatile("");
    b.v += n;
    return b;
}

#ifdef __AVX512F__
/* gcc's debug information of __m512d lacks the size. */
typedef double eight __attribute__((vector_size(64)));
typedef float sixteen __attribute__((vector_size(64)));

__attribute__((noinline)) __m512d unsized(__m512d v, __m128d w) {
    __asm__ volatile("" : : "v"(w));
    return v;
}

__attribute__((noinline)) eight wide(eight v, sixteen w) {
    __asm__ volatile("" : : "v"(w));
    return v + v;
}
#endif

int main(void) {
    struct box b = {_mm256_setr_pd(1, 2, 3, 4)};
    b.v = sum(b.v, _mm_setr_pd(5, 6), _mm256_setr_epi64x(-1, 2, -3, 4), 7);
    puts("sum(v=[1, 2, 3, 4], w=[5, 6], n=[-1, 2, -3, 4], k=7) returned [14, 15, 16, 17]");
    boxed(b, 8);
    puts("boxed(b={.v=[14, 15, 16, 17]}, n=8) returned {.v=[22, 23, 24, 25]}");
    _mm256_zeroupper();
    sum(_mm256_setzero_pd(), _mm_setr_pd(0, 0), _mm256_setzero_si256(), 0);
    puts("sum(v=[0, 0, 0, 0], w=[0, 0], n=[0, 0, 0, 0], k=0) returned [0, 0, 0, 0]");
#ifdef __AVX512F__
    wide((eight){1, 2, 3, 4, 5, 6, 7, 8}, (sixteen)_mm512_set1_ps(1.5F));
    puts("wide(v=[1, 2, 3, 4, 5, 6, 7, 8], w=[1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, "
         "1.5, 1.5]) "
         "returned [2, 4, 6, 8, 10, 12, 14, 16]");
    unsized(_mm512_setr_pd(1, 2, 3, 4, 5, 6, 7, 8), _mm_setr_pd(9, 10));
#endif
    return 0;
}
