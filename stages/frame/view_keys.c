/* view_keys -- see view_keys.h. */
#include "stages/frame/view_keys.h"

#include "base/memory.h"
#include "stages/engine/engine.h"
#include "stages/engine/stage_graph.h"

#include <stdlib.h>

static void key_plane(kiln_hasher *h, const kiln_chunk *c, const char *name)
{
    const kiln_plane *p = kiln_chunk_plane(c, name);
    for (uint32_t i = 0; p && i < p->data.n_segments; i++)
        kiln_key_hash(h, name, p->data.segments[i]);
}

static kiln_hash chunk_key(const kiln_chunk *c, const char *const *planes, size_t n)
{
    kiln_hasher *h = kiln_hasher_new();
    kiln_key_text(h, "chunk", c->name);
    for (size_t i = 0; i < n; i++) key_plane(h, c, planes[i]);
    return kiln_key_end(h);
}

kiln_status kiln_chunk_keys_make(const kiln_layer *layer, kiln_chunk_keys *out, kiln_error *err)
{
    enum { ALL = 7, GEOMETRY = 5 };
    static const char *const planes[ALL] = {"means",      "log_scales", "quats", "opacity_logits",
                                            "source_row", "sh0",        "shN"};
    *out = (kiln_chunk_keys){.layer = layer};
    KILN_TRY(KILN_ALLOC(&out->geometry, layer->n_chunks, "keys of chunks", err));
    const kiln_status st = KILN_ALLOC(&out->colour, layer->n_chunks, "keys of chunks", err);
    if (st != KILN_OK) {
        kiln_chunk_keys_release(out);
        return st;
    }
    for (uint32_t i = 0; i < layer->n_chunks; i++) {
        out->geometry[i] = chunk_key(&layer->chunks[i], planes, GEOMETRY);
        out->colour[i] = chunk_key(&layer->chunks[i], planes, ALL);
    }
    return KILN_OK;
}

void kiln_chunk_keys_release(kiln_chunk_keys *k)
{
    free(k->geometry);
    free(k->colour);
    *k = (kiln_chunk_keys){0};
}

/* Adds the view, and the hash of each of its chunks. */
static void key_request(kiln_hasher *h, const kiln_view_request *s, const kiln_view_chunks *c,
                        const kiln_hash *chunks)
{
    KILN_KEY_LISTS(kiln_view_request, 176);
    kiln_key_bytes(h, "view", &s->view, sizeof s->view); /* near_m is in it */
    kiln_key_text(h, "profile", kiln_profiles[s->profile].name);
    kiln_key_u64(h, "antialiased", s->antialiased);
    for (uint32_t i = 0; i < c->n; i++) kiln_key_hash(h, "chunk", chunks[c->numbers[i]]);
}

/* Returns the version in stages.def. If it is raised there, earlier tables and pictures are no
 * longer found. */
static uint32_t version_of(const char *stage)
{
    const kiln_stage_info *info = kiln_stage_find(stage);
    return info ? info->version : 0;
}

kiln_hash kiln_view_request_table_key(const kiln_view_request *s, const kiln_chunk_keys *k,
                                      const kiln_view_chunks *c)
{
    kiln_hasher *h = kiln_key_begin("tiles", version_of("tiles"));
    key_request(h, s, c, k->geometry);
    return kiln_key_end(h);
}

kiln_hash kiln_view_request_picture_key(const kiln_view_request *s, const kiln_chunk_keys *k,
                                        const kiln_view_chunks *c, const double background[3],
                                        const char *device_kind)
{
    kiln_hasher *h = kiln_key_begin("render", version_of("render"));
    key_request(h, s, c, k->colour);
    kiln_key_u64(h, "sh_degree", k->layer->sh_degree);
    for (int i = 0; i < 3; i++) kiln_key_f64(h, "background", background[i]);
    kiln_key_text(h, "device", device_kind);
    return kiln_key_end(h);
}
