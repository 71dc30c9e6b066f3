/* fit -- see fit.h. Parts give the result of the whole because tile rows are independent: a pair
 * belongs to one tile row and a pixel to one tile. Leaving out Gaussians without a pair in a part
 * keeps the order of the others. Counts add up. */
#include "kernels/draw/fit.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Copies of some Gaussians of a view, in its order. */
typedef struct {
    uint64_t n;
    kiln_splat2d *splats;
    uint32_t *from; /* [n] position in the view */
} subset;

static void subset_release(subset *s)
{
    free(s->splats);
    free(s->from);
}

/* Tile rows of a view, and which of its pairs they have. */
typedef struct {
    uint32_t row0, row1;
    uint64_t first, pairs;
} stretch;

/* Cuts a stretch in two: *upper has n tile rows of `pairs` pairs. */
static void cut_stretch(const stretch *s, uint32_t n, uint64_t pairs, stretch *upper,
                        stretch *lower)
{
    *upper = (stretch){s->row0, s->row0 + n, s->first, pairs};
    *lower = (stretch){s->row0 + n, s->row1, s->first + pairs, s->pairs - pairs};
}

/* Sets *need to the device memory of the operation (0 on the CPU) and *yes if the cap allows it. */
static kiln_status op_fits(kiln_runner *r, kiln_op_id op, const void *args, uint64_t *need,
                           bool *yes, kiln_error *err)
{
    KILN_TRY(kiln_runner_need(r, op, args, need, err));
    *yes = *need <= kiln_runner_get_info(r).cap_bytes;
    return KILN_OK;
}

enum { PIECE = 65536 }; /* Gaussians that a thread takes at a time */

static void take_marked_splats(const kiln_splat2d *splats, const uint32_t *mark, uint64_t first,
                               uint64_t end, uint64_t at, subset *s)
{
    for (uint64_t i = first; i < end; i++) {
        if (!mark[i]) continue;
        s->splats[at] = splats[i];
        s->from[at++] = (uint32_t)i;
    }
}

