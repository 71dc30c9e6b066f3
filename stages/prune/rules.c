/* rules -- options and statistics into the thresholds of the kernel. Whatever ends in a stored bit
 * goes through the pinned arithmetic of kernels/math. */
#include "stages/prune/rules.h"

#include "base/minmax.h"
#include "base/memory.h"
#include "kernels/knn/knn.h"
#include "kernels/math/real.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_TEXT_MAX = 4000 }; /* longer ones would not survive being stored as a parameter */

/* The number that was given with a rule's option; NAN: none, or no number. */
static double given_number(const kiln_prune_options *o, size_t rule)
{
    const kiln_prune_rule_info *info = &kiln_prune_rule_infos[rule];
    return info->kind == KILN_OPT_F64 ? *(const double *)((const char *)o + info->given) : NAN;
}

static kiln_prune_policy given_policy(const kiln_prune_options *o, size_t rule)
{
    const size_t at = kiln_prune_rule_infos[rule].given_policy;
    return at ? *(const kiln_prune_policy *)((const char *)o + at) : KILN_PRUNE_DROP;
}

double kiln_prune_rule_limit(const kiln_prune_options *o, kiln_prune_rule rule, bool *drops)
{
    *drops = given_policy(o, rule) == KILN_PRUNE_DROP;
    return given_number(o, rule);
}

double kiln_prune_auto_limit(const kiln_prune_options *o, kiln_prune_rule rule)
{
    const double automatic = kiln_prune_rule_infos[rule].automatic;
    return automatic > 0 && kiln_opt_is_auto(given_number(o, rule)) ? automatic : NAN;
}

uint32_t kiln_prune_auto_rules(const kiln_prune_options *o)
{
    uint32_t rules = 0;
    for (uint32_t i = 0; i < KILN_PRUNE_RULES; i++)
        rules |= (uint32_t)!isnan(kiln_prune_auto_limit(o, i)) << i;
    return rules;
}

kiln_prune_options kiln_prune_options_resolved(const kiln_prune_options *o, bool act)
{
    kiln_prune_options out = *o;
    for (uint32_t i = 0; i < KILN_PRUNE_RULES; i++) {
        const double limit = kiln_prune_auto_limit(o, i);
        if (!isnan(limit))
            *(double *)((char *)&out + kiln_prune_rule_infos[i].given) = act ? limit : NAN;
    }
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
        /* strtod would take blanks, inf and nan */
        if (strspn(at, "0123456789.+-") == 0) return false;
        errno = 0;
        out[i] = strtod(at, &end);
        if (errno == ERANGE || end == at || !isfinite(out[i]) || *end != (i + 1 < n ? ',' : '\0'))
            return false;
        at = end + 1;
    }
    return true;
}

