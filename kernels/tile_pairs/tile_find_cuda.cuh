/* tile_find_cuda -- finds the pairs of every Gaussian by asking for each tile of its box whether it is reached (tile_ask_math.h).
 *
 * Problem. Boxes have from one to many thousands of tiles. One thread for each Gaussian would leave most lanes of a warp waiting
 * for the largest box.
 *
 * Layout. Gaussians are divided by their box:
 *   - at most 64 tiles: a warp takes 32 Gaussians and asks all their tiles in one sequence, 32 at a time. The answers are kept as
 *     a mask for each Gaussian (tile_record_cuda.cuh).
 *   - wider: the Gaussian is listed. Each of its tile rows is one lane's (tile_wide_cuda.cuh).
 *   - odd, where no bound is proven (KILN_BOX_ODD): the Gaussian is listed. Half warps take one tile row each (tile_row_cuda.cuh).
 */
#ifndef KILN_KERNELS_TILE_FIND_CUDA_CUH
#define KILN_KERNELS_TILE_FIND_CUDA_CUH

#include "kernels/early_cuda.cuh"
#include "kernels/tile_pairs/tile_ask_cuda.cuh"
#include "kernels/tile_pairs/tile_record_cuda.cuh"
#include "kernels/tile_pairs/tile_row_cuda.cuh"
#include "kernels/tile_pairs/tile_wide_cuda.cuh"

namespace
{

constexpr unsigned GROUP = 256; /* Gaussians of a group, whose pairs are summed up; threads of a block */
constexpr uint32_t MASK_TILES = 64;
constexpr unsigned FIND_BLOCKS = 132 * 8;

/* Neighbouring tiles of one tile row that a wide Gaussian reaches. */
struct kept_run {
    uint32_t id, tile, n; /* tile: the first, as pairs have it */
};

struct found {
    records r;
    uint32_t *listed; /* [n] ids of wide Gaussians from the front, of odd ones from the back */
    uint64_t *n_wide, *n_odd;
    uint64_t *group_pairs; /* [groups + 1] pairs of each group, or NULL if they are not needed */
    kept_run *kept; /* [kept_capacity] what wide Gaussians reach, or NULL. Without it, or if there are more runs, the writing kernel
                       asks again */
    uint64_t *n_kept, kept_capacity;
};

inline uint64_t groups_of(uint64_t n) { return (n + GROUP - 1) / GROUP; }

/* ---- boxes of few tiles ---------------------------------------------------------------------------------------------- */
/* Shared memory of a warp. */
struct asking {
    kiln_asked asked[WARP];
    uint32_t firsts[WARP], corners[WARP], steps[WARP]; /* corners: column | row << 16; steps: step_of() */
    uint32_t words[MASK_TILES + 2];
};

/* step | w << 16: k * step >> 12 is k / w, for k and w up to 64. */
__device__ inline uint32_t step_of(uint32_t w) { return (4096 / w + 1) | w << 16; }

/* 64 bits of `words` from bit `first` on. */
__device__ inline uint64_t bits_from(const uint32_t *words, uint32_t first)
{
    const uint32_t *at = words + first / 32;
    const uint64_t low = __funnelshift_r(at[0], at[1], first), high = __funnelshift_r(at[1], at[2], first);
    return high << 32 | low;
}

/* Appends the lane's Gaussian to the front list (wide) or the back list (odd). Called by a whole warp. */
__device__ inline void list_it(const found &f, uint64_t n, uint32_t id, bool wide, bool odd)
{
    const unsigned wides = __ballot_sync(ALL, wide), odds = __ballot_sync(ALL, odd);
    if (!(wides | odds)) return;
    unsigned long long at_wide = 0, at_odd = 0;
    if (lane_index() == 0) {
        at_wide = atomicAdd(reinterpret_cast<unsigned long long *>(f.n_wide), __popc(wides));
        at_odd = atomicAdd(reinterpret_cast<unsigned long long *>(f.n_odd), __popc(odds));
    }
    at_wide = __shfl_sync(ALL, at_wide, 0);
    at_odd = __shfl_sync(ALL, at_odd, 0);
    if (wide) f.listed[at_wide + __popc(wides & lanes_below())] = id;
    if (odd) f.listed[n - 1 - (at_odd + __popc(odds & lanes_below()))] = id;
}

/* Asks all tiles of the lanes' boxes, 0 to 64 each. Returns this lane's answers as a mask. */
__device__ inline uint64_t ask_boxes(const kiln_view &v, asking &scratch, const kiln_splat2d &s, const kiln_tile_box &box,
                                     uint32_t n)
{
    question_row row(scratch.firsts, n);
    if (n > 0) {
        const uint32_t slot = row.slot();
        scratch.asked[slot] = kiln_ask_of(&s);
        scratch.corners[slot] = static_cast<uint32_t>(box.column) | static_cast<uint32_t>(box.row) << 16;
        scratch.steps[slot] = step_of(static_cast<uint32_t>(box.w));
    }
    __syncwarp();
    for (uint32_t at = 0; at < row.total(); at += WARP) {
        uint32_t slot, k;
        const bool asks = row.next(at, &slot, &k);
        const uint32_t corner = scratch.corners[slot], step = scratch.steps[slot], down = k * (step & 0xffff) >> 12;
        const int32_t column = static_cast<int32_t>((corner & 0xffff) + k - down * (step >> 16));
        const int32_t tile_row = static_cast<int32_t>((corner >> 16) + down);
        const unsigned reached = ask(v, asks, scratch.asked[slot], column, tile_row,
                                     [&](int lane) { return scratch.asked[__shfl_sync(ALL, slot, lane)]; });
        if (lane_index() == 0) scratch.words[at / WARP] = reached;
    }
    __syncwarp();
    const uint64_t mask = n > 0 ? bits_from(scratch.words, row.first()) & ~0ull >> (64 - n) : 0;
    __syncwarp();
    return mask;
}

/* Sums of tile rows, first in shared memory: a picture has few rows, so in global memory all threads would queue for the same
 * words. A picture with more than ROWS rows spreads its sums widely enough. A block's sums stay below 2^32: 64 tiles of at most
 * 2^32 / 132 Gaussians. */
class row_sums
{
  public:
    static constexpr uint32_t ROWS = 1024;
    __device__ row_sums(uint32_t *sums, const job &j, uint64_t *row_pairs) : sums_(sums), row_pairs_(row_pairs), row0_(j.row0)
    {
        rows_ = row_pairs && j.row1 - j.row0 <= ROWS ? j.row1 - j.row0 : 0;
        for (uint32_t r = threadIdx.x; r < rows_; r += blockDim.x) sums_[r] = 0;
        __syncthreads();
    }
    __device__ void add(uint32_t row, unsigned pairs)
    {
        if (rows_)
            atomicAdd(&sums_[row - row0_], pairs);
        else
            kiln::add64(&row_pairs_[row - row0_], pairs);
    }
    /* Adds the mask of a box of at most 64 tiles, w in a row. */
    __device__ void add(uint32_t row, uint32_t w, uint64_t mask)
    {
        for (uint64_t left = mask; left; left = w < 64 ? left >> w : 0, row++) add(row, __popcll(left & ~0ull >> (64 - w)));
    }
    __device__ void finish()
    {
        __syncthreads();
        for (uint32_t r = threadIdx.x; r < rows_; r += blockDim.x)
            if (sums_[r]) kiln::add64(&row_pairs_[r], sums_[r]);
    }

