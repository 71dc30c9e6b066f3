/* check_layers -- what the planes hold against what is said about them: digests, bounds, source
 * rows; and the layers that belong to another one against that: levels make a tree over the chunks
 * of `baked`, visibility is beside them. Sizes, types and finite numbers are asked whenever a layer
 * or plane is read (row_check_layer.c). extra/NAME may hold anything. */
#include "schema/check.h"

#include "base/memory.h"
#include "schema/layers.h"
#include "schema/levels.h"
#include "schema/row_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where: "layer 'baked', chunk '/0/3'". */
#define PROBLEM(c, at, fmt, ...)                                                                  \
    kiln_check_problem((c), "layer '%s', chunk '%s': " fmt, (at)->layer->kind, (at)->chunk->name, \
                       __VA_ARGS__)

static void check_box(kiln_check *c, const kiln_plane_place *at, const float *means, uint64_t n)
{
    for (int axis = 0; axis < 3; axis++) {
        float low = n ? INFINITY : 0, high = n ? -INFINITY : 0;
        for (uint64_t i = 0; i < n; i++) {
            low = fminf(low, means[axis * n + i]);
            high = fmaxf(high, means[axis * n + i]);
        }
        if (low == at->chunk->box_min[axis] && high == at->chunk->box_max[axis]) continue;
        PROBLEM(c, at, "its box spans %g..%g on axis %d, but its means span %g..%g",
                (double)at->chunk->box_min[axis], (double)at->chunk->box_max[axis], axis,
                (double)low, (double)high);
    }
}

static void check_largest(kiln_check *c, const kiln_plane_place *at, const char *plane,
                          const float *v, uint64_t n, float said)
{
    float largest = -INFINITY;
    for (uint64_t i = 0; i < n; i++) largest = fmaxf(largest, v[i]);
    if (n && largest != said)
        PROBLEM(c, at, "it claims that the largest of '%s' is %g, but it is %g", plane,
                (double)said, (double)largest);
}

static void check_source_rows(kiln_check *c, const kiln_plane_place *at, const uint32_t *rows,
                              uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        if (rows[i] < at->source_rows) continue;
        PROBLEM(c, at,
                "row %" PRIu64 " comes from source row %" PRIu32 ", but the source has %" PRIu64, i,
                rows[i], at->source_rows);
        return;
    }
}

static void compare_ancestry(kiln_check *c, const kiln_plane_place *at, const uint32_t *first,
                             const uint32_t *last, const uint32_t *count, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        if (first[i] <= last[i] && (uint64_t)count[i] <= (uint64_t)last[i] - first[i] + 1) continue;
        PROBLEM(c, at,
                "row %" PRIu64 " stands for %" PRIu32 " source rows from %" PRIu32 " to %" PRIu32,
                i, count[i], first[i], last[i]);
        return;
    }
}

/* Beside the plane source_last. What cannot be read of the other two is said where they are
 * checked. */
static kiln_status check_ancestry(kiln_check *c, const kiln_plane_place *at, const uint32_t *last,
                                  uint64_t n, kiln_error *err)
{
    const size_t bytes = n * sizeof *last;
    kiln_error unsaid = {0};
    uint32_t *first = NULL, *count = NULL;
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC(&first, n, "source rows", err));
    KILN_GO(KILN_ALLOC(&count, n, "source rows", err));
    if (kiln_plane_read(c->m, at->chunk, "source_row", first, bytes, &unsaid) == KILN_OK &&
        kiln_plane_read(c->m, at->chunk, "source_count", count, bytes, &unsaid) == KILN_OK)
        compare_ancestry(c, at, first, last, count, n);
done:
    free(first);
    free(count);
    return st;
}

static kiln_status check_plane_content(kiln_check *c, const kiln_plane_place *at, const void *data,
                                       kiln_error *err)
{
    const char *name = at->plane->name;
    const uint64_t n = at->chunk->count;
    if (strcmp(name, "means") == 0) check_box(c, at, data, n);
    if (strcmp(name, "log_scales") == 0)
        check_largest(c, at, name, data, 3 * n, at->chunk->max_log_scale);
    if (strcmp(name, "opacity_logits") == 0)
        check_largest(c, at, name, data, n, at->chunk->max_opacity_logit);
    if (strcmp(name, "source_row") == 0 || strcmp(name, "source_last") == 0)
        check_source_rows(c, at, data, n);
    return strcmp(name, "source_last") == 0 ? check_ancestry(c, at, data, n, err) : KILN_OK;
}

kiln_status kiln_check_values(kiln_check *c, const kiln_plane_place *at, const void *data,
                              kiln_error *err)
{
    KILN_TRY(kiln_row_check_values(at->chunk, at->plane, data, err));
    return check_plane_content(c, at, data, err);
}

/* Other columns may hold anything. A damaged plane was reported when the layer was read. */
static bool has_values(const kiln_plane_place *at)
{
    return strncmp(at->plane->name, "extra/", 6) != 0 &&
           kiln_row_check_plane(at->layer, at->chunk, at->plane, NULL) == KILN_OK;
}

