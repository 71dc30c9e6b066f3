/* pixel_hashes on the CPU: the arithmetic of the GPU, step by step, and the proof against libxxhash
 * (tests/unit). Stages hash pictures in host memory by libxxhash, which is faster. */
#include "kernels/pixel_hashes/pixel_hashes.h"

#include "kernels/pixel_hashes/pixel_hashes_math.h"

#include <string.h>

kiln_pixel_hashes_fn KILN_CPU(pixel_hashes);

static void add_stripe(uint64_t lanes[KILN_XXH_LANES], const unsigned char *at, unsigned secret_at)
{
    uint64_t words[KILN_XXH_LANES];
    memcpy(words, at, sizeof words);
    for (unsigned i = 0; i < KILN_XXH_LANES; i++)
        lanes[i] += kiln_xxh_stripe(words[i], words[i ^ 1], kiln_xxh_secret(secret_at + 8 * i));
}

static void hash_piece(const unsigned char *at, const kiln_xxh_piece *p, unsigned char *out)
{
    uint64_t lanes[KILN_XXH_LANES];
    const unsigned char *const last = at + p->bytes - KILN_XXH_STRIPE_BYTES;
    for (unsigned i = 0; i < KILN_XXH_LANES; i++) lanes[i] = kiln_xxh_start(i);
    for (uint32_t b = 0; b < p->blocks; b++) {
        for (unsigned s = 0; s < KILN_XXH_STRIPES; s++, at += KILN_XXH_STRIPE_BYTES)
            add_stripe(lanes, at, 8 * s);
        for (unsigned i = 0; i < KILN_XXH_LANES; i++)
            lanes[i] = kiln_xxh_scramble(lanes[i], kiln_xxh_secret(KILN_XXH_SCRAMBLE_AT + 8 * i));
    }
    for (uint32_t s = 0; s < p->stripes; s++, at += KILN_XXH_STRIPE_BYTES)
        add_stripe(lanes, at, 8 * s);
    add_stripe(lanes, last, KILN_XXH_LAST_AT);
    kiln_xxh_end(lanes, p->bytes, out);
}

/* kiln_pixel_hashes_cpu, kiln_pixel_hashes_cpu_avx2 */
kiln_status KILN_CPU(pixel_hashes)(const kiln_exec *x, const kiln_pixel_hashes_args *a, void *work,
                                   size_t *work_bytes, kiln_error *err)
{
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    KILN_TRY(kiln_pixel_hashes_check(a, err));
#pragma omp parallel for num_threads(x->threads)
    for (uint64_t i = 0; i < kiln_pixel_pieces(a->pixels); i++) {
        const kiln_xxh_piece p = kiln_xxh_piece_at(a->pixels, i);
        hash_piece((const unsigned char *)a->rgba + p.first, &p,
                   a->hashes + i * KILN_PIXEL_HASH_BYTES);
    }
    return KILN_OK;
}
