/* tile_wide_cuda -- finds the tiles of Gaussians with wide boxes, one tile row for each lane.
 *
 * A row's answer is nearly always one run of tiles. On the pixel row that is nearest to the mean
 * the reached pixels are known with proof (kiln_row_reach), so the tiles that have them are reached
 * without a question: the core. From its ends the lane asks outwards, tile by tile, until one is
 * missed. All behind that one are missed as well: MISSED is proven by showing that an ellipse,
 * which contains every reached pixel centre, does not touch the tile (tile_ask_math.h). Of a convex
 * set the part within the tile row is convex, it contains the core, and so it ends before that
 * tile. A row without a core, as at the tips, is narrowed by halves that are missed, because MISSED
 * is proven of any rectangle. The rest is asked as a whole.
 */
#ifndef KILN_KERNELS_TILE_WIDE_CUDA_CUH
#define KILN_KERNELS_TILE_WIDE_CUDA_CUH

#include "kernels/tile_pairs/tile_ask_cuda.cuh"
#include "kernels/tile_pairs/tile_pairs_math.h"

namespace
{

/* Arguments of all kernels of one call. */
struct job {
    kiln::count_within count;
    const kiln_splat2d *splats;
    kiln_view view;
    uint32_t row0, row1;
};

constexpr uint64_t NO_PLACE = UINT64_MAX;

/* Columns [first, end) of a tile row of one Gaussian; none if first >= end. */
struct wide_run {
    uint32_t id;
    int32_t row, first, end;
    /* each row has one, for its last run or none; NO_PLACE: of another run, or the lane has no
     * row */
    uint64_t place;

