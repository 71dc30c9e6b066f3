/* cpu_frame -- each operation of a frame beside its plain loop. */
#include "tests/bench/cpu_bench.h"
#include "tests/bench/cpu_plain.h"
#include "tests/bench/cpu_scene.h"

#include "base/memory.h"
#include "kernels/tile_pairs/tile_ask_math.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What draws one Gaussian to one pixel in float32 instructions: power 3 and its test, exponential
 * 10, alpha 2 and its test, transmittance 2 and its test, weight 1, colour 6, less what a row
 * shares (raster_math.h, real.h). */
static const double blend_fp32 = 26;

/* What lists take in float32 instructions, tile by tile (tile_ask_math.h). Of a Gaussian:
 * determinant and its tests 12, half width and height 9, first and last pixels 26, ratios 3. Of a
 * tile of its box: least values on two edges 14, the lesser one and its test 5, the pixel nearest
 * to it 12, power 5 and its test; what tiles of a column or row share is not counted. */
static const double box_fp32 = 50, tile_fp32 = 37;

/* The same by tile rows, as the CPU finds most (tile_span_math.h): rows have several tiles. Of a
 * Gaussian: determinant and its tests 12, half width and height 9, the ellipse's other numbers 27,
 * its box 18. Of a tile row: which pixel rows 18, half widths 10, ends 16, tests 26. */
static const double form_fp32 = 66, row_fp32 = 70;

typedef struct {
    const cpu_frame *frame;
    unsigned threads;
    cpu_plain_counts counts;
} plain_side;

static kiln_status run_plain(void *context, kiln_error *err)
{
    plain_side *p = context;
    kiln_raster_args a = p->frame->raster;
    (void)err;
    a.rgba = p->frame->plain;
    p->counts = cpu_plain_raster(&a, p->frame->starts, p->threads);
    return KILN_OK;
}

/* The plain loops before the raster, with arrays of their own for what they find. */
typedef struct {
    const cpu_frame *frame;
    unsigned threads;
    kiln_splat2d *splats;
    uint64_t n_visible, *row_pairs;
    uint8_t *seen;
    cpu_plain_item *items;
    uint32_t *order, *tile_counts, *ranks, *columns, *mine;
} plain_lists;

static void plain_lists_release(plain_lists *p)
{
    void *const owned[] = {p->splats,      p->row_pairs, p->seen,    p->items, p->order,
                           p->tile_counts, p->ranks,     p->columns, p->mine};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
}

/* plain_lists_release also after a failure. */
static kiln_status plain_lists_init(plain_lists *p, const cpu_frame *f, kiln_error *err)
{
    const uint64_t n = f->project.n, rows = f->count.row1,
                   tiles = rows * kiln_view_tiles_x(&f->view);
    *p = (plain_lists){.frame = f};
    KILN_TRY(KILN_ALLOC(&p->splats, n, "splats", err));
    KILN_TRY(KILN_ALLOC(&p->seen, n, "marks of rows", err));
    KILN_TRY(KILN_ALLOC(&p->items, f->n_visible, "depths", err));
    KILN_TRY(KILN_ALLOC(&p->order, f->n_visible, "order", err));
    KILN_TRY(KILN_ALLOC(&p->row_pairs, rows, "pairs of rows", err));
    KILN_TRY(KILN_ALLOC(&p->tile_counts, tiles, "pairs of tiles", err));
    KILN_TRY(KILN_ALLOC(&p->ranks, f->n_pairs, "pairs", err));
    KILN_TRY(KILN_ALLOC(&p->columns, f->n_pairs, "columns of pairs", err));
    return KILN_ALLOC(&p->mine, f->n_pairs, "pairs of rows", err);
}

static kiln_status plain_project(void *context, kiln_error *err)
{
    plain_lists *p = context;
    kiln_project_args a = p->frame->project;
    (void)err;
    a.splats = p->splats;
    a.n_visible = &p->n_visible;
    cpu_plain_project(&a, p->threads, p->seen);
    return KILN_OK;
}

static kiln_status plain_order(void *context, kiln_error *err)
{
    plain_lists *p = context;
    kiln_depth_order_args a = p->frame->depth_order;
    (void)err;
    a.order = p->order;
    cpu_plain_order(&a, p->items);
    return KILN_OK;
}

static kiln_status plain_count(void *context, kiln_error *err)
{
    plain_lists *p = context;
    kiln_tile_pairs_count_args a = p->frame->count;
    (void)err;
    a.row_pairs = p->row_pairs;
    cpu_plain_count(&a, p->threads);
    return KILN_OK;
}

