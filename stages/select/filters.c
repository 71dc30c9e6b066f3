/* filters -- see the header. A test walks one component of all rows at a time. What is compared
 * with a row is brought into the plane's own terms once (logit, logarithm, coefficient), as
 * splat-transform does it, so that no row is converted. */
#include "stages/select/filters.h"

#include "base/harmonics.h"
#include "base/option.h"
#include "kernels/math/real64.h"
#include "stages/files/text_numbers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- the texts ------------------------------------------------------------------------------- */

static const char *const cmp_names[] = {"lt", "lte", "gt", "gte", "eq", "neq"};
enum { ITEM_MAX = 512, FIELDS_MAX = 6, CMPS = sizeof cmp_names / sizeof *cmp_names };

/* Between commas, without the blanks around. */
typedef struct {
    char text[ITEM_MAX];
    const char *field[FIELDS_MAX];
    unsigned n; /* FIELDS_MAX + 1: too many */
} fields;

static bool is_filter_blank(char c) { return c == ' ' || c == '\t'; }

static char *trim(char *from, char *end)
{
    while (from < end && is_filter_blank(*from)) from++;
    while (end > from && is_filter_blank(end[-1])) end--;
    *end = '\0';
    return from;
}

static void split_fields(const char *item, fields *f)
{
    (void)snprintf(f->text, sizeof f->text, "%s", item);
    f->n = 0;
    for (char *at = f->text, *end;; at = end + 1) {
        end = at + strcspn(at, ",");
        const bool last = !*end;
        if (f->n == FIELDS_MAX) {
            f->n++;
            return;
        }
        f->field[f->n++] = trim(at, end);
        if (last) return;
    }
}

static bool parse_real(const char *text, size_t length, double *out)
{
    return length > 0 && length <= KILN_TOKEN_MAX &&
           kiln_parse_f64(text, length, out) == KILN_NUMBER_OK && isfinite(*out);
}

/* A number, or a quotient: opacities are thought of as 1/255. */
static bool parse_number(const char *text, double *out)
{
    const char *slash = strchr(text, '/');
    double below = 1;
    if (!parse_real(text, slash ? (size_t)(slash - text) : strlen(text), out)) return false;
    if (slash && !parse_real(slash + 1, strlen(slash + 1), &below)) return false;
    *out /= below;
    return isfinite(*out);
}

static kiln_status parse_box(const char *item, kiln_filter *out, kiln_error *err)
{
    fields f;
    bool good;
    split_fields(item, &f);
    good = f.n == 6;
    for (unsigned i = 0; i < 6 && good; i++) {
        if (!f.field[i][0] || strcmp(f.field[i], "-") == 0)
            out->numbers[i] = i < 3 ? -HUGE_VAL : HUGE_VAL;
        else
            good = parse_number(f.field[i], &out->numbers[i]);
    }
    for (unsigned a = 0; a < 3 && good; a++) good = out->numbers[a] <= out->numbers[3 + a];
    if (good) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE,
                     "--filter-box takes x,y,z,X,Y,Z: the lower corner, then the upper one, where "
                     "'-' leaves a side open, not '%.200s'",
                     item);
}

static kiln_status parse_sphere(const char *item, kiln_filter *out, kiln_error *err)
{
    fields f;
    bool good;
    split_fields(item, &f);
    good = f.n == 4;
    for (unsigned i = 0; i < 4 && good; i++) good = parse_number(f.field[i], &out->numbers[i]);
    if (good && out->numbers[3] > 0) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE,
                     "--filter-sphere takes x,y,z,radius with a radius above 0, not '%.200s'",
                     item);
}

/* What is compared in another unit than the plane has. */
static bool name_starts(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}
static bool is_raw(const char *name)
{
    const size_t n = strlen(name);
    return n > 4 && strcmp(name + n - 4, "_raw") == 0;
}

