/* The unit that draws views and sums each row's shares of the pictures. */
#include "base/memory.h"
#include "kernels/blend_weights/blend_weights.h"
#include "kernels/draw/draw_weights.h"
#include "stages/lod/lod_state.h"
#include "stages/lod/visibility_units.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    kiln_worker *w;
    kiln_lod_state *state;
    const kiln_shares_unit *unit;
    const kiln_view_request *view; /* that is drawn */
    uint64_t **sums;               /* [n_chunks] NULL: no view may see the chunk */
} drawing;

/* ---- for kernels/draw ------------------------------------------------------------------------------------------------------- */
static kiln_status plane(const drawing *d, const kiln_chunk *c, const char *name, void *out, kiln_error *err)
{
    kiln_manifest *m;
    KILN_TRY(kiln_worker_manifest(d->w, &m, err));
    return kiln_plane_cache_get(d->state->planes, m, c, name, out, err);
}

static kiln_status give_chunk(void *context, uint32_t index, kiln_draw_chunk *out, kiln_error *err)
{
    const drawing *d = context;
    const kiln_chunk *c = &d->state->baked->chunks[index];
    *out = (kiln_draw_chunk){0};
    if (!kiln_view_request_may_see(d->view, c)) return KILN_OK;
    KILN_TRY(plane(d, c, "means", &out->means, err));
    KILN_TRY(plane(d, c, "log_scales", &out->log_scales, err));
    KILN_TRY(plane(d, c, "quats", &out->quats, err));
    KILN_TRY(plane(d, c, "opacity_logits", &out->opacity_logits, err));
    KILN_TRY(plane(d, c, "source_row", &out->source_rows, err));
    out->n = c->count;
    return KILN_OK;
}

/* Of all planes: the same store may draw with colours. */
static kiln_hash key_of(const kiln_chunk *c)
{
    kiln_hasher *h = kiln_hasher_new();
    for (uint32_t i = 0; i < c->n_planes; i++) {
        kiln_key_text(h, "plane", c->planes[i].name);
        for (uint32_t s = 0; s < c->planes[i].data.n_segments; s++) kiln_key_hash(h, "segment", c->planes[i].data.segments[s]);
    }
    return kiln_key_end(h);
}

static kiln_status give_header(void *context, uint32_t index, kiln_draw_chunk_header *out, kiln_error *err)
{
    const drawing *d = context;
    const kiln_chunk *c = &d->state->baked->chunks[index];
    const kiln_hash key = key_of(c);
    (void)err;
    *out = (kiln_draw_chunk_header){.n = c->count, .hidden = !kiln_view_request_may_see(d->view, c)};
    memcpy(out->key, key.bytes, sizeof out->key);
    return KILN_OK;
}

/* ---- views ------------------------------------------------------------------------------------------------------------------ */
static kiln_status make_sums(drawing *d, kiln_error *err)
{
    const kiln_layer *baked = d->state->baked;
    KILN_TRY(KILN_ALLOC(&d->sums, baked->n_chunks, "sums of shares", err));
    for (uint32_t i = 0; i < baked->n_chunks; i++) {
        bool seen = false;
        for (uint32_t v = 0; v < d->unit->n_views; v++)
            seen = seen || kiln_view_request_may_see(&d->unit->views[v], &baked->chunks[i]);
        if (seen) KILN_TRY(KILN_ALLOC(&d->sums[i], baked->chunks[i].count, "sums of shares", err));
    }
    return KILN_OK;
}

static kiln_status draw(drawing *d, kiln_error *err)
{
    const kiln_draw_scene scene = {.view = &d->view->view,
                                   .profile = d->view->profile,
                                   .antialiased = d->view->antialiased,
                                   .n_chunks = d->state->baked->n_chunks,
                                   .chunk = give_chunk,
                                   .header = give_header,
                                   .context = d,
                                   .store = d->state->store};
    return kiln_draw_weights(kiln_worker_runner(d->w), &scene, d->unit->room, d->sums, NULL, err);
}

/* Rounded once: at most 2^24 for each of 2^22 pixels of some views. */
static kiln_status put_shares(const drawing *d, kiln_error *err)
{
    const kiln_layer *baked = d->state->baked;
    for (uint32_t i = 0; i < baked->n_chunks; i++) {
        const kiln_chunk *c = &baked->chunks[i];
        float *shares;
        if (!d->sums[i]) continue;
        KILN_TRY(KILN_ALLOC_UNSET(&shares, c->count, "shares of a chunk", err));
        for (uint64_t row = 0; row < c->count; row++)
            shares[row] = (float)(int64_t)d->sums[i][row] * (1.0f / KILN_BLEND_UNIT); /* a power of two: exact */
        const kiln_status st = kiln_worker_put(d->w, c->name, shares, c->count * sizeof *shares, sizeof *shares, err);
        free(shares);
        KILN_TRY(st);
    }
    return KILN_OK;
}

static void sums_release(drawing *d)
{
    for (uint32_t i = 0; d->sums && i < d->state->baked->n_chunks; i++) free(d->sums[i]);
    free(d->sums);
}

kiln_status kiln_shares_compute(kiln_worker *w, const kiln_shares_unit *u, kiln_error *err)
{
    const uint64_t may = kiln_worker_ram(w);
    drawing d = {.w = w, .unit = u};
    kiln_status st;
    KILN_TRY(kiln_lod_state_draws(w, u->baked, may > u->ram ? may - u->ram : 0, &d.state, err));
    KILN_GO(make_sums(&d, err));
    for (uint32_t v = 0; v < u->n_views; v++) {
        d.view = &u->views[v];
        KILN_GO(draw(&d, err));
    }
    KILN_GO(put_shares(&d, err));
done:
    sums_release(&d);
    return st;
}
