/* clean_rows -- every test walks one component of all rows at a time, without branches on the
 * values, so that the compiler makes vectors of it; a block of 65,536 rows of SH degree 3 takes a
 * few milliseconds. */
#include "stages/formats/clean_rows.h"

#include "base/harmonics.h"
#include "base/memory.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const drop_names[] = {"",
#define X(id, name, text) name,
                                         KILN_DROP_MAP(X)
#undef X
};
static const char *const drop_texts[] = {"kept",
#define X(id, name, text) text,
                                         KILN_DROP_MAP(X)
#undef X
};
static const char *const clamp_names[] = {
#define X(id, name, text) name,
    KILN_CLAMP_MAP(X)
#undef X
};
static const char *const clamp_texts[] = {
#define X(id, name, text) text,
    KILN_CLAMP_MAP(X)
#undef X
};

const char *kiln_drop_text(kiln_drop d) { return drop_texts[d]; }
const char *kiln_clamp_text(kiln_clamp c) { return clamp_texts[c]; }

/* ---- buffers --------------------------------------------------------------------------------- */

kiln_status kiln_rows_alloc(kiln_rows *rows, const kiln_source_info *info, kiln_error *err)
{
    uint32_t m = kiln_sh_coefficients(info->sh_degree);
    const uint64_t n = KILN_BLOCK_ROWS;
    memset(rows, 0, sizeof *rows);
    KILN_TRY(KILN_ALLOC(&rows->means, 3 * n, "means of a block", err));
    if (info->kind == KILN_SCENE_SPLATS) {
        KILN_TRY(KILN_ALLOC(&rows->log_scales, 3 * n, "scales of a block", err));
        KILN_TRY(KILN_ALLOC(&rows->quats, 4 * n, "rotations of a block", err));
        KILN_TRY(KILN_ALLOC(&rows->opacity_logits, n, "opacities of a block", err));
        KILN_TRY(KILN_ALLOC(&rows->sh0, 3 * n, "colours of a block", err));
        KILN_TRY(KILN_ALLOC(&rows->shN, 3 * m * n, "spherical harmonics of a block", err));
    } else {
        KILN_TRY(KILN_ALLOC(&rows->rgb, 3 * n, "colours of a block", err));
    }
    for (uint32_t i = 0; i < info->n_extras; i++)
        KILN_TRY(kiln_alloc(&rows->extras[i], n, kiln_type_size(info->extras[i].type),
                            "extra columns of a block", err));
    return KILN_OK;
}

void kiln_rows_release(kiln_rows *rows)
{
    free(rows->means);
    free(rows->log_scales);
    free(rows->quats);
    free(rows->opacity_logits);
    free(rows->sh0);
    free(rows->shN);
    free(rows->rgb);
    for (uint32_t i = 0; i < KILN_EXTRAS_MAX; i++) free(rows->extras[i]);
    memset(rows, 0, sizeof *rows);
}

kiln_status kiln_clean_alloc(kiln_clean *c, kiln_error *err)
{
    memset(c, 0, sizeof *c);
    KILN_TRY(KILN_ALLOC(&c->means, 3 * (uint64_t)KILN_BLOCK_ROWS, "means of a block", err));
    KILN_TRY(KILN_ALLOC(&c->source_row, KILN_BLOCK_ROWS, "rows of a block", err));
    return KILN_ALLOC(&c->reason, KILN_BLOCK_ROWS, "rows of a block", err);
}

uint64_t kiln_rows_ram(const kiln_source_info *info)
{
    const uint64_t m = kiln_sh_coefficients(info->sh_degree);
    uint64_t row =
        3 * sizeof(double) + (info->kind == KILN_SCENE_SPLATS ? 11 + 3 * m : 3) * sizeof(float);
    for (uint32_t i = 0; i < info->n_extras; i++) row += kiln_type_size(info->extras[i].type);
    row += 3 * sizeof(float) + sizeof(uint32_t) + 1; /* clean */
    return row * KILN_BLOCK_ROWS;
}

void kiln_clean_release(kiln_clean *c)
{
    free(c->means);
    free(c->source_row);
    free(c->reason);
    memset(c, 0, sizeof *c);
}

/* ---- moving the scene ------------------------------------------------------------------------ */

static float *find_normal(const kiln_rows *rows, const kiln_source_info *info, const char *name)
{
    for (uint32_t e = 0; e < info->n_extras; e++)
        if (strcmp(info->extras[e].name, name) == 0 && info->extras[e].type == KILN_TYPE_F32)
            return rows->extras[e];
    return NULL;
}