static kiln_status check_value(const char *item, const kiln_filter *f, kiln_error *err)
{
    const double v = f->numbers[0];
    if (strcmp(f->name, "opacity") == 0 && !(v >= 0 && v <= 1))
        return kiln_fail(err, KILN_E_USAGE,
                         "--filter-value '%.200s': an opacity must be between 0 and 1; use "
                         "opacity_raw for the number that a PLY holds",
                         item);
    if (name_starts(f->name, "scale_") && !is_raw(f->name) && !(v >= 0))
        return kiln_fail(err, KILN_E_USAGE,
                         "--filter-value '%.200s': a length must not be negative; use %.16s_raw "
                         "for the number that a PLY holds",
                         item, f->name);
    return KILN_OK;
}

static kiln_status parse_value(const char *item, kiln_filter *out, kiln_error *err)
{
    fields f;
    unsigned cmp = 0;
    split_fields(item, &f);
    while (f.n == 3 && cmp < CMPS && strcmp(cmp_names[cmp], f.field[1]) != 0) cmp++;
    if (f.n != 3 || cmp == CMPS || !f.field[0][0] ||
        strlen(f.field[0]) > KILN_FILTER_NAME_MAX - sizeof "extra/" ||
        !parse_number(f.field[2], &out->numbers[0]))
        return kiln_fail(err, KILN_E_USAGE,
                         "--filter-value takes NAME,CMP,VALUE such as opacity,gte,0.1, where CMP "
                         "is lt, lte, gt, gte, eq or neq, not "
                         "'%.200s'",
                         item);
    (void)snprintf(out->name, sizeof out->name, "%s", f.field[0]);
    out->cmp = (kiln_filter_cmp)cmp;
    return check_value(item, out, err);
}

typedef kiln_status parse_fn(const char *item, kiln_filter *out, kiln_error *err);

/* A longer one may have been cut (parse_list). */
static kiln_status parse_item(const char *item, parse_fn *parse, kiln_filter *out, kiln_error *err)
{
    if (strlen(item) < ITEM_MAX - 1) return parse(item, out, err);
    return kiln_fail(err, KILN_E_USAGE, "the filter '%.100s...' is longer than %d characters", item,
                     ITEM_MAX - 2);
}

kiln_status kiln_filter_box_check(const char *item, kiln_error *err)
{
    kiln_filter f;
    return parse_item(item, parse_box, &f, err);
}

kiln_status kiln_filter_sphere_check(const char *item, kiln_error *err)
{
    kiln_filter f;
    return parse_item(item, parse_sphere, &f, err);
}

kiln_status kiln_filter_value_check(const char *item, kiln_error *err)
{
    kiln_filter f;
    return parse_item(item, parse_value, &f, err);
}

static kiln_status parse_list(const char *list, kiln_filter_kind kind, parse_fn *parse,
                              kiln_filters *out, kiln_error *err)
{
    char item[ITEM_MAX];
    while (kiln_opt_list_next(&list, item, sizeof item)) {
        if (out->n == KILN_FILTERS_MAX)
            return kiln_fail(err, KILN_E_USAGE, "at most %d filters are possible",
                             KILN_FILTERS_MAX);
        kiln_filter *f = &out->filters[out->n++];
        f->kind = kind;
        KILN_TRY(parse_item(item, parse, f, err));
    }
    return KILN_OK;
}

kiln_status kiln_filters_parse(const char *boxes, const char *spheres, const char *values,
                               kiln_filters *out, kiln_error *err)
{
    memset(out, 0, sizeof *out);
    KILN_TRY(parse_list(boxes, KILN_FILTER_BOX, parse_box, out, err));
    KILN_TRY(parse_list(spheres, KILN_FILTER_SPHERE, parse_sphere, out, err));
    return parse_list(values, KILN_FILTER_VALUE, parse_value, out, err);
}

/* ---- the planes ------------------------------------------------------------------------------ */

typedef enum { AS_IT_IS, OPACITY, LENGTH, COLOUR } unit;

