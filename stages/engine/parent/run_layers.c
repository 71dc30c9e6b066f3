/* Building layers, finding the layer to read, and reading means. */
#include "stages/engine/parent/run_layers.h"

#include "base/memory.h"
#include "stages/engine/parent/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

kiln_status kiln_layer_new(kiln_layer_kind kind, uint32_t sh_degree, uint32_t n_chunks,
                           kiln_layer **out, kiln_error *err)
{
    kiln_layer *l;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&l, 1, "a layer", err));
    kiln_status st = KILN_ALLOC(&l->chunks, n_chunks, "the chunks of a layer", err);
    if (st != KILN_OK) {
        free(l);
        return st;
    }
    (void)snprintf(l->kind, sizeof l->kind, "%s", kiln_layer_kinds[kind].name);
    l->sh_degree = sh_degree;
    l->n_chunks = n_chunks;
    *out = l;
    return KILN_OK;
}

kiln_status kiln_run_put_layer(kiln_run *r, kiln_layer *l, kiln_error *err)
{
    const kiln_layer_kind kind = kiln_layer_kind_find(l->kind);
    if (!r->stage || kind == KILN_LAYER_KINDS ||
        strcmp(kiln_layer_kinds[kind].stage, r->stage->name) != 0)
        return kiln_fail(err, KILN_E_BUG, "%s makes no layer '%s' (schema/layers.def)",
                         r->program->name, l->kind);
    KILN_TRY(kiln_layer_put(r->manifest, l, err));
    return kiln_stage_output_put(r->manifest, r->stage->name, l->kind, l->digest, err);
}

/* Says whether the kind's stage has run and made a layer. The stage may be stale. */
static kiln_status was_made(kiln_run *r, const kiln_layer_info *kind, bool *made, kiln_error *err)
{
    kiln_stage_row row;
    kiln_hash digest;
    KILN_TRY(kiln_stage_get(r->manifest, kind->stage, &row, err));
    KILN_TRY(kiln_stage_output_get(r->manifest, kind->stage, kind->name, &digest, err));
    *made = row.state != KILN_STAGE_MISSING && !kiln_hash_is_zero(digest);
    return KILN_OK;
}

kiln_status kiln_run_need_layer(kiln_run *r, kiln_layer_form least, kiln_layer_kind *kind,
                                kiln_error *err)
{
    *kind = KILN_LAYER_KINDS;
    for (int k = KILN_LAYER_KINDS; k-- > 0;) {
        bool made = false;
        if (kiln_layer_kinds[k].form < least ||
            kiln_stage_find(kiln_layer_kinds[k].stage) >= r->stage)
            continue;
        *kind = (kiln_layer_kind)k;
        KILN_TRY(was_made(r, &kiln_layer_kinds[k], &made, err));
        if (made) break;
    }
    if (*kind == KILN_LAYER_KINDS)
        return kiln_fail(err, KILN_E_BUG, "no stage before %s makes a layer for it",
                         r->program->name);
    return kiln_run_need(r, kiln_layer_kinds[*kind].stage, err);
}

/* Adds a plane. Takes over the segments of *p, even if it fails. */
static kiln_status add_plane(kiln_chunk *c, kiln_plane *p, kiln_error *err)
{
    kiln_plane *planes = realloc(c->planes, (c->n_planes + (size_t)1) * sizeof *planes);
    if (!planes) {
        free(p->data.segments);
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for plane '%s' of '%s'", p->name,
                         c->name);
    }
    c->planes = planes;
    c->planes[c->n_planes++] = *p;
    return KILN_OK;
}

kiln_status kiln_chunk_add_copy(kiln_chunk *c, const kiln_plane *plane, kiln_error *err)
{
    kiln_plane p = *plane;
    KILN_TRY(KILN_ALLOC(&p.data.segments, p.data.n_segments, "the segments of a plane", err));
    if (p.data.n_segments)
        memcpy(p.data.segments, plane->data.segments, p.data.n_segments * sizeof *p.data.segments);
    return add_plane(c, &p, err);
}

kiln_status kiln_chunk_add_output(kiln_chunk *c, const kiln_unit_result *r, const char *output,
                                  const char *name, kiln_type type, uint32_t components,
                                  kiln_error *err)
{
    kiln_plane p = {.type = type, .components = components};
    if ((size_t)snprintf(p.name, sizeof p.name, "%s", name) >= sizeof p.name)
        return kiln_fail(err, KILN_E_BUG, "the name of plane '%s' is too long", name);
    KILN_TRY(kiln_unit_result_array(r, output, &p.data, err));
    const uint64_t want = c->count * components * kiln_type_size(type);
    if (p.data.raw_bytes == want) return add_plane(c, &p, err);
    const kiln_status st =
        kiln_fail(err, KILN_E_IO, "plane '%s' of '%s' has %llu bytes for %llu rows instead of %llu",
                  name, c->name, (unsigned long long)p.data.raw_bytes, (unsigned long long)c->count,
                  (unsigned long long)want);
    free(p.data.segments);
    return st;
}

