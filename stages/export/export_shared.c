/* export_shared -- see export_shared.h. Parent and workers are the same program, so numbers travel
 * as they lie in memory. */
#include "stages/export/export_shared.h"

#include "base/harmonics.h"
#include "schema/layers.h"
#include "stages/export/bakes.h"
#include "stages/export/level_chunks.h"
#include "stages/export/made_levels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char writer[KILN_WRITER_NAME_MAX], scratch[KILN_SCRATCH_FILES][64];
    kiln_export e; /* its pointers are NULL: what they point to follows */
    uint64_t plan_bytes;
} head;

typedef struct {
    kiln_layer_kind kind;
    kiln_hash layer, levels;
    bool has_levels;
    uint64_t n_source_rows, source_first;
    char path[KILN_PATH_MAX];
} part_record;

typedef struct {
    /* in the layer, behind its chunks in the levels, behind those in what was made */
    uint32_t bake, index;
    uint32_t level, unused;
    uint64_t n;
} chunk_record;

typedef struct {
    char name[96];
    float box_min[3], box_max[3];
    uint64_t count, at;
    uint32_t sh_degree, unused;
} made_record;

_Static_assert(sizeof(head) == sizeof(kiln_export) + KILN_SHARED_HEAD &&
                   sizeof(part_record) == KILN_PATH_MAX + KILN_SHARED_BAKE &&
                   sizeof(chunk_record) == KILN_SHARED_CHUNK &&
                   sizeof(made_record) == KILN_SHARED_MADE,
               "kiln_export_shared_ram counts other records than travel");

void kiln_made_chunks_release(kiln_made_chunks *made)
{
    for (uint32_t i = 0; made->chunks && i < made->n; i++) free(made->chunks[i].planes);
    free(made->chunks);
    free(made->at);
    *made = (kiln_made_chunks){0};
}

void kiln_export_count_rows(kiln_export *e)
{
    uint32_t n = 0;
    e->n_rows = 0;
    for (uint32_t i = 0; i < e->n_chunks; i++) {
        if (e->chunks[i].n == 0) continue;
        e->chunks[n] = e->chunks[i];
        e->chunks[n++].first = e->n_rows;
        e->n_rows += e->chunks[i].n;
    }
    e->n_chunks = n;
}

/* A layer of no manifest: its chunks have the same planes, whose data are nowhere. */
typedef struct {
    uint32_t n_chunks, n_planes, sh_degree;
    uint64_t count, from_bytes;
} layer_record;

typedef struct {
    char name[96];
    kiln_type type;
    uint32_t components;
} plane_record;

/* ---- parent ---------------------------------------------------------------------------------- */

static kiln_status pack_bake(const kiln_export_bake *p, kiln_buffer *out, kiln_error *err)
{
    part_record *r;
    KILN_TRY(KILN_ALLOC(&r, 1, "a bake", err));
    r->kind = kiln_layer_kind_find(p->layer->kind);
    r->layer = p->layer->digest;
    r->has_levels = p->levels != NULL;
    if (p->levels) r->levels = p->levels->digest;
    r->n_source_rows = p->n_source_rows;
    r->source_first = p->source_first;
    memcpy(r->path, p->path, sizeof r->path);
    const kiln_status st = kiln_buffer_put(out, r, sizeof *r, err);
    free(r);
    return st;
}

static kiln_status pack_planes(const kiln_chunk *c, kiln_buffer *out, kiln_error *err)
{
    for (uint32_t i = 0; i < c->n_planes; i++) {
        plane_record r;
        memset(&r, 0, sizeof r);
        memcpy(r.name, c->planes[i].name, sizeof r.name);
        r.type = c->planes[i].type;
        r.components = c->planes[i].components;
        KILN_TRY(kiln_buffer_put(out, &r, sizeof r, err));
    }
    return KILN_OK;
}

/* Scene, layer and what the rows are read by, where no manifest has them. */
static kiln_status pack_source(const kiln_export *e, kiln_buffer *out, kiln_error *err)
{
    const kiln_layer *l = e->bakes[0].layer;
    const layer_record r = {.n_chunks = l->n_chunks,
                            .n_planes = l->chunks[0].n_planes,
                            .sh_degree = l->sh_degree,
                            .count = l->count,
                            .from_bytes = e->from.bytes};
    KILN_TRY(kiln_buffer_put(out, &e->bakes[0].scene, sizeof e->bakes[0].scene, err));
    KILN_TRY(kiln_buffer_put(out, &r, sizeof r, err));
    KILN_TRY(pack_planes(&l->chunks[0], out, err));
    /* their pointers are not read there */
    KILN_TRY(kiln_buffer_put(out, l->chunks, l->n_chunks * sizeof *l->chunks, err));
    return kiln_buffer_put(out, e->from.data, e->from.bytes, err);
}

