/* tile_find_cuda -- finds the pairs of every Gaussian by asking for each tile of its box whether it
 * is reached (tile_ask_math.h).
 *
 * Problem. Boxes have from one to many thousands of tiles. One thread for each Gaussian would leave
 * most lanes of a warp waiting for the largest box.
 *
 * Layout. Gaussians are divided by their box:
 *   - at most 32 tiles: a lane looks at its Gaussian's mean, then a warp asks all other tiles of 32
 *     Gaussians in one sequence, 32 at a time. The answers are kept as a mask for each Gaussian
 *     (tile_record_cuda.cuh).
 *   - wider: the Gaussian is listed. Each of its tile rows is one lane's (tile_wide_cuda.cuh).
 *   - odd, where no bound is proven (KILN_BOX_ODD): the Gaussian is listed. Half warps take one
 *     tile row each (tile_row_cuda.cuh).
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

/* Gaussians of a group, whose pairs are summed up; threads of a block */
constexpr unsigned GROUP = 256;
constexpr unsigned FIND_BLOCKS = 132 * 8;
/* as many as fit at once: where few Gaussians are wide or odd, a second wave only costs time */
constexpr unsigned FIND_REST_BLOCKS = 132 * 3;

/* Neighbouring tiles of one tile row that a wide Gaussian reaches. */
struct kept_run {
    uint32_t id, tile, n; /* tile: the first, as pairs have it */
};

struct found {
    record *records; /* [n] */
    /* [listed_capacity] ids of wide Gaussians from the front, of odd ones from the back. If there
     * are more, nobody looks here: records tell which are listed */
    uint32_t *listed;
    uint64_t listed_capacity; /* without records at least as many as Gaussians */
    uint64_t *n_wide, *n_odd;
    uint64_t *group_pairs; /* [groups + 1] pairs of each group, or NULL if they are not needed */
    /* [kept_capacity] what wide Gaussians reach, or NULL; some are empty. Without it, or if there
     * are more runs, the writing kernel asks again */
    kept_run *kept;
    uint64_t *n_kept, kept_capacity;
    /* [n_cleared] set to 0 on the way, for what comes later; NULL if n_cleared is 0 */
    uint32_t *cleared;
    uint64_t n_cleared;

    __device__ bool has_list() const { return *n_wide + *n_odd <= listed_capacity; }
};

inline __host__ __device__ uint64_t groups_of(uint64_t n) { return (n + GROUP - 1) / GROUP; }

/* ---- boxes of few tiles ---------------------------------------------------------------------- */
/* A Gaussian that is asked about. Aligned, so that a few wide loads fetch it. */
struct alignas(16) asked_box {
    kiln_asked asked;
    uint32_t corner, step; /* corner: column | row << 16; step: step_of() */
    uint32_t known;        /* tile_of_mean(): this tile is not asked about */
};

/* Shared memory of a warp. */
struct asking {
    asked_box boxes[WARP];
    uint32_t firsts[WARP], words[MASK_TILES + 1];
};

/* step | w << 16: k * step >> 12 is k / w, for k and w up to 32. The step is 4096 / w + 1, or one
 * less where w divides. */
__device__ inline uint32_t step_of(uint32_t w)
{
    return (static_cast<uint32_t>(kiln_near_div(4096.0f, static_cast<float>(w))) + 1) | w << 16;
}

/* 32 bits of `words` from bit `first` on. */
__device__ inline uint32_t bits_from(const uint32_t *words, uint32_t first)
{
    return __funnelshift_r(words[first / 32], words[first / 32 + 1], first);
}

/* Appends the lane's Gaussian to the front list (wide) or the back list (odd). Called by a whole
 * warp. */
__device__ inline void list_it(const found &f, uint32_t id, bool wide, bool odd)
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
    at_wide += __popc(wides & lanes_below());
    at_odd += __popc(odds & lanes_below());
    if (wide && at_wide < f.listed_capacity) f.listed[at_wide] = id;
    if (odd && at_odd < f.listed_capacity) f.listed[f.listed_capacity - 1 - at_odd] = id;
}

