/* perf_scenes_test -- the scenes of 1 and 6 million Gaussians of stages/generate/inputs.h, as three
 * cameras of 1920 x 1080 see them: as many pairs as truth.json's perf_scenes has (counted by brute
 * force on the renderers' own projections), within 0.05 %, and as many visible ones, within 2.
 * KILN_TEST_DEVICES=cuda|cpu; a GPU where there is one. */
#include "stages/generate/inputs.h"
#include "tests/gpu/call.h"
#include "tests/unit/test_runner.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { CHUNK = 65536, PLANES = 3 + 3 + 4 + 1, WIDTH = 1920, HEIGHT = 1080, CAMERAS = 16 };

/* Chunk by chunk: the planes of CHUNK rows each, the last chunk's of what is left. */
typedef struct {
    uint64_t n;
    float *data;
} big_scene;

static uint64_t chunk_rows(const big_scene *s, uint64_t chunk)
{
    const uint64_t left = s->n - chunk * CHUNK;
    return left < CHUNK ? left : CHUNK;
}

static float *chunk_planes(const big_scene *s, uint64_t chunk)
{
    return s->data + chunk * CHUNK * PLANES;
}

static void put(float *planes, uint64_t rows, uint64_t i, const kg_splat *g)
{
    for (uint64_t c = 0; c < 3; c++) {
        planes[c * rows + i] = g->pos[c];
        planes[(3 + c) * rows + i] = g->scale[c];
    }
    for (uint64_t c = 0; c < 4; c++) planes[(6 + c) * rows + i] = g->rot[c];
    planes[10 * rows + i] = g->opacity;
}

static void make_scene(big_scene *s, uint64_t n)
{
    kg_scene source;
    kg_scene_init(&source, n, 1);
    *s = (big_scene){.n = n, .data = call_memory(n * PLANES, sizeof(float))};
#pragma omp parallel for schedule(dynamic, 4096)
    for (int64_t i = 0; i < (int64_t)n; i++) {
        const uint64_t chunk = (uint64_t)i / CHUNK;
        kg_splat g;
        kg_splat_at(&source, (uint64_t)i, &g);
        put(chunk_planes(s, chunk), chunk_rows(s, chunk), (uint64_t)i % CHUNK, &g);
    }
}

static void set_view(kiln_view *v, unsigned camera, float near_m, kiln_profile_id profile)
{
    const double origin[3] = {0, 0, 0};
    double r[9], t[3];
    kg_cam c;
    kg_camera((int)camera, CAMERAS, WIDTH, HEIGHT, &c);
    for (int i = 0; i < 9; i++) r[i] = (double)c.R[i];
    for (int i = 0; i < 3; i++) t[i] = (double)c.t[i];
    const double intrinsics[4] = {(double)c.fx, (double)c.fy, (double)c.cx, (double)c.cy};
    kiln_view_init(v, r, t, origin, intrinsics, WIDTH, HEIGHT, near_m,
                   kiln_profiles[profile].far_m);
}

static void must(kiln_op_id op, const void *args)
{
    kiln_error err = {0};
    if (test_run(op, args, &err) != KILN_OK) fail_msg("%s", err.msg);
}

/* The visible ones of all chunks, one chunk after the other; rows are those of the scene. Free
 * *out. */
static uint64_t find_visible(const big_scene *s, const kiln_view *v, kiln_profile_id profile,
                             kiln_splat2d **out)
{
    uint64_t visible = 0;
    *out = call_memory(s->n, sizeof **out);
    for (uint64_t chunk = 0; chunk * CHUNK < s->n; chunk++) {
        const uint64_t rows = chunk_rows(s, chunk);
        const float *planes = chunk_planes(s, chunk);
        uint64_t found = 0;
        const kiln_project_args a = {.n = rows,
                                     .means = planes,
                                     .log_scales = planes + 3 * rows,
                                     .quats = planes + 6 * rows,
                                     .opacity_logits = planes + 10 * rows,
                                     .view = v,
                                     .profile = profile,
                                     .splats = *out + visible,
                                     .n_visible = &found};
        must(KILN_OP_project, &a);
        for (uint64_t i = visible; i < visible + found; i++)
            (*out)[i].row += (uint32_t)(chunk * CHUNK);
        visible += found;
    }
    return visible;
}

