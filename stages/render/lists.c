/* lists -- see lists.h. Every bound of a table is checked, because a manifest is a file that may have been edited. */
#include "stages/render/lists.h"

#include "stages/tiles/rank_code.h"

#include <stdlib.h>
#include <string.h>

static void drop_table(kiln_lists *l)
{
    if (l->table) kiln_tile_tables_free(l->table, 1);
    l->table = NULL;
}

void kiln_lists_release(kiln_lists *l)
{
    free(l->starts);
    free(l->pairs);
    drop_table(l);
    memset(l, 0, sizeof *l);
}

static kiln_status alloc_bands(kiln_lists *l, uint64_t n, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&l->starts, n + 1, "bands", err));
    return KILN_ALLOC(&l->pairs, n, "bands", err);
}

/* Takes the stored bands, which must cover the image from the top without a gap. */
static kiln_status bands_of_table(kiln_lists *l, const kiln_view_request *request, kiln_error *err)
{
    const kiln_tile_table *t = l->table;
    uint32_t row = 0;
    KILN_TRY(alloc_bands(l, t->n_bands, err));
    l->n_bands = t->n_bands;
    for (uint32_t b = 0; b < t->n_bands; b++) {
        const kiln_tile_band *band = &t->bands[b];
        if (band->row0 != row || band->row1 <= row)
            return kiln_fail(err, KILN_E_IO, "the tile table of '%s' has a gap before tile row %u; run kiln-tiles again", t->camera,
                             row);
        row = band->row1;
        l->starts[b] = band->row0;
        l->starts[b + 1] = band->row1;
        l->pairs[b] = band->pairs;
        l->total += band->pairs;
    }
    if (row != kiln_view_tiles_y(&request->view))
        return kiln_fail(err, KILN_E_IO, "the tile table of '%s' ends at tile row %u; run kiln-tiles again", t->camera, row);
    return KILN_OK;
}

static kiln_status count_bands(kiln_worker *w, kiln_frame *f, const kiln_view_request *request, kiln_lists *l, kiln_error *err)
{
    kiln_status st;
    uint64_t *row_pairs = NULL;
    uint32_t tiles_y = kiln_view_tiles_y(&request->view);
    KILN_GO(KILN_ALLOC(&row_pairs, tiles_y, "pairs of tile rows", err));
    KILN_GO(alloc_bands(l, tiles_y, err));
    kiln_tile_pairs_count_args a = {.view = &request->view, .row0 = 0, .row1 = tiles_y, .row_pairs = row_pairs};
    KILN_GO(kiln_draw_count(kiln_worker_runner(w), f, &a, err));
    l->n_bands = kiln_tile_bands(row_pairs, tiles_y, l->starts);
    l->total = 0;
    for (uint32_t b = 0; b < l->n_bands; b++) {
        for (uint32_t r = l->starts[b]; r < l->starts[b + 1]; r++) l->pairs[b] += row_pairs[r];
        l->total += l->pairs[b];
    }
done:
    free(row_pairs);
    return st;
}

kiln_status kiln_lists_find(kiln_worker *w, const kiln_view_request *request, const char *camera, kiln_hash table_key,
                            kiln_lists *out, kiln_error *err)
{
    kiln_manifest *m;
    memset(out, 0, sizeof *out);
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(kiln_tile_table_get(m, camera, kiln_profiles[request->profile].name, request->antialiased, request->near_m,
                                 &out->table, err));
    if (out->table && !kiln_hash_equal(out->table->key, table_key)) drop_table(out); /* made from other inputs */
    return KILN_OK;
}

kiln_status kiln_lists_open(kiln_worker *w, kiln_frame *f, const kiln_view_request *request, kiln_lists *l, kiln_error *err)
{
    if (l->table && l->table->visible != f->n) drop_table(l); /* the same */
    return l->table ? bands_of_table(l, request, err) : count_bands(w, f, request, l, err);
}

/* Reads one array of a band into new memory. The table must have it in this size. */
static kiln_status read_array(kiln_manifest *m, const kiln_array *a, uint64_t bytes, void **out, kiln_error *err)
{
    if (a->raw_bytes != bytes)
        return kiln_fail(err, KILN_E_IO, "%llu bytes where %llu belong", (unsigned long long)a->raw_bytes,
                         (unsigned long long)bytes);
    KILN_TRY(kiln_alloc(out, bytes, 1, "tile table", err));
    return kiln_manifest_read_array(m, a, *out, err);
}

static kiln_status band_of_table(kiln_worker *w, const kiln_lists *l, uint32_t b, uint64_t n_visible, uint32_t tiles_x,
                                 uint32_t *tile_counts, uint32_t *ranks, kiln_error *err)
{
    kiln_status st;
    kiln_manifest *m;
    const kiln_tile_band *band = &l->table->bands[b];
    const uint64_t n_tiles = (uint64_t)(band->row1 - band->row0) * tiles_x;
    uint32_t *bytes = NULL;
    unsigned char *code = NULL;
    uint64_t sum = 0;
    KILN_GO(kiln_worker_manifest(w, &m, err));
    if (n_tiles > UINT32_MAX || band->tile_count.raw_bytes != n_tiles * sizeof *tile_counts) {
        st = kiln_fail(err, KILN_E_IO, "the tile counts are of another size");
        goto done;
    }
    KILN_GO(kiln_manifest_read_array(m, &band->tile_count, tile_counts, err));
    for (uint32_t t = 0; t < n_tiles; t++) sum += tile_counts[t];
    if (sum != band->pairs) {
        st = kiln_fail(err, KILN_E_IO, "the tile counts add up to %llu pairs, not %llu", (unsigned long long)sum,
                       (unsigned long long)band->pairs);
        goto done;
    }
    KILN_GO(read_array(m, &band->tile_bytes, n_tiles * sizeof *bytes, (void **)&bytes, err));
    if (band->rank_delta.raw_bytes > kiln_ranks_code_most(band->pairs, n_tiles, n_visible)) {
        st = kiln_fail(err, KILN_E_IO, "the code of its ranks has %llu bytes", (unsigned long long)band->rank_delta.raw_bytes);
        goto done;
    }
    KILN_GO(read_array(m, &band->rank_delta, band->rank_delta.raw_bytes, (void **)&code, err));
    KILN_GO(kiln_ranks_decode((uint32_t)n_tiles, tile_counts, bytes, code, band->rank_delta.raw_bytes, n_visible, ranks, err));
done:
    if (st != KILN_OK) kiln_note(err, "the tile table of '%s', tile row %u (run kiln-tiles again)", l->table->camera, band->row0);
    free(code);
    free(bytes);
    return st;
}

kiln_status kiln_lists_draw(kiln_worker *w, const kiln_lists *l, uint32_t b, kiln_frame *f, const kiln_raster_args *a,
                            uint32_t *tile_counts, uint32_t *ranks, kiln_error *err)
{
    kiln_raster_args with_lists = *a;
    if (!l->table) return kiln_draw_band(kiln_worker_runner(w), f, a, tile_counts, ranks, err);
    KILN_TRY(band_of_table(w, l, b, f->n, kiln_view_tiles_x(a->view), tile_counts, ranks, err));
    with_lists.tile_counts = tile_counts;
    with_lists.ranks = ranks;
    return kiln_draw_raster(kiln_worker_runner(w), f, &with_lists, err);
}