static const struct {
    const char *name, *plane;
    uint32_t component;
    unit unit;
} columns[] = {
    {"x", "means", 0, AS_IT_IS},
    {"y", "means", 1, AS_IT_IS},
    {"z", "means", 2, AS_IT_IS},
    {"opacity", "opacity_logits", 0, OPACITY},
    {"opacity_raw", "opacity_logits", 0, AS_IT_IS},
    {"scale_0", "log_scales", 0, LENGTH},
    {"scale_1", "log_scales", 1, LENGTH},
    {"scale_2", "log_scales", 2, LENGTH},
    {"scale_0_raw", "log_scales", 0, AS_IT_IS},
    {"scale_1_raw", "log_scales", 1, AS_IT_IS},
    {"scale_2_raw", "log_scales", 2, AS_IT_IS},
    {"f_dc_0", "sh0", 0, COLOUR},
    {"f_dc_1", "sh0", 1, COLOUR},
    {"f_dc_2", "sh0", 2, COLOUR},
    {"f_dc_0_raw", "sh0", 0, AS_IT_IS},
    {"f_dc_1_raw", "sh0", 1, AS_IT_IS},
    {"f_dc_2_raw", "sh0", 2, AS_IT_IS},
    {"rot_0", "quats", 0, AS_IT_IS},
    {"rot_1", "quats", 1, AS_IT_IS},
    {"rot_2", "quats", 2, AS_IT_IS},
    {"rot_3", "quats", 3, AS_IT_IS},
    {"source_row", "source_row", 0, AS_IT_IS},
    {"spacing2", "spacing2", 0, AS_IT_IS},
    {"red", "rgb", 0, AS_IT_IS}, /* of points; below the same of Gaussians: the plane decides */
    {"green", "rgb", 1, AS_IT_IS},
    {"blue", "rgb", 2, AS_IT_IS},
    {"red", "sh0", 0, COLOUR},
    {"green", "sh0", 1, COLOUR},
    {"blue", "sh0", 2, COLOUR},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static bool find_rest(const char *name, uint32_t sh_degree, uint32_t *component)
{
    const char *digits = name + strlen("f_rest_");
    uint64_t k;
    if (!name_starts(name, "f_rest_") ||
        kiln_parse_u64(digits, strlen(digits), &k) != KILN_NUMBER_OK ||
        k >= kiln_sh_components(sh_degree))
        return false;
    *component = kiln_sh_component_of_rest(sh_degree, (uint32_t)k);
    return true;
}

static const kiln_plane *find_column(const kiln_chunk *c, const char *name, uint32_t sh_degree,
                                     uint32_t *component, unit *in)
{
    char plane[KILN_FILTER_NAME_MAX];
    *in = AS_IT_IS;
    *component = 0;
    for (unsigned i = 0; i < COLUMNS; i++) {
        const kiln_plane *p =
            strcmp(columns[i].name, name) == 0 ? kiln_chunk_plane(c, columns[i].plane) : NULL;
        if (!p || columns[i].component >= p->components) continue;
        *component = columns[i].component;
        *in = columns[i].unit;
        return p;
    }
    if (find_rest(name, sh_degree, component)) {
        const kiln_plane *p = kiln_chunk_plane(c, "shN");
        return p && *component < p->components ? p : NULL;
    }
    *component = 0;
    (void)snprintf(plane, sizeof plane, "%s%s", name_starts(name, "extra/") ? "" : "extra/", name);
    const kiln_plane *p = kiln_chunk_plane(c, plane);
    return p && p->components == 1 ? p : NULL;
}

static double in_plane_units(double v, unit in)
{
    if (in == OPACITY) return v >= 1 ? HUGE_VAL : kiln_log_f64(v / (1 - v));
    if (in == LENGTH) return kiln_log_f64(v);
    if (in == COLOUR) return (v - 0.5) / KILN_SH_C0_F64;
    return v;
}

/* "x, y, ..., f_rest_0 to f_rest_44, confidence" */
static void list_columns(const kiln_chunk *c, uint32_t sh_degree, char *out, size_t size)
{
    size_t used = 0;
    uint32_t component;
    unit in;
    *out = '\0';
    for (unsigned i = 0; i < COLUMNS && used < size; i++) {
        const bool again =
            /* red: f_dc_0 is listed */
            strcmp(columns[i].plane, "sh0") == 0 && !name_starts(columns[i].name, "f_dc");
        if (is_raw(columns[i].name) || again ||
            !find_column(c, columns[i].name, sh_degree, &component, &in))
            continue;
        used +=
            (size_t)snprintf(out + used, size - used, "%s%s", used ? ", " : "", columns[i].name);
    }
    if (used < size && find_column(c, "f_rest_0", sh_degree, &component, &in))
        used += (size_t)snprintf(out + used, size - used, ", f_rest_0 to f_rest_%u",
                                 kiln_sh_components(sh_degree) - 1);
    for (uint32_t k = 0; k < c->n_planes && used < size; k++)
        if (name_starts(c->planes[k].name, "extra/") &&
            /* no raw x, y, z */
            find_column(c, c->planes[k].name + strlen("extra/"), sh_degree, &component, &in) ==
                &c->planes[k])
            used += (size_t)snprintf(out + used, size - used, ", %s",
                                     c->planes[k].name + strlen("extra/"));
    /* there are more than an error message takes */
    if (used >= size) memcpy(out + size - sizeof " ...", " ...", sizeof " ...");
}

static uint32_t place_of_plane(kiln_filters *f, const kiln_plane *p)
{
    uint32_t k = 0;
    while (k < f->n_planes && strcmp(f->planes[k].name, p->name) != 0) k++;
    if (k == f->n_planes) {
        (void)snprintf(f->planes[k].name, sizeof f->planes[k].name, "%s", p->name);
        f->planes[f->n_planes++].type = p->type;
    }
    return k;
}

kiln_status kiln_filters_bind(kiln_filters *f, const kiln_chunk *sample, uint32_t sh_degree,
                              kiln_error *err)
{
    f->n_planes = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        char list[700];
        unit in = AS_IT_IS;
        kiln_filter *x = &f->filters[i];
        const char *name = x->kind == KILN_FILTER_VALUE ? x->name : "x";
        const kiln_plane *p = find_column(sample, name, sh_degree, &x->component, &in);
        if (!p) {
            list_columns(sample, sh_degree, list, sizeof list);
            return kiln_fail(err, KILN_E_USAGE,
                             "--filter-value: the column '%s' does not exist; there are %s", name,
                             list);
        }
        x->plane = place_of_plane(f, p);
        if (x->kind == KILN_FILTER_VALUE) x->numbers[0] = in_plane_units(x->numbers[0], in);
    }
    return KILN_OK;
}

