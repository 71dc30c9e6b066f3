/* info_plots -- histograms of a bake: Gaussians before and after pruning, PSNR of the cameras, rows
 * of the chunks. What Gaussians are like is counted where kiln-report has it from, too
 * (row_survey.h). */
#include "stages/info/info_internal.h"

#include "base/quote.h"
#include "stages/info/plot.h"
#include "stages/survey/row_survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Takes the plot into the document, unless nothing was counted. */
static kiln_status add_plot(json_t *plots, const char *key, const kiln_plot *p, kiln_error *err)
{
    return p->n_series ? kiln_info_set(plots, key, kiln_plot_json(p), err) : KILN_OK;
}

/* ---- Gaussians ------------------------------------------------------------------------------- */
/* Opacities have a bar for each tenth. */
static int bars_wanted(kiln_survey_kind kind)
{
    return kind == KILN_SURVEY_OPACITY ? 10 : KILN_PLOT_BARS;
}

static void add_series(kiln_plot *p, const char *name, const kiln_row_survey *rows,
                       kiln_survey_kind kind, const uint64_t *bars)
{
    const kiln_distribution *d = &rows->of[kind];
    if (d->rows == 0) return;
    kiln_plot_series *s = &p->series[p->n_series++];
    *s = (kiln_plot_series){.name = name,
                            .n = d->rows,
                            .of = rows->rows,
                            .least = kiln_distribution_value(d, kind, 0),
                            .median = kiln_distribution_value(d, kind, 0.5),
                            .most = kiln_distribution_value(d, kind, 1)};
    memcpy(s->bars, bars, (size_t)p->n_bars * sizeof *bars);
}

static kiln_status add_distribution(json_t *plots, const kiln_prune_survey *s,
                                    kiln_survey_kind kind, kiln_error *err)
{
    const kiln_survey_info *info = &kiln_survey_infos[kind];
    const kiln_distribution *const d[2] = {&s->before.of[kind], &s->after.of[kind]};
    kiln_plot p = {.title = info->title, .unit = info->unit, .what = "Gaussians"};
    kiln_survey_bars b;
    kiln_survey_join(kind, d, bars_wanted(kind), &b);
    int first = 0, last = b.n - 1; /* bars that have rows; of opacities all */
    while (info->is_log && first < last && !(b.bars[0][first] || b.bars[1][first])) first++;
    while (info->is_log && last > first && !(b.bars[0][last] || b.bars[1][last])) last--;
    p.n_bars = last - first + 1;
    for (int i = 0; i <= p.n_bars; i++)
        p.borders[i] = kiln_survey_border(kind, b.first + (first + i) * b.join);
    add_series(&p, "before", &s->before, kind, b.bars[0] + first);
    add_series(&p, "after", &s->after, kind, b.bars[1] + first);
    return add_plot(plots, info->key, &p, err);
}

static kiln_status add_distributions(const kiln_bake_facts *facts, json_t *plots, kiln_error *err)
{
    kiln_prune_survey *s;
    KILN_TRY(KILN_ALLOC(&s, 1, "distributions", err)); /* too big for the stack */
    kiln_status st = kiln_prune_survey_make(facts, s, err);
    for (int k = 0; st == KILN_OK && k < KILN_SURVEY_KINDS; k++)
        st = add_distribution(plots, s, (kiln_survey_kind)k, err);
    free(s);
    return st;
}

/* ---- cameras and chunks ---------------------------------------------------------------------- */
/* The PSNR of each camera of the test split, or of the others; NAN without one. Returns how many
 * there are. */
static uint64_t list_psnr(const kiln_bake_views *v, bool test, double *out)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < v->n_cameras; i++) {
        const kiln_bake_image *image = kiln_bake_view_image(v, v->cameras[i].name);
        if ((strcmp(v->cameras[i].split, "test") == 0) == test)
            out[n++] = image ? image->psnr : NAN;
    }
    return n;
}

static kiln_status add_psnr(const kiln_bake_views *v, json_t *plots, kiln_error *err)
{
    kiln_plot p = {.title = "PSNR of pictures against photos", .unit = "dB", .what = "views"};
    double *psnr, least, most;
    KILN_TRY(KILN_ALLOC(&psnr, v->n_cameras, "PSNR of the cameras", err));
    const uint64_t n_test = list_psnr(v, true, psnr),
                   n = n_test + list_psnr(v, false, psnr + n_test);
    if (kiln_plot_range(psnr, n, &least, &most)) {
        kiln_plot_add_values(&p, "test split", psnr, n_test, least, most);
        kiln_plot_add_values(&p, "others", psnr + n_test, n - n_test, least, most);
    }
    free(psnr);
    return add_plot(plots, "psnr", &p, err);
}

static kiln_status add_chunks(const kiln_layer *baked, json_t *plots, kiln_error *err)
{
    kiln_plot p = {.title = "Rows of a chunk", .unit = "Gaussians", .what = "chunks"};
    double *rows, least, most;
    if (!baked) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&rows, baked->n_chunks, "rows of the chunks", err));
    for (uint32_t i = 0; i < baked->n_chunks; i++) rows[i] = (double)baked->chunks[i].count;
    if (kiln_plot_range(rows, baked->n_chunks, &least, &most))
        kiln_plot_add_values(&p, "", rows, baked->n_chunks, least, most);
    free(rows);
    return add_plot(plots, "chunk_rows", &p, err);
}

kiln_status kiln_info_plots(kiln_manifest *m, json_t *info, kiln_error *err)
{
    kiln_bake_facts *facts;
    kiln_status st = KILN_OK;
    json_t *plots = json_object();
    KILN_TRY(kiln_info_set(info, "plots", plots, err));
    KILN_TRY(KILN_ALLOC(&facts, 1, "what is known of the bake", err));
    KILN_GO(kiln_bake_facts_get(m, facts, err));
    KILN_GO(add_distributions(facts, plots, err));
    KILN_GO(add_psnr(&facts->views, plots, err));
    KILN_GO(add_chunks(facts->layers[KILN_LAYER_baked], plots, err));
done:
    kiln_bake_facts_release(facts);
    free(facts);
    return st;
}

/* ---- for people ------------------------------------------------------------------------------ */
static int terminal_columns(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col
                                                                       : KILN_PLOT_COLUMNS;
}

/* kiln_print takes a line at a time. */
static void print_lines(char *text)
{
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        kiln_print("%s", line);
    }
}

kiln_status kiln_info_print_plots(const json_t *info, bool ascii, kiln_error *err)
{
    const char *key;
    json_t *one;
    kiln_plot p;
    if (json_object_size(json_object_get(info, "plots")) == 0) {
        kiln_print_gap();
        kiln_print(
            "nothing to plot yet: the bake has no Gaussians, no measured pictures and no chunks");
    }
    json_object_foreach(json_object_get(info, "plots"), key, one)
    {
        kiln_buffer text = {0};
        if (!kiln_plot_of_json(one, &p)) continue;
        kiln_status st = kiln_plot_text(&p, terminal_columns(), ascii, &text, err);
        if (st == KILN_OK) st = kiln_buffer_put(&text, NULL, 1, err);
        kiln_print_gap();
        if (st == KILN_OK) print_lines((char *)text.data);
        kiln_buffer_release(&text);
        KILN_TRY(st);
    }
    return KILN_OK;
}
