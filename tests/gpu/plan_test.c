/* plan_test -- the plan that tile_lists makes for raster on CUDA (kernels/raster/raster_plan.h):
 * where lists end, every tile once within its part, long lists first. Pictures drawn by it, part by
 * part, are those of a raster that plans for itself. Tiles of 16 and of 32 bits, one pass of the
 * sort and two, all ways to cut a pass, bands, and lists without room. */
#include "kernels/device.h"
#include "kernels/runner.h"
#include "tests/gpu/call.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SPLATS = 3000, POISON = 0xA5 };

/* A view of so many tiles, of whose tile rows those of [row0, row1) have lists. */
typedef struct {
    const char *what;
    uint32_t columns, rows, row0, row1;
    uint64_t n, visible, capacity;
} planned_view;

static const planned_view views[] = {
    {"one pass", 4, 3, 0, 3, SPLATS, SPLATS, 150000},
    {"two passes, tiles of the sort of 512 x 8", 21, 13, 0, 13, SPLATS, SPLATS, 200000},
    {"two passes, tiles of the sort of 512 x 14", 80, 45, 0, 45, SPLATS, SPLATS, 2000000},
    {"one tile row", 8200, 1, 0, 1, SPLATS, SPLATS, 150000},
    {"a band", 60, 40, 3, 38, SPLATS, SPLATS, 150000},
    {"tiles of 32 bits", 257, 257, 0, 257, SPLATS, SPLATS, 150000},
    {"no room for a pair", 21, 13, 0, 13, SPLATS, SPLATS, 0},
    {"room for too few pairs", 21, 13, 0, 13, SPLATS, SPLATS, 100},
    {"more visible than there is room for", 21, 13, 0, 13, SPLATS, SPLATS + 1, 150000},
    {"nothing visible", 21, 13, 0, 13, SPLATS, 0, 150000},
    {"no Gaussian", 21, 13, 0, 13, 0, 0, 0},
};

static void must(kiln_status st, const kiln_error *err)
{
    if (st != KILN_OK) fail_msg("%s", err->msg);
}

/* ---- a call ---------------------------------------------------------------------------------- */
typedef struct {
    kiln_runner *runner;
    kiln_view view;
    uint64_t tiles, visible, stats[3];
    kiln_splat2d *splats;
    float *depths;
    uint32_t *rows;
    kiln_tile_lists_args lists;
    uint64_t *ends;  /* the plan, */
    uint32_t *order; /* in host memory */
} planned;

/* Gaussians of a tile or few, more of them in the upper tile rows. */
static kiln_splat2d splat_at(const kiln_view *v, uint32_t i)
{
    const float x = (float)((uint64_t)i * 7919 % v->width),
                y = (float)((uint64_t)i * 104729 % v->height), shift = y / (float)v->height;
    const float opacity = 0.1f + 0.8f * (float)(i % 10) / 10.0f;
    return (kiln_splat2d){.x = x + 0.25f,
                          .y = y * shift + 0.5f,
                          .conic = {0.05f, 0.01f, 0.04f},
                          .opacity = opacity,
                          .power_min = -4,
                          .tile_x1 = 1 << 20,
                          .tile_y1 = 1 << 20,
                          .rgb = {0.1f * (float)(i % 7), 0.5f, 0.2f * (float)(i % 5)}};
}

static void planned_init(planned *p, kiln_runner *r, const planned_view *w)
{
    *p = (planned){.runner = r,
                   .view = {.width = w->columns * KILN_TILE - 3, .height = w->rows * KILN_TILE - 5},
                   .tiles = (uint64_t)w->columns * (w->row1 - w->row0),
                   .visible = w->visible};
    p->splats = call_memory(w->n + 1, sizeof *p->splats);
    p->depths = call_memory(w->n + 1, sizeof *p->depths);
    p->rows = call_memory(w->n + 1, sizeof *p->rows);
    for (uint32_t i = 0; i < w->n; i++) {
        p->splats[i] = splat_at(&p->view, i);
        p->depths[i] = (float)(1 + i * 31 % 977);
        p->rows[i] = i;
    }
    p->ends = call_memory(p->tiles, sizeof *p->ends);
    p->order = call_memory(p->tiles, sizeof *p->order);
    p->lists =
        (kiln_tile_lists_args){.n = w->n,
                               .n_visible = &p->visible,
                               .splats = p->splats,
                               .depths = p->depths,
                               .source_rows = p->rows,
                               .view = &p->view,
                               .row0 = w->row0,
                               .row1 = w->row1,
                               .capacity = w->capacity,
                               .tile_counts = call_memory(p->tiles, sizeof *p->lists.tile_counts),
                               .ids = call_memory(w->capacity + 1, sizeof *p->lists.ids),
                               .stats = p->stats};
}

static void planned_free(planned *p)
{
    free(p->splats);
    free(p->depths);
    free(p->rows);
    free(p->ends);
    free(p->order);
    free(p->lists.tile_counts);
    free(p->lists.ids);
}

/* ---- the plan -------------------------------------------------------------------------------- */
/* Makes lists and plan; the latter stays on the device, too. */
static void make_plan(planned *p, uint32_t parts)
{
    const kiln_exec x = kiln_runner_exec(p->runner);
    kiln_raster_plan *const plan = &p->lists.plan;
    kiln_error err = {0};
    memset(p->ends, POISON, p->tiles * sizeof *p->ends);
    memset(p->order, POISON, p->tiles * sizeof *p->order);
    must(kiln_device_copy_in(&x, plan->ends, p->ends, p->tiles * sizeof *p->ends, &err), &err);
    must(kiln_device_copy_in(&x, plan->order, p->order, p->tiles * sizeof *p->order, &err), &err);
    must(kiln_device_wait(&x, &err), &err);
    plan->parts = parts;
    must(kiln_runner_run(p->runner, KILN_OP_tile_lists, &p->lists, &err), &err);
    must(kiln_device_copy_out(&x, p->ends, plan->ends, p->tiles * sizeof *p->ends, &err), &err);
    must(kiln_device_copy_out(&x, p->order, plan->order, p->tiles * sizeof *p->order, &err), &err);
    must(kiln_device_wait(&x, &err), &err);
}