/* ---- chunks
 * ------------------------------------------------------------------------------------------------------------------
 * Every step from a row's coordinate to what is compared keeps the order of numbers when it rounds,
 * so what it makes of the box's sides bounds what it makes of the rows. */

static kiln_chunk_part part_of(bool none, bool all)
{
    return none ? KILN_CHUNK_NONE : all ? KILN_CHUNK_ALL : KILN_CHUNK_SOME;
}

static kiln_chunk_part box_part(const kiln_filter *f, const double lo[3], const double hi[3])
{
    bool none = false, all = true;
    for (int a = 0; a < 3; a++) {
        none |= hi[a] < f->numbers[a] || lo[a] > f->numbers[3 + a];
        all &= lo[a] >= f->numbers[a] && hi[a] <= f->numbers[3 + a];
    }
    return part_of(none, all);
}

static double square_sum(const double d[3]) { return d[0] * d[0] + d[1] * d[1] + d[2] * d[2]; }

static kiln_chunk_part sphere_part(const kiln_filter *f, const double lo[3], const double hi[3])
{
    double nearest[3], farthest[3];
    const double r2 = f->numbers[3] * f->numbers[3];
    for (int a = 0; a < 3; a++) {
        const double below = fabs(lo[a] - f->numbers[a]), above = fabs(hi[a] - f->numbers[a]);
        const bool within = lo[a] <= f->numbers[a] && f->numbers[a] <= hi[a];
        nearest[a] = within ? 0 : below < above ? below : above;
        farthest[a] = below > above ? below : above;
    }
    return part_of(square_sum(nearest) >= r2, square_sum(farthest) < r2);
}

