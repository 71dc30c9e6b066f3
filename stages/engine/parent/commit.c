/* The end of a run: one transaction makes the output current, marks later stages as stale and
 * records the run.
 *
 * A later stage becomes stale if an output that it reads (stages.def) has changed: the digests of
 * this stage's outputs before and after are compared. If they are equal, later stages stay fresh. A
 * stage that reads from a stale stage becomes stale too; if its input turns out to be unchanged,
 * kiln_run_is_fresh marks it fresh without computing anything. */
#include "stages/engine/parent/commit.h"

#include "base/file.h"
#include "base/log.h"
#include "schema/layers.h"
#include "stages/engine/engine_options.h"
#include "stages/engine/interrupt.h"
#include "stages/engine/json_text.h"
#include "stages/engine/memory/ram_use.h"
#include "stages/engine/parent/run.h"
#include "stages/engine/parent/run_memory.h"
#include "stages/engine/parent/run_workers.h"
#include "stages/engine/parent/worker_end.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROLES_MAX = 8 };

typedef struct {
    char name[32];
    kiln_hash digest;
} role;

typedef struct {
    role items[ROLES_MAX];
    unsigned n;
} role_list;

/* ---- digests of what a stage gives to later ones --------------------------------------------- */
/* Gives the digest of an output: of a layer the stored one, of another output what the program
 * says. */
static kiln_status digest_role(const kiln_run *r, const char *name, kiln_hash *out, kiln_error *err)
{
    if (kiln_layer_kind_find(name) != KILN_LAYER_KINDS)
        return kiln_stage_output_get(r->manifest, r->stage->name, name, out, err);
    for (const kiln_stage_output *o = r->program->outputs; o && o->name; o++)
        if (!strcmp(o->name, name)) return o->digest(r->manifest, out, err);
    for (const kiln_stage_info *later = r->stage + 1; later->name; later++)
        if (kiln_stage_reads(later, name))
            return kiln_fail(
                err, KILN_E_BUG,
                "%s does not tell when its output '%s' changes (kiln_stage_program.outputs)",
                r->stage->name, name);
    return KILN_OK;
}

/* Lists the outputs of the stage. One that does not exist yet has the digest zero. */
static kiln_status take_roles(const kiln_run *r, role_list *list, kiln_error *err)
{
    const char *at = r->stage->makes;
    char name[sizeof list->items->name];
    for (list->n = 0; kiln_word_next(&at, name, sizeof name); list->n++) {
        if (list->n == ROLES_MAX)
            return kiln_fail(err, KILN_E_BUG, "stages.def: %s makes too much", r->stage->name);
        role *o = &list->items[list->n];
        *o = (role){.digest = {{0}}};
        memcpy(o->name, name, sizeof name);
        kiln_status st = digest_role(r, o->name, &o->digest, err);
        if (st != KILN_OK && st != KILN_E_STALE) return st;
    }
    return KILN_OK;
}

/* ---- stale ----------------------------------------------------------------------------------- */
static bool input_changed(const kiln_stage_info *later, const role_list *before,
                          const role_list *after)
{
    for (unsigned i = 0; i < after->n; i++)
        if (kiln_stage_reads(later, after->items[i].name) &&
            !kiln_hash_equal(before->items[i].digest, after->items[i].digest))
            return true;
    return false;
}

static kiln_status mark_stale(kiln_run *r, const role_list *before, const role_list *after,
                              kiln_error *err)
{
    /* a bit a stage, of those found stale so far: stages.def is in order, one pass follows the
     * chain */
    uint64_t stale = 0;
    for (const kiln_stage_info *later = r->stage + 1; later->name; later++) {
        bool hit = input_changed(later, before, after);
        for (const kiln_stage_info *s = r->stage + 1; s < later && !hit; s++)
            hit = (stale >> (s - kiln_stage_graph) & 1) && kiln_stage_needs(later, s);
        if (!hit) continue;
        kiln_stage_row row;
        KILN_TRY(kiln_stage_get(r->manifest, later->name, &row, err));
        /* nobody has asked for it: no later stage has read of it */
        if (later->asked && row.state == KILN_STAGE_MISSING) continue;
        stale |= UINT64_C(1) << (later - kiln_stage_graph);
        if (row.state != KILN_STAGE_FRESH && row.state != KILN_STAGE_PARTIAL) continue;
        row.state = KILN_STAGE_STALE;
        KILN_TRY(kiln_stage_put(r->manifest, &row, err));
    }
    return KILN_OK;
}

