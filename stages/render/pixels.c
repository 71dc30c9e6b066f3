/* pixels -- see pixels.h. */
#include "stages/render/pixels.h"

#include "base/memory.h"

#include <stdlib.h>

kiln_status kiln_pixels_hash(const float *rgba, uint64_t pixels, unsigned threads, kiln_hash *out, kiln_error *err)
{
    const uint64_t n = (pixels + KILN_PIXELS_PIECE - 1) / KILN_PIXELS_PIECE;
    kiln_hash *pieces;
    KILN_TRY(KILN_ALLOC_UNSET(&pieces, n, "hashes of a picture", err));
#pragma omp parallel for schedule(static) num_threads((int)threads)
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t first = i * KILN_PIXELS_PIECE, left = pixels - first;
        const uint64_t count = left < KILN_PIXELS_PIECE ? left : KILN_PIXELS_PIECE;
        pieces[i] = kiln_hash_of(rgba + 4 * first, (size_t)count * 4 * sizeof *rgba);
    }
    *out = kiln_hash_of(pieces, (size_t)n * sizeof *pieces);
    free(pieces);
    return KILN_OK;
}