static kiln_splat2d *in_depth_order(const kiln_splat2d *found, uint64_t n)
{
    float *depths = call_memory(n, sizeof *depths);
    uint32_t *rows = call_memory(n, sizeof *rows), *order = call_memory(n, sizeof *order);
    kiln_splat2d *out = call_memory(n, sizeof *out);
    for (uint64_t i = 0; i < n; i++) {
        depths[i] = found[i].depth;
        rows[i] = found[i].row;
    }
    const kiln_depth_order_args a = {.n = n, .depths = depths, .source_rows = rows, .order = order};
    must(KILN_OP_depth_order, &a);
    for (uint64_t i = 0; i < n; i++) out[i] = found[order[i]];
    free(depths);
    free(rows);
    free(order);
    return out;
}

static uint64_t count_pairs(const big_scene *s, const kiln_view *v, kiln_profile_id profile,
                            uint64_t *visible)
{
    enum { ROWS = (HEIGHT + KILN_TILE - 1) / KILN_TILE };
    uint64_t row_pairs[ROWS], pairs = 0;
    kiln_splat2d *found;
    *visible = find_visible(s, v, profile, &found);
    kiln_splat2d *splats = in_depth_order(found, *visible);
    const kiln_tile_pairs_count_args a = {
        .n = *visible, .splats = splats, .view = v, .row1 = ROWS, .row_pairs = row_pairs};
    must(KILN_OP_tile_pairs_count, &a);
    for (uint32_t r = 0; r < ROWS; r++) pairs += row_pairs[r];
    free(splats);
    free(found);
    return pairs;
}

static double field(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return v ? json_number_value(v) : NAN;
}

/* One row of the truth as one profile sees it; false when it is missed. */
static bool meets(const big_scene *s, const json_t *row, kiln_profile_id profile)
{
    const bool inria = profile == KILN_PROFILE_INRIA;
    const double exact = field(row, inria ? "inria_exact" : "gsplat_exact");
    const double want_visible = field(row, inria ? "inria_visible" : "gsplat_visible");
    kiln_view v;
    uint64_t visible;
    set_view(&v, (unsigned)field(row, "camera"), (float)field(row, "near"), profile);
    const double pairs = (double)count_pairs(s, &v, profile, &visible), off = pairs / exact - 1.0;
    const double more = (double)visible - want_visible; /* NAN where the truth does not have it */
    print_message("%2.0f million, camera %2.0f, %-10s: pairs %+.5f %% of %.0f, visible %llu",
                  field(row, "millions"), field(row, "camera"), kiln_profiles[profile].name,
                  100.0 * off, exact, (unsigned long long)visible);
    if (!isnan(more)) print_message(" (%+.0f)", more);
    print_message("\n");
    return fabs(off) <= 0.0005 && !(fabs(more) > 2.0);
}

static void pairs_are_as_many_as_by_brute_force(uint64_t millions)
{
    const char *shared = getenv("KILN_SHARED");
    char path[4096];
    json_error_t why;
    unsigned rows = 0, missed = 0;
    big_scene s;
    snprintf(path, sizeof path, "%s/truth/truth.json", shared && *shared ? shared : "../shared");
    json_t *truth = json_load_file(path, 0, &why), *row;
    size_t i;
    if (!truth) {
        print_message("skipped: no '%s'; set KILN_SHARED\n", path);
        skip();
    }
    make_scene(&s, millions * 1000000);
    json_array_foreach(json_object_get(json_object_get(truth, "perf_scenes"), "rows"), i, row)
    {
        if ((uint64_t)field(row, "millions") != millions) continue;
        for (unsigned p = 0; p < KILN_PROFILE_COUNT; p++)
            missed += !meets(&s, row, (kiln_profile_id)p);
        rows++;
    }
    free(s.data);
    json_decref(truth);
    assert_int_equal(rows, 3);
    assert_int_equal(missed, 0);
}

static void a_million(void **state)
{
    (void)state;
    pairs_are_as_many_as_by_brute_force(1);
}

static void six_million(void **state)
{
    (void)state;
    pairs_are_as_many_as_by_brute_force(6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_million), cmocka_unit_test(six_million)};
    kiln_device_info info;
    kiln_error err;
    if (kiln_device_open(0, &info, &err) == KILN_OK) (void)setenv("KILN_TEST_DEVICES", "cuda", 0);
    return cmocka_run_group_tests_name("perf_scenes", tests, NULL, NULL);
}