/* ---- the record of the run ------------------------------------------------------------------- */
/* Device memory, where workers were on GPUs: the most that one took, of what one was allowed. */
static int add_vram(json_t *summary, const kiln_worker_use *use)
{
    if (json_object_set_new(summary, "vram_peak_bytes", json_integer((json_int_t)use->vram_peak)) !=
        0)
        return -1;
    if (use->vram_cap == 0) return 0;
    if (json_object_set_new(summary, "vram_cap_bytes", json_integer((json_int_t)use->vram_cap)) !=
        0)
        return -1;
    return json_object_set_new(summary, "ran_on_cpu_for_memory",
                               json_integer((json_int_t)use->n_host));
}

/* Adds what happened to the units, and the time of storing them. */
static int add_units(json_t *summary, const kiln_run *r)
{
    json_t *units =
        json_pack("{s:I, s:I, s:I, s:I}", "done", (json_int_t)r->lists.n_done, "cached",
                  (json_int_t)r->lists.n_cached, "retried", (json_int_t)r->lists.n_retried,
                  "quarantined", (json_int_t)r->quarantine.n);
    if (json_object_set_new(summary, "units", units) != 0) return -1;
    if (*r->partial_input &&
        json_object_set_new(summary, "partial_input", json_string(r->partial_input)) != 0)
        return -1;
    if (r->selection.given &&
        json_object_set_new(summary, "left", json_integer((json_int_t)r->selection.left)) != 0)
        return -1;
    if (json_object_set_new(summary, "stored_bytes",
                            json_integer((json_int_t)r->lists.stored_bytes)) != 0)
        return -1;
    if (json_object_set_new(summary, "store_s", kiln_json_real((double)r->lists.store_ns * 1e-9)) !=
        0)
        return -1;
    if (r->report.lists && json_object_set(summary, "lists", r->report.lists) != 0) return -1;
    if (r->hosts.hooks->add_report(r, summary) != 0) return -1;
    return r->quarantine.n == 0
               ? 0
               : json_object_set_new(summary, "quarantine", kiln_quarantine_json(&r->quarantine));
}

/* start_s: until the last worker had opened its device. */
static int add_workers(json_t *summary, const kiln_run *r)
{
    char devices[KILN_DEVICES_TEXT];
    const kiln_worker_use use = kiln_workers_use(&r->devices);
    kiln_workers_devices(&r->devices, devices, sizeof devices);
    json_t *rss = json_pack("{s:I, s:I}", "parent", (json_int_t)kiln_peak_rss(), "worker",
                            (json_int_t)use.peak_rss);
    if (json_object_set_new(summary, "peak_rss_bytes", rss) != 0) return -1;
    if (json_object_set_new(summary, "device", kiln_json_string(devices)) != 0) return -1;
    const char *why = r->devices.home->devices.note;
    if (*why && json_object_set_new(summary, "device_why", kiln_json_string(why)) != 0) return -1;
    if (json_object_set_new(summary, "start_s",
                            kiln_json_real((double)kiln_workers_open_ns(&r->devices) * 1e-9)) != 0)
        return -1;
    if (json_object_set_new(summary, "workers", kiln_workers_json(&r->devices)) != 0) return -1;
    return add_vram(summary, &use);
}

/* A part's row of its own is gone once it is gathered: the record of the run says where it was. */
static int add_host(json_t *summary)
{
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
    return json_object_set_new(summary, "host", kiln_json_string(host));
}

json_t *kiln_run_summary(const kiln_run *r, const char *status)
{
    json_t *head =
        json_pack("{s:i, s:s, s:s}", "version", 1, "stage", r->program->name, "status", status);
    json_t *rest =
        json_pack("{s:o}", "wall_s", kiln_json_real((double)(kiln_now_ns() - r->start_ns) * 1e-9));
    if (!head || !rest || add_host(rest) != 0 || add_units(rest, r) != 0 ||
        add_workers(rest, r) != 0 || kiln_ram_report(&r->ram, rest) != 0 ||
        json_object_update_missing(head, r->report.own) != 0 ||
        json_object_update_missing(head, rest) != 0) {
        json_decref(head);
        head = NULL;
    }
    json_decref(rest);
    return head;
}

