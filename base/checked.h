/* checked -- products, sums and narrowings that report overflow. They return true if the result
 * fits. */
#ifndef KILN_BASE_CHECKED_H
#define KILN_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool kiln_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}
static inline bool kiln_add(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool kiln_to_u32(uint64_t v, uint32_t *out)
{
    *out = (uint32_t)v;
    return v <= UINT32_MAX;
}
static inline bool kiln_to_size(uint64_t v, size_t *out)
{
    *out = (size_t)v;
    return v <= SIZE_MAX;
}
/* Returns a / b, rounded up. */
static inline uint64_t kiln_div_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

#endif
