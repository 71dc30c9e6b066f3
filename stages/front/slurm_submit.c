/* slurm_submit -- see the header. */
#include "stages/front/slurm_submit.h"

#include "base/own_program.h"
#include "stages/front/programs.h"
#include "stages/front/slurm_calls.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- what is not for --sbatch ---------------------------------------------------------------- */

/* Each of these would make several jobs of one, keep a job from being the next of its chain, or
 * replace what is set here. */
static const char *const refused_options[] = {
    "array",    "chdir",       "clusters",  "comment",  "dependency", "error",
    "export",   "export-file", "hold",      "job-name", "open-mode",  "output",
    "parsable", "signal",      "test-only", "wait",     "wrap",
};
static const char refused_letters[] = "aDdeHJMoW";
static const char letters_alone[] = "hHIkOQRsuvVW"; /* those of sbatch without a value */

static kiln_status refuse_option(const char *name, const char *word, kiln_error *err)
{
    return kiln_fail(err, KILN_E_USAGE,
                     "--%s: '%.60s' cannot be used, because the jobs of a bake set it themselves "
                     "or need it unset",
                     name, word);
}

/* sbatch takes any beginning of a long name that is no beginning of another. */
static bool is_refused_long(const char *name)
{
    const size_t n = strcspn(name, "=");
    for (size_t i = 0; i < sizeof refused_options / sizeof *refused_options; i++)
        if (n && !strncmp(name, refused_options[i], n)) return true;
    return false;
}

static bool is_refused_short(const char *letters)
{
    for (; *letters; letters++) {
        if (strchr(refused_letters, *letters)) return true;
        if (!strchr(letters_alone, *letters)) return false; /* what follows is its value */
    }
    return false;
}

/* May the next word be the value of this one? */
static bool wants_value(const char *word)
{
    if (word[0] != '-' || !word[1]) return false;
    if (word[1] == '-') return !strchr(word, '=');
    while (*++word && strchr(letters_alone, *word)) continue;
    return *word && !word[1];
}

kiln_status kiln_slurm_options_check(const kiln_words *sbatch, const char *name, kiln_error *err)
{
    for (size_t i = 0; i < sbatch->n; i++) {
        const char *word = sbatch->word[i];
        /* sbatch would take it for the script */
        if (word[0] != '-' && (i == 0 || !wants_value(sbatch->word[i - 1])))
            return kiln_fail(err, KILN_E_USAGE, "--%s: '%.60s' is not an option of sbatch", name,
                             word);
        /* Behind -- the next word would be the script, behind : the next component of a
         * heterogeneous job. */
        if (!strcmp(word, "--") || !strcmp(word, ":")) return refuse_option(name, word, err);
        if (word[0] != '-' || !word[1]) continue;
        if (word[1] == '-' ? is_refused_long(word + 2) : is_refused_short(word + 1))
            return refuse_option(name, word, err);
    }
    return KILN_OK;
}

/* ---- one job --------------------------------------------------------------------------------- */

static kiln_status add_site_options(const kiln_slurm_bake *b, kiln_slurm_list kind, kiln_words *w,
                                    kiln_error *err)
{
    KILN_TRY(kiln_words_add(w, "sbatch", err));
    KILN_TRY(kiln_words_add_all(w, &b->settings->list[KILN_SLURM_SBATCH], err));
    return kiln_words_add_all(w, &b->settings->list[kind], err);
}

/* In front of what kind of job it is. What the user gave comes first, so that it cannot replace
 * what these jobs need. */
static kiln_status add_sbatch_options(const kiln_slurm_bake *b, const char *kind, const char *stage,
                                      const char *key, kiln_words *w, kiln_error *err)
{
    char logs[2 * KILN_PATH_MAX], *to = logs;
    for (const char *c = b->folder.path; *c; *to++ = *c++)
        if (*c == '%') *to++ = '%';
    *to = '\0';
    const bool is_task = !strcmp(kind, "task");
    const char *const number = is_task ? "tasks-%A_%a" : "round-%j",
                      *mail = kiln_slurm_list_text(b->settings, KILN_SLURM_MAIL);
    KILN_TRY(
        add_site_options(b, is_task ? KILN_SLURM_SBATCH_TASK : KILN_SLURM_SBATCH_ROUND, w, err));
    /* A bake that does not come to its end has a round's job that failed or was killed. */
    if (*mail && !is_task) KILN_TRY(kiln_words_addf(w, err, "--mail-type=FAIL"));
    if (*mail && !is_task) KILN_TRY(kiln_words_addf(w, err, "--mail-user=%s", mail));
    KILN_TRY(kiln_words_add(w, "--parsable", err));
    KILN_TRY(kiln_words_add(w, "--requeue", err));
    KILN_TRY(kiln_words_add(w, "--open-mode=append", err));
    KILN_TRY(kiln_words_addf(w, err, "--job-name=kiln-%s-%s", stage, kind));
    KILN_TRY(
        kiln_words_addf(w, err, "--output=%s/logs-%s/%s-%s.log", logs, b->chain, stage, number));
    KILN_TRY(
        kiln_words_addf(w, err, "--error=%s/logs-%s/%s-%s.log", logs, b->chain, stage, number));
    return kiln_words_addf(w, err, "--comment=kiln %s %s %s %s %s", kind, stage, key, b->chain,
                           b->folder.path);
}

