/* slurm_job -- see the header. A step is a stage's program with the words that `kiln pipeline`
 * gives it and those of the round (stages/engine/hosts/round.h). Our own stages run in this
 * process, as under `kiln pipeline`. */
#include "stages/front/slurm_job.h"

#include "base/log.h"
#include "base/quote.h"
#include "stages/front/bake_report.h"
#include "stages/front/open_round.h"
#include "stages/front/programs.h"
#include "stages/front/slurm_calls.h"
#include "stages/front/slurm_last_job.h"
#include "stages/front/slurm_state.h"
#include "stages/front/slurm_submit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int busy = 75, partial = 7, stale = 4; /* exit codes of stages, base/status.h */

static kiln_status run_stage_words(const char *stage, kiln_words *words, int *code, kiln_error *err)
{
    int signal;
    char *const path = words->word[0];
    const kiln_status st =
        kiln_program_run(stage, (const char **)words->word, false, code, &signal, err);
    words->word[0] = path; /* which is set there */
    return st;
}

/* Runs the stage's program, behind the words of --wrapper; NULL ends the words that are added to
 * its own. */
static kiln_status run_step(const kiln_slurm_bake *b, const kiln_stage_command *c,
                            const char *const *more, int *code, kiln_error *err)
{
    kiln_words words = {0};
    const kiln_words *wrapper = &b->settings->list[KILN_SLURM_WRAPPER];
    kiln_status st = kiln_words_add_all(&words, wrapper, err);
    if (st == KILN_OK) st = kiln_words_add_all(&words, &c->words, err);
    for (; *more && st == KILN_OK; more++) st = kiln_words_add(&words, *more, err);
    (void)fflush(stdout);
    if (st == KILN_OK)
        st = wrapper->n ? kiln_program_run_words(words.word, code, err)
                        : run_stage_words(c->stage, &words, code, err);
    kiln_log_init(KILN_SLURM, KILN_LOG_NORMAL); /* a stage has one of its own */
    (void)fflush(stdout);
    kiln_words_release(&words);
    return st;
}

/* ---- a round's job --------------------------------------------------------------------------- */

typedef struct {
    const kiln_slurm_bake *b;
    const char *first;
    unsigned try;
    const kiln_stage_command *now; /* the stage that it is at */
    kiln_open_round open;
    bool ended; /* nothing more is to be done by this job */
    int code;
    uint64_t log_from; /* what its log held when the step in work began */
} round_job;

/* Nothing more is submitted. code 0: the bake is finished, and why is "" or what it lacks. */
static kiln_status end_bake(round_job *j, int code, const char *stage, const char *why,
                            kiln_error *err)
{
    char sentence[KILN_SLURM_WHY_MAX];
    /* those remain as they are */
    const bool same_helps = code != 0 && code != 2 && code != stale && code != partial;
    (void)snprintf(sentence, sizeof sentence, "%.*s%s", KILN_SLURM_WHY_MAX - 64, why,
                   same_helps ? "; run the same kiln slurm to continue from there" : "");
    j->ended = true;
    j->code = code;
    if (*sentence) kiln_say("%s", sentence);
    return kiln_slurm_end_put(&j->b->folder, code, stage, sentence, err);
}

/* What the stage has said last, which this job's log has; "": it is no file, or the stage said
 * nothing. */
static kiln_status last_said(const round_job *j, char *out, kiln_error *err)
{
    char name[64];
    kiln_buffer text = {0};
    *out = '\0';
    KILN_TRY(kiln_slurm_log_own(j->log_from, &text, err));
    (void)snprintf(name, sizeof name, "kiln-%.50s", j->now->stage);
    if (text.size) kiln_slurm_log_sentence((const char *)text.data, name, out);
    kiln_buffer_release(&text);
    return KILN_OK;
}

/* A stage that fails, or that Slurm ends: then Slurm has written why into this job's log. */
static kiln_status end_stage(round_job *j, int code, kiln_error *err)
{
    char why[KILN_SLURM_WHY_MAX], reason[KILN_SLURM_SENTENCE_MAX] = "";
    const bool is_slurms = code == kiln_exit_code(KILN_E_TERMINATED);
    if (is_slurms)
        KILN_TRY(kiln_slurm_own_cause_text(&j->b->folder, j->log_from, reason, sizeof reason, err));
    else
        KILN_TRY(last_said(j, reason, err));
    const char *join = !reason[0] ? "" : is_slurms ? ", because its job " : ": ";
    (void)snprintf(why, sizeof why, "kiln-%s ended with exit code %d%s%s", j->now->stage, code,
                   join, reason);
    return end_bake(j, code, j->now->stage, why, err);
}

