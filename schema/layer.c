/* layer -- layers with their chunks and planes. Written once, then immutable; read whole, without
 * the planes' bytes. */
#include "base/memory.h"
#include "schema/level_rows.h"
#include "schema/manifest_internal.h"
#include "schema/row_check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- put ------------------------------------------------------------------------------------- */
static int planes_by_name(const void *a, const void *b)
{
    return strcmp(((const kiln_plane *)a)->name, ((const kiln_plane *)b)->name);
}

/* Brings a layer into the order that its digest is defined over, and refuses what could not be read
 * again: the outputs of units that it is made of may have lain in a damaged manifest. */
static kiln_status normalise(kiln_layer *l, kiln_error *err)
{
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        kiln_chunk *c = &l->chunks[i];
        if (c->n_planes) qsort(c->planes, c->n_planes, sizeof *c->planes, planes_by_name);
        KILN_TRY(kiln_row_check_chunk(l, c, err));
        KILN_TRY(kiln_row_check_errors(l, c, err));
        for (uint32_t p = 0; p < c->n_planes; p++)
            KILN_TRY(kiln_row_check_plane(l, c, &c->planes[p], err));
    }
    return kiln_row_check_layer(l, err);
}

static kiln_status insert_layer(kiln_manifest *m, const kiln_layer *l, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(
        m, &q, "INSERT INTO layer (kind, digest, count, sh_degree) VALUES (?, ?, ?, ?)", err));
    kiln_bind_text(&q, l->kind);
    kiln_bind_hash(&q, l->digest);
    kiln_bind_u64(&q, l->count);
    kiln_bind_i64(&q, l->sh_degree);
    return kiln_query_run(&q, err);
}

static void bind_vector(kiln_query *q, const float v[3])
{
    for (int i = 0; i < 3; i++) kiln_bind_f64(q, v[i]);
}

static kiln_status insert_chunk(kiln_manifest *m, int64_t layer, uint32_t ordinal,
                                const kiln_chunk *c, kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(
        m, &q,
        "INSERT INTO chunk (layer, ordinal, name, parent, count, level, hilbert_lo, hilbert_hi, "
        "box_min_x, box_min_y,"
        " box_min_z, box_max_x, box_max_y, box_max_z, reach_min_x, reach_min_y, reach_min_z, "
        "reach_max_x,"
        " reach_max_y, reach_max_z, max_log_scale, max_opacity_logit)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        err));
    kiln_bind_i64(&q, layer);
    kiln_bind_i64(&q, ordinal);
    kiln_bind_text(&q, c->name);
    kiln_bind_text(&q, c->parent);
    kiln_bind_u64(&q, c->count);
    kiln_bind_i64(&q, c->level);
    kiln_bind_u64(&q, c->hilbert_lo);
    kiln_bind_u64(&q, c->hilbert_hi);
    bind_vector(&q, c->box_min);
    bind_vector(&q, c->box_max);
    bind_vector(&q, c->reach_min);
    bind_vector(&q, c->reach_max);
    kiln_bind_f64(&q, c->max_log_scale);
    kiln_bind_f64(&q, c->max_opacity_logit);
    return kiln_query_run(&q, err);
}

static kiln_status insert_segment(kiln_manifest *m, int64_t plane, uint32_t segment, kiln_hash hash,
                                  kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(
        m, &q, "INSERT INTO plane_segment (plane, segment, hash) VALUES (?, ?, ?)", err));
    kiln_bind_i64(&q, plane);
    kiln_bind_i64(&q, segment);
    kiln_bind_hash(&q, hash);
    return kiln_query_run(&q, err);
}

