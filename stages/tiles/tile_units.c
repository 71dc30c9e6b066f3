/* tile_units -- the worker's side of kiln-tiles. All bands of a camera share the frame that the worker keeps, so they come
 * right behind its planning unit. */
#include "stages/tiles/tile_units.h"

#include "stages/tiles/rank_code.h"

#include <stdlib.h>
#include <string.h>

static kiln_status put_counters(kiln_worker *w, uint64_t visible, uint64_t pairs, kiln_error *err)
{
    json_t *c = json_pack("{s:I, s:I}", "visible", (json_int_t)visible, "pairs", (json_int_t)pairs);
    if (!c) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the counters");
    kiln_status st = kiln_worker_counters(w, c, err);
    json_decref(c);
    return st;
}

/* slot_of[chunk of the layer] = place among the chunks with a visible Gaussian; names collects those, NUL-ended. */
static kiln_status number_slots(const kiln_layer *layer, const uint32_t *chunk, uint64_t visible, uint32_t *slot_of,
                                kiln_buffer *names, kiln_error *err)
{
    uint32_t n = 0;
    for (uint64_t i = 0; i < visible; i++) slot_of[chunk[i]] = 1;
    for (uint32_t c = 0; c < layer->n_chunks; c++) {
        if (!slot_of[c]) continue;
        slot_of[c] = n++;
        KILN_TRY(kiln_buffer_put(names, layer->chunks[c].name, strlen(layer->chunks[c].name) + 1, err));
    }
    return KILN_OK;
}

static kiln_status plan_unit(kiln_worker *w, kiln_frame_state *s, const kiln_tiles_unit *u, kiln_error *err)
{
    kiln_status st;
    kiln_frame *f;
    const kiln_layer *layer = kiln_frame_layer(s);
    kiln_buffer names = {0};
    uint32_t *slot_of = NULL, *slot = NULL, *row_in_chunk = NULL;
    uint16_t *row = NULL;
    KILN_GO(kiln_frame_make(w, s, &u->request, false, &f, err));
    KILN_GO(KILN_ALLOC(&slot_of, layer->n_chunks, "chunk slots", err));
    KILN_GO(KILN_ALLOC_UNSET(&slot, f->n, "visible slots", err));
    KILN_GO(KILN_ALLOC_UNSET(&row, f->n, "visible rows", err));
    KILN_GO(KILN_ALLOC_UNSET(&row_in_chunk, f->n, "visible rows", err));
    KILN_GO(kiln_drawing_names(kiln_worker_runner(w), f, slot, row_in_chunk, err)); /* slots: chunks of the layer, as yet */
    KILN_GO(number_slots(layer, slot, f->n, slot_of, &names, err));
    for (uint64_t i = 0; i < f->n; i++) {
        slot[i] = slot_of[slot[i]];
        row[i] = (uint16_t)row_in_chunk[i]; /* a chunk has at most 65,536 rows */
    }
    free(row_in_chunk);
    row_in_chunk = NULL;
    KILN_GO(kiln_worker_put(w, "chunks", names.data, names.size, 1, err));
    KILN_GO(kiln_worker_put(w, "visible_slot", slot, f->n * sizeof *slot, 4, err));
    KILN_GO(kiln_worker_put(w, "visible_row", row, f->n * sizeof *row, 2, err));
    KILN_GO(put_counters(w, f->n, 0, err));
done:
    free(row_in_chunk);
    free(row);
    free(slot);
    free(slot_of);
    kiln_buffer_release(&names);
    return st;
}

static kiln_status band_unit(kiln_worker *w, kiln_frame_state *s, const kiln_tiles_unit *u, kiln_error *err)
{
    kiln_status st;
    kiln_frame *f;
    const uint64_t n_tiles = (uint64_t)(u->row1 - u->row0) * kiln_view_tiles_x(&u->request.view);
    uint32_t *counts = NULL, *bytes = NULL, *ranks = NULL;
    unsigned char *code = NULL;
    KILN_GO(kiln_frame_make(w, s, &u->request, false, &f, err));
    KILN_GO(KILN_ALLOC(&counts, n_tiles, "tile counts", err));
    KILN_GO(KILN_ALLOC(&bytes, n_tiles, "tile sizes", err));
    KILN_GO(KILN_ALLOC_UNSET(&ranks, u->pairs, "pairs of a band", err));
    KILN_GO(KILN_ALLOC_UNSET(&code, kiln_ranks_code_most(u->pairs, n_tiles, f->n), "code of a band", err));
    kiln_tile_pairs_emit_args a = {
        .view = &u->request.view, .row0 = u->row0, .row1 = u->row1, .capacity = u->pairs, .tile_counts = counts, .ranks = ranks};
    st = kiln_draw_emit(kiln_worker_runner(w), f, &a, err);
    if (st == KILN_E_BUG) /* the number is from a stored unit, which may say anything */
        st = kiln_fail(err, KILN_E_IO, "%s; kiln-tiles --predict --force shows which stored count is wrong", err->msg);
    if (st != KILN_OK) goto done;
    size_t code_bytes = kiln_ranks_encode((uint32_t)n_tiles, counts, ranks, code, bytes);
    KILN_GO(kiln_worker_put(w, "tile_count", counts, n_tiles * sizeof *counts, 4, err));
    KILN_GO(kiln_worker_put(w, "tile_bytes", bytes, n_tiles * sizeof *bytes, 4, err));
    KILN_GO(kiln_worker_put(w, "rank_delta", code, code_bytes, 1, err));
    KILN_GO(put_counters(w, f->n, u->pairs, err));
done:
    free(code);
    free(ranks);
    free(bytes);
    free(counts);
    return st;
}

kiln_status kiln_tiles_compute(kiln_worker *w, const char *name, const void *payload, size_t payload_bytes, kiln_error *err)
{
    kiln_tiles_unit u;
    kiln_frame_state *s;
    if (payload_bytes != sizeof u) return kiln_fail(err, KILN_E_BUG, "unit '%s' has a payload of %zu bytes", name, payload_bytes);
    memcpy(&u, payload, sizeof u);
    KILN_TRY(kiln_frame_state_get(w, u.layer_kind, u.layer, false, u.ram, 0, &s, err));
    switch (u.kind) {
    case KILN_TILES_COUNT:
        return kiln_frame_count(w, s, &u.request, err);
    case KILN_TILES_PLAN:
        return plan_unit(w, s, &u, err);
    case KILN_TILES_BAND:
        return band_unit(w, s, &u, err);
    }
    return kiln_fail(err, KILN_E_BUG, "unit '%s' is of no known kind", name);
}
