/* The modes of a run over several hosts: what each does with the manifest, the claim and lists.
 * Parts are round_parts.c's, decisions are decisions.c's. */
#include "stages/engine/hosts/round.h"

#include "base/count.h"
#include "base/log.h"
#include "base/memory.h"
#include "stages/engine/devices/devices.h"
#include "stages/engine/engine_options.h"
#include "stages/engine/hosts/decisions.h"
#include "stages/engine/hosts/round_parts.h"
#include "stages/engine/json_text.h"
#include "stages/engine/parent/job.h"
#include "stages/engine/parent/run_memory.h"
#include "stages/engine/parent/run_quarantine.h"
#include "stages/engine/worker/worker_open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- options --------------------------------------------------------------------------------- */
static kiln_round_mode given_mode(const kiln_engine_options *o)
{
    return o->plan     ? KILN_ROUND_PLAN
           : o->part   ? KILN_ROUND_PART
           : o->gather ? KILN_ROUND_GATHER
                       : KILN_ROUND_NONE;
}

static kiln_status refuse_mixtures(const kiln_run *r, kiln_round_mode mode, kiln_error *err)
{
    const kiln_engine_options *o = r->options;
    if (o->plan + (o->part != NULL) + (o->gather != NULL) > 1)
        return kiln_fail(err, KILN_E_USAGE,
                         "give only one of --plan, --part and --gather: each is a step of a round");
    if ((o->no_compute || o->remove_parts) && mode != KILN_ROUND_GATHER)
        return kiln_fail(err, KILN_E_USAGE, "--%s needs --gather",
                         o->no_compute ? "no-compute" : "remove-parts");
    if (o->tasks && mode != KILN_ROUND_PLAN && mode != KILN_ROUND_GATHER)
        return kiln_fail(err, KILN_E_USAGE,
                         "--tasks needs --plan, or --gather, which plans the next round");
    if (o->break_claim && mode != KILN_ROUND_NONE && mode != KILN_ROUND_PLAN)
        return kiln_fail(err, KILN_E_USAGE,
                         "--break-claim removes the plan that --part and --gather need");
    if (mode == KILN_ROUND_NONE && o->shard && (r->program->flags & KILN_PROGRAM_UNDIVIDED))
        return kiln_fail(
            err, KILN_E_USAGE,
            "kiln-%s cannot leave units to other runs: --shard needs --part, after --plan",
            r->program->name);
    if (mode == KILN_ROUND_NONE) return KILN_OK;
    if (kiln_run_is_once(r))
        return kiln_fail(err, KILN_E_USAGE,
                         "a run that changes no state cannot plan, store or gather");
    if (o->force || o->units)
        return kiln_fail(err, KILN_E_USAGE, "--%s works only in a run on one host",
                         o->force ? "force" : "units");
    if (mode == KILN_ROUND_PART && !o->shard)
        return kiln_fail(err, KILN_E_USAGE, "--part needs --shard I/N");
    if (mode != KILN_ROUND_PART && o->shard)
        return kiln_fail(err, KILN_E_USAGE, "--shard needs --part here");
    return KILN_OK;
}

static kiln_scratch_use scratch_use(const kiln_engine_options *o, kiln_round_mode mode)
{
    switch (mode) {
    case KILN_ROUND_NONE:
        return KILN_SCRATCH_OWN;
    case KILN_ROUND_PLAN:
        return KILN_SCRATCH_PLAN;
    case KILN_ROUND_PART:
        return KILN_SCRATCH_READ;
    case KILN_ROUND_GATHER:
        return o->no_compute ? KILN_SCRATCH_READ : KILN_SCRATCH_MEND;
    }
    return KILN_SCRATCH_READ;
}

kiln_status kiln_round_read(kiln_run *r, kiln_error *err)
{
    kiln_round *round = r->hosts.round;
    const kiln_round_mode mode = given_mode(r->options);
    KILN_TRY(refuse_mixtures(r, mode, err));
    round->mode = mode;
    r->scratch.use = scratch_use(r->options, mode);
    if (mode != KILN_ROUND_PART) return KILN_OK;
    round->shard = r->selection.shard + 1;
    round->n_shards = r->selection.n_shards;
    r->selection = (kiln_selection){0}; /* which chooses by another rule */
    if (round->n_shards <= KILN_TASKS_MAX) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "--shard takes at most %d shards", KILN_TASKS_MAX);
}

