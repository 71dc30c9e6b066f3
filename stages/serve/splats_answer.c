/* splats_answer -- the rows of one chunk as a PLY in INRIA's columns, by the code of kiln-export.
 *
 * Memory: the planes of the chunk and the PLY, twice 65,536 rows of at most 248 bytes at degree 3
 * (twice 1016 at degree 8). */
#include "base/harmonics.h"
#include "base/memory.h"
#include "stages/formats/ply/ply_table.h"
#include "stages/serve/routes.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK_ROWS_MAX = 65536 };

/* The scene without its source: the columns are INRIA's whatever the source's were. */
static kiln_status describe_export(const kiln_scene *scene, kiln_layer *layer,
                                   kiln_export_chunk *chunk, uint32_t degree, kiln_export *e,
                                   kiln_error *err)
{
    *e = (kiln_export){.n_bakes = 1,
                       .chunks = chunk,
                       .n_chunks = 1,
                       .n_rows = chunk->n,
                       .splats = true,
                       .no_normals = true,
                       .keep_origin = true};
    KILN_TRY(KILN_ALLOC(&e->bakes, 1, "a chunk", err));
    e->bakes->scene = *scene;
    e->bakes->scene.source_format[0] = '\0';
    e->bakes->layer = layer;
    e->sh_degree = degree < layer->sh_degree ? degree : layer->sh_degree;
    memcpy(e->base, scene->origin, sizeof e->base);
    return KILN_OK;
}

static kiln_status read_f32_plane(kiln_manifest *m, const kiln_chunk *c, const char *name,
                                  uint32_t components, float **out, kiln_error *err)
{
    const kiln_plane *p = kiln_chunk_plane(c, name);
    if (components == 0) return KILN_OK;
    if (!p || p->components != components || p->type != KILN_TYPE_F32)
        return kiln_fail(err, KILN_E_INPUT,
                         "chunk '%s' has no plane '%s' of the shape of Gaussians", c->name, name);
    KILN_TRY(KILN_ALLOC_UNSET(out, c->count * components, "rows of a chunk", err));
    return kiln_plane_read(m, c, name, *out, c->count * components * sizeof **out, err);
}

/* Coefficients of higher degrees follow those of lower ones, so a lower degree is the begin of the
 * plane. */
static kiln_status read_chunk_rows(kiln_manifest *m, const kiln_layer *layer,
                                   kiln_export_rows *rows, kiln_error *err)
{
    const kiln_chunk *c = rows->chunk->chunk;
    KILN_TRY(read_f32_plane(m, c, "means", 3, &rows->means, err));
    KILN_TRY(read_f32_plane(m, c, "log_scales", 3, &rows->log_scales, err));
    KILN_TRY(read_f32_plane(m, c, "quats", 4, &rows->quats, err));
    KILN_TRY(read_f32_plane(m, c, "opacity_logits", 1, &rows->opacity_logits, err));
    KILN_TRY(read_f32_plane(m, c, "sh0", 3, &rows->sh0, err));
    return read_f32_plane(m, c, "shN", kiln_sh_components(layer->sh_degree), &rows->shN, err);
}

static void release_rows(kiln_export_rows *rows)
{
    free(rows->means);
    free(rows->log_scales);
    free(rows->quats);
    free(rows->opacity_logits);
    free(rows->sh0);
    free(rows->shN);
}

/* What float32 could not carry of the source is not for a viewer. */
static void leave_out_kept(kiln_ply_table *t)
{
    for (uint32_t i = 0; i < t->n_columns; i++) {
        t->columns[i].kept[0] = '\0';
        t->columns[i].kept_always = false;
    }
}

static kiln_status encode_chunk_ply(const kiln_ply_table *t, const kiln_export_rows *rows,
                                    kiln_buffer *out, kiln_error *err)
{
    KILN_TRY(kiln_buffer_put(out, NULL, t->header.size + rows->n * t->row_bytes, err));
    memcpy(out->data, t->header.data, t->header.size);
    return kiln_ply_encode(t, rows, 0, rows->n, out->data + t->header.size, err);
}

static kiln_status write_ply(kiln_bake_state *s, kiln_layer *layer, const kiln_chunk *c,
                             uint32_t degree, kiln_buffer *out, kiln_error *err)
{
    kiln_export_chunk chunk = {.chunk = c, .n = c->count, .node = KILN_NO_NODE};
    kiln_export_rows rows = {.chunk = &chunk, .n = c->count};
    kiln_ply_table table = {.n_columns = 0};
    kiln_export *e = NULL;
    const kiln_scene *scene;
    kiln_status st;
    KILN_TRY(kiln_bake_state_scene(s, &scene, err));
    KILN_TRY(KILN_ALLOC(&e, 1, "a chunk", err)); /* too big for the stack */
    KILN_GO(describe_export(scene, layer, &chunk, degree, e, err));
    KILN_GO(kiln_ply_table_plan(e, &table, NULL, err));
    leave_out_kept(&table);
    KILN_GO(read_chunk_rows(s->m, layer, &rows, err));
    st = encode_chunk_ply(&table, &rows, out, err);
done:
    release_rows(&rows);
    kiln_ply_table_release(&table);
    free(e->bakes);
    free(e);
    return st;
}

/* The layer of that digest among the current ones; NULL: none. */
static kiln_layer *layer_of(const kiln_bake_state *s, const char *digest)
{
    char hex[33];
    if (s->drawn && strncmp(kiln_hash_hex(s->drawn->digest, hex), digest, 32) == 0) return s->drawn;
    if (s->levels && strncmp(kiln_hash_hex(s->levels->digest, hex), digest, 32) == 0)
        return s->levels;
    return NULL;
}

kiln_status kiln_answer_splats(kiln_bake_state *s, const kiln_request *q, kiln_reply *out,
                               kiln_error *err)
{
    KILN_TRY(kiln_bake_state_layers(s, err));
    kiln_layer *layer = layer_of(s, q->path.digest);
    if (!layer || q->path.number >= layer->n_chunks)
        return kiln_fail(err, KILN_E_STALE,
                         "the bake has no such chunk now; chunks.json lists its chunks");
    const kiln_chunk *c = &layer->chunks[q->path.number];
    if (c->count > CHUNK_ROWS_MAX)
        return kiln_fail(err, KILN_E_INPUT, "chunk '%s' has more rows than any chunk may have",
                         c->name);
    if (c->count == 0) return kiln_fail(err, KILN_E_STALE, "chunk '%s' has no rows", c->name);
    out->type = "application/octet-stream";
    out->immutable = true;
    return write_ply(s, layer, c, q->sh_degree, &out->body, err);
}
