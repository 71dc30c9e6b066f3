/* shoot -- the pictures of one run of kiln-render, in the parent: what is to be drawn, what memory that takes, what came of it. */
#ifndef KILN_STAGES_RENDER_PLAN_H
#define KILN_STAGES_RENDER_PLAN_H

#include "stages/import/dataset/dataset.h"
#include "stages/render/render_units.h"

#define KILN_RENDER_FAST_KIND "cuda-fast" /* of pictures: those of --fast */

typedef struct {
    const kiln_camera *camera;
    kiln_render_unit payload;
    char relative[KILN_PATH_MAX]; /* what the manifest remembers; "" where no file is written */
    char device_kind[16];         /* kind of its pixels: "cpu", "cuda" or KILN_RENDER_FAST_KIND */
    bool due;                     /* its picture is to be drawn now */
} kiln_render_job;

typedef struct {
    kiln_scene scene;
    kiln_layer_kind kind;
    kiln_layer *layer;    /* of that kind */
    kiln_chunk_keys keys; /* of the layer */
    kiln_dataset file;    /* cameras of --cameras */
    kiln_camera *cameras;
    uint32_t n_cameras;
    kiln_source_file *sources;
    uint32_t n_sources;
    kiln_render_job *jobs;
    kiln_unit *units; /* one a job */
    uint32_t n_jobs;
    double background[3];
    const char *profile;
    char folder[KILN_PATH_MAX]; /* absolute, of the manifest */
} kiln_render_plan;

/* Sets cost and ram of each unit, and in its payload what the worker must know of that. Where the memory that --ram leaves a
 * unit may be too little for a camera, its Gaussians are counted first. */
kiln_status kiln_render_plan_size(kiln_run *r, kiln_render_plan *s, kiln_error *err) KILN_MUST_CHECK;
/* kiln_commit_fn: the rows of the images; context is the kiln_render_plan. Quarantined cameras have none. */
kiln_status kiln_render_plan_put(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err) KILN_MUST_CHECK;
/* Report and, without --json, text on stdout. */
kiln_status kiln_render_plan_report(kiln_run *r, const kiln_render_plan *s, kiln_error *err) KILN_MUST_CHECK;

#endif