/* Copies the Gaussians whose mark is not 0: n of `of`. */
static kiln_status take_marked(kiln_runner *r, const kiln_splat2d *splats, const uint32_t *mark,
                               uint64_t of, uint64_t n, subset *s, kiln_error *err)
{
    const int threads = (int)kiln_runner_get_info(r).threads;
    const uint64_t pieces = of / PIECE + 1;
    uint64_t *starts;
    KILN_TRY(KILN_ALLOC_UNSET(&s->splats, n, "the Gaussians of a part", err));
    KILN_TRY(KILN_ALLOC_UNSET(&s->from, n, "the Gaussians of a part", err));
    KILN_TRY(KILN_ALLOC(&starts, pieces, "the Gaussians of a part", err));
#pragma omp parallel for num_threads(threads)
    for (uint64_t p = 0; p < pieces; p++)
        for (uint64_t i = p * PIECE; i < of && i < (p + 1) * PIECE; i++) starts[p] += mark[i] != 0;
    for (uint64_t p = 0; p < pieces; p++) {
        const uint64_t count = starts[p];
        starts[p] = s->n;
        s->n += count;
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (uint64_t p = 0; p < pieces; p++)
        take_marked_splats(splats, mark, p * PIECE, of < (p + 1) * PIECE ? of : (p + 1) * PIECE,
                           starts[p], s);
    free(starts);
    return KILN_OK;
}

/* ---- count ----------------------------------------------------------------------------------- */
kiln_status kiln_fit_count(kiln_runner *r, const kiln_tile_pairs_count_args *a, kiln_error *err)
{
    enum { PART_MIN = 65536 };
    bool yes;
    uint64_t need;
    KILN_TRY(op_fits(r, KILN_OP_tile_pairs_count, a, &need, &yes, err));
    if (yes || a->n <= PART_MIN) return kiln_runner_run(r, KILN_OP_tile_pairs_count, a, err);
    kiln_tile_pairs_count_args part = *a;
    uint64_t *rows, n_rows = a->row1 - a->row0;
    part.n = a->n / 2;
    KILN_TRY(kiln_fit_count(r, &part, err));
    KILN_TRY(KILN_ALLOC(&rows, n_rows, "pairs of tile rows", err));
    part.splats = a->splats + part.n;
    part.n = a->n - part.n;
    part.row_pairs = rows;
    const kiln_status st = kiln_fit_count(r, &part, err);
    for (uint64_t i = 0; st == KILN_OK && i < n_rows; i++) a->row_pairs[i] += rows[i];
    free(rows);
    return st;
}

/* ---- emit ------------------------------------------------------------------------------------ */
static kiln_status pairs_of_rows(kiln_runner *r, const kiln_tile_pairs_emit_args *a, uint32_t row0,
                                 uint32_t row1, uint64_t *pairs, kiln_error *err)
{
    uint64_t *rows;
    KILN_TRY(KILN_ALLOC(&rows, row1 - row0, "pairs of tile rows", err));
    const kiln_tile_pairs_count_args count = {.n = a->n,
                                              .splats = a->splats,
                                              .view = a->view,
                                              .row0 = row0,
                                              .row1 = row1,
                                              .row_pairs = rows};
    const kiln_status st = kiln_fit_count(r, &count, err);
    *pairs = 0;
    for (uint32_t i = 0; st == KILN_OK && i < row1 - row0; i++) *pairs += rows[i];
    free(rows);
    return st;
}

static bool touches(const kiln_splat2d *s, uint32_t row0, uint32_t row1)
{
    return s->tile_y0 < (int32_t)row1 && s->tile_y1 > (int32_t)row0;
}

/* Returns true if copying only the Gaussians of these rows to a device is likely to save time. need
 * is 0 on the CPU, where nothing is copied. */
static bool leaving_out_pays(uint64_t need, const kiln_view *v, uint32_t row0, uint32_t row1)
{
    return need > 0 && row1 - row0 <= kiln_view_tiles_y(v) / 2;
}

static uint64_t mark_touching(kiln_runner *r, const kiln_splat2d *splats, uint64_t of,
                              uint32_t row0, uint32_t row1, uint32_t *mark)
{
    uint64_t n = 0;
    const int threads = (int)kiln_runner_get_info(r).threads;
#pragma omp parallel for num_threads(threads) reduction(+ : n)
    for (uint64_t i = 0; i < of; i++) {
        mark[i] = touches(&splats[i], row0, row1);
        n += mark[i];
    }
    return n;
}

/* Lists the marked Gaussians; ranks are translated to positions in the whole view. */
static kiln_status emit_marked(kiln_runner *r, kiln_tile_pairs_emit_args part,
                               const kiln_tile_pairs_emit_args *a, const uint32_t *mark,
                               kiln_error *err)
{
    subset s = {0};
    const int threads = (int)kiln_runner_get_info(r).threads;
    kiln_status st = take_marked(r, a->splats, mark, a->n, part.n, &s, err);
    part.splats = s.splats;
    if (st == KILN_OK) st = kiln_runner_run(r, KILN_OP_tile_pairs_emit, &part, err);
    if (st == KILN_OK) {
#pragma omp parallel for num_threads(threads)
        for (uint64_t i = 0; i < part.capacity; i++) part.ranks[i] = s.from[part.ranks[i]];
    }
    subset_release(&s);
    return st;
}

/* Lists these tile rows of a. Counts and ranks are written where the whole has them. mark [a->n] is
 * work space. */
static kiln_status emit_rows(kiln_runner *r, const kiln_tile_pairs_emit_args *a, const stretch *s,
                             uint32_t *mark, kiln_error *err)
{
    bool yes;
    uint64_t above, need;
    stretch upper, lower;
    kiln_tile_pairs_emit_args part = *a;
    part.n = mark_touching(r, a->splats, a->n, s->row0, s->row1, mark);
    part.row0 = s->row0;
    part.row1 = s->row1;
    part.capacity = s->pairs;
    part.tile_counts = a->tile_counts + (uint64_t)(s->row0 - a->row0) * kiln_view_tiles_x(a->view);
    part.ranks = a->ranks + s->first;
    KILN_TRY(op_fits(r, KILN_OP_tile_pairs_emit, &part, &need, &yes, err));
    if (yes || s->row1 - s->row0 <= 1) return emit_marked(r, part, a, mark, err);
    const uint32_t half = (s->row1 - s->row0) / 2;
    KILN_TRY(pairs_of_rows(r, a, s->row0, s->row0 + half, &above, err));
    if (above > s->pairs)
        return kiln_fail(
            err, KILN_E_BUG, "tile rows %u to %u hold %llu pairs, but %llu were counted for all",
            s->row0, s->row0 + half, (unsigned long long)above, (unsigned long long)s->pairs);
    cut_stretch(s, half, above, &upper, &lower);
    KILN_TRY(emit_rows(r, a, &upper, mark, err));
    return emit_rows(r, a, &lower, mark, err);
}

/* all_show: Gaussians that do not touch these rows were left out before. */
static kiln_status emit(kiln_runner *r, const kiln_tile_pairs_emit_args *a, bool all_show,
                        kiln_error *err)
{
    bool yes;
    uint64_t need;
    uint32_t *mark;
    KILN_TRY(op_fits(r, KILN_OP_tile_pairs_emit, a, &need, &yes, err));
    yes = yes && (all_show || !leaving_out_pays(need, a->view, a->row0, a->row1));
    if (yes || a->row0 == a->row1) return kiln_runner_run(r, KILN_OP_tile_pairs_emit, a, err);
    KILN_TRY(KILN_ALLOC_UNSET(&mark, a->n, "the Gaussians of a part", err));
    const kiln_status st = emit_rows(r, a, &(stretch){a->row0, a->row1, 0, a->capacity}, mark, err);
    free(mark);
    return st;
}

kiln_status kiln_fit_emit(kiln_runner *r, const kiln_tile_pairs_emit_args *a, kiln_error *err)
{
    return emit(r, a, false, err);
}

/* ---- raster ---------------------------------------------------------------------------------- */
/* Marks the Gaussians that appear in n ranks; *named is their number. */
static kiln_status mark_named(const kiln_raster_args *a, const uint32_t *ranks, uint64_t n,
                              uint32_t *mark, uint64_t *named, kiln_error *err)
{
    *named = 0;
    memset(mark, 0, a->n * sizeof *mark);
    for (uint64_t i = 0; i < n; i++) {
        if (ranks[i] >= a->n)
            return kiln_fail(err, KILN_E_INPUT, "a tile list names Gaussian %u of %llu", ranks[i],
                             (unsigned long long)a->n);
        *named += !mark[ranks[i]];
        mark[ranks[i]] = 1;
    }
    return KILN_OK;
}

/* Blends the marked Gaussians. part.ranks are positions in the whole; mark becomes their positions
 * in the part. */
static kiln_status raster_marked(kiln_runner *r, kiln_raster_args part, const kiln_raster_args *a,
                                 uint32_t *mark, kiln_error *err)
{
    kiln_status st;
    subset s = {0};
    uint32_t *ranks = NULL;
    const int threads = (int)kiln_runner_get_info(r).threads;
    KILN_GO(take_marked(r, a->splats, mark, a->n, part.n, &s, err));
    KILN_GO(KILN_ALLOC_UNSET(&ranks, part.n_pairs, "the lists of a part", err));
    for (uint64_t k = 0; k < s.n; k++) mark[s.from[k]] = (uint32_t)k;
#pragma omp parallel for num_threads(threads)
    for (uint64_t i = 0; i < part.n_pairs; i++) ranks[i] = mark[part.ranks[i]];
    part.splats = s.splats;
    part.ranks = ranks;
    KILN_GO(kiln_runner_run(r, KILN_OP_raster, &part, err));
done:
    free(ranks);
    subset_release(&s);
    return st;
}

/* Blends these tile rows of a. mark [a->n] is work space. */
static kiln_status raster_rows(kiln_runner *r, const kiln_raster_args *a, const stretch *s,
                               uint32_t *mark, kiln_error *err)
{
    bool yes;
    uint64_t above = 0, need;
    stretch upper, lower;
    /* before these rows */
    const uint64_t pixels = (uint64_t)(s->row0 - a->row0) * KILN_TILE * a->view->width;
    kiln_raster_args part = *a;
    KILN_TRY(mark_named(a, a->ranks + s->first, s->pairs, mark, &part.n, err));
    part.row0 = s->row0;
    part.row1 = s->row1;
    part.tile_counts = a->tile_counts + (uint64_t)(s->row0 - a->row0) * kiln_view_tiles_x(a->view);
    part.ranks = a->ranks + s->first;
    part.n_pairs = s->pairs;
    part.rgba = a->rgba ? a->rgba + 4 * pixels : NULL;
    part.depth = a->depth ? a->depth + pixels : NULL;
    part.state = a->state ? a->state + pixels : NULL;
    KILN_TRY(op_fits(r, KILN_OP_raster, &part, &need, &yes, err));
    if (!yes && a->fast && s->row1 - s->row0 <= 1) /* no CPU draws it */
        return kiln_fail(err, KILN_E_CAP,
                         "a fast picture needs %llu bytes of the GPU's memory for a row of tiles, "
                         "but only %llu may be taken; "
                         "an exact picture needs less",
                         (unsigned long long)need,
                         (unsigned long long)kiln_runner_get_info(r).cap_bytes);
    if (yes || s->row1 - s->row0 <= 1) return raster_marked(r, part, a, mark, err);
    const uint32_t half = (s->row1 - s->row0) / 2;
    const uint64_t tiles = (uint64_t)half * kiln_view_tiles_x(a->view);
    for (uint64_t i = 0; i < tiles; i++) above += part.tile_counts[i];
    if (above > s->pairs)
        return kiln_fail(err, KILN_E_INPUT,
                         "the tiles list more than the %llu pairs that were given",
                         (unsigned long long)s->pairs);
    cut_stretch(s, half, above, &upper, &lower);
    KILN_TRY(raster_rows(r, a, &upper, mark, err));
    return raster_rows(r, a, &lower, mark, err);
}

kiln_status kiln_fit_raster(kiln_runner *r, const kiln_raster_args *a, kiln_error *err)
{
    bool yes;
    uint64_t need;
    uint32_t *mark;
    KILN_TRY(op_fits(r, KILN_OP_raster, a, &need, &yes, err));
    if (yes || a->row0 == a->row1) return kiln_runner_run(r, KILN_OP_raster, a, err);
    KILN_TRY(KILN_ALLOC_UNSET(&mark, a->n, "the Gaussians of a part", err));
    const kiln_status st =
        raster_rows(r, a, &(stretch){a->row0, a->row1, 0, a->n_pairs}, mark, err);
    free(mark);
    return st;
}

/* ---- a band, listed and drawn ---------------------------------------------------------------- */
static kiln_status list_and_draw(kiln_runner *r, const kiln_raster_args *a, uint32_t *counts,
                                 uint32_t *ranks, kiln_error *err)
{
    const kiln_tile_pairs_emit_args e = {.n = a->n,
                                         .splats = a->splats,
                                         .view = a->view,
                                         .row0 = a->row0,
                                         .row1 = a->row1,
                                         .capacity = a->n_pairs,
                                         .tile_counts = counts,
                                         .ranks = ranks};
    kiln_raster_args d = *a;
    d.tile_counts = counts;
    d.ranks = ranks;
    KILN_TRY(emit(r, &e, true, err));
    return kiln_fit_raster(r, &d, err);
}

kiln_status kiln_fit_band(kiln_runner *r, const kiln_raster_args *a, uint32_t *counts,
                          uint32_t *ranks, kiln_error *err)
{
    kiln_status st;
    subset s = {0};
    uint32_t *mark = NULL;
    kiln_raster_args part = *a;
    uint64_t need;
    part.tile_counts = counts;
    part.ranks = ranks;
    KILN_TRY(kiln_runner_need(r, KILN_OP_raster, &part, &need, err));
    if (!leaving_out_pays(need, a->view, a->row0, a->row1))
        return list_and_draw(r, a, counts, ranks, err);
    KILN_GO(KILN_ALLOC_UNSET(&mark, a->n, "the Gaussians of a band", err));
    part.n = mark_touching(r, a->splats, a->n, a->row0, a->row1, mark);
    if (part.n <= a->n / 2) { /* else the copies cost more than they save */
        KILN_GO(take_marked(r, a->splats, mark, a->n, part.n, &s, err));
        part.splats = s.splats;
    } else {
        part.n = a->n;
    }
    free(mark);
    mark = NULL;
    KILN_GO(list_and_draw(r, &part, counts, ranks, err));
done:
    free(mark);
    subset_release(&s);
    return st;
}