/* The first tile of part k. */
static uint64_t part_begin(const planned *p, uint32_t k)
{
    const kiln_tile_lists_args *a = &p->lists;
    return (uint64_t)(kiln_plan_row(a->row0, a->row1, a->plan.parts, k) - a->row0) *
           kiln_view_tiles_x(a->view);
}

static void check_plan(const planned *p)
{
    const uint32_t *const counts = p->lists.tile_counts;
    unsigned char *const seen = call_memory(p->tiles, 1);
    uint64_t end = 0;
    for (uint64_t t = 0; t < p->tiles; t++) {
        end += counts[t];
        assert_int_equal(p->ends[t], end);
    }
    assert_int_equal(end, p->stats[0]);
    for (uint32_t k = 0; k < p->lists.plan.parts; k++) {
        const uint64_t begin = part_begin(p, k), behind = part_begin(p, k + 1);
        for (uint64_t i = begin; i < behind; i++) {
            assert_in_range(p->order[i], begin, behind - 1);
            assert_false(seen[p->order[i]]++);
            /* classes are quarters of a power of two */
            if (i > begin)
                assert_true(4ull * counts[p->order[i]] < 5ull * counts[p->order[i - 1]] + 1);
        }
    }
    free(seen);
}

/* ---- the picture ----------------------------------------------------------------------------- */
static kiln_raster_args raster_of(const planned *p, float *rgba)
{
    const kiln_tile_lists_args *a = &p->lists;
    return (kiln_raster_args){.n = a->n,
                              .splats = a->splats,
                              .view = a->view,
                              .row0 = a->row0,
                              .row1 = a->row1,
                              .tile_counts = a->tile_counts,
                              .ranks = a->ids,
                              .n_pairs = a->capacity,
                              .background = {0.25f, 0.5f, 0.75f},
                              .rgba = rgba};
}

static void check_picture(const planned *p, const float *right, float *rgba, uint64_t floats)
{
    kiln_error err = {0};
    const uint32_t parts = p->lists.plan.parts;
    memset(rgba, POISON, floats * sizeof *rgba);
    for (uint32_t k = 0; k < parts; k++) {
        kiln_raster_args a = raster_of(p, rgba);
        size_t work = 1;
        a.plan = p->lists.plan;
        a.part0 = kiln_plan_row(a.row0, a.row1, parts, k);
        a.part1 = kiln_plan_row(a.row0, a.row1, parts, k + 1);
        a.rgba += (uint64_t)4 * (a.part0 - a.row0) * KILN_TILE * a.view->width;
        must(kiln_runner_work(p->runner, KILN_OP_raster, &a, &work, &err), &err);
        assert_int_equal(work, 0); /* else it plans for itself */
        must(kiln_runner_run(p->runner, KILN_OP_raster, &a, &err), &err);
    }
    assert_memory_equal(right, rgba, floats * sizeof *rgba);
}

/* In one part to as many as there are. */
static void check_view(kiln_runner *r, const planned_view *w)
{
    planned p;
    kiln_error err = {0};
    void *ends, *order;
    planned_init(&p, r, w);
    must(kiln_runner_take(r, p.tiles * sizeof *p.ends, &ends, &err), &err);
    must(kiln_runner_take(r, p.tiles * sizeof *p.order, &order, &err), &err);
    assert_true(ends && order);
    p.lists.plan = (kiln_raster_plan){.ends = ends, .order = order};
    kiln_raster_args own = raster_of(&p, NULL);
    const uint64_t floats = 4 * kiln_raster_pixels(&own);
    float *const right = call_memory(floats, sizeof *right), *const rgba =
                                                                 call_memory(floats, sizeof *rgba);
    own.rgba = right;
    for (uint32_t parts = 1; parts <= KILN_PLAN_PARTS && parts <= w->row1 - w->row0; parts++) {
        print_message("%s, %u parts\n", w->what, parts);
        make_plan(&p, parts);
        check_plan(&p);
        if (parts == 1) must(kiln_runner_run(r, KILN_OP_raster, &own, &err), &err);
        check_picture(&p, right, rgba, floats);
    }
    kiln_runner_give(r, ends, p.tiles * sizeof *p.ends);
    kiln_runner_give(r, order, p.tiles * sizeof *p.order);
    free(right);
    free(rgba);
    planned_free(&p);
}

static void check_views(bool sync)
{
    kiln_device_info info;
    kiln_error err = {0};
    kiln_runner *r;
    if (kiln_device_open(0, &info, &err) != KILN_OK) skip();
    const kiln_runner_options o = {.threads = 1, .sync = sync};
    must(kiln_runner_new(&o, &r, &err), &err);
    for (size_t k = 0; k < sizeof views / sizeof *views; k++) check_view(r, &views[k]);
    kiln_runner_free(r);
}

static void plans_are_of_the_lists(void **state)
{
    (void)state;
    check_views(false);
}

static void so_they_are_when_launches_are_waited_for(void **state)
{
    (void)state;
    check_views(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_are_of_the_lists),
        cmocka_unit_test(so_they_are_when_launches_are_waited_for),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
