/* The worker's state. */
#include "stages/lod/lod_state.h"
#include "stages/engine/memory/plane_cache.h"

#include "base/memory.h"

#include <stdlib.h>

static void drop_sums(kiln_lod_state *s)
{
    for (uint32_t i = 0; s->sums && i < s->baked->n_chunks; i++) free(s->sums[i]);
    free(s->sums);
    s->sums = NULL;
}

static void state_free(void *state)
{
    kiln_lod_state *s = state;
    if (!s) return;
    drop_sums(s);
    kiln_ahead_release(&s->ahead);
    kiln_draw_store_free(s->store);
    kiln_plane_cache_free(s->planes);
    kiln_layer_free(s->baked);
    free(s);
}

static kiln_status state_new(kiln_worker *w, kiln_hash digest, kiln_lod_state **out,
                             kiln_error *err)
{
    kiln_manifest *m;
    kiln_lod_state *s;
    kiln_status st;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(KILN_ALLOC(&s, 1, "the state of lod", err));
    KILN_GO(kiln_layer_get_digest(m, "baked", digest, &s->baked, err));
    KILN_GO(kiln_plane_cache_new(0, &s->planes, err));
    kiln_worker_set_state(w, s, state_free);
    *out = s;
    return KILN_OK;
done:
    state_free(s);
    return st;
}

kiln_status kiln_lod_state_get(kiln_worker *w, kiln_hash digest, kiln_lod_state **out,
                               kiln_error *err)
{
    *out = kiln_worker_state(w);
    if (!*out || !kiln_hash_equal((*out)->baked->digest, digest))
        KILN_TRY(state_new(w, digest, out, err));
    drop_sums(*out);
    kiln_ahead_release(&(*out)->ahead);
    kiln_plane_cache_set_budget((*out)->planes, 0);
    return KILN_OK;
}

kiln_status kiln_lod_state_baked(kiln_worker *w, kiln_hash digest, const kiln_layer **out,
                                 kiln_error *err)
{
    kiln_lod_state *state;
    KILN_TRY(kiln_lod_state_get(w, digest, &state, err));
    *out = state->baked;
    return KILN_OK;
}

kiln_status kiln_lod_state_draws(kiln_worker *w, kiln_hash digest, uint64_t spare,
                                 kiln_lod_state **out, kiln_error *err)
{
    *out = kiln_worker_state(w);
    if (!*out || !kiln_hash_equal((*out)->baked->digest, digest))
        KILN_TRY(state_new(w, digest, out, err));
    kiln_lod_state *s = *out;
    kiln_plane_cache_set_budget(s->planes,
                                spare - kiln_ahead_set(&s->ahead, w, s->baked, false, spare));
    if (!s->sums) KILN_TRY(KILN_ALLOC(&s->sums, s->baked->n_chunks, "sums of shares", err));
    return s->store ? KILN_OK : kiln_draw_store_new(kiln_worker_runner(w), &s->store, err);
}