static bool is_among(const kiln_chunk *c, const kiln_chunk *chunks, uint32_t n)
{
    return n && c >= chunks && c < chunks + n;
}

static chunk_record record_of(const kiln_export *e, const kiln_export_chunk *c)
{
    const kiln_export_bake *bake = &e->bakes[c->bake];
    const uint32_t n = bake->layer->n_chunks,
                   with_levels = n + (bake->levels ? bake->levels->n_chunks : 0);
    uint32_t index = (uint32_t)(c->chunk - bake->layer->chunks);
    if (is_among(c->chunk, e->made.chunks, e->made.n))
        index = with_levels + (uint32_t)(c->chunk - e->made.chunks);
    else if (c->level)
        index = n + (uint32_t)(c->chunk - bake->levels->chunks);
    return (chunk_record){.bake = c->bake, .index = index, .level = c->level, .n = c->n};
}

static uint32_t degree_of(uint32_t components)
{
    uint32_t degree = 0;
    while (kiln_sh_components(degree) < components) degree++;
    return degree;
}

static kiln_status pack_made(const kiln_export *e, kiln_buffer *out, kiln_error *err)
{
    for (uint32_t i = 0; i < e->made.n; i++) {
        const kiln_chunk *c = &e->made.chunks[i];
        const kiln_plane *sh = kiln_chunk_plane(c, "shN");
        made_record r = {.count = c->count,
                         .at = e->made.at[i],
                         .sh_degree = sh ? degree_of(sh->components) : 0};
        memcpy(r.name, c->name, sizeof r.name);
        memcpy(r.box_min, c->box_min, sizeof r.box_min);
        memcpy(r.box_max, c->box_max, sizeof r.box_max);
        KILN_TRY(kiln_buffer_put(out, &r, sizeof r, err));
    }
    return KILN_OK;
}

kiln_status kiln_export_pack(const kiln_export *e, const kiln_export_places *places,
                             kiln_buffer *out, kiln_error *err)
{
    head h;
    memset(&h, 0, sizeof h);
    (void)snprintf(h.writer, sizeof h.writer, "%s", places->writer->name);
    memcpy(h.scratch, places->scratch, sizeof h.scratch);
    h.e = *e;
    h.e.bakes = NULL;
    h.e.chunks = NULL;
    h.e.tree = NULL; /* the workers make it of the levels */
    h.e.made.chunks = NULL;
    h.e.made.at = NULL;
    h.e.target = h.e.temporary = NULL;
    h.e.plan = NULL;
    h.e.from.data = NULL;
    h.e.views = NULL; /* the parent's: it does not follow */
    h.plan_bytes = e->plan_bytes;
    KILN_TRY(kiln_buffer_put(out, &h, sizeof h, err));
    for (uint32_t i = 0; i < e->n_bakes; i++) KILN_TRY(pack_bake(&e->bakes[i], out, err));
    if (e->from.bytes) KILN_TRY(pack_source(e, out, err));
    KILN_TRY(pack_made(e, out, err));
    for (uint32_t i = 0; i < e->n_chunks; i++) {
        const chunk_record r = record_of(e, &e->chunks[i]);
        KILN_TRY(kiln_buffer_put(out, &r, sizeof r, err));
    }
    KILN_TRY(kiln_buffer_put(out, e->target, strlen(e->target) + 1, err));
    KILN_TRY(kiln_buffer_put(out, e->temporary, strlen(e->temporary) + 1, err));
    return kiln_buffer_put(out, e->plan, e->plan_bytes, err);
}

/* ---- worker ---------------------------------------------------------------------------------- */

typedef struct {
    const unsigned char *at;
    size_t left;
} cursor;

static kiln_status take_shared_bytes(cursor *c, void *out, size_t bytes, kiln_error *err)
{
    if (bytes > c->left) return kiln_fail(err, KILN_E_BUG, "an export request ends too early");
    memcpy(out, c->at, bytes);
    c->at += bytes;
    c->left -= bytes;
    return KILN_OK;
}

