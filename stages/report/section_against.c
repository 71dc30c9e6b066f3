/* section_against -- what is another than in the bake that --against names: numbers, parameters, and cameras by how much they
 * changed. */
#include "stages/report/report_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool has(const kiln_report *r) { return r->against != NULL; }

/* ---- numbers ---------------------------------------------------------------------------------------------------------------- */
typedef enum { AS_COUNT, AS_BYTES, AS_SECONDS, AS_DECIBELS, AS_SSIM } unit;

static void write_value(kiln_html *h, double v, unit u)
{
    if (!isfinite(v))
        KILN_HTML(h, "\xe2\x80\x93");
    else if (u == AS_COUNT)
        kiln_html_count(h, (uint64_t)v);
    else if (u == AS_BYTES)
        kiln_html_bytes(h, (uint64_t)v);
    else if (u == AS_SECONDS)
        kiln_html_seconds(h, v);
    else
        kiln_html_fixed(h, v, u == AS_SSIM ? 4 : 3);
}

static void write_change(kiln_html *h, double now, double then, unit u)
{
    const double d = now - then;
    if (!isfinite(d)) return;
    if (d == 0) {
        KILN_HTML(h, "<small>as before</small>");
        return;
    }
    kiln_html_text(h, d > 0 ? "+" : "\xe2\x88\x92");
    if (u == AS_DECIBELS || u == AS_SSIM) {
        kiln_html_fixed(h, fabs(d), u == AS_SSIM ? 4 : 3);
    } else if (then > 0) {
        kiln_html_fixed(h, 100 * fabs(d) / then, 1);
        KILN_HTML(h, " %");
    } else {
        write_value(h, fabs(d), u);
    }
}

static void write_number(kiln_html *h, const char *what, double now, double then, unit u)
{
    if (!isfinite(now) && !isfinite(then)) return;
    KILN_HTML(h, "<tr><th scope=\"row\">");
    kiln_html_text(h, what);
    KILN_HTML(h, "</th><td class=\"n\">");
    write_value(h, then, u);
    KILN_HTML(h, "</td><td class=\"n\">");
    write_value(h, now, u);
    KILN_HTML(h, "</td><td class=\"n\">");
    write_change(h, now, then, u);
    KILN_HTML(h, "</td></tr>");
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

static void write_numbers(kiln_html *h, const kiln_report *r)
{
    const numbers now = numbers_of(r->bake), then = numbers_of(r->against);
    KILN_TABLE_BEGIN(h, "Numbers of both bakes", "");
    KILN_HTML(h, "<thead><tr><td></td><th scope=\"col\" class=\"n\">Other</th><th scope=\"col\" class=\"n\">This</th>"
                 "<th scope=\"col\" class=\"n\">Change</th></tr></thead><tbody>");
    write_number(h, "Gaussians", now.rows, then.rows, AS_COUNT);
    write_number(h, "Chunks", now.chunks, then.chunks, AS_COUNT);
    write_number(h, "Cameras", now.cameras, then.cameras, AS_COUNT);
    write_number(h, "PSNR in dB", now.psnr, then.psnr, AS_DECIBELS);
    write_number(h, "SSIM", now.ssim, then.ssim, AS_SSIM);
    write_number(h, "Pairs of all cameras", now.pairs, then.pairs, AS_COUNT);
    write_number(h, "Manifest", now.bytes, then.bytes, AS_BYTES);
    write_number(h, "Baked in", now.seconds, then.seconds, AS_SECONDS);
    KILN_TABLE_END(h);
}

/* ---- parameters ---------------------------------------------------------------------------------------------------------- */
static void begin_parameters(kiln_html *h, bool *begun)
{
    if (*begun) return;
    *begun = true;
    KILN_HTML(h, "<h3>Other parameters</h3>");
    KILN_TABLE_BEGIN(h, "Parameters that differ", "");
    KILN_HTML(
        h, "<thead><tr><th scope=\"col\">Option</th><th scope=\"col\">Other</th><th scope=\"col\">This</th></tr></thead><tbody>");
}

static void write_parameter(kiln_html *h, const char *stage, const char *key, const char *now, const char *then)
{
    KILN_HTML(h, "<tr><th scope=\"row\">kiln-");
    kiln_html_text(h, stage);
    KILN_HTML(h, " --");
    kiln_html_text(h, key);
    KILN_HTML(h, "</th><td class=\"hash\">");
    kiln_html_text(h, then);
    KILN_HTML(h, "</td><td class=\"hash\">");
    kiln_html_text(h, now);
    KILN_HTML(h, "</td></tr>");
}

/* One that only the other bake has is an option of another version: its value here is none. */
static void compare_parameters(kiln_html *h, const kiln_stage_facts *now, const kiln_stage_facts *then, bool *begun)
{
    const char *key;
    json_t *v;
    if (!now->ran || !then->ran) return;
    json_object_foreach(now->parameters, key, v)
    {
        const char *a = kiln_json_text_of(now->parameters, key), *b = kiln_json_text_of(then->parameters, key);
        if (strcmp(a, b) == 0) continue;
        begin_parameters(h, begun);
        write_parameter(h, now->name, key, a, b);
    }
    json_object_foreach(then->parameters, key, v)
    {
        if (json_object_get(now->parameters, key) || !*kiln_json_text_of(then->parameters, key)) continue;
        begin_parameters(h, begun);
        write_parameter(h, now->name, key, "", kiln_json_text_of(then->parameters, key));
    }
}

static void write_parameters(kiln_html *h, const kiln_report *r)
{
    bool begun = false;
    for (int i = 0; i < KILN_STAGE_COUNT; i++) compare_parameters(h, &r->bake->stages[i], &r->against->stages[i], &begun);
    if (begun) KILN_TABLE_END(h);
}

/* ---- rules ------------------------------------------------------------------------------------------------------------------ */
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
            KILN_TABLE_BEGIN(h, "Rules of prune", "");
            KILN_HTML(h, "<thead><tr><th scope=\"col\">Rule</th><th scope=\"col\" class=\"n\">Other</th><th scope=\"col\" "
                         "class=\"n\">This</th>"
                         "<th scope=\"col\" class=\"n\">Change</th></tr></thead><tbody>");
        }
        begun = true;
        write_number(h, name, (double)touched(now, name), (double)touched(then, name), AS_COUNT);
    }
    if (begun) KILN_TABLE_END(h);
}

