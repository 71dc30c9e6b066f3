/* slurm_calls -- see the header. */
#include "stages/front/slurm_calls.h"

#include "base/log.h"
#include "base/quote.h"
#include "stages/front/slurm_bake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAUSE_MAX_S = 64, ENDS_SOON_S = 300 };

kiln_status kiln_slurm_programs_check(kiln_error *err)
{
    static const char *const programs[] = {"sbatch", "squeue", "scontrol", "scancel"};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        if (!kiln_command_exists(programs[i]))
            return kiln_fail(err, KILN_E_IO,
                             "the program %s is not found: is this a host of a Slurm cluster?",
                             programs[i]);
    return KILN_OK;
}

/* ---- their environment ----------------------------------------------------------------------- */

static bool names_variable(const char *entry, const char *name)
{
    const size_t n = strlen(name);
    return !strncmp(entry, name, n) && (entry[n] == '=' || name[n - 1] == '_');
}

/* A name that ends with _ stands for all that begin like it. */
static bool is_kept_from_slurm(const char *entry)
{
    static const char *const names[] = {
        "SLURM_",
        "SQUEUE_",
        "SCANCEL_",
        "CUDA_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL",
        "TMPDIR",
        "SBATCH_ARRAY_INX",
        "SBATCH_WAIT",
        "SBATCH_OUTPUT",
        "SBATCH_ERROR",
        "SBATCH_INPUT",
        "SBATCH_REQUEUE",
        "SBATCH_NO_REQUEUE",
        "SBATCH_EXPORT",
        "SBATCH_JOB_NAME",
        "SBATCH_OPEN_MODE",
        "SBATCH_SIGNAL",
        "ROCR_VISIBLE_DEVICES",
    };
    if (names_variable(entry, "SLURM_CONF")) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names_variable(entry, names[i])) return true;
    return false;
}

static kiln_status make_slurm_environment(const char *tmpdir, kiln_words *out, kiln_error *err)
{
    for (char **entry = environ; *entry; entry++)
        if (!is_kept_from_slurm(*entry)) KILN_TRY(kiln_words_add(out, *entry, err));
    return *tmpdir ? kiln_words_addf(out, err, "TMPDIR=%s", tmpdir) : KILN_OK;
}

/* ---- a call ---------------------------------------------------------------------------------- */

static bool sounds_like_silence(const char *complaint)
{
    static const char *const signs[] = {"contact", "timed out", "connect", "temporarily"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strcasestr(complaint, signs[i])) return true;
    return false;
}

/* A line each, as kiln_say quotes. */
static void say_complaint(const char *complaint)
{
    while (*complaint) {
        const size_t n = strcspn(complaint, "\n");
        if (n) kiln_say("%.*s", (int)n, complaint);
        complaint += n + (complaint[n] == '\n');
    }
}

/* The complaint's lines, with semicolons between them. */
static kiln_status refuse_with(const kiln_words *words, const kiln_command_answer *a,
                               kiln_error *err)
{
    char text[600];
    (void)snprintf(text, sizeof text, "%s", kiln_command_text(&a->complaint));
    size_t n = strlen(text);
    while (n && text[n - 1] == '\n') text[--n] = '\0';
    for (char *c = text; *c; c++)
        if (*c == '\n') *c = ';';
    return kiln_fail(err, KILN_E_IO, "%s failed (exit code %d)%s%s", words->word[0], a->code,
                     n ? ": " : "", text);
}

static kiln_status call_patiently(const kiln_words *words, char *const *environment,
                                  kiln_command_answer *a, kiln_error *err)
{
    for (unsigned pause = 1;; pause *= 2) {
        KILN_TRY(kiln_command_ask(words, environment, a, err));
        const char *complaint = kiln_command_text(&a->complaint);
        if (a->code && (pause > PAUSE_MAX_S || !sounds_like_silence(complaint)))
            return refuse_with(words, a, err);
        say_complaint(complaint);
        if (a->code == 0) return KILN_OK;
        kiln_say("%s tries again in %u s", words->word[0], pause);
        kiln_command_release(a);
        (void)sleep(pause);
    }
}

kiln_status kiln_slurm_call(const kiln_words *words, const char *tmpdir, kiln_command_answer *out,
                            kiln_error *err)
{
    kiln_words environment = {0};
    *out = (kiln_command_answer){0};
    kiln_status st = make_slurm_environment(tmpdir, &environment, err);
    if (st == KILN_OK) st = call_patiently(words, environment.word, out, err);
    kiln_words_release(&environment);
    return st;
}

