/* Pictures and steps of refinement. */
#include "stages/lod/refine_draw.h"

#include "base/memory.h"
#include "base/minmax.h"

#include <stdlib.h>
#include <string.h>

enum {
    TILES = (KILN_REFINE_WINDOW / KILN_TILE) * (KILN_REFINE_WINDOW / KILN_TILE),
    FIRST_PAIRS = 1 << 18,
    PICTURE = 4 * KILN_REFINE_WINDOW * KILN_REFINE_WINDOW, /* floats */
};

/* Source: the measurements in stages/lod/DESIGN.md. */
static const kiln_adam_steps full_steps = {.mean = .015f,
                                           .log_scale = .01f,
                                           .half_angle = .005f,
                                           .opacity_logit = .025f,
                                           .sh0 = .01f,
                                           .shN = .002f};
/* Of the pictures' squared error for one axis, e-fold, radian or coefficient: what hardly shows in
 * any view stays where it is. */
static const float least_gradient = .015f;

/* ---- canvas ---------------------------------------------------------------------------------- */
kiln_status kiln_refine_canvas_open(kiln_refine_canvas *c, kiln_runner *runner,
                                    const kiln_refine_unit *u, uint64_t capacity, kiln_error *err)
{
    *c = (kiln_refine_canvas){.runner = runner,
                              .profile = (kiln_profile_id)u->profile,
                              .antialiased = u->antialiased != 0,
                              .capacity = capacity,
                              .pairs = FIRST_PAIRS};
    KILN_TRY(KILN_ALLOC_UNSET(&c->splats, capacity, "splats of a chunk", err));
    KILN_TRY(KILN_ALLOC_UNSET(&c->depths, capacity, "splats of a chunk", err));
    KILN_TRY(KILN_ALLOC_UNSET(&c->rows, capacity, "splats of a chunk", err));
    KILN_TRY(KILN_ALLOC_UNSET(&c->names, capacity, "splats of a chunk", err));
    KILN_TRY(KILN_ALLOC_UNSET(&c->counts, TILES, "lists of a chunk", err));
    KILN_TRY(KILN_ALLOC_UNSET(&c->ids, c->pairs, "lists of a chunk", err));
    for (uint64_t i = 0; i < capacity; i++) c->names[i] = (uint32_t)i;
    KILN_TRY(kiln_runner_keep(runner, c->splats, capacity * sizeof *c->splats, true, err));
    KILN_TRY(kiln_runner_keep(runner, c->depths, capacity * sizeof *c->depths, true, err));
    KILN_TRY(kiln_runner_keep(runner, c->rows, capacity * sizeof *c->rows, true, err));
    KILN_TRY(kiln_runner_keep(runner, c->names, capacity * sizeof *c->names, false, err));
    KILN_TRY(kiln_runner_keep(runner, c->counts, TILES * sizeof *c->counts, true, err));
    return kiln_runner_keep(runner, c->ids, c->pairs * sizeof *c->ids, true, err);
}

void kiln_refine_canvas_release(kiln_refine_canvas *c)
{
    const void *const kept[] = {c->splats, c->depths, c->rows, c->names, c->counts, c->ids};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) kiln_runner_drop(c->runner, kept[i]);
    free(c->splats);
    free(c->depths);
    free(c->rows);
    free(c->names);
    free(c->counts);
    free(c->ids);
}

/* Adds what the view has of these rows behind the splats so far. */
static kiln_status collect_splats(kiln_refine_canvas *c, const kiln_refine_window *view,
                                  const kiln_coarsen_rows *r, kiln_error *err)
{
    uint64_t visible = 0;
    if (r->n > c->capacity - c->named)
        return kiln_fail(err, KILN_E_BUG, "refine: the rows exceed the capacity");
    const kiln_project_args a = {.n = r->n,
                                 KILN_PROJECT_PLANES(r),
                                 .sh0 = r->sh0,
                                 .shN = r->sh_degree > 0 ? r->shN : NULL,
                                 .sh_degree = r->sh_degree,
                                 .view = &view->view,
                                 .cut = view->cut,
                                 .profile = c->profile,
                                 .antialiased = c->antialiased,
                                 .splats = c->splats + c->total,
                                 .n_visible = &visible,
                                 .source_rows = c->names + c->named,
                                 .depths = c->depths + c->total,
                                 .rows = c->rows + c->total};
    KILN_TRY(kiln_runner_run(c->runner, KILN_OP_project, &a, err));
    c->total += visible;
    c->named += r->n;
    return KILN_OK;
}