/* ---- cameras ---------------------------------------------------------------------------------------------------------------- */
typedef struct {
    const kiln_image *now, *then;
    double change; /* of PSNR */
} pair;

static int by_change(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    if (x->change != y->change) return x->change < y->change ? -1 : 1;
    return strcmp(x->now->camera, y->now->camera);
}

static uint32_t find_pairs(const kiln_report *r, pair *pairs)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->bake->views.n_cameras; i++) {
        const char *camera = r->bake->views.cameras[i].name;
        const kiln_image *now = kiln_bake_view_image(&r->bake->views, camera),
                         *then = kiln_bake_view_image(&r->against->views, camera);
        if (!now || !then || !isfinite(now->psnr) || !isfinite(then->psnr)) continue;
        pairs[n++] = (pair){now, then, now->psnr - then->psnr};
    }
    qsort(pairs, n, sizeof *pairs, by_change);
    return n;
}

/* Bars from the middle: to the left what became worse. */
static void write_pair(kiln_html *h, const pair *p, double most)
{
    const double length = most > 0 ? 500 * fabs(p->change) / most : 0;
    KILN_HTML(h, "<tr><th scope=\"row\">");
    kiln_html_text(h, p->now->camera);
    KILN_HTML(h, "</th><td class=\"bar\"><svg preserveAspectRatio=\"none\" viewBox=\"0 0 1000 10\" aria-hidden=\"true\"><rect");
    KILN_ATTR(h, "class", p->change < 0 ? "worse" : "whole");
    KILN_ATTR_XY(h, "x", p->change < 0 ? 500 - length : 500);
    KILN_ATTR_XY(h, "width", length);
    KILN_HTML(
        h,
        " y=\"0\" height=\"10\"/><rect class=\"middle\" x=\"499\" y=\"0\" width=\"2\" height=\"10\"/></svg></td><td class=\"n\">");
    kiln_html_fixed(h, p->then->psnr, 3);
    KILN_HTML(h, "</td><td class=\"n\">");
    kiln_html_fixed(h, p->now->psnr, 3);
    KILN_HTML(h, "</td><td class=\"n\">");
    write_change(h, p->now->psnr, p->then->psnr, AS_DECIBELS);
    KILN_HTML(h, "</td><td class=\"n\">");
    write_change(h, (double)p->now->pairs, (double)p->then->pairs, AS_COUNT);
    KILN_HTML(h, "</td></tr>");
}

/* Of hundreds the ones that changed most, from both ends. */
static void write_pairs(kiln_html *h, const pair *pairs, uint32_t n)
{
    enum { END = 12 };
    const double most = fmax(fabs(pairs[0].change), fabs(pairs[n - 1].change));
    KILN_HTML(h, "<h3>Cameras by change of PSNR</h3>");
    if (n > 2 * END) {
        KILN_HTML(h, "<p class=\"note\">The ");
        kiln_html_count(h, 2 * END);
        KILN_HTML(h, " of ");
        kiln_html_count(h, n);
        KILN_HTML(h, " at both ends.</p>");
    }
    KILN_TABLE_BEGIN(h, "Cameras by change", "time");
    KILN_HTML(
        h, "<thead><tr><th scope=\"col\">Camera</th><th scope=\"col\">Worse, better</th><th scope=\"col\" class=\"n\">Other dB</th>"
           "<th scope=\"col\" class=\"n\">This dB</th><th scope=\"col\" class=\"n\">Change</th><th scope=\"col\" "
           "class=\"n\">Pairs</th>"
           "</tr></thead><tbody>");
    for (uint32_t i = 0; i < n; i++)
        if (i < END || i + END >= n) write_pair(h, &pairs[i], most);
    KILN_TABLE_END(h);
}

static void write_cameras(kiln_html *h, const kiln_report *r)
{
    pair *pairs;
    if (h->st != KILN_OK) return;
    h->st = KILN_ALLOC(&pairs, r->bake->views.n_cameras, "cameras", h->err);
    if (h->st != KILN_OK) return;
    const uint32_t n = find_pairs(r, pairs);
    if (n) write_pairs(h, pairs, n);
    free(pairs);
}

static void write(kiln_html *h, const kiln_report *r)
{
    KILN_HTML(h, "<p class=\"where\">The other bake: ");
    kiln_html_text(h, kiln_manifest_path(r->against->m));
    KILN_HTML(h, "</p>");
    write_numbers(h, r);
    write_parameters(h, r);
    write_rules(h, r);
    write_cameras(h, r);
}

const kiln_report_section kiln_section_against = {.id = "against", .title = "Compared", .has = has, .write = write};
