/* info_stages -- each stage with its state and last run, a plan that stands, units in
 * quarantine. */
#include "stages/info/info_internal.h"

#include "base/count.h"
#include "base/log.h"
#include "base/quote.h"
#include "schema/claim.h"
#include "stages/engine/json_text.h"
#include "stages/engine/stage_graph.h"
#include "stages/engine/parent/stored_options.h"
#include "stages/front/programs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const stage_names[] = {
#define STAGE(name, ...) #name,
#include "pipelines/stages.def"
#undef STAGE
};
enum { N_STAGES = sizeof stage_names / sizeof *stage_names };

static kiln_status set_option(void *options, const kiln_opt *row, const char *text, kiln_error *err)
{
    return kiln_info_set(options, row->name, kiln_json_string(text), err);
}

/* Lists of cameras are for --json alone. */
static json_t *counters_json(const char *text)
{
    enum { LISTED = 256 };
    json_t *v = NULL;
    if (kiln_common_values.json) return kiln_info_parsed(text);
    if (kiln_json_parse_short(text, strlen(text), LISTED, "the record of a run", &v, NULL) !=
        KILN_OK)
        return NULL;
    return v ? v : json_null();
}

static kiln_status add_stage(kiln_manifest *m, const char *name, json_t *list, kiln_error *err)
{
    kiln_stage_row row;
    kiln_run_row last = {0};
    bool ran;
    KILN_TRY(kiln_stage_get(m, name, &row, err));
    KILN_TRY(kiln_run_row_last(m, name, &ran, &last, err));
    /* a stranger's times may be any */
    double seconds = ran ? ((double)last.stop_ns - (double)last.start_ns) * 1e-9 : NAN;
    json_t *s =
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "name", name, "state",
                  kiln_stage_state_name(row.state), "version",
                  row.state == KILN_STAGE_MISSING ? json_null() : kiln_info_count(row.version),
                  "finished", kiln_info_utc(row.finished_ns), "seconds", kiln_json_real(seconds),
                  "device", ran ? kiln_json_string(last.device) : json_null(), "run",
                  ran ? counters_json(last.counters) : json_null());
    kiln_run_row_release(&last);
    json_t *options = json_object();
    if (json_array_append_new(list, s) != 0 ||
        json_object_set_new(s, "stored_options", options) != 0)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for stage '%s'", name);
    return kiln_stored_options_each(m, kiln_stage_program_find(name), set_option, options, err);
}

kiln_status kiln_info_stages(kiln_manifest *m, json_t *info, kiln_error *err)
{
    json_t *list = json_array();
    KILN_TRY(kiln_info_set(info, "stages", list, err));
    for (int i = 0; i < N_STAGES; i++) KILN_TRY(add_stage(m, stage_names[i], list, err));
    return KILN_OK;
}

/* Units that failed on every device: what partial stages lack. */
kiln_status kiln_info_quarantine(kiln_manifest *m, json_t *info, kiln_error *err)
{
    json_t *list = json_array();
    KILN_TRY(kiln_info_set(info, "quarantine", list, err));
    for (int i = 0; i < N_STAGES; i++) {
        kiln_quarantine_row *rows;
        uint32_t n;
        KILN_TRY(kiln_quarantine_get(m, stage_names[i], &rows, &n, err));
        for (uint32_t k = 0; k < n; k++) {
            const kiln_quarantine_row *q = &rows[k];
            json_t *one = json_pack(
                "{s:o, s:o, s:o, s:o, s:o, s:o}", "stage", kiln_json_string(q->stage), "unit",
                kiln_json_string(q->name), "attempts", kiln_info_count(q->attempts), "device",
                kiln_json_string(q->device), "reason", kiln_json_string(q->reason), "failed",
                kiln_info_utc(q->failed_ns));
            if (json_array_append_new(list, one) == 0) continue;
            free(rows);
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for the quarantine");
        }
        free(rows);
    }
    return KILN_OK;
}

/* null: no units are being computed on other hosts. */
kiln_status kiln_info_plan(kiln_manifest *m, json_t *info, kiln_error *err)
{
    kiln_claim c;
    bool there;
    kiln_error why = {0};
    const kiln_status st = kiln_claim_read(kiln_manifest_path(m), &there, &c, &why);
    if (st == KILN_E_INPUT) { /* what lies there is no claim: the next writer stops at it */
        kiln_warn("%s", why.msg);
        return kiln_info_set(info, "plan", json_null(), err);
    }
    if (st != KILN_OK) return kiln_fail(err, st, "%s", why.msg);
    uint64_t due = 0;
    for (uint64_t i = 0; i < c.n_due; i++) due += c.due[i].last - c.due[i].first + 1;
    json_t *plan = json_null();
    if (there)
        plan = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "stage", kiln_json_string(c.stage),
                         "what", kiln_json_string(c.what), "units", kiln_info_count(c.n_units),
                         "due", kiln_info_count(due), "tasks", kiln_info_count(c.tasks), "host",
                         kiln_json_string(c.host), "start", kiln_json_string(c.start));
    kiln_claim_release(&c);
    return kiln_info_set(info, "plan", plan, err);
}