static kiln_status plain_emit(void *context, kiln_error *err)
{
    plain_lists *p = context;
    kiln_tile_pairs_emit_args a = p->frame->emit;
    (void)err;
    a.tile_counts = p->tile_counts;
    a.ranks = p->ranks;
    cpu_plain_emit(&a, p->frame->row_pairs, p->threads, p->columns, p->mine);
    return KILN_OK;
}

/* One operation, its plain loop, and what both must have written alike. */
typedef struct {
    const char *name;
    kiln_op_id op;
    const void *args;
    uint64_t items;
    cpu_cost least;
    const char *peer;
    cpu_work_fn *plain;
    const void *found, *expected;
    uint64_t n;
    size_t size;
    const char *complaint;
} frame_op;

static void compare_results(cpu_bench *b, const frame_op *o, const cpu_row *r)
{
    cpu_finding found = {.complaint = o->complaint, .checked = o->n};
    const char *const x = o->found, *const y = o->expected;
    for (uint64_t i = 0; i < o->n; i++)
        found.wrong += memcmp(x + i * o->size, y + i * o->size, o->size) != 0;
    memcpy(found.what, r->what, sizeof found.what);
    cpu_keep_finding(b, &found);
}

/* With one thread and with all. */
static kiln_status bench_op(cpu_bench *b, uint64_t n, const frame_op *o, plain_lists *p,
                            kiln_error *err)
{
    char size[24];
    cpu_size_name(n, size);
    for (unsigned threads = 1; threads > 0; threads = cpu_next_threads(b, threads)) {
        cpu_op op = {.op = o->op, .args = o->args, .threads = threads};
        cpu_row r = {.threads = threads, .items = o->items, .least = o->least, .peer = o->peer};
        p->threads = threads;
        snprintf(r.what, sizeof r.what, "%s %s", o->name, size);
        kiln_status st = cpu_prepare_op(&op, err);
        if (st == KILN_OK)
            st = cpu_compare(b, &r, (cpu_work){cpu_run_op, &op}, (cpu_work){o->plain, p}, err);
        free(op.work);
        KILN_TRY(st);
        compare_results(b, o, &r);
    }
    return KILN_OK;
}

/* Tiles of the boxes that hold what is listed: each must be asked, or proven in some other way.
 * Sets *rows to the boxes' tile rows. */
static uint64_t tiles_of_boxes(const cpu_frame *f, uint64_t *rows)
{
    uint64_t tiles = 0;
    *rows = 0;
    for (uint64_t i = 0; i < f->n_visible; i++) {
        kiln_tile_box b;
        if (kiln_find_box(&f->splats[i], &f->view, 0, f->count.row1, &b) != KILN_BOX_PROVEN)
            continue;
        tiles += (uint64_t)b.w * (uint64_t)b.h;
        *rows += (uint64_t)b.h;
    }
    return tiles;
}

static void tell_lists(cpu_bench *b, double tiles, double pairs, const double fp32[2], double bytes)
{
    const cpu_figure figures[] = {
        {"lists: tiles that boxes have", tiles * 1e-6, "M"},
        {"lists: of those are listed", 100 * pairs / tiles, "%"},
        {"lists: their float32 instructions, one thread", 1e3 * fp32[0] / b->one.fp32, "ms"},
        {"lists: those by tile rows, one thread", 1e3 * fp32[1] / b->one.fp32, "ms"},
        {"lists: their bytes, one thread", 1e3 * bytes / b->one.copy_bytes, "ms"},
    };
    for (unsigned i = 0; i < sizeof figures / sizeof *figures; i++) cpu_keep_figure(b, &figures[i]);
}

