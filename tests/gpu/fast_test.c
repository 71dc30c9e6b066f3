/* fast_test -- a fast picture (raster.h) on a GPU: at least 60 dB from the exact one in every
 * profile, classic and antialiased, on scenes that are generated and trained; the same bits each
 * time, in one pass and in slabs; nothing of what lies behind stopped pixels; and the exact picture
 * is none the worse for it. */
#include "kernels/math/power_math.h"
#include "kernels/violation.h"
#include "tests/unit/truth_draw.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { LEAST_DB = 60 };

static bool has_gpu(void)
{
    kiln_device_info info;
    kiln_error err;
    return kiln_device_open(0, &info, &err) == KILN_OK &&
           setenv("KILN_TEST_DEVICES", "cuda", 1) == 0;
}

static void must(kiln_status st, const kiln_error *err)
{
    if (st != KILN_OK) fail_msg("%s", err->msg);
}

static uint64_t pixels_of(const picture *p) { return (uint64_t)p->view.width * p->view.height; }

/* The listed pairs of a picture, drawn; rgba [pixels][4], depth [pixels] or NULL. */
static void blend(const picture *p, kiln_profile_id profile, float background, bool fast,
                  float *rgba, float *depth)
{
    kiln_error err = {0};
    const kiln_raster_args a = {.n = p->visible,
                                .splats = p->splats,
                                .view = &p->view,
                                .profile = profile,
                                .fast = fast,
                                .row1 = kiln_view_tiles_y(&p->view),
                                .tile_counts = p->tile_counts,
                                .ranks = p->ranks,
                                .n_pairs = p->pairs,
                                .background = {background, background, background},
                                .rgba = rgba,
                                .depth = depth};
    must(test_run(KILN_OP_raster, &a, &err), &err);
}

static double distance_db(const float *a, const float *b, uint64_t pixels)
{
    double sum = 0;
    for (uint64_t i = 0; i < 4 * pixels; i++) {
        if (i % 4 == 3) continue; /* as SSIM and PSNR of pictures: of their colours */
        const double d = fmin(fmax((double)a[i], 0.0), 1.0) - fmin(fmax((double)b[i], 0.0), 1.0);
        sum += d * d;
    }
    return -10.0 * log10(sum / (double)(3 * pixels));
}

/* A view's picture, each way twice, with depth and without. */
static double least_of(const char *name, picture *p, kiln_profile_id profile, bool aa,
                       float background)
{
    const uint64_t n = pixels_of(p);
    float *const fast = malloc(n * 20), *const again = malloc(n * 20),
                 *const exact = malloc(n * 16);
    assert_true(fast && again && exact);
    blend(p, profile, background, true, fast, NULL);
    blend(p, profile, background, true, again, again + 4 * n);
    assert_memory_equal(fast, again, n * 16);
    blend(p, profile, background, false, exact, NULL);
    assert_memory_equal(exact, p->rgba, n * 16); /* drawn before there was a fast one */
    const double db = distance_db(fast, exact, n);
    double off = 0, sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        off += fabs((double)again[4 * n + i] - (double)p->depth[i]);
        sum += (double)p->depth[i];
    }
    print_message("%-16s %-10s %-7s over %.0f: %.1f dB, depth %.1e\n", name,
                  kiln_profiles[profile].name, aa ? "aa" : "classic", (double)background, db,
                  off / sum);
    assert_true(off <= 5e-3 * sum);
    free(fast);
    free(again);
    free(exact);
    return db;
}

static void every_profile(const truth_scene *s, const kiln_view *view_at, const char *name)
{
    kiln_error err = {0};
    unsigned under = 0;
    for (unsigned profile = 0; profile < KILN_PROFILE_COUNT; profile++)
        for (unsigned aa = 0; aa < 2; aa++)
            for (unsigned white = 0; white < 2; white++) {
                picture p = {0};
                kiln_view view = *view_at;
                must(draw(s, &view, (kiln_profile_id)profile, aa, (float)white, &p, &err), &err);
                under +=
                    !(least_of(name, &p, (kiln_profile_id)profile, aa, (float)white) >= LEAST_DB);
                picture_release(&p);
            }
    assert_int_equal(under, 0);
}