static kiln_status add_stages(const kiln_slurm_bake *b, kiln_words *w, kiln_error *err)
{
    kiln_buffer text = {0};
    kiln_status st = KILN_OK;
    for (size_t i = 0; i < b->commands.n && st == KILN_OK; i++)
        st =
            kiln_buffer_printf(&text, err, "%s%s", i ? "," : "stages=", b->commands.stage[i].stage);
    if (st == KILN_OK) st = kiln_buffer_put(&text, NULL, 1, err); /* a NUL */
    if (st == KILN_OK) st = kiln_words_add(w, (const char *)text.data, err);
    kiln_buffer_release(&text);
    return st;
}

/* The script, and of its arguments those that all jobs of the bake have. */
static kiln_status add_job_words(const kiln_slurm_bake *b, const char *kind, kiln_words *w,
                                 kiln_error *err)
{
    char folder[KILN_PATH_MAX], script[KILN_PATH_MAX];
    KILN_TRY(kiln_own_folder(folder, err));
    KILN_TRY(kiln_words_addf(w, err, "%s/../share/splatkiln/slurm/job.sh", folder));
    (void)snprintf(script, sizeof script, "%s", w->word[w->n - 1]);
    if (access(script, R_OK) != 0)
        return kiln_fail(err, KILN_E_IO, "cannot find '%s'; is the installation complete?", script);
    KILN_TRY(kiln_words_add(w, kiln_slurm_list_text(b->settings, KILN_SLURM_SETUP), err));
    KILN_TRY(kiln_words_add(w, b->kiln, err));
    KILN_TRY(kiln_words_add(w, "slurm", err));
    KILN_TRY(kiln_words_add(w, "--job", err));
    KILN_TRY(kiln_words_add(w, kind, err));
    KILN_TRY(kiln_words_addf(w, err, "folder=%s", b->folder.path));
    KILN_TRY(kiln_words_addf(w, err, "cwd=%s", b->cwd));
    KILN_TRY(kiln_words_addf(w, err, "chain=%s", b->chain));
    KILN_TRY(kiln_words_addf(w, err, "tasks=%u", b->settings->tasks));
    KILN_TRY(kiln_words_addf(w, err, "concurrent=%u", b->settings->concurrent));
    KILN_TRY(kiln_words_addf(w, err, "tmpdir=%s", b->tmpdir));
    KILN_TRY(kiln_slurm_settings_words(b->settings, w, err));
    return add_stages(b, w, err);
}

/* id: "17" of "17;cluster". */
static kiln_status call_sbatch(const kiln_slurm_bake *b, const kiln_words *w,
                               char id[KILN_SLURM_ID_MAX], kiln_error *err)
{
    kiln_command_answer a = {0};
    kiln_status st;
    KILN_GO(kiln_slurm_call(w, b->tmpdir, &a, err));
    const char *text = kiln_command_text(&a.out);
    const size_t n = strspn(text, "0123456789");
    (void)snprintf(id, KILN_SLURM_ID_MAX, "%.*s", (int)n, text);
    if (n == 0 || n >= KILN_SLURM_ID_MAX)
        st = kiln_fail(err, KILN_E_IO, "sbatch does not say the number of the job: '%.60s'", text);
done:
    kiln_command_release(&a);
    return st;
}

/* The last words, then sbatch. */
static kiln_status submit_job(const kiln_slurm_bake *b, kiln_words *w, char id[KILN_SLURM_ID_MAX],
                              kiln_error *err)
{
    KILN_TRY(kiln_words_add(w, "--", err));
    KILN_TRY(kiln_words_add_all(w, b->typed, err));
    KILN_TRY(kiln_slurm_logs_check(&b->folder, b->chain, err));
    return call_sbatch(b, w, id, err);
}

static kiln_status add_dependency(const kiln_words *behind, kiln_words *w, kiln_error *err)
{
    kiln_buffer text = {0};
    kiln_status st = kiln_buffer_printf(&text, err, "--dependency=afterany");
    for (size_t i = 0; i < behind->n && st == KILN_OK; i++)
        st = kiln_buffer_printf(&text, err, ":%s", behind->word[i]);
    if (st == KILN_OK) st = kiln_buffer_put(&text, NULL, 1, err); /* a NUL */
    if (st == KILN_OK) st = kiln_words_add(w, (const char *)text.data, err);
    kiln_buffer_release(&text);
    return st;
}

