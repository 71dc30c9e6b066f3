/* levels_fixture -- a baked layer of given chunks, and levels of all of its nodes with rows that
 * nobody looks at. */
#ifndef KILN_TESTS_LEVELS_FIXTURE_H
#define KILN_TESTS_LEVELS_FIXTURE_H

#include "tests/unit/manifest_fixture.h"
#include "schema/layers.h"
#include "schema/levels.h"

typedef struct {
    const char *name, *parent;
    uint64_t count;
} chunk_place;

/* Planes of a Gaussian, of zeros and ones: scales, opacities and colours do not matter here. */
typedef struct {
    const char *name;
    kiln_type type;
    uint32_t components;
} plane_shape;

static const plane_shape baked_planes[] = {
    {"means", KILN_TYPE_F32, 3}, {"log_scales", KILN_TYPE_F32, 3},
    {"quats", KILN_TYPE_F32, 4}, {"opacity_logits", KILN_TYPE_F32, 1},
    {"sh0", KILN_TYPE_F32, 3},   {"source_row", KILN_TYPE_U32, 1},
};
static const plane_shape ancestry_planes[] = {
    {"source_last", KILN_TYPE_U32, 1},
    {"source_count", KILN_TYPE_U32, 1},
    {"weights", KILN_TYPE_F32, 1},
    {"visibility", KILN_TYPE_F32, 1},
};
enum {
    N_BAKED_PLANES = sizeof baked_planes / sizeof *baked_planes,
    N_ANCESTRY_PLANES = sizeof ancestry_planes / sizeof *ancestry_planes,
};

static inline void add_test_plane(kiln_manifest *m, kiln_chunk *c, const plane_shape *shape)
{
    const size_t n = (size_t)c->count * shape->components;
    uint32_t *words = calloc(n + 1, sizeof *words);
    kiln_plane *p = &c->planes[c->n_planes++];
    const float one = 1;
    const bool ones = strcmp(shape->name, "quats") == 0 || strcmp(shape->name, "visibility") == 0;
    for (size_t i = 0; i < n && ones; i++) memcpy(&words[i], &one, sizeof one);
    for (size_t i = 0; i < n && strcmp(shape->name, "source_count") == 0; i++) words[i] = 1;
    *p = (kiln_plane){.type = shape->type,
                      .components = shape->components,
                      .data = {.raw_bytes = 4 * n, .n_segments = 1}};
    snprintf(p->name, sizeof p->name, "%s", shape->name);
    p->data.segments = calloc(1, sizeof *p->data.segments);
    if (m && n) *p->data.segments = put_bytes(m, words, 4 * n, 4);
    free(words);
}

static inline kiln_layer *new_test_layer(const char *kind, uint32_t n)
{
    kiln_layer *l = calloc(1, sizeof *l);
    snprintf(l->kind, sizeof l->kind, "%s", kind);
    l->chunks = calloc(n + 1, sizeof *l->chunks);
    return l;
}

/* m NULL: without blobs. Chunk i's box is [i, i + 1] on each axis and its reach half more, on each
 * side: what its planes hold is other.
 */
static inline kiln_chunk *add_test_chunk(kiln_layer *l, const char *name, const char *parent,
                                         uint64_t count)
{
    kiln_chunk *c = &l->chunks[l->n_chunks++];
    snprintf(c->name, sizeof c->name, "%s", name);
    snprintf(c->parent, sizeof c->parent, "%s", parent);
    c->count = count;
    l->count += count;
    c->planes = calloc(N_BAKED_PLANES + N_ANCESTRY_PLANES, sizeof *c->planes);
    return c;
}

static inline kiln_layer *baked_of(kiln_manifest *m, const chunk_place *places, uint32_t n)
{
    kiln_layer *l = new_test_layer("baked", n);
    for (uint32_t i = 0; i < n; i++) {
        kiln_chunk *c = add_test_chunk(l, places[i].name, places[i].parent, places[i].count);
        for (int a = 0; a < 3 && !m; a++) {
            c->box_min[a] = (float)i;
            c->box_max[a] = (float)i + 1;
            c->reach_min[a] = (float)i - 0.5f;
            c->reach_max[a] = (float)i + 1.5f;
        }
        for (int p = 0; p < N_BAKED_PLANES && m; p++) add_test_plane(m, c, &baked_planes[p]);
    }
    l->digest = kiln_layer_digest(l);
    return l;
}

static inline uint64_t half_of(uint64_t n) { return n > 1 ? n / 2 : 1; }

static inline void add_level(kiln_manifest *m, kiln_layer *l, const kiln_level_tree *t,
                             const kiln_level_node *n, uint32_t level, uint64_t count)
{
    kiln_error err = {0};
    char name[96];
    OK(kiln_level_name(name, n->name, level, &err));
    kiln_chunk *c =
        add_test_chunk(l, name, n->parent == KILN_NO_NODE ? "" : t->nodes[n->parent].name, count);
    c->level = level;
    c->n_errors = 3;
    c->error_step = -5;
    for (int i = 0; i < 3; i++) c->errors[i] = (float)level / 3 / (float)(1 << i);
    for (int p = 0; p < N_BAKED_PLANES && m; p++) add_test_plane(m, c, &baked_planes[p]);
    for (int p = 0; p < N_ANCESTRY_PLANES && m; p++) add_test_plane(m, c, &ancestry_planes[p]);
}