/* ---- views ----------------------------------------------------------------------------------- */
static void orbit_view(kiln_view *v, int camera, uint32_t width, uint32_t height)
{
    const double origin[3] = {0, 0, 0};
    double r[9], t[3];
    kg_cam c;
    kg_camera(camera, 16, (int)width, (int)height, &c);
    for (int i = 0; i < 9; i++) r[i] = (double)c.R[i];
    for (int i = 0; i < 3; i++) t[i] = (double)c.t[i];
    const double intrinsics[4] = {(double)c.fx, (double)c.fy, (double)c.cx, (double)c.cy};
    kiln_view_init(v, r, t, origin, intrinsics, width, height, 0.2f, 1e10f);
}

static double number(const json_t *v)
{
    return json_is_string(v) ? strtod(json_string_value(v), NULL) : json_number_value(v);
}

static void truth_view(const json_t *camera, kiln_view *v)
{
    const double origin[3] = {0, 0, 0};
    double r[9], t[3], k[4];
    static const char *const names[] = {"fx", "fy", "cx", "cy"};
    for (size_t i = 0; i < 9; i++) r[i] = number(json_array_get(json_object_get(camera, "R"), i));
    for (size_t i = 0; i < 3; i++) t[i] = number(json_array_get(json_object_get(camera, "t"), i));
    for (size_t i = 0; i < 4; i++) k[i] = number(json_object_get(camera, names[i]));
    kiln_view_init(v, r, t, origin, k, (uint32_t)number(json_object_get(camera, "width")),
                   (uint32_t)number(json_object_get(camera, "height")), 0.2f, 1e10f);
}

/* ---- tests ----------------------------------------------------------------------------------- */
static void a_million_is_near_the_exact_picture(void **state)
{
    truth_scene s;
    kiln_view view;
    kiln_error err = {0};
    (void)state;
    if (!has_gpu()) skip();
    must(truth_scene_synthetic(&s, 1000000, &err), &err);
    orbit_view(&view, 0, 1920, 1080);
    every_profile(&s, &view, "1M");
    truth_scene_release(&s);
}

static void trained(const char *shared, const json_t *truth, const char *name, const char *ply)
{
    char path[4096];
    truth_scene s;
    kiln_view view;
    kiln_error err = {0};
    size_t i;
    const json_t *camera;
    snprintf(path, sizeof path, "%s/%s", shared, ply);
    must(truth_scene_ply(&s, name, path, &err), &err);
    json_array_foreach(json_object_get(json_object_get(truth, "cameras"), name), i, camera)
    {
        truth_view(camera, &view);
        every_profile(&s, &view, name);
    }
    truth_scene_release(&s);
}

static void trained_scenes_are_near_the_exact_picture(void **state)
{
    const char *shared = getenv("KILN_SHARED");
    char path[4096];
    json_error_t why;
    (void)state;
    if (!has_gpu()) skip();
    snprintf(path, sizeof path, "%s/truth/truth.json", shared && *shared ? shared : "../shared");
    json_t *const truth = json_load_file(path, 0, &why);
    if (!truth) {
        print_message("skipped: no '%s'; set KILN_SHARED\n", path);
        skip();
    }
    shared = shared && *shared ? shared : "../shared";
    trained(shared, truth, "chair", "scenes/chair/chair.ply");
    trained(shared, truth, "brush_leica_8192", "scenes/files/brush_leica_8192.ply");
    json_decref(truth);
}