/* The same least work as the GPU's table counts (frame_suite.cu). */
static kiln_status bench_lists(cpu_bench *b, const cpu_frame *f, kiln_error *err)
{
    const uint64_t n = f->project.n, visible = f->n_visible;
    uint64_t rows;
    const double seen = (double)visible, pairs = (double)f->n_pairs,
                 tiles = (double)tiles_of_boxes(f, &rows);
    const double asked = box_fp32 * seen + tile_fp32 * tiles;
    const double ways[] = {asked, form_fp32 * seen + row_fp32 * (double)rows};
    plain_lists p;
    kiln_status st;
    KILN_GO(plain_lists_init(&p, f, err));
    const frame_op ops[] = {
        {"project",
         KILN_OP_project,
         &f->project,
         n,
         {.bytes = 12 * (double)n + (32 + 192 + 64) * seen},
         "plain loop",
         plain_project,
         f->found,
         p.splats,
         visible,
         sizeof *p.splats,
         "splats differ from the plain loop's"},
        {"depth_order",
         KILN_OP_depth_order,
         &f->depth_order,
         visible,
         {.bytes = 12 * seen},
         "qsort",
         plain_order,
         f->order,
         p.order,
         visible,
         sizeof *p.order,
         "places differ from qsort's"},
        {"tile_pairs_count",
         KILN_OP_tile_pairs_count,
         &f->count,
         visible,
         {.bytes = 40 * seen, .fp32 = asked},
         "plain loop",
         plain_count,
         f->row_pairs,
         p.row_pairs,
         f->count.row1,
         sizeof *p.row_pairs,
         "rows have other sums than the plain loop's"},
        {"tile_pairs_emit",
         KILN_OP_tile_pairs_emit,
         &f->emit,
         f->n_pairs,
         {.bytes = 40 * seen + 4 * pairs, .fp32 = asked},
         "plain loop",
         plain_emit,
         f->ranks,
         p.ranks,
         f->n_pairs,
         sizeof *p.ranks,
         "pairs differ from the plain loop's"},
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) KILN_GO(bench_op(b, n, &ops[i], &p, err));
    tell_lists(b, tiles, pairs, ways, 40 * seen + 4 * pairs);
done:
    plain_lists_release(&p);
    return st;
}

static void tell_raster(cpu_bench *b, const cpu_row *r, const cpu_plain_counts *c)
{
    const double evaluated = (double)c->evaluated, drawn = (double)c->drawn;
    const double peak = (r->threads > 1 ? b->all : b->one).fp32;
    const cpu_figure figures[] = {
        {"raster: pairs", (double)r->items * 1e-6 / r->ours.cpu_s, "M a second and core"},
        {"raster: pixel and Gaussian evaluated", evaluated * 1e-9 / r->ours.cpu_s,
         "G a second and core"},
        {"plain loop: pixel and Gaussian evaluated", evaluated * 1e-9 / r->theirs.cpu_s,
         "G a second and core"},
        {"raster: of those evaluated are drawn", 100 * drawn / evaluated, "%"},
        {"raster: drawn pixels' part of the fma rate",
         100 * drawn * blend_fp32 / (peak * r->ours.cpu_s), "%"},
    };
    for (unsigned i = 0; i < sizeof figures / sizeof *figures; i++) cpu_keep_figure(b, &figures[i]);
}

static kiln_status bench_raster(cpu_bench *b, const cpu_frame *f, kiln_error *err)
{
    char size[24];
    const uint64_t floats = (uint64_t)4 * f->view.width * f->view.height;
    cpu_size_name(f->project.n, size);
    for (unsigned threads = 1; threads > 0; threads = cpu_next_threads(b, threads)) {
        cpu_op o = {.op = KILN_OP_raster, .args = &f->raster, .threads = threads};
        plain_side plain = {.frame = f, .threads = threads};
        cpu_row r = {.threads = threads, .items = f->n_pairs, .peer = "plain loop"};
        uint64_t wrong = 0;
        kiln_error ignored;
        (void)run_plain(&plain, &ignored); /* for its counts; cannot fail */
        r.least = (cpu_cost){.bytes = 40 * (double)f->n_visible + 4 * (double)(f->n_pairs + floats),
                             .fp32 = blend_fp32 * (double)plain.counts.drawn};
        snprintf(r.what, sizeof r.what, "raster %s", size);
        kiln_status st = cpu_prepare_op(&o, err);
        if (st == KILN_OK)
            st = cpu_compare(b, &r, (cpu_work){cpu_run_op, &o}, (cpu_work){run_plain, &plain}, err);
        free(o.work);
        KILN_TRY(st);
        for (uint64_t i = 0; i < floats; i++)
            wrong += memcmp(&f->rgba[i], &f->plain[i], sizeof *f->rgba) != 0;
        cpu_finding found = {
            .complaint = "floats differ from the plain loop's", .checked = floats, .wrong = wrong};
        memcpy(found.what, r.what, sizeof found.what);
        cpu_keep_finding(b, &found);
        if (threads == 1) tell_raster(b, &r, &plain.counts);
    }
    return KILN_OK;
}

kiln_status cpu_bench_frame(cpu_bench *b, kiln_error *err)
{
    kiln_status st;
    cpu_scene s = {0};
    cpu_frame f = {0};
    KILN_GO(cpu_scene_init(&s, b->quick ? 50000 : 1000000, err));
    KILN_GO(cpu_frame_init(&f, &s, b->threads, err));
    cpu_print_section("a frame at 1920 x 1080");
    KILN_GO(bench_lists(b, &f, err));
    KILN_GO(bench_raster(b, &f, err));
done:
    cpu_frame_release(&f);
    cpu_scene_release(&s);
    return st;
}
