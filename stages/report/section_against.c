/* section_against -- what is another than in the bake that --against names: numbers, parameters,
 * and cameras by how much they changed. */
#include "stages/report/report_page.h"

#include "stages/report/pair_card.h"
#include "stages/report/report_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool has_against_section(const kiln_report *r) { return r->against != NULL; }

/* ---- numbers --------------------------------------------------------------------------------- */
typedef enum { AS_COUNT, AS_BYTES, AS_SECONDS, AS_DECIBELS, AS_SSIM } unit;

typedef struct {
    double now, then;
    unit unit;
} change;

static kiln_cell cell_of_value(double v, unit u)
{
    if (!isfinite(v)) return kiln_none();
    if (u == AS_COUNT) return kiln_count((uint64_t)v);
    if (u == AS_BYTES) return kiln_bytes((uint64_t)v);
    if (u == AS_SECONDS) return kiln_seconds(v);
    return kiln_decimal(v, u == AS_SSIM ? 4 : 3);
}

/* Of quality the difference, of all else percent. */
static void write_change(kiln_html *h, const void *context)
{
    const change *c = context;
    const double d = c->now - c->then;
    if (!isfinite(d)) return;
    if (d == 0) {
        KILN_HTML(h, "<small>as before</small>");
        return;
    }
    kiln_html_text(h, d > 0 ? "+" : "\xe2\x88\x92");
    if (c->unit == AS_DECIBELS || c->unit == AS_SSIM) {
        kiln_html_fixed(h, fabs(d), c->unit == AS_SSIM ? 4 : 3);
    } else if (c->then > 0) {
        kiln_html_fixed(h, 100 * fabs(d) / c->then, 1);
        KILN_HTML(h, " %");
    } else {
        kiln_cell_write(h, cell_of_value(fabs(d), c->unit));
    }
}

static const kiln_column number_columns[] = {
    {"", NULL}, {"Other", "n"}, {"This", "n"}, {"Change", "n"}};

static void write_number(kiln_html *h, const char *what, double now, double then, unit u)
{
    const change c = {now, then, u};
    const kiln_cell cells[] = {kiln_text(what), cell_of_value(then, u), cell_of_value(now, u),
                               kiln_by(write_change, &c)};
    if (isfinite(now) || isfinite(then)) kiln_table_row(h, number_columns, cells, 4);
}

typedef struct {
    double rows, chunks, cameras, psnr, ssim, pairs, bytes, seconds;
} numbers;

static numbers numbers_of(const kiln_bake_facts *b)
{
    const kiln_layer *last = kiln_bake_last_layer(b), *baked = b->layers[KILN_LAYER_baked];
    numbers n = {.rows = last ? (double)last->count : NAN,
                 .chunks = baked ? (double)baked->n_chunks : NAN,
                 .cameras = b->views.n_cameras,
                 .pairs = (double)kiln_bake_views_pairs(&b->views),
                 .bytes = (double)b->file_bytes,
                 .seconds = kiln_bake_seconds(b)};
    uint64_t views;
    if (!kiln_bake_views_mean(&b->views, true, &n.psnr, &n.ssim, &views) &&
        !kiln_bake_views_mean(&b->views, false, &n.psnr, &n.ssim, &views))
        n.psnr = n.ssim = NAN;
    return n;
}

/* A change, and below it from what to what. */
static void write_step(kiln_html *h, const void *context)
{
    const change *c = context;
    write_change(h, c);
    if (c->unit == AS_DECIBELS) KILN_HTML(h, "<small> dB</small>");
    KILN_HTML(h, "<small class=\"step\">");
    kiln_cell_write(h, cell_of_value(c->then, c->unit));
    KILN_HTML(h, " \xe2\x86\x92 ");
    kiln_cell_write(h, cell_of_value(c->now, c->unit));
    KILN_HTML(h, "</small>");
}

static kiln_cell step_of(const change *c)
{
    return isfinite(c->now - c->then) ? kiln_by(write_step, c) : kiln_none();
}

/* What changed, in one look. */
static void write_steps(kiln_html *h, const numbers *now, const numbers *then)
{
    const change rows = {now->rows, then->rows, AS_COUNT},
                 chunks = {now->chunks, then->chunks, AS_COUNT};
    const change psnr = {now->psnr, then->psnr, AS_DECIBELS},
                 ssim = {now->ssim, then->ssim, AS_SSIM};
    const change pairs = {now->pairs, then->pairs, AS_COUNT};
    const kiln_fact facts[] = {{"Gaussians", step_of(&rows)},
                               {"PSNR", step_of(&psnr)},
                               {"SSIM", step_of(&ssim)},
                               {"Pairs of all cameras", step_of(&pairs)},
                               {"Chunks", step_of(&chunks)}};
    kiln_facts(h, "strip", facts, sizeof facts / sizeof *facts);
}

