/* slurm_queue -- see the header. */
#include "stages/front/slurm_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one line -------------------------------------------------------------------------------- */

/* The text up to `end` into out[size], cut; *at is moved behind it. False: there is no such end. */
static bool take_field(const char **at, const char *line_end, char end, char *out, size_t size)
{
    const char *stop = memchr(*at, end, (size_t)(line_end - *at));
    if (!stop) return false;
    (void)snprintf(out, size, "%.*s", (int)(stop - *at), *at);
    *at = stop + 1;
    return true;
}

static bool is_end_state(const char *state)
{
    static const char *const states[] = {"BOOT_FAIL", "CANCELLED", "COMPLETED",     "DEADLINE",
                                         "FAILED",    "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
                                         "REVOKED",   "TIMEOUT"};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (!strcmp(state, states[i])) return true;
    return false;
}

static bool is_job_id(const char *id)
{
    const size_t n = strspn(id, "0123456789");
    if (n == 0 || (id[n] && id[n] != '_')) return false;
    return !id[n] || (id[n + 1] && id[n + 1 + strspn(id + n + 1, "0123456789")] == '\0');
}

/* The comment, "kiln KIND STAGE KEY CHAIN FOLDER"; false: it is another job's. */
static bool parse_comment(const char *at, const char *end, const char *folder, kiln_slurm_job *job)
{
    char word[16], kind[16];
    while (end > at && end[-1] == ' ') end--;
    if (!take_field(&at, end, ' ', word, sizeof word) || strcmp(word, "kiln") != 0) return false;
    if (!take_field(&at, end, ' ', kind, sizeof kind)) return false;
    if (!take_field(&at, end, ' ', job->stage, sizeof job->stage) ||
        !take_field(&at, end, ' ', job->key, sizeof job->key))
        return false;
    if (at < end && *at != '/' && !take_field(&at, end, ' ', job->chain, sizeof job->chain))
        return false;
    job->is_task = !strcmp(kind, "task");
    if (!job->is_task && strcmp(kind, "round") != 0) return false;
    size_t length = strlen(folder);
    while (length && folder[length - 1] == ' ') length--; /* squeue leaves them out */
    return (size_t)(end - at) == length && !memcmp(at, folder, length);
}

/* *ours false: it is another job's. */
static kiln_status parse_job(const char *at, const char *end, const char *folder,
                             kiln_slurm_job *job, bool *ours, kiln_error *err)
{
    *job = (kiln_slurm_job){0};
    *ours = take_field(&at, end, '|', job->id, sizeof job->id) &&
            take_field(&at, end, '|', job->state, sizeof job->state) &&
            take_field(&at, end, '|', job->reason, sizeof job->reason) &&
            parse_comment(at, end, folder, job);
    if (!*ours || is_job_id(job->id)) return KILN_OK;
    return kiln_fail(err, KILN_E_IO,
                     "squeue has a job of this bake whose id '%s' is not understood", job->id);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static kiln_status append_slurm_job(kiln_slurm_jobs *jobs, const kiln_slurm_job *job,
                                    kiln_error *err)
{
    kiln_slurm_job *more;
    if ((jobs->n & (jobs->n - 1)) == 0) { /* has room up to the next power of two */
        KILN_TRY(KILN_ALLOC(&more, jobs->n ? 2 * jobs->n : 1, "a list of jobs", err));
        if (jobs->n) memcpy(more, jobs->job, jobs->n * sizeof *more);
        free(jobs->job);
        jobs->job = more;
    }
    jobs->job[jobs->n++] = *job;
    return KILN_OK;
}

static void note_ended(kiln_slurm_jobs *jobs, const kiln_slurm_job *job)
{
    if (!job->is_task && strtoull(job->id, NULL, 10) >= strtoull(jobs->ended.id, NULL, 10))
        jobs->ended = *job;
}

kiln_status kiln_slurm_jobs_parse(const char *text, const char *folder, kiln_slurm_jobs *out,
                                  kiln_error *err)
{
    *out = (kiln_slurm_jobs){0};
    kiln_status st = KILN_OK;
    while (*text && st == KILN_OK) {
        kiln_slurm_job job;
        bool ours;
        const char *end = strchrnul(text, '\n');
        st = parse_job(text, end, folder, &job, &ours, err);
        if (st == KILN_OK && ours && is_end_state(job.state))
            note_ended(out, &job);
        else if (st == KILN_OK && ours)
            st = append_slurm_job(out, &job, err);
        text = end + (*end == '\n');
    }
    if (st != KILN_OK) kiln_slurm_jobs_release(out);
    return st;
}

void kiln_slurm_jobs_release(kiln_slurm_jobs *jobs)
{
    free(jobs->job);
    *jobs = (kiln_slurm_jobs){0};
}

/* Versions of Slurm write the reason with blanks or with underscores. */
bool kiln_slurm_job_held(const kiln_slurm_job *job)
{
    static const char held[] = "launch_failed_requeued_held";
    size_t i = 0;
    for (; held[i] && job->reason[i]; i++)
        if (held[i] != (job->reason[i] == ' ' ? '_' : job->reason[i])) return false;
    return held[i] == job->reason[i];
}

bool kiln_slurm_job_completing(const kiln_slurm_job *job)
{
    return !strcmp(job->state, "COMPLETING");
}

kiln_status kiln_slurm_jobs_ids(const kiln_slurm_jobs *jobs, kiln_slurm_job_test *wanted,
                                const void *context, kiln_words *out, kiln_error *err)
{
    char id[32];
    for (size_t i = 0; i < jobs->n; i++) {
        if (wanted && !wanted(&jobs->job[i], context)) continue;
        (void)snprintf(id, sizeof id, "%.*s", (int)strspn(jobs->job[i].id, "0123456789"),
                       jobs->job[i].id);
        /* tasks of an array stand together */
        if (out->n && !strcmp(out->word[out->n - 1], id)) continue;
        if (!kiln_words_hold(out, id)) KILN_TRY(kiln_words_add(out, id, err));
    }
    return KILN_OK;
}