static kiln_status parse_crop_box(const char *text, double box[6], kiln_error *err)
{
    for (int i = 0; i < 6; i++) box[i] = NAN;
    if (strcmp(text, "off") == 0) return KILN_OK;
    if (parse_numbers(text, 6, box) && box[0] <= box[3] && box[1] <= box[4] && box[2] <= box[5])
        return KILN_OK;
    return kiln_fail(
        err, KILN_E_USAGE,
        "--crop-box takes x0,y0,z0,x1,y1,z1 with the smaller corner first, or off, not '%s'", text);
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

kiln_status kiln_keep_rows(const char *text, uint64_t n, uint64_t *out, kiln_error *err)
{
    char *end;
    *out = UINT64_MAX;
    if (strcmp(text, "off") == 0) return KILN_OK;
    errno = 0;
    const size_t digits = strspn(text, "0123456789"), number = strspn(text, "0123456789.");
    if (digits > 0 && text[digits] == '\0') {
        const unsigned long long rows = strtoull(text, &end, 10);
        *out = rows < n ? rows : n;
        if (rows > 0 && errno == 0) return KILN_OK;
    } else if (digits > 0 && text[number] == '%' && text[number + 1] == '\0') {
        const double share = strtod(text, &end);
        if (end == text + number && share > 0 && share <= 100) {
            const uint64_t rows = (uint64_t)((double)n * share / 100 + 0.5);
            /* a share of a small scene leaves a row */
            *out = kiln_min_u64(kiln_max_u64(rows, 1), n);
            return KILN_OK;
        }
    }
    return kiln_fail(
        err, KILN_E_USAGE,
        "--keep takes a number of Gaussians, a share such as 50%%, or off, not '%.100s'", text);
}

kiln_status kiln_keep_check(const char *text, kiln_error *err)
{
    uint64_t rows;
    return kiln_keep_rows(text, 0, &rows, err);
}

kiln_status kiln_outlier_sor_parse(const char *text, uint32_t *neighbors, double *sigmas,
                                   kiln_error *err)
{
    double v[2];
    *neighbors = 0;
    *sigmas = NAN;
    if (strcmp(text, "off") == 0) return KILN_OK;
    if (parse_numbers(text, 2, v) && v[0] >= 1 && v[0] <= KILN_KNN_MAX && v[0] == floor(v[0]) &&
        v[1] > 0) {
        *neighbors = (uint32_t)v[0];
        *sigmas = v[1];
        return KILN_OK;
    }
    return kiln_fail(err, KILN_E_USAGE,
                     "--outlier-sor takes K,S, a number of neighbours from 1 to %d and standard "
                     "deviations above 0, or off, not '%.100s'",
                     KILN_KNN_MAX, text);
}

kiln_status kiln_outlier_sor_check(const char *text, kiln_error *err)
{
    uint32_t neighbors;
    double sigmas;
    return kiln_outlier_sor_parse(text, &neighbors, &sigmas, err);
}

/* One number, or a quotient such as 1/255; *at is moved behind it. */
static bool parse_quotient(const char **at, double *out)
{
    double below = 1;
    char *end;
    if (strspn(*at, "0123456789.") == 0) return false;
    *out = strtod(*at, &end);
    if (*end == '/') {
        const char *divisor = end + 1;
        if (strspn(divisor, "0123456789.") == 0) return false;
        below = strtod(divisor, &end);
    }
    *at = end;
    *out /= below;
    return isfinite(*out) && below > 0;
}

static bool parse_voxel_numbers(const char *text, kiln_voxel_rule *out)
{
    double *const numbers[] = {&out->size, &out->opacity, &out->min};
    if (strcmp(text, "on") == 0) return true;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!parse_quotient(&text, numbers[i])) return false;
        if (*text == '\0') return true;
        if (*text++ != ',') return false;
    }
    return false; /* a fourth one */
}

static kiln_status parse_voxel_rule(const char *option, const char *size, const char *text,
                                    kiln_voxel_rule *out, kiln_error *err)
{
    const double least = 1e-9, most = 1e9, faint = 1e-6, full = 0.999999;
    out->on = strcmp(text, "off") != 0;
    if (!out->on) return KILN_OK;
    if (parse_voxel_numbers(text, out) && out->size >= least && out->size <= most &&
        out->opacity >= faint && out->opacity <= full)
        return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE,
                     "--%s takes %s[,OPACITY[,MIN]], with a size from 1e-9 to 1e9, an opacity from "
                     "0.000001 to 0.999999 and a contribution of 0 or more, or on, or off, not "
                     "'%.100s'",
                     option, size, text);
}

kiln_status kiln_filter_floaters_parse(const char *text, kiln_voxel_rule *out, kiln_error *err)
{
    *out = (kiln_voxel_rule){.size = 0.05, .opacity = 0.1, .min = 1.0 / 255};
    return parse_voxel_rule("filter-floaters", "SIZE", text, out, err);
}

kiln_status kiln_filter_cluster_parse(const char *text, kiln_voxel_rule *out, kiln_error *err)
{
    *out = (kiln_voxel_rule){.size = 1, .opacity = 0.999, .min = 0.1};
    return parse_voxel_rule("filter-cluster", "RES", text, out, err);
}

