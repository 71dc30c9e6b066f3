/* tile_pairs on CUDA. Each Gaussian's tiles are found once (tile_find_cuda.cuh) and kept as a mask
 * or, for wide boxes, as a number. Groups of 256 Gaussians sum up their pairs, and a scan over the
 * groups turns sums into places. Then pairs are written in rank order (tile_write_cuda.cuh), and a
 * stable sort by tile makes the lists.
 */
#include "kernels/tile_pairs/tile_pairs.h"

#include "kernels/cuda.cuh"
#include "kernels/tile_pairs/tile_sort_cuda.cuh"
#include "kernels/tile_pairs/tile_write_cuda.cuh"

namespace
{

job job_of(uint64_t n, const kiln_splat2d *splats, const kiln_view *view, uint32_t row0,
           uint32_t row1)
{
    return {{n, nullptr}, splats, *view, row0, row1};
}

/* Counters and sums are adjacent, so that one call clears them. */
struct find_work {
    found f;
    uint64_t *counters;
    size_t counters_bytes;
};

/* by_row: for the sums of tile rows alone, which need no records. */
find_work take_find(kiln_carve *c, const job &j, bool by_row)
{
    find_work w = {};
    const uint64_t n = j.count.n, n_counters = groups_of(n) + 3;
    if (!by_row) w.f.records = kiln::take<record>(c, n);
    w.f.listed = kiln::take<uint32_t>(c, n);
    w.f.listed_capacity = n;
    w.counters = kiln::take<uint64_t>(c, n_counters);
    w.counters_bytes = n_counters * sizeof *w.counters;
    w.f.n_wide = w.counters;
    w.f.n_odd = w.counters ? w.counters + 1 : nullptr;
    w.f.group_pairs = w.counters ? w.counters + 2 : nullptr;
    return w;
}

template <bool BY_ROW>
kiln_status find_job_pairs(const kiln_exec *x, const job &j, const find_work &w,
                           uint64_t *row_pairs, kiln_error *err)
{
    CUDA_RUN(cudaMemsetAsync(w.counters, 0, w.counters_bytes, x->stream));
    return find_pairs<BY_ROW>(x, j, w.f, row_pairs, err);
}

uint64_t tiles_of(const kiln_tile_pairs_emit_args *a)
{
    return static_cast<uint64_t>(a->row1 - a->row0) * kiln_view_tiles_x(a->view);
}

template <typename Tile> struct emit_work {
    job j;
    find_work find;
    tile_sort<Tile> sort;
    size_t bytes;
};

template <typename Tile>
void lay_out_emit(emit_work<Tile> *w, const kiln_tile_pairs_emit_args *a, void *work)
{
    kiln_carve c = {static_cast<char *>(work), 0};
    w->j = job_of(a->n, a->splats, a->view, a->row0, a->row1);
    w->find = take_find(&c, w->j, false);
    w->find.f.cleared = a->tile_counts;
    w->find.f.n_cleared = tiles_of(a);
    lay_out_between(&w->sort, &c, a->capacity, tiles_of(a), a->n, a->ranks);
    lay_out_tile_sort(&w->sort, &c, a->capacity, kiln::take<kiln::radix_state>(&c, 1));
    w->bytes = c.used;
}

template <typename Tile>
capacity_rule rule_of(const kiln_tile_pairs_emit_args *a, const emit_work<Tile> &w)
{
    return {w.find.f.group_pairs + groups_of(a->n), a->capacity, a->n_pairs != nullptr};
}

/* Writes the pairs, Gaussian by Gaussian. */
template <typename Tile>
kiln_status write_pairs(const kiln_exec *x, const kiln_tile_pairs_emit_args *a,
                        const emit_work<Tile> &w, kiln_error *err)
{
    const found &f = w.find.f;
    const capacity_rule rule = rule_of(a, w);
    const pairs_out<Tile> out = {w.sort.tiles(), w.sort.ids(), kiln_view_tiles_x(a->view), rule};
    KILN_TRY(find_job_pairs<false>(x, w.j, w.find, nullptr, err));
    LAUNCH(scan_groups, 1, WIDE_BLOCK, 0, f.group_pairs, groups_of(a->n) + 1, rule, a->n_pairs,
           x->violation);
    LAUNCH(write_masks<Tile>, kiln::blocks_for(a->n, GROUP, FIND_BLOCKS), GROUP, 0, w.j, f, out);
    LAUNCH_EARLY(write_rest<Tile>, FIND_BLOCKS, GROUP, w.j, f, out);
    return KILN_OK;
}

template <typename Tile>
kiln_status emit(const kiln_exec *x, const kiln_tile_pairs_emit_args *a, void *work,
                 size_t *work_bytes, kiln_error *err)
{
    emit_work<Tile> w;
    lay_out_emit(&w, a, work);
    if (!work) {
        *work_bytes = w.bytes;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("tile_pairs_emit", w.bytes, *work_bytes, err));
    CUDA_RUN(cudaMemsetAsync(w.sort.radix.state, 0, sizeof *w.sort.radix.state, x->stream));
    KILN_TRY(write_pairs(x, a, w, err));
    return sort_lists(x, w.sort, rule_of(a, w), a->tile_counts, err);
}

} // namespace

extern "C" kiln_status kiln_tile_pairs_count_cuda(const kiln_exec *x,
                                                  const kiln_tile_pairs_count_args *a, void *work,
                                                  size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "tile_pairs_count");
    CUDA_ENTER(entry.guard);
    KILN_TRY(kiln_tile_pairs_check(a->n, a->view, a->row0, a->row1, err));
    kiln_carve c = {static_cast<char *>(work), 0};
    const job j = job_of(a->n, a->splats, a->view, a->row0, a->row1);
    const find_work w = take_find(&c, j, true);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("tile_pairs_count", c.used, *work_bytes, err));
    CUDA_RUN(
        cudaMemsetAsync(a->row_pairs, 0, (a->row1 - a->row0) * sizeof *a->row_pairs, x->stream));
    return find_job_pairs<true>(x, j, w, a->row_pairs, err);
}

extern "C" kiln_status kiln_tile_pairs_emit_cuda(const kiln_exec *x,
                                                 const kiln_tile_pairs_emit_args *a, void *work,
                                                 size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "tile_pairs_emit");
    CUDA_ENTER(entry.guard);
    KILN_TRY(kiln_tile_pairs_emit_check(a, err));
    return have_words(tiles_of(a), a->n) ? emit<uint16_t>(x, a, work, work_bytes, err)
                                         : emit<uint32_t>(x, a, work, work_bytes, err);
}
