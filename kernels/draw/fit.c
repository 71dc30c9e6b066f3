/* fit -- why parts give the whole: a pair belongs to one tile row and a pixel to one tile, so tile rows are independent;
 * leaving out Gaussians that have no pair in a part keeps the order of the others; and counts add up. */
#include "kernels/draw/fit.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Some of the Gaussians of a frame, in its order. */
typedef struct {
    uint64_t n;
    kiln_splat2d *splats;
    uint32_t *from; /* [n] position in the frame */
} subset;

static void subset_release(subset *s)
{
    free(s->splats);
    free(s->from);
}

static kiln_status subset_alloc(subset *s, uint64_t n, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&s->splats, n, "the Gaussians of a part", err));
    return KILN_ALLOC(&s->from, n, "the Gaussians of a part", err);
}

static kiln_status fits(kiln_runner *r, kiln_op_id op, const void *args, bool *yes, kiln_error *err)
{
    uint64_t need;
    KILN_TRY(kiln_runner_need(r, op, args, &need, err));
    *yes = need <= kiln_runner_tell(r).cap_bytes;
    return KILN_OK;
}

static bool touches(const kiln_splat2d *s, uint32_t row0, uint32_t row1)
{
    return s->tile_y0 < (int32_t)row1 && s->tile_y1 > (int32_t)row0;
}