static kiln_status check_plane(kiln_check *c, const kiln_plane_place *at, kiln_scratch *s,
                               kiln_error *err)
{
    const kiln_plane *p = at->plane;
    if (c->quick || (c->sound && at->number < c->sound->n_planes && c->sound->planes[at->number]) ||
        !has_values(at))
        return KILN_OK;
    KILN_TRY(kiln_scratch_want(s, p->data.raw_bytes, err));
    KILN_TRY(kiln_plane_read(c->m, at->chunk, p->name, s->data, p->data.raw_bytes, err));
    return check_plane_content(c, at, s->data, err);
}

/* ---- layers that belong to another one ------------------------------------------------------- */
/* The baked layer of this digest; *out NULL: it is not there, or damaged, which is said where it is
 * checked itself. */
static kiln_status get_baked(kiln_check *c, kiln_hash digest, kiln_layer **out, kiln_error *err)
{
    kiln_error unsaid = {0};
    kiln_problem_fn *const listen = c->m->listen;
    c->m->listen = NULL;
    const kiln_status st =
        kiln_layer_get_digest(c->m, kiln_layer_kinds[KILN_LAYER_baked].name, digest, out, &unsaid);
    c->m->listen = listen;
    if (st == KILN_OK || st == KILN_E_STALE || st == KILN_E_INPUT || st == KILN_E_IO)
        return KILN_OK;
    return kiln_fail(err, st, "%s", unsaid.msg);
}

static kiln_status current_baked(kiln_check *c, kiln_hash *digest, kiln_error *err)
{
    const kiln_layer_info *const kind = &kiln_layer_kinds[KILN_LAYER_baked];
    return kiln_stage_output_get(c->m, kind->stage, kind->name, digest, err);
}

/* Levels of a fresh stage are of the chunks of now. The tree is asked for wherever its chunks are
 * there: older levels may outlive the bake that they were of. */
static kiln_status check_tree(kiln_check *c, const kiln_layer *l, bool is_fresh, kiln_error *err)
{
    kiln_layer *baked;
    kiln_hash now;
    kiln_level_tree t;
    KILN_TRY(current_baked(c, &now, err));
    if (is_fresh && !kiln_hash_equal(now, l->origin))
        return kiln_fail(
            err, KILN_E_INPUT,
            "layer '%s' does not belong to the current layer '%s', although its stage is fresh",
            l->kind, kiln_layer_kinds[KILN_LAYER_baked].name);
    KILN_TRY(get_baked(c, l->origin, &baked, err));
    if (!baked) return KILN_OK;
    const kiln_status st = kiln_level_tree_make(baked, l, &t, err);
    if (st == KILN_OK) kiln_level_tree_release(&t);
    kiln_layer_free(baked);
    return st;
}

static kiln_status compare_chunks(const kiln_layer *l, const kiln_layer *baked, kiln_error *err)
{
    if (l->n_chunks != baked->n_chunks)
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s' has %" PRIu32 " chunks instead of the %" PRIu32 " of '%s'",
                         l->kind, l->n_chunks, baked->n_chunks, baked->kind);
    for (uint32_t i = 0; i < l->n_chunks; i++)
        if (strcmp(l->chunks[i].name, baked->chunks[i].name) != 0 ||
            l->chunks[i].count != baked->chunks[i].count)
            return kiln_fail(err, KILN_E_INPUT,
                             "layer '%s': chunk '%s' has %" PRIu64
                             " rows, but its counterpart '%s' has %" PRIu64,
                             l->kind, l->chunks[i].name, l->chunks[i].count, baked->chunks[i].name,
                             baked->chunks[i].count);
    return KILN_OK;
}

/* It does not say which chunks it is beside: those of now, if its stage is fresh. */
static kiln_status check_beside(kiln_check *c, const kiln_layer *l, bool is_fresh, kiln_error *err)
{
    kiln_layer *baked;
    kiln_hash now;
    if (!is_fresh) return KILN_OK;
    KILN_TRY(current_baked(c, &now, err));
    KILN_TRY(get_baked(c, now, &baked, err));
    if (!baked) return KILN_OK;
    const kiln_status st = compare_chunks(l, baked, err);
    kiln_layer_free(baked);
    return st;
}

static kiln_status check_belonging(kiln_check *c, const kiln_layer *l, bool is_fresh,
                                   kiln_error *err)
{
    switch (kiln_layer_kind_find(l->kind)) {
    case KILN_LAYER_levels:
        return check_tree(c, l, is_fresh, err);
    case KILN_LAYER_visibility:
        return check_beside(c, l, is_fresh, err);
    default:
        return KILN_OK;
    }
}

/* ---- all layers ------------------------------------------------------------------------------ */
/* Kinds and digests first: the query must be closed before layers are read. */
typedef struct {
    char kind[16];
    kiln_hash digest;
    bool fresh; /* output of a fresh stage: only these must fit the scene that is imported now */
} layer_name;

