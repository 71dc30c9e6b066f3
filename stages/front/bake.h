/* bake -- what one call of `kiln pipeline` is to do: found out step by step, in the order of the
 * fields, before the first stage runs. chosen_stages.h, bake_places.h and stage_calls.h have the
 * steps; pipeline.c calls them. For one thread. */
#ifndef KILN_STAGES_FRONT_BAKE_H
#define KILN_STAGES_FRONT_BAKE_H

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "stages/front/table.h"
#include "stages/front/time_left.h"

#define KILN_PIPELINE "kiln pipeline"

/* Options of `kiln pipeline` itself. */
typedef struct {
    const char *out, *stages, *scene; /* NULL: not given */
    bool demo, lod, report, print_commands;
} kiln_bake_options;

/* What a stage is called with. */
typedef struct {
    const char **argv; /* NULL: it does not run */
    size_t first, n;   /* argv[first] to argv[n - 1] are ours */
    /* [of the stage's options] the names by which `kiln pipeline` has them: those that were
     * typed */
    const char **typed;
    bool allows_partial;
    const char *devices; /* --devices */
} kiln_stage_call;

typedef struct {
    const kiln_bake_options *asked; /* these four are borrowed */
    const kiln_opt *own_rows;       /* of `asked` */
    const kiln_pipeline_table *table;
    const kiln_cli *cli;        /* of the table; parsed */
    char *const *words;         /* argv, ended by NULL */
    bool runs[KILN_STAGES_MAX]; /* by index in the table */
    const char *scene;          /* NULL: none is needed */
    char out[KILN_PATH_MAX], manifest[KILN_PATH_MAX];
    kiln_stage_call call[KILN_STAGES_MAX];
    kiln_time_left left;
    kiln_log_level level;
    char partial[512]; /* stages that finished partially */
    /* options of earlier runs that are in force (bake_stored.h), as text; empty: none */
    kiln_buffer stored;
} kiln_bake;

#endif
