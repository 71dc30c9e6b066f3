/* outputs_test -- pictures drawn in a single pass on a GPU, cameras in turn, are those drawn from a
 * drawing; with all that can be made of them, small ones and ones that are copied in parts. */
#include "kernels/draw/draw.h"
#include "tests/unit/truth_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { GAUSSIANS = 20000, KINDS = 6, PICTURES = 30, ROUNDS = 3 };

static const float background[3] = {0.1f, 0.5f, 0.9f};

static void must(kiln_status st, const kiln_error *err)
{
    if (st != KILN_OK) fail_msg("%s", err->msg);
}

/* ---- what is drawn --------------------------------------------------------------------------- */
static kiln_status give_chunk(void *context, uint32_t index, kiln_draw_chunk *out, kiln_error *err)
{
    static uint32_t rows[GAUSSIANS];
    const truth_scene *s = context;
    (void)index;
    (void)err;
    for (uint32_t i = 0; i < GAUSSIANS; i++) rows[i] = i;
    *out = (kiln_draw_chunk){.n = s->n,
                             .means = s->means,
                             .log_scales = s->log_scales,
                             .quats = s->quats,
                             .opacity_logits = s->opacity_logits,
                             .sh0 = s->sh0,
                             .shN = s->shN,
                             .source_rows = rows};
    return KILN_OK;
}

static kiln_status give_header(void *context, uint32_t index, kiln_draw_chunk_header *out,
                               kiln_error *err)
{
    const truth_scene *s = context;
    (void)index;
    (void)err;
    *out = (kiln_draw_chunk_header){.n = s->n, .colour = true, .key = {7}};
    return KILN_OK;
}

static void view_of(kiln_view *v, unsigned kind)
{
    static const uint32_t sizes[KINDS][2] = {{333, 200}, {640, 400},  {1280, 720},
                                             {64, 48},   {1001, 401}, {320, 1000}};
    const uint32_t width = sizes[kind][0], height = sizes[kind][1];
    const double origin[3] = {0, 0, 0};
    double r[9], t[3];
    kg_cam c;
    kg_camera((int)kind * 3, 16, (int)width, (int)height, &c);
    for (int i = 0; i < 9; i++) r[i] = (double)c.R[i];
    for (int i = 0; i < 3; i++) t[i] = (double)c.t[i];
    const double intrinsics[4] = {(double)c.fx, (double)c.fy, (double)c.cx, (double)c.cy};
    kiln_view_init(v, r, t, origin, intrinsics, width, height, 0.2f, 1e10f);
}

/* ---- what comes of it ------------------------------------------------------------------------ */
typedef struct {
    uint64_t pixels, hash_bytes, row_bytes, colour_bytes;
    float *rgba, *depth;
    unsigned char *hashes;
    kiln_png_rows_args png;
    kiln_pixel_bytes_args bytes;
} results;

static results results_make(const kiln_view *v, unsigned kind)
{
    const uint32_t width = v->width, height = v->height;
    results r = {
        .pixels = (uint64_t)width * height,
        .png = {.width = width, .height = height, .n = height, .step = 4, .channels = 3, .bits = 8},
        .bytes = {.width = width - kind % 2,
                  .height = height - kind % 3,
                  .stride = width,
                  .layout = kind % KILN_N_PIXEL_LAYOUTS}};
    r.hash_bytes = KILN_PIXEL_HASH_BYTES * kiln_pixel_pieces(r.pixels);
    r.row_bytes = height * kiln_png_row_bytes(&r.png);
    r.colour_bytes = kiln_pixel_bytes_size(r.bytes.layout, r.bytes.width, r.bytes.height);
    r.rgba = calloc(r.pixels, 16);
    r.depth = calloc(r.pixels, 4);
    r.hashes = calloc(r.hash_bytes, 1);
    r.png.rows = calloc(r.row_bytes, 1);
    r.bytes.bytes = calloc(r.colour_bytes, 1);
    assert_true(r.rgba && r.depth && r.hashes && r.png.rows && r.bytes.bytes);
    return r;
}

static void results_free(results *r)
{
    free(r->rgba);
    free(r->depth);
    free(r->hashes);
    free(r->png.rows);
    free(r->bytes.bytes);
}

static kiln_draw_outputs outputs_of(const results *r)
{
    return (kiln_draw_outputs){.rgba = r->rgba,
                               .depth = r->depth,
                               .hashes = r->hashes,
                               .png = &r->png,
                               .bytes = &r->bytes};
}

static void results_clear(const results *r)
{
    memset(r->rgba, 0xA5, r->pixels * 16);
    memset(r->depth, 0xA5, r->pixels * 4);
    memset(r->hashes, 0xA5, r->hash_bytes);
    memset(r->png.rows, 0xA5, r->row_bytes);
    memset(r->bytes.bytes, 0xA5, r->colour_bytes);
}

static void must_be_equal(const results *a, const results *b)
{
    assert_memory_equal(a->rgba, b->rgba, a->pixels * 16);
    assert_memory_equal(a->depth, b->depth, a->pixels * 4);
    assert_memory_equal(a->hashes, b->hashes, a->hash_bytes);
    assert_memory_equal(a->png.rows, b->png.rows, a->row_bytes);
    assert_memory_equal(a->bytes.bytes, b->bytes.bytes, a->colour_bytes);
}

