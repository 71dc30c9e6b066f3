/* The unit that draws views and sums each row's shares of the pictures. */
#include "base/memory.h"
#include "kernels/blend_weights/blend_weights.h"
#include "kernels/draw/draw.h"
#include "stages/lod/lod_state.h"
#include "stages/lod/visibility_units.h"
#include "stages/engine/memory/plane_cache.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    kiln_worker *w;
    kiln_lod_state *state;
    const kiln_shares_unit *unit;
    const kiln_view_request *view; /* that is drawn */
} drawing;

/* ---- for kernels/draw ------------------------------------------------------------------------ */
static kiln_status plane(const drawing *d, const kiln_chunk *c, const char *name, void *out,
                         kiln_error *err)
{
    kiln_manifest *m;
    KILN_TRY(kiln_worker_manifest(d->w, &m, err));
    return kiln_plane_cache_get(d->state->planes, m, c, name, out, err);
}

static bool is_in_view(const void *context, uint32_t chunk)
{
    const drawing *d = context;
    return kiln_view_request_may_see(d->view, &d->state->baked->chunks[chunk]);
}

static kiln_status give_baked_chunk(void *context, uint32_t index, kiln_draw_chunk *out,
                                    kiln_error *err)
{
    const drawing *d = context;
    const kiln_chunk *c = &d->state->baked->chunks[index];
    *out = (kiln_draw_chunk){0};
    if (!is_in_view(d, index)) return KILN_OK;
    const kiln_ahead_view ahead = {
        .cache = d->state->planes, .layer = d->state->baked, .in_view = is_in_view, .context = d};
    KILN_TRY(kiln_ahead_read(&d->state->ahead, &ahead, index, err));
    KILN_TRY(plane(d, c, "means", &out->means, err));
    KILN_TRY(plane(d, c, "log_scales", &out->log_scales, err));
    KILN_TRY(plane(d, c, "quats", &out->quats, err));
    KILN_TRY(plane(d, c, "opacity_logits", &out->opacity_logits, err));
    KILN_TRY(plane(d, c, "source_row", &out->source_rows, err));
    out->n = c->count;
    return KILN_OK;
}

/* Of all planes: the same store may draw with colours. */
static kiln_hash key_baked_chunk(const kiln_chunk *c)
{
    kiln_hasher *h = kiln_hasher_new();
    for (uint32_t i = 0; i < c->n_planes; i++) {
        kiln_key_text(h, "plane", c->planes[i].name);
        for (uint32_t s = 0; s < c->planes[i].data.n_segments; s++)
            kiln_key_hash(h, "segment", c->planes[i].data.segments[s]);
    }
    return kiln_key_end(h);
}

static kiln_status give_header(void *context, uint32_t index, kiln_draw_chunk_header *out,
                               kiln_error *err)
{
    const drawing *d = context;
    const kiln_chunk *c = &d->state->baked->chunks[index];
    const kiln_hash key = key_baked_chunk(c);
    (void)err;
    *out = (kiln_draw_chunk_header){.n = c->count, .hidden = !is_in_view(d, index)};
    memcpy(out->key, key.bytes, sizeof out->key);
    return KILN_OK;
}

/* ---- views ----------------------------------------------------------------------------------- */
static bool is_seen(const kiln_shares_unit *u, const kiln_chunk *c)
{
    bool seen = false;
    for (uint32_t v = 0; v < u->n_views; v++)
        seen = seen || kiln_view_request_may_see(&u->views[v], c);
    return seen;
}

/* An array of zeros for each chunk that a view may see. Those of the unit before are taken
 * again. */
static kiln_status make_sums(const drawing *d, kiln_error *err)
{
    const kiln_layer *baked = d->state->baked;
    uint64_t **sums = d->state->sums;
    const int threads = (int)kiln_worker_threads(d->w);
    for (uint32_t i = 0; i < baked->n_chunks; i++) {
        const bool seen = is_seen(d->unit, &baked->chunks[i]);
        if (seen && !sums[i])
            KILN_TRY(KILN_ALLOC_UNSET(&sums[i], baked->chunks[i].count, "sums of shares", err));
        if (seen) continue;
        free(sums[i]);
        sums[i] = NULL;
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (uint32_t i = 0; i < baked->n_chunks; i++)
        if (sums[i]) memset(sums[i], 0, baked->chunks[i].count * sizeof *sums[i]);
    return KILN_OK;
}

static kiln_status draw_shares(drawing *d, kiln_error *err)
{
    const kiln_draw_scene scene = {.view = &d->view->view,
                                   .profile = d->view->profile,
                                   .antialiased = d->view->antialiased,
                                   .n_chunks = d->state->baked->n_chunks,
                                   .chunk = give_baked_chunk,
                                   .header = give_header,
                                   .context = d,
                                   .store = d->state->store};
    const kiln_draw_want want = {.ways = d->unit->capacity > 0
                                             ? KILN_DRAW_SLABS
                                             : KILN_DRAW_DEVICE | KILN_DRAW_SLABS | KILN_DRAW_HOST,
                                 .capacity = d->unit->capacity,
                                 .sums = d->state->sums};
    return kiln_draw(kiln_worker_runner(d->w), &scene, &want, NULL, err);
}

/* Rounded once, in place: at most 2^24 for each of 2^22 pixels of some views. A float is written
 * over sums that have been read. */
static void round_sums(uint64_t *sums, uint64_t n)
{
    for (uint64_t row = 0; row < n; row++) {
        /* a power of two: exact */
        const float share = (float)(int64_t)sums[row] * (1.0f / KILN_BLEND_UNIT);
        memcpy((char *)sums + row * sizeof share, &share, sizeof share);
    }
}

static kiln_status put_shares(const drawing *d, kiln_error *err)
{
    const kiln_layer *baked = d->state->baked;
    uint64_t *const *sums = d->state->sums;
    const int threads = (int)kiln_worker_threads(d->w);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (uint32_t i = 0; i < baked->n_chunks; i++)
        if (sums[i]) round_sums(sums[i], baked->chunks[i].count);
    for (uint32_t i = 0; i < baked->n_chunks; i++) {
        const kiln_chunk *c = &baked->chunks[i];
        if (sums[i])
            KILN_TRY(kiln_worker_lend(d->w, c->name, sums[i], c->count * sizeof(float),
                                      sizeof(float), err));
    }
    return KILN_OK;
}

kiln_status kiln_shares_compute(kiln_worker *w, const kiln_shares_unit *u, kiln_error *err)
{
    const uint64_t may = kiln_worker_ram(w);
    drawing d = {.w = w, .unit = u};
    KILN_TRY(kiln_lod_state_draws(w, u->baked, may > u->ram ? may - u->ram : 0, &d.state, err));
    KILN_TRY(make_sums(&d, err));
    for (uint32_t v = 0; v < u->n_views; v++) {
        d.view = &u->views[v];
        KILN_TRY(draw_shares(&d, err));
    }
    return put_shares(&d, err);
}
