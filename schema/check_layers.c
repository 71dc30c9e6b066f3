/* check_layers -- what the planes hold against what is said about them: digests, bounds, source rows. Sizes, types and finite
 * numbers are asked whenever a layer or plane is read (row_check_layer.c). extra/NAME may hold anything. */
#include "schema/check.h"

#include "base/memory.h"
#include "schema/row_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where: "layer 'baked', chunk '/0/3'", for the sentences. */
typedef struct {
    kiln_check *check;
    const kiln_layer *layer;
    const kiln_chunk *chunk;
    uint64_t source_rows; /* of the scene; UINT64_MAX when unknown */
} place;

#define PROBLEM(at, fmt, ...) \
    kiln_check_problem((at)->check, "layer '%s', chunk '%s': " fmt, (at)->layer->kind, (at)->chunk->name, __VA_ARGS__)

static void check_box(const place *at, const float *means, uint64_t n)
{
    for (int axis = 0; axis < 3; axis++) {
        float low = n ? INFINITY : 0, high = n ? -INFINITY : 0;
        for (uint64_t i = 0; i < n; i++) {
            low = fminf(low, means[axis * n + i]);
            high = fmaxf(high, means[axis * n + i]);
        }
        if (low == at->chunk->box_min[axis] && high == at->chunk->box_max[axis]) continue;
        PROBLEM(at, "its box says %g..%g on axis %d, its means span %g..%g", (double)at->chunk->box_min[axis],
                (double)at->chunk->box_max[axis], axis, (double)low, (double)high);
    }
}

static void check_largest(const place *at, const char *plane, const float *v, uint64_t n, float said)
{
    float largest = -INFINITY;
    for (uint64_t i = 0; i < n; i++) largest = fmaxf(largest, v[i]);
    if (n && largest != said) PROBLEM(at, "it says that the largest of '%s' is %g, it is %g", plane, (double)said, (double)largest);
}

static void check_rows(const place *at, const uint32_t *rows, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        if (rows[i] < at->source_rows) continue;
        PROBLEM(at, "row %" PRIu64 " comes from source row %" PRIu32 ", the source has %" PRIu64, i, rows[i], at->source_rows);
        return;
    }
}

static void check_content(const place *at, const kiln_plane *p, const void *data)
{
    uint64_t n = at->chunk->count;
    if (strcmp(p->name, "means") == 0) check_box(at, data, n);
    if (strcmp(p->name, "log_scales") == 0) check_largest(at, p->name, data, 3 * n, at->chunk->max_log_scale);
    if (strcmp(p->name, "opacity_logits") == 0) check_largest(at, p->name, data, n, at->chunk->max_opacity_logit);
    if (strcmp(p->name, "source_row") == 0) check_rows(at, data, n);
}

/* A damaged plane was reported when the layer was read. */
static kiln_status check_plane(const place *at, const kiln_plane *p, kiln_scratch *s, kiln_error *err)
{
    if (strncmp(p->name, "extra/", 6) == 0) return KILN_OK;
    if (kiln_row_check_plane(at->layer, at->chunk, p, NULL) != KILN_OK) return KILN_OK;
    KILN_TRY(kiln_scratch_want(s, p->data.raw_bytes, err));
    KILN_TRY(kiln_plane_read(at->check->m, at->chunk, p->name, s->data, p->data.raw_bytes, err));
    check_content(at, p, s->data);
    return KILN_OK;
}

static kiln_status check_layer(kiln_check *c, const char *kind, kiln_hash digest, uint64_t source_rows, kiln_scratch *s,
                               kiln_error *err)
{
    kiln_layer *l = NULL;
    kiln_status st = KILN_OK;
    char said[33], is[33];
    KILN_GO(kiln_layer_get_digest(c->m, kind, digest, &l, err));
    kiln_hash computed = kiln_layer_digest(l);
    if (!kiln_hash_equal(computed, digest))
        kiln_check_problem(c, "layer '%s' says digest %s, it is %s", kind, kiln_hash_hex(digest, said),
                           kiln_hash_hex(computed, is));
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        place at = {.check = c, .layer = l, .chunk = &l->chunks[i], .source_rows = source_rows};
        for (uint32_t p = 0; p < at.chunk->n_planes; p++)
            KILN_GO(kiln_check_take(c, check_plane(&at, &at.chunk->planes[p], s, err), err));
    }
done:
    kiln_layer_free(l);
    return st;
}

/* Kinds and digests first: the query must be closed before layers are read. */
typedef struct {
    char kind[16];
    kiln_hash digest;
    bool fresh; /* output of a fresh stage: only these must fit the scene that is imported now */
} layer_name;

static kiln_status list_layers(kiln_check *c, kiln_buffer *names, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(c->m, &q,
                             "SELECT kind, digest, EXISTS (SELECT 1 FROM stage_output o JOIN stage s ON s.name = o.stage"
                             " WHERE o.layer = layer.id AND s.state = 'fresh') FROM layer ORDER BY id",
                             err));
    for (;;) {
        layer_name name = {.kind = ""};
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        kiln_column_text(&q, name.kind, sizeof name.kind);
        name.digest = kiln_column_hash(&q);
        name.fresh = kiln_column_bool(&q);
        KILN_GO(kiln_query_check(&q, err));
        KILN_GO(kiln_buffer_put(names, &name, sizeof name, err));
    }
done:
    kiln_query_close(&q);
    return st;
}

kiln_status kiln_check_layers(kiln_check *c, kiln_error *err)
{
    kiln_buffer names = {0};
    kiln_scratch s = {0};
    int64_t rows = -1;
    kiln_status st = KILN_OK;
    KILN_GO(kiln_query_number(c->m, "SELECT coalesce(max(rows_read), -1) FROM scene", &rows, err));
    KILN_GO(list_layers(c, &names, err));
    for (size_t i = 0; i < names.size / sizeof(layer_name); i++) {
        layer_name name;
        memcpy(&name, names.data + i * sizeof name, sizeof name);
        uint64_t source_rows = rows < 0 || !name.fresh ? UINT64_MAX : (uint64_t)rows;
        KILN_GO(kiln_check_take(c, check_layer(c, name.kind, name.digest, source_rows, &s, err), err));
    }
done:
    free(s.data);
    kiln_buffer_release(&names);
    return st;
}