/* A call with a few words, whose answer is wanted; NULL ends them. */
static kiln_status call_words(kiln_command_answer *out, kiln_error *err, const char *const *words)
{
    const char *tmpdir = getenv("TMPDIR");
    kiln_words w = {0};
    kiln_status st = KILN_OK;
    *out = (kiln_command_answer){0};
    for (; *words && st == KILN_OK; words++) st = kiln_words_add(&w, *words, err);
    if (st == KILN_OK) st = kiln_slurm_call(&w, tmpdir ? tmpdir : "", out, err);
    kiln_words_release(&w);
    return st;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* All states are asked for, because squeue's own choice leaves out jobs that will run again. */
kiln_status kiln_slurm_jobs_now(const char *folder, kiln_slurm_jobs *out, kiln_error *err)
{
    kiln_command_answer a;
    char user[48];
    *out = (kiln_slurm_jobs){0};
    (void)snprintf(user, sizeof user, "--user=%ld", (long)geteuid());
    kiln_status st =
        call_words(&a, err,
                   (const char *const[]){"squeue", "--noheader", "--array", user, "--states=all",
                                         "--format=" KILN_SQUEUE_FORMAT, NULL});
    if (st == KILN_OK) st = kiln_slurm_jobs_parse(kiln_command_text(&a.out), folder, out, err);
    kiln_command_release(&a);
    return st;
}

kiln_status kiln_slurm_job_limits(const char *id, char time_limit[32], char memory[32],
                                  kiln_error *err)
{
    kiln_command_answer a;
    char jobs[64];
    *time_limit = *memory = '\0';
    (void)snprintf(jobs, sizeof jobs, "--jobs=%.40s", id);
    const kiln_status st = call_words(
        &a, err, (const char *const[]){"squeue", "--noheader", jobs, "--format=%l|%m", NULL});
    const char *text = st == KILN_OK ? kiln_command_text(&a.out) : "";
    const size_t n = strcspn(text, "|\n");
    (void)snprintf(time_limit, 32, "%.*s", (int)(n < 31 ? n : 31), text);
    if (text[n] == '|')
        (void)snprintf(memory, 32, "%.*s", (int)strcspn(text + n + 1, "|\n"), text + n + 1);
    kiln_command_release(&a);
    return st;
}

kiln_status kiln_slurm_cancel_jobs(const kiln_words *ids, kiln_error *err)
{
    kiln_command_answer a = {0};
    kiln_words w = {0};
    kiln_status st;
    KILN_GO(kiln_words_add(&w, "scancel", err));
    KILN_GO(kiln_words_add_all(&w, ids, err));
    KILN_GO(kiln_slurm_call(&w, "", &a, err));
done:
    kiln_command_release(&a);
    kiln_words_release(&w);
    return st;
}

kiln_status kiln_slurm_release_held(const kiln_slurm_jobs *jobs, size_t *n, kiln_error *err)
{
    kiln_command_answer a = {0};
    kiln_buffer list = {0};
    kiln_status st = KILN_OK;
    *n = 0;
    for (size_t i = 0; i < jobs->n; i++)
        if (kiln_slurm_job_held(&jobs->job[i]))
            KILN_GO(kiln_buffer_printf(&list, err, "%s%s", (*n)++ ? "," : "", jobs->job[i].id));
    if (*n == 0) return KILN_OK;
    KILN_GO(kiln_buffer_put(&list, NULL, 1, err)); /* a NUL */
    kiln_print(KILN_SLURM ": Slurm could not start job %s and held it; the job is released",
               (const char *)list.data);
    KILN_GO(call_words(
        &a, err, (const char *const[]){"scontrol", "release", (const char *)list.data, NULL}));
done:
    kiln_command_release(&a);
    kiln_buffer_release(&list);
    return st;
}

kiln_status kiln_slurm_array_most(uint32_t *out, kiln_error *err)
{
    static const char name[] = "MaxArraySize";
    kiln_command_answer a;
    *out = 0;
    kiln_status st = call_words(&a, err, (const char *const[]){"scontrol", "show", "config", NULL});
    const char *at = st == KILN_OK ? strstr(kiln_command_text(&a.out), name) : NULL;
    if (at) at += strlen(name) + strspn(at + strlen(name), " =");
    const unsigned long most = at ? strtoul(at, NULL, 10) : 0;
    if (st == KILN_OK && (most < 2 || most > UINT32_MAX))
        st = kiln_fail(err, KILN_E_IO, "this cluster has no job arrays (MaxArraySize is %s)",
                       most < 2 ? "below 2" : "too large");
    *out = (uint32_t)most - 1;
    kiln_command_release(&a);
    return st;
}

/* ---- back into the queue --------------------------------------------------------------------- */

static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

kiln_status kiln_slurm_requeue(kiln_error *err)
{
    char id[64];
    kiln_command_answer a;
    if (strtoul(variable("SLURM_RESTART_COUNT"), NULL, 10) >= KILN_SLURM_RESTARTS)
        return kiln_fail(err, KILN_E_BUSY, "the manifest was busy %d times", KILN_SLURM_RESTARTS);
    if (*variable("SLURM_ARRAY_JOB_ID"))
        (void)snprintf(id, sizeof id, "%.30s_%.30s", variable("SLURM_ARRAY_JOB_ID"),
                       variable("SLURM_ARRAY_TASK_ID"));
    else
        (void)snprintf(id, sizeof id, "%.60s", variable("SLURM_JOB_ID"));
    kiln_print(KILN_SLURM ": the manifest is busy, so this job goes back into the queue");
    (void)fflush(stdout);
    const kiln_status st =
        call_words(&a, err, (const char *const[]){"scontrol", "requeue", id, NULL});
    kiln_command_release(&a);
    if (st == KILN_OK) (void)sleep(ENDS_SOON_S); /* Slurm ends this process */
    return kiln_fail(err, KILN_E_BUSY,
                     "the manifest is busy, and Slurm has not put this job back into the queue");
}
