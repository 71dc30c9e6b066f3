/* slurm_state -- see the header. */
#include "stages/front/slurm_state.h"

#include "base/file.h"
#include "stages/engine/json_text.h"
#include "stages/front/command.h"
#include "stages/front/programs.h"

#include <stdio.h>
#include <string.h>

kiln_status kiln_slurm_ask_info(const kiln_slurm_bake *b, json_t **out, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    kiln_words words = {0};
    kiln_command_answer a = {0};
    kiln_status st;
    *out = NULL;
    if (!kiln_is_file(b->folder.manifest)) return KILN_OK;
    KILN_TRY(kiln_program_path("info", path, err));
    const char *const said[] = {path, b->folder.manifest, "--json", "--allow-network-fs"};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        KILN_GO(kiln_words_add(&words, said[i], err));
    KILN_GO(kiln_command_ask(&words, NULL, &a, err));
    if (a.code == 0)
        KILN_GO(kiln_json_parse(kiln_command_text(&a.out), a.out.size, 0, "what kiln-info says",
                                out, NULL, err));
done:
    kiln_command_release(&a);
    kiln_words_release(&words);
    return st;
}

static const json_t *stage_row(const json_t *info, const char *stage)
{
    const json_t *row;
    size_t i;
    json_array_foreach(json_object_get(info, "stages"), i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));
        if (name && !strcmp(name, stage)) return row;
    }
    return NULL;
}

const char *kiln_slurm_stage_state(const json_t *info, const char *stage)
{
    const char *state = json_string_value(json_object_get(stage_row(info, stage), "state"));
    return state ? state : "not begun";
}

static long long count_at(const json_t *object, const char *name)
{
    return (long long)json_integer_value(json_object_get(object, name));
}

void kiln_slurm_unmeasured_text(const json_t *info, char *out, size_t size)
{
    const json_t *row, *counts = json_object_get(info, "counts");
    const json_t *missing =
        json_object_get(json_object_get(stage_row(info, "import"), "run"), "photos_missing");
    unsigned n = 0, left = 0, without = 0, test = 0, test_left = 0;
    size_t i;
    *out = '\0';
    if (strcmp(kiln_slurm_stage_state(info, "render"), "fresh") != 0) return;
    if (count_at(counts, "photos") == 0 && count_at(missing, "count") == 0) return;
    json_array_foreach(json_object_get(info, "cameras"), i, row)
    {
        const char *split = json_string_value(json_object_get(row, "split"));
        const bool is_test = split && !strcmp(split, "test"),
                   measured = json_is_number(json_object_get(row, "psnr"));
        n++;
        left += !measured;
        without += !measured && !json_is_string(json_object_get(row, "photo"));
        test += is_test;
        test_left += is_test && !measured;
    }
    if (left == 0) return;
    (void)snprintf(out, size,
                   "%u of %u cameras were not measured, %u of %u of the test split: %u have no "
                   "photo, %u one that is damaged or gone",
                   left, n, test_left, test, without, left - without);
}
