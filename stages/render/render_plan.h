/* render_plan -- the pictures of one run of kiln-render, in the parent: which are to be drawn, what memory they take, and their
 * results.
 */
#ifndef KILN_STAGES_RENDER_PLAN_H
#define KILN_STAGES_RENDER_PLAN_H

#include "stages/render/render_options.h"
#include "stages/render/render_units.h"
#include "stages/render/video.h"
#include "stages/render/viewpoints.h"

#define KILN_RENDER_FAST_KIND "cuda-fast" /* the device kind of pictures of --fast */

typedef struct {
    const kiln_camera *camera;
    kiln_render_unit payload;
    char relative[KILN_PATH_MAX]; /* path of the file in the manifest; "": no file is written */
    char device_kind[16];         /* of its pixels: "cpu", "cuda" or KILN_RENDER_FAST_KIND */
    uint32_t level;               /* of --levels-against; 0: of no such picture */
    kiln_view_chunks chunks;      /* that the picture is drawn of; with `level`, of its two pictures those with more rows */
    kiln_view_detail detail;      /* of the picture; all 0 where the scene is drawn in full */
    bool due;                     /* this run draws the picture */
} kiln_render_job;

typedef struct {
    kiln_render_options *o; /* borrowed, as cli is, whose table has them */
    const kiln_cli *cli;
    kiln_scene scene;
    kiln_layer_kind kind;
    const char *level_text; /* of --level */
    kiln_level_wish wish;   /* the same */
    kiln_drawn drawn;
    const kiln_layer *layer; /* drawn.chunks */
    kiln_chunk_keys keys;    /* of these */
    kiln_viewpoints viewpoints;
    const kiln_camera *cameras; /* of these; borrowed */
    kiln_video_options stream;  /* kind KILN_VIDEO_NONE: pictures are files */
    kiln_video *video;          /* of a stream; NULL: not begun */
    uint32_t n_cameras;
    const char *against;  /* the folder of --levels-against; NULL: it is not given */
    kiln_camera *smaller; /* [n_jobs] cameras of its pictures */
    kiln_source_file *sources;
    uint32_t n_sources;
    kiln_render_job *jobs;
    kiln_unit *units; /* [n_jobs] */
    uint32_t n_jobs;
    double background[3];
    const char *profile;
    char folder[KILN_PATH_MAX]; /* absolute path of the manifest's folder */
} kiln_render_plan;

/* Tells the run what work is due, for `--devices auto`. Fast pictures are a GPU's: nothing is told. */
kiln_status kiln_render_plan_expect(kiln_run *r, const kiln_render_plan *s, bool fast, kiln_error *err) KILN_MUST_CHECK;
/* Sets cost and memory of each unit, and the fields of its payload that depend on them. If a camera may need more memory than --ram
 * leaves for a unit, its Gaussians are counted first, by a list of units. Fails as kiln_run_units. */
kiln_status kiln_render_plan_size(kiln_run *r, kiln_render_plan *s, kiln_error *err) KILN_MUST_CHECK;
/* A kiln_commit_fn, whose context is the kiln_render_plan: stores the rows of the images. Cameras whose unit is quarantined get
 * none. */
kiln_status kiln_render_plan_put(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err) KILN_MUST_CHECK;
/* Fills the run's report and prints the results for people. */
kiln_status kiln_render_plan_report(kiln_run *r, const kiln_render_plan *s, kiln_error *err) KILN_MUST_CHECK;

#endif