static kiln_status insert_plane(kiln_manifest *m, int64_t chunk, const kiln_plane *p,
                                kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(
        m, &q,
        "INSERT INTO plane (chunk, name, type, components, raw_bytes) VALUES (?, ?, ?, ?, ?)",
        err));
    kiln_bind_i64(&q, chunk);
    kiln_bind_text(&q, p->name);
    kiln_bind_text(&q, kiln_type_name(p->type));
    kiln_bind_i64(&q, p->components);
    kiln_bind_u64(&q, p->data.raw_bytes);
    KILN_TRY(kiln_query_run(&q, err));
    int64_t plane = sqlite3_last_insert_rowid(m->db);
    uint32_t n = p->data.raw_bytes ? p->data.n_segments : 0; /* an empty array has no segments */
    for (uint32_t i = 0; i < n; i++)
        KILN_TRY(insert_segment(m, plane, i, p->data.segments[i], err));
    return KILN_OK;
}

static kiln_status find_layer(kiln_manifest *m, const char *kind, kiln_hash digest, bool *found,
                              kiln_error *err)
{
    kiln_query q;
    KILN_TRY(kiln_query_open(m, &q, "SELECT 1 FROM layer WHERE kind = ? AND digest = ?", err));
    kiln_bind_text(&q, kind);
    kiln_bind_hash(&q, digest);
    kiln_status st = kiln_query_step(&q, found, err);
    kiln_query_close(&q);
    return st;
}

kiln_status kiln_layer_put(kiln_manifest *m, kiln_layer *l, kiln_error *err)
{
    bool own, found;
    kiln_status st = KILN_OK;
    KILN_TRY(normalise(l, err));
    l->digest = kiln_layer_digest(l);
    if (kiln_hash_is_zero(l->digest))
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for a digest");
    KILN_TRY(kiln_group_begin(m, &own, err));
    KILN_GO(find_layer(m, l->kind, l->digest, &found, err));
    if (found) goto done;
    KILN_GO(insert_layer(m, l, err));
    int64_t layer = sqlite3_last_insert_rowid(m->db);
    KILN_GO(kiln_level_origin_put(m, layer, l, err));
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        KILN_GO(insert_chunk(m, layer, i, &l->chunks[i], err));
        int64_t chunk = sqlite3_last_insert_rowid(m->db);
        KILN_GO(kiln_level_errors_put(m, chunk, &l->chunks[i], err));
        for (uint32_t p = 0; p < l->chunks[i].n_planes; p++)
            KILN_GO(insert_plane(m, chunk, &l->chunks[i].planes[p], err));
    }
done:
    return kiln_group_end(m, own, st, err);
}

/* ---- get ------------------------------------------------------------------------------------- */
static void read_vector(kiln_query *q, float v[3])
{
    for (int i = 0; i < 3; i++) v[i] = kiln_column_f32(q);
}

static kiln_status read_chunk(kiln_query *q, kiln_chunk *c, int64_t *ordinal, kiln_error *err)
{
    kiln_column_text(q, c->name, sizeof c->name);
    kiln_column_text(q, c->parent, sizeof c->parent);
    c->count = kiln_column_u64(q);
    c->level = kiln_column_u32(q);
    c->hilbert_lo = kiln_column_u64(q);
    c->hilbert_hi = kiln_column_u64(q);
    read_vector(q, c->box_min);
    read_vector(q, c->box_max);
    read_vector(q, c->reach_min);
    read_vector(q, c->reach_max);
    c->max_log_scale = kiln_column_f32(q);
    c->max_opacity_logit = kiln_column_f32(q);
    *ordinal = kiln_column_i64(q);
    return kiln_query_check(q, err);
}

/* Planes are put to their chunks by number: where numbers are wrong, no more of the layer can be
 * read. */
static kiln_status check_number(const kiln_manifest *m, const kiln_layer *l, int64_t ordinal,
                                kiln_error *err)
{
    if (ordinal == (int64_t)l->n_chunks - 1) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "manifest '%s' is damaged: layer '%s', chunk '%s' is number %" PRId64
                     ", but number %" PRIu32 " must follow",
                     m->path, l->kind, l->chunks[l->n_chunks - 1].name, ordinal, l->n_chunks - 1);
}

