/* render_plan -- the pictures of one run of kiln-render, in the parent: which are to be drawn, what
 * memory they take, and their results.
 */
#ifndef KILN_STAGES_RENDER_PLAN_H
#define KILN_STAGES_RENDER_PLAN_H

#include "stages/cameras/exposures.h"
#include "stages/render/render_options.h"
#include "stages/render/render_units.h"
#include "stages/render/video.h"
#include "stages/render/viewpoints.h"

#define KILN_RENDER_FAST_KIND "cuda-fast" /* the device kind of pictures of --fast */

/* What is kept of a picture. A bake can have a hundred thousand, so what follows from the camera
 * and the options, such as paths, is made where it is asked for (kiln_render_unit_of). */
typedef struct {
    const struct kiln_render_plan *plan;
    const kiln_camera *camera;
    kiln_view_request request;
    kiln_hash any_key; /* of its unit, whatever device draws it: made while its texts are there */
    /* of its unit, of the kind of device that is looked for first; as any_key */
    kiln_hash first_key;
    kiln_hash table_key; /* as in the unit, as the next four */
    uint64_t ram, band_pairs, slab_capacity, device_ram;
    char device_kind[16]; /* of its pixels: "cpu", "cuda" or KILN_RENDER_FAST_KIND */
    uint32_t level;       /* of --levels-against; 0: of no such picture */
    /* that the picture is drawn of; with `level`, of its two pictures those with more rows */
    kiln_view_chunks chunks;
    kiln_view_detail detail;    /* of the picture; all 0 where the scene is drawn in full */
    bool count_first, measured; /* as in the unit */
    kiln_product_seen picture_seen, depth_seen, full_seen; /* as in the unit */
    bool due;                                              /* this run draws the picture */
    /* the folders of its places were looked at before any work: no link leads out of the bake's
     * folder */
    bool placed;
} kiln_render_job;

/* What is made of a job. */
typedef struct {
    kiln_render_unit unit;
    char relative[KILN_PATH_MAX]; /* path of the file in the manifest; "": no file is written */
    const kiln_render_job *job;   /* whose texts these are; NULL: none yet */
    bool of_video;                /* they were made when the plan had its video */
    /* stays from job to job: the folder that was looked at last, relative, with its slash */
    char looked_at[KILN_PATH_MAX];
} kiln_render_made;

typedef struct kiln_render_plan {
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
    kiln_render_made *made;                /* of the job that was asked for last */
    kiln_render_encoding encoding;         /* of all units */
    const kiln_source_file *exposure_file; /* of `sources`; NULL: none, or not used */
    kiln_exposures exposures;              /* what it holds */
    const kiln_exposure **exposure_of;     /* [n_cameras] owned; NULL without a file */
    char exposures_lost[KILN_PATH_MAX];    /* why the file cannot be used; "": it can */
    bool trained_left;                     /* test views were trained on with their left halves */
    double background[3];
    bool background_chosen; /* it is white because the photos are (background_choice.h) */
    const char *profile;
    char folder[KILN_PATH_MAX]; /* absolute path of the manifest's folder */
} kiln_render_plan;

/* Makes a job of a camera of the plan, without what the list of pictures adds. */
kiln_status kiln_render_job_make(kiln_render_plan *s, kiln_render_job *j, const kiln_camera *c,
                                 kiln_error *err) KILN_MUST_CHECK;
/* The levels that a picture is drawn of. */
kiln_level_wish kiln_render_wish(const kiln_render_plan *s, const kiln_render_job *j);
/* Makes what a worker is told of a picture, and what is not kept of it. Borrowed, until the next
 * call for a job of the plan. The first function reports what the second, called later for the same
 * job, takes for granted. KILN_E_INPUT: a path is too long. */
kiln_status kiln_render_make(const kiln_render_job *j, const kiln_render_made **out,
                             kiln_error *err) KILN_MUST_CHECK;
const kiln_render_made *kiln_render_made_of(const kiln_render_job *j);
static inline const kiln_render_unit *kiln_render_unit_of(const kiln_render_job *j)
{
    return &kiln_render_made_of(j)->unit;
}
/* A kiln_unit.payload_of, of a job. */
const void *kiln_render_payload_of(const void *job);

/* Returns the host memory that a picture's units take at least, counting included, without the
 * list. in_parts: a GPU may draw it.
 */
uint64_t kiln_render_least_ram(const kiln_render_job *j, bool in_parts);
/* Returns what n pictures take of the parent, without results. The plan has its layer. */
uint64_t kiln_render_parent_ram(kiln_run *r, const kiln_render_plan *s, uint64_t n);
/* Announces lists of n units of which the largest takes `least`. */
void kiln_render_foresee(kiln_run *r, uint64_t least, uint64_t n);
/* Tells the run what work is due, for `--devices auto`. Fast pictures are a GPU's: nothing is
 * told. */
kiln_status kiln_render_plan_expect(kiln_run *r, const kiln_render_plan *s, bool fast,
                                    kiln_error *err) KILN_MUST_CHECK;
/* Sets cost and memory of each unit, and the fields of its payload that depend on them. If a camera
 * may need more memory than --ram leaves for a unit, its Gaussians are counted first, by a list of
 * units. Fails as kiln_run_units. */
kiln_status kiln_render_plan_size(kiln_run *r, kiln_render_plan *s,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Sets cost and memory of a picture that is drawn before the list is made, by the upper bound;
 * where there is too little for that, its worker counts first. */
void kiln_render_size_uncounted(kiln_run *r, kiln_render_job *j, kiln_unit *u);
/* A kiln_commit_fn, whose context is the kiln_render_plan: stores the rows of the images. Cameras
 * whose unit is quarantined get none. */
kiln_status kiln_render_plan_put(kiln_run *r, kiln_manifest *m, void *context,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Fills the run's report and prints the results for people. */
kiln_status kiln_render_plan_report(kiln_run *r, const kiln_render_plan *s,
                                    kiln_error *err) KILN_MUST_CHECK;

#endif