/* ---- the manifest ---------------------------------------------------------------------------- */
static kiln_status open_as(kiln_run *r, const char *path, kiln_open_mode mode, kiln_error *err)
{
    char copy[KILN_PATH_MAX];
    kiln_manifest *m;
    if (mode != KILN_OPEN_READ && mode != KILN_OPEN_FROZEN)
        KILN_TRY(kiln_manifest_copy_find(r->options, path, &r->hosts.round->copied, copy, err));
    if (r->hosts.round->copied)
        KILN_TRY(kiln_manifest_open_copy(path, copy, mode, r->program->name, &m, err));
    else
        KILN_TRY(
            kiln_manifest_open(path, mode, r->program->name, r->options->allow_network, &m, err));
    kiln_bulk_use_threads(m, kiln_devices_threads(r->common->threads));
    kiln_run_set_manifest(r, m);
    return KILN_OK;
}

/* What the plan has made for its tasks goes, too. */
static void drop_shared(const char *path, const kiln_claim *claim)
{
    kiln_scratch_drop_shared(&kiln_engine_values, path, claim->stage);
}

/* Without --plan that is all that the run does: it is cut. */
static kiln_status break_claim(kiln_run *r, const char *path, kiln_error *err)
{
    const bool stands = kiln_claim_stands(path);
    if (access(path, F_OK) != 0 && errno == ENOENT)
        KILN_TRY(kiln_claim_remove(path, err)); /* somebody has removed the manifest alone */
    else
        KILN_TRY(kiln_claim_break(path, r->program->name, drop_shared, err));
    kiln_say(stands ? "the plan of '%s' is given up" : "'%s' has no plan, so nothing is given up",
             path);
    if (r->hosts.round->mode == KILN_ROUND_PLAN) return KILN_OK;
    r->hosts.cut = "given up";
    /* the stage does not begin; its program ends well */
    return kiln_fail(err, KILN_E_PARTIAL, "the plan is given up");
}

static bool is_own_claim(const kiln_run *r)
{
    return !strcmp(r->hosts.round->claim.stage, r->program->name);
}

static kiln_status refuse_no_plan(const kiln_run *r, const char *path, kiln_error *err)
{
    const char *name = r->program->name;
    return kiln_fail(
        err, KILN_E_STALE,
        "kiln-%s has no plan for '%s', so no part can be computed; run kiln-%s --plan first", name,
        path, name);
}

static kiln_status open_for_part(kiln_run *r, const char *path, kiln_error *err)
{
    kiln_round *round = r->hosts.round;
    r->hosts.frozen = true;
    KILN_TRY(open_as(r, path, KILN_OPEN_FROZEN, err));
    KILN_TRY(kiln_claim_read(path, &round->has_claim, &round->claim, err));
    if (round->has_claim && is_own_claim(r))
        return kiln_manifest_changes(r->manifest, &round->changes, err);
    return round->has_claim ? kiln_claim_refuse(path, err) : refuse_no_plan(r, path, err);
}

static kiln_status open_for_gather(kiln_run *r, const char *path, kiln_error *err)
{
    kiln_round *round = r->hosts.round;
    KILN_TRY(open_as(r, path, KILN_OPEN_CLAIMED, err));
    KILN_TRY(kiln_claim_read(path, &round->has_claim, &round->claim, err));
    return round->has_claim && !is_own_claim(r) ? kiln_claim_refuse(path, err) : KILN_OK;
}

/* Parts of the plan that stands may be at work: the manifest is only read, but for what a killed
 * gather has left in the log, which would keep all of them out. */
static kiln_status open_for_plan(kiln_run *r, const char *path, kiln_open_mode mode,
                                 kiln_error *err)
{
    kiln_round *round = r->hosts.round;
    KILN_TRY(kiln_claim_read(path, &round->has_claim, &round->claim, err));
    r->hosts.frozen = round->has_claim && is_own_claim(r);
    if (r->hosts.frozen) r->scratch.use = KILN_SCRATCH_READ; /* the first plan has filled it */
    if (r->hosts.frozen)
        KILN_TRY(kiln_manifest_recover(path, r->program->name, r->options->allow_network, err));
    return open_as(r, path, r->hosts.frozen ? KILN_OPEN_FROZEN : mode, err);
}