kiln_status kiln_slurm_submit_round(const kiln_slurm_bake *b, const char *stage, const char *key,
                                    const char *first, unsigned try, const kiln_words *behind,
                                    char id[KILN_SLURM_ID_MAX], kiln_error *err)
{
    kiln_words w = {0};
    kiln_status st;
    KILN_GO(add_sbatch_options(b, "round", stage, key, &w, err));
    if (behind && behind->n) KILN_GO(add_dependency(behind, &w, err));
    KILN_GO(add_job_words(b, "round", &w, err));
    KILN_GO(kiln_words_addf(&w, err, "first=%s", first));
    KILN_GO(kiln_words_addf(&w, err, "try=%u", try));
    KILN_GO(submit_job(b, &w, id, err));
done:
    kiln_words_release(&w);
    return st;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

kiln_status kiln_task_list_text(const kiln_task_list *tasks, uint32_t from, uint32_t offset,
                                uint32_t most, kiln_buffer *text, uint32_t *n, kiln_error *err)
{
    uint32_t i = from;
    while (i < tasks->n && tasks->task[i] - offset <= most) {
        const uint32_t first = tasks->task[i] - offset;
        uint32_t last = first;
        while (++i < tasks->n && tasks->task[i] - offset == last + 1 && last < most) last++;
        KILN_TRY(kiln_buffer_printf(text, err, "%s%u", text->size ? "," : "", first));
        if (last > first) KILN_TRY(kiln_buffer_printf(text, err, "-%u", last));
    }
    *n = i - from;
    return kiln_buffer_put(text, NULL, 1, err);
}

static kiln_status submit_array(const kiln_slurm_bake *b, const kiln_open_round *round,
                                const char *list, uint32_t offset, kiln_words *ids, kiln_error *err)
{
    char id[KILN_SLURM_ID_MAX];
    kiln_words w = {0};
    kiln_status st;
    KILN_GO(add_sbatch_options(b, "task", round->stage, round->key, &w, err));
    if (b->settings->concurrent)
        KILN_GO(kiln_words_addf(&w, err, "--array=%s%%%u", list, b->settings->concurrent));
    else
        KILN_GO(kiln_words_addf(&w, err, "--array=%s", list));
    /* Each array has a limit of its own: of two that are long enough to need it, one is behind the
     * other. */
    if (b->settings->concurrent && ids->n) KILN_GO(add_dependency(ids, &w, err));
    KILN_GO(add_job_words(b, "task", &w, err));
    KILN_GO(kiln_words_addf(&w, err, "first=%s", round->stage));
    KILN_GO(kiln_words_addf(&w, err, "plan=%s", round->key));
    KILN_GO(kiln_words_addf(&w, err, "of=%u", round->tasks));
    KILN_GO(kiln_words_addf(&w, err, "offset=%u", offset));
    KILN_GO(submit_job(b, &w, id, err));
    KILN_GO(kiln_words_add(ids, id, err));
done:
    kiln_words_release(&w);
    return st;
}

/* Task = index + offset: an index ends below MaxArraySize. */
kiln_status kiln_slurm_submit_tasks(const kiln_slurm_bake *b, const kiln_open_round *round,
                                    const kiln_task_list *tasks, kiln_words *ids, kiln_error *err)
{
    uint32_t most, n = 0;
    kiln_buffer list = {0};
    kiln_status st;
    KILN_GO(kiln_slurm_array_most(&most, err));
    for (uint32_t from = 0; from < tasks->n; from += n) {
        const uint32_t offset = (tasks->task[from] - 1) / most * most;
        list.size = 0;
        KILN_GO(kiln_task_list_text(tasks, from, offset, most, &list, &n, err));
        KILN_GO(submit_array(b, round, (const char *)list.data, offset, ids, err));
    }
done:
    kiln_buffer_release(&list);
    return st;
}

/* ---- the mail at the end --------------------------------------------------------------------- */

/* Slurm sends mails, about jobs, and which round's job is the last one it is not told. So the mail
 * is about a job of its own, which does nothing: the folder's name is in its subject. */
kiln_status kiln_slurm_submit_mail(const kiln_slurm_bake *b, kiln_error *err)
{
    char id[KILN_SLURM_ID_MAX], out[KILN_PATH_MAX];
    const char *mail = kiln_slurm_list_text(b->settings, KILN_SLURM_MAIL);
    kiln_words w = {0};
    kiln_status st = KILN_OK;
    if (!*mail) return KILN_OK;
    (void)snprintf(out, sizeof out, "%.*s", (int)(strlen(b->folder.path) - strlen("/slurm")),
                   b->folder.path);
    KILN_GO(add_site_options(b, KILN_SLURM_SBATCH_ROUND, &w, err));
    KILN_GO(kiln_words_add(&w, "--parsable", err));
    KILN_GO(kiln_words_add(&w, "--time=1", err));
    KILN_GO(kiln_words_add(&w, "--output=/dev/null", err));
    KILN_GO(kiln_words_addf(&w, err, "--job-name=kiln: %s is finished", out));
    KILN_GO(kiln_words_add(&w, "--mail-type=END", err));
    KILN_GO(kiln_words_addf(&w, err, "--mail-user=%s", mail));
    KILN_GO(kiln_words_add(&w, "--wrap=true", err));
    KILN_GO(call_sbatch(b, &w, id, err));
done:
    kiln_words_release(&w);
    return st;
}
