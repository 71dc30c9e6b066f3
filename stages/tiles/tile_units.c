/* tile_units -- the worker's side of kiln-tiles. All bands of a camera share the frame that the
 * worker keeps, so they come right behind its planning unit. A GPU lists faster than a thread
 * packs, so its worker packs as deferred work. */
#include "stages/tiles/tile_units.h"

#include "stages/tiles/rank_code.h"

#include <stdlib.h>
#include <string.h>

static kiln_status put_tile_counters(kiln_worker *w, uint64_t visible, uint64_t pairs,
                                     kiln_error *err)
{
    json_t *c = json_pack("{s:I, s:I}", "visible", (json_int_t)visible, "pairs", (json_int_t)pairs);
    if (!c) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the counters");
    kiln_status st = kiln_worker_counters(w, c, err);
    json_decref(c);
    return st;
}

/* What a unit has listed. Encoding and packing it needs the CPU alone. */
typedef struct {
    kiln_tiles_unit unit;
    const kiln_layer *layer; /* kiln_frame_layer */
    uint64_t visible;
    /* plan: chunk of the layer and row in it, of each visible Gaussian */
    uint32_t *slot, *row_in_chunk;
    uint32_t *counts, *ranks; /* band */
} listed;

static void listed_free(void *context)
{
    listed *l = context;
    if (!l) return;
    free(l->slot);
    free(l->row_in_chunk);
    free(l->counts);
    free(l->ranks);
    free(l);
}

/* ---- lists, on the device -------------------------------------------------------------------- */
static kiln_status list_visible(kiln_worker *w, kiln_frame_state *s, listed *l, kiln_error *err)
{
    kiln_frame *f;
    KILN_TRY(kiln_frame_make(w, s, &l->unit.request, false, &f, err));
    l->visible = f->n;
    KILN_TRY(KILN_ALLOC_UNSET(&l->slot, f->n, "visible slots", err));
    KILN_TRY(KILN_ALLOC_UNSET(&l->row_in_chunk, f->n, "visible rows", err));
    return kiln_drawing_names(kiln_worker_runner(w), f, l->slot, l->row_in_chunk, err);
}

static uint64_t tiles_of(const kiln_tiles_unit *u)
{
    return (uint64_t)(u->row1 - u->row0) * kiln_view_tiles_x(&u->request.view);
}

static kiln_status list_band(kiln_worker *w, kiln_frame_state *s, listed *l, kiln_error *err)
{
    kiln_frame *f;
    const kiln_tiles_unit *u = &l->unit;
    KILN_TRY(kiln_frame_make(w, s, &u->request, false, &f, err));
    l->visible = f->n;
    KILN_TRY(KILN_ALLOC(&l->counts, tiles_of(u), "tile counts", err));
    KILN_TRY(KILN_ALLOC_UNSET(&l->ranks, u->pairs, "pairs of a band", err));
    kiln_tile_pairs_emit_args a = {.view = &u->request.view,
                                   .row0 = u->row0,
                                   .row1 = u->row1,
                                   .capacity = u->pairs,
                                   .tile_counts = l->counts,
                                   .ranks = l->ranks};
    const kiln_status st = kiln_draw_emit(kiln_worker_runner(w), f, &a, err);
    if (st == KILN_E_BUG) /* the number is from a stored unit, which may say anything */
        return kiln_fail(err, KILN_E_IO,
                         "%s; kiln-tiles --predict --force shows which stored count is wrong",
                         err->msg);
    return st;
}

/* ---- outputs --------------------------------------------------------------------------------- */
/* slot_of[chunk of the layer] = place among the chunks with a visible Gaussian; names collects
 * those, NUL-ended. */
static kiln_status number_slots(const kiln_layer *layer, const uint32_t *chunk, uint64_t visible,
                                uint32_t *slot_of, kiln_buffer *names, kiln_error *err)
{
    uint32_t n = 0;
    for (uint64_t i = 0; i < visible; i++) slot_of[chunk[i]] = 1;
    for (uint32_t c = 0; c < layer->n_chunks; c++) {
        if (!slot_of[c]) continue;
        slot_of[c] = n++;
        KILN_TRY(
            kiln_buffer_put(names, layer->chunks[c].name, strlen(layer->chunks[c].name) + 1, err));
    }
    return KILN_OK;
}

static kiln_status put_visible(kiln_worker *w, listed *l, kiln_error *err)
{
    kiln_status st;
    kiln_buffer names = {0};
    uint32_t *slot_of = NULL;
    uint16_t *row = NULL;
    KILN_GO(KILN_ALLOC(&slot_of, l->layer->n_chunks, "chunk slots", err));
    KILN_GO(KILN_ALLOC_UNSET(&row, l->visible, "visible rows", err));
    KILN_GO(number_slots(l->layer, l->slot, l->visible, slot_of, &names, err));
    for (uint64_t i = 0; i < l->visible; i++) {
        l->slot[i] = slot_of[l->slot[i]];
        row[i] = (uint16_t)l->row_in_chunk[i]; /* a chunk has at most 65,536 rows */
    }
    free(l->row_in_chunk);
    l->row_in_chunk = NULL;
    KILN_GO(kiln_worker_put(w, "chunks", names.data, names.size, 1, err));
    KILN_GO(kiln_worker_put(w, "visible_slot", l->slot, l->visible * sizeof *l->slot, 4, err));
    KILN_GO(kiln_worker_put(w, "visible_row", row, l->visible * sizeof *row, 2, err));
    KILN_GO(put_tile_counters(w, l->visible, 0, err));
done:
    free(row);
    free(slot_of);
    kiln_buffer_release(&names);
    return st;
}