static kiln_status end_by_other_plan(round_job *j, kiln_error *err)
{
    char why[KILN_SLURM_WHY_MAX];
    kiln_buffer command = {0};
    KILN_TRY(kiln_slurm_break_command(j->b, j->now->stage, &command, err));
    (void)snprintf(why, sizeof why,
                   "the open plan of %s was made with other options or files: give the old ones "
                   "again, or give up the plan with %.700s",
                   j->now->stage, (const char *)command.data);
    kiln_buffer_release(&command);
    return end_bake(j, stale, j->now->stage, why, err);
}

/* Is a round of the stage open that this job is at? */
static kiln_status look_for_round(round_job *j, bool *stands, kiln_error *err)
{
    KILN_TRY(kiln_open_round_read(j->b->folder.manifest, &j->open, err));
    *stands = j->open.there && !strcmp(j->open.stage, j->now->stage);
    return KILN_OK;
}

static kiln_status note_partial(round_job *j, kiln_error *err)
{
    char name[64], why[256];
    if (j->now->allows_partial) {
        kiln_slurm_partial_name(j->now->stage, name);
        return kiln_slurm_note_put(&j->b->folder, name, "7\n", err);
    }
    (void)snprintf(why, sizeof why,
                   "kiln-%s gave units up (exit code 7); run the same kiln slurm to try them "
                   "again, or continue without them with "
                   "--allow-partial",
                   j->now->stage);
    return end_bake(j, partial, j->now->stage, why, err);
}

/* Runs a step of the stage. j->ended: the bake cannot go on. */
static kiln_status settle_step(round_job *j, const char *const *more, kiln_error *err)
{
    int code;
    bool stands;
    j->log_from = kiln_slurm_log_own_size();
    KILN_TRY(run_step(j->b, j->now, more, &code, err));
    if (code == 0) return KILN_OK;
    if (code == busy) {
        kiln_error why = {0};
        (void)kiln_slurm_requeue(&why);
        return end_bake(j, busy, j->now->stage, why.msg, err);
    }
    if (code == partial) return note_partial(j, err);
    if (code != stale) return end_stage(j, code, err);
    KILN_TRY(look_for_round(j, &stands, err));
    return stands ? end_by_other_plan(j, err) : end_stage(j, code, err);
}

/* ---- tasks of the round ---------------------------------------------------------------------- */

static bool is_task_of(const kiln_slurm_job *job, const void *key)
{
    return job->is_task && !strcmp(job->key, key);
}

/* A bake that was cancelled meanwhile: kiln slurm --cancel may have looked before these were
 * submitted. */
static kiln_status cancel_submitted(const kiln_words *tasks, const char *next, kiln_error *err)
{
    kiln_words ids = {0};
    kiln_status st = kiln_words_add_all(&ids, tasks, err);
    if (st == KILN_OK && *next) st = kiln_words_add(&ids, next, err);
    if (st == KILN_OK) st = kiln_slurm_cancel_jobs(&ids, err);
    kiln_words_release(&ids);
    return st;
}

/* Submits this job behind the arrays with these ids, and ends. */
static kiln_status follow_tasks(round_job *j, unsigned try, const kiln_words *ids, kiln_error *err)
{
    char next[KILN_SLURM_ID_MAX], arrays[256] = "";
    kiln_error why = {0};
    for (size_t i = 0; i < ids->n; i++)
        (void)snprintf(arrays + strlen(arrays), sizeof arrays - strlen(arrays), "%s%s",
                       i ? ":" : "", ids->word[i]);
    if (kiln_slurm_submit_round(j->b, j->open.stage, j->open.key, j->first, try, ids, next, &why) !=
        KILN_OK) {
        char sentence[KILN_SLURM_WHY_MAX];
        (void)snprintf(sentence, sizeof sentence,
                       "the job after the tasks of %s could not be submitted: %.600s",
                       j->open.stage, why.msg);
        return end_bake(j, kiln_exit_code(KILN_E_IO), j->open.stage, sentence, err);
    }
    kiln_print(KILN_SLURM ": %s: %u tasks, array %s; then job %s", j->open.stage, j->open.tasks,
               arrays, next);
    j->ended = true;
    return kiln_slurm_note_there(&j->b->folder, "cancelled") ? cancel_submitted(ids, next, err)
                                                             : KILN_OK;
}