/* Which tile of the box has the mean, if that tile is reached at the pixel that the mean is in: so
 * it is for 96 to 99 of 100 Gaussians, and one of two or three questions need not be put into the
 * sequence. NO_TILE: it is not known. */
constexpr uint32_t NO_TILE = MASK_TILES;

__device__ inline uint32_t tile_of_mean(const kiln_view &v, const kiln_splat2d &s,
                                        const kiln_tile_box &box)
{
    const float px = floorf(s.x), py = floorf(s.y); /* a proven box's are at most 10^9 */
    /* left of the box or above it the difference wraps */
    const uint32_t column =
                       static_cast<uint32_t>(static_cast<int32_t>(px) - box.column * KILN_TILE) /
                       KILN_TILE,
                   row = static_cast<uint32_t>(static_cast<int32_t>(py) - box.row * KILN_TILE) /
                         KILN_TILE,
                   w = static_cast<uint32_t>(box.w);
    if (column >= w || row >= static_cast<uint32_t>(box.h)) return NO_TILE;
    /* as kiln_power_offset, of whole numbers in float; the tile's last pixel may be outside */
    const float dx = s.x - (fminf(px, static_cast<float>(v.width - 1)) + 0.5f),
                dy = s.y - (fminf(py, static_cast<float>(v.height - 1)) + 0.5f);
    return kiln_power(s.conic[0], s.conic[1], s.conic[2], dx, dy) >= s.power_min ? row * w + column
                                                                                 : NO_TILE;
}

/* Asks about n tiles of each lane's box, 0 to 32: all but the known one. For each 32 questions
 * calls answer(which, reached, tile row): bit i of reached is lane i's answer, of question 32 *
 * which + i; the row is that of the lane's own. */
template <typename Answer>
__device__ void ask_boxes(const tile_asker &asker, asking &scratch, const kiln_splat2d &s,
                          const kiln_tile_box &box, uint32_t n, uint32_t known, question_row &row,
                          const Answer &answer)
{
    if (n > 0)
        scratch.boxes[row.slot()] = {kiln_ask_of(&s),
                                     static_cast<uint32_t>(box.column) |
                                         static_cast<uint32_t>(box.row) << 16,
                                     step_of(static_cast<uint32_t>(box.w)), known};
    __syncwarp();
    for (uint32_t at = 0; at < row.total(); at += WARP) {
        uint32_t slot, k;
        const bool asks = row.next(at, &slot, &k);
        const asked_box b = scratch.boxes[slot];
        k += k >= b.known ? 1 : 0;
        const uint32_t down = k * (b.step & 0xffff) >> 12;
        const int32_t column =
            static_cast<int32_t>((b.corner & 0xffff) + k - down * (b.step >> 16));
        const int32_t tile_row = static_cast<int32_t>((b.corner >> 16) + down);
        const unsigned reached = asker.ask(asks, b.asked, column, tile_row, [&](int lane) {
            return scratch.boxes[__shfl_sync(ALL, slot, lane)].asked;
        });
        answer(at / WARP, reached, tile_row);
    }
    __syncwarp();
}

/* Returns which tiles of this lane's box are reached. */
__device__ inline uint32_t mask_of_box(const tile_asker &asker, asking &scratch,
                                       const kiln_splat2d &s, const kiln_tile_box &box, uint32_t n,
                                       uint32_t known)
{
    question_row row(scratch.firsts, n);
    ask_boxes(asker, scratch, s, box, n, known, row,
              [&](uint32_t which, unsigned reached, int32_t) {
                  if (lane_index() == 0) scratch.words[which] = reached;
              });
    const uint32_t mask = n > 0 ? bits_from(scratch.words, row.first()) & ~0u >> (32 - n) : 0;
    __syncwarp();
    if (known == NO_TILE) return mask;
    const uint32_t below = (1u << known) - 1;
    return (mask & below) | 1u << known | (mask & ~below) << 1;
}

