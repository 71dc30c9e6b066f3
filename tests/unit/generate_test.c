/* generate_test -- the benchmark inputs have the hashes that were published with them, and the PLY
 * holds just these bytes. */
#include "stages/generate/generate.h"
#include "tests/unit/test_folder.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t hash_points(int clustered, uint64_t n, uint64_t seed)
{
    uint64_t h = KG_FNV;
    for (uint64_t i = 0; i < n; i++) {
        float p[3];
        if (clustered)
            kg_clustered_point(seed, i, p);
        else
            kg_uniform_point(seed, i, p);
        h = kg_fnv1a(h, p, sizeof p);
    }
    return h;
}

static void points_have_the_published_hashes(void **state)
{
    (void)state;
    assert_int_equal(hash_points(0, 1000, 1), 0xc4776a99f14e2d3full);
    assert_int_equal(hash_points(1, 1000, 1), 0xf5156867f136f883ull);
    assert_int_equal(hash_points(0, 1000, 2), 0x6c36b8b960a0a887ull);
    assert_int_equal(hash_points(1, 1000, 2), 0x2d74fb0e716487fdull);
    assert_int_equal(hash_points(0, 100000, 1), 0x05f1a011b92a6c8aull);
    assert_int_equal(hash_points(1, 100000, 1), 0xd6100411cc0f7e13ull);
}

static void splats_have_the_published_hashes(void **state)
{
    (void)state;
    static const struct {
        uint64_t n, plain, exploded;
    } rows[] = {{1000, 0x5a8832c9364717b6ull, 0xda35845d24abe2c1ull},
                {50000, 0xfd7c07dfeaf5cf65ull, 0xe019b947496b6c76ull}};
    for (int k = 0; k < 2; k++) {
        kg_scene s;
        uint64_t h = KG_FNV, e = KG_FNV;
        kg_scene_init(&s, rows[k].n, 1);
        for (uint64_t i = 0; i < rows[k].n; i++) {
            kg_splat g;
            kg_splat_at(&s, i, &g);
            h = kg_fnv1a(h, &g, sizeof g);
            kg_explode(&s, i, 10, &g);
            e = kg_fnv1a(e, &g, sizeof g);
        }
        assert_int_equal(h, rows[k].plain);
        assert_int_equal(e, rows[k].exploded);
    }
}

static void cameras_and_images_have_the_published_hashes(void **state)
{
    (void)state;
    uint64_t h = KG_FNV;
    for (int k = 0; k < 16; k++) {
        kg_cam c;
        kg_camera(k, 16, 1920, 1080, &c);
        h = kg_fnv1a(h, &c, sizeof c);
    }
    assert_int_equal(h, 0xc119a5e1c5469855ull);
    h = KG_FNV;
    for (uint32_t c = 0; c < 3; c++)
        for (uint32_t y = 0; y < 270; y++)
            for (uint32_t x = 0; x < 480; x++) {
                uint32_t v = kg_image(1, 0, c, x, y);
                h = kg_fnv1a(h, &v, 4);
            }
    assert_int_equal(h, 0x3e160d9eef78a7d5ull);
}

static void ply_holds_the_generated_rows_and_explodes_the_picked_ones(void **state)
{
    (void)state;
    char dir[TEST_FOLDER_MAX], path[TEST_PATH_MAX];
    kiln_error err;
    const kiln_generate_options o = {.gaussians = 20000,
                                     .seed = 1,
                                     .cameras = 2,
                                     .width = 64,
                                     .height = 32,
                                     .explode_per_mille = 100,
                                     .explode_by = 6.9078,
                                     .threads = 3};
    assert_int_equal(test_folder_new(dir, "generate"), 0);
    assert_int_equal(kiln_generate_scene(dir, &o, &err), KILN_OK);
    snprintf(path, sizeof path, "%s/scene.ply", dir);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char line[128] = "";
    while (strcmp(line, "end_header\n") != 0) assert_non_null(fgets(line, sizeof line, f));
    kg_scene s;
    kg_scene_init(&s, o.gaussians, o.seed);
    uint64_t exploded = 0;
    for (uint64_t i = 0; i < o.gaussians; i++) {
        float v[62];
        kg_splat g, e;
        assert_int_equal(fread(v, sizeof v, 1, f), 1);
        kg_splat_at(&s, i, &g);
        e = g;
        kg_explode(&s, i, 100, &e);
        int picked = memcmp(e.scale, g.scale, sizeof g.scale) != 0;
        exploded += (uint64_t)picked;
        assert_memory_equal(v, g.pos, sizeof g.pos);
        assert_memory_equal(v + 58, g.rot, sizeof g.rot);
        assert_true(v[55] == (picked ? (float)((double)g.scale[0] + 6.9078) : g.scale[0]));
    }
    assert_true(exploded > 1500 && exploded < 2500);
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
    unlink(path);
    snprintf(path, sizeof path, "%s/cameras.json", dir);
    unlink(path);
    rmdir(dir);
}

