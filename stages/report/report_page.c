/* report_page -- see the header. The page loads nothing: its policy allows pictures that are inside
 * of it, this one style and this one script, named by their hashes. */
#include "stages/report/report_page.h"

#include "base/file.h"
#include "base/option.h"
#include "stages/page/sha256.h"
#include "stages/products/product_mark.h"
#include "stages/report/report_assets.h"
#include "stages/report/report_table.h"

#include <string.h>

static const kiln_report_section *const sections[] = {
    &kiln_section_pictures, &kiln_section_against, &kiln_section_import,
    &kiln_section_prune,    &kiln_section_cameras, &kiln_section_chunks,
    &kiln_section_levels,   &kiln_section_run,     &kiln_section_record};
enum { N_SECTIONS = sizeof sections / sizeof *sections };

/* ---- head ------------------------------------------------------------------------------------ */
static void write_hash(kiln_html *h, const char *text)
{
    unsigned char hash[32];
    kiln_sha256(text, strlen(text), hash);
    KILN_HTML(h, "'sha256-");
    kiln_html_base64(h, hash, sizeof hash);
    KILN_HTML(h, "'");
}

static const char *name_of(const kiln_report *r)
{
    const kiln_scene *s = r->bake->scene;
    return s && s->name[0] ? s->name : kiln_path_base(kiln_manifest_path(r->bake->m));
}

static void write_page_head(kiln_html *h, const kiln_report *r)
{
    KILN_HTML(h, "<!doctype html>\n<html lang=\"en\"><head><meta "
                 "charset=\"utf-8\">" KILN_PRODUCT_META_BEGIN);
    kiln_html_text(h, kiln_version);
    KILN_HTML(h, KILN_PRODUCT_META_END "<meta http-equiv=\"Content-Security-Policy\" "
                                       "content=\"default-src 'none'; img-src data:; style-src ");
    write_hash(h, kiln_report_css);
    KILN_HTML(h, "; script-src ");
    write_hash(h, kiln_report_js);
    KILN_HTML(h, "; base-uri 'none'; form-action 'none'\">\n<meta name=\"viewport\" "
                 "content=\"width=device-width, initial-scale=1\">\n"
                 "<meta name=\"referrer\" content=\"no-referrer\"><meta name=\"color-scheme\" "
                 "content=\"light dark\">\n"
                 "<link rel=\"icon\" href=\"data:,\"><title>");
    kiln_html_text(h, name_of(r));
    KILN_HTML(h, " \xe2\x80\x93 bake report</title>\n<style>");
    kiln_html_markup(h, kiln_report_css, strlen(kiln_report_css));
    KILN_HTML(h, "</style></head>\n");
}

/* ---- what the bake is, in one look ----------------------------------------------------------- */
typedef struct {
    double value;
    uint64_t views;
    bool test;
} metric;

static void write_decibels(kiln_html *h, const void *context)
{
    kiln_html_fixed(h, ((const metric *)context)->value, 2);
    KILN_HTML(h, "<small> dB</small>");
}

static void write_ssim(kiln_html *h, const void *context)
{
    const metric *m = context;
    kiln_html_fixed(h, m->value, 4);
    KILN_HTML(h, "<small> ");
    kiln_plural(h, m->views, m->test ? "test view" : "view", m->test ? "test views" : "views");
    KILN_HTML(h, "</small>");
}

static void write_strip(kiln_html *h, const kiln_report *r)
{
    const kiln_bake_facts *b = r->bake;
    const kiln_layer *last = kiln_bake_last_layer(b), *baked = b->layers[KILN_LAYER_baked];
    const double seconds = kiln_bake_seconds(b);
    metric psnr = {.test = true}, ssim;
    bool any = kiln_bake_views_mean(&b->views, true, &psnr.value, &ssim.value, &psnr.views);
    if (!any) {
        psnr.test = false;
        any = kiln_bake_views_mean(&b->views, false, &psnr.value, &ssim.value, &psnr.views);
    }
    ssim = (metric){.value = ssim.value, .views = psnr.views, .test = psnr.test};
    const kiln_fact facts[] = {
        {"Gaussians", last ? kiln_count(last->count) : kiln_none()},
        {"Chunks", baked ? kiln_count(baked->n_chunks) : kiln_none()},
        {"Cameras", b->views.n_cameras ? kiln_count(b->views.n_cameras) : kiln_none()},
        {"PSNR", any ? kiln_by(write_decibels, &psnr) : kiln_none()},
        {"SSIM", any ? kiln_by(write_ssim, &ssim) : kiln_none()},
        {"Manifest", kiln_bytes(b->file_bytes)},
        {"Baked in", seconds > 0 ? kiln_seconds(seconds) : kiln_none()},
    };
    kiln_facts(h, "strip", facts, sizeof facts / sizeof *facts);
}

