/* The main() of every program, which `kiln pipeline` calls for one stage after the other: parses
 * options, runs as worker or parent, prints report and error, returns the exit code. */
#include "stages/engine/program.h"

#include "base/count.h"
#include "base/file.h"
#include "base/log.h"
#include "base/quote.h"
#include "stages/engine/devices/gpu_table.h"
#include "stages/engine/devices/gpus.h"
#include "stages/engine/engine_options.h"
#include "stages/engine/hosts/round.h"
#include "stages/engine/interrupt.h"
#include "stages/engine/json_text.h"
#include "stages/engine/memory/ram_use.h"
#include "stages/engine/parent/commit.h"
#include "stages/engine/parent/options.h"
#include "stages/engine/parent/run.h"
#include "stages/engine/parent/run_memory.h"
#include "stages/engine/parent/run_workers.h"
#include "stages/engine/parent/unit_results.h"
#include "stages/engine/parent/worker_end.h"
#include "stages/engine/parent/worker_rest.h"
#include "stages/engine/worker/fault.h"
#include "stages/engine/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static kiln_status open_manifest(kiln_run *r, kiln_error *err)
{
    const kiln_stage_program *p = r->program;
    if (p->flags & KILN_PROGRAM_OPENS_ITSELF) return KILN_OK;
    if (p->manifest_arg >= r->parsed.n_positional)
        return kiln_fail(err, KILN_E_BUG, "%s has no argument MANIFEST", p->name);
    /* a run that changes nothing needs no lock, does not wait for one and works on read-only
     * media */
    kiln_open_mode mode = kiln_run_is_once(r) ? KILN_OPEN_READ : p->open;
    const kiln_status st = kiln_round_open(r, r->parsed.positional[p->manifest_arg], mode, err);
    if (st == KILN_E_INPUT && p->instead && kiln_is_file(r->parsed.positional[p->manifest_arg])) {
        const size_t n = strlen(err->msg);
        (void)snprintf(err->msg + n, sizeof err->msg - n, "; %s", p->instead);
    }
    return st == KILN_OK ? kiln_run_load_parameters(r, err) : st;
}

/* Says whether to remove the manifest: the run has made it and failed without finished work, or
 * because of its input. */
static bool should_discard(const kiln_run *r, kiln_status st)
{
    if (st == KILN_OK || r->committed || !r->manifest || !kiln_manifest_created(r->manifest))
        return false;
    return r->lists.n_stored == 0 || st == KILN_E_INPUT || st == KILN_E_USAGE || st == KILN_E_STALE;
}

/* Records a run that did not commit, if it has stored units: one that failed, or one of --shard or
 * --units. Others leave no trace.
 */
static void record_end(kiln_run *r, kiln_status st, const kiln_error *failure)
{
    if (r->lists.n_stored == 0 || r->committed || r->hosts.frozen || kiln_run_is_once(r)) return;
    /* a plan is on its way to a commit, which records it */
    if (st == KILN_OK && !r->selection.given) return;
    kiln_error err = {0};
    kiln_status recorded = kiln_manifest_begin(r->manifest, &err);
    if (recorded == KILN_OK)
        recorded = kiln_run_record(r, st, st == KILN_OK ? NULL : failure->msg, &err);
    if (recorded == KILN_OK) recorded = kiln_manifest_commit(r->manifest, &err);
    if (recorded == KILN_OK) return;
    kiln_manifest_rollback(r->manifest);
    kiln_warn("the run could not be recorded: %s", err.msg);
}

/* When a stage ends well, its workers are there for the next one of this process. They have the
 * manifest no longer open then. */
static void end_workers(kiln_run *r, kiln_status st)
{
    if (st == KILN_OK && kiln_rest_keeps()) {
        kiln_run_dismiss_workers(&r->devices);
        kiln_rest_wait();
    } else {
        kiln_rest_dismiss(); /* all are asked before the first is waited for */
    }
    for (unsigned i = 0; i < KILN_HOMES; i++)
        kiln_workers_stop(r->devices.homes[i].workers, r->devices.homes[i].n_workers);
    if (st != KILN_OK || !kiln_rest_keeps()) kiln_rest_stop();
}

static void finish(kiln_run *r, kiln_status st, const kiln_error *failure)
{
    kiln_run_units_drop(r); /* of a stage that failed between two lists */
    end_workers(r, st);
    kiln_ram_judge(&r->ram);
    if (!r->hosts.frozen) kiln_scratch_folder_tidy(kiln_run_scratch_folder(r));
    if (should_discard(r, st)) {
        kiln_manifest_discard(r->manifest);
    } else {
        record_end(r, st, failure);
        kiln_run_drop_bad_units(r);
        kiln_manifest_close(r->manifest);
    }
    r->manifest = NULL;
}

