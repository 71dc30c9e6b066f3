/* lod_meta -- see lod_meta.h. */
#include "stages/formats/lod/lod_meta.h"

#include "stages/formats/lod/lod.h"
#include "stages/formats/lod/lod_set.h"
#include "stages/formats/sog/sog.h"
#include "stages/formats/tiles/tileset.h"

#include "base/option.h"

#include <math.h>

/* The key and a colon. */
#define KEY(name) "\"" KILN_LOD_KEY_##name "\":"

typedef struct {
    const kiln_export *e;
    const void *plan;
    const kiln_lod_head *h;
    const kiln_lod_leaf *leaves;
    const kiln_lod_part *parts;
    bool errors;
    kiln_buffer *out;
} text;

static bool has_errors(const kiln_level_tree *t)
{
    for (uint32_t i = 0; i < t->n_nodes; i++)
        for (uint32_t k = 0; k < t->nodes[i].n_levels; k++)
            if (t->nodes[i].levels[k]->n_errors == 0) return false;
    return true;
}

static kiln_status put_vector(const text *t, const char *key, const float *v, kiln_error *err)
{
    double at[3];
    for (int c = 0; c < 3; c++) at[c] = (double)v[c] + t->e->origin[c];
    return kiln_buffer_printf(t->out, err, "\"%s\":[%.9g,%.9g,%.9g]", key, at[0], at[1], at[2]);
}