kiln_status kiln_filter_floaters_check(const char *text, kiln_error *err)
{
    kiln_voxel_rule rule;
    return kiln_filter_floaters_parse(text, &rule, err);
}

kiln_status kiln_filter_cluster_check(const char *text, kiln_error *err)
{
    kiln_voxel_rule rule;
    return kiln_filter_cluster_parse(text, &rule, err);
}

bool kiln_prune_finds_strays(const kiln_prune_options *o)
{
    return strcmp(o->outlier_sor, "off") != 0 || strcmp(o->filter_floaters, "off") != 0 ||
           strcmp(o->filter_cluster, "off") != 0;
}

bool kiln_prune_asks_cameras(const kiln_prune_options *o)
{
    return !isnan(o->min_contribution) || !isnan(o->min_visibility) || strcmp(o->keep, "off") != 0;
}

bool kiln_prune_option_asks_cameras(const char *option, const char *value)
{
    static const kiln_prune_rule asking[] = {KILN_PRUNE_min_contribution, KILN_PRUNE_min_visibility,
                                             KILN_PRUNE_keep};
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++)
        if (strcmp(option, kiln_prune_rule_infos[asking[i]].option) == 0)
            return strcmp(value, "off") != 0;
    return false;
}

kiln_status kiln_prune_options_check(const kiln_prune_options *o, kiln_error *err)
{
    KILN_TRY(kiln_crop_box_check(o->crop_box, err));
    KILN_TRY(kiln_crop_sphere_check(o->crop_sphere, err));
    KILN_TRY(kiln_keep_check(o->keep, err));
    KILN_TRY(kiln_outlier_sor_check(o->outlier_sor, err));
    KILN_TRY(kiln_filter_floaters_check(o->filter_floaters, err));
    KILN_TRY(kiln_filter_cluster_check(o->filter_cluster, err));
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

static void (*const set_thresholds[KILN_PRUNE_RULES])(const sources *from, float *out) = {
#define DROP(id, ...) [KILN_PRUNE_##id] = set_##id,
#include "stages/prune/rules.def"
};

/* ---- tables of rules.def --------------------------------------------------------------------- */
/* A field of the kernel's thresholds. */
#define FIELD(id) (((kiln_prune_rules *)0)->id)
#define WORDS(id, kind_, option_, looks_at_)                            \
    .option = option_, .looks_at = looks_at_, .kind = KILN_OPT_##kind_, \
    .given = offsetof(kiln_prune_options, id)
#define FLOATS(id) \
    .floats = offsetof(kiln_prune_rules, id), .n_floats = sizeof FIELD(id) / sizeof(float)

const kiln_prune_rule_info kiln_prune_rule_infos[KILN_PRUNE_RULES] = {
#define PASS(id, kind, option, arg, def, range, looks_at, help) \
    [KILN_PRUNE_##id] = {WORDS(id, kind, option, looks_at)},
#define DROP(id, kind, option, arg, def, range, looks_at, help, key) \
    [KILN_PRUNE_##id] = {WORDS(id, kind, option, looks_at), FLOATS(id)},
#define CLAMP(id, kind, option, arg, def, range, looks_at, help, key, policy_, automatic_) \
    [KILN_PRUNE_##id] = {WORDS(id, kind, option, looks_at), FLOATS(id),                    \
                         .given_policy = offsetof(kiln_prune_options, id##_policy),        \
                         .policy = offsetof(kiln_prune_rules, id##_policy),                \
                         .automatic = automatic_},
#include "stages/prune/rules.def"
};

/* Rules with thresholds by their place in keys. */
enum {
    KEY_PLACES = 0
#define DROP(...) +1
#include "stages/prune/rules.def"
};
static const kiln_prune_rule rule_in_keys[KEY_PLACES] = {
#define DROP(id, kind, option, arg, def, range, looks_at, help, key, ...) [key] = KILN_PRUNE_##id,
#include "stages/prune/rules.def"
};

_Static_assert(0
#define DROP(id, kind, option, arg, def, range, looks_at, help, key, ...) +(1ull << (key))
#include "stages/prune/rules.def"
                   == (1ull << KEY_PLACES) - 1,
               "places in keys are 0, 1, 2, ..., each once");
_Static_assert(0
#define RULE(...) +1
#include "stages/prune/rules.def"
                   == KILN_PRUNE_RULES,
               "each rule of kernels/prune has a row in rules.def");
enum {
#define STAGE(name, version, ...) VERSION_OF_##name = version,
#include "pipelines/stages.def"
#undef STAGE
};
_Static_assert(KILN_PRUNE_RULES == 17 && VERSION_OF_prune == 5,
               "a new rule changes the tally: raise prune's version in pipelines/stages.def, then "
               "write both numbers here");
_Static_assert(0
#define DROP(id, ...) +sizeof FIELD(id)
#define CLAMP(id, ...) +sizeof FIELD(id) + sizeof FIELD(id##_policy)
#include "stages/prune/rules.def"
                   == sizeof(kiln_prune_rules),
               "each threshold and policy of the kernel has a row in rules.def, so it is in keys");

/* ---- thresholds and keys --------------------------------------------------------------------- */
kiln_status kiln_prune_rules_make(const kiln_prune_options *o, const kiln_prune_stats *s,
                                  const double origin[3], kiln_prune_rules *out, kiln_error *err)
{
    sources from = {.o = o, .s = s, .origin = origin};
    KILN_TRY(parse_crop_box(o->crop_box, from.box, err));
    KILN_TRY(parse_crop_sphere(o->crop_sphere, from.sphere, err));
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < KILN_PRUNE_RULES; i++) {
        const kiln_prune_rule_info *info = &kiln_prune_rule_infos[i];
        if (set_thresholds[i]) set_thresholds[i](&from, (float *)((char *)out + info->floats));
        if (info->policy) *(kiln_prune_policy *)((char *)out + info->policy) = given_policy(o, i);
    }
    return KILN_OK;
}

void kiln_prune_rules_key(kiln_hasher *h, const kiln_prune_rules *r)
{
    for (size_t k = 0; k < KEY_PLACES; k++) {
        const kiln_prune_rule_info *info = &kiln_prune_rule_infos[rule_in_keys[k]];
        const float *floats = (const float *)((const char *)r + info->floats);
        for (size_t i = 0; i < info->n_floats; i++) kiln_key_f64(h, "rule", (double)floats[i]);
    }
    for (size_t k = 0; k < KEY_PLACES; k++) {
        const size_t policy = kiln_prune_rule_infos[rule_in_keys[k]].policy;
        if (policy)
            kiln_key_u64(h, "policy", *(const kiln_prune_policy *)((const char *)r + policy));
    }
}

static int by_value(const void *a, const void *b)
{
    const uint32_t p = *(const uint32_t *)a, q = *(const uint32_t *)b;
    return p < q ? -1 : p > q;
}

kiln_status kiln_prune_rows_parse(const char *option, const char *text, uint32_t **rows,
                                  uint64_t *n, kiln_error *err)
{
    uint64_t capacity = 1, kept = 0;
    *rows = NULL;
    *n = 0;
    if (strlen(text) > LIST_TEXT_MAX)
        return kiln_fail(err, KILN_E_USAGE, "%s takes at most %d characters, not %zu", option,
                         LIST_TEXT_MAX, strlen(text));
    for (const char *p = text; *p; p++) capacity += *p == ',';
    KILN_TRY(KILN_ALLOC(rows, capacity, "row numbers", err));
    if (strcmp(text, "none") == 0) return KILN_OK;
    for (const char *at = text;;) {
        char *end;
        errno = 0;
        const unsigned long long v = strtoull(at, &end, 10);
        if (*at < '0' || *at > '9' || errno || v > UINT32_MAX - 1 || (*end && *end != ',')) {
            free(*rows);
            *rows = NULL;
            return kiln_fail(err, KILN_E_USAGE,
                             "%s takes whole numbers separated by commas, or none, not '%.100s'",
                             option, text);
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