void kiln_rows_move(kiln_rows *rows, const kiln_source_info *info, const kiln_similarity *move,
                    unsigned threads)
{
    const kiln_similarity_planes planes = {.n = rows->n,
                                           .means = rows->means,
                                           .log_scales = rows->log_scales,
                                           .quats = rows->quats,
                                           .shN = rows->shN,
                                           .sh_degree = info->sh_degree};
    kiln_similarity_rows(move, threads, &planes);
    float *x = find_normal(rows, info, "nx"), *y = find_normal(rows, info, "ny"),
          *z = find_normal(rows, info, "nz");
    if (x && y && z) kiln_similarity_normals(move, rows->n, x, y, z);
}

/* ---- reasons --------------------------------------------------------------------------------- */

static void mark_dropped_row(unsigned char *reason, uint64_t i, bool bad, kiln_drop why)
{
    reason[i] = (unsigned char)(bad && !reason[i] ? why : reason[i]);
}

static bool is_bad(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    return (u & 0x7f800000u) == 0x7f800000u;
}

static bool any_bad(const float *v, uint64_t n)
{
    int bad = 0;
#pragma omp simd reduction(| : bad)
    for (uint64_t i = 0; i < n; i++) bad |= is_bad(v[i]);
    return bad != 0;
}

/* Nearly every component of nearly every block is sound, and seeing that takes a third of the time
 * of marking rows. */
static void mark_not_finite(unsigned char *reason, const float *v, uint64_t n, uint32_t components,
                            kiln_drop why)
{
    for (uint32_t c = 0; c < components; c++) {
        if (!any_bad(v + c * n, n)) continue;
        for (uint64_t i = 0; i < n; i++) mark_dropped_row(reason, i, is_bad(v[c * n + i]), why);
    }
}

static void mark_positions(unsigned char *reason, const double *means, uint64_t n,
                           const double origin[3])
{
    for (uint32_t c = 0; c < 3; c++)
        for (uint64_t i = 0; i < n; i++)
            mark_dropped_row(reason, i, !(fabs(means[c * n + i] - origin[c]) <= (double)FLT_MAX),
                             KILN_DROP_POSITION);
}

static void mark_splats(unsigned char *reason, const kiln_rows *r, uint32_t sh_components)
{
    const uint64_t n = r->n;
    for (uint32_t c = 0; c < 3; c++)
        for (uint64_t i = 0; i < n; i++)
            mark_dropped_row(reason, i, !(r->log_scales[c * n + i] <= KILN_LOG_SCALE_MAX),
                             KILN_DROP_SCALE);
    mark_not_finite(reason, r->quats, n, 4, KILN_DROP_ROTATION);
    for (uint64_t i = 0; i < n; i++) {
        const float *q = r->quats + i;
        mark_dropped_row(reason, i, q[0] == 0 && q[n] == 0 && q[2 * n] == 0 && q[3 * n] == 0,
                         KILN_DROP_ZERO_ROTATION);
        mark_dropped_row(reason, i, r->opacity_logits[i] != r->opacity_logits[i],
                         KILN_DROP_OPACITY);
    }
    mark_not_finite(reason, r->sh0, n, 3, KILN_DROP_COLOUR);
    mark_not_finite(reason, r->shN, n, sh_components, KILN_DROP_COLOUR);
}

/* ---- clamps ---------------------------------------------------------------------------------- */

/* Of the rows that stay. */
static void clamp(kiln_rows *r, kiln_row_counts *counts)
{
    const uint64_t n = r->n;
    uint64_t high = 0, low = 0, flat = 0;
    for (uint64_t i = 0; i < n; i++) {
        float *o = &r->opacity_logits[i];
        bool small = false;
        high += *o == HUGE_VALF;
        low += *o == -HUGE_VALF;
        *o = *o == HUGE_VALF ? KILN_LOGIT_HIGH : *o == -HUGE_VALF ? KILN_LOGIT_LOW : *o;
        for (uint64_t c = 0; c < 3; c++) {
            float *s = &r->log_scales[c * n + i];
            small |= *s < KILN_LOG_SCALE_MIN;
            *s = *s < KILN_LOG_SCALE_MIN ? KILN_LOG_SCALE_MIN : *s;
        }
        flat += small;
    }
    counts->clamped[KILN_CLAMP_OPACITY_HIGH] += high;
    counts->clamped[KILN_CLAMP_OPACITY_LOW] += low;
    counts->clamped[KILN_CLAMP_SCALE_LOW] += flat;
}

static void count_extras(const kiln_rows *r, const kiln_source_info *info, kiln_row_counts *counts)
{
    for (uint32_t e = 0; e < info->n_extras; e++) {
        if (info->extras[e].keep != KILN_KEEP_ALWAYS) continue;
        uint64_t bad = 0;
        if (info->extras[e].type == KILN_TYPE_F32)
            for (uint64_t i = 0; i < r->n; i++) bad += is_bad(((const float *)r->extras[e])[i]);
        if (info->extras[e].type == KILN_TYPE_F64)
            for (uint64_t i = 0; i < r->n; i++) bad += !isfinite(((const double *)r->extras[e])[i]);
        counts->clamped[KILN_CLAMP_EXTRA] += bad;
    }
}