static kiln_status submit_missing(round_job *j, const kiln_task_list *missing, kiln_error *err)
{
    kiln_words ids = {0};
    kiln_error why = {0};
    if (kiln_slurm_note_there(&j->b->folder, "cancelled"))
        return end_bake(j, kiln_exit_code(KILN_E_TERMINATED), j->open.stage, "cancelled", err);
    kiln_status st = kiln_slurm_submit_tasks(j->b, &j->open, missing, &ids, &why);
    if (st == KILN_OK) {
        st = follow_tasks(j, j->try + 1, &ids, err);
    } else {
        char sentence[KILN_SLURM_WHY_MAX];
        (void)snprintf(sentence, sizeof sentence, "the tasks of %s could not be submitted: %.600s",
                       j->open.stage, why.msg);
        st = end_bake(j, kiln_exit_code(KILN_E_IO), j->open.stage, sentence, err);
    }
    kiln_words_release(&ids);
    return st;
}

/* Tasks of this plan that are in the queue, from before this job was killed: it only waits for
 * them. */
static kiln_status follow_waiting(round_job *j, kiln_error *err)
{
    kiln_slurm_jobs jobs;
    kiln_words ids = {0};
    KILN_TRY(kiln_slurm_jobs_now(j->b->folder.path, &jobs, err));
    kiln_status st = kiln_slurm_jobs_ids(&jobs, is_task_of, j->open.key, &ids, err);
    if (st == KILN_OK && ids.n) st = follow_tasks(j, j->try, &ids, err);
    kiln_words_release(&ids);
    kiln_slurm_jobs_release(&jobs);
    return st;
}

/* ---- a stage --------------------------------------------------------------------------------- */

static kiln_status plan_stage(round_job *j, uint32_t n, kiln_error *err)
{
    char tasks[16];
    (void)snprintf(tasks, sizeof tasks, "%u", n);
    return settle_step(j, (const char *const[]){"--plan", "--tasks", tasks, NULL}, err);
}

static kiln_status gather_stage(round_job *j, kiln_error *err)
{
    char tasks[16];
    (void)snprintf(tasks, sizeof tasks, "%u", j->b->settings->tasks);
    return settle_step(j,
                       (const char *const[]){"--gather", j->b->folder.parts, "--remove-parts",
                                             "--tasks", tasks, NULL},
                       err);
}

static kiln_status forget_partial(round_job *j, kiln_error *err)
{
    char name[64];
    kiln_slurm_partial_name(j->now->stage, name);
    return kiln_slurm_note_drop(&j->b->folder, name, err);
}

/* Tasks were submitted and have left no part: says what became of them, here and to --status. */
static kiln_status say_lost_tasks(const round_job *j, uint32_t n, kiln_error *err)
{
    char line[300];
    uint32_t by_time, by_memory;
    const kiln_slurm_folder *f = &j->b->folder;
    const char *stage = j->open.stage;
    KILN_TRY(kiln_slurm_log_count(f, j->b->chain, stage, KILN_SLURM_CAUSE_TIME, &by_time, err));
    KILN_TRY(kiln_slurm_log_count(f, j->b->chain, stage, KILN_SLURM_CAUSE_MEMORY, &by_memory, err));
    if (by_time + by_memory == 0) return KILN_OK;
    (void)snprintf(line, sizeof line,
                   "%u %s of %s %s left no part; of its jobs, %u %s killed at the time limit and "
                   "%u for %s memory: give them more "
                   "with --time and --mem among the options of sbatch\n",
                   n, n == 1 ? "task" : "tasks", stage, n == 1 ? "has" : "have", by_time,
                   by_time == 1 ? "was" : "were", by_memory, by_memory == 1 ? "its" : "their");
    kiln_say("%.*s", (int)strlen(line) - 1, line);
    return kiln_slurm_note_put(f, "lost", line, err);
}

/* What the open round wants: tasks, or a gather. *fresh: none of the plan's tasks was submitted. */
static kiln_status advance_round(round_job *j, bool *fresh, kiln_error *err)
{
    kiln_task_list missing;
    bool stands = true;
    if (!*fresh) KILN_TRY(follow_waiting(j, err));
    if (j->ended) return KILN_OK;
    /* All parts may be there: those of a plan like this one that was given up, for example. */
    KILN_TRY(kiln_open_round_missing(&j->open, j->b->folder.parts_fd, j->b->folder.parts, &missing,
                                     err));
    kiln_status st = missing.n && j->try ? say_lost_tasks(j, missing.n, err) : KILN_OK;
    if (st == KILN_OK && missing.n && j->try < KILN_SLURM_TRIES) {
        /* Planned once more, a plan that stands stays as it is: options that are others are refused
         * before tasks are submitted, and what a killed gather has left in the manifest's log does
         * not keep them from reading. */
        if (!*fresh) st = plan_stage(j, j->open.tasks, err);
        if (st == KILN_OK && !j->ended) st = look_for_round(j, &stands, err);
        if (st == KILN_OK && !j->ended && stands) st = submit_missing(j, &missing, err);
    } else if (st == KILN_OK) {
        st = gather_stage(j, err);
        j->try = 0;
        *fresh = true;
    }
    kiln_task_list_release(&missing);
    return st;
}