static void write_numbers(kiln_html *h, const numbers *now, const numbers *then)
{
    KILN_HTML(h, "<h3>Numbers</h3>");
    kiln_table_begin(h, "Numbers of both bakes", "", number_columns, 4);
    write_number(h, "Gaussians", now->rows, then->rows, AS_COUNT);
    write_number(h, "Chunks", now->chunks, then->chunks, AS_COUNT);
    write_number(h, "Cameras", now->cameras, then->cameras, AS_COUNT);
    write_number(h, "PSNR in dB", now->psnr, then->psnr, AS_DECIBELS);
    write_number(h, "SSIM", now->ssim, then->ssim, AS_SSIM);
    write_number(h, "Pairs of all cameras", now->pairs, then->pairs, AS_COUNT);
    write_number(h, "Manifest", now->bytes, then->bytes, AS_BYTES);
    write_number(h, "Baked in", now->seconds, then->seconds, AS_SECONDS);
    kiln_table_end(h);
}

/* ---- parameters ------------------------------------------------------------------------------ */
static const kiln_column parameter_columns[] = {
    {"Option", NULL}, {"Other", "hash"}, {"This", "hash"}};

static void write_parameter(kiln_html *h, const char *stage, const char *key, const char *now,
                            const char *then, bool *begun)
{
    char option[128];
    (void)snprintf(option, sizeof option, "kiln-%s --%.100s", stage, key);
    if (!*begun) {
        KILN_HTML(h, "<h3>Other parameters</h3>");
        kiln_table_begin(h, "Parameters that differ", "", parameter_columns, 3);
    }
    *begun = true;
    kiln_table_row(h, parameter_columns,
                   (kiln_cell[]){kiln_text(option), kiln_text(then), kiln_text(now)}, 3);
}

/* One that only the other bake has is an option of another version: its value here is none. */
static void compare_parameters(kiln_html *h, const kiln_stage_facts *now,
                               const kiln_stage_facts *then, bool *begun)
{
    const char *key;
    json_t *v;
    if (!now->ran || !then->ran) return;
    json_object_foreach(now->parameters, key, v)
    {
        const char *a = kiln_json_text_of(now->parameters, key),
                   *b = kiln_json_text_of(then->parameters, key);
        if (strcmp(a, b) == 0) continue;
        write_parameter(h, now->name, key, a, b, begun);
    }
    json_object_foreach(then->parameters, key, v)
    {
        if (json_object_get(now->parameters, key) || !*kiln_json_text_of(then->parameters, key))
            continue;
        write_parameter(h, now->name, key, "", kiln_json_text_of(then->parameters, key), begun);
    }
}

static void write_parameters(kiln_html *h, const kiln_report *r)
{
    bool begun = false;
    for (int i = 0; i < KILN_STAGE_COUNT; i++)
        compare_parameters(h, &r->bake->stages[i], &r->against->stages[i], &begun);
    if (begun) kiln_table_end(h);
}

/* ---- rules ----------------------------------------------------------------------------------- */
static uint64_t touched(const json_t *rules, const char *name)
{
    const json_t *rule = json_object_get(rules, name);
    return kiln_json_count_of(rule, "dropped") + kiln_json_count_of(rule, "clamped");
}

static void write_rules(kiln_html *h, const kiln_report *r)
{
    const json_t *then = json_object_get(kiln_bake_stage(r->against, "prune")->counters, "rules");
    json_t *now = json_object_get(kiln_bake_stage(r->bake, "prune")->counters, "rules"), *v;
    const char *name;
    bool begun = false;
    json_object_foreach(now, name, v)
    {
        if (touched(now, name) == touched(then, name)) continue;
        if (!begun) {
            KILN_HTML(h, "<h3>Rows that rules of prune dropped or clamped</h3>");
            kiln_table_begin(h, "Rules of prune", "", number_columns, 4);
        }
        begun = true;
        write_number(h, name, (double)touched(now, name), (double)touched(then, name), AS_COUNT);
    }
    if (begun) kiln_table_end(h);
}

/* ---- cameras --------------------------------------------------------------------------------- */
typedef struct {
    double change, most; /* dB; of all cameras */
} deviation;

/* A bar from the middle: to the left what became worse. */
static void write_deviation(kiln_html *h, const void *context)
{
    const deviation *d = context;
    const double length = d->most > 0 ? 500 * fabs(d->change) / d->most : 0;
    KILN_HTML(
        h, "<svg preserveAspectRatio=\"none\" viewBox=\"0 0 1000 10\" aria-hidden=\"true\"><rect");
    KILN_ATTR(h, "class", d->change < 0 ? "worse" : "whole");
    KILN_ATTR_XY(h, "x", d->change < 0 ? 500 - length : 500);
    KILN_ATTR_XY(h, "width", length);
    KILN_HTML(h, " y=\"0\" height=\"10\"/><rect class=\"middle\" x=\"499\" y=\"0\" width=\"2\" "
                 "height=\"10\"/></svg>");
}

