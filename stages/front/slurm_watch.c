/* slurm_watch -- see the header. What is done is asked of the manifest, its claim and the names of
 * parts; of Slurm only which jobs have not ended. */
#include "stages/front/slurm_watch.h"

#include "base/log.h"
#include "base/quote.h"
#include "stages/front/open_round.h"
#include "stages/front/programs.h"
#include "stages/front/slurm_calls.h"
#include "stages/front/slurm_last_job.h"
#include "stages/front/slurm_state.h"
#include "stages/front/slurm_submit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CANCEL_LOOKS = 10, COMPLETING_LOOKS = 60 };

/* ---- --status -------------------------------------------------------------------------------- */

/* "8 of 8 parts are there, missing: 2,5-7" */
static kiln_status print_open_round(const kiln_slurm_bake *b, const kiln_open_round *open,
                                    kiln_error *err)
{
    kiln_task_list missing;
    kiln_buffer text = {0};
    uint32_t n;
    KILN_TRY(kiln_open_round_missing(open, b->folder.parts_fd, b->folder.parts, &missing, err));
    const kiln_status st = kiln_task_list_text(&missing, 0, 0, UINT32_MAX, &text, &n, err);
    if (st == KILN_OK)
        kiln_print("%-8s a round is open: %u of %u parts exist%s%.500s%s", open->stage,
                   open->tasks - missing.n, open->tasks, missing.n ? ", missing: " : "",
                   (const char *)text.data, text.size > 501 ? " ..." : "");
    kiln_buffer_release(&text);
    kiln_task_list_release(&missing);
    return st;
}

static kiln_status print_stages(const kiln_slurm_bake *b, kiln_error *err)
{
    kiln_open_round open;
    json_t *info;
    KILN_TRY(kiln_open_round_read(b->folder.manifest, &open, err));
    KILN_TRY(kiln_slurm_ask_info(b, &info, err));
    kiln_status st = KILN_OK;
    for (size_t i = 0; i < b->commands.n && st == KILN_OK; i++) {
        const char *stage = b->commands.stage[i].stage;
        if (open.there && !strcmp(open.stage, stage))
            st = print_open_round(b, &open, err);
        else
            kiln_print("%-8s %s", stage, kiln_slurm_stage_state(info, stage));
    }
    if (st == KILN_OK && open.there && !kiln_slurm_command_of(b, open.stage))
        st = print_open_round(b, &open, err);
    json_decref(info);
    return st;
}

static kiln_status print_lost_tasks(const kiln_slurm_bake *b, kiln_error *err)
{
    char line[300];
    bool there;
    KILN_TRY(kiln_slurm_note_read(&b->folder, "lost", line, sizeof line, &there, err));
    if (there) kiln_print("%s", line);
    return KILN_OK;
}

static bool is_held(const kiln_slurm_job *job, const void *context)
{
    (void)context;
    return kiln_slurm_job_held(job);
}

static void print_slurm_jobs(const kiln_slurm_jobs *jobs)
{
    bool held = false;
    kiln_print("jobs:");
    for (size_t i = 0; i < jobs->n; i++) {
        const kiln_slurm_job *job = &jobs->job[i];
        const bool told = strcmp(job->reason, "None") != 0;
        kiln_print("  %s %s %s of %s%s%s%s", job->id, job->state, job->is_task ? "task" : "round",
                   job->stage, told ? " (" : "", told ? job->reason : "", told ? ")" : "");
        held |= is_held(job, NULL);
    }
    if (held)
        kiln_print(
            "Slurm holds jobs that it could not start; run the same kiln slurm to release them");
}

/* The sentence for a bake that has no job and no end. */
static kiln_status say_not_finished(const kiln_slurm_bake *b, const kiln_slurm_jobs *jobs,
                                    char *out, kiln_error *err)
{
    char why[KILN_SLURM_WHY_MAX];
    KILN_TRY(kiln_slurm_last_job_text(&b->folder, jobs, why, err));
    (void)snprintf(out, KILN_SLURM_WHY_MAX, "no job is left, but the bake is not finished: %.840s",
                   *why ? why : "run the same kiln slurm to continue");
    return KILN_OK;
}

static kiln_status print_bake_end(const kiln_slurm_bake *b, const kiln_slurm_jobs *jobs,
                                  kiln_error *err)
{
    kiln_slurm_end end;
    char why[KILN_SLURM_WHY_MAX];
    KILN_TRY(kiln_slurm_end_read(&b->folder, &end, err));
    if (!end.there) KILN_TRY(say_not_finished(b, jobs, why, err));
    if (!end.there)
        kiln_print("%s; see %s", why, b->folder.path);
    else if (end.code == 0)
        kiln_print("finished%s%s", *end.why ? ": " : "", end.why);
    else
        kiln_print("no job is left: %s; see %s", end.why, b->folder.path);
    return KILN_OK;
}

kiln_status kiln_slurm_status(const kiln_slurm_bake *b, kiln_error *err)
{
    kiln_slurm_jobs jobs;
    KILN_TRY(print_stages(b, err));
    KILN_TRY(print_lost_tasks(b, err));
    (void)fflush(stdout); /* Slurm may take its time, and its part comes last */
    KILN_TRY(kiln_slurm_jobs_now(b->folder.path, &jobs, err));
    kiln_status st = KILN_OK;
    if (jobs.n)
        print_slurm_jobs(&jobs);
    else
        st = print_bake_end(b, &jobs, err);
    kiln_slurm_jobs_release(&jobs);
    return st;
}