static kiln_status read_chunks(kiln_manifest *m, int64_t layer, kiln_layer *l, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(
        m, &q,
        "SELECT name, parent, count, level, hilbert_lo, hilbert_hi, box_min_x, box_min_y, "
        "box_min_z, box_max_x,"
        " box_max_y, box_max_z, reach_min_x, reach_min_y, reach_min_z, reach_max_x, reach_max_y, "
        "reach_max_z,"
        " max_log_scale, max_opacity_logit, ordinal FROM chunk WHERE layer = ? ORDER BY ordinal",
        err));
    kiln_bind_i64(&q, layer);
    for (;;) {
        int64_t ordinal;
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(
            kiln_row_reserve((void **)&l->chunks, l->n_chunks, sizeof *l->chunks, "chunks", err));
        st = read_chunk(&q, &l->chunks[l->n_chunks++], &ordinal, err);
        if (st == KILN_OK) KILN_GO(check_number(m, l, ordinal, err));
        if (st == KILN_OK) st = kiln_row_check_chunk(l, &l->chunks[l->n_chunks - 1], err);
        KILN_GO(kiln_row_take(m, &q, st, err));
    }
done:
    kiln_query_close(&q);
    return st;
}

static kiln_status add_plane(kiln_chunk *c, const kiln_plane *p, kiln_error *err)
{
    kiln_plane *more = realloc(c->planes, (c->n_planes + (size_t)1) * sizeof *more);
    if (!more)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for %" PRIu32 " planes",
                         c->n_planes + 1);
    c->planes = more;
    c->planes[c->n_planes++] = *p;
    return KILN_OK;
}

/* One row of the join: a plane with one of its segments. The first row of a plane makes it. Rows
 * come in order; one that does not follow is there twice, which only a damaged index can give. */
static kiln_status read_plane_row(kiln_query *q, kiln_layer *l, kiln_error *err)
{
    char type[8];
    kiln_plane p = {0};
    uint32_t ordinal = kiln_column_u32(q);
    kiln_column_text(q, p.name, sizeof p.name);
    kiln_column_text(q, type, sizeof type);
    p.components = kiln_column_u32(q);
    p.data.raw_bytes = kiln_column_u64(q);
    int64_t segment = kiln_column_i64(q);
    KILN_TRY(kiln_query_check(q, err));
    if (ordinal >= l->n_chunks || !kiln_type_find(type, &p.type))
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s': plane '%s' has type '%s' in chunk number %" PRIu32
                         " of %" PRIu32,
                         l->kind, p.name, type, ordinal, l->n_chunks);
    kiln_chunk *c = &l->chunks[ordinal];
    kiln_plane *at = c->n_planes ? &c->planes[c->n_planes - 1] : NULL;
    int order = at ? strcmp(at->name, p.name) : -1;
    if (order < 0) KILN_TRY(add_plane(c, &p, err));
    at = &c->planes[c->n_planes - 1];
    if (order > 0 || (order == 0 && segment <= 0) || segment > at->data.n_segments ||
        (segment >= 0 && segment < at->data.n_segments))
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s', chunk '%s': plane '%s', segment %" PRId64
                         " occurs twice or is out of order",
                         l->kind, c->name, p.name, segment);
    if (segment < 0) return KILN_OK;
    kiln_hash hash = kiln_column_hash(q);
    KILN_TRY(kiln_query_check(q, err));
    return kiln_array_append(&at->data, hash, 0, err);
}

static kiln_status read_planes(kiln_manifest *m, int64_t layer, kiln_layer *l, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(
        m, &q,
        "SELECT ordinal, plane.name, type, components, raw_bytes, coalesce(segment, -1), hash"
        " FROM chunk JOIN plane ON plane.chunk = chunk.id LEFT JOIN plane_segment ON "
        "plane_segment.plane = plane.id"
        " WHERE layer = ? ORDER BY ordinal, plane.name, segment",
        err));
    kiln_bind_i64(&q, layer);
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        KILN_GO(kiln_row_take(m, &q, read_plane_row(&q, l, err), err));
    }