/* Sums of tile rows, first in shared memory: a picture has few rows, so in global memory all
 * threads would queue for the same words. A picture with more than ROWS rows spreads its sums
 * widely enough. A block's sums stay below 2^32: 32 tiles of at most 2^32 / 132 Gaussians. */
class row_sums
{
  public:
    static constexpr uint32_t ROWS = 1024;
    __device__ row_sums(uint32_t *sums, const job &j, uint64_t *row_pairs)
        : sums_(sums), row_pairs_(row_pairs), row0_(j.row0)
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

/* BY_ROW: adds the pairs of each tile row, and keeps no records. */
template <bool BY_ROW>
__global__ void __launch_bounds__(GROUP) find_masks(const job j, const found f, uint64_t *row_pairs)
{
    __shared__ asking warp_scratch[GROUP / WARP];
    __shared__ uint32_t sums[BY_ROW ? row_sums::ROWS : 1];
    row_sums rows(sums, j, row_pairs);
    asking &scratch = warp_scratch[threadIdx.x / WARP];
    const uint64_t n = j.count.get();
    const uint32_t tiles_x = kiln_view_tiles_x(&j.view);
    const tile_asker asker(j.view);
    for (uint64_t i = kiln::thread_index(); i < f.n_cleared; i += kiln::thread_count())
        f.cleared[i] = 0;
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
        const uint64_t first =
            (static_cast<uint64_t>(box.row) - j.row0) * tiles_x + static_cast<uint64_t>(box.column);
        const bool few =
            kind == KILN_BOX_PROVEN && tiles <= MASK_TILES && first < record::FIRST_TILES;
        const uint32_t known = few ? tile_of_mean(j.view, s, box) : NO_TILE;
        const uint32_t asked = few ? static_cast<uint32_t>(tiles) - (known != NO_TILE ? 1 : 0) : 0;
        if constexpr (BY_ROW) {
            question_row row(scratch.firsts, asked);
            ask_boxes(asker, scratch, s, box, asked, known, row,
                      [&](uint32_t, unsigned reached, int32_t tile_row) {
                          if (reached >> lane_index() & 1)
                              rows.add(static_cast<uint32_t>(tile_row), 1);
                      });
            if (known != NO_TILE)
                rows.add(static_cast<uint32_t>(box.row) + known / static_cast<uint32_t>(box.w), 1);
        } else {
            const uint32_t mask = mask_of_box(asker, scratch, s, box, asked, known);
            record r = {};
            if (mask)
                r = record::of_box(mask, first, static_cast<uint32_t>(box.w));
            else if (!few && kind != KILN_BOX_EMPTY)
                r = record::of_listed(0);
            if (i < n) f.records[i] = r;
            if (f.group_pairs) {
                const unsigned pairs = sum_of_warp(static_cast<unsigned>(__popc(mask)));
                if (lane_index() == 0 && pairs) kiln::add64(&f.group_pairs[group], pairs);
            }
        }
        list_it(f, static_cast<uint32_t>(i), kind == KILN_BOX_PROVEN && !few, kind == KILN_BOX_ODD);
    }
    if (BY_ROW) rows.finish();
}

/* ---- what no proof covers -------------------------------------------------------------------- */
__device__ inline bool is_odd(const job &j, const found &f, uint32_t id)
{
    kiln_tile_box box;
    return f.records[id].is_listed() &&
           kiln_find_box(&j.splats[id], &j.view, j.row0, j.row1, &box) == KILN_BOX_ODD;
}

/* Called by all half warps of the grid: asks every tile row of the odd Gaussians and passes it to
 * sink(group, id, tile row, column, bits of the 64 columns from there). */