    __device__ uint32_t n() const { return end > first ? static_cast<uint32_t>(end - first) : 0; }
    __device__ uint32_t tile(const job &j) const
    {
        return (static_cast<uint32_t>(row) - j.row0) * kiln_view_tiles_x(&j.view) +
               static_cast<uint32_t>(first);
    }
};

/* A lane's tile row. */
struct wide_row {
    uint32_t id;
    int32_t row, column, end; /* tile columns [column, end) of the box */
    uint64_t place;
    bool is_one; /* false: the lane has none */
};

/* The core; without one, nothing behind the box's last column. */
__device__ inline wide_run core_of(const kiln_view &v, const kiln_splat2d &s, const wide_row &r)
{
    const int32_t first = r.column * KILN_TILE,
                  last = min(r.end * KILN_TILE, static_cast<int32_t>(v.width)) - 1;
    const int32_t y0 = r.row * KILN_TILE,
                  y1 = min(y0 + KILN_TILE, static_cast<int32_t>(v.height)) - 1;
    const int32_t py = s.y > static_cast<float>(y0)
                           ? s.y < static_cast<float>(y1) ? static_cast<int32_t>(s.y) : y1
                           : y0;
    const float dy = kiln_power_offset(s.y, static_cast<uint32_t>(py));
    const kiln_row_span span =
        kiln_row_reach(s.x, kiln_power_half(s.conic[0]), kiln_power_slope(s.conic[1], dy),
                       kiln_power_base(kiln_power_half(s.conic[2]), dy), s.power_min, first, last);
    if (span.sure_first > span.sure_last) return {r.id, r.row, r.end, r.end, r.place};
    return {r.id, r.row, span.sure_first / KILN_TILE, span.sure_last / KILN_TILE + 1, r.place};
}

/* Asks from the core's ends, first to the left, then to the right, and adds what is reached to
 * *run. A run that cannot be continued goes to the sink. Called by a whole warp; a lane turns as
 * soon as it can, whatever the others do. */
template <typename Sink>
__device__ void ask_outwards(const tile_asker &asker, const kiln_asked &g, const wide_row &r,
                             const wide_run &core, wide_run *run, const Sink &sink)
{
    const auto whose = [&](int lane) {
        return kiln_asked{__shfl_sync(ALL, g.x, lane),
                          __shfl_sync(ALL, g.y, lane),
                          __shfl_sync(ALL, g.a, lane),
                          __shfl_sync(ALL, g.b, lane),
                          __shfl_sync(ALL, g.c, lane),
                          __shfl_sync(ALL, g.t, lane),
                          0.0f,
                          0.0f,
                          0.0f};
    };
    int32_t at = core.first - 1, step = -1;
    for (;;) {
        if (step < 0 && at < r.column) {
            at = core.end;
            step = 1;
        }
        const bool asks = r.is_one && at < r.end;
        if (!__any_sync(ALL, asks)) return;
        bool missed;
        const bool reached = asker.ask(asks, g, at, r.row, whose, &missed) >> lane_index() & 1;
        const bool apart = reached && run->n() > 0 && at != run->first - 1 && at != run->end;
        if (__any_sync(ALL, apart))
            sink(wide_run{r.id, r.row, apart ? run->first : 0, apart ? run->end : 0, NO_PLACE});
        if (reached && (apart || run->n() == 0)) run->first = run->end = at;
        if (reached && at < run->first) run->first = at;
        if (reached && at >= run->end) run->end = at + 1;
        at = missed && core.n() > 0 ? step < 0 ? r.column - 1 : r.end : at + step;
    }
}

/* Narrows a row without a core. */
__device__ inline void narrow(const tile_asker &asker, const kiln_asked &g, wide_row *r)
{
    const auto missed = [&](int32_t column, int32_t end) {
        return asker.answer(g, column, end, r->row) == KILN_TILE_MISSED;
    };
    if (missed(r->column, r->end)) r->end = r->column;
    while (r->end - r->column > 1) {
        const int32_t middle = r->column + (r->end - r->column) / 2;
        if (missed(r->column, middle))
            r->column = middle;
        else if (missed(middle, r->end))
            r->end = middle;
        else
            return;
    }
}

/* Passes the runs of the lanes' rows to the sink. Called by a whole warp. */
template <typename Sink> __device__ void ask_rows(const job &j, wide_row r, const Sink &sink)
{
    const kiln_splat2d s = load_splat(&j.splats[r.id]);
    const kiln_asked g = kiln_ask_of(&s);
    wide_run core = r.is_one ? core_of(j.view, s, r) : wide_run{r.id, r.row, 0, 0, NO_PLACE};
    const tile_asker asker(j.view);
    if (r.is_one && core.n() == 0) {
        narrow(asker, g, &r);
        core.first = core.end = r.end;
    }
    wide_run run = core;
    ask_outwards(asker, g, r, core, &run, sink);
    sink(run);
}

/* Called by all blocks of the grid: finds the runs of every wide Gaussian and passes them to
 * sink(run), one for each lane, called by a whole warp; some have no tiles. A block takes up to 32
 * Gaussians at a time. Each of its warps looks up all of them, one for each lane, and the warps
 * take turns with 32 of their rows. places(rows), called by the whole block, returns the place of
 * the first of so many rows. */
template <typename Found, typename Places, typename Sink>
__device__ void for_wide(const job &j, const Found &f, const Places &places, const Sink &sink)
{
    const bool has_list = f.has_list();
    const uint64_t n = has_list ? *f.n_wide : j.count.get();
    const uint32_t warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    for (uint64_t first = blockIdx.x; first < n; first += WARP * gridDim.x) {
        const uint64_t mine = first + static_cast<uint64_t>(lane_index()) * gridDim.x;
        uint32_t id = 0, total;
        kiln_tile_box box = {};
        if (mine < n) id = has_list ? f.listed[mine] : static_cast<uint32_t>(mine);
        if (mine < n && (has_list || f.records[id].is_listed())) {
            const kiln_splat2d s = load_splat(&j.splats[id]);
            /* without the list: odd ones */
            if (kiln_find_box(&s, &j.view, j.row0, j.row1, &box) != KILN_BOX_PROVEN) box = {};
        }
        const uint32_t before = sum_below(static_cast<uint32_t>(box.h), &total);
        const uint64_t place = places(total);
        for (uint32_t at = warp * WARP; at < total; at += warps * WARP) {
            const uint32_t k = at + lane_index();
            /* whose row k is: the last lane with `before` up to k; lanes without rows may be
             * anywhere */
            int lane = 0;
            for (int step = WARP / 2; step > 0; step /= 2)
                if (__shfl_sync(ALL, before, lane + step) <= k) lane += step;
            const int32_t column = __shfl_sync(ALL, box.column, lane),
                          w = __shfl_sync(ALL, box.w, lane);
            const int32_t row = __shfl_sync(ALL, box.row, lane) +
                                static_cast<int32_t>(k - __shfl_sync(ALL, before, lane));
            const bool is_one = k < total;
            ask_rows(j,
                     {__shfl_sync(ALL, id, lane), row, column, column + w,
                      is_one ? place + k : NO_PLACE, is_one},
                     sink);
        }
    }
}

} // namespace

#endif
