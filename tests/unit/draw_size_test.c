/* draw_size_test -- host memory of collecting and of a picture, as draw_size.c predicts it, beside
 * what the process really takes (its resident high-water mark). The prediction is never exceeded,
 * and is not far above. */
#include "kernels/draw/draw.h"
#include "tests/unit/own_memory.h"
#include "tests/unit/project_planes.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 65536, CHUNKS = 12 };

/* ---- the process's memory -------------------------------------------------------------------- */
static uint64_t status_kib(const char *field)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, field, strlen(field)) == 0)
            (void)sscanf(line + strlen(field), ": %llu", &kib);
    fclose(f);
    return kib;
}

/* The high-water mark starts anew; false where the kernel does not let us. Returns what is held
 * now, in bytes. */
static bool measure_from_here(uint64_t *held)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    const bool wrote = f && fputs("5", f) >= 0;
    const bool done = f && fclose(f) == 0 && wrote;
    *held = status_kib("VmRSS") << 10;
    return done && status_kib("VmHWM") << 10 <= *held + (1 << 20);
}

static uint64_t taken_since(uint64_t held)
{
    const uint64_t most = status_kib("VmHWM") << 10;
    return most > held ? most - held : 0;
}

/* ---- a scene: one chunk, shown CHUNKS times -------------------------------------------------- */
typedef struct {
    kiln_view view;
    float *planes;
    uint32_t *rows;
} scene;

static kiln_status give_chunk(void *context, uint32_t index, kiln_draw_chunk *out, kiln_error *err)
{
    const scene *s = context;
    (void)index, (void)err;
    *out = (kiln_draw_chunk){.n = ROWS,
                             .means = s->planes,
                             .log_scales = s->planes + 3 * ROWS,
                             .quats = s->planes + 6 * ROWS,
                             .opacity_logits = s->planes + 10 * ROWS,
                             .source_rows = s->rows};
    return KILN_OK;
}

