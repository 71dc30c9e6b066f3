/* tile_lists on CUDA. The depth sort needs only depths, and finding pairs needs only splats, so
 * both run side by side. Then pairs are written in drawing order (lists_write_cuda.cuh) and sorted
 * by tile. Only records of one word are fetched in drawing order; splats are never moved. A plan
 * for raster is made beside the last pass of that sort.
 */
#include "kernels/tile_lists/tile_lists.h"

#include "kernels/depth_order/depth_sort_cuda.cuh"
#include "kernels/raster/raster_plan_cuda.cuh"
#include "kernels/side_cuda.cuh"
#include "kernels/tile_lists/lists_write_cuda.cuh"
#include "kernels/tile_pairs/tile_sort_cuda.cuh"

#include <algorithm>

namespace
{

/* Up to so many Gaussians finding takes less time than two streams need to part and to join, some
 * 10 us on an H200, half of it the host's. */
enum { ONE_STREAM_MOST = 65536 };

/* Room for at least one listed Gaussian and one kept run for so many Gaussians: 1.25 bytes for each
 * of them. */
enum { LISTED_OF = 8, KEPT_OF = 16 };

template <typename Tile> struct workspace {
    job j;
    found f;
    group_places p;
    /* counters of f and p, and what both sorts count: set to 0 before the first launch */
    void *cleared;
    size_t cleared_bytes;
    depth_sort depths;
    tile_sort<Tile> tiles;
    size_t bytes;
};

uint64_t tiles_of(const kiln_tile_lists_args *a)
{
    return static_cast<uint64_t>(a->row1 - a->row0) * kiln_view_tiles_x(a->view);
}

/* states: of the depth sort and of the sort by tile. */
template <typename Tile>
void take_cleared(workspace<Tile> *w, kiln_carve *c, uint64_t n, kiln::radix_state *(&states)[2])
{
    const size_t before = c->used;
    uint64_t *const counters = kiln::take<uint64_t>(c, 4);
    /* one group tells the numbers even if there are no Gaussians */
    w->p.places = kiln::take_places(c, std::max<uint64_t>(groups_of(n), 1));
    for (kiln::radix_state *&state : states) state = kiln::take<kiln::radix_state>(c, 1);
    if (!counters) return;
    w->cleared = counters;
    w->cleared_bytes = c->used - before;
    w->f.n_wide = counters;
    w->f.n_odd = counters + 1;
    w->p.ticket = reinterpret_cast<uint32_t *>(counters + 2);
    w->f.n_kept = counters + 3;
}

/* Lays out one part of the work in the same memory as another, which is used at other times. */
template <typename One, typename Other>
void share(kiln_carve *c, const One &lay_out_one, const Other &lay_out_other)
{
    kiln_carve one = *c, other = *c;
    lay_out_one(&one);
    lay_out_other(&other, one.used);
    c->used = one.used > other.used ? one.used : other.used;
}

/* What is found, until pairs are sorted. Of what room there is up to `end`, a third is for the list
 * and the rest for runs. */
template <typename Tile> void take_found(workspace<Tile> *w, kiln_carve *c, uint64_t n, size_t end)
{
    found *const f = &w->f;
    f->records = kiln::take<record>(c, n);
    const auto fitting = [&](size_t bytes) { return end > c->used ? (end - c->used) / bytes : 0; };
    f->listed_capacity =
        std::min(n, std::max<uint64_t>(fitting(3 * sizeof *f->listed), n / LISTED_OF));
    f->listed = kiln::take<uint32_t>(c, f->listed_capacity);
    f->kept_capacity = std::max<uint64_t>(fitting(sizeof *f->kept), n / KEPT_OF);
    f->kept = kiln::take<kept_run>(c, f->kept_capacity);
}

/* First what is found lies where pairs lie between the passes of the sort; and the depth sort lies
 * where pairs are written, as far as ids have room for two of its arrays. */
template <typename Tile>
void lay_out_tile_lists(workspace<Tile> *w, const kiln_tile_lists_args *a, void *work)
{
    const kiln::count_within count = {a->n, a->n_visible};
    kiln_carve c = {static_cast<char *>(work), 0};
    kiln::radix_state *states[2];
    *w = {};
    w->j = {count, a->splats, *a->view, a->row0, a->row1};
    w->f.cleared = a->tile_counts;
    w->f.n_cleared = tiles_of(a);
    take_cleared(w, &c, a->n, states);
    uint32_t *const order = kiln::take<uint32_t>(&c, a->n);
    share(
        &c,
        [&](kiln_carve *one) {
            lay_out_between(&w->tiles, one, a->capacity, tiles_of(a), a->n, a->ids);
        },
        [&](kiln_carve *other, size_t end) { take_found(w, other, a->n, end); });
    share(
        &c, [&](kiln_carve *one) { lay_out_tile_sort(&w->tiles, one, a->capacity, states[1]); },
        [&](kiln_carve *other, size_t) {
            kiln_carve ids = {reinterpret_cast<char *>(a->ids), 0};
            /* a piece is aligned to 256 bytes, or twice that with red zones */
            const bool fits = a->capacity / 2 >= a->n + 128;
            lay_out_depth_sort(&w->depths, other, fits ? &ids : other,
                               {count, a->depths, a->source_rows}, order, states[0]);
        });
    w->bytes = c.used;
}

/* Finds pairs on x->stream and sorts depths on x->side at the same time; of few Gaussians one after
 * the other, each launch put on the device while the one before ends. */
template <typename Tile>
kiln_status find_and_order(const kiln_exec *x, workspace<Tile> *w, kiln_error *err)
{
    kiln::side_work side(x, w->j.count.n > ONE_STREAM_MOST);
    KILN_TRY(side.begin(err));
    /* two launches first: they keep the device busy while the host makes the sort's dozen */
    KILN_TRY(find_pairs<false>(x, w->j, w->f, nullptr, err));
    if (w->j.count.n > 0) KILN_TRY(run_depth_sort(side.exec(), w->depths, err));
    return side.join(err);
}

template <typename Tile>
kiln_status run_tile_lists(const kiln_exec *x, const kiln_tile_lists_args *a, void *work,
                           size_t *work_bytes, kiln_error *err)
{
    workspace<Tile> w;
    lay_out_tile_lists(&w, a, work);
    if (!work) {
        *work_bytes = w.bytes;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("tile_lists", w.bytes, *work_bytes, err));
    const capacity_rule rule = {a->stats + 1, a->capacity, true};
    const pairs_out<Tile> out = {w.tiles.tiles(), w.tiles.ids(), kiln_view_tiles_x(a->view), rule};
    CUDA_RUN(cudaMemsetAsync(w.cleared, 0, w.cleared_bytes, x->stream));
    KILN_TRY(find_and_order(x, &w, err));
    /* behind the wait for the side it is an ordinary launch */
    LAUNCH_EARLY(write_in_order<Tile>, kiln::blocks_for(a->n, GROUP, WRITE_BLOCKS), GROUP, w.j, w.f,
                 w.p, w.depths.order, out, a->stats);
    LAUNCH_EARLY(finish_pairs<Tile>, FIND_BLOCKS, GROUP, w.j, w.f, out);
    const plan_rider rider = {
        plan_of(a->plan, a->tile_counts, a->row0, a->row1, kiln_view_tiles_x(a->view))};
    return sort_lists(x, w.tiles, rule, a->tile_counts, err, rider);
}

} // namespace

extern "C" kiln_status kiln_tile_lists_cuda(const kiln_exec *x, const kiln_tile_lists_args *a,
                                            void *work, size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "tile_lists");
    CUDA_ENTER(entry.guard);
    KILN_TRY(kiln_tile_lists_check(a, err));
    return have_words(tiles_of(a), a->n) ? run_tile_lists<uint16_t>(x, a, work, work_bytes, err)
                                         : run_tile_lists<uint32_t>(x, a, work, work_bytes, err);
}