/* Is a point of the world inside a picture of 8 x 5? */
static bool in_frame(const double r[9], const double t[3], double x, double y, double z)
{
    double p[3];
    for (int i = 0; i < 3; i++) p[i] = r[3 * i] * x + r[3 * i + 1] * y + r[3 * i + 2] * z + t[i];
    return p[2] > 0 && fabs(0.85 * 8 * p[0] / p[2]) < 4 && fabs(0.85 * 8 * p[1] / p[2]) < 2.5;
}

/* Horizontal distance of the tree's trunk from what a camera looks through to see the kiln. */
static double tree_from_sight(const double r[9], const double t[3])
{
    const double tree[2] = {-2.7, 1.3};
    double eye[3], least = INFINITY;
    for (int i = 0; i < 3; i++) eye[i] = -(r[i] * t[0] + r[3 + i] * t[1] + r[6 + i] * t[2]);
    for (double s = 0; s <= 1; s += 0.01)
        least = fmin(least, hypot((1 - s) * eye[0] - tree[0], (1 - s) * eye[2] - tree[1]));
    return least;
}

static void the_demo_shows_the_kiln_from_everywhere_and_never_from_inside_the_tree(void **state)
{
    (void)state;
    char dir[TEST_FOLDER_MAX], path[TEST_PATH_MAX], line[1024];
    kiln_error err;
    const kiln_generate_options o = {
        .gaussians = 16, .cameras = 23, .width = 8, .height = 5, .threads = 1};
    uint32_t n = 0;
    assert_int_equal(test_folder_new(dir, "generate"), 0);
    assert_int_equal(kiln_generate_demo(dir, &o, &err), KILN_OK);
    snprintf(path, sizeof path, "%s/cameras.json", dir);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        double r[9], t[3];
        const char *at = strstr(line, "\"R\": [");
        if (!at) continue;
        assert_int_equal(
            sscanf(at,
                   "\"R\": [%lf, %lf, %lf, %lf, %lf, %lf, %lf, %lf, %lf], \"t\": [%lf, %lf, %lf]",
                   r, r + 1, r + 2, r + 3, r + 4, r + 5, r + 6, r + 7, r + 8, t, t + 1, t + 2),
            12);
        n++;
        assert_true(in_frame(r, t, 0, -0.75, 0));      /* the dome's middle */
        assert_true(in_frame(r, t, 0.55, -2.45, 0.2)); /* the top of the chimney */
        assert_true(tree_from_sight(r, t) > 2);        /* its leaves reach less far */
    }
    fclose(f);
    assert_int_equal(n, o.cameras);
    assert_int_equal(test_folder_remove(dir), 0);
}

static void a_cloud_has_the_points_and_nothing_else(void **state)
{
    (void)state;
    char dir[TEST_FOLDER_MAX], path[TEST_PATH_MAX], line[128] = "";
    kiln_error err;
    /* more than are made at once */
    const kiln_generate_options o = {.gaussians = (1 << 18) + 5, .seed = 3, .threads = 3};
    assert_int_equal(test_folder_new(dir, "generate"), 0);
    assert_int_equal(kiln_generate_points(dir, &o, &err), KILN_OK);
    snprintf(path, sizeof path, "%s/points.ply", dir);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    while (strcmp(line, "end_header\n") != 0) assert_non_null(fgets(line, sizeof line, f));
    for (uint64_t i = 0; i < o.gaussians; i++) {
        float p[3], want[3];
        assert_int_equal(fread(p, sizeof p, 1, f), 1);
        kg_uniform_point(o.seed, i, want);
        assert_memory_equal(p, want, sizeof want);
    }
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_have_the_published_hashes),
        cmocka_unit_test(splats_have_the_published_hashes),
        cmocka_unit_test(cameras_and_images_have_the_published_hashes),
        cmocka_unit_test(ply_holds_the_generated_rows_and_explodes_the_picked_ones),
        cmocka_unit_test(the_demo_shows_the_kiln_from_everywhere_and_never_from_inside_the_tree),
        cmocka_unit_test(a_cloud_has_the_points_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
