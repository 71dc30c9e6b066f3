/* stats_tell -- see stats.h. Numbers are told as people think of them: scales as lengths, opacities
 * within 0 .. 1, f_dc as colours. The JSON has the fields of splat-transform's --stats by the same
 * names. */
#include "stages/stats/stats.h"

#include "base/count.h"
#include "base/log.h"
#include "base/option.h"
#include "base/quote.h"
#include "stages/engine/json_text.h"
#include "stages/import/activation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes a pair in gsplat's isect_tiles: a 64-bit key and a 32-bit id, and both again for the
 * sort. */
enum { BOX_PAIR_BYTES = 24 };
static const double C0 = 0.28209479177387814; /* 1/(2 sqrt pi), Y_0^0 */

static double as_told(const kiln_stats_column *c, double v)
{
    if (strncmp(c->name, "scale_", 6) == 0) return exp(v);
    if (strcmp(c->name, "opacity") == 0) return 1 / (1 + exp(-v));
    return strncmp(c->name, "f_dc_", 5) == 0 ? 0.5 + C0 * v : v + c->origin;
}

static double quantile_told(const kiln_stats *s, uint32_t c, uint32_t q)
{
    return s->of[c].moments.n
               ? as_told(&s->columns.at[c], (double)kiln_stats_quantile(&s->of[c].search, q))
               : (double)NAN;
}

static double bound_told(const kiln_stats *s, uint32_t c, bool most)
{
    const kiln_stats_moments *m = &s->of[c].moments;
    return m->n ? as_told(&s->columns.at[c], (double)(most ? m->max : m->min)) : (double)NAN;
}