/* Two levels of each leaf, and one of each node above. */
static inline kiln_layer *levels_of(kiln_manifest *m, const kiln_layer *baked)
{
    kiln_error err = {0};
    kiln_level_tree t;
    OK(kiln_level_tree_plan(baked, &t, &err));
    kiln_layer *l = new_test_layer("levels", 2 * t.n_nodes);
    /* coarsest level of each node, and its rows */
    uint32_t *last = calloc(t.n_nodes + 1, sizeof *last);
    uint64_t *rows = calloc(t.n_nodes + 1, sizeof *rows);
    for (uint32_t i = 0; i < t.n_nodes; i++) {
        const kiln_level_node *n = &t.nodes[i];
        rows[i] = n->chunk ? n->chunk->count : 0;
        for (uint32_t k = 0; k < n->n_children; k++) {
            const uint32_t child = t.children[n->first_child + k];
            rows[i] += rows[child];
            if (last[child] > last[i]) last[i] = last[child];
        }
        for (int k = 0; k < (n->chunk ? 2 : 1); k++) {
            rows[i] = half_of(rows[i]);
            add_level(m, l, &t, n, ++last[i], rows[i]);
        }
    }
    l->origin = baked->digest;
    strcpy(l->origin_profile, "inria");
    l->origin_near = 0.2;
    free(last);
    free(rows);
    kiln_level_tree_release(&t);
    return l;
}

/* Seven leaves: three of cell /0, one that is alone in its cells /2/4 and /2, two runs of children
 * of the root, one without rows.
 */
static const chunk_place small_places[] = {
    {"/0/0-3", "/0", 5},   {"/0/4", "/0", 8}, {"/0/5-7", "/0", 3}, {"/1", "/", 0},
    {"/2/4/1", "/2/4", 4}, {"/3-5", "/", 7},  {"/6/0", "/6", 1},   {"/6/1-7", "/6", 2},
};
enum { N_SMALL = sizeof small_places / sizeof *small_places };

static inline void finish_stage(kiln_manifest *m, const char *name)
{
    kiln_error err = {0};
    kiln_stage_row row = {.version = 1, .state = KILN_STAGE_FRESH};
    snprintf(row.name, sizeof row.name, "%s", name);
    OK(kiln_stage_put(m, &row, &err));
}

static inline kiln_layer *visibility_of(kiln_manifest *m, const kiln_layer *baked)
{
    kiln_layer *l = new_test_layer("visibility", baked->n_chunks);
    for (uint32_t i = 0; i < baked->n_chunks; i++) {
        kiln_chunk *c = add_test_chunk(l, baked->chunks[i].name, baked->chunks[i].parent,
                                       baked->chunks[i].count);
        add_test_plane(m, c, &(plane_shape){"visibility", KILN_TYPE_F32, 1});
    }
    return l;
}

static inline void put_current(kiln_manifest *m, const char *stage, kiln_layer *l)
{
    kiln_error err = {0};
    OK(kiln_layer_put(m, l, &err));
    OK(kiln_stage_output_put(m, stage, l->kind, l->digest, &err));
}

/* Levels of the current baked layer, current too. */
static inline void put_levels(kiln_manifest *m)
{
    kiln_error err = {0};
    kiln_layer *baked;
    OK(kiln_layer_get_drawn(m, &baked, &err));
    OK(kiln_manifest_begin(m, &err));
    kiln_layer *levels = levels_of(m, baked);
    put_current(m, "lod", levels);
    OK(kiln_manifest_commit(m, &err));
    kiln_layer_free(levels);
    kiln_layer_free(baked);
}

/* A scene with all layers of stages chunk and lod, which say that they are fresh. */
static inline void put_small_levels(kiln_manifest *m)
{
    kiln_error err = {0};
    kiln_scene *scene = calloc(1, sizeof *scene);
    scene->kind = KILN_SCENE_SPLATS;
    scene->rows_read = 40;
    strcpy(scene->transforms, "[]");
    strcpy(scene->notes, "{}");
    OK(kiln_manifest_begin(m, &err));
    OK(kiln_scene_put(m, scene, &err));
    kiln_layer *baked = baked_of(m, small_places, N_SMALL);
    put_current(m, "chunk", baked);
    kiln_layer *visibility = visibility_of(m, baked);
    put_current(m, "lod", visibility);
    kiln_layer *levels = levels_of(m, baked);
    put_current(m, "lod", levels);
    finish_stage(m, "chunk");
    finish_stage(m, "lod");
    OK(kiln_manifest_commit(m, &err));
    free(scene);
    kiln_layer_free(visibility);
    kiln_layer_free(levels);
    kiln_layer_free(baked);
}

#endif
