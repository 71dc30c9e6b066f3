/* tileset.json: names, errors, boxes, the place on the globe, the text; and the GLB around an
 * SPZ. */
#include "stages/formats/tiles/tile_glb.h"
#include "stages/formats/tiles/tileset.h"

#include "stages/engine/json_text.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void names_are_told_apart(void **state)
{
    char uri[KILN_TILE_URI];
    (void)state;
    kiln_tile_uri("/0/3/5-7", 2, uri);
    assert_string_equal(uri, "0_3_5-7_L2.glb");
    assert_true(kiln_tile_uri_is_ours(uri));
    kiln_tile_uri("/0/3.2", 0, uri);
    assert_string_equal(uri, "0_3.2_L0.glb");
    assert_true(kiln_tile_uri_is_ours(uri));
    kiln_tile_uri("/0+1", 11, uri);
    assert_true(kiln_tile_uri_is_ours(uri));
    kiln_tile_uri("/", 4, uri);
    assert_string_equal(uri, "root_L4.glb");
    assert_true(kiln_tile_uri_is_ours(uri));
    assert_true(kiln_tile_can_name("/") && kiln_tile_can_name("/0/3/5-7") &&
                kiln_tile_can_name("/0/3.2") && kiln_tile_can_name("/0+1"));
    assert_false(kiln_tile_can_name("/0\"3") || kiln_tile_can_name("/root") ||
                 kiln_tile_can_name("0") || kiln_tile_can_name("/0_3"));
    static const char *const others[] = {"scene.glb", "L2.glb",      "_L.glb", "holiday_L2.glb",
                                         "0_L2.gltf", "../0_L2.glb", ""};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(kiln_tile_uri_is_ours(others[i]));
}

static kiln_chunk level_of(uint32_t n, int32_t step, const float *errors)
{
    kiln_chunk c = {.level = 1, .count = 100, .n_errors = n, .error_step = step};
    for (uint32_t i = 0; i < n; i++) c.errors[i] = errors[i];
    return c;
}

static void an_error_is_the_pixel_from_which_it_looks_right(void **state)
{
    const float lo[3] = {0, 0, 0}, hi[3] = {1, 1, 1};
    /* the whole is so large that it fills all pictures */
    const double most = 1.5 * 3.1623e-4, near = 1e12;
    (void)state;
    assert_true(fabs(kiln_tile_shadow(lo, hi) - 1.5) < 1e-12);
    /* Reached between the footprints 1/4 and 1/2: in the middle of the errors, in the middle of the
     * footprints. */
    kiln_chunk c = level_of(
        3, -3, (const float[]){(float)(4 * most), (float)(1.5 * most), (float)(0.5 * most)});
    assert_true(fabs(kiln_tile_error(&c, 1.5, near) - 16 * 0.375) < 1e-5);
    /* Below all that was measured: a quarter of the error at the finest footprint is enough at half
     * of it. */
    c = level_of(2, 0, (const float[]){(float)(most / 4), (float)(most / 16)});
    assert_true(fabs(kiln_tile_error(&c, 1.5, near) - 16 * 0.5) < 1e-5);
    c = level_of(0, 0, NULL);
    assert_true(fabs(kiln_tile_error(&c, 1.5, near) - 16 * sqrt(1.5 / 100)) < 1e-9);
    c.level = 0;
    assert_true(kiln_tile_error(&c, 1.5, near) == 0);
}