/* ---- the report on stdout -------------------------------------------------------------------- */
/* Makes the report of a failed run. A tool's report is included, because its findings are useful
 * even if it fails. */
static json_t *failed_report(const kiln_run *r, kiln_status st, const kiln_error *failure)
{
    json_t *out = json_pack("{s:i, s:s, s:s, s:s, s:o}", "version", 1, "stage", r->program->name,
                            "status", "failed", "error", kiln_status_name(st), "message",
                            kiln_json_string(failure->msg));
    const bool filled =
        out && (r->stage || json_object_update_missing(out, r->report.own) == 0) &&
        r->hosts.hooks->add_report(r, out) == 0 &&
        (r->quarantine.n == 0 ||
         json_object_set_new(out, "quarantine", kiln_quarantine_json(&r->quarantine)) == 0);
    if (filled) return out;
    json_decref(out);
    return NULL;
}

static json_t *make_report(const kiln_run *r, kiln_status st, const kiln_error *failure)
{
    if (st == KILN_E_PARTIAL && r->quarantine.n_failed) return kiln_run_summary(r, "partial");
    if (st != KILN_OK) return failed_report(r, st, failure);
    if (r->hosts.cut) return kiln_run_summary(r, r->hosts.cut);
    if (!r->report.stored) return kiln_run_summary(r, r->selection.given ? "units stored" : "done");
    json_t *out = json_deep_copy(r->report.stored);
    if (out && (json_object_set_new(out, "version", json_integer(1)) ||
                json_object_set_new(out, "stage", json_string(r->program->name)) ||
                json_object_set_new(out, "status", json_string("nothing to do")))) {
        json_decref(out);
        out = NULL;
    }
    return out;
}

/* A tool that left its report empty has printed its own. */
static kiln_status print_report(const kiln_run *r, kiln_status st, const kiln_error *failure,
                                kiln_error *err)
{
    if (!r->common->json || (!r->stage && st == KILN_OK && json_object_size(r->report.own) == 0))
        return KILN_OK;
    json_t *out = make_report(r, st, failure);
    char *text = kiln_json_text(out, JSON_INDENT(2));
    json_decref(out);
    if (!text) return kiln_fail(err, KILN_E_NOMEM, "cannot write the report as JSON");
    kiln_report_rows_print(&r->report.rows, text); /* checked with everything else on stdout */
    free(text);
    return KILN_OK;
}

static kiln_status close_stdout(kiln_error *err)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return kiln_fail(err, KILN_E_IO,
                         "cannot write to stdout; is the disk full or the pipe closed?");
    return KILN_OK;
}

static kiln_status check_engine_options(kiln_run *r, kiln_error *err)
{
    KILN_TRY(kiln_devices_check(r->common->devices, err));
    KILN_TRY(kiln_selection_read(r, err));
    KILN_TRY(kiln_round_read(r, err));
    KILN_TRY(kiln_scratch_check(r->options, err));
    if (r->program->unit && r->common->ram.percent <= 0 && r->common->ram.bytes == 0)
        return kiln_fail(err, KILN_E_USAGE,
                         "--ram 0 leaves no memory at all; give a size such as 512M, or 50%%");
    return KILN_OK;
}

static kiln_status check_options(kiln_run *r, kiln_error *err)
{
    return r->program->check ? r->program->check(r, err) : KILN_OK;
}

static const char *after_signal(const kiln_run *r)
{
    if (kiln_run_is_passing(r)) return "nothing of it is kept";
    if (r->program->unit && !r->stage) return "nothing of it is kept";
    if (kiln_run_is_once(r)) return "no unit is kept; run the same command to begin again";
    return r->options->part ? "no part is left; run the same command to begin again"
                            : "finished units are kept; run the same command to continue";
}

static kiln_status parent(kiln_run *r, kiln_error *err)
{
    KILN_TRY(check_engine_options(r, err));
    r->report.own = json_object();
    if (!r->report.own) return kiln_fail(err, KILN_E_NOMEM, "cannot make a report");
    if (r->program->unit) {
        KILN_TRY(kiln_fault_check(err));
        kiln_interrupt_watch(after_signal(r));
        kiln_run_look_at_ram(r);
    }
    if (r->program->flags & KILN_PROGRAM_WATCHES) kiln_interrupt_watch(after_signal(r));
    KILN_TRY(open_manifest(r, err));
    KILN_TRY(check_options(r, err));
    return r->program->run(r, err);
}