/* ---- count ------------------------------------------------------------------------------------------------------------- */
kiln_status kiln_fit_count(kiln_runner *r, const kiln_tile_pairs_count_args *a, kiln_error *err)
{
    enum { PART_MIN = 65536 };
    bool yes;
    KILN_TRY(fits(r, KILN_OP_tile_pairs_count, a, &yes, err));
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

/* ---- emit -------------------------------------------------------------------------------------------------------------- */
static kiln_status pairs_of_rows(kiln_runner *r, const kiln_tile_pairs_emit_args *a, uint32_t row0, uint32_t row1, uint64_t *pairs,
                                 kiln_error *err)
{
    uint64_t *rows;
    KILN_TRY(KILN_ALLOC(&rows, row1 - row0, "pairs of tile rows", err));
    const kiln_tile_pairs_count_args count = {
        .n = a->n, .splats = a->splats, .view = a->view, .row0 = row0, .row1 = row1, .row_pairs = rows};
    const kiln_status st = kiln_fit_count(r, &count, err);
    *pairs = 0;
    for (uint32_t i = 0; st == KILN_OK && i < row1 - row0; i++) *pairs += rows[i];
    free(rows);
    return st;
}

/* Tile rows [row0, row1) of a: their counts and ranks go to where the whole has them. */
static kiln_status emit_part(kiln_runner *r, const kiln_tile_pairs_emit_args *a, uint32_t row0, uint32_t row1, uint64_t first,
                             uint64_t pairs, kiln_error *err)
{
    kiln_status st;
    subset s = {0};
    uint64_t n = 0;
    for (uint64_t i = 0; i < a->n; i++) n += touches(&a->splats[i], row0, row1);
    KILN_GO(subset_alloc(&s, n, err));
    for (uint64_t i = 0; i < a->n; i++) {
        if (!touches(&a->splats[i], row0, row1)) continue;
        s.splats[s.n] = a->splats[i];
        s.from[s.n++] = (uint32_t)i;
    }
    kiln_tile_pairs_emit_args part = *a;
    part.n = s.n;
    part.splats = s.splats;
    part.row0 = row0;
    part.row1 = row1;
    part.room = pairs;
    part.tile_counts = a->tile_counts + (uint64_t)(row0 - a->row0) * kiln_view_tiles_x(a->view);
    part.ranks = a->ranks + first;
    KILN_GO(kiln_fit_emit(r, &part, err));
    for (uint64_t i = 0; i < pairs; i++) part.ranks[i] = s.from[part.ranks[i]];
done:
    subset_release(&s);
    return st;
}

kiln_status kiln_fit_emit(kiln_runner *r, const kiln_tile_pairs_emit_args *a, kiln_error *err)
{
    bool yes;
    uint64_t above;
    KILN_TRY(fits(r, KILN_OP_tile_pairs_emit, a, &yes, err));
    if (yes || a->row1 - a->row0 <= 1) return kiln_runner_run(r, KILN_OP_tile_pairs_emit, a, err);
    const uint32_t middle = a->row0 + (a->row1 - a->row0) / 2;
    KILN_TRY(pairs_of_rows(r, a, a->row0, middle, &above, err));
    if (above > a->room)
        return kiln_fail(err, KILN_E_BUG, "tile rows %u to %u hold %llu pairs, all of them %llu were counted", a->row0, middle,
                         (unsigned long long)above, (unsigned long long)a->room);
    KILN_TRY(emit_part(r, a, a->row0, middle, 0, above, err));
    return emit_part(r, a, middle, a->row1, above, a->room - above, err);
}

/* ---- raster ------------------------------------------------------------------------------------------------------------ */
/* The Gaussians that n ranks name, and the ranks as positions among those. place: [a->n], any content. */
static kiln_status take_named(const kiln_raster_args *a, const uint32_t *ranks, uint64_t n, uint32_t *place, subset *s,
                              uint32_t *renamed, kiln_error *err)
{
    memset(place, 0, a->n * sizeof *place);
    for (uint64_t i = 0; i < n; i++) {
        if (ranks[i] >= a->n)
            return kiln_fail(err, KILN_E_INPUT, "a tile list names Gaussian %u of %llu", ranks[i], (unsigned long long)a->n);
        s->n += !place[ranks[i]];
        place[ranks[i]] = 1;
    }
    KILN_TRY(subset_alloc(s, s->n, err));
    s->n = 0;
    for (uint64_t i = 0; i < a->n; i++) {
        if (!place[i]) continue;
        s->splats[s->n] = a->splats[i];
        place[i] = (uint32_t)s->n++;
    }
    for (uint64_t i = 0; i < n; i++) renamed[i] = place[ranks[i]];
    return KILN_OK;
}

/* Tile rows [row0, row1) of a, whose list is the n ranks from `first`. */
static kiln_status raster_part(kiln_runner *r, const kiln_raster_args *a, uint32_t row0, uint32_t row1, uint64_t first, uint64_t n,
                               kiln_error *err)
{
    kiln_status st;
    subset s = {0};
    uint32_t *place = NULL, *ranks = NULL;
    const uint64_t pixels = (uint64_t)(row0 - a->row0) * KILN_TILE * a->view->width; /* before this part */
    KILN_GO(KILN_ALLOC(&place, a->n, "the Gaussians of a part", err));
    KILN_GO(KILN_ALLOC(&ranks, n, "the lists of a part", err));
    KILN_GO(take_named(a, a->ranks + first, n, place, &s, ranks, err));
    kiln_raster_args part = *a;
    part.n = s.n;
    part.splats = s.splats;
    part.row0 = row0;
    part.row1 = row1;
    part.tile_counts = a->tile_counts + (uint64_t)(row0 - a->row0) * kiln_view_tiles_x(a->view);
    part.ranks = ranks;
    part.n_pairs = n;
    part.rgba = a->rgba + 4 * pixels;
    part.depth = a->depth ? a->depth + pixels : NULL;
    KILN_GO(kiln_fit_raster(r, &part, err));
done:
    subset_release(&s);
    free(ranks);
    free(place);
    return st;
}

kiln_status kiln_fit_raster(kiln_runner *r, const kiln_raster_args *a, kiln_error *err)
{
    bool yes;
    uint64_t above = 0;
    KILN_TRY(fits(r, KILN_OP_raster, a, &yes, err));
    if (yes || a->row1 - a->row0 <= 1) return kiln_runner_run(r, KILN_OP_raster, a, err);
    const uint32_t middle = a->row0 + (a->row1 - a->row0) / 2;
    const uint64_t tiles = (uint64_t)(middle - a->row0) * kiln_view_tiles_x(a->view);
    for (uint64_t i = 0; i < tiles; i++) above += a->tile_counts[i];
    if (above > a->n_pairs)
        return kiln_fail(err, KILN_E_INPUT, "the tiles list more than the %llu pairs that were given",
                         (unsigned long long)a->n_pairs);
    KILN_TRY(raster_part(r, a, a->row0, middle, 0, above, err));
    return raster_part(r, a, middle, a->row1, above, a->n_pairs - above, err);
}
