/* fuzz_slurm -- what kiln slurm reads: --sbatch, and squeue's answer, in which other people's
 * comments stand. */
#include "stages/front/slurm_queue.h"
#include "stages/front/words.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static char *as_text(const uint8_t *data, size_t size)
{
    char *text = calloc(size + 1, 1);
    HOLDS(text);
    if (size) memcpy(text, data, size);
    return text;
}

/* Words that are quoted again are split to the same. */
void kiln_fuzz_words(const void *argument, const uint8_t *data, size_t size)
{
    char *text = as_text(data, size);
    kiln_words w = {0}, again = {0};
    kiln_buffer quoted = {0};
    kiln_error err = {0};
    (void)argument;
    const kiln_status st = kiln_words_split(text, "--sbatch", &w, &err);
    if (st != KILN_OK) kiln_fuzz_refusal(st, &err);
    for (size_t i = 0; i < w.n; i++) {
        HOLDS(kiln_word_quote(&quoted, w.word[i], &err) == KILN_OK);
        HOLDS(kiln_buffer_put(&quoted, " ", 1, &err) == KILN_OK);
    }
    HOLDS(kiln_buffer_put(&quoted, NULL, 1, &err) == KILN_OK);
    HOLDS(kiln_words_split((const char *)quoted.data, "--sbatch", &again, &err) == KILN_OK &&
          again.n == w.n);
    for (size_t i = 0; i < w.n; i++) HOLDS(!strcmp(w.word[i], again.word[i]));
    kiln_words_release(&w);
    kiln_words_release(&again);
    kiln_buffer_release(&quoted);
    free(text);
}

/* Every id that is handed to scancel and sbatch is a number. */
void kiln_fuzz_jobs(const void *argument, const uint8_t *data, size_t size)
{
    char *text = as_text(data, size);
    kiln_slurm_jobs jobs;
    kiln_words ids = {0};
    kiln_error err = {0};
    (void)argument;
    const kiln_status st = kiln_slurm_jobs_parse(text, "/a b/bake/slurm", &jobs, &err);
    if (st != KILN_OK) {
        kiln_fuzz_refusal(st, &err);
        HOLDS(jobs.n == 0);
    }
    HOLDS(kiln_slurm_jobs_ids(&jobs, NULL, NULL, &ids, &err) == KILN_OK && ids.n <= jobs.n);
    for (size_t i = 0; i < ids.n; i++)
        HOLDS(*ids.word[i] && strspn(ids.word[i], "0123456789") == strlen(ids.word[i]));
    kiln_words_release(&ids);
    kiln_slurm_jobs_release(&jobs);
    free(text);
}
