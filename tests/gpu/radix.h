/* radix -- the radix sort of the CUDA siblings (kernels/sort/radix_cuda.cuh) on arrays of host
 * memory, for radix_test.c. */
#ifndef KILN_TESTS_GPU_RADIX_H
#define KILN_TESTS_GPU_RADIX_H

#include "base/extern_c.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

KILN_C_BEGIN

/* One sort. Keys of 2, 4 or 8 bytes are the lowest bytes of each element. */
typedef struct {
    /* room: what the sort is told that there may be; n is known to the device alone */
    uint64_t n, capacity;
    unsigned key_bytes, bits;
    bool wide;        /* counts as for 2^30 pairs and more */
    bool masks;       /* ranks by masks in shared memory, else by ballots */
    uint64_t *keys;   /* [capacity] in, out */
    uint32_t *values; /* [capacity] in, out */
} radix_call;

/* Sorts the first n pairs on the device by the lowest bits of their keys; the others come back as
 * they were. KILN_E_DEVICE, KILN_E_CAP: no memory. */
kiln_status radix_on_device(int device, const radix_call *c, kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