/* Gathers or plans the stage; returns when it is finished, or j->ended. */
static kiln_status advance_stage(round_job *j, const kiln_stage_command *stage, kiln_error *err)
{
    bool has_rounds, stands, fresh = false;
    j->now = stage;
    KILN_TRY(kiln_slurm_has_rounds(stage->stage, &has_rounds, err));
    KILN_TRY(look_for_round(j, &stands, err));
    if (!has_rounds) {
        KILN_TRY(forget_partial(j, err));
        /* only this host writes */
        KILN_TRY(settle_step(j, (const char *const[]){"--allow-network-fs", NULL}, err));
        return KILN_OK;
    }
    if (!stands) {
        KILN_TRY(forget_partial(j, err));
        KILN_TRY(plan_stage(j, j->b->settings->tasks, err));
        j->try = 0;
        fresh = true;
        if (!j->ended) KILN_TRY(look_for_round(j, &stands, err));
    }
    while (stands && !j->ended) {
        KILN_TRY(advance_round(j, &fresh, err));
        if (!j->ended) KILN_TRY(look_for_round(j, &stands, err));
    }
    j->try = 0;
    return KILN_OK;
}

/* ---- all stages ------------------------------------------------------------------------------ */

/* A round that an earlier call has left open keeps every other stage from writing, so it comes
 * first. */
static kiln_status advance_open_round(round_job *j, kiln_error *err)
{
    char why[128];
    KILN_TRY(kiln_open_round_read(j->b->folder.manifest, &j->open, err));
    if (!j->open.there || !strcmp(j->open.stage, j->first)) return KILN_OK;
    const kiln_stage_command *stage = kiln_slurm_command_of(j->b, j->open.stage);
    if (stage) return advance_stage(j, stage, err);
    (void)snprintf(why, sizeof why,
                   "a plan of %s is open, but this stage is not among the chosen ones",
                   j->open.stage);
    return end_bake(j, busy, j->open.stage, why, err);
}

/* On a network file system this host alone writes, between two rounds. */
static kiln_status make_report(const kiln_slurm_bake *b, kiln_error *err)
{
    kiln_words words = {0};
    kiln_status st = kiln_words_add_all(&words, &b->commands.report, err);
    if (st == KILN_OK && words.n) st = kiln_words_add(&words, "--allow-network-fs", err);
    if (st == KILN_OK) st = kiln_bake_report_make(&words, b->folder.manifest, b->commands.out, err);
    kiln_words_release(&words);
    return st;
}

static kiln_status find_unmeasured(const kiln_slurm_bake *b, char *out, size_t size,
                                   kiln_error *err)
{
    json_t *info;
    KILN_TRY(kiln_slurm_ask_info(b, &info, err));
    kiln_slurm_unmeasured_text(info, out, size);
    json_decref(info);
    return KILN_OK;
}

static kiln_status end_all(round_job *j, kiln_error *err)
{
    char name[64], stages[256] = "", why[400], unmeasured[300];
    const char *first = NULL;
    KILN_TRY(make_report(j->b, err));
    KILN_TRY(find_unmeasured(j->b, unmeasured, sizeof unmeasured, err));
    for (size_t i = 0; i < j->b->commands.n; i++) {
        const char *stage = j->b->commands.stage[i].stage;
        kiln_slurm_partial_name(stage, name);
        if (!kiln_slurm_note_there(&j->b->folder, name)) continue;
        (void)snprintf(stages + strlen(stages), sizeof stages - strlen(stages), "%s%s",
                       first ? " " : "", stage);
        if (!first) first = stage;
    }
    if (first) {
        (void)snprintf(
            why, sizeof why,
            "baked in part: units of %s were given up; run the same kiln slurm to try them again",
            stages);
        return end_bake(j, partial, first, why, err);
    }
    kiln_print(KILN_SLURM ": the bake is finished");
    kiln_error unsent;
    if (kiln_slurm_submit_mail(j->b, &unsent) != KILN_OK)
        kiln_warn("no mail about it could be sent: %s", unsent.msg);
    return end_bake(j, 0, j->b->commands.stage[j->b->commands.n - 1].stage, unmeasured, err);
}

