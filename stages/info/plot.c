/* plot -- counting numbers into bars, and the JSON of a plot. */
#include "stages/info/plot.h"

#include "stages/engine/json_text.h"

#include <math.h>
#include <stdlib.h>

/* ---- counting -------------------------------------------------------------------------------- */
bool kiln_plot_range(const double *values, uint64_t n, double *least, double *most)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (!isfinite(values[i])) continue;
        *least = found ? fmin(*least, values[i]) : values[i];
        *most = found ? fmax(*most, values[i]) : values[i];
        found++;
    }
    return found > 0;
}

/* 1, 2 or 5 times a power of ten, the least that is not below v. 0: v is too small, or no
 * number. */
static double round_step(double v)
{
    static const double steps[] = {1, 2, 5, 10};
    const double power = pow(10, floor(log10(v)));
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (isnormal(power) && steps[i] * power >= v * (1 - 1e-9)) return steps[i] * power;
    return 0;
}

/* Two of the bars are for numbers that lie across the outermost round borders. The parts are
 * divided first: their difference may be too large for a double. */
static void set_borders(kiln_plot *p, double least, double most)
{
    const double step = round_step(most / (KILN_PLOT_BARS - 2) - least / (KILN_PLOT_BARS - 2));
    const double first = floor(least / step);
    p->n_bars = 1;
    p->borders[0] = least;
    p->borders[1] = most;
    if (!isnormal(step) || !isfinite(first)) return; /* all are as good as equal */
    const double n = floor(most / step) - first + 1;
    p->n_bars = n < 1 ? 1 : n > KILN_PLOT_BARS ? KILN_PLOT_BARS : (int)n;
    for (int i = 0; i <= p->n_bars; i++) p->borders[i] = (first + i) * step;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int bar_of(const kiln_plot *p, double v)
{
    int bar = 0;
    while (bar + 1 < p->n_bars && v >= p->borders[bar + 1]) bar++;
    return bar;
}

void kiln_plot_add_values(kiln_plot *p, const char *name, double *values, uint64_t n, double least,
                          double most)
{
    kiln_plot_series s = {.name = name, .of = n};
    for (uint64_t i = 0; i < n; i++)
        if (isfinite(values[i])) values[s.n++] = values[i];
    if (s.n == 0 || p->n_series == KILN_PLOT_SERIES) return;
    if (p->n_series == 0) set_borders(p, least, most);
    qsort(values, s.n, sizeof *values, ascending);
    s.least = values[0];
    s.most = values[s.n - 1];
    /* of an even number the lower of the two, as kiln-prune's and kiln-chunk's */
    s.median = values[(s.n - 1) / 2];
    for (uint64_t i = 0; i < s.n; i++) s.bars[bar_of(p, values[i])]++;
    p->series[p->n_series++] = s;
}

/* ---- JSON ------------------------------------------------------------------------------------ */
static json_t *plot_counts_json(const uint64_t *counts, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        if (json_array_append_new(list, json_integer((json_int_t)counts[i])) != 0) goto failed;
    return list;
failed:
    json_decref(list);
    return NULL;
}

static json_t *series_json(const kiln_plot_series *s, int n_bars)
{
    return json_pack("{s:o, s:I, s:I, s:o, s:o, s:o, s:o}", "name", kiln_json_string(s->name),
                     "counted", (json_int_t)s->n, "of", (json_int_t)s->of, "least",
                     kiln_json_real(s->least), "median", kiln_json_real(s->median), "most",
                     kiln_json_real(s->most), "counts", plot_counts_json(s->bars, n_bars));
}

json_t *kiln_plot_json(const kiln_plot *p)
{
    json_t *series = json_array();
    for (int i = 0; i < p->n_series; i++)
        if (json_array_append_new(series, series_json(&p->series[i], p->n_bars)) != 0) {
            json_decref(series);
            return NULL;
        }
    return json_pack("{s:s, s:s, s:s, s:o, s:o}", "title", p->title, "unit", p->unit, "what",
                     p->what, "borders", kiln_json_reals(p->borders, p->n_bars + 1), "series",
                     series);
}

/* JSON has no NAN: null is one. */
static double real_of(const json_t *v) { return json_is_number(v) ? json_number_value(v) : NAN; }
static uint64_t count_of(const json_t *v)
{
    return json_integer_value(v) > 0 ? (uint64_t)json_integer_value(v) : 0;
}

static bool series_of_json(const json_t *json, int n_bars, kiln_plot_series *s)
{
    const json_t *counts = json_object_get(json, "counts");
    *s = (kiln_plot_series){.name = json_string_value(json_object_get(json, "name")),
                            .n = count_of(json_object_get(json, "counted")),
                            .of = count_of(json_object_get(json, "of")),
                            .least = real_of(json_object_get(json, "least")),
                            .median = real_of(json_object_get(json, "median")),
                            .most = real_of(json_object_get(json, "most"))};
    if (!s->name || json_array_size(counts) != (size_t)n_bars) return false;
    for (int i = 0; i < n_bars; i++) s->bars[i] = count_of(json_array_get(counts, (size_t)i));
    return true;
}

bool kiln_plot_of_json(const json_t *json, kiln_plot *out)
{
    const json_t *borders = json_object_get(json, "borders"),
                 *series = json_object_get(json, "series");
    const size_t n = json_array_size(borders);
    *out = (kiln_plot){.title = json_string_value(json_object_get(json, "title")),
                       .unit = json_string_value(json_object_get(json, "unit")),
                       .what = json_string_value(json_object_get(json, "what")),
                       .n_series = (int)json_array_size(series)};
    if (!out->title || !out->unit || !out->what || n < 2 || n > KILN_PLOT_BARS + 1) return false;
    if (out->n_series < 1 || out->n_series > KILN_PLOT_SERIES) return false;
    out->n_bars = (int)n - 1;
    for (size_t i = 0; i < n; i++) out->borders[i] = real_of(json_array_get(borders, i));
    for (int i = 0; i < out->n_series; i++)
        if (!series_of_json(json_array_get(series, (size_t)i), out->n_bars, &out->series[i]))
            return false;
    return true;
}
