/* row_check_layer -- layers: what makes it safe to take a chunk's planes for arrays of known size.
 *
 * Kernels and writers get pointers and a number of rows. That the arrays are as long as these say
 * follows from here: types and components are those of planes.def, bytes are rows x components x
 * size, every chunk has the same planes. */
#include "base/checked.h"
#include "base/file.h"
#include "base/harmonics.h"
#include "base/memory.h"
#include "schema/layers.h"
#include "schema/manifest_internal.h"
#include "schema/row_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXTRA_COMPONENTS_MAX = 16 }; /* of a column that we do not know; import makes 1 */

typedef struct {
    const char *name;
    kiln_type type;
    uint32_t components; /* 0: by the degree of the spherical harmonics */
} plane_row;

static const plane_row known[] = {
#define PLANE(name, type, components, meaning) {#name, KILN_TYPE_##type, components},
#include "schema/planes.def"
#undef PLANE
};

static const plane_row *known_plane(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) return &known[i];
    return NULL;
}

/* ---- planes ---------------------------------------------------------------------------------- */
/* What import takes as the name of a column. */
static bool is_column_name(const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f) return false;
    return length > 0 && kiln_utf8_valid((const unsigned char *)name, length);
}

static kiln_status check_shape(const kiln_layer *l, const kiln_chunk *c, const kiln_plane *p,
                               kiln_error *err)
{
    const plane_row *row = known_plane(p->name);
    if (!row && (strncmp(p->name, "extra/", 6) != 0 || !is_column_name(p->name + 6)))
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s', chunk '%s': plane '%s' is neither known nor extra/NAME",
                         l->kind, c->name, p->name);
    if (!row && p->components >= 1 && p->components <= EXTRA_COMPONENTS_MAX) return KILN_OK;
    const uint32_t components = !row              ? 1
                                : row->components ? row->components
                                                  : kiln_sh_components(l->sh_degree);
    const kiln_type type = row ? row->type : p->type;
    if (p->type == type && p->components == components) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "layer '%s', chunk '%s': plane '%s' is %s x %" PRIu32
                     ", but it must be %s x %" PRIu32,
                     l->kind, c->name, p->name, kiln_type_name(p->type), p->components,
                     kiln_type_name(type), components);
}

kiln_status kiln_row_check_plane(const kiln_layer *l, const kiln_chunk *c, const kiln_plane *p,
                                 kiln_error *err)
{
    uint64_t elements, bytes;
    KILN_TRY(check_shape(l, c, p, err));
    if (!kiln_mul(c->count, p->components, &elements) ||
        !kiln_mul(elements, kiln_type_size(p->type), &bytes) || bytes != p->data.raw_bytes)
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s', chunk '%s': plane '%s' has %" PRIu64 " bytes for %" PRIu64
                         " rows",
                         l->kind, c->name, p->name, p->data.raw_bytes, c->count);
    if (kiln_array_is_whole(&p->data)) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "layer '%s', chunk '%s': plane '%s' of %" PRIu64 " bytes has %" PRIu32
                     " segments",
                     l->kind, c->name, p->name, p->data.raw_bytes, p->data.n_segments);
}

/* ---- chunks ---------------------------------------------------------------------------------- */
static bool is_chunk_name(const char *name)
{
    for (; *name; name++)
        if (*name <= 0x20 || *name >= 0x7f) return false;
    return true;
}

static kiln_status check_box(const kiln_layer *l, const kiln_chunk *c, const char *what,
                             const float lo[3], const float hi[3], kiln_error *err)
{
    for (int a = 0; a < 3; a++)
        if (!(isfinite(lo[a]) && isfinite(hi[a]) && lo[a] <= hi[a]))
            return kiln_fail(err, KILN_E_INPUT,
                             "layer '%s', chunk '%s': its %s is %g..%g on axis %d", l->kind,
                             c->name, what, (double)lo[a], (double)hi[a], a);
    return KILN_OK;
}

/* The name of a chunk of levels ends with its level: "/0/3@2". */
static bool is_named_by_level(const kiln_chunk *c)
{
    char suffix[16];
    const char *const at = strchr(c->name, '@');
    (void)snprintf(suffix, sizeof suffix, "@%" PRIu32, c->level);
    return at && at > c->name && strcmp(at, suffix) == 0;
}

