/* bake_facts -- everything that kiln-report and kiln-info tell of a bake without unpacking a blob:
 * rows of the manifest, and what the last run of each stage recorded. For one thread, as
 * manifest.h. */
#ifndef KILN_STAGES_SURVEY_BAKE_FACTS_H
#define KILN_STAGES_SURVEY_BAKE_FACTS_H

#include "schema/layers.h"
#include "schema/manifest.h"
#include "stages/survey/bake_views.h"
#include "stages/survey/run_clock.h"

#include <jansson.h>

enum { KILN_FACTS_LISTED = 1024 /* rows of a list in the record of a run that are read */ };

enum {
    KILN_STAGE_COUNT =
#define STAGE(...) +1
#include "pipelines/stages.def"
#undef STAGE
};

typedef struct {
    const char *name; /* static */
    kiln_stage_row row;
    bool ran; /* the next three are of its newest run that made its output */
    kiln_run_row run;
    /* objects of a stranger: any key may be missing or of another type. NULL: none. Lists have
     * KILN_FACTS_LISTED rows at most; kiln_json_each gives all that run.counters has */
    json_t *counters, *parameters;
    /* [n_tasks] runs that computed units for it, on other hosts or by shards */
    kiln_run_row *tasks;
    json_t **task_counters; /* [n_tasks] */
    uint32_t n_tasks;
    kiln_run_clock clock;      /* of the run and its tasks */
    kiln_quarantine_row *lost; /* [n_lost] */
    uint32_t n_lost;
} kiln_stage_facts;

typedef struct {
    kiln_manifest *m; /* borrowed */
    uint64_t file_bytes;
    kiln_scene *scene; /* NULL: nothing is imported */
    kiln_source_file *sources;
    uint32_t n_sources;
    kiln_stage_facts stages[KILN_STAGE_COUNT];
    kiln_layer *layers[KILN_LAYER_KINDS]; /* NULL: there is none of that kind */
    kiln_bake_views views;
} kiln_bake_facts;

/* Reads them. The caller releases *out, after a failure too. As manifest.h, but for what is not
 * there. */
kiln_status kiln_bake_facts_get(kiln_manifest *m, kiln_bake_facts *out,
                                kiln_error *err) KILN_MUST_CHECK;
void kiln_bake_facts_release(kiln_bake_facts *f);
/* The facts of a stage of stages.def. */
const kiln_stage_facts *kiln_bake_stage(const kiln_bake_facts *f, const char *name);

/* Seconds in which a stage's newest run or one of its tasks ran, 0 without one; of all stages
 * together. */
double kiln_stage_seconds(const kiln_stage_facts *s);
double kiln_bake_seconds(const kiln_bake_facts *f);
/* The layer that the bake has come to; NULL: none. */
const kiln_layer *kiln_bake_last_layer(const kiln_bake_facts *f);

/* ---- JSON of strangers ----------------------------------------------------------------------- */
/* A member that is a number, else NAN; that is a whole number from 0 on, else 0; that is a text,
 * else "". object may be NULL or of any type. */
double kiln_json_number_of(const json_t *object, const char *key);
uint64_t kiln_json_count_of(const json_t *object, const char *key);
const char *kiln_json_text_of(const json_t *object, const char *key);

#endif
