/* draw_bands -- see draw_bands.h. */
#include "kernels/draw/draw_bands.h"

#include "base/memory.h"
#include "kernels/draw/drawing.h"
#include "kernels/draw/fit.h"
#include "kernels/draw/resident.h"

#include <stdlib.h>

/* Bands of tile rows, relative to the first row that is drawn. */
typedef struct {
    uint32_t n;
    const uint32_t *starts; /* [n + 1] */
    const uint64_t *pairs;  /* [n] */
    uint32_t *own_starts;
    uint64_t *own_pairs; /* of tile rows, then of bands */
    uint64_t most_rows;
    bool stored;
} bands;

/* Puts the pairs of bands in the place of those of their rows: a band is not before its first
 * row. */
static void sum_rows(bands *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        uint64_t pairs = 0;
        for (uint32_t row = b->own_starts[i]; row < b->own_starts[i + 1]; row++)
            pairs += b->own_pairs[row];
        b->own_pairs[i] = pairs;
    }
    b->starts = b->own_starts;
    b->pairs = b->own_pairs;
}

static kiln_status count_bands(const kiln_band_way *way, const kiln_raster_args *whole, bands *b,
                               bool *done, kiln_error *err)
{
    const uint32_t n_rows = whole->row1 - whole->row0;
    KILN_TRY(KILN_ALLOC(&b->own_pairs, n_rows, "pairs of tile rows", err));
    KILN_TRY(KILN_ALLOC(&b->own_starts, (uint64_t)n_rows + 1, "bands", err));
    const kiln_tile_pairs_count_args a = {
        .view = whole->view, .row0 = whole->row0, .row1 = whole->row1, .row_pairs = b->own_pairs};
    KILN_TRY(way->count(way->context, &a, done, err));
    if (!*done) return KILN_OK;
    b->n = kiln_tile_bands(b->own_pairs, n_rows, b->own_starts);
    sum_rows(b);
    return KILN_OK;
}

static kiln_status find_bands(const kiln_band_way *way, const kiln_raster_args *whole, bands *b,
                              kiln_bands_listed *out, bool *done, kiln_error *err)
{
    if (way->stored)
        KILN_TRY(way->stored->open(way->stored->context, way->visible, &b->n, &b->starts, &b->pairs,
                                   err));
    b->stored = b->n > 0;
    if (!b->stored) KILN_TRY(count_bands(way, whole, b, done, err));
    for (uint32_t i = 0; i < b->n; i++) {
        const uint64_t rows = b->starts[i + 1] - b->starts[i];
        if (b->pairs[i] > out->band_pairs) out->band_pairs = b->pairs[i];
        if (rows > b->most_rows) b->most_rows = rows;
        out->pairs += b->pairs[i];
    }
    if (way->most_pairs == 0 || out->band_pairs <= way->most_pairs) return KILN_OK;
    return kiln_fail(err, KILN_E_CAP,
                     "a band of tile rows lists %llu pairs, but host memory has room for %llu",
                     (unsigned long long)out->band_pairs, (unsigned long long)way->most_pairs);
}

static kiln_status draw_band(const kiln_band_way *way, const kiln_raster_args *whole,
                             const bands *b, kiln_band *at, bool *done, kiln_error *err)
{
    const uint64_t first = (uint64_t)b->starts[at->number] * KILN_TILE * whole->view->width;
    at->stored = b->stored;
    at->a = *whole;
    at->a.row1 = whole->row0 + b->starts[at->number + 1];
    at->a.row0 = whole->row0 + b->starts[at->number];
    at->a.n_pairs = b->pairs[at->number];
    at->a.tile_counts = at->a.ranks = NULL;
    if (at->a.rgba) at->a.rgba += 4 * first;
    if (at->a.depth) at->a.depth += first;
    if (at->a.state) at->a.state += first;
    return way->draw(way->context, at, done, err);
}

kiln_status kiln_bands_draw(const kiln_band_way *way, const kiln_raster_args *a,
                            kiln_bands_listed *out, bool *done, kiln_error *err)
{
    kiln_status st;
    bands b = {0};
    kiln_band at = {0};
    *out = (kiln_bands_listed){0};
    *done = true;
    KILN_GO(find_bands(way, a, &b, out, done, err));
    if (way->lists) {
        KILN_GO(
            KILN_ALLOC(&at.counts, b.most_rows * kiln_view_tiles_x(a->view), "tile counts", err));
        KILN_GO(KILN_ALLOC_UNSET(&at.ranks, out->band_pairs, "pairs of a band", err));
    }
    for (; at.number < b.n && *done; at.number++) KILN_GO(draw_band(way, a, &b, &at, done, err));
done:
    free(at.ranks);
    free(at.counts);
    free(b.own_starts);
    free(b.own_pairs);
    return st;
}

/* ---- of a drawing ---------------------------------------------------------------------------- */
kiln_status kiln_bands_count(void *context, const kiln_tile_pairs_count_args *a, bool *done,
                             kiln_error *err)
{
    const kiln_bands_source *s = context;
    (void)done;
    return kiln_draw_count(s->runner, s->drawing, a, err);
}

/* Lists and blends a band. */
static kiln_status draw_computed(const kiln_bands_source *s, const kiln_band *b, kiln_error *err)
{
    bool done = false;
    kiln_drawing *const d = s->drawing;
    kiln_raster_args with = b->a;
    if (d->store) KILN_TRY(kiln_resident_raster(d, &b->a, &done, err));
    if (done) return KILN_OK;
    KILN_TRY(kiln_drawing_fetch(d, err));
    with.n = d->n;
    with.splats = d->splats;
    return kiln_fit_band(s->runner, &with, b->counts, b->ranks, err);
}

static kiln_status draw_drawing_band(void *context, const kiln_band *b, bool *done, kiln_error *err)
{
    const kiln_bands_source *s = context;
    kiln_raster_args with = b->a;
    (void)done;
    if (!b->stored) return draw_computed(s, b, err);
    KILN_TRY(s->stored->read(s->stored->context, b->number, b->counts, b->ranks, err));
    with.tile_counts = b->counts;
    with.ranks = b->ranks;
    return kiln_draw_raster(s->runner, s->drawing, &with, err);
}

kiln_band_way kiln_bands_of(kiln_bands_source *s)
{
    return (kiln_band_way){.count = kiln_bands_count,
                           .draw = draw_drawing_band,
                           .context = s,
                           .lists = true,
                           .stored = s->stored,
                           .visible = s->drawing->n,
                           .most_pairs = s->most_pairs};
}
