/* cpu_fma -- chains that do not wait for each other: two units of four cycles need eight; twelve
 * leave room. */
#include "tests/bench/cpu_fma.h"

#include <immintrin.h>

float cpu_fma_chains(uint64_t steps)
{
    __m256 sum[CPU_FMA_CHAINS];
    const __m256 factor = _mm256_set1_ps(0.999f), term = _mm256_set1_ps(0.001f);
    for (int i = 0; i < CPU_FMA_CHAINS; i++) sum[i] = _mm256_set1_ps((float)i);
    for (uint64_t s = 0; s < steps; s++)
        for (int i = 0; i < CPU_FMA_CHAINS; i++) sum[i] = _mm256_fmadd_ps(sum[i], factor, term);
    for (int i = 1; i < CPU_FMA_CHAINS; i++) sum[0] = _mm256_add_ps(sum[0], sum[i]);
    return _mm256_cvtss_f32(sum[0]);
}
