/* pixel_hashes -- hashes a picture by XXH3-128, piece by piece, so that a picture on a GPU need not
 * be copied to be hashed.
 *
 *   rgba    [pixels][4]   f32  in   aligned to 16 bytes
 *   hashes  [pieces][16]  u8   out  each piece's hash in canonical form (high half first, big
 *                                   endian), as kiln_hash_of gives it
 *
 * A piece has KILN_PIXEL_PIECE pixels, the last one what is left. Both siblings give the bytes of
 * libxxhash (seed 0, its own secret). Pictures whose last piece has fewer than
 * KILN_PIXEL_PIECE_LEAST pixels are refused: XXH3 hashes up to 240 bytes in other ways, which are
 * not worth their code here. Ask kiln_pixel_hashes_can first.
 *
 * Pointers, work, threads: as in knn.h.
 * KILN_E_INPUT: the last piece is too short.
 *
 * Source: the xxHash specification (Cyan4973/xxHash, doc/xxhash_spec.md); see DESIGN.md.
 */
#ifndef KILN_KERNELS_PIXEL_HASHES_H
#define KILN_KERNELS_PIXEL_HASHES_H

#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

enum {
    /* pixels of a piece, 1 MiB; part of a picture's digest (SCHEMA.md) */
    KILN_PIXEL_PIECE = 1 << 16,
    KILN_PIXEL_PIECE_LEAST = 16,
    KILN_PIXEL_HASH_BYTES = 16,
};

typedef struct {
    uint64_t pixels;
    const float *rgba;
    unsigned char *hashes;
} kiln_pixel_hashes_args;

typedef kiln_status kiln_pixel_hashes_fn(const kiln_exec *x, const kiln_pixel_hashes_args *a,
                                         void *work, size_t *work_bytes, kiln_error *err);

/* Returns how many pieces a picture has. */
static inline uint64_t kiln_pixel_pieces(uint64_t pixels)
{
    return pixels / KILN_PIXEL_PIECE + (pixels % KILN_PIXEL_PIECE != 0);
}

/* Says whether the operation can hash a picture of so many pixels. */
static inline bool kiln_pixel_hashes_can(uint64_t pixels)
{
    const uint64_t last = pixels % KILN_PIXEL_PIECE;
    return last == 0 || last >= KILN_PIXEL_PIECE_LEAST;
}

kiln_status kiln_pixel_hashes_check(const kiln_pixel_hashes_args *a,
                                    kiln_error *err) KILN_MUST_CHECK;

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_pixel_hashes(A) \
    A(IN, rgba, 4 * a->pixels)      \
    A(OUT, hashes, KILN_PIXEL_HASH_BYTES *kiln_pixel_pieces(a->pixels))

KILN_C_END

#endif
