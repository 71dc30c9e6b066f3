/* pixel_hashes on CUDA, in two launches.
 *
 *   sum_blocks     A warp sums a block of 1,024 bytes: 32 threads read 512 bytes at a time, a
 *                  thread two neighbouring words of one stripe, which are what its two lanes need.
 *                  All blocks of a picture are independent, so this runs at the speed of the
 *                  memory.
 *   hash_pieces    Eight threads have the accumulators of a piece and go through the sums of its
 *                  1,023 blocks. The chain is five instructions long a block; 32 sums are read
 *                  ahead, so that it waits little for memory. 8.3 million pixels are
 * 127 pieces: 32 warps, some ten thousand steps of a processor, whatever the size of the picture.
 *
 * In between are 64 bytes for each 1,024 of the picture.
 */
#include "kernels/pixel_hashes/pixel_hashes.h"

#include "kernels/cuda.cuh"
#include "kernels/pixel_hashes/pixel_hashes_math.h"

namespace
{

enum {
    LANES = KILN_XXH_LANES,
    WARP = 32,
    BLOCK = 256,
    PAIRS = LANES / 2,           /* threads of a stripe */
    STRIPES_READ = WARP / PAIRS, /* by a warp at once */
    TURNS = KILN_XXH_STRIPES / STRIPES_READ,
    AHEAD = 32,                    /* sums that a lane reads before it uses them */
    PIECES_OF_WARP = WARP / LANES, /* in hash_pieces */
};

__device__ inline uint64_t over_stripes(uint64_t v)
{
    for (int step = PAIRS; step < WARP; step *= 2) v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
}

/* sums [blocks of the picture][LANES]; that of a block which is not full stays undefined. */
__global__ void __launch_bounds__(BLOCK)
    sum_blocks(uint64_t pixels, const ulonglong2 *words, uint64_t blocks, ulonglong2 *sums)
{
    const unsigned thread = threadIdx.x % WARP, pair = thread % PAIRS, stripe = thread / PAIRS;
    uint64_t secret[TURNS][2];
    for (unsigned t = 0; t < TURNS; t++)
        for (unsigned k = 0; k < 2; k++)
            secret[t][k] = kiln_xxh_secret(8 * (t * STRIPES_READ + stripe + 2 * pair + k));
    for (uint64_t b = kiln::thread_index() / WARP; b < blocks; b += kiln::thread_count() / WARP) {
        const kiln_xxh_piece p = kiln_xxh_piece_at(pixels, b / KILN_XXH_PIECE_BLOCKS);
        if (b % KILN_XXH_PIECE_BLOCKS >= p.blocks) continue; /* all of a warp alike */
        uint64_t left = 0, right = 0;
        ulonglong2 w[TURNS];
        for (unsigned t = 0; t < TURNS; t++)
            w[t] = words[b * (KILN_XXH_BLOCK_BYTES / sizeof *words) + t * WARP + thread];
        for (unsigned t = 0; t < TURNS; t++) {
            left += kiln_xxh_stripe(w[t].x, w[t].y, secret[t][0]);
            right += kiln_xxh_stripe(w[t].y, w[t].x, secret[t][1]);
        }
        left = over_stripes(left);
        right = over_stripes(right);
        if (stripe == 0) sums[b * PAIRS + pair] = make_ulonglong2(left, right);
    }
}

/* A lane's accumulator after all full blocks. What has an order is the scrambling alone: sums are
 * read a group ahead, and groups but the last are whole, so that no step has a condition. */
__device__ uint64_t chain(const uint64_t *sums, uint32_t blocks, unsigned lane)
{
    const uint64_t secret = kiln_xxh_secret(KILN_XXH_SCRAMBLE_AT + 8 * lane);
    uint64_t acc = kiln_xxh_start(lane), next[AHEAD];
    if (blocks == 0) return acc;
#pragma unroll
    for (unsigned i = 0; i < AHEAD; i++) next[i] = sums[uint64_t(min(i, blocks - 1)) * LANES];
    uint32_t b = 0;
    for (; b + AHEAD <= blocks; b += AHEAD) {
        uint64_t now[AHEAD];
#pragma unroll
        for (unsigned i = 0; i < AHEAD; i++) now[i] = next[i];
#pragma unroll
        for (unsigned i = 0; i < AHEAD; i++)
            next[i] = sums[uint64_t(min(b + AHEAD + i, blocks - 1)) * LANES];
#pragma unroll
        for (unsigned i = 0; i < AHEAD; i++) acc = kiln_xxh_scramble(acc + now[i], secret);
    }
#pragma unroll
    for (unsigned i = 0; i < AHEAD; i++)
        if (b + i < blocks) acc = kiln_xxh_scramble(acc + next[i], secret);
    return acc;
}

/* Stripes after the full blocks, and the last one. words: the piece's. */
__device__ uint64_t stripes_left(const uint64_t *words, const kiln_xxh_piece &p, unsigned lane)
{
    uint64_t sum = 0;
    for (uint32_t s = 0; s < p.stripes; s++) {
        const uint64_t *const w = words + (uint64_t(p.blocks) * KILN_XXH_STRIPES + s) * LANES;
        sum += kiln_xxh_stripe(w[lane], w[lane ^ 1], kiln_xxh_secret(8 * (s + lane)));
    }
    const uint64_t *const last = words + p.bytes / sizeof *words - LANES;
    return sum + kiln_xxh_stripe(last[lane], last[lane ^ 1],
                                 kiln_xxh_secret(KILN_XXH_LAST_AT + 8 * lane));
}

/* All threads of a warp take part to the end; those beyond the last piece do its work once more and
 * write nothing. */
__global__ void __launch_bounds__(WARP)
    hash_pieces(uint64_t pixels, const uint64_t *words, uint64_t pieces, const uint64_t *sums,
                unsigned char *hashes)
{
    const unsigned lane = threadIdx.x % LANES;
    const uint64_t wanted = uint64_t(blockIdx.x) * PIECES_OF_WARP + threadIdx.x / LANES,
                   i = wanted < pieces ? wanted : pieces - 1;
    const kiln_xxh_piece p = kiln_xxh_piece_at(pixels, i);
    const uint64_t acc = chain(sums + i * KILN_XXH_PIECE_BLOCKS * LANES + lane, p.blocks, lane) +
                         stripes_left(words + p.first / sizeof *words, p, lane);
    uint64_t lanes[LANES];
#pragma unroll
    for (int k = 0; k < LANES; k++) lanes[k] = __shfl_sync(0xffffffffu, acc, k, LANES);
    if (lane == 0 && wanted < pieces)
        kiln_xxh_end(lanes, p.bytes, hashes + i * KILN_PIXEL_HASH_BYTES);
}

} // namespace