/* Errors as classic profiles have them: they grow with the footprint, by less than its square. */
static void an_error_may_grow_with_the_footprint(void **state)
{
    /* fills a picture at the footprint 1/2 */
    const double most = 1.5 * 3.1623e-4, full = 0.5, whole = full * full * 25e4;
    (void)state;
    /* of what is allowed: all at 1/4, twice as much at 1/2, 3/4 at 1, where four times as much is,
     * and a half at 2 */
    kiln_chunk c = level_of(
        4, -2,
        (const float[]){(float)most, (float)(2 * most), (float)(3 * most), (float)(8 * most)});
    assert_true(fabs(kiln_tile_error(&c, 1.5, whole) - 16 * 0.9) < 1e-4);
    /* a little above what is allowed near by does not change it by much */
    c.errors[0] = (float)(1.001 * most);
    assert_true(fabs(kiln_tile_error(&c, 1.5, whole) - 16 * 0.9) < 1e-4);
    c.errors[1] = (float)(1.001 * most);
    assert_true(fabs(kiln_tile_error(&c, 1.5, whole) - 16 * 0.5) < 0.1);
    c.errors[0] = c.errors[1] = (float)(0.999 * most);
    assert_true(fabs(kiln_tile_error(&c, 1.5, whole) - 16 * 0.25) < 0.1);
    /* not enough at the last step: errors go on as they went, and 4 footprint^2 is allowed */
    c = level_of(2, -1, (const float[]){(float)(8 * most), (float)(8 * most)});
    assert_true(fabs(kiln_tile_error(&c, 1.5, whole) - 16 * sqrt(2)) < 1e-4);
    c = level_of(2, -1, (const float[]){(float)(4 * most), (float)(8 * most)});
    assert_true(fabs(kiln_tile_error(&c, 1.5, whole) - 16 * 2) < 1e-4);
    c = level_of(2, -1, (const float[]){(float)(3 * most), (float)(12 * most)});
    assert_true(fabs(kiln_tile_error(&c, 1.5, whole) - 16 * (18 + sqrt(228)) / 8) < 1e-3);
}

static void parents_hold_their_children(void **state)
{
    kiln_tile t[3] = {{.parent = KILN_NO_TILE, .error = 1, .lo = {0, 0, 0}, .hi = {1, 1, 1}},
                      {.parent = 0, .error = 2, .lo = {0, 0, 0}, .hi = {1, 1, 1}},
                      {.parent = 1, .error = 0, .lo = {-1, 0, 0}, .hi = {1, 3, 1}}};
    (void)state;
    kiln_tileset_settle(t, 3);
    assert_true(t[0].error == 2 && t[1].error == 2 && t[2].error == 0);
    assert_true(t[0].lo[0] == -1 && t[0].hi[1] == 3);
}

/* Zurich, by the formulas in long double, and a scene whose y points down. */
static void a_place_is_on_the_ellipsoid(void **state)
{
    double m[16];
    const double up[3] = {0, -1, 0};
    (void)state;
    kiln_tileset_place(0, 0, 100, up, m);
    assert_true(fabs(m[12] - 6378237) < 1e-6 && fabs(m[13]) < 1e-6 && fabs(m[14]) < 1e-6);
    assert_true(fabs(m[1] - 1) < 1e-12); /* the tileset's x is east */
    assert_true(fabs(m[6] - 1) < 1e-12); /* its y is north */
    assert_true(fabs(m[8] - 1) < 1e-12); /* its z is away from the ground */
    kiln_tileset_place(47.37, 8.54, 410, up, m);
    const long double phi = 47.37L * acosl(-1) / 180, lambda = 8.54L * acosl(-1) / 180,
                      f = 1 / 298.257223563L, e2 = f * (2 - f);
    const long double n = 6378137 / sqrtl(1 - e2 * sinl(phi) * sinl(phi));
    assert_true(fabsl(m[12] - (n + 410) * cosl(phi) * cosl(lambda)) < 1e-6L);
    assert_true(fabsl(m[13] - (n + 410) * cosl(phi) * sinl(lambda)) < 1e-6L);
    assert_true(fabsl(m[14] - (n * (1 - e2) + 410) * sinl(phi)) < 1e-6L);
    /* Whatever points up in the scene points away from the ground. */
    static const double ups[][3] = {{0, 0, 1}, {0, 1, 0}, {1, 0, 0}, {0.6, 0, -0.8}, {0, 0, -1}};
    for (size_t i = 0; i < sizeof ups / sizeof *ups; i++) {
        double turned[3], away = 0;
        kiln_tileset_place(47.37, 8.54, 410, ups[i], m);
        kiln_tile_axes(ups[i], turned);
        const double ground[3] = {(double)(cosl(phi) * cosl(lambda)),
                                  (double)(cosl(phi) * sinl(lambda)), (double)sinl(phi)};
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 3; c++) away += ground[r] * m[4 * c + r] * turned[c];
        assert_true(fabs(away - 1) < 1e-9);
    }
}

