/* shuffle_loops -- the bodies of both sets of functions of shuffle.h. Private to this folder.
 *
 * Whole elements are loaded and stored and bytes picked by shifts, which the compiler turns into
 * packing and unpacking of vectors. A loop over single bytes with a stride stays one byte a step
 * and takes a quarter of zstd's own time. */
#ifndef KILN_SCHEMA_SHUFFLE_LOOPS_H
#define KILN_SCHEMA_SHUFFLE_LOOPS_H

#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "byte b of an element is its bits from 8 b");

/* Our build has OpenMP. Without it the header still compiles alone. */
#ifdef _OPENMP
#define SHUFFLE_SIMD _Pragma("omp simd")
#else
#define SHUFFLE_SIMD
#endif

/* always_inline: the bodies are compiled anew in each set, with what that set may use. */
#define KILN_BODY static inline __attribute__((always_inline)) void

/* The loops are alike but for the element's type. */
#define KILN_GATHER(type)                                                                \
    KILN_BODY gather_##type(const unsigned char *restrict raw, size_t n, unsigned shift, \
                            unsigned char *restrict out)                                 \
    {                                                                                    \
        SHUFFLE_SIMD for (size_t i = 0; i < n; i++)                                      \
        {                                                                                \
            type v;                                                                      \
            memcpy(&v, raw + i * sizeof v, sizeof v);                                    \
            out[i] = (unsigned char)(v >> shift);                                        \
        }                                                                                \
    }
KILN_GATHER(uint16_t)
KILN_GATHER(uint32_t)
KILN_GATHER(uint64_t)

KILN_BODY join_2(const unsigned char *restrict in, size_t n, unsigned char *restrict raw)
{
    SHUFFLE_SIMD
    for (size_t i = 0; i < n; i++) {
        const uint16_t v = (uint16_t)(in[i] | in[n + i] << 8);
        memcpy(raw + i * sizeof v, &v, sizeof v);
    }
}

KILN_BODY join_4(const unsigned char *restrict in, size_t n, unsigned char *restrict raw)
{
    const unsigned char *in1 = in + n, *in2 = in1 + n, *in3 = in2 + n;
    SHUFFLE_SIMD
    for (size_t i = 0; i < n; i++) {
        const uint32_t v = (uint32_t)in[i] | (uint32_t)in1[i] << 8 | (uint32_t)in2[i] << 16 |
                           (uint32_t)in3[i] << 24;
        memcpy(raw + i * sizeof v, &v, sizeof v);
    }
}

KILN_BODY join_8(const unsigned char *restrict in, size_t n, unsigned char *restrict raw)
{
    SHUFFLE_SIMD
    for (size_t i = 0; i < n; i++) {
        uint64_t v = 0;
        for (unsigned b = 0; b < 8; b++) v |= (uint64_t)in[b * n + i] << (8 * b);
        memcpy(raw + i * sizeof v, &v, sizeof v);
    }
}

KILN_BODY gather(const unsigned char *raw, size_t n, size_t elem, size_t b, unsigned char *out)
{
    const unsigned shift = 8 * (unsigned)b;
    if (elem == 2)
        gather_uint16_t(raw, n, shift, out);
    else if (elem == 4)
        gather_uint32_t(raw, n, shift, out);
    else
        gather_uint64_t(raw, n, shift, out);
}

KILN_BODY join(const unsigned char *planes, size_t n, size_t elem, unsigned char *raw)
{
    if (elem == 2)
        join_2(planes, n, raw);
    else if (elem == 4)
        join_4(planes, n, raw);
    else
        join_8(planes, n, raw);
}

#endif
