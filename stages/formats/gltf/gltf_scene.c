/* gltf_scene -- see the header. Matrices are multiplied as they stand, in double; only where a node
 * has splats must the product be a similarity, because a Gaussian that is sheared is another
 * one. */
#include "stages/formats/gltf/gltf_scene.h"

#include "base/checked.h"
#include "base/memory.h"
#include "stages/files/json_file.h"
#include "stages/formats/gltf/gltf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 256 };

/* x' = m x + t, m row-major. */
typedef struct {
    double m[9], t[3];
} affine;

typedef struct {
    uint32_t first, n; /* of scene.splats */
    bool known;
} mesh;

typedef struct {
    kiln_gltf_document *d;
    kiln_gltf_scene *out;
    const json_t *nodes, *meshes;
    mesh *found;           /* [meshes] */
    unsigned char *is_met; /* [nodes] */
} walker;

static const affine unmoved = {{1, 0, 0, 0, 1, 0, 0, 0, 1}, {0, 0, 0}};

static affine affine_product(const affine *a, const affine *b)
{
    affine p;
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++)
            p.m[3 * i + k] = a->m[3 * i] * b->m[k] + a->m[3 * i + 1] * b->m[3 + k] +
                             a->m[3 * i + 2] * b->m[6 + k];
        p.t[i] =
            a->m[3 * i] * b->t[0] + a->m[3 * i + 1] * b->t[1] + a->m[3 * i + 2] * b->t[2] + a->t[i];
    }
    return p;
}

static double transform_determinant(const double m[9])
{
    return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) +
           m[2] * (m[3] * m[7] - m[4] * m[6]);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* key's array of n numbers; absent: v stays as it is. */
static bool read_node_numbers(const json_t *node, const char *key, uint32_t n, double *v)
{
    const json_t *a = json_object_get(node, key);
    return !a || kiln_json_vector(a, n, v);
}

static kiln_status read_matrix(const walker *w, const json_t *node, size_t index, affine *out,
                               kiln_error *err)
{
    double c[16]; /* column-major */
    if (!read_node_numbers(node, "matrix", 16, c) || c[3] != 0 || c[7] != 0 || c[11] != 0 ||
        c[15] != 1)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s': the matrix of node %zu is not 16 numbers with 0 0 0 1 as its last row",
            w->d->name, index);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 3; k++) out->m[3 * i + k] = c[4 * k + i];
        out->t[i] = c[12 + i];
    }
    return KILN_OK;
}

static kiln_status read_transform(const walker *w, const json_t *node, size_t index, affine *out,
                                  kiln_error *err)
{
    double q[4] = {0, 0, 0, 1}, s[3] = {1, 1, 1}, t[3] = {0, 0, 0};
    kiln_similarity turn;
    *out = unmoved;
    if (json_object_get(node, "matrix")) return read_matrix(w, node, index, out, err);
    if (!read_node_numbers(node, "translation", 3, t) ||
        !read_node_numbers(node, "rotation", 4, q) || !read_node_numbers(node, "scale", 3, s) ||
        !kiln_similarity_of_quat(t, (const double[4]){q[3], q[0], q[1], q[2]}, 1, &turn))
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s': translation, rotation and scale of node %zu are not 3, 4 and 3 valid numbers",
            w->d->name, index);
    for (int i = 0; i < 9; i++) out->m[i] = turn.r[i] * s[i % 3];
    memcpy(out->t, t, sizeof t);
    return KILN_OK;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static kiln_status add_splats(walker *w, const json_t *primitive, kiln_error *err)
{
    kiln_gltf_scene *s = w->out;
    bool is_linear = false;
    /* a file of meshes may need what it likes */
    if (s->n_splats == 0) KILN_TRY(kiln_gltf_extensions_check(w->d, err));
    if (s->n_splats == KILN_GLTF_SPLATS_MAX)
        return kiln_fail(err, KILN_E_INPUT, "'%s' has more than %d splat primitives", w->d->name,
                         KILN_GLTF_SPLATS_MAX);
    if ((s->n_splats & (s->n_splats - 1)) == 0) { /* full at each power of two */
        const size_t capacity = s->n_splats ? 2 * (size_t)s->n_splats : 1;
        kiln_gltf_splats *more = realloc(s->splats, capacity * sizeof *more);
        if (!more)
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for the primitives of '%s'",
                             w->d->name);
        s->splats = more;
    }
    kiln_gltf_splats *p = &s->splats[s->n_splats];
    KILN_TRY(kiln_gltf_splats_find(w->d, primitive, p, &is_linear, err));
    if (s->n_splats == 0 || p->sh_degree < s->least_degree) s->least_degree = p->sh_degree;
    if (p->sh_degree > s->sh_degree) s->sh_degree = p->sh_degree;
    s->n_splats++;
    s->n_linear += is_linear;
    s->n_drafts += p->is_draft;
    s->n_spz += p->is_spz;
    s->antialiased |= (p->is_spz && p->spz.antialiased) ||
                      /* kiln-export's */
                      json_is_true(json_object_get(json_object_get(primitive, "extras"),
                                                   KILN_GLTF_KEY_ANTIALIASED));
    return KILN_OK;
}

