/* rules -- options and statistics into the thresholds of the kernel. Whatever ends in a stored bit goes through the pinned
 * arithmetic of kernels/math. */
#include "stages/prune/rules.h"

#include "base/memory.h"
#include "kernels/math/real.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_TEXT_MAX = 4000 }; /* longer ones would not survive being stored as a parameter */

float kiln_prune_extent(const kiln_prune_stats *s)
{
    float side = 0;
    for (int a = 0; a < 3; a++) side = s->hi[a] - s->lo[a] > side ? s->hi[a] - s->lo[a] : side;
    return side + 6.0f * kiln_expf(s->median_log_scale);
}

/* Exactly n numbers separated by commas. */
static bool parse_numbers(const char *text, unsigned n, double *out)
{
    const char *at = text;
    for (unsigned i = 0; i < n; i++) {
        char *end;
        if (strspn(at, "0123456789.+-") == 0) return false; /* strtod would take blanks, inf and nan */
        errno = 0;
        out[i] = strtod(at, &end);
        if (errno == ERANGE || end == at || !isfinite(out[i]) || *end != (i + 1 < n ? ',' : '\0')) return false;
        at = end + 1;
    }
    return true;
}

static kiln_status parse_crops(const kiln_prune_options *o, double box[6], double sphere[4], kiln_error *err)
{
    for (int i = 0; i < 6; i++) box[i] = NAN;
    for (int i = 0; i < 4; i++) sphere[i] = NAN;
    if (strcmp(o->crop_box, "off") != 0) {
        if (!parse_numbers(o->crop_box, 6, box) || !(box[0] <= box[3] && box[1] <= box[4] && box[2] <= box[5]))
            return kiln_fail(err, KILN_E_USAGE,
                             "--crop-box takes x0,y0,z0,x1,y1,z1 with the smaller corner first, or off, not '%s'", o->crop_box);
    }
    if (strcmp(o->crop_sphere, "off") != 0) {
        if (!parse_numbers(o->crop_sphere, 4, sphere) || !(sphere[3] >= 0))
            return kiln_fail(err, KILN_E_USAGE, "--crop-sphere takes x,y,z,radius, or off, not '%s'", o->crop_sphere);
    }
    return KILN_OK;
}

kiln_status kiln_prune_options_check(const kiln_prune_options *o, kiln_error *err)
{
    double box[6], sphere[4];
    uint32_t *rows = NULL;
    uint64_t n;
    KILN_TRY(parse_crops(o, box, sphere, err));
    KILN_TRY(kiln_prune_rows_parse("--drop-row", o->drop_row, &rows, &n, err));
    free(rows);
    return KILN_OK;
}

/* Logarithm of a length; NAN stays. */
static float log_of(double length) { return isnan(length) ? NAN : kiln_logf((float)length); }

kiln_status kiln_prune_rules_make(const kiln_prune_options *o, const kiln_prune_stats *s, const double origin[3],
                                  kiln_prune_rules *out, kiln_error *err)
{
    double box[6], sphere[4];
    KILN_TRY(parse_crops(o, box, sphere, err));
    const float typical = kiln_expf(s->median_log_scale);
    *out = (kiln_prune_rules){
        .min_opacity_logit = isnan(o->min_opacity) ? NAN : kiln_logitf((float)o->min_opacity),
        .sphere_radius = (float)sphere[3],
        .max_spacing2 = isnan(o->outlier) ? NAN : (float)(o->outlier * o->outlier * (double)s->median_spacing2),
        .log_floor = log_of(o->min_scale),
        .log_ceiling = log_of(o->max_scale),
        .log_extent = log_of(o->max_extent * (double)kiln_prune_extent(s)),
        .spacing_factor = (float)o->max_spacing,
        .spacing_floor2 = s->median_spacing2 > typical * typical ? s->median_spacing2 : typical * typical,
        .needle_ratio = (float)o->max_needle,
        .floor_policy = (kiln_prune_policy)o->min_scale_policy,
        .ceiling_policy = (kiln_prune_policy)o->max_scale_policy,
        .extent_policy = (kiln_prune_policy)o->max_extent_policy,
        .spacing_policy = (kiln_prune_policy)o->max_spacing_policy,
        .needle_policy = (kiln_prune_policy)o->max_needle_policy,
    };
    for (int a = 0; a < 3; a++) {
        out->box_min[a] = (float)(box[a] - origin[a]);
        out->box_max[a] = (float)(box[a + 3] - origin[a]);
        out->sphere_centre[a] = (float)(sphere[a] - origin[a]);
    }
    return KILN_OK;
}