/* A gather that lacks --shared-dir would make all that the plan has left there once more, beside
 * the manifest, and leave the first. Which folder it is may have another name on another host, so
 * the plan decides only whether there is one. */
static kiln_status decide_shared_dir(kiln_run *r, kiln_error *err)
{
    uint64_t planned = r->options->shared_dir != NULL;
    KILN_TRY(kiln_run_decide(r, "shared-dir", &planned, err));
    if (planned == (r->options->shared_dir != NULL)) return KILN_OK;
    return kiln_fail(err, KILN_E_STALE,
                     planned ? "the data of the plan are in another folder: give the same "
                               "--shared-dir as --plan was given"
                             : "the data of the plan are beside the manifest, because --plan was "
                               "given no --shared-dir: leave it out");
}

kiln_status kiln_round_open(kiln_run *r, const char *path, kiln_open_mode mode, kiln_error *err)
{
    if (r->options->break_claim) KILN_TRY(break_claim(r, path, err));
    switch (r->hosts.round->mode) {
    case KILN_ROUND_PART:
        KILN_TRY(open_for_part(r, path, err));
        break;
    case KILN_ROUND_GATHER:
        KILN_TRY(open_for_gather(r, path, err));
        break;
    case KILN_ROUND_PLAN:
        KILN_TRY(open_for_plan(r, path, mode, err));
        break;
    case KILN_ROUND_NONE:
        KILN_TRY(open_as(r, path, mode, err));
        break;
    }
    return decide_shared_dir(r, err);
}

kiln_status kiln_run_open_existing(kiln_run *r, const char *path, kiln_open_mode mode,
                                   kiln_error *err)
{
    struct stat s;
    if (stat(path, &s) != 0 || s.st_size == 0) {
        if (r->hosts.round->mode == KILN_ROUND_PART || r->hosts.round->mode == KILN_ROUND_GATHER)
            return refuse_no_plan(r, path, err);
        if (r->options->break_claim) KILN_TRY(break_claim(r, path, err));
        return decide_shared_dir(r, err); /* as where there is one */
    }
    KILN_TRY(kiln_round_open(r, path, mode, err));
    return kiln_run_load_parameters(r, err);
}

/* A copy takes its place at once, empty, because scratch is named by the place of the manifest. */
kiln_status kiln_run_create(kiln_run *r, const char *path, kiln_error *err)
{
    if (r->hosts.round->mode == KILN_ROUND_PLAN) KILN_TRY(kiln_make_parents(path, err));
    KILN_TRY(open_as(r, path, KILN_OPEN_CREATE, err));
    return r->hosts.round->copied ? kiln_manifest_publish(r->manifest, err) : KILN_OK;
}

/* What is committed is on the disk, and parts that have nothing else are of no more use. */
static kiln_status publish(kiln_run *r, kiln_error *err)
{
    KILN_TRY(kiln_manifest_publish(r->manifest, err));
    kiln_round_remove_parts(r);
    return KILN_OK;
}

kiln_status kiln_round_conclude(const kiln_run *r, kiln_error *err)
{
    const uint64_t n = r->quarantine.n_failed;
    if (n == 0 || r->hosts.round->mode != KILN_ROUND_PART)
        return KILN_OK; /* a plan goes on without what was given up; the commit at the end tells */
    return kiln_fail(
        err, KILN_E_PARTIAL, "%s of the part '%s' %s quarantined; --gather tries %s again",
        KILN_COUNT(n, "unit"), r->hosts.round->path, n == 1 ? "is" : "are", n == 1 ? "it" : "them");
}

