/* slurm_settings -- see the header. */
#include "stages/front/slurm_settings.h"

#include <string.h>

static const char *const list_names[KILN_SLURM_LISTS] = {
    [KILN_SLURM_SBATCH] = "sbatch",
    [KILN_SLURM_SBATCH_TASK] = "sbatch-task",
    [KILN_SLURM_SBATCH_ROUND] = "sbatch-round",
    [KILN_SLURM_WRAPPER] = "wrapper",
    [KILN_SLURM_SETUP] = "setup",
    [KILN_SLURM_MAIL] = "mail",
};

const char *kiln_slurm_list_name(kiln_slurm_list list) { return list_names[list]; }

bool kiln_slurm_list_find(const char *text, char separator, kiln_slurm_list *list,
                          const char **value)
{
    for (int i = 0; i < KILN_SLURM_LISTS; i++) {
        const size_t n = strlen(list_names[i]);
        if (strncmp(text, list_names[i], n) != 0 || text[n] != separator) continue;
        *list = (kiln_slurm_list)i;
        *value = text + n + 1;
        return true;
    }
    return false;
}

kiln_status kiln_slurm_settings_words(const kiln_slurm_settings *s, kiln_words *out,
                                      kiln_error *err)
{
    for (int i = 0; i < KILN_SLURM_LISTS; i++)
        for (size_t k = 0; k < s->list[i].n; k++)
            KILN_TRY(kiln_words_addf(out, err, "%s=%s", list_names[i], s->list[i].word[k]));
    return KILN_OK;
}

const char *kiln_slurm_list_text(const kiln_slurm_settings *s, kiln_slurm_list list)
{
    return s->list[list].n ? s->list[list].word[0] : "";
}

void kiln_slurm_settings_release(kiln_slurm_settings *s)
{
    for (int i = 0; i < KILN_SLURM_LISTS; i++) kiln_words_release(&s->list[i]);
    *s = (kiln_slurm_settings){0};
}