done:
    kiln_query_close(&q);
    return st;
}

/* What was read as a whole. kiln_manifest_verify gets every damaged plane. */
static kiln_status check_layer(kiln_manifest *m, const kiln_layer *l, kiln_error *err)
{
    for (uint32_t i = 0; i < l->n_chunks; i++)
        for (uint32_t p = 0; p < l->chunks[i].n_planes; p++)
            KILN_TRY(kiln_row_take(
                m, NULL, kiln_row_check_plane(l, &l->chunks[i], &l->chunks[i].planes[p], err),
                err));
    return kiln_row_take(m, NULL, kiln_row_check_layer(l, err), err);
}

/* q: a query whose first row is id, kind, digest, count, sh_degree. Closes it. */
static kiln_status read_layer(kiln_manifest *m, kiln_query *q, const char *kind, kiln_layer **out,
                              kiln_error *err)
{
    bool row;
    kiln_layer *l = NULL;
    kiln_status st = KILN_OK;
    KILN_GO(kiln_query_step(q, &row, err));
    if (!row)
        KILN_GO(kiln_fail(err, KILN_E_STALE,
                          "'%s' has no layer '%s' yet; run the stage that makes it", m->path,
                          kind));
    KILN_GO(KILN_ALLOC(&l, 1, "a layer", err));
    int64_t id = kiln_column_i64(q);
    kiln_column_text(q, l->kind, sizeof l->kind);
    l->digest = kiln_column_hash(q);
    l->count = kiln_column_u64(q);
    l->sh_degree = kiln_column_u32(q);
    st = kiln_query_check(q, err);
    if (st == KILN_OK && strcmp(l->kind, kind) != 0)
        st = kiln_fail(err, KILN_E_INPUT, "the layer '%s' is found where '%s' belongs", l->kind,
                       kind);
    KILN_GO(kiln_row_take(m, q, st, err));
    KILN_GO(kiln_level_origin_get(m, id, l, err));
    KILN_GO(read_chunks(m, id, l, err));
    KILN_GO(kiln_level_errors_get(m, id, l, err));
    KILN_GO(read_planes(m, id, l, err));
    KILN_GO(check_layer(m, l, err));
    *out = l;
    l = NULL;
done:
    kiln_query_close(q);
    kiln_layer_free(l);
    return st;
}

kiln_status kiln_layer_get(kiln_manifest *m, const char *kind, kiln_layer **out, kiln_error *err)
{
    kiln_query q;
    *out = NULL;
    KILN_TRY(kiln_query_open(
        m, &q,
        "SELECT layer.id, layer.kind, layer.digest, layer.count, layer.sh_degree"
        " FROM stage_output JOIN layer ON layer.id = stage_output.layer WHERE role = ?",
        err));
    kiln_bind_text(&q, kind);
    return read_layer(m, &q, kind, out, err);
}

kiln_status kiln_layer_get_digest(kiln_manifest *m, const char *kind, kiln_hash digest,
                                  kiln_layer **out, kiln_error *err)
{
    kiln_query q;
    *out = NULL;
    KILN_TRY(kiln_query_open(
        m, &q, "SELECT id, kind, digest, count, sh_degree FROM layer WHERE kind = ? AND digest = ?",
        err));
    kiln_bind_text(&q, kind);
    kiln_bind_hash(&q, digest);
    return read_layer(m, &q, kind, out, err);
}

void kiln_layer_free(kiln_layer *l)
{
    if (!l) return;
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        for (uint32_t p = 0; p < l->chunks[i].n_planes; p++)
            free(l->chunks[i].planes[p].data.segments);
        free(l->chunks[i].planes);
    }
    free(l->chunks);
    free(l);
}
