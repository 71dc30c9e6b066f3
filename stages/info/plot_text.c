/* plot_text -- a plot as lines of text: a line a bar, the counts of a series beside its bars,
 * series side by side.
 *
 *   PSNR (dB)
 *   before: 120 views, median 34.2, from 31.5 to 36.1
 *     from  before                      after
 *       31  ████▌                   12  ██████▌                 17
 *       32  ...
 *     to 37
 *
 * The longest bar of all series is the one with the most. A bar of few is drawn at least as the
 * thinnest there is, so that it is not taken for none. What does not fit is made narrower in this
 * order: short counts (12k), series one below another, no counts. */
#include "stages/info/plot.h"

#include "base/minmax.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { GAP = 2, BAR_LEAST = 8, EIGHTHS = 8, LABEL = 32, COUNT = 24, TEXT = 320 };

typedef struct {
    int columns, label, bar, count; /* widths; count 0: none */
    bool ascii, is_short, stacked;
    uint64_t most;
} layout;

/* ---- numbers --------------------------------------------------------------------------------- */
/* Some digits of a number, but no exponent for one that is shorter without. */
static void number_text(double v, int digits, char out[LABEL])
{
    const bool is_whole = fabs(v) >= 1000 && fabs(v) < 1e9;
    (void)snprintf(out, LABEL, "%.*g", is_whole ? 10 : digits, is_whole ? round(v) : v);
}

static void border_text(const kiln_plot *p, int i, char out[LABEL])
{
    char number[LABEL];
    const bool is_end = i == p->n_bars && p->borders[i] > p->borders[0];
    number_text(p->borders[i], 3, number);
    (void)snprintf(out, LABEL, "%s%.20s", is_end ? "to " : "", number);
}

/* 1234567 as "1.23M". */
static void count_text(uint64_t n, bool is_short, char out[COUNT])
{
    static const char units[] = " kMGTPE";
    double v = (double)n;
    int unit = 0;
    while (v >= 999.5 && units[unit + 1]) {
        v /= 1000;
        unit++;
    }
    if (!is_short || unit == 0)
        (void)snprintf(out, COUNT, "%llu", (unsigned long long)n);
    else
        (void)snprintf(out, COUNT, "%.*f%c", v < 9.95 ? 1 : 0, v, units[unit]);
}

/* ---- widths ---------------------------------------------------------------------------------- */
static int label_width(const kiln_plot *p)
{
    char text[LABEL];
    int width = (int)strlen("from");
    for (int i = 0; i <= p->n_bars; i++) {
        border_text(p, i, text);
        if ((int)strlen(text) > width) width = (int)strlen(text);
    }
    return width;
}

static int count_width(const kiln_plot *p, bool is_short)
{
    char text[COUNT];
    int width = 1;
    for (int s = 0; s < p->n_series; s++)
        for (int i = 0; i < p->n_bars; i++) {
            count_text(p->series[s].bars[i], is_short, text);
            if ((int)strlen(text) > width) width = (int)strlen(text);
        }
    return width;
}

/* Columns that are left for a bar. */
static int bar_width(const layout *l, int n_series)
{
    const int side_by_side = l->stacked ? 1 : n_series;
    return (l->columns - l->label) / side_by_side - GAP - (l->count ? l->count + 1 : 0);
}

static layout make_layout(const kiln_plot *p, int columns, bool ascii)
{
    layout l = {.columns = columns < KILN_PLOT_COLUMNS_LEAST ? KILN_PLOT_COLUMNS_LEAST
                           : columns > KILN_PLOT_COLUMNS     ? KILN_PLOT_COLUMNS
                                                             : columns,
                .label = label_width(p),
                .ascii = ascii};
    for (int s = 0; s < p->n_series; s++)
        for (int i = 0; i < p->n_bars; i++) l.most = kiln_max_u64(l.most, p->series[s].bars[i]);
    for (int narrow = 0; narrow < 4; narrow++) {
        l.is_short = narrow & 1;
        l.stacked = narrow & 2;
        l.count = count_width(p, l.is_short);
        l.bar = bar_width(&l, p->n_series);
        if (l.bar >= BAR_LEAST) return l;
    }
    if (l.bar > 1) return l;
    l.count = 0;
    l.bar = bar_width(&l, p->n_series);
    return l;
}

/* ---- lines ----------------------------------------------------------------------------------- */
/* Breaks a text at blanks; a longer word is cut. */
static kiln_status put_wrapped(const char *text, int columns, kiln_buffer *out, kiln_error *err)
{
    while (*text) {
        size_t n = strlen(text), end = n;
        if (n > (size_t)columns) {
            end = (size_t)columns;
            while (end > 0 && text[end] != ' ') end--;
            if (end == 0) end = (size_t)columns;
        }
        KILN_TRY(kiln_buffer_printf(out, err, "%.*s\n", (int)end, text));
        text += end;
        while (*text == ' ') text++;
    }
    return KILN_OK;
}