static const char *const state_class[] = {[KILN_STAGE_MISSING] = "missing",
                                          [KILN_STAGE_FRESH] = "fresh",
                                          [KILN_STAGE_STALE] = "stale",
                                          [KILN_STAGE_PARTIAL] = "partial"};

/* Stages that ran, as a row of marks; a stage that was never asked for is no part of this bake. */
static void write_stages(kiln_html *h, const kiln_report *r)
{
    KILN_HTML(h, "<ol class=\"stages\" aria-label=\"Stages\">");
    for (int i = 0; i < KILN_STAGE_COUNT; i++) {
        const kiln_stage_facts *s = &r->bake->stages[i];
        if (s->row.state == KILN_STAGE_MISSING && !s->n_lost) continue;
        KILN_HTML(h, "<li");
        KILN_ATTR(h, "class", state_class[s->row.state]);
        KILN_HTML(h, ">");
        kiln_html_text(h, s->name);
        KILN_HTML(h, " <small>");
        kiln_html_text(h, kiln_stage_state_name(s->row.state));
        KILN_HTML(h, "</small></li>");
    }
    KILN_HTML(h, "</ol>");
}

static int64_t finished(const kiln_bake_facts *b)
{
    int64_t last = 0;
    for (int i = 0; i < KILN_STAGE_COUNT; i++)
        if (b->stages[i].row.finished_ns > last) last = b->stages[i].row.finished_ns;
    return last;
}

static void write_header(kiln_html *h, const kiln_report *r)
{
    KILN_HTML(h, "<header><p class=\"eyebrow\">SplatKiln bake report</p><h1>");
    kiln_html_text(h, name_of(r));
    KILN_HTML(h, "</h1><p class=\"where\">");
    kiln_html_text(h, kiln_manifest_path(r->bake->m));
    if (finished(r->bake)) {
        KILN_HTML(h, " \xc2\xb7 finished ");
        kiln_html_time(h, finished(r->bake));
    }
    KILN_HTML(h, "</p>");
    write_strip(h, r);
    write_stages(h, r);
    KILN_HTML(h, "</header>\n<nav aria-label=\"Contents\"><ul>");
    for (int i = 0; i < N_SECTIONS; i++) {
        if (!sections[i]->has(r)) continue;
        KILN_HTML(h, "<li><a href=\"#");
        kiln_html_text(h, sections[i]->id);
        KILN_HTML(h, "\">");
        kiln_html_text(h, sections[i]->title);
        KILN_HTML(h, "</a></li>");
    }
    KILN_HTML(h, "</ul></nav>\n");
}

static void write_section(kiln_html *h, const kiln_report *r, const kiln_report_section *s)
{
    if (!s->has(r)) return;
    KILN_HTML(h, "<section");
    KILN_ATTR(h, "id", s->id);
    KILN_HTML(h, "><h2>");
    kiln_html_text(h, s->title);
    KILN_HTML(h, "</h2><div class=\"body\">");
    s->write(h, r);
    KILN_HTML(h, "</div></section>\n");
}

void kiln_report_page(kiln_html *h, const kiln_report *r)
{
    write_page_head(h, r);
    KILN_HTML(h, "<body>\n<div class=\"page\">");
    write_header(h, r);
    KILN_HTML(h, "<main>\n");
    for (int i = 0; i < N_SECTIONS; i++) write_section(h, r, sections[i]);
    KILN_HTML(h, "</main>\n<footer>Written by kiln-report ");
    kiln_html_text(h, kiln_version);
    KILN_HTML(
        h, ". This file is complete: it loads nothing and sends nothing.</footer></div>\n<script>");
    kiln_html_markup(h, kiln_report_js, strlen(kiln_report_js));
    KILN_HTML(h, "</script></body></html>\n");
}