kiln_status kiln_round_settle(kiln_run *r, kiln_status st, kiln_error *err)
{
    if (r->hosts.part) kiln_manifest_discard(r->hosts.part);
    r->hosts.part = NULL;
    if (r->hosts.round->copied && r->manifest && st != KILN_E_IO && st != KILN_E_BUG &&
        (st == KILN_OK || r->lists.n_stored || r->committed))
        KILN_TRY(publish(r, err));
    const kiln_round *round = r->hosts.round;
    if (round->mode != KILN_ROUND_GATHER || !round->has_claim || r->hosts.cut || !r->manifest)
        return KILN_OK;
    /* a gather of numbers alone commits nothing */
    if (!r->committed && st != KILN_OK) return KILN_OK;
    return kiln_claim_remove(kiln_manifest_path(r->manifest), err);
}

void kiln_round_release(kiln_round *round)
{
    kiln_claim_release(&round->claim);
    free(round->decisions);
    kiln_buffer_release(&round->missing);
    *round = (kiln_round){0};
}

/* ---- lists ----------------------------------------------------------------------------------- */
/* Decided by the list alone, not by what is due of it: a later run finds less due. */
static bool is_shared(const kiln_job *j, uint64_t n)
{
    if (n < 2 || j->run->hosts.round->shares_nothing) return false;
    for (uint64_t i = 0; i < n; i++) {
        const kiln_unit *u = &j->units[i];
        if (u->volatile_result || (u->planning && !j->run->hosts.round->shares_planning))
            return false;
    }
    return true;
}

/* Units that are due and would be stored. */
static bool has_stored_due(const kiln_job *j)
{
    for (uint64_t i = 0; i < j->n_due; i++)
        if (!kiln_job_unit(j, i)->volatile_result) return true;
    return false;
}

/* Costs, groups and places are in it, because they decide who computes what. */
static kiln_hash plan_key(const kiln_job *j, uint64_t n, const kiln_claim *c)
{
    const kiln_run *r = j->run;
    const kiln_unit *units = j->units;
    kiln_hasher *h = kiln_key_begin(r->program->name, r->stage ? r->stage->version : 0);
    kiln_key_text(h, "plan of", j->what);
    kiln_key_u64(h, "units", n);
    for (uint32_t i = 0; i < r->hosts.round->n_decisions; i++)
        kiln_key_u64(h, r->hosts.round->decisions[i].name, r->hosts.round->decisions[i].value);
    for (uint64_t i = 0; i < c->n_due; i++) {
        kiln_key_u64(h, "due from", c->due[i].first);
        kiln_key_u64(h, "to", c->due[i].last);
    }
    for (uint64_t i = 0; i < n; i++) {
        kiln_key_hash(h, "unit", units[i].key);
        kiln_key_u64(h, "cost", units[i].cost);
        kiln_key_u64(h, "group", units[i].group);
        if (units[i].place) kiln_key_u64(h, "place", units[i].place);
    }
    return kiln_key_end(h);
}

static bool is_of_claim(const kiln_job *j, uint64_t n)
{
    const kiln_round *round = j->run->hosts.round;
    const kiln_claim *c = &round->claim;
    return round->has_claim && !round->met && is_shared(j, n) && c->n_units == n &&
           !strcmp(c->what, j->what) && kiln_hash_equal(c->plan, plan_key(j, n, c));
}

bool kiln_run_is_planned(kiln_run *r, const char *what, kiln_unit *units, uint64_t n)
{
    const kiln_job j = {.run = r, .what = what, .units = units};
    return is_of_claim(&j, n);
}

static kiln_status note_due(const kiln_job *j, kiln_claim *c, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&c->due, j->n_due, "a claim", err)); /* at most: neighbours are one range */
    for (uint64_t i = 0; i < j->n_due; i++) {
        const uint64_t at = j->due[i];
        if (c->n_due && c->due[c->n_due - 1].last + 1 == at)
            c->due[c->n_due - 1].last = at;
        else
            c->due[c->n_due++] = (kiln_claim_range){at, at};
    }
    return KILN_OK;
}

static kiln_status note_decisions(const kiln_round *round, kiln_claim *c, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&c->decisions, round->n_decisions, "a claim", err));
    if (round->n_decisions)
        memcpy(c->decisions, round->decisions, round->n_decisions * sizeof *c->decisions);
    c->n_decisions = round->n_decisions;
    return KILN_OK;
}

