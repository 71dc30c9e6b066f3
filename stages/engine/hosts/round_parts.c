/* Parts: making one, and bringing them in.
 *
 * A part belongs to a plan by its key, which is in its name. Of the same plan there may be parts of
 * several numbers of shards, after somebody has asked for more tasks; what they have is not
 * computed again. Parts of the same number never overlap. */
#include "stages/engine/hosts/round_parts.h"

#include "base/count.h"
#include "base/log.h"
#include "base/memory.h"
#include "schema/part.h"
#include "stages/engine/engine_options.h"
#include "stages/engine/hosts/round.h"
#include "stages/engine/hosts/shards.h"
#include "stages/engine/interrupt.h"
#include "stages/engine/parent/commit.h"
#include "stages/engine/parent/run_memory.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- files of the plan ----------------------------------------------------------------------- */
typedef struct {
    char (*names)[KILN_PART_NAME_MAX];
    uint64_t n, capacity;
} name_list;

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

static kiln_status add_name(name_list *l, const char *name, kiln_error *err)
{
    if (l->n == l->capacity) {
        const uint64_t capacity = l->capacity ? 2 * l->capacity : 64;
        void *more;
        KILN_TRY(kiln_alloc(&more, capacity, sizeof *l->names, "the names of parts", err));
        if (l->n) memcpy(more, l->names, l->n * sizeof *l->names);
        free(l->names);
        l->names = more;
        l->capacity = capacity;
    }
    memcpy(l->names[l->n++], name, strlen(name) + 1); /* its caller has looked that it fits */
    return KILN_OK;
}

/* STAGE-PLAN-I-of-N.part: what a part of this plan is called, up to its shard. */
static void name_head(const kiln_run *r, kiln_hash plan, char out[KILN_PART_NAME_MAX])
{
    char hex[33];
    (void)snprintf(out, KILN_PART_NAME_MAX, "%s-%s-", r->program->name, kiln_hash_hex(plan, hex));
}

static bool has_ending(const char *name, const char *ending)
{
    const size_t n = strlen(name), m = strlen(ending);
    return n >= m && !strcmp(name + n - m, ending);
}

/* Lists the parts of a plan in the folder, by name. A folder that is not there has none. without:
 * "-of-8.part" leaves those of 8 tasks out; NULL: none. */
static kiln_status list_parts(const kiln_run *r, kiln_hash plan, const char *folder,
                              const char *without, name_list *out, kiln_error *err)
{
    char head[KILN_PART_NAME_MAX];
    kiln_status st = KILN_OK;
    name_head(r, plan, head);
    DIR *d = opendir(folder);
    if (!d && errno == ENOENT) return KILN_OK;
    if (!d)
        return kiln_fail(err, KILN_E_IO, "cannot list the parts in '%s': %s", folder,
                         strerror(errno));
    for (const struct dirent *e = readdir(d); e && st == KILN_OK; e = readdir(d)) {
        if (strncmp(e->d_name, head, strlen(head)) != 0 || !has_ending(e->d_name, ".part"))
            continue;
        if (strlen(e->d_name) >= KILN_PART_NAME_MAX || (without && has_ending(e->d_name, without)))
            continue;
        st = add_name(out, e->d_name, err);
    }
    (void)closedir(d); /* was only read */
    if (st == KILN_OK && out->n) qsort(out->names, out->n, sizeof *out->names, by_name);
    return st;
}

/* Opens a part and checks that it is what its name says: a stranger may have named it. */
static kiln_status open_part(const kiln_run *r, const char *folder, const char *name,
                             kiln_part **out, bool *unreadable, kiln_error *err)
{
    char path[KILN_PATH_MAX], own[KILN_PART_NAME_MAX];
    *out = NULL;
    KILN_TRY(kiln_path_join(path, sizeof path, folder, name, err));
    KILN_TRY(kiln_part_open(path, out, unreadable, err));
    const kiln_part_info *info = kiln_part_get_info(*out);
    kiln_status st = kiln_part_name(info, own, err);
    if (st == KILN_OK && !strcmp(own, name) && !strcmp(info->stage, r->program->name) &&
        kiln_hash_equal(info->plan, r->hosts.round->claim.plan))
        return KILN_OK;
    if (st == KILN_OK)
        st = kiln_fail(err, KILN_E_INPUT,
                       "the file '%s' holds the part '%s', whose name is another one", path, own);
    kiln_part_close(*out);
    *out = NULL;
    return st;
}