static kiln_status put_summary(const kiln_plot *p, const kiln_plot_series *s, int columns,
                               kiln_buffer *out, kiln_error *err)
{
    char text[TEXT], of[COUNT + 8] = "", median[LABEL], least[LABEL], most[LABEL];
    const int what = (int)strlen(p->what) - (s->of == 1); /* "views": one is a view */
    number_text(s->median, 4, median);
    number_text(s->least, 4, least);
    number_text(s->most, 4, most);
    if (s->of > s->n) (void)snprintf(of, sizeof of, " of %llu", (unsigned long long)s->of);
    (void)snprintf(text, sizeof text, "%s%s%llu%s %.*s, median %s, from %s to %s", s->name,
                   *s->name ? ": " : "", (unsigned long long)s->n, of, what, p->what, median, least,
                   most);
    return put_wrapped(text, columns, out, err);
}

static int bar_eighths(const layout *l, uint64_t n)
{
    if (n == 0 || l->most == 0) return 0;
    const int eighths = (int)lround((double)n / (double)l->most * l->bar * EIGHTHS);
    return eighths < 1 ? 1 : eighths > l->bar * EIGHTHS ? l->bar * EIGHTHS : eighths;
}

/* U+2588 is a full block, U+2589 to U+258F are seven to one eighths of it. ASCII: '#', and '.' for
 * less than half of one. */
static kiln_status put_bar(const layout *l, uint64_t n, kiln_buffer *out, kiln_error *err)
{
    const int eighths = bar_eighths(l, n), part = eighths % EIGHTHS;
    int used = 0;
    for (; used < eighths / EIGHTHS; used++)
        KILN_TRY(kiln_buffer_put(out, l->ascii ? "#" : "\xE2\x96\x88", l->ascii ? 1 : 3, err));
    if (part && !l->ascii) {
        const char block[3] = {'\xE2', '\x96', (char)(0x90 - part)};
        KILN_TRY(kiln_buffer_put(out, block, sizeof block, err));
        used++;
    } else if (part && (part >= EIGHTHS / 2 || used == 0)) {
        KILN_TRY(kiln_buffer_put(out, part >= EIGHTHS / 2 ? "#" : ".", 1, err));
        used++;
    }
    return kiln_buffer_printf(out, err, "%*s", l->bar - used, "");
}

static kiln_status put_row(const kiln_plot *p, const layout *l, int first, int last, int bar,
                           kiln_buffer *out, kiln_error *err)
{
    char text[LABEL], n[COUNT];
    border_text(p, bar, text);
    KILN_TRY(kiln_buffer_printf(out, err, "%*s", l->label, text));
    for (int s = first; s < last; s++) {
        KILN_TRY(kiln_buffer_printf(out, err, "%*s", GAP, ""));
        KILN_TRY(put_bar(l, p->series[s].bars[bar], out, err));
        if (!l->count) continue;
        count_text(p->series[s].bars[bar], l->is_short, n);
        KILN_TRY(kiln_buffer_printf(out, err, " %*s", l->count, n));
    }
    while (out->size && out->data[out->size - 1] == ' ') out->size--;
    return kiln_buffer_put(out, "\n", 1, err);
}

/* The names of the series stand above their bars. */
static kiln_status put_heading(const kiln_plot *p, const layout *l, int first, int last,
                               kiln_buffer *out, kiln_error *err)
{
    const int width = l->bar + (l->count ? l->count + 1 : 0);
    KILN_TRY(kiln_buffer_printf(out, err, "%*s", l->label, "from"));
    for (int s = first; s < last; s++)
        KILN_TRY(
            kiln_buffer_printf(out, err, "%*s%-*.*s", GAP, "", width, width, p->series[s].name));
    while (out->size && out->data[out->size - 1] == ' ') out->size--;
    return kiln_buffer_put(out, "\n", 1, err);
}

static kiln_status put_series(const kiln_plot *p, const layout *l, int first, int last,
                              kiln_buffer *out, kiln_error *err)
{
    char end[LABEL];
    KILN_TRY(put_heading(p, l, first, last, out, err));
    for (int i = 0; i < p->n_bars; i++) KILN_TRY(put_row(p, l, first, last, i, out, err));
    border_text(p, p->n_bars, end);
    /* one bar of equal numbers needs no end */
    if (!(p->borders[p->n_bars] > p->borders[0])) return KILN_OK;
    return kiln_buffer_printf(out, err, "%*s\n", l->label, end);
}

kiln_status kiln_plot_text(const kiln_plot *p, int columns, bool ascii, kiln_buffer *out,
                           kiln_error *err)
{
    char title[TEXT];
    const layout l = make_layout(p, columns, ascii);
    (void)snprintf(title, sizeof title, "%s (%s)", p->title, p->unit);
    KILN_TRY(put_wrapped(title, l.columns, out, err));
    for (int s = 0; s < p->n_series; s++)
        KILN_TRY(put_summary(p, &p->series[s], l.columns, out, err));
    if (!l.stacked) return put_series(p, &l, 0, p->n_series, out, err);
    for (int s = 0; s < p->n_series; s++) KILN_TRY(put_series(p, &l, s, s + 1, out, err));
    return KILN_OK;
}