static kiln_status put_band(kiln_worker *w, listed *l, kiln_error *err)
{
    kiln_status st;
    const uint64_t n_tiles = tiles_of(&l->unit), pairs = l->unit.pairs;
    uint32_t *bytes = NULL;
    unsigned char *code = NULL;
    KILN_GO(KILN_ALLOC(&bytes, n_tiles, "tile sizes", err));
    KILN_GO(KILN_ALLOC_UNSET(&code, kiln_ranks_code_most(pairs, n_tiles, l->visible),
                             "code of a band", err));
    const size_t code_bytes =
        kiln_ranks_encode((uint32_t)n_tiles, l->counts, l->ranks, code, bytes);
    KILN_GO(kiln_worker_put(w, "tile_count", l->counts, n_tiles * sizeof *l->counts, 4, err));
    KILN_GO(kiln_worker_put(w, "tile_bytes", bytes, n_tiles * sizeof *bytes, 4, err));
    KILN_GO(kiln_worker_put(w, "rank_delta", code, code_bytes, 1, err));
    KILN_GO(put_tile_counters(w, l->visible, pairs, err));
done:
    free(code);
    free(bytes);
    return st;
}

static kiln_status put_listed(kiln_worker *w, void *context, kiln_error *err)
{
    listed *l = context;
    return l->unit.kind == KILN_TILES_PLAN ? put_visible(w, l, err) : put_band(w, l, err);
}

/* ---- units ----------------------------------------------------------------------------------- */
/* Returns how many units a GPU's worker packs while it lists the next ones, on a thread each, in
 * half of the memory that it has beside the largest unit. 0 on the CPU, where other workers use the
 * cores. *ram: what they take. */
static unsigned count_packing(kiln_worker *w, const kiln_tiles_unit *u, uint64_t *ram)
{
    const uint64_t may = kiln_worker_ram(w), left = may > u->most_ram ? (may - u->most_ram) / 2 : 0;
    const unsigned threads = kiln_worker_threads(w);
    *ram = 0;
    if (kiln_runner_exec(kiln_worker_runner(w)).device < 0) return 0;
    for (unsigned n = threads < KILN_DEFERRED_MAX ? threads : KILN_DEFERRED_MAX; n > 1; n--) {
        *ram = n * (u->most_listed + kiln_deferred_ram(threads));
        if (*ram <= left) return n;
    }
    *ram = 0;
    return 0;
}

static kiln_status table_unit(kiln_worker *w, kiln_frame_state *s, const kiln_tiles_unit *u,
                              unsigned packing, kiln_error *err)
{
    kiln_status st;
    listed *l = NULL;
    KILN_GO(KILN_ALLOC(&l, 1, "unit", err));
    l->unit = *u;
    l->layer = kiln_frame_layer(s);
    KILN_GO(u->kind == KILN_TILES_PLAN ? list_visible(w, s, l, err) : list_band(w, s, l, err));
    if (packing > 0) {
        kiln_worker_defer(w, packing, 1, put_listed, listed_free, l);
        return KILN_OK;
    }
    KILN_GO(put_listed(w, l, err));
done:
    listed_free(l);
    return st;
}

kiln_status kiln_tiles_compute(kiln_worker *w, const char *name, const void *payload,
                               size_t payload_bytes, kiln_error *err)
{
    kiln_tiles_unit u;
    kiln_frame_state *s;
    uint64_t packing_ram = 0;
    if (payload_bytes != sizeof u)
        return kiln_fail(err, KILN_E_BUG, "unit '%s' has a payload of %zu bytes", name,
                         payload_bytes);
    memcpy(&u, payload, sizeof u);
    const unsigned packing = u.kind == KILN_TILES_COUNT ? 0 : count_packing(w, &u, &packing_ram);
    const kiln_frame_share share = {.ram = u.ram + packing_ram,
                                    .largest = u.most_ram + packing_ram};
    KILN_TRY(kiln_frame_state_get(w, &u.drawn, false, &share, &s, err));
    switch (u.kind) {
    case KILN_TILES_COUNT:
        return kiln_frame_count(w, s, &u.request, err);
    case KILN_TILES_PLAN:
    case KILN_TILES_BAND:
        return table_unit(w, s, &u, packing, err);
    }
    return kiln_fail(err, KILN_E_BUG, "unit '%s' is of an unknown kind", name);
}