/* 0 has the children 1 and 3, 1 has 2 and 4: written in the order in which a reader meets them. */
static void the_text_nests_the_tiles(void **state)
{
    kiln_tile tiles[5] = {0};
    static const uint32_t parents[5] = {KILN_NO_TILE, 0, 1, 0, 1};
    kiln_buffer text = {0};
    kiln_error err = {0};
    json_t *all = NULL;
    (void)state;
    for (int i = 0; i < 5; i++) {
        tiles[i] = (kiln_tile){.parent = parents[i], .error = i ? 0 : 8, .hi = {2, 4, 6}};
        (void)snprintf(tiles[i].uri, sizeof tiles[i].uri, "%d_L0.glb", i);
    }
    const kiln_tileset t = {.tiles = tiles, .n = 5, .extent = 3};
    assert_int_equal(kiln_tileset_json(&t, &text, &err), KILN_OK);
    assert_int_equal(
        kiln_json_parse((const char *)text.data, text.size, 0, "text", &all, NULL, &err), KILN_OK);
    assert_non_null(all);
    json_t *root = json_object_get(all, "root"), *children = json_object_get(root, "children"),
           *first = json_array_get(children, 0);
    assert_int_equal(json_array_size(children), 2);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(first, "content"), "uri")), "1_L0.glb");
    assert_int_equal(json_array_size(json_object_get(first, "children")), 2);
    assert_null(json_object_get(json_array_get(children, 1), "children"));
    assert_string_equal(json_string_value(json_object_get(root, "refine")), "REPLACE");
    json_t *box = json_object_get(json_object_get(root, "boundingVolume"), "box");
    static const double want[12] = {1, 2, 3, 1, 0, 0, 0, 2, 0, 0, 0, 3};
    for (size_t i = 0; i < 12; i++)
        assert_true(json_number_value(json_array_get(box, i)) == want[i]);
    /* not below twice the root's */
    assert_true(json_number_value(json_object_get(all, "geometricError")) >= 16);
    json_decref(all);
    kiln_buffer_release(&text);
}

static void a_glb_holds_the_spz_as_it_is(void **state)
{
    static const unsigned char spz[5] = {1, 2, 3, 4, 5};
    const kiln_tile_scene s = {.n_rows = 7,
                               .sh_degree = 1,
                               .least = {-1, -2, -3},
                               .most = {1, 2, 3},
                               .translation = {10, 20, 30}};
    kiln_buffer b = {0};
    kiln_error err = {0};
    json_t *all = NULL;
    uint32_t size, text;
    (void)state;
    assert_int_equal(kiln_tile_glb(&s, spz, sizeof spz, &b, &err), KILN_OK);
    memcpy(&size, b.data + 8, 4);
    memcpy(&text, b.data + 12, 4);
    assert_int_equal(size, b.size);
    assert_int_equal(text % 4, 0);
    assert_memory_equal(b.data + 20 + text + 8, spz, sizeof spz);
    assert_int_equal(b.size, 20 + text + 8 + 8); /* 5 bytes and 3 zeros */
    assert_int_equal(kiln_json_parse((const char *)b.data + 20, text, 0, "text", &all, NULL, &err),
                     KILN_OK);
    assert_non_null(all);
    json_t *primitive = json_array_get(
        json_object_get(json_array_get(json_object_get(all, "meshes"), 0), "primitives"), 0);
    assert_int_equal(json_object_size(json_object_get(primitive, "attributes")), 4 + 3);
    assert_non_null(json_object_get(json_object_get(primitive, "attributes"),
                                    "KHR_gaussian_splatting:SH_DEGREE_1_COEF_2"));
    json_decref(all);
    kiln_buffer_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_told_apart),
        cmocka_unit_test(an_error_is_the_pixel_from_which_it_looks_right),
        cmocka_unit_test(an_error_may_grow_with_the_footprint),
        cmocka_unit_test(parents_hold_their_children),
        cmocka_unit_test(a_place_is_on_the_ellipsoid),
        cmocka_unit_test(the_text_nests_the_tiles),
        cmocka_unit_test(a_glb_holds_the_spz_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