static kiln_status check_level(const kiln_layer *l, const kiln_chunk *c, kiln_error *err)
{
    const bool is_levels = kiln_layer_is_levels(l);
    if (!is_levels && c->level != 0)
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s', chunk '%s' is of level %" PRIu32
                         ", but the layer has only level 0",
                         l->kind, c->name, c->level);
    if (!is_levels) return KILN_OK;
    if (c->level < 1 || c->level > KILN_LEVELS_MAX || !is_named_by_level(c))
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s', chunk '%s' is of level %" PRIu32
                         "; levels are 1 to %d, and its name must end with its level",
                         l->kind, c->name, c->level, KILN_LEVELS_MAX);
    if (c->count > 0) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "layer '%s', chunk '%s' has no rows", l->kind, c->name);
}

kiln_status kiln_row_check_errors(const kiln_layer *l, const kiln_chunk *c, kiln_error *err)
{
    if (c->n_errors == 0) return KILN_OK;
    if (!kiln_layer_is_levels(l))
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s', chunk '%s' has errors, but only levels have errors", l->kind,
                         c->name);
    if (c->n_errors > KILN_ERROR_STEPS || c->error_step < -KILN_ERROR_STEP_MOST ||
        c->error_step > KILN_ERROR_STEP_MOST)
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s', chunk '%s' has %" PRIu32 " errors from step %" PRId32 " on",
                         l->kind, c->name, c->n_errors, c->error_step);
    for (uint32_t i = 0; i < c->n_errors; i++) {
        if (!(c->errors[i] >= 0 && isfinite(c->errors[i])))
            return kiln_fail(err, KILN_E_INPUT,
                             "layer '%s', chunk '%s': its error number %" PRIu32 " is %g", l->kind,
                             c->name, i, (double)c->errors[i]);
        if (i > 0 && c->errors[i] > 4 * c->errors[i - 1])
            return kiln_fail(err, KILN_E_INPUT,
                             "layer '%s', chunk '%s': its error in pixels grows with the "
                             "footprint, from %g to %g",
                             l->kind, c->name, (double)c->errors[i - 1], (double)c->errors[i]);
    }
    return KILN_OK;
}

kiln_status kiln_row_check_chunk(const kiln_layer *l, const kiln_chunk *c, kiln_error *err)
{
    if (c->name[0] == '\0' || !is_chunk_name(c->name) || !is_chunk_name(c->parent))
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s' has a chunk whose name is invalid: '%s' below '%s'", l->kind,
                         c->name, c->parent);
    if (c->count > KILN_CHUNK_COUNT_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s', chunk '%s' has %" PRIu64 " rows; at most %d are allowed",
                         l->kind, c->name, c->count, KILN_CHUNK_COUNT_MAX);
    KILN_TRY(check_level(l, c, err));
    if (c->hilbert_lo > c->hilbert_hi)
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s', chunk '%s': its Hilbert codes are %" PRIu64 "..%" PRIu64,
                         l->kind, c->name, c->hilbert_lo, c->hilbert_hi);
    KILN_TRY(check_box(l, c, "box", c->box_min, c->box_max, err));
    KILN_TRY(check_box(l, c, "reach", c->reach_min, c->reach_max, err));
    if (isfinite(c->max_log_scale) && isfinite(c->max_opacity_logit)) return KILN_OK;
    return kiln_fail(
        err, KILN_E_INPUT,
        "layer '%s', chunk '%s': its largest log scale %g or opacity logit %g is not finite",
        l->kind, c->name, (double)c->max_log_scale, (double)c->max_opacity_logit);
}

/* ---- layers ---------------------------------------------------------------------------------- */
static bool has_plane(const kiln_chunk *c, const char *name)
{
    return kiln_chunk_plane(c, name) != NULL;
}

static const char *first_missing(const kiln_chunk *c, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!has_plane(c, names[i])) return names[i];
    return NULL;
}

/* Planes that a layer of this kind has beside or in place of those of points and Gaussians. */
static const char *lacks_of_kind(kiln_layer_kind kind, const kiln_chunk *c)
{
    static const char *const of_spacing[] = {"spacing2"}, *const of_visibility[] = {"visibility"};
    static const char *const of_levels[] = {"means", "source_row", "source_last", "source_count",
                                            "weights"};
    if (kind == KILN_LAYER_spacing) return first_missing(c, of_spacing, 1);
    if (kind == KILN_LAYER_visibility) return first_missing(c, of_visibility, 1);
    if (kind == KILN_LAYER_levels)
        return first_missing(c, of_levels, sizeof of_levels / sizeof *of_levels);
    return has_plane(c, "means") ? NULL : "means";
}