/* Lists and blends the Gaussians [from, to) onto what nearer ones left. */
static void blend_slab(const picture *p, uint64_t from, uint64_t to, kiln_raster_state *pixels)
{
    kiln_error err = {0};
    uint64_t pairs = 0, row_pairs[256];
    const uint32_t rows = kiln_view_tiles_y(&p->view);
    assert_true(rows <= 256);
    const kiln_tile_pairs_count_args count = {.n = to - from,
                                              .splats = p->splats + from,
                                              .view = &p->view,
                                              .row1 = rows,
                                              .row_pairs = row_pairs};
    must(test_run(KILN_OP_tile_pairs_count, &count, &err), &err);
    for (uint32_t r = 0; r < rows; r++) pairs += row_pairs[r];
    uint32_t *const counts = calloc((size_t)rows * kiln_view_tiles_x(&p->view), sizeof *counts),
                    *const ranks = calloc(pairs, 4);
    assert_true(counts && ranks);
    const kiln_tile_pairs_emit_args emit = {.n = to - from,
                                            .splats = p->splats + from,
                                            .view = &p->view,
                                            .row1 = rows,
                                            .capacity = pairs,
                                            .tile_counts = counts,
                                            .ranks = ranks};
    must(test_run(KILN_OP_tile_pairs_emit, &emit, &err), &err);
    const kiln_raster_args a = {.n = to - from,
                                .splats = p->splats + from,
                                .view = &p->view,
                                .profile = KILN_PROFILE_INRIA,
                                .fast = true,
                                .row1 = rows,
                                .tile_counts = counts,
                                .ranks = ranks,
                                .n_pairs = pairs,
                                .state = pixels};
    must(test_run(KILN_OP_raster, &a, &err), &err);
    free(counts);
    free(ranks);
}

static void slabs_make_the_picture_of_one_pass(void **state)
{
    const float black[3] = {0, 0, 0};
    truth_scene s;
    kiln_view view;
    picture p = {0};
    kiln_error err = {0};
    (void)state;
    if (!has_gpu()) skip();
    must(truth_scene_synthetic(&s, 20000, &err), &err);
    orbit_view(&view, 3, 500, 300);
    must(draw(&s, &view, KILN_PROFILE_INRIA, false, 0.0f, &p, &err), &err);
    const uint64_t n = pixels_of(&p);
    kiln_raster_state *const pixels = calloc(n, sizeof *pixels);
    float *const whole = malloc(n * 20), *const slabs = malloc(n * 20);
    assert_true(pixels && whole && slabs);
    blend(&p, KILN_PROFILE_INRIA, 0.0f, true, whole, whole + 4 * n);
    for (uint64_t k = 0; k < 3; k++)
        blend_slab(&p, p.visible * k / 3, p.visible * (k + 1) / 3, pixels);
    kiln_raster_finish(pixels, n, black, 1, slabs, slabs + 4 * n);
    assert_memory_equal(whole, slabs, n * 20);
    free(pixels);
    free(whole);
    free(slabs);
    picture_release(&p);
    truth_scene_release(&s);
}

/* Device memory that begins `off` bytes behind where the allocator put it, and holds a copy of
 * `from`, or nothing. */
static void *on_device(const kiln_exec *x, const void *from, size_t bytes, size_t off)
{
    kiln_error err = {0};
    void *at;
    must(kiln_device_alloc(x->device, bytes + off, &at, &err), &err);
    if (from) must(kiln_device_copy_in(x, (char *)at + off, from, bytes, &err), &err);
    return (char *)at + off;
}

/* A call on arrays of its own, which no vector is aligned to when off is 4. */
static void blend_at(const picture *p, size_t off, float *rgba)
{
    kiln_error err = {0};
    kiln_exec x = {.device = 0, .threads = 1};
    const uint64_t none = KILN_VIOLATION_NONE, n = pixels_of(p),
                   tiles = kiln_view_tiles_x(&p->view) * kiln_view_tiles_y(&p->view);
    uint64_t violation;
    size_t work_bytes = 0;
    must(kiln_device_stream_new(0, false, &x.stream, &err), &err);
    kiln_raster_args a = {.n = p->visible,
                          .view = &p->view,
                          .profile = KILN_PROFILE_INRIA,
                          .fast = true,
                          .row1 = kiln_view_tiles_y(&p->view),
                          .n_pairs = p->pairs};
    must(kiln_ops_cuda()->raster(&x, &a, NULL, &work_bytes, &err), &err);
    void *const parts[] = {on_device(&x, p->splats, p->visible * sizeof *p->splats, off),
                           on_device(&x, NULL, n * 16, off),
                           on_device(&x, p->tile_counts, tiles * 4, 0),
                           on_device(&x, p->ranks, p->pairs * 4, 0),
                           on_device(&x, NULL, work_bytes, 0),
                           on_device(&x, &none, sizeof none, 0)};
    a.splats = parts[0];
    a.rgba = parts[1];
    a.tile_counts = parts[2];
    a.ranks = parts[3];
    x.violation = parts[5];
    must(kiln_ops_cuda()->raster(&x, &a, parts[4], &work_bytes, &err), &err);
    must(kiln_device_copy_out(&x, rgba, a.rgba, n * 16, &err), &err);
    must(kiln_device_copy_out(&x, &violation, x.violation, sizeof violation, &err), &err);
    must(kiln_device_wait(&x, &err), &err);
    assert_true(violation == KILN_VIOLATION_NONE);
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        kiln_device_free(0, (char *)parts[i] - (i < 2 ? off : 0));
    kiln_device_stream_free(0, x.stream);
}

