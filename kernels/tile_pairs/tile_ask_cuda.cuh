/* tile_ask_cuda -- asks "does this Gaussian reach that tile?" 32 questions at a time, one for each
 * lane of a warp. If kiln_ask_tile is unsure, the whole warp evaluates the pixels of that tile.
 */
#ifndef KILN_KERNELS_TILE_ASK_CUDA_CUH
#define KILN_KERNELS_TILE_ASK_CUDA_CUH

#include "kernels/cuda.cuh"
#include "kernels/tile_pairs/tile_ask_math.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace
{

namespace cg = cooperative_groups;

constexpr unsigned WARP = 32, ALL = 0xffffffffu;

/* ---- warps ----------------------------------------------------------------------------------- */
__device__ inline unsigned lane_index() { return threadIdx.x % WARP; }
__device__ inline unsigned lanes_below() { return (1u << lane_index()) - 1; }

__device__ inline unsigned sum_of_warp(unsigned v)
{
    return cg::reduce(cg::tiled_partition<WARP>(cg::this_thread_block()), v, cg::plus<unsigned>());
}

__device__ inline unsigned bits_of_warp(unsigned v)
{
    return cg::reduce(cg::tiled_partition<WARP>(cg::this_thread_block()), v,
                      cg::bit_or<unsigned>());
}

template <typename T> __device__ T sum_below(T v, T *total)
{
    T sum = v;
    for (unsigned d = 1; d < WARP; d *= 2) {
        const T other = __shfl_up_sync(ALL, sum, d);
        if (lane_index() >= d) sum += other;
    }
    *total = __shfl_sync(ALL, sum, WARP - 1);
    return sum - v;
}

/* Puts the questions of a warp's 32 Gaussians into one sequence, which is answered 32 at a time. So
 * lanes are busy however many tiles each Gaussian has. Lanes with at least one question are
 * numbered; the number is the lane's slot. */
class question_row
{
  public:
    __device__ question_row(uint32_t *firsts, uint32_t n) : firsts_(firsts), mine_(n)
    {
        first_ = sum_below(n, &total_);
        slot_ = __popc(__ballot_sync(ALL, n > 0) & lanes_below());
        if (n > 0) firsts_[slot_] = first_;
        __syncwarp();
    }
    __device__ uint32_t total() const { return total_; }
    __device__ uint32_t first() const { return first_; } /* this lane's first question */
    __device__ uint32_t slot() const { return slot_; }   /* this lane's slot, if it has questions */
    /* Assigns question `at` + lane to this lane: it is question *k of slot *slot. Returns false
     * after the last question. */
    __device__ bool next(uint32_t at, uint32_t *slot, uint32_t *k)
    {
        const uint32_t ahead = first_ - at; /* wraps below `at` */
        const unsigned heads = bits_of_warp(mine_ > 0 && ahead < WARP ? 1u << ahead : 0);
        *slot = begun_ + __popc(heads & (lanes_below() << 1 | 1)) - 1;
        begun_ += __popc(heads);
        const bool asks = at + lane_index() < total_;
        *k = asks ? at + lane_index() - firsts_[*slot] : 0;
        return asks;
    }

  private:
    uint32_t *firsts_;
    uint32_t mine_, first_, slot_, total_, begun_ = 0;
};

/* ---- questions ------------------------------------------------------------------------------- */
__device__ inline kiln_splat2d load_splat(const kiln_splat2d *from)
{
    kiln_splat2d s;
    if ((reinterpret_cast<uintptr_t>(from) & 15) != 0) return *from;
    const float4 *at = reinterpret_cast<const float4 *>(from);
    const float4 place = at[0], shape = at[1];
    const int4 bounds = reinterpret_cast<const int4 *>(from)[3];
    s.x = place.x;
    s.y = place.y;
    s.conic[0] = place.z;
    s.conic[1] = place.w;
    s.conic[2] = shape.x;
    s.power_min = shape.z;
    s.tile_x0 = bounds.x;
    s.tile_y0 = bounds.y;
    s.tile_x1 = bounds.z;
    s.tile_y1 = bounds.w;
    return s;
}

/* A tile's pixels inside the picture. */
struct tile_pixels {
    int32_t x0, x1, y0, y1;
    __device__ tile_pixels(const kiln_view &v, int32_t column, int32_t row)
    {
        x0 = column * KILN_TILE;
        y0 = row * KILN_TILE;
        x1 = min(x0 + KILN_TILE, static_cast<int32_t>(v.width)) - 1;
        y1 = min(y0 + KILN_TILE, static_cast<int32_t>(v.height)) - 1;
    }
};

/* Called by a whole warp: each lane evaluates half a pixel row. */
__device__ inline bool any_pixel(const kiln_asked &g, const tile_pixels &p)
{
    const int32_t py = p.y0 + static_cast<int32_t>(lane_index() / 2),
                  first = p.x0 + static_cast<int32_t>(lane_index() % 2) * 8;
    const float dy = kiln_power_offset(g.y, static_cast<uint32_t>(py));
    const float half_a = kiln_power_half(g.a), slope = kiln_power_slope(g.b, dy),
                base = kiln_power_base(kiln_power_half(g.c), dy);
    bool reached = false;
    if (py <= p.y1)
        for (int32_t px = first; px <= min(first + 7, p.x1); px++)
            reached |= kiln_power_at(half_a, slope, base,
                                     kiln_power_offset(g.x, static_cast<uint32_t>(px))) >= g.t;
    return __any_sync(ALL, reached);
}

/* Answers questions about the tiles of one view, whose last pixels are the same for all. */
class tile_asker
{
  public:
    __device__ explicit tile_asker(const kiln_view &v)
        : view_(v), right_(static_cast<float>(v.width - 1)),
          bottom_(static_cast<float>(v.height - 1))
    {
    }
    /* Columns [column, end) of one row as one rectangle. */
    __device__ kiln_tile_answer answer(const kiln_asked &g, int32_t column, int32_t end,
                                       int32_t row) const
    {
        const float x0 = static_cast<float>(column * KILN_TILE),
                    y0 = static_cast<float>(row * KILN_TILE);
        const float x1 = static_cast<float>(end * KILN_TILE - 1), y1 = y0 + (KILN_TILE - 1);
        return kiln_ask_tile(&g, x0, fminf(x1, right_), y0, fminf(y1, bottom_));
    }
    /* Answers one question of each lane; bit i of the result is the answer for lane i. `of(lane)`
     * returns the Gaussian that a lane asks about. missed, if given: is it proven that this lane's
     * tile is not reached? */
    template <typename Of>
    __device__ unsigned ask(bool asks, const kiln_asked &mine, int32_t column, int32_t row,
                            const Of &of, bool *missed = nullptr) const
    {
        kiln_tile_answer answer = KILN_TILE_MISSED;
        if (asks) {
            const float x0 = static_cast<float>(column * KILN_TILE),
                        y0 = static_cast<float>(row * KILN_TILE);
            answer = kiln_ask_tile(&mine, x0, fminf(x0 + (KILN_TILE - 1), right_), y0,
                                   fminf(y0 + (KILN_TILE - 1), bottom_));
        }
        if (missed) *missed = answer == KILN_TILE_MISSED;
        unsigned reached = __ballot_sync(ALL, answer == KILN_TILE_REACHED);
        for (unsigned left = __ballot_sync(ALL, answer == KILN_TILE_UNSURE); left;
             left &= left - 1) {
            const int lane = __ffs(left) - 1;
            const tile_pixels p(view_, __shfl_sync(ALL, column, lane), __shfl_sync(ALL, row, lane));
            if (any_pixel(of(lane), p)) reached |= 1u << lane;
        }
        return reached;
    }

  private:
    const kiln_view &view_;
    float right_, bottom_;
};

} // namespace

#endif