static kiln_status put_bound(const text *t, uint32_t first, uint32_t end, kiln_error *err)
{
    float lo[3] = {INFINITY, INFINITY, INFINITY}, hi[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (uint32_t i = first; i < end; i++)
        for (int c = 0; c < 3; c++) {
            lo[c] = fminf(lo[c], t->leaves[i].lo[c]);
            hi[c] = fmaxf(hi[c], t->leaves[i].hi[c]);
        }
    KILN_TRY(kiln_buffer_printf(t->out, err, "{\"bound\":{"));
    KILN_TRY(put_vector(t, "min", lo, err));
    KILN_TRY(kiln_buffer_printf(t->out, err, ","));
    KILN_TRY(put_vector(t, "max", hi, err));
    return kiln_buffer_printf(t->out, err, "}");
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* The shadow of what counts of the leaf, as it is moved. */
static double mean_area(const text *t, const kiln_lod_leaf *leaf)
{
    float lo[3], hi[3];
    const double scale = t->e->edits.moves ? t->e->edits.move.scale : 1;
    const kiln_level_node *n = &t->e->tree->nodes[leaf->node];
    if (n->sites == NULL) return kiln_tile_shadow(leaf->lo, leaf->hi);
    kiln_tile_core_box(n, lo, hi);
    return kiln_tile_shadow(lo, hi) * scale * scale;
}

/* Of the node above the leaf that has the level; 0: none has, or it is level 0. */
static double energy_of(const kiln_level_tree *t, uint32_t leaf, uint32_t level)
{
    for (uint32_t i = leaf; i != KILN_NO_NODE; i = t->nodes[i].parent) {
        const kiln_level_node *n = &t->nodes[i];
        if (level < n->first_level || level - n->first_level >= n->n_levels) continue;
        return (double)n->levels[level - n->first_level]->errors[0] * (double)t->nodes[leaf].rows /
               (double)n->rows;
    }
    return 0;
}

static kiln_status put_errors(const text *t, const kiln_lod_leaf *leaf, kiln_error *err)
{
    const double scale = t->e->edits.moves ? t->e->edits.move.scale : 1, area = mean_area(t, leaf);
    double before = 0;
    KILN_TRY(kiln_buffer_printf(t->out, err, ",\"errors\":["));
    for (uint32_t k = 0; k < t->h->n_levels; k++) {
        const double here =
            area > 0 ? energy_of(t->e->tree, leaf->node, k) * scale * scale / area : 0;
        before = here > before ? here : before;
        KILN_TRY(kiln_buffer_printf(t->out, err, k ? ",%.7g" : "%.7g", before));
    }
    return kiln_buffer_printf(t->out, err, "]");
}

/* ---- the tree -------------------------------------------------------------------------------- */

static kiln_status put_leaf(const text *t, uint32_t leaf, kiln_error *err)
{
    const char *comma = "";
    KILN_TRY(kiln_buffer_printf(t->out, err, "," KEY(LODS) "{"));
    for (uint32_t k = 0; k < t->h->n_levels; k++) {
        const kiln_lod_part *p = &t->parts[(uint64_t)leaf * t->h->n_levels + k];
        if (p->n == 0) continue;
        KILN_TRY(kiln_buffer_printf(t->out, err,
                                    "%s\"%u\":{" KEY(FILE) "%u," KEY(OFFSET) "%u," KEY(COUNT) "%u}",
                                    comma, k, p->file, p->offset, p->n));
        comma = ",";
    }
    KILN_TRY(kiln_buffer_printf(t->out, err, "}"));
    if (t->errors) KILN_TRY(put_errors(t, &t->leaves[leaf], err));
    return kiln_buffer_printf(t->out, err, "}");
}

/* As deep as the number of leaves has bits. */
static kiln_status put_node(const text *t, uint32_t first, uint32_t end,
                            kiln_error *err) // NOLINT(misc-no-recursion)
{
    const uint32_t middle = first + (end - first + 1) / 2;
    KILN_TRY(put_bound(t, first, end, err));
    if (end - first == 1) return put_leaf(t, first, err);
    KILN_TRY(kiln_buffer_printf(t->out, err, "," KEY(CHILDREN) "["));
    KILN_TRY(put_node(t, first, middle, err));
    KILN_TRY(kiln_buffer_printf(t->out, err, ","));
    KILN_TRY(put_node(t, middle, end, err));
    return kiln_buffer_printf(t->out, err, "]}");
}

static kiln_status put_counts(const text *t, kiln_error *err)
{
    uint64_t all = 0;
    KILN_TRY(kiln_buffer_printf(t->out, err, KEY(COUNTS) "["));
    for (uint32_t k = 0; k < t->h->n_levels; k++) {
        uint64_t n = 0;
        for (uint32_t i = 0; i < t->h->n_leaves; i++)
            n += t->parts[(uint64_t)i * t->h->n_levels + k].n;
        KILN_TRY(kiln_buffer_printf(t->out, err, k ? ",%llu" : "%llu", (unsigned long long)n));
        all += n;
    }
    return kiln_buffer_printf(t->out, err, "]," KEY(COUNT) "%llu", (unsigned long long)all);
}

static kiln_status put_names(const text *t, kiln_error *err)
{
    const kiln_lod_file *files = KILN_LOD_AT(t->plan, kiln_lod_file, t->h->files);
    char name[64];
    KILN_TRY(kiln_buffer_printf(t->out, err, "," KEY(FILES) "["));
    for (uint32_t i = 0; i < t->h->n_files; i++) {
        kiln_lod_set_name(&files[i], KILN_SOG_META, name);
        KILN_TRY(kiln_buffer_printf(t->out, err, i ? ",\"%s\"" : "\"%s\"", name));
    }
    return kiln_buffer_printf(t->out, err, "]");
}

kiln_status kiln_lod_meta_put(const kiln_export *e, const void *plan, kiln_buffer *out,
                              kiln_error *err)
{
    const kiln_lod_head *h = plan;
    const text t = {.e = e,
                    .plan = plan,
                    .h = h,
                    .leaves = KILN_LOD_AT(plan, kiln_lod_leaf, h->leaves),
                    .parts = KILN_LOD_AT(plan, kiln_lod_part, h->parts),
                    .errors = has_errors(e->tree),
                    .out = out};
    KILN_TRY(kiln_buffer_printf(out, err,
                                "{" KEY(VERSION) "%d,\"asset\":{\"generator\":\"SplatKiln %s\"},",
                                KILN_LOD_VERSION, kiln_version));
    KILN_TRY(put_counts(&t, err));
    KILN_TRY(kiln_buffer_printf(out, err, "," KEY(LEVELS) "%u,\"lodErrors\":%s", h->n_levels,
                                t.errors ? "true" : "false"));
    KILN_TRY(put_names(&t, err));
    KILN_TRY(kiln_buffer_printf(out, err, "," KEY(TREE)));
    KILN_TRY(put_node(&t, 0, h->n_leaves, err));
    return kiln_buffer_printf(out, err, "}\n");
}