static bool blames_part(kiln_status st) { return st == KILN_E_INPUT || st == KILN_E_IO; }

/* ---- --part: what is left to do -------------------------------------------------------------- */
static int by_bytes(const void *a, const void *b) { return memcmp(a, b, sizeof(kiln_hash)); }

static bool has_key(const kiln_part *p, const kiln_hash *key)
{
    uint64_t n;
    const kiln_hash *keys = kiln_part_keys(p, &n);
    return n && bsearch(key, keys, n, sizeof *keys, by_bytes);
}

/* Returns how many units that were due the part has. */
static uint64_t drop_done(kiln_job *j, const kiln_part *p)
{
    const uint64_t before = j->n_due;
    uint64_t kept = 0;
    for (uint64_t i = 0; i < before; i++) {
        if (has_key(p, &kiln_job_unit(j, i)->key)) continue;
        j->due[kept++] = j->due[i];
    }
    j->n_due = j->n_open = kept;
    return before - kept;
}

static bool has_all_due(kiln_job *j, const kiln_part *p)
{
    for (uint64_t i = 0; i < j->n_due; i++)
        if (!has_key(p, &kiln_job_unit(j, i)->key)) return false;
    return true;
}

/* Parts of other numbers of shards; a torn one is left to --gather, which renames it. */
static kiln_status drop_units_of_others(kiln_job *j, const char *folder, kiln_error *err)
{
    char own[64];
    name_list names = {0};
    kiln_status st;
    (void)snprintf(own, sizeof own, "-of-%u.part", j->run->hosts.round->n_shards);
    KILN_GO(list_parts(j->run, j->run->hosts.round->claim.plan, folder, own, &names, err));
    for (uint64_t i = 0; i < names.n && j->n_due; i++) {
        kiln_part *p;
        kiln_error why = {0};
        st = open_part(j->run, folder, names.names[i], &p, NULL, &why);
        if (blames_part(st)) {
            kiln_warn("a part is not used: %s", why.msg);
            st = KILN_OK;
            continue;
        }
        if (st != KILN_OK) {
            st = kiln_fail(err, st, "%s", why.msg);
            goto done;
        }
        j->run->hosts.round->n_elsewhere += drop_done(j, p);
        kiln_part_close(p);
    }
done:
    free(names.names);
    return st;
}

/* Gives the shard of each unit that was due at the plan, by its place in that list:
 * (*shard_of)[*n_planned]. free(*shard_of). */
static kiln_status cut_plan(const kiln_job *j, uint64_t n, uint32_t n_shards, uint32_t **shard_of,
                            kiln_error *err)
{
    kiln_status st;
    kiln_share *shares = NULL;
    uint64_t n_planned = 0;
    *shard_of = NULL;
    KILN_GO(KILN_ALLOC(&shares, n, "shards", err));
    KILN_GO(KILN_ALLOC(shard_of, n, "shards", err));
    for (uint64_t i = 0; i < n; i++)
        if (kiln_claim_has_due(&j->run->hosts.round->claim, i)) {
            const kiln_unit *u = &j->units[i];
            shares[n_planned] = (kiln_share){
                .cost = u->cost, .group = u->group, .place = u->place, .number = n_planned};
            n_planned++;
        }
    kiln_shares_sort(shares, n_planned);
    kiln_shards_cut(shares, n_planned, n_shards, *shard_of);
done:
    free(shares);
    return st;
}

/* Calls for each due unit, in order, with its shard. What is due now was due at the plan, or has
 * been lost since. */
typedef void each_fn(kiln_job *j, uint64_t item, uint32_t shard, void *context);

static kiln_status each_due(kiln_job *j, uint64_t n, uint32_t n_shards, each_fn *each,
                            void *context, kiln_error *err)
{
    uint32_t *shard_of;
    uint64_t item = 0, planned = 0;
    KILN_TRY(cut_plan(j, n, n_shards, &shard_of, err));
    for (uint64_t i = 0; i < n && item < j->n_due; i++) {
        const bool was_due = kiln_claim_has_due(&j->run->hosts.round->claim, i);
        if (j->due[item] == i) {
            each(j, item, was_due ? shard_of[planned] : 0, context);
            item++;
        }
        planned += was_due;
    }
    free(shard_of);
    return KILN_OK;
}

