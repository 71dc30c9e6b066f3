/* tile_lists on CUDA. The depth sort needs only depths, and finding pairs needs only splats, so both run side by side. Then pairs
 * are written in drawing order (lists_write_cuda.cuh) and sorted by tile. Only records of one word are fetched in drawing order;
 * splats are never moved.
 */
#include "kernels/tile_lists/tile_lists.h"

#include "kernels/depth_order/depth_sort_cuda.cuh"
#include "kernels/side_cuda.cuh"
#include "kernels/tile_lists/lists_write_cuda.cuh"
#include "kernels/tile_pairs/tile_sort_cuda.cuh"

namespace
{

enum { KEPT_OF = 8 }; /* one kept slice for so many Gaussians: 7 bytes for each of them */

template <typename Tile> struct workspace {
    job j;
    found f;
    places p;
    void *cleared; /* counters of f and p, and what both sorts count: set to 0 before the first launch */
    size_t cleared_bytes;
    depth_sort depths;
    tile_sort<Tile> tiles;
    size_t bytes;
};

uint64_t tiles_of(const kiln_tile_lists_args *a) { return static_cast<uint64_t>(a->row1 - a->row0) * kiln_view_tiles_x(a->view); }

template <typename Tile> void take_found(workspace<Tile> *w, kiln_carve *c, uint64_t n)
{
    w->f.r = {kiln::take<record>(c, n), kiln::take<uint32_t>(c, n)};
    w->f.listed = kiln::take<uint32_t>(c, n);
    w->f.kept_capacity = n / KEPT_OF;
    w->f.kept = kiln::take<kept_slice>(c, w->f.kept_capacity);
}

/* states: of the depth sort and of the sort by tile. */
template <typename Tile> void take_cleared(workspace<Tile> *w, kiln_carve *c, uint64_t n, kiln::radix_state *(&states)[2])
{
    const size_t before = c->used;
    uint64_t *const counters = kiln::take<uint64_t>(c, 4 + groups_of(n));
    for (kiln::radix_state *&state : states) state = kiln::take<kiln::radix_state>(c, 1);
    if (!counters) return;
    w->cleared = counters;
    w->cleared_bytes = c->used - before;
    w->f.n_wide = counters;
    w->f.n_odd = counters + 1;
    w->p.ticket = reinterpret_cast<uint32_t *>(counters + 2);
    w->f.n_kept = counters + 3;
    w->p.words = counters + 4;
}

/* The depth sort's keys and the pairs share memory: only the order is needed after the sort. */
template <typename Tile> void lay_out(workspace<Tile> *w, const kiln_tile_lists_args *a, void *work)
{
    const kiln::count_within count = {a->n, a->n_visible};
    kiln_carve c = {static_cast<char *>(work), 0};
    *w = {};
    w->j = {count, a->splats, *a->view, a->row0, a->row1};
    kiln::radix_state *states[2];
    take_cleared(w, &c, a->n, states);
    take_found(w, &c, a->n);
    uint32_t *const order = kiln::take<uint32_t>(&c, a->n);
    kiln_carve shared = c;
    uint32_t *const spare = kiln::take<uint32_t>(&shared, a->n);
    lay_out_depth_sort(&w->depths, &shared, {count, a->depths, a->source_rows}, order, spare, states[0]);
    lay_out_tile_sort(&w->tiles, &c, a->capacity, tiles_of(a), a->ids, states[1]);
    w->bytes = c.used > shared.used ? c.used : shared.used;
}

/* Finds pairs on x->stream and sorts depths on x->side at the same time. */
template <typename Tile> kiln_status find_and_order(const kiln_exec *x, workspace<Tile> *w, kiln_error *err)
{
    kiln::side_work side(x);
    KILN_TRY(side.begin(err));
    KILN_TRY(find_pairs<false>(x, w->j, w->f, nullptr,
                               err)); /* two launches first: they keep the device busy while the host makes the sort's dozen */
    if (w->j.count.n > 0) KILN_TRY(run_depth_sort(side.exec(), w->depths, err));
    return side.join(err);
}

template <typename Tile>
kiln_status list(const kiln_exec *x, const kiln_tile_lists_args *a, void *work, size_t *work_bytes, kiln_error *err)
{
    workspace<Tile> w;
    lay_out(&w, a, work);
    if (!work) {
        *work_bytes = w.bytes;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("tile_lists", w.bytes, *work_bytes, err));
    const capacity_rule rule = {a->stats + 1, a->capacity, true};
    const pairs_out<Tile> out = {w.tiles.tiles(), w.tiles.ids(), kiln_view_tiles_x(a->view), rule};
    CUDA_RUN(cudaMemsetAsync(w.cleared, 0, w.cleared_bytes, x->stream));
    CUDA_RUN(cudaMemsetAsync(a->tile_counts, 0, tiles_of(a) * sizeof *a->tile_counts, x->stream));
    KILN_TRY(find_and_order(x, &w, err));
    const unsigned groups = static_cast<unsigned>(a->n > 0 ? groups_of(a->n) : 1);
    LAUNCH(write_in_order<Tile>, groups, GROUP, 0, w.j, w.f, w.p, w.depths.order, out, a->stats);
    LAUNCH_EARLY(finish_pairs<Tile>, FIND_BLOCKS, GROUP, w.j, w.f, out);
    return sort_lists(x, w.tiles, rule, a->tile_counts, err);
}

} // namespace

extern "C" kiln_status kiln_tile_lists_cuda(const kiln_exec *x, const kiln_tile_lists_args *a, void *work, size_t *work_bytes,
                                            kiln_error *err)
{
    const kiln::entry entry(x, "tile_lists");
    CUDA_ENTER(entry.guard);
    KILN_TRY(kiln_tile_lists_check(a, err));
    return tiles_of(a) <= NARROW_TILES ? list<uint16_t>(x, a, work, work_bytes, err) : list<uint32_t>(x, a, work, work_bytes, err);
}