static kiln_status advance_bake(round_job *j, kiln_error *err)
{
    bool skipping = true;
    KILN_TRY(advance_open_round(j, err));
    for (size_t i = 0; i < j->b->commands.n && !j->ended; i++) {
        const kiln_stage_command *stage = &j->b->commands.stage[i];
        if (!strcmp(stage->stage, j->first)) skipping = false;
        if (skipping) continue;
        j->first = stage->stage;
        KILN_TRY(advance_stage(j, stage, err));
    }
    return j->ended ? KILN_OK : end_all(j, err);
}

/* A call that came later has begun anew: Slurm may start a job again that was held to be gone. */
static kiln_status is_of_earlier_chain(const kiln_slurm_bake *b, bool *is, kiln_error *err)
{
    char chain[64];
    bool there;
    KILN_TRY(kiln_slurm_note_read(&b->folder, "chain", chain, sizeof chain, &there, err));
    *is = there && strcmp(chain, b->chain) != 0;
    if (*is)
        kiln_print(
            KILN_SLURM
            ": a later kiln slurm has started again, so this job of an earlier one does nothing");
    return KILN_OK;
}

/* Slurm may put a job back into the queue that has done its work and submitted the next one: of
 * two, the one with the higher number goes on, however they run beside each other. One that is
 * ending is no other: it may be the one that has submitted this. */
static kiln_status is_followed(const kiln_slurm_bake *b, bool *is, kiln_error *err)
{
    const char *const id = getenv("SLURM_JOB_ID");
    const unsigned long long own = id ? strtoull(id, NULL, 10) : 0;
    kiln_slurm_jobs jobs;
    *is = false;
    if (own == 0) return KILN_OK;
    KILN_TRY(kiln_slurm_jobs_now(b->folder.path, &jobs, err));
    for (size_t i = 0; i < jobs.n && !*is; i++) {
        const kiln_slurm_job *job = &jobs.job[i];
        if (job->is_task || kiln_slurm_job_completing(job) || strcmp(job->chain, b->chain) != 0)
            continue;
        *is = strtoull(job->id, NULL, 10) > own;
        if (*is)
            kiln_print(KILN_SLURM ": job %s continues this bake, so this one does nothing",
                       job->id);
    }
    kiln_slurm_jobs_release(&jobs);
    return KILN_OK;
}

kiln_status kiln_slurm_round(const kiln_slurm_bake *b, const char *first, unsigned try, int *code,
                             kiln_error *err)
{
    round_job j = {.b = b, .first = first, .try = try};
    kiln_error lost;
    bool outdated = false;
    *code = 0;
    kiln_status st = is_of_earlier_chain(b, &outdated, err);
    if (st == KILN_OK && !outdated) st = is_followed(b, &outdated, err);
    if (outdated) return KILN_OK;
    /* of an earlier run of this job */
    if (st == KILN_OK) st = kiln_slurm_note_drop(&b->folder, "ended", err);
    if (st == KILN_OK) st = kiln_slurm_begun_put(&b->folder, err);
    if (st == KILN_OK) st = advance_bake(&j, err);
    *code = j.code;
    if (st == KILN_OK || j.ended) return st;
    /* Else --status would say that nothing is known. */
    const kiln_status told =
        end_bake(&j, kiln_exit_code(st), j.now ? j.now->stage : first, err->msg, &lost);
    *code = j.code;
    return told == KILN_OK ? KILN_OK : st;
}

/* ---- a task ---------------------------------------------------------------------------------- */

kiln_status kiln_slurm_task(const kiln_slurm_bake *b, const kiln_slurm_share *share, int *code,
                            kiln_error *err)
{
    char shard[32];
    kiln_open_round open;
    *code = 0;
    KILN_TRY(kiln_open_round_read(b->folder.manifest, &open, err));
    if (!open.there || strcmp(open.stage, share->stage) != 0 ||
        strcmp(open.key, share->plan) != 0 || open.tasks != share->of) {
        /* somebody has finished it */
        kiln_print(KILN_SLURM ": the round of %s that this task belongs to has ended",
                   share->stage);
        return KILN_OK;
    }
    const kiln_stage_command *stage = kiln_slurm_command_of(b, share->stage);
    if (!stage) return kiln_fail(err, KILN_E_USAGE, "%s is not a stage of this bake", share->stage);
    (void)snprintf(shard, sizeof shard, "%u/%u", share->task, share->of);
    KILN_TRY(run_step(b, stage,
                      (const char *const[]){"--shard", shard, "--part", b->folder.parts, NULL},
                      code, err));
    return *code == busy ? kiln_slurm_requeue(err) : KILN_OK;
}
