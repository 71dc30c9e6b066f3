/* The stages that this program has in itself: the rows of pipelines/stages.def. */
#include "stages/front/programs.h"

#include "stages/engine/engine.h"

#include <string.h>

static const kiln_stage_program *const stages[] = {
#define STAGE(name, ...) &kiln_stage_##name,
#include "pipelines/stages.def"
#undef STAGE
};

const kiln_stage_program *kiln_stage_program_find(const char *name)
{
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        if (!strcmp(stages[i]->name, name)) return stages[i];
    return NULL;
}