static char *parameters_json(const kiln_run *r)
{
    char text[KILN_OPT_TEXT_MAX];
    json_t *all = json_object();
    for (const kiln_opt *o = r->cli.options; all && o && o->name; o++) {
        if (!(o->flags & KILN_KEYED)) continue;
        if (json_object_set_new(all, o->name,
                                kiln_json_string(kiln_opt_text(o, text, sizeof text))) != 0) {
            json_decref(all);
            all = NULL;
        }
    }
    char *out = kiln_json_text(all, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(all);
    return out;
}

/* kiln_run_row_last knows the runs that made an output by it. */
static const char *record_status(const kiln_run *r, kiln_status end, const char *sentence)
{
    if (sentence) return "failed";
    if (r->hosts.part) return "part stored";
    if (r->selection.given) return "units stored";
    return end == KILN_OK ? "done" : "partial";
}

kiln_status kiln_run_record(kiln_run *r, kiln_status end, const char *sentence, kiln_error *err)
{
    char program[64], devices[KILN_DEVICES_TEXT];
    kiln_status st;
    (void)snprintf(program, sizeof program, "%s %s", r->cli.program, kiln_version);
    kiln_workers_devices(&r->devices, devices, sizeof devices);
    json_t *summary = kiln_run_summary(r, record_status(r, end, sentence));
    if (summary && kiln_report_rows_leave_out(&r->report.rows, summary) != 0) {
        json_decref(summary);
        summary = NULL;
    }
    if (summary && sentence &&
        json_object_set_new(summary, "error", kiln_json_string(sentence)) != 0) {
        json_decref(summary);
        summary = NULL;
    }
    char *counters = kiln_json_text(summary, JSON_COMPACT);
    char *parameters = parameters_json(r);
    kiln_run_row row = {.program = program,
                        .parameters = parameters,
                        .device = devices,
                        .counters = counters,
                        .start_ns = r->start_wall_ns,
                        .stop_ns = kiln_wall_ns(),
                        .exit_code = kiln_exit_code(end)};
    (void)snprintf(row.stage, sizeof row.stage, "%s", r->program->name);
    st = counters && parameters ? kiln_run_row_put(kiln_run_store(r), &row, err)
                                : kiln_fail(err, KILN_E_NOMEM, "cannot write the run's record");
    free(parameters);
    free(counters);
    json_decref(summary);
    return st;
}

/* Returns the key of an output that lacks units or is made from one that does. It differs from the
 * key of the complete output, so a later run does not take the partial one for it. */
static kiln_hash partial_key(kiln_run *r, kiln_hash input_key)
{
    kiln_hasher *h = kiln_run_key_bare(r, "partial");
    kiln_key_hash(h, "input", input_key);
    return kiln_key_end(h);
}

/* ---- what the output is made from ------------------------------------------------------------ */
kiln_status kiln_run_uses(kiln_run *r, kiln_hash key, kiln_error *err)
{
    return kiln_run_is_once(r) ? KILN_OK
                               : kiln_buffer_put(&r->lists.used, key.bytes, sizeof key.bytes, err);
}

static int by_bytes(const void *a, const void *b) { return memcmp(a, b, sizeof(kiln_hash)); }

static kiln_status store_used(kiln_run *r, kiln_error *err)
{
    kiln_hash *keys = (kiln_hash *)r->lists.used.data; /* of bytes: aligned anywhere */
    const uint64_t n = r->lists.used.size / sizeof *keys;
    uint64_t n_keys = 0;
    if (n) qsort(keys, n, sizeof *keys, by_bytes);
    for (uint64_t i = 0; i < n; i++)
        if (n_keys == 0 || !kiln_hash_equal(keys[n_keys - 1], keys[i])) keys[n_keys++] = keys[i];
    r->lists.used.size = n_keys * sizeof *keys;
    return kiln_units_used_put(r->manifest, r->stage->name, keys, n_keys, err);
}

static kiln_status commit(kiln_run *r, kiln_hash input_key, kiln_commit_fn *make, void *context,
                          kiln_error *err)
{
    const bool lacks_units = r->quarantine.n_failed > 0, partial = lacks_units || *r->partial_input;
    role_list before, after;
    kiln_stage_row row = {.version = r->stage->version,
                          .state = partial ? KILN_STAGE_PARTIAL : KILN_STAGE_FRESH,
                          .input_key = partial ? partial_key(r, input_key) : input_key,
                          .finished_ns = kiln_wall_ns()};
    (void)snprintf(row.name, sizeof row.name, "%s", r->stage->name);
    KILN_TRY(take_roles(r, &before, err));
    KILN_TRY(make(r, r->manifest, context, err));
    kiln_run_look_at_ram(r);
    KILN_TRY(take_roles(r, &after, err));
    KILN_TRY(kiln_stage_put(r->manifest, &row, err));
    KILN_TRY(store_used(r, err));
    KILN_TRY(kiln_run_store_quarantine(r, err));
    KILN_TRY(kiln_run_store_parameters(r, err));
    KILN_TRY(mark_stale(r, &before, &after, err));
    KILN_TRY(kiln_run_record(r, lacks_units ? KILN_E_PARTIAL : KILN_OK, NULL, err));
    return kiln_manifest_commit(r->manifest, err);
}

kiln_status kiln_run_commit(kiln_run *r, kiln_hash input_key, kiln_commit_fn *make, void *context,
                            kiln_error *err)
{
    if (!r->stage || !r->manifest || kiln_run_is_once(r))
        return kiln_fail(err, KILN_E_BUG, "this run of %s must not change any state",
                         r->program->name);
    KILN_TRY(kiln_interrupt_check(err));
    KILN_TRY(r->hosts.hooks->check_agreed(r, err));
    if (r->selection.given) return KILN_OK; /* it leaves the end to a run of the whole */
    kiln_run_dismiss_workers(&r->devices);
    KILN_TRY(kiln_manifest_begin(r->manifest, err));
    const kiln_status st = commit(r, input_key, make, context, err);
    if (st != KILN_OK) {
        kiln_manifest_rollback(r->manifest);
        return st;
    }
    r->committed = true;
    kiln_scratch_folder_drop(kiln_run_scratch_folder(r));
    return KILN_OK;
}

/* Stores what is left to store if the output is up to date: options that were given, and an empty
 * quarantine, because the output lacks nothing. Writes nothing if nothing changes. */
static kiln_status settle(kiln_run *r, kiln_error *err)
{
    kiln_quarantine_row *rows;
    uint32_t n;
    KILN_TRY(kiln_quarantine_get(r->manifest, r->program->name, &rows, &n, err));
    free(rows);
    const bool parameters = r->options->reset || kiln_opt_flag_given(&r->cli, KILN_KEYED);
    if (!parameters && n == 0) return KILN_OK;
    KILN_TRY(kiln_manifest_begin(r->manifest, err));
    kiln_status st = parameters ? kiln_run_store_parameters(r, err) : KILN_OK;
    if (st == KILN_OK) st = kiln_run_store_quarantine(r, err);
    if (st == KILN_OK) st = kiln_manifest_commit(r->manifest, err);
    if (st != KILN_OK) kiln_manifest_rollback(r->manifest);
    return st;
}

kiln_status kiln_run_nothing_to_do(kiln_run *r, kiln_error *err)
{
    enum { LONG_RECORD = 256 << 10 };
    kiln_run_row last = {0};
    kiln_status st = KILN_OK;
    bool found = false;
    KILN_TRY(r->hosts.hooks->check_agreed(r, err));
    if (!r->hosts.frozen)
        /* reads the quarantine, and below the last run: they are sound before the sentence is
         * said */
        KILN_TRY(settle(r, err));
    KILN_TRY(kiln_run_row_last(r->manifest, r->program->name, &found, &last, err));
    /* SQLite has looked whether it is JSON; what is very long, as older programs wrote it, is read
     * for --json alone */
    if (found && (kiln_run_json(r) || strlen(last.counters) < LONG_RECORD))
        st = kiln_json_parse(last.counters, strlen(last.counters), 0, "the last run's report",
                             &r->report.stored, NULL, err);
    kiln_run_row_release(&last);
    if (st != KILN_OK) return st;
    if (!r->report.stored) r->report.stored = json_object();
    if (!r->report.stored) return kiln_fail(err, KILN_E_NOMEM, "cannot make a report");
    kiln_say("nothing to do, the output is up to date");
    if (!r->hosts.frozen) /* of a run that was killed right after its commit */
        kiln_scratch_folder_drop(kiln_run_scratch_folder(r));
    r->committed = true;
    return KILN_OK;
}