static void keep_own(kiln_job *j, uint64_t item, uint32_t shard, void *context)
{
    uint64_t *kept = context;
    if (shard + 1 == j->run->hosts.round->shard) j->due[(*kept)++] = j->due[item];
}

/* ---- --part: the file ------------------------------------------------------------------------ */
/* How often the scheduler has begun this task anew. It is part of a temporary name alone. */
static uint32_t restarts(void)
{
    const char *text = getenv("SLURM_RESTART_COUNT");
    return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

static void fill_info(const kiln_run *r, kiln_part_info *info)
{
    *info = (kiln_part_info){.plan = r->hosts.round->claim.plan,
                             .shard = r->hosts.round->shard,
                             .shards = r->hosts.round->n_shards};
    (void)snprintf(info->stage, sizeof info->stage, "%s", r->program->name);
}

/* Made on this host's disk if --scratch-dir names one, else where it will lie. */
static kiln_status make_part(kiln_run *r, const kiln_part_info *info, kiln_error *err)
{
    const char *folder = r->options->scratch_dir ? r->options->scratch_dir : r->options->part;
    char path[KILN_PATH_MAX];
    KILN_TRY(kiln_part_draft_path(info, folder, restarts(), path, err));
    return kiln_part_create(path, info, r->manifest, &r->hosts.part, err);
}

/* Opens the part that is there of this task. *out NULL: none, or one that cannot be used. */
static kiln_status open_own(const kiln_run *r, const char *folder, const char *name,
                            kiln_part **out, kiln_error *err)
{
    kiln_error why = {0};
    *out = NULL;
    if (access(r->hosts.round->path, F_OK) != 0) return KILN_OK;
    const kiln_status st = open_part(r, folder, name, out, NULL, &why);
    if (st == KILN_OK) return st;
    if (!blames_part(st)) return kiln_fail(err, st, "%s", why.msg);
    kiln_warn("a part is computed again: %s", why.msg);
    return KILN_OK;
}

/* What the part that is there has goes into the one that is made in its place. Where that fails,
 * this task computes it. */
static kiln_status keep_units(kiln_job *j, kiln_part *own, const char *name, kiln_error *err)
{
    kiln_run *r = j->run;
    kiln_part_report report;
    kiln_error why = {0};
    bool made_failed = false;
    kiln_status st = kiln_ram_need_gather(kiln_run_ram(r), kiln_part_ram(own), name, &why);
    if (st == KILN_OK)
        st = kiln_part_gather(r->hosts.part, own, NULL, 0, &report, &made_failed, &why);
    if (st == KILN_OK) (void)drop_done(j, own);
    if (st == KILN_OK || (!made_failed && (blames_part(st) || st == KILN_E_CAP))) return KILN_OK;
    return kiln_fail(err, st, "%s", why.msg);
}

kiln_status kiln_job_part_begin(kiln_job *j, uint64_t n, kiln_error *err)
{
    kiln_run *r = j->run;
    kiln_round *round = r->hosts.round;
    const char *folder = r->options->part;
    char name[KILN_PART_NAME_MAX];
    kiln_part_info info;
    kiln_part *own = NULL;
    uint64_t kept = 0;
    kiln_status st = KILN_OK;
    fill_info(r, &info);
    KILN_TRY(kiln_part_name(&info, name, err));
    KILN_TRY(kiln_path_join(round->path, sizeof round->path, folder, name, err));
    KILN_TRY(kiln_make_parents(round->path, err));
    kiln_part_leftovers_drop(folder, r->program->name, false);
    if (r->options->scratch_dir)
        kiln_part_leftovers_drop(r->options->scratch_dir, r->program->name, false);
    KILN_TRY(each_due(j, n, round->n_shards, keep_own, &kept, err));
    j->n_due = j->n_open = kept;
    KILN_TRY(open_own(r, folder, name, &own, err));
    if (!own || !has_all_due(j, own)) KILN_GO(drop_units_of_others(j, folder, err));
    if (own && has_all_due(j, own)) {
        kiln_say("the part is complete already: '%s'", round->path);
        j->n_due = j->n_open = 0;
        r->hosts.cut = "part stored";
        goto done;
    }
    KILN_GO(make_part(r, &info, err));
    if (own) KILN_GO(keep_units(j, own, name, err));
    round->n_taken = j->n_due;
done:
    kiln_part_close(own);
    return st;
}

/* What this task has read was one state of the manifest, that of the plan: a gather that came
 * before the task's end, or a plan that was given up and made anew, may have changed it under its
 * hands. */
static kiln_status check_unchanged(const kiln_run *r, kiln_error *err)
{
    const kiln_round *round = r->hosts.round;
    const char *path = kiln_manifest_path(r->manifest);
    kiln_claim now;
    bool there;
    uint32_t changes;
    KILN_TRY(kiln_claim_read(path, &there, &now, err));
    const bool stands = there && kiln_hash_equal(now.plan, round->claim.plan);
    kiln_claim_release(&now);
    if (!stands)
        return kiln_fail(err, KILN_E_STALE,
                         "the plan of '%s' that this task belongs to is closed, so its part is not "
                         "needed any more",
                         path);
    KILN_TRY(kiln_manifest_changes(r->manifest, &changes, err));
    if (changes == round->changes) return KILN_OK;
    return kiln_fail(err, KILN_E_BUSY,
                     "'%s' was changed by a gather while this task read it, so its part may be "
                     "wrong and is dropped; run it again",
                     path);
}

kiln_status kiln_job_part_end(kiln_job *j, kiln_error *err)
{
    kiln_run *r = j->run;
    kiln_manifest *part = r->hosts.part;
    if (!part) return KILN_OK;
    KILN_TRY(check_unchanged(r, err));
    KILN_TRY(kiln_manifest_begin(part, err));
    kiln_status st =
        kiln_run_record(r, r->quarantine.n_failed ? KILN_E_PARTIAL : KILN_OK, NULL, err);
    if (st == KILN_OK) st = kiln_manifest_commit(part, err);
    if (st != KILN_OK) {
        kiln_manifest_rollback(part);
        return st;
    }
    r->hosts.part = NULL; /* released in any case */
    KILN_TRY(kiln_part_finish(part, r->options->part, restarts(), err));
    r->hosts.cut = "part stored";
    kiln_say("part %u of %u: %s, '%s'", r->hosts.round->shard, r->hosts.round->n_shards,
             KILN_COUNT(r->hosts.round->n_taken, "unit"), r->hosts.round->path);
    return KILN_OK;
}

/* ---- --gather -------------------------------------------------------------------------------- */
/* Renames a part that cannot be used, so that it is met once. */
static void put_aside(const char *folder, const char *name, const kiln_error *why)
{
    char path[KILN_PATH_MAX], bad[KILN_PATH_MAX + 8];
    if (kiln_path_join(path, sizeof path, folder, name, NULL) != KILN_OK) return;
    (void)snprintf(bad, sizeof bad, "%s.bad", path);
    const bool renamed = rename(path, bad) == 0;
    kiln_warn("%s; %s '%s'", why->msg, renamed ? "it is now" : "it cannot be renamed",
              renamed ? bad : path);
}

/* Has the stage look for the files of what the part has brought. *why: of the first unit that is
 * dropped. */
static kiln_status check_files(kiln_job *j, const kiln_part *p, kiln_error *why, kiln_error *err)
{
    kiln_run *r = j->run;
    for (uint64_t i = 0; r->hosts.round->check && i < j->n_due; i++) {
        const kiln_unit *u = kiln_job_unit(j, i);
        kiln_unit_result result;
        kiln_error bad = {0};
        bool is_there;
        if (!has_key(p, &u->key)) continue;
        KILN_TRY(kiln_unit_find(r->manifest, u->key, &is_there, &result, err));
        const kiln_status st = is_there ? r->hosts.round->check(r, u, &result, &bad) : KILN_OK;
        kiln_unit_result_release(&result);
        if (st == KILN_OK) continue;
        if (st != KILN_E_INPUT) return kiln_fail(err, st, "%s", bad.msg);
        if (why->status == KILN_OK) *why = bad;
        KILN_TRY(kiln_unit_forget(r->manifest, u->key, err));
        r->hosts.round->n_taken--;
        r->lists.n_stored--;
    }
    return KILN_OK;
}

static kiln_status gather_one(kiln_job *j, const char *folder, const char *name,
                              const kiln_hash *wanted, uint64_t n, kiln_part_memory **memory,
                              kiln_error *err)
{
    kiln_run *r = j->run;
    kiln_part *p;
    kiln_part_report report = {0};
    bool own = false, unreadable;
    kiln_error why = {0};
    kiln_status st = open_part(r, folder, name, &p, &unreadable, &why);
    if (st == KILN_OK) st = kiln_ram_need_gather(kiln_run_ram(r), kiln_part_ram(p), name, &why);
    /* no unit is in work now */
    if (st == KILN_OK) kiln_part_use_threads(p, kiln_devices_threads(r->common->threads));
    if (st == KILN_OK) kiln_part_use_memory(p, memory);
    if (st == KILN_OK) st = kiln_part_gather(r->manifest, p, wanted, n, &report, &own, &why);
    r->hosts.round->n_taken += report.inserted;
    r->lists.n_stored += report.inserted;
    r->lists.stored_bytes += report.bytes;
    const kiln_status checked =
        p && !own && (st == KILN_OK || blames_part(st)) ? check_files(j, p, &why, err) : KILN_OK;
    if (p) unreadable = kiln_part_unreadable(p);
    kiln_part_close(p);
    if (checked != KILN_OK) return checked;
    if (st == KILN_OK) st = why.status;
    if (st == KILN_OK) return KILN_OK;
    if (own || unreadable || !blames_part(st)) return kiln_fail(err, st, "%s", why.msg);
    put_aside(folder, name, &why);
    return KILN_OK;
}

/* The keys that are due, in their order, each once. */
static kiln_status list_wanted(const kiln_job *j, kiln_hash **out, uint64_t *n, kiln_error *err)
{
    kiln_status st;
    kiln_hash *sorted = NULL;
    bool *taken = NULL;
    uint64_t n_sorted = 0;
    *out = NULL;
    *n = 0;
    KILN_GO(KILN_ALLOC(&sorted, j->n_due, "keys of units", err));
    KILN_GO(KILN_ALLOC(&taken, j->n_due, "keys of units", err));
    KILN_GO(KILN_ALLOC(out, j->n_due, "keys of units", err));
    for (uint64_t i = 0; i < j->n_due; i++) sorted[i] = kiln_job_unit(j, i)->key;
    if (j->n_due) qsort(sorted, j->n_due, sizeof *sorted, by_bytes);
    for (uint64_t i = 0; i < j->n_due; i++)
        if (n_sorted == 0 || !kiln_hash_equal(sorted[n_sorted - 1], sorted[i]))
            sorted[n_sorted++] = sorted[i];
    for (uint64_t i = 0; i < j->n_due; i++) {
        const kiln_hash *key = &kiln_job_unit(j, i)->key;
        const kiln_hash *at = bsearch(key, sorted, n_sorted, sizeof *sorted, by_bytes);
        if (!at || taken[at - sorted]) continue;
        taken[at - sorted] = true;
        (*out)[(*n)++] = *key;
    }
done:
    free(sorted);
    free(taken);
    return st;
}

/* Looks up again what was due. */
static kiln_status look_again(kiln_job *j, kiln_error *err)
{
    uint64_t left = 0;
    for (uint64_t i = 0; i < j->n_due; i++) {
        kiln_unit *u = kiln_job_unit(j, i);
        KILN_TRY(kiln_unit_find(j->run->manifest, u->key, &u->was_cached, &u->result, err));
        if (u->was_cached)
            j->run->lists.n_cached++;
        else
            j->due[left++] = j->due[i];
    }
    j->n_due = j->n_open = left;
    return KILN_OK;
}

typedef struct {
    kiln_buffer *text;
    kiln_error *err;
    kiln_status status;
    uint32_t first, last; /* the range that is open; last 0: none */
} shard_text;

static void put_range(shard_text *s)
{
    if (s->status != KILN_OK || s->last == 0) return;
    s->status = kiln_buffer_printf(s->text, s->err, s->first == s->last ? "%s%u" : "%s%u-%u",
                                   s->text->size ? "," : "", s->first, s->last);
}

static void note_shard(kiln_job *j, uint64_t item, uint32_t shard, void *context)
{
    shard_text *s = context;
    (void)j;
    (void)item;
    if (s->last && (shard + 1 == s->last || shard == s->last)) {
        s->last = shard + 1;
        return;
    }
    put_range(s);
    s->first = s->last = shard + 1;
}

/* Says which tasks are to be run again, as a scheduler's array takes them. why: what keeps this
 * host from computing them; "": it was told not to. */
static kiln_status refuse_missing(kiln_job *j, uint64_t n, const char *why, kiln_error *err)
{
    kiln_round *round = j->run->hosts.round;
    shard_text s = {.text = &round->missing, .err = err};
    round->n_missing = j->n_due;
    KILN_TRY(each_due(j, n, round->claim.tasks, note_shard, &s, err));
    put_range(&s);
    KILN_TRY(s.status);
    return kiln_fail(err, KILN_E_PARTIAL,
                     "%s in no part; the first is '%s'%s%.300s; of %s, these compute them: %.400s",
                     KILN_COUNT(j->n_due, "unit is|units are"), kiln_job_unit(j, 0)->name,
                     *why ? "; this host cannot compute them: " : "", why,
                     KILN_COUNT(round->claim.tasks, "task"), (const char *)round->missing.data);
}

/* Computes nothing here if that was asked for, or if --devices names a kind that this host has not:
 * then units that tasks have given up are not tried again on what would not have their key. */
static kiln_status refuse_or_compute_missing(kiln_job *j, uint64_t n, kiln_error *err)
{
    kiln_error why = {0};
    if (j->n_due == 0) return KILN_OK;
    if (j->run->options->no_compute) return refuse_missing(j, n, "", err);
    const kiln_status st = kiln_run_find_devices(j->run, &why);
    if (st == KILN_E_DEVICE) return refuse_missing(j, n, why.msg, err);
    return st == KILN_OK ? KILN_OK : kiln_fail(err, st, "%s", why.msg);
}

kiln_status kiln_job_gather(kiln_job *j, uint64_t n, kiln_error *err)
{
    const char *folder = j->run->options->gather;
    kiln_part_memory *memory = NULL;
    name_list names = {0};
    kiln_hash *wanted = NULL;
    uint64_t n_wanted;
    kiln_status st;
    if (access(folder, F_OK) != 0 && errno == ENOENT)
        return kiln_fail(err, KILN_E_INPUT,
                         "the folder '%s' of the parts does not exist; give --gather the folder "
                         "that --part was given",
                         folder);
    KILN_GO(list_parts(j->run, j->run->hosts.round->claim.plan, folder, NULL, &names, err));
    KILN_GO(list_wanted(j, &wanted, &n_wanted, err));
    for (uint64_t i = 0; i < names.n && n_wanted; i++) {
        KILN_GO(kiln_interrupt_check(err));
        KILN_GO(gather_one(j, folder, names.names[i], wanted, n_wanted, &memory, err));
    }
    kiln_part_memory_free(memory);
    memory = NULL;
    KILN_GO(look_again(j, err));
    kiln_say("gathered: %s from %s, %llu missing", KILN_COUNT(j->run->hosts.round->n_taken, "unit"),
             KILN_COUNT(names.n, "part"), (unsigned long long)j->n_due);
    st = refuse_or_compute_missing(j, n, err);
done:
    kiln_part_memory_free(memory);
    free(names.names);
    free(wanted);
    return st;
}

void kiln_round_remove_parts(kiln_run *r)
{
    char path[KILN_PATH_MAX], of[KILN_PART_NAME_MAX];
    name_list names = {0};
    const char *folder = r->options->gather;
    const kiln_hash plan = r->hosts.round->removes;
    r->hosts.round->removes = (kiln_hash){{0}};
    if (kiln_hash_is_zero(plan)) return;
    if (list_parts(r, plan, folder, NULL, &names, NULL) != KILN_OK) names.n = 0;
    for (uint64_t i = 0; i < names.n; i++)
        if (kiln_path_join(path, sizeof path, folder, names.names[i], NULL) == KILN_OK &&
            unlink(path) != 0)
            kiln_warn("the part '%s' could not be removed: %s", path, strerror(errno));
    free(names.names);
    name_head(r, plan, of);
    of[strlen(of) - 1] = '\0'; /* the '-' before the shard */
    kiln_part_leftovers_drop(folder, of, true);
    if (r->options->scratch_dir) kiln_part_leftovers_drop(r->options->scratch_dir, of, false);
}

void kiln_job_parts_remove(const kiln_job *j)
{
    if (!j->run->options->remove_parts) return;
    j->run->hosts.round->removes = j->run->hosts.round->claim.plan;
    if (!j->run->hosts.round->copied) kiln_round_remove_parts(j->run);
}
