/* section_run -- how the bake came about: time line of stages and their lists of units, devices, peaks beside caps, and units that
 * were given up. */
#include "stages/report/report_page.h"

#include <math.h>
#include <string.h>

static bool has(const kiln_report *r)
{
    for (int i = 0; i < KILN_STAGE_COUNT; i++)
        if (r->bake->stages[i].ran || r->bake->stages[i].n_lost) return true;
    return false;
}

/* ---- time line ------------------------------------------------------------------------------------------------------------ */
static void write_bar(kiln_html *h, double from, double length, double whole, const char *class)
{
    KILN_HTML(h, "<td class=\"bar\"><svg preserveAspectRatio=\"none\" viewBox=\"0 0 1000 10\" aria-hidden=\"true\"><rect");
    KILN_ATTR(h, "class", class);
    KILN_ATTR_XY(h, "x", whole > 0 ? 1000 * from / whole : 0);
    KILN_ATTR_XY(h, "width", whole > 0 ? fmax(2, 1000 * length / whole) : 0);
    KILN_HTML(h, " y=\"0\" height=\"10\"/></svg></td>");
}

static void write_done(kiln_html *h, const json_t *units)
{
    const uint64_t cached = kiln_json_count_of(units, "cached"), retried = kiln_json_count_of(units, "retried");
    kiln_report_plural(h, kiln_json_count_of(units, "done"), "unit", "units");
    if (cached) {
        KILN_HTML(h, ", ");
        kiln_html_count(h, cached);
        KILN_HTML(h, " were there");
    }
    if (retried) {
        KILN_HTML(h, ", ");
        kiln_html_count(h, retried);
        KILN_HTML(h, " tried again");
    }
}

static void write_list(kiln_html *h, const json_t *list, double from, double whole)
{
    const double wall = kiln_json_number_of(list, "wall_s");
    KILN_HTML(h, "<tr class=\"part\"><th scope=\"row\">");
    kiln_html_text(h, kiln_json_text_of(list, "what"));
    KILN_HTML(h, "</th>");
    write_bar(h, from, isfinite(wall) ? wall : 0, whole, "list");
    KILN_HTML(h, "<td class=\"n\">");
    kiln_html_seconds(h, wall);
    KILN_HTML(h, "</td><td>");
    kiln_report_plural(h, kiln_json_count_of(list, "units"), "unit", "units");
    KILN_HTML(h, " on ");
    kiln_report_plural(h, kiln_json_count_of(list, "workers"), "worker", "workers");
    KILN_HTML(h, "</td></tr>");
}

/* Lists of units follow each other; what is left of a stage's time is planning and storing. */
static void write_stage(kiln_html *h, const kiln_stage_facts *s, double from, double whole)
{
    const json_t *lists = json_object_get(s->counters, "lists");
    double at = from;
    KILN_HTML(h, "<tr><th scope=\"row\">");
    kiln_html_text(h, s->name);
    KILN_HTML(h, "</th>");
    write_bar(h, from, kiln_stage_seconds(s), whole, "whole");
    KILN_HTML(h, "<td class=\"n\">");
    kiln_html_seconds(h, kiln_stage_seconds(s));
    KILN_HTML(h, "</td><td>");
    write_done(h, json_object_get(s->counters, "units"));
    KILN_HTML(h, "</td></tr>");
    for (size_t i = 0; i < json_array_size(lists) && i < 40; i++) {
        const double wall = kiln_json_number_of(json_array_get(lists, i), "wall_s");
        write_list(h, json_array_get(lists, i), at, whole);
        if (wall > 0) at = fmin(at + wall, from + kiln_stage_seconds(s));
    }
}

