/* palette_lanes -- the one loop of the search that a compiler does not find by itself: products of
 * pairs of 16-bit values, added in 32 bits (pmaddwd). AVX2 or SSE2, by what the file is compiled
 * for; elsewhere plain C. All of it is exact. */
#ifndef KILN_KERNELS_PALETTE_LANES_H
#define KILN_KERNELS_PALETTE_LANES_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
enum { LANES = 8 };
typedef __m256i lanes;
static inline lanes lanes_zero(void) { return _mm256_setzero_si256(); }
static inline lanes lanes_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
static inline void lanes_store(void *p, lanes v) { _mm256_storeu_si256((__m256i *)p, v); }
static inline lanes lanes_all(uint32_t word) { return _mm256_set1_epi32((int)word); }
static inline lanes lanes_add_products(lanes sum, lanes a, lanes b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}
static inline lanes lanes_minus_twice(lanes a, lanes b)
{
    return _mm256_sub_epi32(a, _mm256_add_epi32(b, b));
}
static inline uint32_t lanes_above(lanes a, lanes b) /* a bit for each */
{
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(a, b)));
}
#elif defined(__SSE2__)
#include <emmintrin.h>
enum { LANES = 4 };
typedef __m128i lanes;
static inline lanes lanes_zero(void) { return _mm_setzero_si128(); }
static inline lanes lanes_load(const void *p) { return _mm_loadu_si128((const __m128i *)p); }
static inline void lanes_store(void *p, lanes v) { _mm_storeu_si128((__m128i *)p, v); }
static inline lanes lanes_all(uint32_t word) { return _mm_set1_epi32((int)word); }
static inline lanes lanes_add_products(lanes sum, lanes a, lanes b)
{
    return _mm_add_epi32(sum, _mm_madd_epi16(a, b));
}
static inline lanes lanes_minus_twice(lanes a, lanes b)
{
    return _mm_sub_epi32(a, _mm_add_epi32(b, b));
}
static inline uint32_t lanes_above(lanes a, lanes b)
{
    return (uint32_t)_mm_movemask_ps(_mm_castsi128_ps(_mm_cmpgt_epi32(a, b)));
}
#else
enum { LANES = 4 };
typedef struct {
    uint32_t v[LANES];
} lanes;
static inline int32_t low_half(uint32_t word) { return (int16_t)(word & 0xffff); }
static inline int32_t high_half(uint32_t word) { return (int16_t)(word >> 16); }
static inline lanes lanes_zero(void) { return (lanes){{0}}; }
static inline lanes lanes_load(const void *p)
{
    lanes l;
    memcpy(&l, p, sizeof l);
    return l;
}
static inline void lanes_store(void *p, lanes v) { memcpy(p, &v, sizeof v); }
static inline lanes lanes_all(uint32_t word) { return (lanes){{word, word, word, word}}; }
static inline lanes lanes_add_products(lanes sum, lanes a, lanes b)
{
    for (int i = 0; i < LANES; i++)
        sum.v[i] +=
            (uint32_t)(low_half(a.v[i]) * low_half(b.v[i]) + high_half(a.v[i]) * high_half(b.v[i]));
    return sum;
}
static inline lanes lanes_minus_twice(lanes a, lanes b)
{
    for (int i = 0; i < LANES; i++) a.v[i] -= 2 * b.v[i];
    return a;
}
static inline uint32_t lanes_above(lanes a, lanes b)
{
    uint32_t bits = 0;
    for (int i = 0; i < LANES; i++) bits |= (uint32_t)((int32_t)a.v[i] > (int32_t)b.v[i]) << i;
    return bits;
}
#endif

#endif
