/* refine_draw -- pictures of some chunks' rows in a small window, and steps of Adam by them. For
 * the worker's part of refine.h.
 *
 * Rows and pictures may be kept on the runner's device (kiln_runner_keep): the caller fetches them
 * where it reads them.
 *
 * A canvas belongs to one thread. Its functions run operations (kernels/runner.h) and fail as those
 * do, and with KILN_E_NOMEM. */
#ifndef KILN_STAGES_LOD_REFINE_DRAW_H
#define KILN_STAGES_LOD_REFINE_DRAW_H

#include "kernels/adam/adam.h"
#include "kernels/coarsen/coarsen.h"
#include "kernels/runner.h"
#include "stages/lod/refine_view.h"

typedef struct {
    kiln_runner *runner; /* borrowed */
    kiln_profile_id profile;
    bool antialiased;
    uint64_t capacity;      /* rows of a picture, at most */
    kiln_splat2d *splats;   /* [capacity] */
    float *depths;          /* [capacity] */
    uint32_t *rows, *names; /* [capacity] names: 0, 1, 2, .. */
    uint64_t total;         /* splats so far */
    uint64_t named;         /* rows so far */
    uint32_t *counts;       /* pairs of each tile */
    uint32_t *ids;          /* [pairs] */
    uint64_t pairs;         /* room of ids */
    uint64_t listed;        /* ids of the picture */
} kiln_refine_canvas;

kiln_status kiln_refine_canvas_open(kiln_refine_canvas *c, kiln_runner *runner,
                                    const kiln_refine_unit *u, uint64_t capacity,
                                    kiln_error *err) KILN_MUST_CHECK;
void kiln_refine_canvas_release(kiln_refine_canvas *c);

/* The rows of a picture: some that may be moved, and others. */
typedef struct {
    const kiln_coarsen_rows *own, *others; /* others: NULL, or without rows */
} kiln_refine_rows;

/* Draws rows over black: rgba [height][width][4]. *fits is false, and nothing is drawn, above
 * KILN_REFINE_PAIRS pairs. */
kiln_status kiln_refine_draw(kiln_refine_canvas *c, const kiln_refine_window *view,
                             const kiln_refine_rows *rows, float *rgba, bool *fits,
                             kiln_error *err) KILN_MUST_CHECK;

/* What a level's steps need beside its rows. */
typedef struct {
    kiln_runner *runner; /* borrowed */
    uint64_t n;
    uint32_t sh_degree;
    float *rgba;              /* a window */
    float *drawn, *gradients; /* as raster_backward and project_backward give them */
    float *m, *v;
} kiln_refine_steps;
kiln_status kiln_refine_steps_open(kiln_refine_steps *s, kiln_runner *runner, uint64_t n,
                                   uint32_t sh_degree, kiln_error *err) KILN_MUST_CHECK;
void kiln_refine_steps_release(kiln_refine_steps *s);

/* One of so many steps, by a picture whose error counts so much. */
typedef struct {
    uint32_t t, steps;
    const float *target;             /* the picture, like rgba of kiln_refine_draw */
    float background[3];             /* both pictures are over it */
    float weight, reach, mean_reach; /* reach: share of the full step; of a mean's */
    float longest;                   /* as in kiln_adam_args */
} kiln_refine_turn;
/* Moves rows->own towards the turn's target. Leaves the rows as they are if the picture does not
 * fit. */
kiln_status kiln_refine_step(kiln_refine_canvas *c, kiln_refine_steps *s,
                             const kiln_refine_window *view, const kiln_refine_rows *rows,
                             const kiln_refine_turn *turn, kiln_error *err) KILN_MUST_CHECK;

#endif