extern "C" kiln_status kiln_pixel_hashes_cuda(const kiln_exec *x, const kiln_pixel_hashes_args *a,
                                              void *work, size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "pixel_hashes");
    CUDA_ENTER(entry.guard);
    kiln_carve c = {static_cast<char *>(work), 0};
    const uint64_t pieces = kiln_pixel_pieces(a->pixels);
    /* the one that is left over is not full */
    const uint64_t blocks = a->pixels / (KILN_XXH_BLOCK_BYTES / 16);
    ulonglong2 *const sums = kiln::take<ulonglong2>(&c, blocks * PAIRS);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("pixel_hashes", c.used, *work_bytes, err));
    KILN_TRY(kiln_pixel_hashes_check(a, err));
    if (a->pixels == 0) return KILN_OK;
    const ulonglong2 *const words = reinterpret_cast<const ulonglong2 *>(a->rgba);
    if (blocks > 0)
        LAUNCH(sum_blocks, kiln::blocks_for(blocks * WARP, BLOCK), BLOCK, 0, a->pixels, words,
               blocks, sums);
    LAUNCH(hash_pieces, static_cast<unsigned>((pieces + PIECES_OF_WARP - 1) / PIECES_OF_WARP), WARP,
           0, a->pixels, reinterpret_cast<const uint64_t *>(a->rgba), pieces,
           reinterpret_cast<const uint64_t *>(sums), a->hashes);
    return KILN_OK;
}