static double deviation(const kiln_stats_moments *m)
{
    return m->n ? sqrt(m->m2 / (double)m->n) : (double)NAN;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

typedef double number_fn(const kiln_stats *s, uint32_t c);
static double get_min(const kiln_stats *s, uint32_t c) { return bound_told(s, c, false); }
static double get_max(const kiln_stats *s, uint32_t c) { return bound_told(s, c, true); }
static double get_median(const kiln_stats *s, uint32_t c)
{
    return quantile_told(s, c, KILN_STATS_MEDIAN);
}
static double get_mean(const kiln_stats *s, uint32_t c)
{
    return s->of[c].moments.n ? as_told(&s->columns.at[c], s->of[c].moments.mean) : (double)NAN;
}
static double get_deviation(const kiln_stats *s, uint32_t c)
{
    return deviation(&s->of[c].moments);
}
static double get_nan(const kiln_stats *s, uint32_t c) { return (double)s->of[c].moments.nan; }
static double get_inf(const kiln_stats *s, uint32_t c) { return (double)s->of[c].moments.inf; }

/* NULL: no memory; jansson then refuses what it is put into. */
static json_t *numbers_json(const kiln_stats *s, number_fn *get, bool whole)
{
    json_t *list = json_array();
    for (uint32_t c = 0; list && c < s->columns.n; c++) {
        json_t *v = whole ? json_integer((json_int_t)get(s, c)) : kiln_json_real(get(s, c));
        if (json_array_append_new(list, v) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

static json_t *names_json(const kiln_stats *s)
{
    json_t *list = json_array();
    for (uint32_t c = 0; list && c < s->columns.n; c++)
        if (json_array_append_new(list, kiln_json_string(s->columns.at[c].name)) != 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

static json_t *bars_json(const kiln_stats_of_column *c)
{
    json_t *list = json_array();
    for (int i = 0; list && i < KILN_STATS_BARS; i++)
        if (json_array_append_new(list, json_integer((json_int_t)c->bars[i])) != 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

/* Those that are no part of a Gaussian or point: name and type, as splat-transform calls them. */
static json_t *extras_json(const kiln_stats *s)
{
    static const char *const types[] = {
        [KILN_TYPE_U8] = "uint8",    [KILN_TYPE_I8] = "int8",    [KILN_TYPE_U16] = "uint16",
        [KILN_TYPE_I16] = "int16",   [KILN_TYPE_U32] = "uint32", [KILN_TYPE_I32] = "int32",
        [KILN_TYPE_F32] = "float32", [KILN_TYPE_F64] = "float64"};
    json_t *list = json_array();
    for (uint32_t c = 0; list && c < s->columns.n; c++) {
        const kiln_stats_column *column = &s->columns.at[c];
        if (!column->is_extra) continue;
        if (json_array_append_new(list,
                                  json_pack("{s:o, s:s}", "name", kiln_json_string(column->name),
                                            "type", types[column->type])) == 0)
            continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

static json_t *histograms_json(const kiln_stats *s)
{
    json_t *list = json_array();
    for (uint32_t c = 0; list && c < s->columns.n; c++)
        if (json_array_append_new(list, bars_json(&s->of[c])) != 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

/* {"0.001": [...], ...}: of each column. */
static json_t *quantiles_json(const kiln_stats *s)
{
    json_t *out = json_object();
    char name[16];
    double *values;
    if (KILN_ALLOC(&values, s->columns.n, "quantiles", NULL) != KILN_OK) {
        json_decref(out);
        return NULL;
    }
    for (uint32_t q = 0; out && q < KILN_STATS_QUANTILES; q++) {
        for (uint32_t c = 0; c < s->columns.n; c++) values[c] = quantile_told(s, c, q);
        (void)snprintf(name, sizeof name, "%g", (double)kiln_stats_thousandths[q] / 1000);
        if (json_object_set_new(out, name, kiln_json_reals(values, s->columns.n)) == 0) continue;
        json_decref(out);
        out = NULL;
    }
    free(values);
    return out;
}

static json_t *columns_json(const kiln_stats *s)
{
    json_t *data = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "min", numbers_json(s, get_min, false),
        "max", numbers_json(s, get_max, false), "median", numbers_json(s, get_median, false),
        "mean", numbers_json(s, get_mean, false), "stdDev", numbers_json(s, get_deviation, false),
        "nanCount", numbers_json(s, get_nan, true), "infCount", numbers_json(s, get_inf, true),
        "histogram", histograms_json(s), "quantiles", quantiles_json(s));
    return json_pack("{s:i, s:I, s:o, s:o, s:o}", "lod", 0, "numGaussians", (json_int_t)s->n_rows,
                     "columns", names_json(s), "data", data, "fillRatio",
                     kiln_json_real(s->fill_ratio));
}

/* Of the picture's tiles, how many the average visible Gaussian is listed in. */
static double covered_share(const kiln_stats *s, uint32_t v)
{
    const kiln_view *view = &s->views[v].view;
    const double tiles = (double)kiln_view_tiles_x(view) * kiln_view_tiles_y(view);
    return s->pairs[v].visible ? (double)s->pairs[v].box_pairs / (double)s->pairs[v].visible / tiles
                               : 0;
}

static json_t *view_json(const kiln_stats *s, uint32_t v)
{
    const kiln_stats_pairs *p = &s->pairs[v];
    return json_pack("{s:o, s:i, s:i, s:I, s:I, s:I, s:I, s:o}", "name",
                     kiln_json_string(s->names[v]), "width", (int)s->views[v].view.width, "height",
                     (int)s->views[v].view.height, "visible", (json_int_t)p->visible, "pairs",
                     (json_int_t)p->pairs, "box_pairs", (json_int_t)p->box_pairs, "box_bytes",
                     (json_int_t)(BOX_PAIR_BYTES * p->box_pairs), "covered_share",
                     kiln_json_real(covered_share(s, v)));
}

static kiln_status report_pairs(kiln_run *r, const kiln_stats *s, kiln_error *err)
{
    if (!s->n_views) return KILN_OK;
    KILN_TRY(kiln_run_report_rows(r, "pairs", err));
    for (uint32_t v = 0; v < s->n_views; v++)
        KILN_TRY(kiln_run_report_row(r, view_json(s, v), err));
    return KILN_OK;
}

static kiln_status report_stats(kiln_run *r, const char *path, const kiln_stats *s, kiln_error *err)
{
    json_t *facts = json_pack(
        "{s:o, s:s, s:b, s:I, s:i, s:[I], s:i, s:s, s:o, s:[o]}", "file", kiln_json_string(path),
        "format", s->format, "gaussian", s->scene.kind == KILN_SCENE_SPLATS, "numGaussians",
        (json_int_t)s->n_rows, "numLods", 1, "lodCounts", (json_int_t)s->n_rows, "shBands",
        (int)s->scene.sh_degree, "model", s->scene.antialiased ? "antialiased" : "default",
        "extraColumns", extras_json(s), "stats", columns_json(s));
    const int failed = facts ? json_object_update(kiln_run_report(r), facts) : -1;
    json_decref(facts);
    if (!failed && s->n_views &&
        json_object_set_new(kiln_run_report(r), "profile",
                            json_string(kiln_profiles[s->views[0].profile].name)) != 0)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
    return failed ? kiln_fail(err, KILN_E_NOMEM, "out of memory for the report")
                  : report_pairs(r, s, err);
}

/* ---- text ------------------------------------------------------------------------------------ */

enum { CELLS = 5, CELL = 32, DIGITS = 4, WIDTH = 9 };
/* What the table shows of a column. */
typedef char number_cells[CELLS][CELL];

/* At most nine characters with DIGITS. */
static void number_text(double v, int digits, char out[CELL])
{
    (void)snprintf(out, CELL, "%.*g", digits, v);
    if (digits == DIGITS && strlen(out) > WIDTH) (void)snprintf(out, CELL, "%.2g", v);
}

static int decimal_exponent(double v) { return (int)floor(log10(fabs(v))); }

/* Of a column that holds one number: all of a float32, unless fewer name it as well. */
static int digits_of_one(double v)
{
    enum { OF_FLOAT = 7 };
    char text[CELL];
    number_text(v, DIGITS, text);
    return fabs(strtod(text, NULL) - v) <= 1e-6 * fabs(v) ? DIGITS : OF_FLOAT;
}

/* How many digits tell the central numbers low and high apart as well as DIGITS tell those of a
 * column that begins at 0: one more for each power of ten that they are away from it. */
static int digits_of(double low, double high)
{
    enum { MOST = 15 }; /* of a double */
    const double away = fmax(fabs(low), fabs(high));
    if (!(high > low)) return digits_of_one(low);
    if (!isfinite(away)) return DIGITS;
    const int more = decimal_exponent(away) - decimal_exponent(high - low);
    return more < 0 ? DIGITS : more > MOST - DIGITS ? MOST : DIGITS + more;
}

static void bars_text(const kiln_stats_of_column *c, char out[KILN_STATS_BARS + 1])
{
    static const char shades[] = " .:-=+*#";
    uint64_t most = 1;
    for (int i = 0; i < KILN_STATS_BARS; i++) most = c->bars[i] > most ? c->bars[i] : most;
    for (int i = 0; i < KILN_STATS_BARS; i++) {
        const double share = (double)c->bars[i] / (double)most * (double)(sizeof shades - 2);
        out[i] = c->bars[i] == 0 ? ' ' : shades[share < 1 ? 1 : (int)share];
    }
    out[KILN_STATS_BARS] = '\0';
}

static uint64_t bad_values(const kiln_stats *s, uint32_t c)
{
    return s->of[c].moments.nan + s->of[c].moments.inf;
}

static bool is_opacity(const kiln_stats *s, uint32_t c)
{
    return strcmp(s->columns.at[c].name, "opacity") == 0;
}

/* min, 1 %, median, 99 %, max */
static void take_cells(const kiln_stats *s, uint32_t c, number_cells out)
{
    enum { LOW = 1, HIGH = 7 }; /* 1 %, 99 % */
    const double v[CELLS] = {bound_told(s, c, false), quantile_told(s, c, LOW),
                             quantile_told(s, c, KILN_STATS_MEDIAN), quantile_told(s, c, HIGH),
                             bound_told(s, c, true)};
    const int digits = v[1] < v[3] ? digits_of(v[1], v[3]) : digits_of(v[0], v[4]);
    for (int i = 0; i < CELLS; i++) number_text(v[i], digits, out[i]);
}

static void print_column(const kiln_stats *s, uint32_t c, int width)
{
    number_cells t;
    char bars[KILN_STATS_BARS + 1];
    const kiln_stats_moments *m = &s->of[c].moments;
    bars_text(&s->of[c], bars);
    take_cells(s, c, t);
    kiln_print("%-10.10s %*s %*s %*s %*s %*s %5llu %s", s->columns.at[c].name, width, t[0], width,
               t[1], width, t[2], width, t[3], width, t[4], (unsigned long long)(m->nan + m->inf),
               bars);
}

/* The coefficients above degree 0 are many and alike. */
static bool is_shown(const kiln_stats *s, uint32_t c, bool all)
{
    return all || strncmp(s->columns.at[c].name, "f_rest_", 7) != 0;
}

static int table_width(const kiln_stats *s, bool all)
{
    number_cells t;
    int width = WIDTH;
    for (uint32_t c = 0; c < s->columns.n; c++) {
        if (!is_shown(s, c, all)) continue;
        take_cells(s, c, t);
        for (int i = 0; i < CELLS; i++)
            width = (int)strlen(t[i]) > width ? (int)strlen(t[i]) : width;
    }
    return width;
}

static void print_columns(const kiln_stats *s, bool all)
{
    uint64_t rest = 0, bad = 0, any = 0, opacities = 0;
    float lo = INFINITY, hi = -INFINITY;
    const int width = table_width(s, all);
    kiln_print("%-10s %*s %*s %*s %*s %*s %5s %s", "column", width, "min", width, "1 %", width,
               "median", width, "99 %", width, "max", "bad", "histogram");
    for (uint32_t c = 0; c < s->columns.n; c++) {
        const kiln_stats_moments *m = &s->of[c].moments;
        if (is_shown(s, c, all)) {
            print_column(s, c, width);
            continue;
        }
        rest++;
        bad += m->nan + m->inf;
        lo = m->min < lo ? m->min : lo;
        hi = m->max > hi ? m->max : hi;
    }
    for (uint32_t c = 0; c < s->columns.n; c++)
        opacities += is_opacity(s, c) ? s->of[c].moments.inf : 0, any += bad_values(s, c);
    if (rest)
        kiln_print("f_rest     %g to %g, %llu not finite in %llu columns (-v shows each)",
                   (double)lo, (double)hi, (unsigned long long)bad, (unsigned long long)rest);
    if (any)
        kiln_print_sentence("bad: values that are not finite; they count in no other column, and "
                            "import repairs or drops their rows");
    if (opacities)
        kiln_print_sentence("opacities of 0 and 1 have infinite logits, so they count as bad; that "
                            "is normal in formats of bytes such as .splat, and import repairs it");
}

/* A sound scene's Gaussians cover less than a hundredth of a picture on average, and half of one
 * where scales have exploded. */
static const double EXPLODED = 0.05;

static void print_verdict(const kiln_stats *s, uint32_t worst)
{
    const double share = 100 * covered_share(s, worst);
    char size[32];
    const kiln_view *view = &s->views[worst].view;
    kiln_print_sentence(
        "%s lists %llu pairs in '%s' at %u x %u; gsplat takes %s for them, at %d bytes a pair",
        kiln_profiles[s->views[worst].profile].name, (unsigned long long)s->pairs[worst].box_pairs,
        s->names[worst], view->width, view->height,
        kiln_size_text(BOX_PAIR_BYTES * s->pairs[worst].box_pairs, size), BOX_PAIR_BYTES);
    if (share >= 100 * EXPLODED)
        kiln_print_sentence("the average Gaussian covers %.2g %% of that picture, as exploded "
                            "scales do: look at the maxima of scale_0 "
                            "to scale_2; kiln-prune cures them",
                            share);
    else
        kiln_print_sentence(
            "the average Gaussian covers %.2g %% of that picture, as in sound scenes", share);
}

static void print_pairs(const kiln_stats *s)
{
    uint32_t worst = 0;
    char size[32];
    const kiln_stats_pairs *p = s->pairs;
    kiln_print("%-28s %11s %12s %12s %11s", "view", "visible", "pairs", "box pairs", "gsplat");
    for (uint32_t v = 0; v < s->n_views; v++) {
        kiln_print("%-28.28s %11llu %12llu %12llu %11s", s->names[v],
                   (unsigned long long)p[v].visible, (unsigned long long)p[v].pairs,
                   (unsigned long long)p[v].box_pairs,
                   kiln_size_text(BOX_PAIR_BYTES * p[v].box_pairs, size));
        if (p[v].box_pairs > p[worst].box_pairs) worst = v;
    }
    print_verdict(s, worst);
}

kiln_status kiln_stats_tell(kiln_run *r, const kiln_stats *s, kiln_error *err)
{
    const char *path = kiln_run_args(r)->positional[0];
    const char *activated = s->of_layer ? NULL : kiln_activation_noted(s->rows.in.scan.info.notes);
    if (activated) kiln_warn("%s", activated);
    if (kiln_run_json(r)) return report_stats(r, path, s, err);
    kiln_print("%s: %s, %s of SH degree %u%s", path, s->format,
               KILN_COUNT(s->n_rows, s->scene.kind == KILN_SCENE_SPLATS ? "Gaussian" : "point"),
               s->scene.sh_degree, s->scene.antialiased ? ", antialiased" : "");
    print_columns(s, kiln_run_prints_all(r, false));
    if (s->scene.kind == KILN_SCENE_SPLATS && isinf(s->fill_ratio))
        kiln_print("fill ratio inf: the positions span no area that Gaussians could fill");
    else if (s->scene.kind == KILN_SCENE_SPLATS)
        kiln_print("fill ratio %.4g: about so many Gaussians lie one over the other in a view of "
                   "all of it",
                   s->fill_ratio);
    if (s->n_views) print_pairs(s);
    return KILN_OK;
}
