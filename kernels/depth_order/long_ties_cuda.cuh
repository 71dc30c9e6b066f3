/* long_ties_cuda -- runs of equal depths that are long, put into the order of their source rows by
 * the whole grid: what a wall parallel to the picture is.
 *
 * settle_ties (depth_sort_cuda.cuh) lists them, in pieces of a block's work each. Then a radix sort
 * goes over all pieces of all runs, a step at a time: does anything have to move at all? If so, for
 * each eight bits of the row: count the digits of each piece, move each piece's positions to where
 * they belong. It is stable, so that equal rows stay in the order of their positions.
 *
 * A block takes a ticket, one piece in one step, in ascending order, and waits until all tickets of
 * the steps before are done. Those are with blocks that run already, so nothing depends on how many
 * blocks fit the device at once. How many pieces there are is not asked by the host; where there is
 * none, all blocks end at once.
 */
#ifndef KILN_KERNELS_DEPTH_ORDER_LONG_TIES_CUDA_CUH
#define KILN_KERNELS_DEPTH_ORDER_LONG_TIES_CUDA_CUH

#include "kernels/early_cuda.cuh"

#include <stdint.h>

namespace
{

enum {
    DIGIT_BITS = 8,
    DIGITS = 1 << DIGIT_BITS,
    LONG_STEPS = 1 + 2 * (32 / DIGIT_BITS),
    LONG_BLOCK = DIGITS, /* a thread for each digit */
    LONG_WARPS = LONG_BLOCK / 32,
    BLOCK_RUN = 512,   /* longer ones are for the grid */
    PIECE = 4096,      /* positions */
    PIECES_MOST = 512, /* of a run */
    LONG_BLOCKS = 132 * 4,
    TIES_WORDS = 4,
};

/* Of the run of positions [first, end): `length` positions each, but for the last. */
struct tie_piece {
    uint32_t first, end, length, first_piece;
};

struct long_ties {
    uint32_t *pieces, *next, *finished, *moves; /* counts, to be 0 before settle_ties */
    tie_piece *piece;
    uint32_t *counts; /* of each digit, a row for each piece */
};

/* Every run has more than BLOCK_RUN positions, so that there are no more pieces than this. */
inline __host__ __device__ uint64_t pieces_capacity(uint64_t n)
{
    return n / BLOCK_RUN + n / PIECE;
}

/* words: TIES_WORDS of them. spare: n words that are free while ties are settled; what a list needs
 * is less, as n is above BLOCK_RUN where there is one. */
inline long_ties lay_out_long_ties(uint32_t *words, uint32_t *spare, uint64_t n)
{
    tie_piece *const piece = reinterpret_cast<tie_piece *>(spare);
    return {&words[0], &words[1], &words[2],
            &words[3], piece,     reinterpret_cast<uint32_t *>(piece + pieces_capacity(n))};
}
static_assert((1.0 / BLOCK_RUN + 1.0 / PIECE) * (sizeof(tie_piece) + DIGITS * sizeof(uint32_t)) <
                  sizeof(uint32_t),
              "a list fits");

/* ---- list ------------------------------------------------------------------------------------ */
/* By a whole block. */
__device__ void list_long(const long_ties &t, uint32_t first, uint32_t end)
{
    __shared__ uint32_t at;
    const uint32_t n = end - first, least = (n + PIECES_MOST - 1) / PIECES_MOST,
                   length = least > PIECE ? least : PIECE;
    const uint32_t pieces = (n + length - 1) / length;
    if (threadIdx.x == 0) at = atomicAdd(t.pieces, pieces);
    __syncthreads();
    for (uint32_t p = threadIdx.x; p < pieces; p += blockDim.x)
        t.piece[at + p] = {first, end, length, at};
    __syncthreads();
}

/* ---- steps of one piece, by a whole block ---------------------------------------------------- */
struct positions {
    uint64_t begin, end;
};

__device__ positions positions_of(const tie_piece &p, uint32_t i)
{
    const uint64_t begin = p.first + static_cast<uint64_t>(i - p.first_piece) * p.length,
                   end = begin + p.length;
    return {begin, end < p.end ? end : p.end};
}

__device__ bool comes_after(const uint32_t *source_rows, uint32_t p, uint32_t q)
{
    const uint32_t row_p = source_rows[p], row_q = source_rows[q];
    return row_p > row_q || (row_p == row_q && p > q);
}

/* Is any position not behind the one before it? */
__device__ void look_for_moves(const long_ties &t, const uint32_t *source_rows,
                               const uint32_t *order, uint32_t first, const positions &own)
{
    bool moves = false;
    for (uint64_t i = own.begin + threadIdx.x; i < own.end; i += LONG_BLOCK)
        moves = moves || (i > first && comes_after(source_rows, order[i - 1], order[i]));
    if (__syncthreads_or(moves) && threadIdx.x == 0) atomicExch(t.moves, 1);
}

__device__ uint32_t digit_of(uint32_t row, int shift) { return row >> shift & (DIGITS - 1); }

__device__ void count_digits(const uint32_t *source_rows, const uint32_t *from, int shift,
                             const positions &own, uint32_t *counts)
{
    __shared__ uint32_t sums[DIGITS];
    sums[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll 4
    for (uint64_t i = own.begin + threadIdx.x; i < own.end; i += LONG_BLOCK)
        atomicAdd(&sums[digit_of(source_rows[from[i]], shift)], 1);
    __syncthreads();
    counts[threadIdx.x] = sums[threadIdx.x];
}

/* Where the piece's first position of this thread's digit belongs, from the run's begin. */
__device__ uint32_t place_of_digit(const uint32_t *counts, uint32_t pieces, uint32_t piece)
{
    __shared__ uint32_t sums[DIGITS];
    uint32_t before = 0, all = 0;
#pragma unroll 8
    for (uint32_t p = 0; p < pieces; p++) {
        const uint32_t c = counts[p * DIGITS + threadIdx.x];
        before += p < piece ? c : 0;
        all += c;
    }
    sums[threadIdx.x] = all;
    __syncthreads();
    for (unsigned step = 1; step < DIGITS; step *= 2) {
        const uint32_t below = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
        __syncthreads();
        sums[threadIdx.x] += below;
        __syncthreads();
    }
    return sums[threadIdx.x] - all + before;
}

/* 256 positions at a time, which keep their order: warps count their digits, and each digit's
 * thread tells them where to put them. place: of this thread's digit. */
__device__ void move_digits(const uint32_t *source_rows, const uint32_t *from, int shift,
                            const positions &own, uint32_t place, uint32_t *to)
{
    __shared__ uint32_t places[LONG_WARPS][DIGITS];
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (uint64_t base = own.begin; base < own.end; base += LONG_BLOCK) {
        const bool is_one = own.end - base > threadIdx.x;
        const uint32_t position = is_one ? from[base + threadIdx.x] : 0;
        const uint32_t digit = is_one ? digit_of(source_rows[position], shift) : DIGITS;
        for (unsigned d = lane; d < DIGITS; d += 32) places[warp][d] = 0;
        __syncwarp();
        const unsigned alike = __match_any_sync(0xffffffffu, digit),
                       before = __popc(alike & ((1u << lane) - 1));
        if (is_one && before == 0) places[warp][digit] = __popc(alike);
        __syncthreads();
        for (unsigned w = 0; w < LONG_WARPS; w++) {
            const uint32_t count = places[w][threadIdx.x];
            places[w][threadIdx.x] = place;
            place += count;
        }
        __syncthreads();
        if (is_one) to[places[warp][digit] + before] = position;
        __syncwarp(); /* before the next ones are counted */
    }
}

__device__ void do_step(const long_ties &t, unsigned step, uint32_t i, const uint32_t *source_rows,
                        uint32_t *order, uint32_t *spare)
{
    const tie_piece p = t.piece[i];
    const positions own = positions_of(p, i);
    if (step == 0) {
        look_for_moves(t, source_rows, order, p.first, own);
        return;
    }
    const unsigned pass = (step - 1) / 2;
    const int shift = static_cast<int>(pass * DIGIT_BITS);
    uint32_t *const from = pass % 2 == 0 ? order : spare, *const to = pass % 2 == 0 ? spare : order;
    uint32_t *const of_run = &t.counts[static_cast<uint64_t>(p.first_piece) * DIGITS];
    const uint32_t piece = i - p.first_piece, pieces = (p.end - p.first + p.length - 1) / p.length;
    if (step % 2 == 1)
        count_digits(source_rows, from, shift, own, &of_run[piece * DIGITS]);
    else
        move_digits(source_rows, from, shift, own, p.first + place_of_digit(of_run, pieces, piece),
                    to);
}
static_assert(32 / DIGIT_BITS % 2 == 0, "ends where it began");

/* ---- kernel ---------------------------------------------------------------------------------- */
__device__ uint32_t count_now(const uint32_t *count)
{
    return *reinterpret_cast<const volatile uint32_t *>(count);
}

/* By a whole block: until so many tickets are done, and what they wrote is there to see. */
__device__ void wait_for(const uint32_t *finished, uint32_t tickets)
{
    if (threadIdx.x == 0) {
        while (count_now(finished) < tickets) __nanosleep(100);
        __threadfence();
    }
    __syncthreads();
}

/* spare: n words. */
__global__ void __launch_bounds__(LONG_BLOCK)
    settle_long_ties(const long_ties t, const uint32_t *source_rows, uint32_t *order,
                     uint32_t *spare)
{
    __shared__ uint32_t ticket;
    kiln::launch_before_is_done();
    const uint32_t pieces = *t.pieces;
    if (pieces == 0) return;
    for (;;) {
        if (threadIdx.x == 0) ticket = atomicAdd(t.next, 1);
        __syncthreads();
        const uint32_t own = ticket, step = own / pieces;
        if (step >= LONG_STEPS) return;
        wait_for(t.finished, step > 0 ? pieces : 0);
        if (step > 0 && count_now(t.moves) == 0) return;
        wait_for(t.finished, step * pieces);
        do_step(t, step, own % pieces, source_rows, order, spare);
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) atomicAdd(t.finished, 1);
    }
}

/* ---- launcher -------------------------------------------------------------------------------- */
/* order [n]: complete afterwards; spare [n]. */
inline kiln_status run_long_ties(const kiln_exec *x, const long_ties &t, uint64_t n,
                                 const uint32_t *source_rows, uint32_t *order, uint32_t *spare,
                                 kiln_error *err)
{
    const uint64_t most = pieces_capacity(n);
    if (most == 0) return KILN_OK;
    LAUNCH_EARLY(settle_long_ties, kiln::blocks_for(most, 1, LONG_BLOCKS), LONG_BLOCK, t,
                 source_rows, order, spare);
    return KILN_OK;
}

} // namespace

#endif