/* What the CPU makes of the picture that was drawn from a drawing. */
static void make_right(const results *r)
{
    const kiln_exec x = {.device = -1, .threads = 2};
    kiln_pixel_hashes_args hashes = {.pixels = r->pixels, .rgba = r->rgba, .hashes = r->hashes};
    kiln_png_rows_args png = r->png;
    kiln_pixel_bytes_args bytes = r->bytes;
    png.pixels = bytes.pixels = r->rgba;
    const struct {
        kiln_op_id op;
        const void *args;
    } calls[] = {
        {KILN_OP_pixel_hashes, &hashes}, {KILN_OP_png_rows, &png}, {KILN_OP_pixel_bytes, &bytes}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        kiln_error err = {0};
        size_t capacity = 0;
        must(kiln_op_call(kiln_ops_cpu(), calls[i].op, &x, calls[i].args, NULL, &capacity, &err),
             &err);
        void *const work = malloc(capacity + 1);
        must(kiln_op_call(kiln_ops_cpu(), calls[i].op, &x, calls[i].args, work, &capacity, &err),
             &err);
        free(work);
    }
}

/* ---- the test -------------------------------------------------------------------------------- */
typedef struct {
    truth_scene scene;
    kiln_runner *runner;
    kiln_draw_store *store;
    kiln_view views[KINDS];
    kiln_draw_scene scenes[KINDS];
    results right[KINDS], got[PICTURES];
} fixture;

static void draw_right(fixture *f, unsigned kind)
{
    kiln_error err = {0};
    kiln_drawing d;
    kiln_draw_scene *s = &f->scenes[kind];
    must(kiln_draw_collect(f->runner, s, &d, &err), &err);
    const kiln_draw_want want = {
        .background = background, .rgba = f->right[kind].rgba, .depth = f->right[kind].depth};
    must(kiln_draw_picture(f->runner, s, &d, &want, NULL, &err), &err);
    kiln_drawing_release(&d);
    make_right(&f->right[kind]);
}

static void open_all(fixture *f, bool sync)
{
    kiln_error err = {0};
    const kiln_runner_options o = {.threads = 2, .sync = sync};
    must(truth_scene_synthetic(&f->scene, GAUSSIANS, &err), &err);
    must(kiln_runner_new(&o, &f->runner, &err), &err);
    must(kiln_draw_store_new(f->runner, &f->store, &err), &err);
    for (unsigned k = 0; k < KINDS; k++) {
        view_of(&f->views[k], k);
        f->scenes[k] = (kiln_draw_scene){.view = &f->views[k],
                                         .profile = KILN_PROFILE_INRIA,
                                         .sh_degree = 3,
                                         .n_chunks = 1,
                                         .chunk = give_chunk,
                                         .header = give_header,
                                         .context = &f->scene,
                                         .store = f->store};
        f->right[k] = results_make(&f->views[k], k);
        draw_right(f, k);
    }
    for (unsigned i = 0; i < PICTURES; i++) {
        f->got[i] = results_make(&f->views[i % KINDS], i % KINDS);
        /* copied with and without a wait */
        if (i % 2) assert_true(kiln_device_pin(0, f->got[i].rgba, f->got[i].pixels * 16));
    }
}

static void close_all(fixture *f)
{
    for (unsigned i = 0; i < PICTURES; i++) {
        if (i % 2) kiln_device_unpin(0, f->got[i].rgba);
        results_free(&f->got[i]);
    }
    for (unsigned k = 0; k < KINDS; k++) results_free(&f->right[k]);
    kiln_draw_store_free(f->store);
    kiln_runner_free(f->runner);
    truth_scene_release(&f->scene);
}

static void check_all(bool sync)
{
    kiln_device_info info;
    kiln_error err = {0};
    fixture *f;
    if (kiln_device_open(0, &info, &err) != KILN_OK) skip();
    f = calloc(1, sizeof *f);
    assert_non_null(f);
    open_all(f, sync);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < PICTURES; i++) results_clear(&f->got[i]);
        for (unsigned i = 0; i < PICTURES; i++) {
            const kiln_draw_outputs to = outputs_of(&f->got[i]);
            const kiln_draw_want want = {
                .ways = KILN_DRAW_SINGLE_PASS, .background = background, .single_pass = &to};
            kiln_draw_stats stats;
            must(kiln_draw(f->runner, &f->scenes[i % KINDS], &want, &stats, &err), &err);
            assert_int_equal(stats.way, KILN_DRAW_SINGLE_PASS);
            must_be_equal(&f->right[i % KINDS], &f->got[i]);
        }
    }
    close_all(f);
    free(f);
}

static void many_pictures_are_those_of_drawings(void **state)
{
    (void)state;
    check_all(false);
}

static void so_they_are_when_launches_are_waited_for(void **state)
{
    (void)state;
    check_all(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_pictures_are_those_of_drawings),
        cmocka_unit_test(so_they_are_when_launches_are_waited_for),
    };
    return cmocka_run_group_tests_name("outputs", tests, NULL, NULL);
}