/* A layer holds points, Gaussians (then all of their planes), or a measurement. */
static kiln_status check_kind(const kiln_layer *l, const kiln_chunk *c, kiln_error *err)
{
    static const char *const gaussian[] = {"log_scales", "opacity_logits", "quats", "sh0"};
    const kiln_layer_kind kind = kiln_layer_kind_find(l->kind);
    const char *lacks = lacks_of_kind(kind, c);
    const kiln_layer_form form = kiln_layer_kinds[kind].form;
    bool gaussians = form >= KILN_FORM_BLOCKS || form == KILN_FORM_LEVELS;
    for (size_t i = 0; i < sizeof gaussian / sizeof *gaussian; i++)
        gaussians |= has_plane(c, gaussian[i]);
    for (size_t i = 0; i < sizeof gaussian / sizeof *gaussian && gaussians && !lacks; i++)
        if (!has_plane(c, gaussian[i])) lacks = gaussian[i];
    if (gaussians && !lacks && l->sh_degree > 0 && !has_plane(c, "shN")) lacks = "shN";
    if (!lacks && has_plane(c, "shN") && l->sh_degree == 0)
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s', chunk '%s' has a plane 'shN', but the layer's degree is 0",
                         l->kind, c->name);
    if (!lacks) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "layer '%s', chunk '%s' has no plane '%s'", l->kind,
                     c->name, lacks);
}

/* Chunks with rows all have the planes of the first such, so that a reader of one knows all. */
static kiln_status check_alike(const kiln_layer *l, const kiln_chunk *model, const kiln_chunk *c,
                               kiln_error *err)
{
    bool alike = c->n_planes == model->n_planes;
    for (uint32_t p = 0; p < c->n_planes && alike; p++)
        alike = strcmp(c->planes[p].name, model->planes[p].name) == 0 &&
                c->planes[p].type == model->planes[p].type &&
                c->planes[p].components == model->planes[p].components;
    if (alike) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "layer '%s': chunk '%s' has other planes than chunk '%s'",
                     l->kind, c->name, model->name);
}

static int chunk_names_by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static kiln_status check_chunk_names(const kiln_layer *l, kiln_error *err)
{
    const char **names;
    kiln_status st = KILN_OK;
    KILN_TRY(KILN_ALLOC(&names, l->n_chunks, "names of chunks", err));
    for (uint32_t i = 0; i < l->n_chunks; i++) names[i] = l->chunks[i].name;
    if (l->n_chunks) qsort(names, l->n_chunks, sizeof *names, chunk_names_by_text);
    for (uint32_t i = 1; i < l->n_chunks && st == KILN_OK; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            st = kiln_fail(err, KILN_E_INPUT, "layer '%s' has two chunks '%s'", l->kind, names[i]);
    free(names);
    return st;
}

/* What levels stand for; other layers stand for themselves. */
static kiln_status check_origin(const kiln_layer *l, kiln_error *err)
{
    const char *why;
    if (!kiln_layer_is_levels(l) && kiln_hash_is_zero(l->origin)) return KILN_OK;
    if (!kiln_layer_is_levels(l))
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s' stands for another layer, but only levels may", l->kind);
    if (kiln_hash_is_zero(l->origin))
        return kiln_fail(err, KILN_E_INPUT, "layer '%s' does not say which layer its levels are of",
                         l->kind);
    if (!kiln_name_is_safe(l->origin_profile, &why))
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s' was measured with a profile that has no name", l->kind);
    if (l->origin_near > 0 && isfinite(l->origin_near)) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "layer '%s' was measured with a near plane at %g", l->kind,
                     l->origin_near);
}

kiln_status kiln_row_check_layer(const kiln_layer *l, kiln_error *err)
{
    uint64_t rows = 0;
    const kiln_chunk *model = NULL;
    if (kiln_layer_kind_find(l->kind) == KILN_LAYER_KINDS)
        return kiln_fail(err, KILN_E_INPUT, "'%s' is not a kind of layers", l->kind);
    if (l->sh_degree > KILN_LAYER_DEGREE_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s' has spherical harmonics of degree %" PRIu32
                         "; the highest known degree is %d",
                         l->kind, l->sh_degree, KILN_LAYER_DEGREE_MAX);
    KILN_TRY(check_origin(l, err));
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        const kiln_chunk *c = &l->chunks[i];
        rows += c->count;
        if (c->count == 0) continue;
        if (!model) KILN_TRY(check_kind(l, c, err));
        if (!model) model = c;
        KILN_TRY(check_alike(l, model, c, err));
    }
    if (rows != l->count)
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s' claims %" PRIu64 " rows, but its chunks have %" PRIu64,
                         l->kind, l->count, rows);
    if (rows > KILN_LAYER_COUNT_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "layer '%s' has %" PRIu64 " rows; at most 2^32 - 2 can be numbered",
                         l->kind, rows);
    return check_chunk_names(l, err);
}