static void say_planned(const kiln_claim *c, uint64_t n_due)
{
    kiln_say("planned: %s, %llu of %s in %s; --shard I/N --part DIR computes them, --gather DIR "
             "stores them",
             c->what, (unsigned long long)n_due, KILN_COUNT(c->n_units, "unit"),
             KILN_COUNT(c->tasks, "task"));
}

/* What is due by what a task does once: with more tasks each does more of that than of its
 * units. */
static void say_worth(const kiln_job *j, const kiln_claim *c)
{
    const uint64_t once = j->run->hosts.round->once;
    uint64_t worth = 0, cost = 0;
    for (uint64_t i = 0; once && i < j->n_due; i++) cost += kiln_job_unit(j, i)->cost;
    if (once) worth = cost > once ? cost / once : 1;
    if (once && c->tasks > worth)
        kiln_say("%s %s worth it: with more, each decodes longer than it computes, and all "
                 "together take more of the processors",
                 KILN_COUNT(worth, "task"), worth == 1 ? "is" : "are");
}

static uint64_t count_due(const kiln_claim *c)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < c->n_due; i++) n += c->due[i].last - c->due[i].first + 1;
    return n;
}

/* The claim is written while this process holds the lock, so that no other writer comes between. A
 * gather replaces the claim of the round before: the manifest is never without one in between. */
static kiln_status plan(kiln_job *j, uint64_t n, kiln_error *err)
{
    kiln_round *round = j->run->hosts.round;
    const uint32_t asked = j->run->options->tasks,
                   before = round->has_claim ? round->claim.tasks : 1;
    kiln_claim c = {.n_units = n, .tasks = asked ? asked : before};
    kiln_status st;
    (void)snprintf(c.stage, sizeof c.stage, "%s", j->run->program->name);
    (void)snprintf(c.what, sizeof c.what, "%s", j->what);
    KILN_GO(note_due(j, &c, err));
    KILN_GO(note_decisions(round, &c, err));
    c.plan = plan_key(j, n, &c);
    KILN_GO(kiln_scratch_folder_sync(kiln_run_scratch_folder(j->run), err));
    KILN_GO(publish(
        j->run,
        /* first: parts read it when they see the claim, and refuse a log, which a plan that is
         * killed now would leave */
        err));
    KILN_GO(kiln_claim_write(kiln_manifest_path(j->run->manifest), &c, err));
    say_planned(&c, j->n_due);
    say_worth(j, &c);
    kiln_claim_release(&round->claim);
    round->claim = c;
    round->has_claim = true;
    j->run->hosts.cut = "planned";
    return KILN_OK;
done:
    kiln_claim_release(&c);
    return st;
}

/* The plan stands, and perhaps parts of it are being made: only the number of tasks may become
 * another. */
static kiln_status plan_again(kiln_job *j, kiln_error *err)
{
    kiln_round *round = j->run->hosts.round;
    const uint32_t asked = j->run->options->tasks;
    if (asked && asked != round->claim.tasks) {
        round->claim.tasks = asked;
        KILN_TRY(kiln_claim_set_tasks(kiln_manifest_path(j->run->manifest), j->run->program->name,
                                      round->claim.plan, asked, err));
    }
    say_planned(&round->claim, count_due(&round->claim));
    j->run->hosts.cut = "planned";
    return KILN_OK;
}

static kiln_status refuse_list(const kiln_job *j, kiln_error *err)
{
    const kiln_run *r = j->run;
    if (!r->hosts.round->has_claim)
        return kiln_fail(err, KILN_E_STALE,
                         "kiln-%s has no plan for '%s'; run kiln-%s --plan first", r->program->name,
                         kiln_manifest_path(r->manifest), r->program->name);
    return kiln_fail(err, KILN_E_STALE,
                     "the units of '%s' differ from those of its plan (%s, host %s, %s): give the "
                     "options that --plan was "
                     "given, with unchanged input files, or plan anew with --break-claim",
                     j->what, r->hosts.round->claim.what, r->hosts.round->claim.host,
                     r->hosts.round->claim.start);
}

/* Units that were given up before the plan was made: it does without them, so this run must, too. A
 * part tells nothing of them. */