/* ---- --cancel -------------------------------------------------------------------------------- */

static bool is_not_completing(const kiln_slurm_job *job, const void *context)
{
    (void)context;
    return !kiln_slurm_job_completing(job);
}

/* "17 18_3" of the jobs, cut. */
static void list_jobs(const kiln_slurm_jobs *jobs, char out[512])
{
    *out = '\0';
    for (size_t i = 0; i < jobs->n; i++)
        (void)snprintf(out + strlen(out), 512 - strlen(out), "%s%s", i ? " " : "", jobs->job[i].id);
}

/* *left: jobs that may still run. A job that is ending shows as COMPLETING; one that is put back
 * into the queue does so first. */
static kiln_status cancel_once(const kiln_slurm_bake *b, size_t *left, size_t *completing,
                               char list[512], kiln_error *err)
{
    kiln_slurm_jobs jobs;
    kiln_words ids = {0};
    KILN_TRY(kiln_slurm_jobs_now(b->folder.path, &jobs, err));
    list_jobs(&jobs, list);
    kiln_status st = kiln_slurm_jobs_ids(&jobs, is_not_completing, NULL, &ids, err);
    if (st == KILN_OK && ids.n) st = kiln_slurm_cancel_jobs(&ids, err);
    *left = ids.n;
    *completing = jobs.n;
    kiln_words_release(&ids);
    kiln_slurm_jobs_release(&jobs);
    return st;
}

static kiln_status cancel_all(const kiln_slurm_bake *b, kiln_error *err)
{
    char list[512];
    size_t left = 1, completing = 1;
    for (unsigned look = 0, cancels = 0; completing && look < COMPLETING_LOOKS; look++) {
        if (look) (void)sleep(1);
        KILN_TRY(cancel_once(b, &left, &completing, list, err));
        if (left && ++cancels == CANCEL_LOOKS) break;
    }
    if (!left && !completing) return KILN_OK;
    return kiln_fail(err, KILN_E_BUSY, "jobs have not ended although they were cancelled: %s",
                     list);
}

kiln_status kiln_slurm_cancel(const kiln_slurm_bake *b, kiln_error *err)
{
    kiln_open_round open;
    kiln_buffer command = {0};
    KILN_TRY(kiln_slurm_note_put(&b->folder, "cancelled", "\n", err));
    KILN_TRY(cancel_all(b, err));
    KILN_TRY(kiln_open_round_read(b->folder.manifest, &open, err));
    if (open.there) {
        KILN_TRY(kiln_slurm_break_command(b, open.stage, &command, err));
        kiln_print(KILN_SLURM ": the plan of %s is still open and keeps others from writing; run "
                              "the same kiln slurm to continue "
                              "it, or give it up with %s",
                   open.stage, (const char *)command.data);
        kiln_buffer_release(&command);
    }
    kiln_print(KILN_SLURM ": cancelled");
    return KILN_OK;
}

/* ---- --wait ---------------------------------------------------------------------------------- */

static kiln_status refuse_held(const kiln_slurm_jobs *jobs, kiln_error *err)
{
    char list[512] = "";
    for (size_t i = 0; i < jobs->n; i++)
        if (is_held(&jobs->job[i], NULL))
            (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s",
                           *list ? " " : "", jobs->job[i].id);
    return kiln_fail(err, KILN_E_IO, "Slurm cannot start jobs of this bake (%s), see --status",
                     list);
}

/* One look; *n: how many jobs there are. why: what became of the last one where the bake has not
 * ended. */
static kiln_status look_and_release(const kiln_slurm_bake *b, unsigned *releases, size_t *n,
                                    char *why, kiln_error *err)
{
    kiln_slurm_jobs jobs;
    size_t released;
    KILN_TRY(kiln_slurm_jobs_now(b->folder.path, &jobs, err));
    if (jobs.n == 0) KILN_TRY(say_not_finished(b, &jobs, why, err));
    kiln_status st = kiln_slurm_release_held(&jobs, &released, err);
    if (st == KILN_OK && released && ++*releases == KILN_SLURM_RELEASES)
        st = refuse_held(&jobs, err);
    *n = jobs.n;
    kiln_slurm_jobs_release(&jobs);
    return st;
}

/* Says it with the exit code of the bake, which need not be one of ours. */
static void tell_end(const kiln_slurm_bake *b, const kiln_slurm_end *end)
{
    kiln_error e;
    (void)kiln_fail(&e, KILN_E_IO, "%s; see %s", end->why, b->folder.path);
    kiln_tell_error(KILN_SLURM, "", &e);
}

kiln_status kiln_slurm_wait(const kiln_slurm_bake *b, int *code, kiln_error *err)
{
    kiln_slurm_end end;
    char why[KILN_SLURM_WHY_MAX] = "";
    unsigned releases = 0;
    size_t n;
    (void)fflush(stdout);
    /* A job that submits another one is there until the other is: two looks without a job are an
     * end. */
    for (unsigned misses = 0; misses < 2; (void)sleep(1)) {
        KILN_TRY(look_and_release(b, &releases, &n, why, err));
        misses = n ? 0 : misses + 1;
    }
    KILN_TRY(kiln_slurm_end_read(&b->folder, &end, err));
    if (!end.there) return kiln_fail(err, KILN_E_IO, "%s; see %s", why, b->folder.path);
    *code = end.code;
    if (end.code)
        tell_end(b, &end);
    else
        kiln_print(KILN_SLURM ": the bake is finished%s%s", *end.why ? ": " : "", end.why);
    return KILN_OK;
}
