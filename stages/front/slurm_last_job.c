/* slurm_last_job -- see the header. */
#include "stages/front/slurm_last_job.h"

#include "stages/front/slurm_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char begun[] = "begun";

/* ---- the note -------------------------------------------------------------------------------- */

typedef struct {
    char id[32], host[64], started[32], limit[32], memory[32]; /* "-": not known */
} begun_note;

static void keep_plain(char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:.-_";
    for (char *c = text; *c; c++)
        if (!strchr(plain, *c)) *c = '_';
    if (!*text) (void)strcpy(text, "-");
}

kiln_status kiln_slurm_begun_put(const kiln_slurm_folder *f, kiln_error *err)
{
    begun_note n = {0};
    kiln_error unknown;
    char line[256];
    struct tm utc;
    const char *id = getenv("SLURM_JOB_ID");
    const time_t now = time(NULL);
    (void)snprintf(n.id, sizeof n.id, "%.20s", id ? id : "");
    if (gethostname(n.host, sizeof n.host - 1) != 0) *n.host = '\0';
    if (gmtime_r(&now, &utc))
        (void)strftime(n.started, sizeof n.started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (*n.id && kiln_slurm_job_limits(n.id, n.limit, n.memory, &unknown) != KILN_OK)
        *n.limit = *n.memory = '\0';
    char *const fields[] = {n.id, n.host, n.started, n.limit, n.memory};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) keep_plain(fields[i]);
    (void)snprintf(line, sizeof line, "%s %s %s %s %s\n", n.id, n.host, n.started, n.limit,
                   n.memory);
    return kiln_slurm_note_put(f, begun, line, err);
}

/* *there false: there is none, or it is no such note. */
static kiln_status read_begun(const kiln_slurm_folder *f, begun_note *n, bool *there,
                              kiln_error *err)
{
    char line[256];
    *n = (begun_note){0};
    KILN_TRY(kiln_slurm_note_read(f, begun, line, sizeof line, there, err));
    if (*there)
        *there = sscanf(line, "%31s %63s %31s %31s %31s", n->id, n->host, n->started, n->limit,
                        n->memory) == 5;
    return KILN_OK;
}

/* ---- sentences ------------------------------------------------------------------------------- */

static void in_brackets(const char *value, char out[48])
{
    const bool known = *value && strcmp(value, "-") != 0;
    (void)snprintf(out, 48, known ? " (%.40s)" : "%.0s", value);
}

void kiln_slurm_cause_text(kiln_slurm_cause cause, const char *limit, const char *memory, char *out,
                           size_t size)
{
    char time_limit[48], memory_limit[48];
    in_brackets(limit, time_limit);
    in_brackets(memory, memory_limit);
    *out = '\0';
    switch (cause) {
    case KILN_SLURM_CAUSE_NONE:
        break;
    case KILN_SLURM_CAUSE_TIME:
        (void)snprintf(
            out, size,
            "was killed at its time limit%s; give it more with --time among the options of sbatch",
            time_limit);
        break;
    case KILN_SLURM_CAUSE_MEMORY:
        (void)snprintf(out, size,
                       "was killed because it took more memory than Slurm gave it%s; give it more "
                       "with --mem among the options of "
                       "sbatch, or --ram less",
                       memory_limit);
        break;
    case KILN_SLURM_CAUSE_NODE:
        (void)snprintf(out, size, "was lost with its node; run the same kiln slurm to continue");
        break;
    case KILN_SLURM_CAUSE_PREEMPTED:
        (void)snprintf(out, size,
                       "was preempted by another job and not put back into the queue; run the same "
                       "kiln slurm to continue");
        break;
    case KILN_SLURM_CAUSE_CANCELLED:
        (void)snprintf(out, size, "was cancelled; run the same kiln slurm to continue");
        break;
    }
}

