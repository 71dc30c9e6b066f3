/* section_run -- how the bake came about: units that were given up, time line, workers with their
 * devices and hosts, peaks beside caps. */
#include "stages/report/report_page.h"

#include "stages/report/report_table.h"
#include "stages/report/time_line.h"

#include <math.h>
#include <string.h>

static bool has_run_section(const kiln_report *r)
{
    for (int i = 0; i < KILN_STAGE_COUNT; i++)
        if (r->bake->stages[i].ran || r->bake->stages[i].n_lost) return true;
    return false;
}

/* ---- devices --------------------------------------------------------------------------------- */
enum { WORKERS_MOST = 200 /* of a stage */ };

static const kiln_column worker_columns[] = {{"Stage", NULL}, {"Host", NULL}, {"Device", NULL},
                                             {"Units", "n"},  {"Busy", "n"},  {"", NULL}};

static void write_worker(kiln_html *h, const char *stage, const json_t *record,
                         const json_t *worker)
{
    const bool retired = json_is_true(json_object_get(worker, "retired"));
    const kiln_cell cells[] = {kiln_text(stage),
                               kiln_text(kiln_json_text_of(record, "host")),
                               kiln_text(kiln_json_text_of(worker, "device")),
                               kiln_count(kiln_json_count_of(worker, "units")),
                               kiln_seconds(kiln_json_number_of(worker, "busy_s")),
                               kiln_text(retired ? "retired" : "")};
    kiln_table_row(h, worker_columns, cells, 6);
}

/* Those of the run, and of its tasks on other hosts. */
static void write_workers(kiln_html *h, const kiln_stage_facts *s)
{
    uint32_t n = 0;
    for (uint32_t k = 0; s->ran && k <= s->n_tasks; k++) {
        const json_t *record = kiln_stage_record(s, k),
                     *workers = json_object_get(record, "workers");
        for (size_t i = 0; i < json_array_size(workers) && n < WORKERS_MOST; i++, n++)
            write_worker(h, n ? "" : s->name, record, json_array_get(workers, i));
    }
}

static void write_devices(kiln_html *h, const kiln_report *r)
{
    bool any = false;
    for (int i = 0; i < KILN_STAGE_COUNT; i++) {
        const kiln_stage_facts *s = &r->bake->stages[i];
        any |= s->n_tasks > 0 || json_array_size(json_object_get(s->counters, "workers")) > 0;
    }
    if (!any) return;
    KILN_HTML(h, "<details><summary>Workers, their hosts and devices</summary>");
    kiln_table_begin(h, "Workers", "", worker_columns, 6);
    for (int i = 0; i < KILN_STAGE_COUNT; i++) write_workers(h, &r->bake->stages[i]);
    kiln_table_end(h);
    KILN_HTML(h, "</details>");
}

/* ---- memory ---------------------------------------------------------------------------------- */
/* The most of the run and its tasks. */
static uint64_t most_of(const kiln_stage_facts *s, const char *key)
{
    uint64_t most = 0;
    for (uint32_t k = 0; s->ran && k <= s->n_tasks; k++) {
        const uint64_t n = kiln_json_count_of(kiln_stage_record(s, k), key);
        most = n > most ? n : most;
    }
    return most;
}

static bool any_has(const kiln_report *r, const char *key)
{
    bool any = false;
    for (int i = 0; i < KILN_STAGE_COUNT; i++) any |= most_of(&r->bake->stages[i], key) > 0;
    return any;
}

static void write_share(kiln_html *h, const void *context)
{
    KILN_HTML(h, "<svg preserveAspectRatio=\"none\" viewBox=\"0 0 1000 10\" "
                 "aria-hidden=\"true\"><rect class=\"whole\" x=\"0\"");
    KILN_ATTR_XY(h, "width", fmax(2, 1000 * fmin(1, *(const double *)context)));
    KILN_HTML(h, " y=\"0\" height=\"10\"/></svg>");
}

static void write_peaks(kiln_html *h, const kiln_report *r)
{
    static const kiln_column columns[] = {{"Stage", NULL}, {"Peak within the cap", "bar"},
                                          {"Peak", "n"},   {"Predicted", "n"},
                                          {"Cap", "n"},    {"GPU peak", "n"},
                                          {"GPU cap", "n"}};
    const size_t n = any_has(r, "vram_peak_bytes") ? 7 : 5;
    if (!any_has(r, "ram_peak_bytes")) return;
    KILN_HTML(h, "<h3>Memory</h3>");
    kiln_table_begin(h, "Peaks beside caps", "time", columns, n);
    for (int i = 0; i < KILN_STAGE_COUNT; i++) {
        const kiln_stage_facts *s = &r->bake->stages[i];
        const uint64_t peak = most_of(s, "ram_peak_bytes"), cap = most_of(s, "ram_cap_bytes");
        const double share = cap ? (double)peak / (double)cap : 0;
        const kiln_cell cells[] = {kiln_text(s->name),
                                   kiln_by(write_share, &share),
                                   kiln_bytes_known(peak),
                                   kiln_bytes_known(most_of(s, "ram_predicted_bytes")),
                                   kiln_bytes_known(cap),
                                   kiln_bytes_known(most_of(s, "vram_peak_bytes")),
                                   kiln_bytes_known(most_of(s, "vram_cap_bytes"))};
        if (peak) kiln_table_row(h, columns, cells, n);
    }
    kiln_table_end(h);
}

/* ---- quarantine ------------------------------------------------------------------------------ */
/* First of the section: whoever looks for what is missing finds it here. */
static void write_quarantine(kiln_html *h, const kiln_report *r)
{
    enum { SHOWN = 500 };
    static const kiln_column columns[] = {{"Stage", NULL},      {"Unit", NULL},
                                          {"Tried", "n"},       {"Failed last on", NULL},
                                          {"Reason", "reason"}, {"At", "word"}};
    uint64_t n = 0, shown = 0;
    for (int i = 0; i < KILN_STAGE_COUNT; i++) n += r->bake->stages[i].n_lost;
    if (n == 0) return;
    KILN_HTML(h, "<p class=\"lead bad\">");
    kiln_plural(h, n, "unit is quarantined", "units are quarantined");
    KILN_HTML(h, "; the same command tries again.</p>");
    kiln_table_begin(h, "Quarantined units", "", columns, 6);
    for (int i = 0; i < KILN_STAGE_COUNT; i++)
        for (uint32_t k = 0; k < r->bake->stages[i].n_lost && shown < SHOWN; k++, shown++) {
            const kiln_quarantine_row *q = &r->bake->stages[i].lost[k];
            const kiln_cell cells[] = {kiln_text(q->stage),     kiln_text(q->name),
                                       kiln_count(q->attempts), kiln_text(q->device),
                                       kiln_text(q->reason),    kiln_time(q->failed_ns)};
            kiln_table_row(h, columns, cells, 6);
        }
    kiln_table_end(h);
    if (shown == n) return;
    KILN_HTML(h, "<p class=\"note\">The first ");
    kiln_html_count(h, shown);
    KILN_HTML(h, " of them; kiln-info names all.</p>");
}

static void write_run_section(kiln_html *h, const kiln_report *r)
{
    write_quarantine(h, r);
    kiln_time_line_write(h, r->bake);
    write_devices(h, r);
    write_peaks(h, r);
}

const kiln_report_section kiln_section_run = {
    .id = "runs", .title = "Runs", .has = has_run_section, .write = write_run_section};