static kiln_status take_text(cursor *c, char out[KILN_PATH_MAX], kiln_error *err)
{
    const size_t n = strnlen((const char *)c->at, c->left);
    if (n >= KILN_PATH_MAX)
        return kiln_fail(err, KILN_E_BUG, "an export request with a path of %zu bytes", n);
    return take_shared_bytes(c, out, n + 1, err);
}

static kiln_status take_bake(cursor *c, kiln_manifest *first, kiln_export_bake *p, kiln_error *err)
{
    kiln_status st = KILN_OK;
    part_record *r;
    kiln_manifest *m = first;
    KILN_TRY(KILN_ALLOC(&r, 1, "a bake", err));
    KILN_GO(take_shared_bytes(c, r, sizeof *r, err));
    p->n_source_rows = r->n_source_rows;
    p->source_first = r->source_first;
    memcpy(p->path, r->path, sizeof p->path);
    if (!m) goto done; /* take_source has the rest */
    if (r->path[0]) KILN_GO(kiln_manifest_open(r->path, KILN_OPEN_READ, "export", true, &m, err));
    KILN_GO(kiln_scene_get(m, &p->scene, err));
    KILN_GO(kiln_layer_get_digest(m, kiln_layer_kinds[r->kind].name, r->layer, &p->layer, err));
    if (r->has_levels)
        KILN_GO(kiln_layer_get_digest(m, kiln_layer_kinds[KILN_LAYER_levels].name, r->levels,
                                      &p->levels, err));
done:
    if (m != first) kiln_manifest_close(m);
    free(r);
    return st;
}

static kiln_status take_layer_chunk(cursor *c, const plane_record *planes, uint32_t n,
                                    kiln_chunk *out, kiln_error *err)
{
    KILN_TRY(take_shared_bytes(c, out, sizeof *out, err));
    out->n_planes = 0;
    out->planes = NULL;
    KILN_TRY(KILN_ALLOC(&out->planes, n, "planes", err));
    for (; out->n_planes < n; out->n_planes++) {
        const plane_record *r = &planes[out->n_planes];
        kiln_plane *p = &out->planes[out->n_planes];
        memcpy(p->name, r->name, sizeof p->name);
        p->type = r->type;
        p->components = r->components;
        p->data.raw_bytes = out->count * r->components * kiln_type_size(r->type);
    }
    return KILN_OK;
}

static kiln_status take_source(cursor *c, kiln_export_copy *out, kiln_error *err)
{
    kiln_export_bake *p = &out->e.bakes[0];
    kiln_status st = KILN_OK;
    plane_record *planes = NULL;
    layer_record r;
    KILN_TRY(take_shared_bytes(c, &p->scene, sizeof p->scene, err));
    KILN_TRY(take_shared_bytes(c, &r, sizeof r, err));
    KILN_TRY(KILN_ALLOC(&p->layer, 1, "a layer", err));
    (void)snprintf(p->layer->kind, sizeof p->layer->kind, "%s",
                   kiln_layer_kinds[KILN_LAYER_source].name);
    p->layer->sh_degree = r.sh_degree;
    p->layer->count = r.count;
    KILN_TRY(KILN_ALLOC(&p->layer->chunks, r.n_chunks, "chunks", err));
    KILN_GO(KILN_ALLOC(&planes, r.n_planes, "planes", err));
    KILN_GO(take_shared_bytes(c, planes, r.n_planes * sizeof *planes, err));
    for (; p->layer->n_chunks < r.n_chunks; p->layer->n_chunks++)
        KILN_GO(
            take_layer_chunk(c, planes, r.n_planes, &p->layer->chunks[p->layer->n_chunks], err));
    KILN_GO(kiln_alloc(&out->from, r.from_bytes, 1, "what rows are read by", err));
    KILN_GO(take_shared_bytes(c, out->from, r.from_bytes, err));
    out->e.from.data = out->from;
done:
    free(planes);
    return st;
}