kiln_status kiln_slurm_own_cause_text(const kiln_slurm_folder *f, uint64_t log_from, char *out,
                                      size_t size, kiln_error *err)
{
    begun_note n;
    bool there;
    kiln_buffer text = {0};
    *out = '\0';
    KILN_TRY(read_begun(f, &n, &there, err));
    KILN_TRY(kiln_slurm_log_own(log_from, &text, err));
    if (text.size)
        kiln_slurm_cause_text(kiln_slurm_log_cause((const char *)text.data), n.limit, n.memory, out,
                              size);
    kiln_buffer_release(&text);
    return KILN_OK;
}

static kiln_slurm_cause cause_of_state(const char *state)
{
    static const struct {
        const char *state;
        kiln_slurm_cause cause;
    } states[] = {
        {"TIMEOUT", KILN_SLURM_CAUSE_TIME},         {"DEADLINE", KILN_SLURM_CAUSE_TIME},
        {"OUT_OF_MEMORY", KILN_SLURM_CAUSE_MEMORY}, {"NODE_FAIL", KILN_SLURM_CAUSE_NODE},
        {"BOOT_FAIL", KILN_SLURM_CAUSE_NODE},       {"PREEMPTED", KILN_SLURM_CAUSE_PREEMPTED},
        {"CANCELLED", KILN_SLURM_CAUSE_CANCELLED},
    };
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (!strcmp(state, states[i].state)) return states[i].cause;
    return KILN_SLURM_CAUSE_NONE;
}

/* Of the two, the job that came later: one that is cancelled before it starts leaves no note. */
static bool ended_is_later(const kiln_slurm_jobs *jobs, const char *chain, const begun_note *n)
{
    if (!jobs || !*jobs->ended.id || strcmp(jobs->ended.chain, chain) != 0) return false;
    return strtoull(jobs->ended.id, NULL, 10) > strtoull(n->id, NULL, 10);
}

static kiln_status tell_last_job(const kiln_slurm_folder *f, const char *chain,
                                 const kiln_slurm_jobs *jobs, begun_note *n, char *why,
                                 kiln_error *err)
{
    char what[400];
    kiln_buffer text = {0};
    if (ended_is_later(jobs, chain, n)) {
        *n = (begun_note){0};
        (void)snprintf(n->id, sizeof n->id, "%s", jobs->ended.id);
    }
    const bool remembered = jobs && !strcmp(jobs->ended.id, n->id);
    KILN_TRY(kiln_slurm_log_read(f, chain, n->id, &text, err));
    const char *log = text.size ? (const char *)text.data : "";
    kiln_slurm_cause cause = kiln_slurm_log_cause(log);
    const kiln_slurm_cause state =
        remembered ? cause_of_state(jobs->ended.state) : KILN_SLURM_CAUSE_NONE;
    if (state && (!cause || cause == KILN_SLURM_CAUSE_CANCELLED)) cause = state;
    kiln_slurm_cause_text(cause, n->limit, n->memory, what, sizeof what);
    kiln_buffer_release(&text);
    if (!cause && remembered)
        (void)snprintf(what, sizeof what,
                       "ended as %.40s for an unknown reason; run the same kiln slurm to continue",
                       jobs->ended.state);
    else if (!cause)
        (void)snprintf(
            what, sizeof what,
            "ended for a reason that Slurm has forgotten; run the same kiln slurm to continue");
    (void)snprintf(why, KILN_SLURM_WHY_MAX, "job %s%s%s%s%s %s", n->id, *n->host ? " on " : "",
                   n->host, *n->started ? " since " : "", n->started, what);
    return KILN_OK;
}

kiln_status kiln_slurm_last_job_text(const kiln_slurm_folder *f, const kiln_slurm_jobs *jobs,
                                     char *why, kiln_error *err)
{
    char chain[64];
    begun_note n;
    bool there, has_chain;
    *why = '\0';
    KILN_TRY(kiln_slurm_note_read(f, "chain", chain, sizeof chain, &has_chain, err));
    KILN_TRY(read_begun(f, &n, &there, err));
    if (!has_chain || (!there && !ended_is_later(jobs, chain, &n))) return KILN_OK;
    return tell_last_job(f, chain, jobs, &n, why, err);
}
