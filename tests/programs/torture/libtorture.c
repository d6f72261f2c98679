/* More functions for the random programs to call. */
#include "calls.h"

#include <immintrin.h>

/* Results in ymm0 come back from a function of this library, called through its import. */
__attribute__((target("avx"))) __m256d torture_ymm(__m256d a, __m256d b)
{
    return _mm256_add_pd(_mm256_mul_pd(a, b), a);
}

__attribute__((target("avx"))) static double with_avx(const double *eight)
{
    double out[4];
    _mm256_storeu_pd(out, torture_ymm(_mm256_loadu_pd(eight), _mm256_loadu_pd(eight + 4)));
    return out[0] + out[1] * 2 + out[2] * 3 + out[3] * 4;
}

double torture_vectors(const double *eight)
{
    if (__builtin_cpu_supports("avx"))
        return with_avx(eight);
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (eight[i] * eight[i + 4] + eight[i]) * (i + 1);
    return sum;
}

uint64_t torture_apply(uint64_t (*function)(void *, uint64_t), void *context, uint64_t value)
{
    uint64_t result = function(context, value);
    __asm__ volatile("" ::: "memory");
    return result * 3 + 1;
}

long torture_pass(long a, long b) { return a * 7 ^ b; }