/* The splats of `rows`. Those of others name no row. */
static kiln_status collect_all(kiln_refine_canvas *c, const kiln_refine_window *view,
                               const kiln_refine_rows *rows, kiln_error *err)
{
    c->total = c->named = 0;
    KILN_TRY(collect_splats(c, view, rows->own, err));
    const uint64_t own = c->total;
    if (rows->others && rows->others->n > 0) KILN_TRY(collect_splats(c, view, rows->others, err));
    return kiln_runner_fill(c->runner, &c->splats[own].row, sizeof *c->splats, 0xff,
                            sizeof c->splats->row, c->total - own, err);
}

static uint32_t tile_rows(const kiln_view *v) { return kiln_view_tiles_y(v); }

/* Lists the splats of each tile. A second turn has room for what the first one found. */
static kiln_status list_splats(kiln_refine_canvas *c, const kiln_view *view, bool *fits,
                               kiln_error *err)
{
    for (int turn = 0; turn < 2; turn++) {
        uint64_t stats[3] = {0};
        const kiln_tile_lists_args a = {.n = c->total,
                                        .n_visible = &c->total,
                                        .splats = c->splats,
                                        .depths = c->depths,
                                        .source_rows = c->rows,
                                        .view = view,
                                        .row1 = tile_rows(view),
                                        .capacity = c->pairs,
                                        .tile_counts = c->counts,
                                        .ids = c->ids,
                                        .stats = stats};
        KILN_TRY(kiln_runner_run(c->runner, KILN_OP_tile_lists, &a, err));
        *fits = stats[1] <= c->pairs;
        c->listed = stats[0];
        if (*fits || stats[1] > KILN_REFINE_PAIRS) return KILN_OK;
        kiln_runner_drop(c->runner, c->ids);
        free(c->ids);
        c->ids = NULL;
        c->pairs = kiln_min_u64(stats[1] + stats[1] / 4, KILN_REFINE_PAIRS);
        KILN_TRY(KILN_ALLOC_UNSET(&c->ids, c->pairs, "lists of a chunk", err));
        KILN_TRY(kiln_runner_keep(c->runner, c->ids, c->pairs * sizeof *c->ids, true, err));
    }
    return KILN_OK;
}

kiln_status kiln_refine_draw(kiln_refine_canvas *c, const kiln_refine_window *view,
                             const kiln_refine_rows *rows, float *rgba, bool *fits, kiln_error *err)
{
    KILN_TRY(collect_all(c, view, rows, err));
    KILN_TRY(list_splats(c, &view->view, fits, err));
    if (!*fits) return KILN_OK;
    const kiln_raster_args a = {.n = c->total,
                                .splats = c->splats,
                                .view = &view->view,
                                .profile = c->profile,
                                .row1 = tile_rows(&view->view),
                                .tile_counts = c->counts,
                                .ranks = c->ids,
                                .n_pairs = c->listed,
                                .rgba = rgba};
    return kiln_runner_run(c->runner, KILN_OP_raster, &a, err);
}