static kiln_status take_made(cursor *c, kiln_made_chunks *made, kiln_error *err)
{
    const uint32_t n = made->n;
    made->n = 0;
    if (n == 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&made->chunks, n, "chunks", err));
    KILN_TRY(KILN_ALLOC(&made->at, n, "chunks", err));
    for (; made->n < n; made->n++) {
        made_record r;
        kiln_chunk *chunk = &made->chunks[made->n];
        KILN_TRY(take_shared_bytes(c, &r, sizeof r, err));
        chunk->count = r.count;
        made->at[made->n] = r.at;
        memcpy(chunk->name, r.name, sizeof r.name);
        memcpy(chunk->box_min, r.box_min, sizeof r.box_min);
        memcpy(chunk->box_max, r.box_max, sizeof r.box_max);
        KILN_TRY(kiln_made_planes(chunk, r.sh_degree, err));
    }
    return KILN_OK;
}

static const kiln_chunk *chunk_of_record(const kiln_export *e, const chunk_record *r)
{
    const kiln_export_bake *bake = r->bake < e->n_bakes ? &e->bakes[r->bake] : NULL;
    if (!bake) return NULL;
    const uint32_t n = bake->layer->n_chunks,
                   with_levels = n + (bake->levels ? bake->levels->n_chunks : 0);
    if (r->index < n) return &bake->layer->chunks[r->index];
    if (r->index < with_levels) return &bake->levels->chunks[r->index - n];
    return r->index - with_levels < e->made.n ? &e->made.chunks[r->index - with_levels] : NULL;
}

static kiln_status take_chunks(cursor *c, kiln_export *e, kiln_error *err)
{
    for (uint32_t i = 0; i < e->n_chunks; i++) {
        chunk_record r;
        KILN_TRY(take_shared_bytes(c, &r, sizeof r, err));
        const kiln_chunk *chunk = chunk_of_record(e, &r);
        if (!chunk)
            return kiln_fail(err, KILN_E_BUG, "an export request names chunk %u of bake %u",
                             r.index, r.bake);
        e->chunks[i] = (kiln_export_chunk){
            .bake = r.bake, .chunk = chunk, .n = r.n, .node = KILN_NO_NODE, .level = r.level};
    }
    kiln_export_count_rows(e);
    return KILN_OK;
}

kiln_status kiln_export_unpack(const void *data, size_t bytes, kiln_manifest *m,
                               kiln_export_copy *out, kiln_error *err)
{
    cursor c = {data, bytes};
    head h;
    memset(out, 0, sizeof *out);
    KILN_TRY(take_shared_bytes(&c, &h, sizeof h, err));
    out->e = h.e;
    out->places.writer = kiln_writer_named(h.writer);
    if (!out->places.writer) return kiln_fail(err, KILN_E_BUG, "'%s' is not a writer", h.writer);
    memcpy(out->places.scratch, h.scratch, sizeof out->places.scratch);
    KILN_TRY(KILN_ALLOC(&out->e.bakes, h.e.n_bakes, "bakes", err));
    KILN_TRY(KILN_ALLOC(&out->e.chunks, h.e.n_chunks, "chunks", err));
    for (uint32_t i = 0; i < h.e.n_bakes; i++) KILN_TRY(take_bake(&c, m, &out->e.bakes[i], err));
    if (h.e.from.bytes) KILN_TRY(take_source(&c, out, err));
    KILN_TRY(take_made(&c, &out->e.made, err));
    KILN_TRY(take_chunks(&c, &out->e, err));
    /* several bakes are no tree: they have levels where --count and the like choose from them */
    if (out->e.bakes[0].levels && out->e.n_bakes == 1 && !out->e.cut)
        KILN_TRY(kiln_export_bind_levels(&out->e, &out->tree, err));
    KILN_TRY(take_text(&c, out->target, err));
    KILN_TRY(take_text(&c, out->temporary, err));
    if (c.left != h.plan_bytes)
        return kiln_fail(err, KILN_E_BUG, "an export request with %zu bytes of a plan", c.left);
    KILN_TRY(kiln_buffer_put(&out->plan, c.at, c.left, err));
    out->e.target = out->target;
    out->e.temporary = out->temporary;
    out->e.plan = out->plan.data;
    out->e.plan_bytes = out->plan.size;
    return KILN_OK;
}

void kiln_export_copy_release(kiln_export_copy *c)
{
    kiln_level_tree_release(&c->tree);
    for (uint32_t i = 0; c->e.bakes && i < c->e.n_bakes; i++)
        kiln_export_bake_release(&c->e.bakes[i]);
    free(c->e.bakes);
    kiln_made_chunks_release(&c->e.made);
    free(c->e.chunks);
    free(c->from);
    kiln_buffer_release(&c->plan);
}
