/* lists -- see lists.h. Every bound of a table is checked, because a manifest is a file that may
 * have been edited. */
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

/* Takes the stored bands, which must cover the image from the top without a gap. */
static kiln_status take_bands(kiln_lists *l, kiln_error *err)
{
    const kiln_tile_table *t = l->table;
    uint32_t row = 0;
    KILN_TRY(KILN_ALLOC(&l->starts, (uint64_t)t->n_bands + 1, "bands", err));
    KILN_TRY(KILN_ALLOC(&l->pairs, t->n_bands, "bands", err));
    for (uint32_t b = 0; b < t->n_bands; b++) {
        const kiln_tile_band *band = &t->bands[b];
        if (band->row0 != row || band->row1 <= row)
            return kiln_fail(
                err, KILN_E_IO,
                "the tile table of '%s' has a gap before tile row %u; run kiln-tiles again",
                t->camera, row);
        row = band->row1;
        l->starts[b] = band->row0;
        l->starts[b + 1] = band->row1;
        l->pairs[b] = band->pairs;
    }
    if (row != kiln_view_tiles_y(&l->request->view))
        return kiln_fail(err, KILN_E_IO,
                         "the tile table of '%s' ends at tile row %u; run kiln-tiles again",
                         t->camera, row);
    return KILN_OK;
}

kiln_status kiln_lists_find(kiln_worker *w, const kiln_view_request *request, const char *camera,
                            kiln_hash table_key, kiln_lists *out, kiln_error *err)
{
    kiln_manifest *m;
    *out = (kiln_lists){.w = w, .request = request};
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(kiln_tile_table_get(m, camera, kiln_profiles[request->profile].name,
                                 request->antialiased, request->near_m, &out->table, err));
    /* made from other inputs */
    if (out->table && !kiln_hash_equal(out->table->key, table_key)) drop_table(out);
    return KILN_OK;
}

static kiln_status open_table(void *context, uint64_t visible, uint32_t *n_bands,
                              const uint32_t **starts, const uint64_t **pairs, kiln_error *err)
{
    kiln_lists *const l = context;
    if (l->table && l->table->visible != visible) drop_table(l); /* the same */
    if (!l->table) return KILN_OK;
    KILN_TRY(take_bands(l, err));
    l->visible = visible;
    *n_bands = l->table->n_bands;
    *starts = l->starts;
    *pairs = l->pairs;
    return KILN_OK;
}

/* Reads one array of a band into new memory. The table must have it in this size. */
static kiln_status read_array(kiln_manifest *m, const kiln_array *a, uint64_t bytes, void **out,
                              kiln_error *err)
{
    if (a->raw_bytes != bytes)
        return kiln_fail(err, KILN_E_IO, "it has %llu bytes instead of %llu",
                         (unsigned long long)a->raw_bytes, (unsigned long long)bytes);
    KILN_TRY(kiln_alloc(out, bytes, 1, "tile table", err));
    return kiln_manifest_read_array(m, a, *out, err);
}

static kiln_status read_band(void *context, uint32_t b, uint32_t *tile_counts, uint32_t *ranks,
                             kiln_error *err)
{
    kiln_status st;
    const kiln_lists *l = context;
    kiln_manifest *m;
    const kiln_tile_band *band = &l->table->bands[b];
    const uint64_t n_tiles =
        (uint64_t)(band->row1 - band->row0) * kiln_view_tiles_x(&l->request->view);
    uint32_t *bytes = NULL;
    unsigned char *code = NULL;
    uint64_t sum = 0;
    KILN_GO(kiln_worker_manifest(l->w, &m, err));
    if (n_tiles > UINT32_MAX || band->tile_count.raw_bytes != n_tiles * sizeof *tile_counts) {
        st = kiln_fail(err, KILN_E_IO, "the tile counts have another size");
        goto done;
    }
    KILN_GO(kiln_manifest_read_array(m, &band->tile_count, tile_counts, err));
    for (uint32_t t = 0; t < n_tiles; t++) sum += tile_counts[t];
    if (sum != band->pairs) {
        st = kiln_fail(err, KILN_E_IO, "the tile counts add up to %llu pairs instead of %llu",
                       (unsigned long long)sum, (unsigned long long)band->pairs);
        goto done;
    }
    KILN_GO(read_array(m, &band->tile_bytes, n_tiles * sizeof *bytes, (void **)&bytes, err));
    if (band->rank_delta.raw_bytes > kiln_ranks_code_most(band->pairs, n_tiles, l->visible)) {
        st = kiln_fail(err, KILN_E_IO, "the code of its ranks has %llu bytes",
                       (unsigned long long)band->rank_delta.raw_bytes);
        goto done;
    }
    KILN_GO(read_array(m, &band->rank_delta, band->rank_delta.raw_bytes, (void **)&code, err));
    const kiln_ranks_code stored = {.n_tiles = (uint32_t)n_tiles,
                                    .tile_counts = tile_counts,
                                    .tile_bytes = bytes,
                                    .code = code,
                                    .code_bytes = band->rank_delta.raw_bytes};
    KILN_GO(kiln_ranks_decode(&stored, l->visible, ranks, err));
done:
    if (st != KILN_OK)
        kiln_note(err, "the tile table of '%s', tile row %u (run kiln-tiles again)",
                  l->table->camera, band->row0);
    free(code);
    free(bytes);
    return st;
}

kiln_draw_lists kiln_lists_of(kiln_lists *l)
{
    return (kiln_draw_lists){.open = open_table, .read = read_band, .context = l};
}
