/* slurm_bake -- see the header. */
#include "stages/front/slurm_bake.h"

#include "stages/front/programs.h"

#include <string.h>

const kiln_stage_command *kiln_slurm_command_of(const kiln_slurm_bake *b, const char *stage)
{
    for (size_t i = 0; i < b->commands.n; i++)
        if (!strcmp(b->commands.stage[i].stage, stage)) return &b->commands.stage[i];
    return NULL;
}

kiln_status kiln_slurm_has_rounds(const char *stage, bool *has, kiln_error *err)
{
    json_t *doc, *row;
    size_t i;
    *has = false;
    KILN_TRY(kiln_program_ask(stage, &doc, err));
    json_array_foreach(json_object_get(doc, "options"), i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));
        *has |= name && !strcmp(name, "plan");
    }
    json_decref(doc);
    return KILN_OK;
}

kiln_status kiln_slurm_break_command(const kiln_slurm_bake *b, const char *stage, kiln_buffer *out,
                                     kiln_error *err)
{
    KILN_TRY(kiln_buffer_printf(out, err, "kiln %s ", stage));
    if (!strcmp(stage, "import")) {
        KILN_TRY(kiln_word_quote(out, *b->commands.scene ? b->commands.scene : "SCENE", err));
        KILN_TRY(kiln_buffer_put(out, " ", 1, err));
    }
    KILN_TRY(kiln_word_quote(out, b->folder.manifest, err));
    KILN_TRY(kiln_buffer_printf(out, err, " --break-claim"));
    return kiln_buffer_put(out, NULL, 1, err); /* a NUL */
}
