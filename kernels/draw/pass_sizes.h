/* pass_sizes -- sizes of recent pictures of a scene, from which the next one's buffers are
 * estimated. The largest size is kept and fades slowly: if views come in no order, a large one
 * after a small one would otherwise exceed its buffers again and again. */
#ifndef KILN_KERNELS_PASS_SIZES_H
#define KILN_KERNELS_PASS_SIZES_H

#include "base/extern_c.h"

#include <stdint.h>

KILN_C_BEGIN

typedef struct {
    unsigned char scene[16]; /* kiln_draw_chunk_header.key of all chunks */
    uint64_t visible, pairs; /* pairs is 0 if not known */
} kiln_pass_sizes;

/* Returns the size to remember after a picture of size `last`. */
static inline uint64_t kiln_pass_faded(uint64_t most, uint64_t last)
{
    const uint64_t faded = most - most / 64;
    return last > faded ? last : faded;
}

/* Returns the capacity for the next picture: a sixteenth more and a little. Not more, because
 * unused places are sorted, too. */
static inline uint64_t kiln_pass_bound(uint64_t last)
{
    enum { LITTLE = 256 };
    return last + last / 16 + LITTLE;
}

KILN_C_END

#endif