/* ---- for people ------------------------------------------------------------------------------ */
/* A stage that nobody asked for is not missing. */
static bool is_unasked(const json_t *stage)
{
    const kiln_stage_info *known = kiln_stage_find(kiln_info_text(stage, "name", ""));
    return known && known->asked &&
           !strcmp(kiln_info_text(stage, "state", ""), kiln_stage_state_name(KILN_STAGE_MISSING));
}

static void print_stage(const json_t *s)
{
    char seconds[32];
    kiln_print_wrapped("%-8s  %-8s  %9s  %-20s  %s", kiln_info_text(s, "name", "?"),
                       kiln_info_text(s, "state", "?"),
                       kiln_info_real_text(s, "seconds", 2, seconds),
                       kiln_info_text(s, "finished", "-"), kiln_info_text(s, "device", "-"));
}

/* One stage's, as they are typed. */
static void print_stored_of(const char *stage, json_t *options)
{
    const kiln_cli *cli = kiln_stage_program_find(stage)->cli;
    kiln_buffer line = {0};
    const char *name;
    json_t *value;
    kiln_status st = KILN_OK;
    json_object_foreach(options, name, value)
    {
        if (st == KILN_OK)
            st = kiln_stored_option_put(kiln_stored_option_row(cli, name), json_string_value(value),
                                        &line, NULL);
    }
    kiln_print_wrapped("%-8s  %s", stage,
                       st == KILN_OK ? (const char *)line.data
                                     : "out of memory: cannot name them; --json lists them");
    kiln_buffer_release(&line);
}

/* What later runs of a stage do otherwise than its command line says. */
static void print_stored(const json_t *stages)
{
    size_t i;
    json_t *s;
    bool any = false;
    json_array_foreach(stages, i, s)
    {
        json_t *options = json_object_get(s, "stored_options");
        if (json_object_size(options) == 0) continue;
        if (!any) kiln_print_gap();
        if (!any) kiln_print("stored options, in force until kiln-STAGE MANIFEST --reset");
        any = true;
        print_stored_of(kiln_info_text(s, "name", "?"), options);
    }
}

void kiln_info_print_stages(const json_t *info)
{
    size_t i;
    json_t *s;
    kiln_print_gap();
    kiln_print("%-8s  %-8s  %9s  %-20s  %s", "stage", "state", "seconds", "finished", "device");
    json_array_foreach(json_object_get(info, "stages"), i, s)
    {
        if (!is_unasked(s)) print_stage(s);
    }
    print_stored(json_object_get(info, "stages"));
}

void kiln_info_print_plan(const json_t *info)
{
    const json_t *p = json_object_get(info, "plan");
    if (!json_is_object(p)) return;
    kiln_print_gap();
    kiln_print_sentence(
        "planned: %s of kiln-%s (%s) for %s, since %s on host %s; --gather stores the results",
        KILN_COUNT(json_integer_value(json_object_get(p, "due")), "unit"),
        kiln_info_text(p, "stage", "?"), kiln_info_text(p, "what", "?"),
        KILN_COUNT(json_integer_value(json_object_get(p, "tasks")), "task"),
        kiln_info_text(p, "start", "?"), kiln_info_text(p, "host", "?"));
}

void kiln_info_print_quarantine(const json_t *info)
{
    const json_t *rows = json_object_get(info, "quarantine");
    const size_t shown = kiln_info_shown(json_array_size(rows));
    for (size_t i = 0; i < shown; i++) {
        const json_t *q = json_array_get(rows, i);
        if (i == 0) {
            kiln_print_gap();
            kiln_print("quarantine");
        }
        kiln_print_sentence("%s: '%s' failed %s, the last on %s: %s",
                            kiln_info_text(q, "stage", "?"), kiln_info_text(q, "unit", "?"),
                            KILN_COUNT(json_integer_value(json_object_get(q, "attempts")), "time"),
                            kiln_info_text(q, "device", "?"), kiln_info_text(q, "reason", "?"));
    }
    kiln_info_print_rest(json_array_size(rows), shown);
}
