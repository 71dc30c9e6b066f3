/* block_bits -- see block_bits.h. */
#include "stages/chunk/block_bits.h"

#include "base/minmax.h"

#include <inttypes.h>
#include <stdio.h>

enum { LEAST_CHUNKS = 64 }; /* so that all threads have chunks of a piece to describe */

uint64_t kiln_bits_chunks(uint32_t n_blocks)
{
    return kiln_max_u64(KILN_BITS_PIECE / kiln_max_u64(kiln_bits_bytes(n_blocks), 1), LEAST_CHUNKS);
}

void kiln_bits_name(uint64_t i, char out[KILN_BITS_NAME]) { (void)snprintf(out, KILN_BITS_NAME, "blocks %" PRIu64, i); }

bool kiln_bits_are_sound(const unsigned char *bits, uint64_t n, uint32_t n_blocks)
{
    const uint64_t bytes = kiln_bits_bytes(n_blocks);
    if (n_blocks % 8 == 0) return true;
    for (uint64_t i = 0; i < n; i++)
        if (bits[i * bytes + bytes - 1] >> n_blocks % 8) return false;
    return true;
}