static kiln_status check_layer(kiln_check *c, const layer_name *name, uint64_t source_rows,
                               kiln_scratch *s, kiln_error *err)
{
    const char *const kind = name->kind;
    const kiln_hash digest = name->digest;
    kiln_layer *l = NULL;
    kiln_status st = KILN_OK;
    char said[33], is[33];
    KILN_GO(kiln_layer_get_digest(c->m, kind, digest, &l, err));
    kiln_hash computed = kiln_layer_digest(l);
    if (!kiln_hash_equal(computed, digest))
        kiln_check_problem(c, "layer '%s' claims the digest %s, but its content has %s", kind,
                           kiln_hash_hex(digest, said), kiln_hash_hex(computed, is));
    KILN_GO(kiln_check_take(c, check_belonging(c, l, name->fresh, err), err));
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        kiln_plane_place at = {.layer = l, .chunk = &l->chunks[i], .source_rows = source_rows};
        for (uint32_t p = 0; p < at.chunk->n_planes; p++) {
            at.plane = &at.chunk->planes[p];
            at.number = c->n_planes++;
            KILN_GO(kiln_check_take(c, check_plane(c, &at, s, err), err));
        }
    }
done:
    kiln_layer_free(l);
    return st;
}

static kiln_status list_layers(kiln_check *c, kiln_buffer *names, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(
        c->m, &q,
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

/* source_rows of each layer's places: only what a fresh stage made must fit the scene. */
static kiln_status list_all(kiln_check *c, kiln_buffer *names, int64_t *scene_rows, kiln_error *err)
{
    KILN_TRY(
        kiln_query_number(c->m, "SELECT coalesce(max(rows_read), -1) FROM scene", scene_rows, err));
    return list_layers(c, names, err);
}

static uint64_t source_rows_of(const layer_name *name, int64_t scene_rows)
{
    return scene_rows < 0 || !name->fresh ? UINT64_MAX : (uint64_t)scene_rows;
}

kiln_status kiln_check_layers(kiln_check *c, kiln_error *err)
{
    kiln_buffer names = {0};
    kiln_scratch s = {0};
    int64_t rows = -1;
    kiln_status st = KILN_OK;
    KILN_GO(list_all(c, &names, &rows, err));
    for (size_t i = 0; i < names.size / sizeof(layer_name); i++) {
        layer_name name;
        memcpy(&name, names.data + i * sizeof name, sizeof name);
        KILN_GO(
            kiln_check_take(c, check_layer(c, &name, source_rows_of(&name, rows), &s, err), err));
    }
done:
    free(s.data);
    kiln_buffer_release(&names);
    return st;
}

/* ---- for the sweep --------------------------------------------------------------------------- */
static uint64_t count_planes(const kiln_layer *l)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < l->n_chunks; i++) n += l->chunks[i].n_planes;
    return n;
}

static kiln_status add_places(kiln_plane_list *list, const kiln_layer *l, uint64_t source_rows,
                              kiln_error *err)
{
    const uint64_t n = count_planes(l);
    kiln_plane_place *more = realloc(list->places, (list->n_places + n + 1) * sizeof *more);
    if (!more)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for %" PRIu64 " planes",
                         list->n_places + n);
    list->places = more;
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        const kiln_chunk *chunk = &l->chunks[i];
        for (uint32_t p = 0; p < chunk->n_planes; p++) {
            const kiln_plane_place at = {.layer = l,
                                         .chunk = chunk,
                                         .plane = &chunk->planes[p],
                                         .source_rows = source_rows,
                                         .number = list->n_planes++};
            if (has_values(&at)) list->places[list->n_places++] = at;
        }
    }
    return KILN_OK;
}

kiln_status kiln_check_list_planes(kiln_check *c, kiln_plane_list *out, kiln_error *err)
{
    kiln_buffer names = {0};
    int64_t rows = -1;
    kiln_status st = KILN_OK;
    *out = (kiln_plane_list){0};
    KILN_GO(list_all(c, &names, &rows, err));
    const size_t n = names.size / sizeof(layer_name);
    KILN_GO(KILN_ALLOC(&out->layers, n, "layers", err));
    for (size_t i = 0; i < n; i++) {
        layer_name name;
        memcpy(&name, names.data + i * sizeof name, sizeof name);
        KILN_GO(kiln_layer_get_digest(c->m, name.kind, name.digest, &out->layers[i], err));
        out->n_layers++;
        KILN_GO(add_places(out, out->layers[i], source_rows_of(&name, rows), err));
    }
done:
    kiln_buffer_release(&names);
    return st;
}

void kiln_plane_list_release(kiln_plane_list *l)
{
    for (uint64_t i = 0; i < l->n_layers; i++) kiln_layer_free(l->layers[i]);
    free(l->layers);
    free(l->places);
}