/* Decides the status of a run that left units to other runs or gave some up, and says so. */
static kiln_status conclude(kiln_run *r, kiln_status st, kiln_error *err)
{
    const unsigned long long n_failed = r->quarantine.n_failed, left = r->selection.left,
                             total = r->lists.n_units;
    if (r->selection.cut || r->hosts.cut) st = KILN_OK;
    if (st != KILN_OK) return st;
    if (r->hosts.cut) return kiln_round_conclude(r, err);
    if (r->options->units && !r->report.stored && r->selection.position && r->selection.chosen == 0)
        return kiln_fail(err, KILN_E_USAGE,
                         "--units '%.200s' matches none of the %s known so far (positions 0 to "
                         "%llu); no unit was computed",
                         r->options->units,
                         KILN_COUNT(r->selection.position, "unit that is|units that are"),
                         (unsigned long long)r->selection.position - 1);
    if (*r->partial_input && r->committed && !r->report.stored)
        kiln_warn("%s finished partially, so this output is partial too: later stages need "
                  "--allow-partial; run this again when %s "
                  "is complete",
                  r->partial_input, r->partial_input);
    if (n_failed)
        return kiln_fail(err, KILN_E_PARTIAL,
                         "%llu of %s quarantined; run the same command to try %s again%s", n_failed,
                         KILN_COUNT(total, "unit is|units are"), total == 1 ? "it" : "them",
                         r->committed ? ", or later stages with --allow-partial" : "");
    const char *part = r->options->shard ? "shard" : "units";
    if (r->selection.given && !r->report.stored && left)
        kiln_say("%llu of %s left; when all are stored, run the same command without --%s to "
                 "finish the stage",
                 left, KILN_COUNT(total, "unit is|units are"), part);
    else if (r->selection.given && !r->report.stored)
        kiln_say("all %s stored; run the same command without --%s to finish the stage",
                 KILN_COUNT(total, "unit is|units are"), part);
    return KILN_OK;
}

/* Does --list-gpus, without a manifest. */
static kiln_status list_gpus(const kiln_run *r, kiln_error *err)
{
    KILN_TRY(kiln_devices_check(r->common->devices, err));
    KILN_TRY(kiln_list_gpus(r->common->devices, r->common->json, err));
    return close_stdout(err);
}

static kiln_status list(const kiln_run *r, kiln_error *err)
{
    if (r->parsed.n_positional || r->common->json)
        return kiln_fail(err, KILN_E_USAGE,
                         "--list-formats only names the formats; leave out arguments and --json");
    r->program->list();
    return close_stdout(err);
}

static int end_with(const kiln_cli *cli, kiln_status st, const kiln_error *err)
{
    if (st != KILN_OK) kiln_tell_error(cli->program, "", err);
    return kiln_exit_code(st);
}

static const kiln_stage_program *(*family)(const char *name);

void kiln_program_family(const kiln_stage_program *(*find)(const char *name)) { family = find; }

/* For a worker that becomes one of another stage. */
static kiln_status find_stage(const char *name, const kiln_stage_program **p, kiln_cli *cli,
                              kiln_error *err)
{
    *p = family ? family(name) : NULL;
    if (!*p) return kiln_fail(err, KILN_E_BUG, "a worker does not know the stage '%s'", name);
    kiln_engine_options_forget();
    return kiln_engine_options_merge(*p, cli, err);
}

void kiln_program_keep_workers(bool on)
{
    kiln_rest_keep(on && family);
    kiln_gpus_keep(on && family);
}
void kiln_program_expect(const char *devices) { kiln_rest_expect(devices); }
void kiln_program_stop_workers(void)
{
    kiln_rest_stop();
    kiln_gpus_forget();
}

/* One at a time; too big for the stack. */
static kiln_run one_run;
static kiln_round one_round;

/* A stage that runs after another one in this process finds what it would find in a process of its
 * own. */
static void forget_last_run(kiln_run *r)
{
    if (r->program) { /* this is not the first */
        memset(r, 0, sizeof *r);
        kiln_engine_options_forget();
        kiln_peak_rss_forget();
    }
    r->devices.home = r->devices.homes;
    memset(&one_round, 0, sizeof one_round);
    r->options = &kiln_engine_values;
    r->common = &kiln_common_values;
    r->hosts = (kiln_run_hosts){.hooks = &kiln_round_hooks, .round = &one_round};
}

kiln_status kiln_program_stopped(kiln_error *err) { return kiln_interrupt_check(err); }

kiln_status kiln_program_help_json(const kiln_stage_program *p, FILE *out, kiln_error *err)
{
    kiln_cli cli;
    KILN_TRY(kiln_engine_options_merge(p, &cli, err));
    kiln_cli_help_json(&cli, out);
    return KILN_OK;
}

/* A manifest that cannot be read is for the stage to complain of: what it stores is not known, nor
 * what goes with that. */