template <typename Sink> __device__ void for_odd(const job &j, const found &f, const Sink &sink)
{
    const row_group g = cg::tiled_partition<KILN_TILE>(cg::this_thread_block());
    const bool has_list = f.has_list();
    const uint64_t rows = j.row1 - j.row0, items = (has_list ? *f.n_odd : j.count.get()) * rows;
    for (uint64_t item = kiln::thread_index() / KILN_TILE; item < items;
         item += kiln::thread_count() / KILN_TILE) {
        const uint32_t id = has_list ? f.listed[f.listed_capacity - 1 - item / rows]
                                     : static_cast<uint32_t>(item / rows);
        const kiln_splat2d &s = j.splats[id];
        if (!has_list && !is_odd(j, f, id)) continue;
        kiln_splat_extent e;
        if (!kiln_find_extent(&s, j.row0, j.row1, &e)) continue;
        const uint32_t row = e.row_first + static_cast<uint32_t>(item % rows);
        if (row >= e.row_end) continue;
        const kiln_tile_row r = kiln_find_tile_row(&s, &e, &j.view, row);
        put_row(g, s, r, [&](int32_t at, uint64_t bits) { sink(g, id, row, at, bits); });
    }
}

/* ---- counting -------------------------------------------------------------------------------- */
__device__ void add_pairs(const found &f, uint32_t id, unsigned pairs)
{
    (void)add_to_listed(&f.records[id], pairs);
    if (f.group_pairs) kiln::add64(&f.group_pairs[id / GROUP], pairs);
}

/* Called by a whole block: returns the first of so many places for runs. */
__device__ inline uint64_t take_run_places(const found &f, uint32_t runs)
{
    __shared__ unsigned long long first;
    __syncthreads(); /* nobody looks at the last ones */
    if (threadIdx.x == 0) first = atomicAdd(reinterpret_cast<unsigned long long *>(f.n_kept), runs);
    __syncthreads();
    return first;
}

__device__ inline void keep_run(const found &f, const job &j, const wide_run &r)
{
    uint64_t at = r.place;
    if (at == NO_PLACE && r.n() > 0)
        at = atomicAdd(reinterpret_cast<unsigned long long *>(f.n_kept), 1);
    if (at < f.kept_capacity) f.kept[at] = {r.id, r.tile(j), r.n()};
}

template <bool BY_ROW>
__global__ void __launch_bounds__(GROUP) find_rest(const job j, const found f, uint64_t *row_pairs)
{
    kiln::launch_before_is_done();
    const bool keeps = !BY_ROW && f.kept;
    const auto places = [&](uint32_t rows) { return keeps ? take_run_places(f, rows) : 0; };
    for_wide(j, f, places, [&](const wide_run &r) {
        if (BY_ROW && r.n() > 0)
            kiln::add64(&row_pairs[static_cast<uint32_t>(r.row) - j.row0], r.n());
        if (!BY_ROW && r.n() > 0) add_pairs(f, r.id, r.n());
        if (keeps) keep_run(f, j, r);
    });
    for_odd(j, f, [&](const row_group &g, uint32_t id, uint32_t row, int32_t, uint64_t bits) {
        if (g.thread_rank() != 0) return;
        if (BY_ROW)
            kiln::add64(&row_pairs[row - j.row0], __popcll(bits));
        else
            add_pairs(f, id, __popcll(bits));
    });
}

/* ---- launcher -------------------------------------------------------------------------------- */
/* The caller sets f's counters and sums to 0 before. Without row sums a block takes one group and
 * ends, so that urgent work on another stream gets a place soon. */
template <bool BY_ROW>
kiln_status find_pairs(const kiln_exec *x, const job &j, const found &f, uint64_t *row_pairs,
                       kiln_error *err)
{
    /* with row sums a block takes several groups, to add its sums once */
    const unsigned most = BY_ROW ? FIND_BLOCKS : INT32_MAX;
    LAUNCH(find_masks<BY_ROW>, kiln::blocks_for(j.count.n, GROUP, most), GROUP, 0, j, f, row_pairs);
    LAUNCH_EARLY(find_rest<BY_ROW>, FIND_REST_BLOCKS, GROUP, j, f, row_pairs);
    return KILN_OK;
}

} // namespace

#endif