  private:
    uint32_t *sums_;
    uint64_t *row_pairs_;
    uint32_t row0_, rows_;
};

template <bool BY_ROW> __global__ void __launch_bounds__(GROUP) find_masks(const job j, const found f, uint64_t *row_pairs)
{
    __shared__ asking warp_scratch[GROUP / WARP];
    __shared__ uint32_t sums[BY_ROW ? row_sums::ROWS : 1];
    row_sums rows(sums, j, row_pairs);
    const uint64_t n = j.count.get();
    const uint32_t tiles_x = kiln_view_tiles_x(&j.view);
    for (uint64_t group = blockIdx.x; group * GROUP < n; group += gridDim.x) {
        const uint64_t i = group * GROUP + threadIdx.x;
        kiln_box_kind kind = KILN_BOX_EMPTY;
        kiln_splat2d s;
        kiln_tile_box box = {};
        if (i < n) {
            s = load_splat(&j.splats[i]);
            kind = kiln_find_box(&s, &j.view, j.row0, j.row1, &box);
        }
        const uint64_t tiles = static_cast<uint64_t>(box.w) * box.h;
        const uint64_t first = (static_cast<uint64_t>(box.row) - j.row0) * tiles_x + static_cast<uint64_t>(box.column);
        const bool few = kind == KILN_BOX_PROVEN && tiles <= MASK_TILES && first < record::FIRST_TILES;
        const uint64_t mask = ask_boxes(j.view, warp_scratch[threadIdx.x / WARP], s, box, few ? static_cast<uint32_t>(tiles) : 0);
        record r = {};
        if (mask)
            r = record::of_box(mask, first, static_cast<uint32_t>(box.w), tiles > 32);
        else if (!few && kind != KILN_BOX_EMPTY)
            r = record::of_listed(0);
        if (i < n) f.r.words[i] = r;
        if (mask && tiles > 32) f.r.more[i] = static_cast<uint32_t>(mask >> 32);
        list_it(f, j.count.n, static_cast<uint32_t>(i), kind == KILN_BOX_PROVEN && !few, kind == KILN_BOX_ODD);
        const unsigned pairs = sum_of_warp(static_cast<unsigned>(__popcll(mask)));
        if (f.group_pairs && lane_index() == 0 && pairs) kiln::add64(&f.group_pairs[group], pairs);
        if (BY_ROW && mask) rows.add(static_cast<uint32_t>(box.row), static_cast<uint32_t>(box.w), mask);
    }
    if (BY_ROW) rows.finish();
}

/* ---- what no proof covers -------------------------------------------------------------------------------------------- */
/* Called by all half warps of the grid: asks every tile row of the odd Gaussians and passes it to sink(group, id, tile row, column,
 * bits of the 64 columns from there). */
template <typename Sink> __device__ void for_odd(const job &j, const found &f, const Sink &sink)
{
    const row_group g = cg::tiled_partition<KILN_TILE>(cg::this_thread_block());
    const uint64_t rows = j.row1 - j.row0, items = *f.n_odd * rows;
    for (uint64_t item = kiln::thread_index() / KILN_TILE; item < items; item += kiln::thread_count() / KILN_TILE) {
        const uint32_t id = f.listed[j.count.n - 1 - item / rows];
        const kiln_splat2d &s = j.splats[id];
        kiln_splat_extent e;
        if (!kiln_find_extent(&s, j.row0, j.row1, &e)) continue;
        const uint32_t row = e.row_first + static_cast<uint32_t>(item % rows);
        if (row >= e.row_end) continue;
        const kiln_tile_row r = kiln_find_tile_row(&s, &e, &j.view, row);
        put_row(g, s, r, [&](int32_t at, uint64_t bits) { sink(g, id, row, at, bits); });
    }
}

/* ---- counting -------------------------------------------------------------------------------------------------------- */
__device__ void add_pairs(const found &f, uint32_t id, unsigned pairs)
{
    (void)f.r.add(id, pairs);
    if (f.group_pairs) kiln::add64(&f.group_pairs[id / GROUP], pairs);
}

/* Called by a whole warp. */
__device__ inline void keep_run(const found &f, uint32_t id, uint32_t tile, uint32_t n)
{
    const unsigned keeps = __ballot_sync(ALL, n > 0);
    unsigned long long at = 0;
    if (lane_index() == 0) at = atomicAdd(reinterpret_cast<unsigned long long *>(f.n_kept), __popc(keeps));
    at = __shfl_sync(ALL, at, 0) + __popc(keeps & lanes_below());
    if (n > 0 && at < f.kept_capacity) f.kept[at] = {id, tile, n};
}

template <bool BY_ROW> __global__ void __launch_bounds__(GROUP) find_rest(const job j, const found f, uint64_t *row_pairs)
{
    kiln::launch_before_is_done();
    for_wide(j, f, [&](const wide_run &r) {
        if (!__any_sync(ALL, r.n() > 0)) return;
        if (r.n() > 0) add_pairs(f, r.id, r.n());
        if (BY_ROW && r.n() > 0) kiln::add64(&row_pairs[static_cast<uint32_t>(r.row) - j.row0], r.n());
        if (f.kept) keep_run(f, r.id, r.tile(j), r.n());
    });
    for_odd(j, f, [&](const row_group &g, uint32_t id, uint32_t row, int32_t, uint64_t bits) {
        if (g.thread_rank() != 0) return;
        add_pairs(f, id, __popcll(bits));
        if (BY_ROW) kiln::add64(&row_pairs[row - j.row0], __popcll(bits));
    });
}

/* ---- launcher -------------------------------------------------------------------------------------------------------- */
/* The caller sets f's counters and sums to 0 before. Without row sums a block takes one group and ends, so that urgent work on
 * another stream gets a place soon. */
template <bool BY_ROW>
kiln_status find_pairs(const kiln_exec *x, const job &j, const found &f, uint64_t *row_pairs, kiln_error *err)
{
    const unsigned most = BY_ROW ? FIND_BLOCKS : INT32_MAX; /* with row sums a block takes several groups, to add its sums once */
    LAUNCH(find_masks<BY_ROW>, kiln::blocks_for(j.count.n, GROUP, most), GROUP, 0, j, f, row_pairs);
    LAUNCH_EARLY(find_rest<BY_ROW>, FIND_BLOCKS, GROUP, j, f, row_pairs);
    return KILN_OK;
}

} // namespace

#endif