static kiln_status check_with_stored(kiln_run *r, kiln_check_scope scope, kiln_error *err)
{
    const char *path = r->parsed.positional[r->program->manifest_arg];
    kiln_file_info info;
    kiln_manifest *m;
    if (kiln_file_stat(path, &info, NULL) != KILN_OK || info.size == 0) {
        if (kiln_run_named_kind(r) && !(r->program->flags & KILN_PROGRAM_CPU_ONLY) &&
            r->program->unit)
            KILN_TRY(kiln_run_find_devices(r, err)); /* a new bake computes, so they are needed */
        return check_options(r, err);
    }
    if (kiln_manifest_open(path, KILN_OPEN_READ, r->program->name, true, &m, NULL) != KILN_OK)
        return KILN_OK;
    r->manifest = m;
    kiln_status st = kiln_run_load_parameters(r, err);
    if (scope != KILN_CHECK_NAMES) r->manifest = NULL;
    if (st == KILN_OK) st = check_options(r, err);
    r->manifest = NULL;
    kiln_manifest_close(m);
    return st;
}

/* ulimit -f: the write that goes too far says so itself. Workers inherit it. */
static void fail_writes_that_go_too_far(void) { (void)signal(SIGXFSZ, SIG_IGN); }

kiln_status kiln_program_check(const kiln_stage_program *p, int argc, char **argv,
                               kiln_check_scope scope, kiln_error *err)
{
    fail_writes_that_go_too_far();
    kiln_run *r = &one_run;
    const kiln_log_level level = kiln_log_get();
    forget_last_run(r);
    r->program = p;
    r->stage = kiln_stage_find(p->name);
    KILN_TRY(kiln_engine_options_merge(p, &r->cli, err));
    KILN_TRY(kiln_engine_options_refuse(p, argc, argv, err));
    KILN_TRY(kiln_cli_parse(&r->cli, argc, argv, &r->parsed, err));
    if (scope == KILN_CHECK_TEXTS || r->parsed.done || (p->lists && *p->lists)) return KILN_OK;
    KILN_TRY(check_engine_options(r, err));
    kiln_log_init(p->cli->program, KILN_LOG_QUIET); /* the run itself says what is worth a word */
    const kiln_status st = kiln_run_blame_stored(r, check_with_stored(r, scope, err), err);
    kiln_log_init(p->cli->program, level);
    return st;
}

/* A file or socket must not get the number of a standard stream that is closed. What takes its
 * place fails as a closed one does: it cannot be read, or cannot be written. */
static void fill_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int kiln_program_main(const kiln_stage_program *p, int argc, char **argv)
{
    kiln_error err = {0}, late = {0};
    fill_closed_streams();
    fail_writes_that_go_too_far();
    kiln_run *const r = &one_run;
    forget_last_run(r);
    r->program = p;
    r->stage = kiln_stage_find(p->name);
    r->start_ns = kiln_now_ns();
    r->start_wall_ns = kiln_wall_ns();
    kiln_status st = kiln_engine_options_merge(p, &r->cli, &err);
    if (st != KILN_OK) return end_with(p->cli, st, &err);
    if (argc > 1 && !strncmp(argv[1], KILN_WORKER_FLAG, strlen(KILN_WORKER_FLAG)))
        return kiln_worker_main(p, &r->cli, find_stage, argv[1] + strlen(KILN_WORKER_FLAG), argc,
                                argv);
    st = kiln_engine_options_refuse(p, argc, argv, &err);
    if (st == KILN_OK) st = kiln_cli_parse(&r->cli, argc, argv, &r->parsed, &err);
    if (st != KILN_OK || r->parsed.done) return end_with(p->cli, st, &err);
    kiln_log_init(p->cli->program, r->common->quiet     ? KILN_LOG_QUIET
                                   : r->common->verbose ? KILN_LOG_VERBOSE
                                                        : KILN_LOG_NORMAL);
    if (r->options->list_gpus) return end_with(p->cli, list_gpus(r, &err), &err);
    if (p->lists && *p->lists) return end_with(p->cli, list(r, &err), &err);
    st = kiln_run_blame_stored(r, conclude(r, parent(r, &err), &err), &err);
    if (kiln_round_settle(r, st, &late) != KILN_OK) {
        if (st != KILN_OK)
            kiln_warn("%s", late.msg); /* behind what the run failed of */
        else
            err = late, st = late.status;
    }
    finish(r, st, &err);
    kiln_status printed = print_report(r, st, &err, &late);
    if (printed == KILN_OK) printed = close_stdout(&late);
    if (st == KILN_OK && printed != KILN_OK) {
        st = printed;
        err = late;
    }
    json_decref(r->report.own);
    kiln_buffer_release(&r->report.rows.text);
    json_decref(r->report.lists);
    json_decref(r->report.stored);
    free(r->quarantine.rows);
    kiln_buffer_release(&r->lists.used);
    kiln_buffer_release(&r->refusals.keys);
    kiln_round_release(r->hosts.round);
    return end_with(p->cli, st, &err);
}