static void write_line(kiln_html *h, const kiln_report *r)
{
    const double whole = kiln_bake_seconds(r->bake);
    double at = 0;
    if (whole <= 0) return;
    KILN_HTML(h, "<h3>Time line</h3><p class=\"note\">The newest run of each stage that made its output, one behind the other: "
                 "pauses between them are left "
                 "out.</p>");
    KILN_TABLE_BEGIN(h, "Time line", "time");
    KILN_HTML(h, "<thead><tr><th scope=\"col\">Stage, list</th><th scope=\"col\">Time</th><th scope=\"col\" class=\"n\">Takes</th>"
                 "<th scope=\"col\">Work</th></tr></thead><tbody>");
    for (int i = 0; i < KILN_STAGE_COUNT; i++) {
        if (!r->bake->stages[i].ran) continue;
        write_stage(h, &r->bake->stages[i], at, whole);
        at += kiln_stage_seconds(&r->bake->stages[i]);
    }
    KILN_TABLE_END(h);
}

/* ---- devices ---------------------------------------------------------------------------------------------------------------- */
static void write_workers(kiln_html *h, const kiln_stage_facts *s, const json_t *workers)
{
    for (size_t i = 0; i < json_array_size(workers) && i < 64; i++) {
        const json_t *w = json_array_get(workers, i);
        const char *host = kiln_json_text_of(w, "host");
        KILN_HTML(h, "<tr><th scope=\"row\">");
        if (i == 0) kiln_html_text(h, s->name);
        KILN_HTML(h, "</th><td>");
        kiln_html_text(h, kiln_json_text_of(w, "device"));
        if (*host) {
            KILN_HTML(h, " on ");
            kiln_html_text(h, host);
        }
        if (json_is_true(json_object_get(w, "retired"))) KILN_HTML(h, " <small>retired</small>");
        KILN_HTML(h, "</td><td class=\"n\">");
        kiln_html_count(h, kiln_json_count_of(w, "units"));
        KILN_HTML(h, "</td><td class=\"n\">");
        kiln_html_seconds(h, kiln_json_number_of(w, "busy_s"));
        KILN_HTML(h, "</td></tr>");
    }
}

static void write_devices(kiln_html *h, const kiln_report *r)
{
    bool any = false;
    for (int i = 0; i < KILN_STAGE_COUNT; i++) {
        const json_t *workers = json_object_get(r->bake->stages[i].counters, "workers");
        if (json_array_size(workers) == 0) continue;
        if (!any) {
            KILN_HTML(h, "<details><summary>Workers and their devices</summary>");
            KILN_TABLE_BEGIN(h, "Workers", "");
            KILN_HTML(h,
                      "<thead><tr><th scope=\"col\">Stage</th><th scope=\"col\">Device</th><th scope=\"col\" class=\"n\">Units</th>"
                      "<th scope=\"col\" class=\"n\">Busy</th></tr></thead><tbody>");
        }
        any = true;
        write_workers(h, &r->bake->stages[i], workers);
    }
    if (!any) return;
    KILN_TABLE_END(h);
    KILN_HTML(h, "</details>");
}

/* ---- memory --------------------------------------------------------------------------------------------------------------- */
static void write_bytes(kiln_html *h, const json_t *counters, const char *key)
{
    const uint64_t bytes = kiln_json_count_of(counters, key);
    KILN_HTML(h, "<td class=\"n\">");
    if (bytes)
        kiln_html_bytes(h, bytes);
    else
        KILN_HTML(h, "\xe2\x80\x93");
    KILN_HTML(h, "</td>");
}

static bool any_has(const kiln_report *r, const char *key)
{
    bool any = false;
    for (int i = 0; i < KILN_STAGE_COUNT; i++) any |= kiln_json_count_of(r->bake->stages[i].counters, key) > 0;
    return any;
}