static const kiln_column camera_columns[] = {{"Camera", NULL},  {"Worse, better", "bar"},
                                             {"Other dB", "n"}, {"This dB", "n"},
                                             {"Change", "n"},   {"Pairs", "n"}};

static void write_camera(kiln_html *h, const kiln_view_change *v, double most)
{
    const deviation d = {v->change, most};
    const change psnr = {v->now->psnr, v->then->psnr, AS_DECIBELS},
                 pairs = {(double)v->now->pairs, (double)v->then->pairs, AS_COUNT};
    const kiln_cell cells[] = {kiln_text(v->now->camera),      kiln_by(write_deviation, &d),
                               kiln_decimal(v->then->psnr, 3), kiln_decimal(v->now->psnr, 3),
                               kiln_by(write_change, &psnr),   kiln_by(write_change, &pairs)};
    kiln_table_row(h, camera_columns, cells, 6);
}

/* Of hundreds the ones that changed most, from both ends. */
static void write_changes(kiln_html *h, const kiln_view_change *list, uint32_t n)
{
    enum { END = 12 };
    const double most = fmax(fabs(list[0].change), fabs(list[n - 1].change));
    KILN_HTML(h, "<h3>Cameras by change of PSNR</h3>");
    if (n > 2 * END) {
        KILN_HTML(h, "<p class=\"note\">The ");
        kiln_html_count(h, 2 * END);
        KILN_HTML(h, " of ");
        kiln_html_count(h, n);
        KILN_HTML(h, " at both ends.</p>");
    }
    kiln_table_begin(h, "Cameras by change", "time", camera_columns, 6);
    for (uint32_t i = 0; i < n; i++)
        if (i < END || i + END >= n) write_camera(h, &list[i], most);
    kiln_table_end(h);
}

static void write_cameras(kiln_html *h, const kiln_report *r)
{
    kiln_view_change *list;
    uint32_t n;
    if (h->st != KILN_OK) return;
    h->st = kiln_view_changes_get(&r->bake->views, &r->against->views, &list, &n, h->err);
    if (h->st != KILN_OK) return;
    if (n) write_changes(h, list, n);
    free(list);
}

/* ---- pictures -------------------------------------------------------------------------------- */
static void write_why(kiln_html *h, const char *whose, const char *why)
{
    if (!why) return;
    KILN_HTML(h, "<p class=\"note\">");
    kiln_html_text(h, whose);
    KILN_HTML(h, ": ");
    kiln_html_text(h, why);
    KILN_HTML(h, "</p>");
}

static void write_picture(kiln_html *h, const kiln_change_pictures *p, uint32_t i)
{
    const kiln_view_change *v = &p->views[i].of;
    const change psnr = {v->now->psnr, v->then->psnr, AS_DECIBELS};
    KILN_HTML(h, "<article class=\"view\"><h4>");
    kiln_html_text(h, v->now->camera);
    KILN_HTML(h, "</h4><p class=\"numbers\">");
    write_change(h, &psnr);
    KILN_HTML(h, " dB: ");
    kiln_html_fixed(h, v->then->psnr, 2);
    KILN_HTML(h, " \xe2\x86\x92 ");
    kiln_html_fixed(h, v->now->psnr, 2);
    KILN_HTML(h, "</p>");
    kiln_pair_card_write(
        h,
        &(kiln_pair_card){
            .set = "a", .number = i, .pair = &p->views[i].pair, .left = "Other", .right = "This"});
    write_why(h, "Other", p->views[i].no_other);
    write_why(h, "This", p->views[i].no_picture);
    KILN_HTML(h, "</article>");
}

static void write_pictures(kiln_html *h, const kiln_report *r)
{
    const kiln_change_pictures *p = r->changes;
    if (p->n == 0) return;
    KILN_HTML(h, "<h3>Pictures that changed most</h3>");
    if (p->one_folder) {
        KILN_HTML(h, "<p class=\"note\">Both bakes write their pictures into one folder, so only "
                     "those of the last one are there. "
                     "Bakes in folders of their own are shown side by side.</p>");
        return;
    }
    KILN_HTML(h, "<div class=\"views\">");
    for (uint32_t i = 0; i < p->n; i++) write_picture(h, p, i);
    KILN_HTML(h, "</div>");
}

static void write_against_section(kiln_html *h, const kiln_report *r)
{
    const numbers now = numbers_of(r->bake), then = numbers_of(r->against);
    KILN_HTML(h, "<p class=\"where\">The other bake: ");
    kiln_html_text(h, kiln_manifest_path(r->against->m));
    KILN_HTML(h, "</p>");
    write_steps(h, &now, &then);
    write_parameters(h, r);
    write_rules(h, r);
    write_pictures(h, r);
    write_cameras(h, r);
    write_numbers(h, &now, &then);
}

const kiln_report_section kiln_section_against = {.id = "against",
                                                  .title = "Compared",
                                                  .has = has_against_section,
                                                  .write = write_against_section};