const kiln_chunk *kiln_layer_model(const kiln_layer *l)
{
    for (uint32_t i = 0; i < l->n_chunks; i++)
        if (l->chunks[i].count) return &l->chunks[i];
    return NULL;
}

static void set_bounds(kiln_chunk *c, const kiln_bounds *b)
{
    memcpy(c->box_min, b->box_min, sizeof c->box_min);
    memcpy(c->box_max, b->box_max, sizeof c->box_max);
    memcpy(c->reach_min, b->reach_min, sizeof c->reach_min);
    memcpy(c->reach_max, b->reach_max, sizeof c->reach_max);
    c->max_log_scale = b->max_log_scale;
    c->max_opacity_logit = b->max_opacity_logit;
}

/* kiln_bounds consists of floats alone. kiln_layer_get judges infinities; a NaN would be stored as
 * NULL. */
static bool has_nan(const kiln_bounds *b)
{
    float v[sizeof *b / sizeof(float)];
    memcpy(v, b, sizeof v);
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        if (isnan(v[i])) return true;
    return false;
}

kiln_status kiln_chunk_read_bounds_of(kiln_run *r, const kiln_unit *u, const char *output,
                                      kiln_chunk *c, kiln_error *err)
{
    kiln_bounds b;
    KILN_TRY(kiln_unit_struct(r, u, output, &b, sizeof b, err));
    if (has_nan(&b))
        return kiln_unit_refuse(r, u, kiln_fail(err, KILN_E_IO, "its bounds are not numbers"), err);
    set_bounds(c, &b);
    return KILN_OK;
}

kiln_status kiln_chunk_read_bounds(kiln_run *r, const kiln_unit *u, kiln_chunk *c, kiln_error *err)
{
    return kiln_chunk_read_bounds_of(r, u, "bounds", c, err);
}

kiln_status kiln_layer_means(kiln_manifest *m, const kiln_layer *l, float **out, kiln_error *err)
{
    kiln_status st = KILN_OK;
    float *means = NULL, *block = NULL;
    uint64_t largest = 0, first = 0;
    *out = NULL;
    for (uint32_t i = 0; i < l->n_chunks; i++)
        if (l->chunks[i].count > largest) largest = l->chunks[i].count;
    KILN_GO(kiln_alloc((void **)&means, l->count, 3 * sizeof *means, "the means of a layer", err));
    KILN_GO(kiln_alloc((void **)&block, largest, 3 * sizeof *block, "the means of a block", err));
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        uint64_t n = l->chunks[i].count;
        if (n == 0) continue;
        if (n > l->count - first)
            KILN_GO(kiln_fail(err, KILN_E_IO,
                              "layer '%s' has more rows in its chunks than it claims", l->kind));
        KILN_GO(kiln_plane_read(m, &l->chunks[i], "means", block, n * 3 * sizeof *block, err));
        for (int c = 0; c < 3; c++)
            memcpy(means + c * l->count + first, block + c * n, n * sizeof *block);
        first += n;
    }
    *out = means;
    means = NULL;
done:
    free(block);
    free(means);
    return st;
}

void kiln_key_plane(kiln_hasher *h, const kiln_chunk *c, const char *plane)
{
    const kiln_plane *p = kiln_chunk_plane(c, plane);
    kiln_key_text(h, "chunk", c->name);
    kiln_key_u64(h, "rows", c->count);
    kiln_key_text(h, "plane", plane);
    if (!p) return;
    for (uint32_t i = 0; i < p->data.n_segments; i++)
        kiln_key_hash(h, "segment", p->data.segments[i]);
}

kiln_layer_size kiln_layer_size_of(const kiln_layer *l)
{
    /* bytes of a plane's entry, and to which its array is rounded up */
    enum { CACHED = 4096 + 256 };
    kiln_layer_size size = {0};
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        const kiln_chunk *c = &l->chunks[i];
        uint64_t planes = 0;
        for (uint32_t k = 0; k < c->n_planes; k++) {
            const uint64_t bytes = c->planes[k].data.raw_bytes;
            planes += bytes;
            if (bytes > size.plane) size.plane = bytes;
        }
        size.all += planes + (uint64_t)c->n_planes * CACHED;
        if (planes > size.planes) size.planes = planes;
        if (c->count > size.rows) size.rows = c->count;
    }
    return size;
}