/* ---- moving together ------------------------------------------------------------------------- */

/* Component c moves from c * n to c * k; k <= n and keep rises, so nothing is written over before
 * it was read. */
static void compact_f32(float *v, uint32_t components, uint64_t n, const uint32_t *keep, uint64_t k)
{
    for (uint32_t c = 0; c < components && v && k < n; c++)
        for (uint64_t j = 0; j < k; j++) v[c * k + j] = v[c * n + keep[j]];
}

static void compact_raw(unsigned char *v, size_t size, const uint32_t *keep, uint64_t k)
{
    for (uint64_t j = 0; j < k; j++) memmove(v + j * size, v + keep[j] * size, size);
}

static void compact_clean_rows(kiln_rows *r, const kiln_source_info *info, uint32_t sh_components,
                               const uint32_t *keep, uint64_t k)
{
    compact_f32(r->log_scales, 3, r->n, keep, k);
    compact_f32(r->quats, 4, r->n, keep, k);
    compact_f32(r->opacity_logits, 1, r->n, keep, k);
    compact_f32(r->sh0, 3, r->n, keep, k);
    compact_f32(r->shN, sh_components, r->n, keep, k);
    compact_f32(r->rgb, 3, r->n, keep, k);
    for (uint32_t e = 0; e < info->n_extras && k < r->n; e++)
        compact_raw(r->extras[e], kiln_type_size(info->extras[e].type), keep, k);
}

void kiln_rows_clean(kiln_rows *rows, const kiln_source_info *info, const double origin[3],
                     uint64_t first_row, kiln_clean *c, kiln_row_counts *counts)
{
    const uint64_t n = rows->n;
    uint32_t sh_components = kiln_sh_components(info->sh_degree);
    bool splats = info->kind == KILN_SCENE_SPLATS;
    memset(c->reason, KILN_DROP_NONE, n);
    mark_positions(c->reason, rows->means, n, origin);
    if (splats)
        mark_splats(c->reason, rows, sh_components);
    else
        mark_not_finite(c->reason, rows->rgb, n, 3, KILN_DROP_COLOUR);
    c->n = 0;
    for (uint64_t i = 0; i < n; i++) {
        c->source_row[c->n] = (uint32_t)i;
        c->n += c->reason[i] == KILN_DROP_NONE;
        if (c->reason[i] != KILN_DROP_NONE) counts->dropped[c->reason[i]]++;
    }
    for (uint32_t a = 0; a < 3; a++)
        for (uint64_t j = 0; j < c->n; j++)
            c->means[a * c->n + j] = (float)(rows->means[a * n + c->source_row[j]] - origin[a]);
    compact_clean_rows(rows, info, sh_components, c->source_row, c->n);
    for (uint64_t j = 0; j < c->n; j++) c->source_row[j] += (uint32_t)first_row;
    rows->n = c->n;
    if (splats) clamp(rows, counts);
    count_extras(rows, info, counts);
    counts->read += n;
    counts->kept += c->n;
}

/* ---- counts ---------------------------------------------------------------------------------- */

void kiln_row_counts_add(kiln_row_counts *sum, const kiln_row_counts *c)
{
    sum->read += c->read;
    sum->kept += c->kept;
    for (int i = 0; i < KILN_N_DROPS; i++) sum->dropped[i] += c->dropped[i];
    for (int i = 0; i < KILN_N_CLAMPS; i++) sum->clamped[i] += c->clamped[i];
}

static json_t *row_counts_json(const char *const *names, const uint64_t *counts, int first, int n)
{
    json_t *o = json_object();
    for (int i = first; i < n && o; i++)
        if (counts[i] &&
            json_object_set_new(o, names[i], json_integer((json_int_t)counts[i])) != 0) {
            json_decref(o);
            return NULL;
        }
    return o;
}

json_t *kiln_dropped_json(const kiln_row_counts *c)
{
    return row_counts_json(drop_names, c->dropped, 1, KILN_N_DROPS);
}
json_t *kiln_clamped_json(const kiln_row_counts *c)
{
    return row_counts_json(clamp_names, c->clamped, 0, KILN_N_CLAMPS);
}

kiln_status kiln_row_counts_parse(json_t *dropped, json_t *clamped, kiln_row_counts *out,
                                  kiln_error *err)
{
    if (!json_is_object(dropped) || !json_is_object(clamped))
        return kiln_fail(err, KILN_E_IO, "its counters lack what was dropped");
    memset(out, 0, sizeof *out);
    for (int i = 1; i < KILN_N_DROPS; i++)
        out->dropped[i] = (uint64_t)json_integer_value(json_object_get(dropped, drop_names[i]));
    for (int i = 0; i < KILN_N_CLAMPS; i++)
        out->clamped[i] = (uint64_t)json_integer_value(json_object_get(clamped, clamp_names[i]));
    return KILN_OK;
}
