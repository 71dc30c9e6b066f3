/* engine_options -- the values of the options that the engine adds to every program
 * (parent/options.h has their rows). */
#ifndef KILN_STAGES_ENGINE_ENGINE_OPTIONS_H
#define KILN_STAGES_ENGINE_ENGINE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    bool force, reset, allow_partial, allow_network;
    bool list_gpus;
    const char *scratch_dir; /* NULL: beside the manifest */
    uint32_t workers;        /* 0: as many as suit threads and memory */
    /* a unit, or the start of a worker, that takes longer counts as hung; 0: no limit for units */
    uint32_t deadline_s;
    /* "2/8": compute every eighth of the optional units, from the second on; NULL: all */
    const char *shard;
    bool plan, no_compute, remove_parts, break_claim;
    uint32_t tasks;         /* 0: not given */
    const char *part;       /* folder of parts; NULL: no --part */
    const char *gather;     /* likewise */
    const char *shared_dir; /* of what --plan makes for the tasks; NULL: beside the manifest */
    const char *units;      /* names or positions of the optional units to compute; NULL: all */
} kiln_engine_options;
extern kiln_engine_options kiln_engine_values;

#endif