/* ---- steps ----------------------------------------------------------------------------------- */
kiln_status kiln_refine_steps_open(kiln_refine_steps *s, kiln_runner *runner, uint64_t n,
                                   uint32_t sh_degree, kiln_error *err)
{
    const uint64_t values = n * kiln_gradient_planes(sh_degree);
    *s = (kiln_refine_steps){.runner = runner, .n = n, .sh_degree = sh_degree};
    KILN_TRY(KILN_ALLOC_UNSET(&s->rgba, PICTURE, "a picture of a level", err));
    KILN_TRY(KILN_ALLOC_UNSET(&s->drawn, n * KILN_BACKWARD_PLANES, "gradients of a level", err));
    KILN_TRY(KILN_ALLOC_UNSET(&s->gradients, values, "gradients of a level", err));
    KILN_TRY(KILN_ALLOC(&s->m, values, "gradients of a level", err));
    KILN_TRY(KILN_ALLOC(&s->v, values, "gradients of a level", err));
    KILN_TRY(kiln_runner_keep(runner, s->rgba, PICTURE * sizeof *s->rgba, true, err));
    KILN_TRY(
        kiln_runner_keep(runner, s->drawn, n * KILN_BACKWARD_PLANES * sizeof *s->drawn, true, err));
    KILN_TRY(kiln_runner_keep(runner, s->gradients, values * sizeof *s->gradients, true, err));
    KILN_TRY(kiln_runner_keep(runner, s->m, values * sizeof *s->m, false, err));
    return kiln_runner_keep(runner, s->v, values * sizeof *s->v, false, err);
}

void kiln_refine_steps_release(kiln_refine_steps *s)
{
    const void *const kept[] = {s->rgba, s->drawn, s->gradients, s->m, s->v};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) kiln_runner_drop(s->runner, kept[i]);
    free(s->rgba);
    free(s->drawn);
    free(s->gradients);
    free(s->m);
    free(s->v);
}

static kiln_status find_gradients(kiln_refine_canvas *c, kiln_refine_steps *s,
                                  const kiln_refine_window *view, const kiln_coarsen_rows *own,
                                  const kiln_refine_turn *turn, kiln_error *err)
{
    kiln_raster_backward_args raster = {.n = c->total,
                                        .splats = c->splats,
                                        .view = &view->view,
                                        .profile = c->profile,
                                        .row1 = tile_rows(&view->view),
                                        .tile_counts = c->counts,
                                        .ranks = c->ids,
                                        .n_pairs = c->listed,
                                        .rgba = s->rgba,
                                        .target = turn->target,
                                        .n_rows = own->n,
                                        .gradients = s->drawn};
    const kiln_project_backward_args project = {.n = own->n,
                                                .n_splats = c->total,
                                                KILN_PROJECT_PLANES(own),
                                                .sh_degree = own->sh_degree,
                                                .view = &view->view,
                                                .cut = view->cut,
                                                .profile = c->profile,
                                                .antialiased = c->antialiased,
                                                .splats = c->splats,
                                                .drawn = s->drawn,
                                                .gradients = s->gradients};
    memcpy(raster.background, turn->background, sizeof raster.background);
    KILN_TRY(kiln_runner_run(c->runner, KILN_OP_raster_backward, &raster, err));
    return kiln_runner_run(c->runner, KILN_OP_project_backward, &project, err);
}

kiln_status kiln_refine_step(kiln_refine_canvas *c, kiln_refine_steps *s,
                             const kiln_refine_window *view, const kiln_refine_rows *rows,
                             const kiln_refine_turn *turn, kiln_error *err)
{
    const kiln_coarsen_rows *own = rows->own;
    bool fits;
    KILN_TRY(kiln_refine_draw(c, view, rows, s->rgba, &fits, err));
    if (!fits) return KILN_OK;
    KILN_TRY(find_gradients(c, s, view, own, turn, err));
    kiln_adam_args a = {.n = own->n,
                        .sh_degree = own->sh_degree,
                        KILN_PROJECT_PLANES(own),
                        .sh0 = own->sh0,
                        .shN = own->sh_degree > 0 ? own->shN : NULL,
                        .gradients = s->gradients,
                        .m = s->m,
                        .v = s->v,
                        .weight = turn->weight,
                        .least = least_gradient,
                        .longest = turn->longest};
    kiln_adam_steps most = full_steps;
    most.mean *= turn->mean_reach;
    float *const each[] = {&most.log_scale, &most.half_angle, &most.opacity_logit, &most.sh0,
                           &most.shN};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) *each[i] *= turn->reach;
    kiln_adam_at(&a, &most, turn->t, turn->steps);
    return kiln_runner_run(c->runner, KILN_OP_adam, &a, err);
}