/* All values lie in lo .. hi. */
static kiln_chunk_part value_part(kiln_filter_cmp cmp, double v, double lo, double hi)
{
    switch (cmp) {
    case KILN_CMP_LT:
        return part_of(lo >= v, hi < v);
    case KILN_CMP_LTE:
        return part_of(lo > v, hi <= v);
    case KILN_CMP_GT:
        return part_of(hi <= v, lo > v);
    case KILN_CMP_GTE:
        return part_of(hi < v, lo >= v);
    case KILN_CMP_EQ:
        return part_of(v < lo || v > hi, false);
    case KILN_CMP_NEQ:
        return part_of(false, v < lo || v > hi);
    }
    return KILN_CHUNK_SOME;
}

static kiln_chunk_part column_part(const kiln_filters *f, const kiln_filter *x, const kiln_chunk *c,
                                   const double lo[3], const double hi[3])
{
    const char *plane = f->planes[x->plane].name;
    if (strcmp(plane, "means") == 0)
        return value_part(x->cmp, x->numbers[0], lo[x->component], hi[x->component]);
    if (strcmp(plane, "opacity_logits") == 0)
        return value_part(x->cmp, x->numbers[0], -HUGE_VAL, (double)c->max_opacity_logit);
    if (strcmp(plane, "log_scales") == 0)
        return value_part(x->cmp, x->numbers[0], -HUGE_VAL, (double)c->max_log_scale);
    return KILN_CHUNK_SOME;
}

