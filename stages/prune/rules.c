/* rules -- options and statistics into the thresholds of the kernel. Whatever ends in a stored bit goes through the pinned
 * arithmetic of kernels/math. */
#include "stages/prune/rules.h"

#include "base/memory.h"
#include "base/option.h"
#include "kernels/math/real.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_TEXT_MAX = 4000 }; /* longer ones would not survive being stored as a parameter */

uint32_t kiln_prune_auto_rules(const kiln_prune_options *o)
{
    uint32_t rules = 0;
#define AUTO(id, limit) rules |= (uint32_t)kiln_opt_is_auto(o->id) << KILN_PRUNE_##id;
    KILN_PRUNE_AUTO_MAP(AUTO)
#undef AUTO
    return rules;
}

double kiln_prune_auto_limit(const kiln_prune_options *o, kiln_prune_rule rule)
{
#define AUTO(id, limit) \
    if (rule == KILN_PRUNE_##id && kiln_opt_is_auto(o->id)) return limit;
    KILN_PRUNE_AUTO_MAP(AUTO)
#undef AUTO
    return NAN;
}

kiln_prune_options kiln_prune_options_resolved(const kiln_prune_options *o, bool act)
{
    kiln_prune_options out = *o;
#define AUTO(id, limit) \
    if (kiln_opt_is_auto(o->id)) out.id = act ? (double)(limit) : NAN;
    KILN_PRUNE_AUTO_MAP(AUTO)
#undef AUTO
    return out;
}

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

static kiln_status parse_crop_box(const char *text, double box[6], kiln_error *err)
{
    for (int i = 0; i < 6; i++) box[i] = NAN;
    if (strcmp(text, "off") == 0) return KILN_OK;
    if (parse_numbers(text, 6, box) && box[0] <= box[3] && box[1] <= box[4] && box[2] <= box[5]) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "--crop-box takes x0,y0,z0,x1,y1,z1 with the smaller corner first, or off, not '%s'", text);
}

static kiln_status parse_crop_sphere(const char *text, double sphere[4], kiln_error *err)
{
    for (int i = 0; i < 4; i++) sphere[i] = NAN;
    if (strcmp(text, "off") == 0) return KILN_OK;
    if (parse_numbers(text, 4, sphere) && sphere[3] >= 0) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "--crop-sphere takes x,y,z,radius, or off, not '%s'", text);
}

kiln_status kiln_crop_box_check(const char *text, kiln_error *err)
{
    double box[6];
    return parse_crop_box(text, box, err);
}

kiln_status kiln_crop_sphere_check(const char *text, kiln_error *err)
{
    double sphere[4];
    return parse_crop_sphere(text, sphere, err);
}

kiln_status kiln_drop_row_check(const char *text, kiln_error *err)
{
    uint32_t *rows = NULL;
    uint64_t n;
    const kiln_status st = kiln_prune_rows_parse("--drop-row", text, &rows, &n, err);
    free(rows);
    return st;
}

kiln_status kiln_prune_options_check(const kiln_prune_options *o, kiln_error *err)
{
    KILN_TRY(kiln_crop_box_check(o->crop_box, err));
    KILN_TRY(kiln_crop_sphere_check(o->crop_sphere, err));
    return kiln_drop_row_check(o->drop_row, err);
}

/* Logarithm of a length; NAN stays. */
static float log_of(double length) { return isnan(length) ? NAN : kiln_logf((float)length); }

/* All that thresholds are made of. */
typedef struct {
    const kiln_prune_options *o;
    const kiln_prune_stats *s;
    const double *origin;
    double box[6], sphere[4];
} sources;

static void set_min_opacity(const sources *from, float *out)
{
    *out = isnan(from->o->min_opacity) ? NAN : kiln_logitf((float)from->o->min_opacity);
}

static void set_min_scale(const sources *from, float *out) { *out = log_of(from->o->min_scale); }
static void set_max_scale(const sources *from, float *out) { *out = log_of(from->o->max_scale); }

static void set_max_extent(const sources *from, float *out)
{
    *out = log_of(from->o->max_extent * (double)kiln_prune_extent(from->s));
}