static kiln_status find_mesh(walker *w, size_t index, mesh **out, kiln_error *err)
{
    const json_t *o = json_array_get(w->meshes, index),
                 *primitives = json_object_get(o, "primitives");
    if (!json_is_object(o))
        return kiln_fail(err, KILN_E_INPUT, "'%s': a node's mesh does not exist", w->d->name);
    mesh *m = &w->found[index];
    *out = m;
    if (m->known) return KILN_OK;
    *m = (mesh){.first = w->out->n_splats, .known = true};
    for (size_t i = 0; i < json_array_size(primitives); i++)
        if (kiln_gltf_is_splats(json_array_get(primitives, i)))
            KILN_TRY(add_splats(w, json_array_get(primitives, i), err));
    m->n = w->out->n_splats - m->first;
    return KILN_OK;
}

static kiln_status find_similarity(const walker *w, const affine *a, size_t node,
                                   kiln_similarity *out, kiln_error *err)
{
    const double tolerance = 1e-4; /* of a matrix of floats that was multiplied a few times */
    if (kiln_similarity_of_matrix(a->m, a->t, tolerance, out)) return KILN_OK;
    const double volume = transform_determinant(a->m);
    return kiln_fail(
        err, KILN_E_INPUT,
        "'%s': node %zu %s; apply its transform in the program that wrote the file", w->d->name,
        node,
        volume < 0          ? "mirrors its splats, which is not read"
        : !isfinite(volume) ? "moves its splats beyond all numbers"
        : volume == 0       ? "makes its splats flat"
                      : "shears its splats or scales them differently by axis, which is not read");
}

static kiln_status add_parts(walker *w, size_t index, const affine *a, size_t node, kiln_error *err)
{
    kiln_gltf_scene *s = w->out;
    mesh *m = NULL;
    KILN_TRY(find_mesh(w, index, &m, err));
    for (uint32_t i = 0; i < m->n; i++) {
        kiln_gltf_part *p = &s->parts[s->n_parts];
        if (s->n_parts == KILN_GLTF_PARTS_MAX)
            return kiln_fail(err, KILN_E_INPUT, "'%s' shows splat primitives more than %d times",
                             w->d->name, KILN_GLTF_PARTS_MAX);
        *p = (kiln_gltf_part){.first = s->n_rows, .splats = m->first + i};
        KILN_TRY(find_similarity(w, a, node, &p->at_scene, err));
        p->moves = !kiln_similarity_is_identity(&p->at_scene);
        if (!kiln_add(s->n_rows, s->splats[p->splats].n, &s->n_rows) || s->n_rows > UINT32_MAX - 1)
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s' has more than 4294967294 rows, which 32-bit ids allow",
                             w->d->name);
        s->n_parts++;
    }
    return KILN_OK;
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* An index from the file; SIZE_MAX, which no array has: it is none. */
static size_t index_of(const json_t *v)
{
    uint64_t i;
    return v && kiln_gltf_whole(v, 0, &i) ? (size_t)i : SIZE_MAX;
}

static kiln_status visit_node(walker *w, size_t node, const affine *parent, int depth,
                              kiln_error *err)
{
    const json_t *o = json_array_get(w->nodes, node), *children = json_object_get(o, "children"),
                 *shown = json_object_get(o, "mesh");
    affine local;
    if (!json_is_object(o))
        return kiln_fail(err, KILN_E_INPUT, "'%s': a node's index is out of range", w->d->name);
    if (w->is_met[node])
        return kiln_fail(err, KILN_E_INPUT, "'%s': node %zu has two parents, or is below itself",
                         w->d->name, node);
    if (depth == DEPTH_MAX)
        return kiln_fail(err, KILN_E_INPUT, "'%s': nodes are nested deeper than %d", w->d->name,
                         DEPTH_MAX);
    w->is_met[node] = 1;
    KILN_TRY(read_transform(w, o, node, &local, err));
    const affine here = affine_product(parent, &local);
    if (shown) KILN_TRY(add_parts(w, index_of(shown), &here, node, err));
    for (size_t i = 0; i < json_array_size(children); i++)
        KILN_TRY(visit_node(w, index_of(json_array_get(children, i)), &here, depth + 1, err));
    return KILN_OK;
}