static void alignment_does_not_show(void **state)
{
    truth_scene s;
    kiln_view view;
    picture p = {0};
    kiln_error err = {0};
    (void)state;
    if (!has_gpu()) skip();
    must(truth_scene_synthetic(&s, 20000, &err), &err);
    orbit_view(&view, 7, 333, 200);
    must(draw(&s, &view, KILN_PROFILE_INRIA, false, 0.0f, &p, &err), &err);
    const uint64_t n = pixels_of(&p);
    float *const aligned = malloc(n * 16), *const not = malloc(n * 16);
    assert_true(aligned && not );
    blend_at(&p, 0, aligned);
    blend_at(&p, 4, not );
    assert_memory_equal(aligned, not, n * 16);
    assert_true(distance_db(aligned, p.rgba, n) >= LEAST_DB);
    free(aligned);
    free(not );
    picture_release(&p);
    truth_scene_release(&s);
}

/* A tile of opaque Gaussians, and behind them one with an infinite and a NaN colour. A pixel that
 * has stopped must not add them times 0. */
static void what_lies_behind_stopped_pixels_does_not_show(void **state)
{
    enum { OPAQUE = 4, SIDE = 16, FLOATS = 4 * SIDE * SIDE };
    kiln_splat2d splats[OPAQUE + 1];
    uint32_t ranks[OPAQUE + 1], listed;
    float alone[FLOATS], with_it[FLOATS];
    picture p = {.view = {.width = SIDE, .height = SIDE},
                 .splats = splats,
                 .tile_counts = &listed,
                 .ranks = ranks};
    (void)state;
    if (!has_gpu()) skip();
    for (uint32_t i = 0; i <= OPAQUE; i++) {
        splats[i] = (kiln_splat2d){.x = SIDE / 2,
                                   .y = SIDE / 2,
                                   .conic = {1e-4f, 0.0f, 1e-4f},
                                   .opacity = 0.99f,
                                   .power_min = kiln_power_min(0.99f),
                                   .depth = 1.0f,
                                   .rgb = {0.5f, 0.25f, 0.75f}};
        ranks[i] = i;
    }
    splats[OPAQUE].rgb[0] = INFINITY;
    splats[OPAQUE].rgb[1] = NAN;
    listed = OPAQUE;
    p.visible = p.pairs = listed;
    blend(&p, KILN_PROFILE_INRIA, 0.0f, true, alone, NULL);
    listed = OPAQUE + 1;
    p.visible = p.pairs = listed;
    blend(&p, KILN_PROFILE_INRIA, 0.0f, true, with_it, NULL);
    assert_memory_equal(alone, with_it, sizeof alone);
    assert_true(alone[0] > 0.49f && alone[3] == 1.0f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slabs_make_the_picture_of_one_pass),
        cmocka_unit_test(alignment_does_not_show),
        cmocka_unit_test(what_lies_behind_stopped_pixels_does_not_show),
        cmocka_unit_test(a_million_is_near_the_exact_picture),
        cmocka_unit_test(trained_scenes_are_near_the_exact_picture)};
    return cmocka_run_group_tests_name("fast", tests, NULL, NULL);
}
