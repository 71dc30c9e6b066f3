/* slurm_job_words -- see the header. */
#include "stages/front/slurm_job_words.h"

#include "stages/engine/stage_graph.h"
#include "stages/front/open_round.h"

#include <stdlib.h>
#include <string.h>

static bool read_count_word(const char *text, uint32_t least, uint32_t most, uint32_t *out)
{
    const size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 9 || text[n]) return false;
    *out = (uint32_t)strtoul(text, NULL, 10);
    return *out >= least && *out <= most;
}

static bool read_letters(const char *text, const char *letters, const char **out)
{
    *out = text;
    return *text && strlen(text) < 64 && text[strspn(text, letters)] == '\0';
}

static bool read_absolute_path(const char *text, const char **out)
{
    *out = text;
    return *text == '/';
}

static bool read_job_word(kiln_slurm_job_words *w, const char *name, size_t length,
                          const char *value)
{
    static const char *const names[] = {"folder", "cwd", "chain", "stages", "tmpdir", "tasks",
                                        "first",  "try", "plan",  "of",     "offset", "concurrent"};
    size_t i = 0;
    while (i < sizeof names / sizeof *names &&
           (strlen(names[i]) != length || strncmp(names[i], name, length) != 0))
        i++;
    switch (i) {
    case 0:
        return read_absolute_path(value, &w->folder);
    case 1:
        return read_absolute_path(value, &w->cwd);
    case 2:
        return read_letters(value, "abcdefghijklmnopqrstuvwxyz0123456789-", &w->chain);
    case 3:
        w->stages = value;
        return *value; /* kiln_bake_commands_make looks at them */
    case 4:
        w->tmpdir = value;
        return true;
    case 5:
        return read_count_word(value, 1, KILN_ROUND_TASKS_MAX, &w->settings.tasks);
    case 6:
        w->first = value;
        return kiln_stage_find(value) != NULL;
    case 7:
        return read_count_word(value, 0, 100, &w->try);
    case 8:
        return read_letters(value, "0123456789abcdef", &w->plan);
    case 9:
        return read_count_word(value, 1, KILN_ROUND_TASKS_MAX, &w->of);
    case 10:
        return read_count_word(value, 0, KILN_ROUND_TASKS_MAX, &w->offset);
    case 11:
        return read_count_word(value, 0, KILN_ROUND_TASKS_MAX, &w->settings.concurrent);
    default:
        return false;
    }
}

kiln_status kiln_slurm_job_words_read(int argc, char **argv, kiln_slurm_job_words *w,
                                      kiln_error *err)
{
    kiln_slurm_list list;
    const char *word;
    int i = 1;
    *w = (kiln_slurm_job_words){.tmpdir = "", .is_task = argc > 0 && !strcmp(argv[0], "task")};
    if (argc == 0 || (!w->is_task && strcmp(argv[0], "round") != 0))
        return kiln_fail(err, KILN_E_USAGE, "--job is for the jobs that kiln slurm submits");
    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const size_t n = strcspn(argv[i], "=");
        if (kiln_slurm_list_find(argv[i], '=', &list, &word))
            KILN_TRY(kiln_words_add(&w->settings.list[list], word, err));
        else if (!argv[i][n] || !read_job_word(w, argv[i], n, argv[i] + n + 1))
            return kiln_fail(err, KILN_E_USAGE, "--job: the word '%.80s' is not understood",
                             argv[i]);
    }
    const bool whole =
        i < argc && w->folder && w->cwd && w->chain && w->stages && w->settings.tasks && w->first;
    if (!whole || (w->is_task && (!w->plan || !w->of)))
        return kiln_fail(err, KILN_E_USAGE, "--job: a word is missing");
    w->typed = argv + i + 1;
    w->n_typed = argc - i - 1;
    return KILN_OK;
}

void kiln_slurm_job_words_release(kiln_slurm_job_words *w)
{
    kiln_slurm_settings_release(&w->settings);
}