static void set_max_spacing(const sources *from, float *out)
{
    const float typical = kiln_expf(from->s->median_log_scale), median2 = from->s->median_spacing2;
    out[0] = (float)from->o->max_spacing;
    out[1] = median2 > typical * typical ? median2 : typical * typical;
}

static void set_max_needle(const sources *from, float *out) { *out = (float)from->o->max_needle; }

static void set_outlier(const sources *from, float *out)
{
    const double factor = from->o->outlier;
    *out = isnan(factor) ? NAN : (float)(factor * factor * (double)from->s->median_spacing2);
}

static void set_crop_box(const sources *from, float *out)
{
    for (int i = 0; i < 6; i++) out[i] = (float)(from->box[i] - from->origin[i % 3]);
}

static void set_crop_sphere(const sources *from, float *out)
{
    for (int a = 0; a < 3; a++) out[a] = (float)(from->sphere[a] - from->origin[a]);
    out[3] = (float)from->sphere[3];
}

#define FLOATS_0(id)
#define FLOATS_1(id) set_##id(&from, &out->id);
#define FLOATS_2(id) set_##id(&from, out->id);
#define FLOATS_4(id) set_##id(&from, out->id);
#define FLOATS_6(id) set_##id(&from, out->id);

kiln_status kiln_prune_rules_make(const kiln_prune_options *o, const kiln_prune_stats *s, const double origin[3],
                                  kiln_prune_rules *out, kiln_error *err)
{
    sources from = {.o = o, .s = s, .origin = origin};
    KILN_TRY(parse_crop_box(o->crop_box, from.box, err));
    KILN_TRY(parse_crop_sphere(o->crop_sphere, from.sphere, err));
    memset(out, 0, sizeof *out);
#define RULE(key, id, option, kind, arg, def, range, policy, n, looks_at, help) \
    FLOATS_##n(id) KILN_PRUNE_POLICY_##policy(out->id##_policy = (kiln_prune_policy)o->id##_policy;)
#include "stages/prune/rules.def"
    return KILN_OK;
}

/* What a row puts into a key. */
typedef struct {
    int place;
    unsigned n;
    const float *numbers;
    const kiln_prune_policy *policy; /* NULL: none */
} key_part;

#define NUMBERS_0(id) NULL
#define NUMBERS_1(id) &r->id
#define NUMBERS_2(id) r->id
#define NUMBERS_4(id) r->id
#define NUMBERS_6(id) r->id
#define POLICY_OF_none(id) NULL
#define POLICY_OF_clamp(id) &r->id##_policy
#define POLICY_OF_drop(id) &r->id##_policy

void kiln_prune_rules_key(kiln_hasher *h, const kiln_prune_rules *r)
{
    const key_part parts[] = {
#define RULE(key, id, option, kind, arg, def, range, policy, n, looks_at, help) \
    {key, n, NUMBERS_##n(id), POLICY_OF_##policy(id)},
#include "stages/prune/rules.def"
    };
    const key_part *at[KILN_PRUNE_RULES] = {NULL};
    for (size_t i = 0; i < KILN_PRUNE_RULES; i++)
        if (parts[i].n > 0) at[parts[i].place] = &parts[i];
    for (size_t k = 0; k < KILN_PRUNE_RULES; k++)
        for (unsigned i = 0; at[k] && i < at[k]->n; i++) kiln_key_f64(h, "rule", (double)at[k]->numbers[i]);
    for (size_t k = 0; k < KILN_PRUNE_RULES; k++)
        if (at[k] && at[k]->policy) kiln_key_u64(h, "policy", *at[k]->policy);
}

#define LIMIT_F64(id) limit = o->id;
#define LIMIT_TEXT(id)
#define LIMIT_BOOL(id)

double kiln_prune_rule_limit(const kiln_prune_options *o, kiln_prune_rule rule, bool *drops)
{
    double limit = NAN;
    *drops = true;
    switch (rule) {
#define RULE(key, id, option, kind, arg, def, range, policy, n, looks_at, help) \
    case KILN_PRUNE_##id:                                                               \
        LIMIT_##kind(id) KILN_PRUNE_POLICY_##policy(*drops = o->id##_policy == KILN_PRUNE_DROP;) break;
#include "stages/prune/rules.def"
    }
    return limit;
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