static kiln_draw_scene scene_make(scene *s)
{
    static const double r[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, t[3] = {0, 0, 0},
                        lens[4] = {600, 600, 480, 270};
    kg_rng random = {5, 0};
    kiln_view_init(&s->view, r, t, t, lens, 960, 540, 0.2f, 1e10f);
    s->planes = malloc((size_t)11 * ROWS * sizeof *s->planes);
    s->rows = malloc(ROWS * sizeof *s->rows);
    assert_true(s->planes && s->rows);
    for (uint32_t i = 0; i < ROWS; i++) {
        const float z = (float)(2 + 8 * kg_u(&random));
        s->planes[i] = (float)(kg_u(&random) - 0.5) * z * 1.5f;
        s->planes[ROWS + i] = (float)(kg_u(&random) - 0.5) * z * 0.9f;
        s->planes[2 * ROWS + i] = z;
        for (uint32_t a = 0; a < 3; a++) s->planes[(3 + a) * ROWS + i] = -4.0f;
        for (uint32_t a = 0; a < 4; a++) s->planes[(6 + a) * ROWS + i] = a == 0;
        s->planes[10 * ROWS + i] = 1.0f;
        s->rows[i] = i;
    }
    return (kiln_draw_scene){.view = &s->view,
                             .profile = KILN_PROFILE_INRIA,
                             .n_chunks = CHUNKS,
                             .chunk = give_chunk,
                             .context = s};
}

static void scene_free(scene *s)
{
    free(s->planes);
    free(s->rows);
}

static kiln_runner *cpu_runner(void)
{
    const kiln_runner_options o = {.device = KILN_RUNNER_CPU, .threads = 2};
    kiln_runner *r = NULL;
    kiln_error err;
    assert_int_equal(kiln_runner_new(&o, &r, &err), KILN_OK);
    return r;
}

static void must_agree(const char *what, uint64_t taken, uint64_t predicted)
{
    print_message("%s: %.1f MiB taken, %.1f predicted\n", what, (double)taken / (1 << 20),
                  (double)predicted / (1 << 20));
    assert_true(taken <= predicted);
    assert_true(taken >= predicted / 2);
}

/* ---- tests ----------------------------------------------------------------------------------- */
static void collecting_takes_what_is_predicted(void **state)
{
    needs_own_memory();
    scene s;
    kiln_error err;
    kiln_drawing d = {0};
    uint64_t held;
    const kiln_draw_scene draw = scene_make(&s);
    kiln_runner *r = cpu_runner();
    (void)state;
    if (!measure_from_here(&held)) skip();
    /* pages of programs come, too, when they are first run */
    const uint64_t own = status_kib("RssAnon") << 10;
    if (kiln_draw_collect(r, &draw, &d, &err) != KILN_OK) fail_msg("%s", err.msg);
    const uint64_t taken = taken_since(held);
    const kiln_draw_size size = {.visible = d.n, .largest_chunk = ROWS};
    assert_true(d.n > (uint64_t)CHUNKS * ROWS / 2);
    must_agree("collecting", taken, kiln_draw_collect_bytes(&size));
    must_agree("a drawing", (status_kib("RssAnon") << 10) - own,
               kiln_draw_kept_bytes(&size) + (1 << 20));
    kiln_drawing_release(&d);
    kiln_runner_free(r);
    scene_free(&s);
}

static void a_picture_takes_what_is_predicted(void **state)
{
    needs_own_memory();
    scene s;
    kiln_error err;
    kiln_drawing d = {0};
    uint64_t held, row_pairs[34];
    const kiln_draw_scene draw = scene_make(&s);
    kiln_runner *r = cpu_runner();
    float *rgba = calloc((size_t)s.view.width * s.view.height, 4 * sizeof *rgba);
    (void)state;
    assert_non_null(rgba);
    memset(rgba, 1, (size_t)s.view.width * s.view.height * 4 * sizeof *rgba);
    assert_int_equal(kiln_draw_collect(r, &draw, &d, &err), KILN_OK);
    assert_int_equal(kiln_view_tiles_y(&s.view), 34);
    const kiln_tile_pairs_count_args count = {
        .n = d.n, .splats = d.splats, .view = &s.view, .row1 = 34, .row_pairs = row_pairs};
    assert_int_equal(kiln_runner_run(r, KILN_OP_tile_pairs_count, &count, &err), KILN_OK);
    kiln_runner_trim(r);
    kiln_draw_size size = {.visible = d.n, .largest_chunk = ROWS};
    kiln_draw_size_bands(&size, &s.view, row_pairs);
    assert_true(size.band_pairs > 1000000 && size.band_tiles >= kiln_view_tiles_x(&s.view));
    if (!measure_from_here(&held)) skip();
    const kiln_draw_want want = {.rgba = rgba};
    kiln_draw_stats stats;
    if (kiln_draw_picture(r, &draw, &d, &want, &stats, &err) != KILN_OK) fail_msg("%s", err.msg);
    const uint64_t taken = taken_since(held), lists = 4 * size.band_pairs;
    print_message("a picture of %llu pairs, %llu in a band: %.1f MiB taken, %.1f predicted\n",
                  (unsigned long long)stats.pairs, (unsigned long long)size.band_pairs,
                  (double)taken / (1 << 20),
                  (double)kiln_draw_picture_bytes(&size, &s.view) / (1 << 20));
    assert_true(taken >= lists / 2 && taken <= kiln_draw_picture_bytes(&size, &s.view));
    free(rgba);
    kiln_drawing_release(&d);
    kiln_runner_free(r);
    scene_free(&s);
}

/* An eighth of the Gaussians at a time: less than a drawing of all, and no more than is said. */
static void slabs_take_what_is_predicted(void **state)
{
    needs_own_memory();
    scene s;
    kiln_error err;
    kiln_draw_stats stats;
    uint64_t held;
    const uint64_t capacity = (uint64_t)CHUNKS * ROWS / 8;
    const kiln_draw_scene draw = scene_make(&s);
    kiln_runner *r = cpu_runner();
    const size_t pixels = (size_t)s.view.width * s.view.height;
    float *rgba = malloc(pixels * 4 * sizeof *rgba);
    (void)state;
    assert_non_null(rgba);
    memset(rgba, 1, pixels * 4 * sizeof *rgba);
    if (!measure_from_here(&held)) skip();
    const kiln_draw_want want = {.ways = KILN_DRAW_SLABS, .rgba = rgba, .capacity = capacity};
    if (kiln_draw(r, &draw, &want, &stats, &err) != KILN_OK) fail_msg("%s", err.msg);
    const uint64_t taken = taken_since(held);
    const kiln_draw_size size = {
        .visible = capacity,
        .largest_chunk = ROWS,
        .band_pairs = stats.pairs < KILN_BAND_PAIRS ? stats.pairs : KILN_BAND_PAIRS,
        .band_tiles = (uint64_t)kiln_view_tiles_x(&s.view) * kiln_view_tiles_y(&s.view)};
    const kiln_draw_size whole = {.visible = stats.visible, .largest_chunk = ROWS};
    assert_in_range(stats.slabs, 6, 9);
    must_agree("slabs", taken, kiln_draw_slabs_bytes(&size, &s.view, CHUNKS));
    assert_true(taken < kiln_draw_collect_bytes(&whole) / 2);
    free(rgba);
    kiln_runner_free(r);
    scene_free(&s);
}

static void bands_are_those_that_are_drawn(void **state)
{
    static const struct {
        uint64_t rows[4], pairs, tiles; /* of the band that has the most; 3 tiles a row */
    } cases[] = {{{0, 0, 0, 0}, 0, 12},
                 {{KILN_BAND_PAIRS, 0, 0, 1}, KILN_BAND_PAIRS, 9},
                 {{1, KILN_BAND_PAIRS, 5, 6}, KILN_BAND_PAIRS, 6},
                 {{(uint64_t)1 << 33, 1, (uint64_t)1 << 40, 2}, (uint64_t)1 << 40, 3}};
    const kiln_view view = {.width = 48, .height = 64};
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t starts[5];
        kiln_draw_size size = {0};
        kiln_draw_size_bands(&size, &view, cases[i].rows);
        assert_int_equal(size.band_pairs, cases[i].pairs);
        assert_int_equal(size.band_tiles, cases[i].tiles);
        const uint32_t n = kiln_tile_bands(cases[i].rows, 4, starts);
        uint64_t most = 0;
        for (uint32_t b = 0; b < n; b++)
            if (3 * (starts[b + 1] - starts[b]) > most) most = 3 * (starts[b + 1] - starts[b]);
        assert_int_equal(most, cases[i].tiles);
    }
}

int main(void)
{
    /* what is freed goes back at once, whatever was allocated before */
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 20);
    const struct CMUnitTest tests[] = {cmocka_unit_test(bands_are_those_that_are_drawn),
                                       cmocka_unit_test(collecting_takes_what_is_predicted),
                                       cmocka_unit_test(a_picture_takes_what_is_predicted),
                                       cmocka_unit_test(slabs_take_what_is_predicted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