void kiln_prune_rules_key(kiln_hasher *h, const kiln_prune_rules *r)
{
    const float numbers[] = {r->min_opacity_logit, r->box_min[0],     r->box_min[1],       r->box_min[2],       r->box_max[0],
                             r->box_max[1],        r->box_max[2],     r->sphere_centre[0], r->sphere_centre[1], r->sphere_centre[2],
                             r->sphere_radius,     r->max_spacing2,   r->log_floor,        r->log_ceiling,      r->log_extent,
                             r->spacing_factor,    r->spacing_floor2, r->needle_ratio};
    const kiln_prune_policy policies[] = {r->floor_policy, r->ceiling_policy, r->extent_policy, r->spacing_policy,
                                          r->needle_policy};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) kiln_key_f64(h, "rule", (double)numbers[i]);
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) kiln_key_u64(h, "policy", policies[i]);
}

double kiln_prune_rule_limit(const kiln_prune_options *o, kiln_prune_rule rule, bool *drops)
{
    *drops = true;
    switch (rule) {
    case KILN_PRUNE_opacity:
        return o->min_opacity;
    case KILN_PRUNE_outlier:
        return o->outlier;
    case KILN_PRUNE_floor:
        *drops = o->min_scale_policy == KILN_PRUNE_DROP;
        return o->min_scale;
    case KILN_PRUNE_ceiling:
        *drops = o->max_scale_policy == KILN_PRUNE_DROP;
        return o->max_scale;
    case KILN_PRUNE_extent:
        *drops = o->max_extent_policy == KILN_PRUNE_DROP;
        return o->max_extent;
    case KILN_PRUNE_spacing:
        *drops = o->max_spacing_policy == KILN_PRUNE_DROP;
        return o->max_spacing;
    case KILN_PRUNE_needle:
        *drops = o->max_needle_policy == KILN_PRUNE_DROP;
        return o->max_needle;
    default:
        return NAN;
    }
}

static int by_value(const void *a, const void *b)
{
    const uint32_t p = *(const uint32_t *)a, q = *(const uint32_t *)b;
    return p < q ? -1 : p > q;
}

kiln_status kiln_prune_rows_parse(const char *option, const char *text, uint32_t **rows, uint64_t *n, kiln_error *err)
{
    uint64_t room = 1, kept = 0;
    *rows = NULL;
    *n = 0;
    if (strlen(text) > LIST_TEXT_MAX)
        return kiln_fail(err, KILN_E_USAGE, "%s takes at most %d characters, not %zu", option, LIST_TEXT_MAX, strlen(text));
    for (const char *p = text; *p; p++) room += *p == ',';
    KILN_TRY(KILN_ALLOC(rows, room, "row numbers", err));
    if (strcmp(text, "none") == 0) return KILN_OK;
    for (const char *at = text;;) {
        char *end;
        errno = 0;
        const unsigned long long v = strtoull(at, &end, 10);
        if (*at < '0' || *at > '9' || errno || v > UINT32_MAX - 1 || (*end && *end != ',')) {
            free(*rows);
            *rows = NULL;
            return kiln_fail(err, KILN_E_USAGE, "%s takes whole numbers separated by commas, or none, not '%.100s'", option, text);
        }
        (*rows)[(*n)++] = (uint32_t)v;
        if (!*end) break;
        at = end + 1;
    }
    qsort(*rows, *n, sizeof **rows, by_value);
    for (uint64_t i = 0; i < *n; i++)
        if (i == 0 || (*rows)[i] != (*rows)[kept - 1]) (*rows)[kept++] = (*rows)[i];
    *n = kept;
    return KILN_OK;
}
