/* cpu_frame -- each operation of a frame, and the raster beside the plain loop. */
#include "tests/bench/cpu_bench.h"
#include "tests/bench/cpu_plain.h"
#include "tests/bench/cpu_scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What draws one Gaussian to one pixel in float32 instructions: power 3 and its test, exponential 10, alpha 2 and its test,
 * transmittance 2 and its test, weight 1, colour 6, less what a row shares (raster_math.h, real.h). */
static const double blend_fp32 = 26;

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

/* One operation with one thread and with all. */
static kiln_status bench_op(cpu_bench *b, const char *name, uint64_t n, uint64_t items, kiln_op_id op, const void *args,
                            cpu_cost least, kiln_error *err)
{
    char size[24];
    cpu_size_name(n, size);
    for (unsigned threads = 1; threads > 0; threads = cpu_next_threads(b, threads)) {
        cpu_op o = {.op = op, .args = args, .threads = threads};
        cpu_row r = {.threads = threads, .items = items, .least = least};
        snprintf(r.what, sizeof r.what, "%s %s", name, size);
        kiln_status st = cpu_prepare_op(&o, err);
        if (st == KILN_OK) st = cpu_compare(b, &r, (cpu_work){cpu_run_op, &o}, (cpu_work){0}, err);
        free(o.work);
        KILN_TRY(st);
    }
    return KILN_OK;
}

/* The same least work as the GPU's table counts (frame_suite.cu). */
static kiln_status bench_lists(cpu_bench *b, const cpu_frame *f, kiln_error *err)
{
    const uint64_t n = f->project.n, visible = f->n_visible;
    const double seen = (double)visible, pairs = (double)f->n_pairs;
    KILN_TRY(bench_op(b, "project", n, n, KILN_OP_project, &f->project,
                      (cpu_cost){.bytes = 12 * (double)n + (32 + 192 + 64) * seen}, err));
    KILN_TRY(bench_op(b, "depth_order", n, visible, KILN_OP_depth_order, &f->depth_order, (cpu_cost){.bytes = 12 * seen}, err));
    KILN_TRY(bench_op(b, "tile_pairs_count", n, visible, KILN_OP_tile_pairs_count, &f->count, (cpu_cost){.bytes = 40 * seen}, err));
    return bench_op(b, "tile_pairs_emit", n, f->n_pairs, KILN_OP_tile_pairs_emit, &f->emit,
                    (cpu_cost){.bytes = 40 * seen + 4 * pairs}, err);
}

static void tell_raster(cpu_bench *b, const cpu_row *r, const cpu_plain_counts *c)
{
    const double evaluated = (double)c->evaluated, drawn = (double)c->drawn;
    const double peak = (r->threads > 1 ? b->all : b->one).fp32;
    const cpu_figure figures[] = {
        {"raster: pairs", (double)r->items * 1e-6 / r->ours.cpu_s, "M a second and core"},
        {"raster: pixel and Gaussian evaluated", evaluated * 1e-9 / r->ours.cpu_s, "G a second and core"},
        {"plain loop: pixel and Gaussian evaluated", evaluated * 1e-9 / r->theirs.cpu_s, "G a second and core"},
        {"raster: of those evaluated are drawn", 100 * drawn / evaluated, "%"},
        {"raster: drawn pixels' part of the fma rate", 100 * drawn * blend_fp32 / (peak * r->ours.cpu_s), "%"},
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
        if (st == KILN_OK) st = cpu_compare(b, &r, (cpu_work){cpu_run_op, &o}, (cpu_work){run_plain, &plain}, err);
        free(o.work);
        KILN_TRY(st);
        for (uint64_t i = 0; i < floats; i++) wrong += memcmp(&f->rgba[i], &f->plain[i], sizeof *f->rgba) != 0;
        cpu_finding found = {.complaint = "floats differ from the plain loop's", .checked = floats, .wrong = wrong};
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