static kiln_status leave_out_given_up(kiln_job *j, kiln_error *err)
{
    kiln_run *r = j->run;
    kiln_quarantine_row *rows = NULL;
    uint32_t n_rows = 0;
    uint64_t left = 0;
    KILN_TRY(kiln_quarantine_get(r->manifest, r->program->name, &rows, &n_rows, err));
    kiln_status st = KILN_OK;
    for (uint64_t i = 0; i < j->n_due && st == KILN_OK; i++) {
        kiln_unit *u = kiln_job_unit(j, i);
        uint32_t k = 0;
        while (k < n_rows && !kiln_hash_equal(rows[k].key, u->key)) k++;
        u->quarantined = u->optional && !u->volatile_result && k < n_rows;
        if (!u->quarantined)
            j->due[left++] = j->due[i];
        else if (r->hosts.round->mode == KILN_ROUND_GATHER)
            st = kiln_run_quarantine_again(r, &rows[k], err);
    }
    free(rows);
    if (st == KILN_OK) j->n_due = j->n_open = left;
    return st;
}

static kiln_status begin_list(kiln_job *j, uint64_t n, kiln_error *err)
{
    kiln_round *round = j->run->hosts.round;
    if (round->mode == KILN_ROUND_NONE) return KILN_OK;
    round->meets = is_of_claim(j, n);
    if (round->meets) {
        round->met = true;
        if (round->mode == KILN_ROUND_PLAN) return plan_again(j, err);
        return round->mode == KILN_ROUND_PART ? kiln_job_part_begin(j, n, err)
                                              : kiln_job_gather(j, n, err);
    }
    const bool plans = round->mode == KILN_ROUND_GATHER
                           ? round->met
                           : round->mode == KILN_ROUND_PLAN && !round->has_claim;
    if (!plans && round->has_claim && has_stored_due(j)) KILN_TRY(leave_out_given_up(j, err));
    if (!plans) return has_stored_due(j) ? refuse_list(j, err) : KILN_OK;
    return is_shared(j, n) && j->n_due >= 2 ? plan(j, n, err) : KILN_OK;
}

static kiln_status end_list(kiln_job *j, kiln_error *err)
{
    KILN_TRY(kiln_job_part_end(j, err));
    if (j->run->hosts.round->meets) kiln_job_parts_remove(j);
    return KILN_OK;
}

/* ---- the report ------------------------------------------------------------------------------ */
/* JSON's null for a plan or gather after which nothing is left to share out. NULL: no memory. */
static json_t *round_json(const kiln_run *r)
{
    char hex[33];
    const kiln_round *round = r->hosts.round;
    const kiln_claim *c = &round->claim;
    if (!round->has_claim || r->committed) return json_null();
    json_t *out = json_pack("{s:s, s:o, s:I, s:I, s:I}", "plan", kiln_hash_hex(c->plan, hex),
                            "what", kiln_json_string(c->what), "units", (json_int_t)c->n_units,
                            "due", (json_int_t)count_due(c), "tasks", (json_int_t)c->tasks);
    int failed = 0;
    if (round->mode == KILN_ROUND_PART)
        failed =
            json_object_set_new(out, "part", kiln_json_string(round->path)) ||
            json_object_set_new(out, "taken", json_integer((json_int_t)round->n_taken)) ||
            json_object_set_new(out, "elsewhere", json_integer((json_int_t)round->n_elsewhere));
    if (round->n_missing)
        failed = json_object_set_new(out, "missing", json_integer((json_int_t)round->n_missing)) ||
                 json_object_set_new(out, "missing_shards",
                                     json_string((const char *)round->missing.data));
    if (!failed) return out;
    json_decref(out);
    return NULL;
}

static int add_report(const kiln_run *r, json_t *report)
{
    return r->hosts.round->mode == KILN_ROUND_NONE
               ? 0
               : json_object_set_new(report, "round", round_json(r));
}

const kiln_host_hooks kiln_round_hooks = {.agree = kiln_round_agree,
                                          .check_agreed = kiln_round_check_agreed,
                                          .begin_list = begin_list,
                                          .end_list = end_list,
                                          .add_report = add_report};