/* ---- values ---------------------------------------------------------------------------------- */
/* Without branches on the values, so that the compiler makes vectors of it. */
static bool any_not_finite(const uint32_t *v, uint64_t n)
{
    uint32_t bad = 0;
#pragma omp simd reduction(| : bad)
    for (uint64_t i = 0; i < n; i++) bad |= (v[i] & 0x7f800000u) == 0x7f800000u;
    return bad != 0;
}

static uint64_t first_not_finite(const uint32_t *v, uint64_t n)
{
    uint64_t i = 0;
    while (i < n && (v[i] & 0x7f800000u) != 0x7f800000u) i++;
    return i;
}

static bool any_above(const float *v, uint64_t n, float limit)
{
    int above = 0;
#pragma omp simd reduction(| : above)
    for (uint64_t i = 0; i < n; i++) above |= v[i] > limit;
    return above != 0;
}

static bool any_zero_quaternion(const uint32_t *q, uint64_t n)
{
    int zero = 0;
#pragma omp simd reduction(| : zero)
    for (uint64_t i = 0; i < n; i++)
        zero |= ((q[i] | q[n + i] | q[2 * n + i] | q[3 * n + i]) & 0x7fffffffu) == 0;
    return zero != 0;
}

static bool any_row_above(const uint32_t *v, uint64_t n)
{
    int above = 0;
#pragma omp simd reduction(| : above)
    for (uint64_t i = 0; i < n; i++) above |= v[i] > KILN_LAYER_COUNT_MAX;
    return above != 0;
}

static bool any_zero(const uint32_t *v, uint64_t n)
{
    int zero = 0;
#pragma omp simd reduction(| : zero)
    for (uint64_t i = 0; i < n; i++) zero |= v[i] == 0;
    return zero != 0;
}

static bool any_below_zero(const float *v, uint64_t n)
{
    int below = 0;
#pragma omp simd reduction(| : below)
    for (uint64_t i = 0; i < n; i++) below |= v[i] < 0;
    return below != 0;
}

static bool any_not_positive(const float *v, uint64_t n)
{
    int below = 0;
#pragma omp simd reduction(| : below)
    for (uint64_t i = 0; i < n; i++) below |= v[i] <= 0;
    return below != 0;
}

kiln_status kiln_row_check_values(const kiln_chunk *c, const kiln_plane *p, const void *data,
                                  kiln_error *err)
{
    const uint64_t n = c->count, all = n * p->components;
    const char *violation = NULL;
    if (!known_plane(p->name)) return KILN_OK;
    if (p->type == KILN_TYPE_F32 && any_not_finite(data, all)) {
        const uint64_t at = first_not_finite(data, all);
        return kiln_fail(err, KILN_E_INPUT, "chunk '%s', plane '%s' holds %g at element %" PRIu64,
                         c->name, p->name, (double)((const float *)data)[at], at);
    }
    if (strcmp(p->name, "log_scales") == 0 && any_above(data, all, KILN_LOG_SCALE_MAX))
        violation = "a log scale above 88";
    if (strcmp(p->name, "quats") == 0 && any_zero_quaternion(data, n))
        violation = "a rotation of zero";
    if (strcmp(p->name, "source_row") == 0 && any_row_above(data, n))
        violation = "a source row above 2^32 - 2";
    if (strcmp(p->name, "source_last") == 0 && any_row_above(data, n))
        violation = "a source row above 2^32 - 2";
    if (strcmp(p->name, "source_count") == 0 && any_zero(data, n))
        violation = "a Gaussian that stands for no row";
    if (strcmp(p->name, "weights") == 0 && any_below_zero(data, n)) violation = "a weight below 0";
    if (strcmp(p->name, "visibility") == 0 && (any_not_positive(data, n) || any_above(data, n, 1)))
        violation = "a visibility that is not above 0 and at most 1";
    if (strcmp(p->name, "prominence") == 0 && any_not_positive(data, n))
        violation = "a prominence that is not above 0";
    if (!violation) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "chunk '%s', plane '%s' holds %s", c->name, p->name,
                     violation);
}
