/* pixels -- see pixels.h. */
#include "stages/render/pixels.h"

#include "base/memory.h"

#include <stdlib.h>

_Static_assert(sizeof(kiln_hash) == KILN_PIXEL_HASH_BYTES,
               "hashes of pieces lie one behind the other");

kiln_status kiln_pixels_hash(const float *rgba, uint64_t pixels, unsigned threads, kiln_hash *out,
                             kiln_error *err)
{
    const uint64_t n = kiln_pixel_pieces(pixels);
    kiln_hash *pieces;
    KILN_TRY(KILN_ALLOC_UNSET(&pieces, n, "hashes of a picture", err));
#pragma omp parallel for schedule(static) num_threads((int)threads)
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t first = i * KILN_PIXEL_PIECE, left = pixels - first;
        const uint64_t count = left < KILN_PIXEL_PIECE ? left : KILN_PIXEL_PIECE;
        pieces[i] = kiln_hash_of(rgba + 4 * first, (size_t)count * 4 * sizeof *rgba);
    }
    *out = kiln_pixels_hash_of_pieces(pieces->bytes, n);
    free(pieces);
    return KILN_OK;
}

kiln_hash kiln_pixels_hash_of_pieces(const unsigned char *hashes, uint64_t pieces)
{
    return kiln_hash_of(hashes, (size_t)pieces * KILN_PIXEL_HASH_BYTES);
}