static void write_peaks(kiln_html *h, const kiln_report *r)
{
    const bool gpu = any_has(r, "vram_peak_bytes");
    if (!any_has(r, "ram_peak_bytes")) return;
    KILN_HTML(h, "<h3>Memory</h3>");
    KILN_TABLE_BEGIN(h, "Peaks beside caps", "time");
    KILN_HTML(
        h,
        "<thead><tr><th scope=\"col\">Stage</th><th scope=\"col\">Peak within the cap</th><th scope=\"col\" class=\"n\">Peak</th>"
        "<th scope=\"col\" class=\"n\">Predicted</th><th scope=\"col\" class=\"n\">Cap</th>");
    if (gpu) KILN_HTML(h, "<th scope=\"col\" class=\"n\">GPU peak</th><th scope=\"col\" class=\"n\">GPU cap</th>");
    KILN_HTML(h, "</tr></thead><tbody>");
    for (int i = 0; i < KILN_STAGE_COUNT; i++) {
        const json_t *c = r->bake->stages[i].counters;
        if (!kiln_json_count_of(c, "ram_peak_bytes")) continue;
        KILN_HTML(h, "<tr><th scope=\"row\">");
        kiln_html_text(h, r->bake->stages[i].name);
        KILN_HTML(h, "</th>");
        write_bar(h, 0, (double)kiln_json_count_of(c, "ram_peak_bytes"), (double)kiln_json_count_of(c, "ram_cap_bytes"), "whole");
        write_bytes(h, c, "ram_peak_bytes");
        write_bytes(h, c, "ram_predicted_bytes");
        write_bytes(h, c, "ram_cap_bytes");
        if (gpu) write_bytes(h, c, "vram_peak_bytes");
        if (gpu) write_bytes(h, c, "vram_cap_bytes");
        KILN_HTML(h, "</tr>");
    }
    KILN_TABLE_END(h);
}

/* ---- quarantine ------------------------------------------------------------------------------------------------------------ */
static void write_lost(kiln_html *h, const kiln_quarantine_row *q)
{
    KILN_HTML(h, "<tr><th scope=\"row\">");
    kiln_html_text(h, q->stage);
    KILN_HTML(h, "</th><td>");
    kiln_html_text(h, q->name);
    KILN_HTML(h, "</td><td class=\"n\">");
    kiln_html_count(h, q->attempts);
    KILN_HTML(h, "</td><td>");
    kiln_html_text(h, q->device);
    KILN_HTML(h, "</td><td class=\"reason\">");
    kiln_html_text(h, q->reason);
    KILN_HTML(h, "</td><td>");
    kiln_html_time(h, q->failed_ns);
    KILN_HTML(h, "</td></tr>");
}

/* First of the section: whoever looks for what is missing finds it here. */
static void write_quarantine(kiln_html *h, const kiln_report *r)
{
    enum { SHOWN = 500 };
    uint64_t n = 0;
    for (int i = 0; i < KILN_STAGE_COUNT; i++) n += r->bake->stages[i].n_lost;
    if (n == 0) return;
    KILN_HTML(h, "<p class=\"lead bad\">");
    kiln_report_plural(h, n, "unit is quarantined", "units are quarantined");
    KILN_HTML(h, "; the same command tries again.</p>");
    KILN_TABLE_BEGIN(h, "Quarantined units", "");
    KILN_HTML(h, "<thead><tr><th scope=\"col\">Stage</th><th scope=\"col\">Unit</th><th scope=\"col\" class=\"n\">Tried</th>"
                 "<th scope=\"col\">Failed last on</th><th scope=\"col\">Reason</th><th scope=\"col\">At</th></tr></thead><tbody>");
    uint64_t shown = 0;
    for (int i = 0; i < KILN_STAGE_COUNT; i++)
        for (uint32_t k = 0; k < r->bake->stages[i].n_lost && shown < SHOWN; k++, shown++)
            write_lost(h, &r->bake->stages[i].lost[k]);
    KILN_TABLE_END(h);
    if (shown == n) return;
    KILN_HTML(h, "<p class=\"note\">The first ");
    kiln_html_count(h, shown);
    KILN_HTML(h, " of them; kiln-info names all.</p>");
}

static void write(kiln_html *h, const kiln_report *r)
{
    write_quarantine(h, r);
    write_line(h, r);
    write_devices(h, r);
    write_peaks(h, r);
}

const kiln_report_section kiln_section_run = {.id = "runs", .title = "Runs", .has = has, .write = write};