/* A file without scenes shows its nodes, one without nodes its meshes. */
static kiln_status visit_everything(walker *w, kiln_error *err)
{
    kiln_status st = KILN_OK;
    const size_t n = json_array_size(w->nodes), n_meshes = json_array_size(w->meshes);
    unsigned char *is_child = NULL;
    KILN_GO(KILN_ALLOC(&is_child, n, "nodes", err));
    for (size_t i = 0; i < n; i++) {
        const json_t *children = json_object_get(json_array_get(w->nodes, i), "children");
        for (size_t k = 0; k < json_array_size(children); k++) {
            const size_t child = index_of(json_array_get(children, k));
            if (child < n) is_child[child] = 1;
        }
    }
    for (size_t i = 0; i < n; i++)
        if (!is_child[i]) KILN_GO(visit_node(w, i, &unmoved, 0, err));
    for (size_t i = 0; n == 0 && i < n_meshes; i++) KILN_GO(add_parts(w, i, &unmoved, i, err));
done:
    free(is_child);
    return st;
}

static kiln_status walk_scene(walker *w, kiln_error *err)
{
    const json_t *root = w->d->file.json, *scenes = json_object_get(root, "scenes"),
                 *index = json_object_get(root, "scene");
    const json_t *scene = index ? kiln_gltf_at(scenes, index) : json_array_get(scenes, 0);
    if (index && !scene)
        return kiln_fail(err, KILN_E_INPUT, "'%s': its default scene does not exist", w->d->name);
    if (!scene) return visit_everything(w, err);
    const json_t *roots = json_object_get(scene, "nodes");
    for (size_t i = 0; i < json_array_size(roots); i++)
        KILN_TRY(visit_node(w, index_of(json_array_get(roots, i)), &unmoved, 0, err));
    return KILN_OK;
}

/* Scratch: buffers first, then each SPZ unpacked. */
static void place_spz(const kiln_gltf_document *d, kiln_gltf_scene *s)
{
    s->spool_bytes = d->spool_bytes;
    for (uint32_t i = 0; i < s->n_splats; i++) {
        if (!s->splats[i].is_spz) continue;
        s->splats[i].spz_at = s->spool_bytes;
        s->spool_bytes += KILN_SPZ_HEADER + s->splats[i].spz.at[KILN_SPZ_PLANES];
    }
}

kiln_status kiln_gltf_scene_find(kiln_gltf_document *d, kiln_gltf_scene *out, kiln_error *err)
{
    kiln_status st = KILN_OK;
    const json_t *nodes = json_object_get(d->file.json, "nodes"),
                 *meshes = json_object_get(d->file.json, "meshes");
    walker w = {.d = d,
                .out = out,
                .nodes = json_is_array(nodes) ? nodes : NULL,
                .meshes = json_is_array(meshes) ? meshes : NULL};
    memset(out, 0, sizeof *out);
    KILN_GO(KILN_ALLOC(&w.found, json_array_size(w.meshes), "meshes", err));
    KILN_GO(KILN_ALLOC(&w.is_met, json_array_size(w.nodes), "nodes", err));
    KILN_GO(KILN_ALLOC_UNSET(&out->parts, KILN_GLTF_PARTS_MAX, "parts of a scene", err));
    KILN_GO(walk_scene(&w, err));
    out->has_none = out->n_parts == 0;
    if (out->has_none)
        st = kiln_fail(
            err, KILN_E_INPUT,
            "'%s' holds no Gaussian splats: its scene shows no primitive with " KILN_GLTF_EXTENSION,
            d->name);
    place_spz(d, out);
done:
    free(w.found);
    free(w.is_met);
    return st;
}

void kiln_gltf_scene_release(kiln_gltf_scene *s)
{
    free(s->splats);
    free(s->parts);
    memset(s, 0, sizeof *s);
}