kiln_chunk_part kiln_filters_chunk(const kiln_filters *f, const kiln_chunk *chunk,
                                   const double origin[3])
{
    kiln_chunk_part all = KILN_CHUNK_ALL;
    double lo[3], hi[3];
    if (chunk->count == 0) return KILN_CHUNK_NONE;
    for (int a = 0; a < 3; a++) {
        lo[a] = (double)chunk->box_min[a] + origin[a];
        hi[a] = (double)chunk->box_max[a] + origin[a];
    }
    for (uint32_t i = 0; i < f->n; i++) {
        const kiln_filter *x = &f->filters[i];
        const kiln_chunk_part part = x->kind == KILN_FILTER_BOX ? box_part(x, lo, hi)
                                     : x->kind == KILN_FILTER_SPHERE
                                         ? sphere_part(x, lo, hi)
                                         : column_part(f, x, chunk, lo, hi);
        if (part == KILN_CHUNK_NONE) return KILN_CHUNK_NONE;
        if (part == KILN_CHUNK_SOME) all = KILN_CHUNK_SOME;
    }
    return all;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void keep_box(const kiln_filter *f, uint64_t n, const double origin[3], const float *means,
                     uint8_t *keep)
{
    for (int a = 0; a < 3; a++) {
        const double lo = f->numbers[a], hi = f->numbers[3 + a], o = origin[a];
        for (uint64_t i = 0; i < n; i++) {
            const double v = (double)means[(uint64_t)a * n + i] + o;
            keep[i] &= (uint8_t)(v >= lo && v <= hi);
        }
    }
}

static void keep_sphere(const kiln_filter *f, uint64_t n, const double origin[3],
                        const float *means, uint8_t *keep)
{
    const double r2 = f->numbers[3] * f->numbers[3];
    for (uint64_t i = 0; i < n; i++) {
        double d[3];
        for (int a = 0; a < 3; a++)
            d[a] = (double)means[(uint64_t)a * n + i] + origin[a] - f->numbers[a];
        keep[i] &= (uint8_t)(square_sum(d) < r2);
    }
}

#define KEEP_WHERE(op) \
    for (uint64_t i = 0; i < n; i++) keep[i] &= (uint8_t)(((double)from[i] + add) op value)
#define KEEP_TYPE(TYPE, T)                     \
    case TYPE: {                               \
        const T *from = (const T *)plane + at; \
        switch (f->cmp) {                      \
        case KILN_CMP_LT:                      \
            KEEP_WHERE(<);                     \
            break;                             \
        case KILN_CMP_LTE:                     \
            KEEP_WHERE(<=);                    \
            break;                             \
        case KILN_CMP_GT:                      \
            KEEP_WHERE(>);                     \
            break;                             \
        case KILN_CMP_GTE:                     \
            KEEP_WHERE(>=);                    \
            break;                             \
        case KILN_CMP_EQ:                      \
            KEEP_WHERE(==);                    \
            break;                             \
        case KILN_CMP_NEQ:                     \
            KEEP_WHERE(!=);                    \
            break;                             \
        }                                      \
        break;                                 \
    }

/* add: the origin of coordinates, 0 of others. */
static void keep_value(const kiln_filter *f, kiln_type type, uint64_t n, double add,
                       const void *plane, uint8_t *keep)
{
    const double value = f->numbers[0];
    const uint64_t at = f->component * n;
    switch (type) {
        KEEP_TYPE(KILN_TYPE_U8, uint8_t)
        KEEP_TYPE(KILN_TYPE_I8, int8_t)
        KEEP_TYPE(KILN_TYPE_U16, uint16_t)
        KEEP_TYPE(KILN_TYPE_I16, int16_t)
        KEEP_TYPE(KILN_TYPE_U32, uint32_t)
        KEEP_TYPE(KILN_TYPE_I32, int32_t)
        KEEP_TYPE(KILN_TYPE_F32, float)
        KEEP_TYPE(KILN_TYPE_F64, double)
    }
}

uint64_t kiln_filters_keep(const kiln_filters *f, uint64_t n, const double origin[3],
                           const void *const planes[], uint8_t *keep)
{
    uint64_t kept = 0;
    memset(keep, 1, n);
    for (uint32_t i = 0; i < f->n; i++) {
        const kiln_filter *x = &f->filters[i];
        const bool place = strcmp(f->planes[x->plane].name, "means") == 0;
        if (x->kind == KILN_FILTER_BOX)
            keep_box(x, n, origin, planes[x->plane], keep);
        else if (x->kind == KILN_FILTER_SPHERE)
            keep_sphere(x, n, origin, planes[x->plane], keep);
        else
            keep_value(x, f->planes[x->plane].type, n, place ? origin[x->component] : 0,
                       planes[x->plane], keep);
    }
    for (uint64_t i = 0; i < n; i++) kept += keep[i];
    return kept;
}

/* By bytes, as an array of another type must not be read as integers; `size` is a constant where it
 * is called. */
static inline void compact_plane_bytes(unsigned char *plane, size_t size, uint32_t components,
                                       uint64_t n, const uint8_t *keep)
{
    const unsigned char *from = plane;
    unsigned char *to = plane;
    for (uint32_t c = 0; c < components; c++) {
        for (uint64_t i = 0; i < n; i++, from += size) {
            if (!keep[i]) continue;
            memmove(to, from, size);
            to += size;
        }
    }
}

void kiln_filters_compact(void *plane, kiln_type type, uint32_t components, uint64_t n,
                          const uint8_t *keep, uint64_t kept)
{
    if (kept == n) return;
    switch (kiln_type_size(type)) {
    case 1:
        compact_plane_bytes(plane, 1, components, n, keep);
        break;
    case 2:
        compact_plane_bytes(plane, 2, components, n, keep);
        break;
    case 4:
        compact_plane_bytes(plane, 4, components, n, keep);
        break;
    default:
        compact_plane_bytes(plane, 8, components, n, keep);
        break;
    }
}
