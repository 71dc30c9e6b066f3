/* tame -- the arithmetic of kernels/math/tame_math.h on a GPU against the compiler's own, for
 * tame_test.c. */
#ifndef KILN_TESTS_GPU_TAME_H
#define KILN_TESTS_GPU_TAME_H

#include "base/extern_c.h"
#include "base/status.h"

#include <stdint.h>

KILN_C_BEGIN

/* Of how many operands the bits differ. */
typedef struct {
    /* of every float from 2^-100 to 2^100, and of both signs up to 80 */
    uint64_t inverse, root, exp, sigmoid;
    uint64_t quotient; /* of n pairs, */
    /* and of n products, off by -2 to 2 units in the last place, by a factor: near the middle
     * between two results, or their border */
    uint64_t product;
} tame_misses;

kiln_status tame_on_device(int device, uint64_t n, tame_misses *out,
                           kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
