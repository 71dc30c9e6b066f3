/* filters_test -- texts of filters are read strictly; masks are those of a plain loop over the
 * definition, also on borders and beside numbers that are none; what a chunk's box says holds for
 * each of its rows. */
#include "stages/select/filters.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double nowhere[3] = {0, 0, 0};

/* A layer of Gaussians of degree 1 with two columns of its own, as far as binding looks. */
static kiln_plane splat_planes[] = {
    {.name = "extra/double", .type = KILN_TYPE_F64, .components = 1},
    {.name = "extra/label", .type = KILN_TYPE_U8, .components = 1},
    {.name = "extra/opacity", .type = KILN_TYPE_F64, .components = 1},
    {.name = "log_scales", .type = KILN_TYPE_F32, .components = 3},
    {.name = "means", .type = KILN_TYPE_F32, .components = 3},
    {.name = "opacity_logits", .type = KILN_TYPE_F32, .components = 1},
    {.name = "quats", .type = KILN_TYPE_F32, .components = 4},
    {.name = "sh0", .type = KILN_TYPE_F32, .components = 3},
    {.name = "shN", .type = KILN_TYPE_F32, .components = 9},
    {.name = "source_row", .type = KILN_TYPE_U32, .components = 1},
};
static kiln_chunk splats = {
    .name = "/0", .n_planes = sizeof splat_planes / sizeof *splat_planes, .planes = splat_planes};
static kiln_plane point_planes[] = {
    {.name = "extra/x", .type = KILN_TYPE_F64, .components = 1},
    {.name = "means", .type = KILN_TYPE_F32, .components = 3},
    {.name = "rgb", .type = KILN_TYPE_F32, .components = 3},
    {.name = "source_row", .type = KILN_TYPE_U32, .components = 1},
};
static kiln_chunk points = {.name = "/0", .n_planes = 4, .planes = point_planes};

static kiln_filters parsed(const char *boxes, const char *spheres, const char *values,
                           const kiln_chunk *sample)
{
    kiln_error err = {0};
    kiln_filters f;
    if (kiln_filters_parse(boxes, spheres, values, &f, &err) != KILN_OK) fail_msg("%s", err.msg);
    if (kiln_filters_bind(&f, sample, 1, &err) != KILN_OK) fail_msg("%s", err.msg);
    return f;
}

static void wrong_texts_are_refused(void **state)
{
    (void)state;
    static const char *const boxes[] = {"1,2,3",           "1,2,3,4,5,6,7", "1,2,3,0,5,6",
                                        "a,2,3,4,5,6",     "nan,2,3,4,5,6", "1,2,3,inf,5,6",
                                        "0x1,2,3,4,5,6",   "1 2,2,3,4,5,6", ",",
                                        "1,2,3,1e999,5,6", "1,2,3,4,5,--",  "1/0,2,3,inf,5,6"};
    static const char *const spheres[] = {"1,2,3",   "1,2,3,0",   "1,2,3,-1",
                                          "-,2,3,1", "1,2,3,4,5", "1,2,3,nan"};
    static const char *const values[] = {
        "opacity",           "opacity,gt", "opacity,above,1", "opacity,gt,1.5", "opacity,lt,-0.1",
        "scale_0,gt,-1",     "x,gt,",      ",gt,1",           "x,gt,1,2",       "x,GT,1",
        "scale_2,lte,-1e-9", "x,gt,nan"};
    kiln_error err = {0};
    kiln_filters f;
    for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) {
        assert_int_equal(kiln_filters_parse(boxes[i], NULL, NULL, &f, &err), KILN_E_USAGE);
        assert_non_null(strstr(err.msg, boxes[i]));
    }
    for (size_t i = 0; i < sizeof spheres / sizeof *spheres; i++)
        assert_int_equal(kiln_filters_parse(NULL, spheres[i], NULL, &f, &err), KILN_E_USAGE);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (kiln_filters_parse(NULL, NULL, values[i], &f, &err) != KILN_E_USAGE)
            fail_msg("'%s' was taken", values[i]);
}

static void right_texts_are_read(void **state)
{
    (void)state;
    const kiln_filters f =
        parsed("-1, 2,0,4,5,1/2|-,,-,-,7,", "0,0,0,1e-3",
               "opacity , gte,1/255|scale_0_raw,lt,-5|opacity_raw,neq,-3", &splats);
    assert_int_equal(f.n, 6);
    assert_true(f.filters[0].numbers[0] == -1 && f.filters[0].numbers[5] == 0.5);
    for (int i = 0; i < 6; i++)
        assert_true(f.filters[1].numbers[i] == (i < 3 ? -HUGE_VAL : i == 4 ? 7 : HUGE_VAL));
    assert_true(f.filters[2].kind == KILN_FILTER_SPHERE && f.filters[2].numbers[3] == 1e-3);
    assert_true(fabs(f.filters[3].numbers[0] + log(254)) < 1e-12 &&
                f.filters[3].cmp == KILN_CMP_GTE);
    assert_true(f.filters[4].numbers[0] == -5 && f.filters[5].numbers[0] == -3);
    assert_int_equal(f.n_planes, 3); /* means, opacity_logits, log_scales: each once */
}

static void too_many_and_too_long_are_refused(void **state)
{
    (void)state;
    char list[4000] = "x,gt,0", item[700];
    kiln_error err = {0};
    kiln_filters f;
    for (int i = 1; i < KILN_FILTERS_MAX; i++) strcat(list, "|x,gt,0");
    assert_int_equal(kiln_filters_parse(NULL, NULL, list, &f, &err), KILN_OK);
    assert_int_equal(kiln_filters_parse(NULL, "0,0,0,1", list, &f, &err), KILN_E_USAGE);
    snprintf(item, sizeof item, "%0600d,0,0,1", 0); /* cut somewhere it would be another sphere */
    assert_int_equal(kiln_filters_parse(NULL, item, NULL, &f, &err), KILN_E_USAGE);
}

static void columns_are_found_by_the_names_of_a_ply(void **state)
{
    (void)state;
    static const struct {
        const char *name, *plane;
        uint32_t component;
        double at_half; /* what 0.5 becomes */
    } expected[] = {
        {"x", "means", 0, 0.5},
        {"z", "means", 2, 0.5},
        {"opacity", "opacity_logits", 0, 0},
        {"opacity_raw", "opacity_logits", 0, 0.5},
        {"extra/opacity", "extra/opacity", 0, 0.5},
        {"scale_1", "log_scales", 1, -0.69314718055994531},
        {"scale_1_raw", "log_scales", 1, 0.5},
        {"f_dc_2", "sh0", 2, 0},
        {"f_dc_2_raw", "sh0", 2, 0.5},
        {"green", "sh0", 1, 0},
        {"rot_3", "quats", 3, 0.5},
        {"f_rest_0", "shN", 0, 0.5},
        {"f_rest_1", "shN", 3, 0.5}, /* second coefficient of red */
        {"f_rest_3", "shN", 1, 0.5}, /* first of green */
        {"f_rest_8", "shN", 8, 0.5},
        {"source_row", "source_row", 0, 0.5},
        {"label", "extra/label", 0, 0.5},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s,gt,0.5", expected[i].name);
        const kiln_filters f = parsed(NULL, NULL, text, &splats);
        assert_string_equal(f.planes[0].name, expected[i].plane);
        assert_int_equal(f.filters[0].component, expected[i].component);
        assert_true(fabs(f.filters[0].numbers[0] - expected[i].at_half) < 1e-15);
    }
    assert_string_equal(parsed(NULL, NULL, "red,gt,0.5", &points).planes[0].name, "rgb");
}

static void unknown_columns_are_told_with_those_that_there_are(void **state)
{
    (void)state;
    static const char *const names[] = {"f_rest_9", "rot_4",          "nx",     "f_rest_", "shN",
                                        "means",    "opacity_logits", "extra/x"};
    kiln_error err = {0};
    kiln_filters f;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[64];
        snprintf(text, sizeof text, "%s,gt,0", names[i]);
        assert_int_equal(kiln_filters_parse(NULL, NULL, text, &f, &err), KILN_OK);
        assert_int_equal(kiln_filters_bind(&f, &splats, 1, &err), KILN_E_USAGE);
        assert_non_null(strstr(err.msg, names[i]));
        assert_non_null(strstr(err.msg, "f_rest_0 to f_rest_8"));
        assert_non_null(strstr(err.msg, "label"));
    }
    assert_int_equal(kiln_filters_parse(NULL, NULL, "opacity,gt,0", &f, &err), KILN_OK);
    assert_int_equal(kiln_filters_bind(&f, &points, 0, &err), KILN_E_USAGE);
    assert_non_null(strstr(err.msg, "there are x, y, z, source_row, red, green, blue"));
    assert_null(strstr(err.msg, "blue,")); /* the kept doubles are no columns of their own */
}

/* ---- rows ------------------------------------------------------------------------------------ */

enum { N = 6 };

static void borders_are_those_of_splat_transform(void **state)
{
    (void)state;
    /* on the lower side, on the upper side, a hair beyond, inside; on a sphere of radius 5, a hair
     * within */
    const float means[3 * N] = {-1,        2, nextafterf(2, 3),
                                0,         3, nextafterf(3, 0),
                                /* y */ 0, 0, 0,
                                1,         4, 4,
                                /* z */ 0, 0, 0,
                                0,         0, 0};
    const void *planes[] = {means};
    uint8_t keep[N];
    const kiln_filters box = parsed("-1,0,0,2,1,0", NULL, NULL, &splats),
                       sphere = parsed(NULL, "0,0,0,5", NULL, &splats);
    assert_int_equal(kiln_filters_keep(&box, N, nowhere, planes, keep), 3);
    assert_memory_equal(keep, ((uint8_t[N]){1, 1, 0, 1, 0, 0}), N);
    /* nearer than the radius, not as near */
    assert_int_equal(kiln_filters_keep(&sphere, N, nowhere, planes, keep), 5);
    assert_memory_equal(keep, ((uint8_t[N]){1, 1, 1, 1, 0, 1}), N);
    /* in double: 0.1f is above 0.1 */
    const float tenths[3 * 2] = {0.1f, nextafterf(0.1f, 0), 0, 0, 0, 0};
    const void *tenth[] = {tenths};
    const kiln_filters lte = parsed(NULL, NULL, "x,lte,0.1", &splats);
    assert_int_equal(kiln_filters_keep(&lte, 2, nowhere, tenth, keep), 1);
    assert_true(keep[0] == 0 && keep[1] == 1);
}

static void the_origin_is_added_in_double(void **state)
{
    (void)state;
    const double far[3] = {1e8, -3e7, 4};
    const float means[3 * 2] = {0.25f, 0.75f, 0, 0, 0, 0}; /* a float near 1e8 has steps of 8 */
    const void *planes[] = {means};
    uint8_t keep[2];
    const kiln_filters box = parsed("100000000.5,-,-,-,-,-", NULL, NULL, &splats),
                       sphere = parsed(NULL, "1e8,-3e7,4,0.5", NULL, &splats),
                       value = parsed(NULL, NULL, "x,lt,100000000.5", &splats);
    assert_int_equal(kiln_filters_keep(&box, 2, far, planes, keep), 1);
    assert_true(keep[1] == 1);
    assert_int_equal(kiln_filters_keep(&sphere, 2, far, planes, keep), 1);
    assert_true(keep[0] == 1);
    assert_int_equal(kiln_filters_keep(&value, 2, far, planes, keep), 1);
    assert_true(keep[0] == 1);
}

static void nan_is_kept_by_neq_alone(void **state)
{
    (void)state;
    static const char *const cmps[] = {"lt", "lte", "gt", "gte", "eq", "neq"};
    const double column[3] = {(double)NAN, 7, 8};
    const void *planes[] = {column};
    static const uint8_t expected[6][3] = {{0, 0, 0}, {0, 1, 0}, {0, 0, 1},
                                           {0, 1, 1}, {0, 1, 0}, {1, 0, 1}};
    for (int i = 0; i < 6; i++) {
        char text[32];
        uint8_t keep[3];
        snprintf(text, sizeof text, "double,%s,7", cmps[i]);
        const kiln_filters f = parsed(NULL, NULL, text, &splats);
        (void)kiln_filters_keep(&f, 3, nowhere, planes, keep);
        assert_memory_equal(keep, expected[i], 3);
    }
}

static void columns_of_integers_are_compared_as_numbers(void **state)
{
    (void)state;
    const uint8_t labels[3] = {0, 200, 255};
    const uint32_t rows[3] = {0, 16777217, 4294967294u}; /* not floats */
    const void *label[] = {labels}, *row[] = {rows};
    uint8_t keep[3];
    const kiln_filters a = parsed(NULL, NULL, "label,gte,200", &splats),
                       b = parsed(NULL, NULL, "source_row,eq,16777217", &splats);
    assert_int_equal(kiln_filters_keep(&a, 3, nowhere, label, keep), 2);
    assert_int_equal(kiln_filters_keep(&b, 3, nowhere, row, keep), 1);
    assert_true(keep[1] == 1);
}

static void all_filters_must_keep_a_row(void **state)
{
    (void)state;
    const float means[3 * 3] = {0, 1, 2, 0, 0, 0, 0, 0, 0}, logits[3] = {-5, 5, 5};
    const void *planes[] = {means, logits};
    uint8_t keep[3];
    const kiln_filters f = parsed("0,0,0,1,1,1|0,0,0,5,5,5", "0,0,0,9", "opacity,gt,0.5", &splats);
    assert_int_equal(kiln_filters_keep(&f, 3, nowhere, planes, keep), 1);
    assert_memory_equal(keep, ((uint8_t[3]){0, 1, 0}), 3);
    const kiln_filters none = parsed(NULL, NULL, NULL, &splats);
    assert_int_equal(kiln_filters_keep(&none, 3, nowhere, NULL, keep), 3);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static uint64_t state_of_random = 88172645463325252u;
static double uniform(void)
{
    state_of_random ^= state_of_random << 13;
    state_of_random ^= state_of_random >> 7;
    state_of_random ^= state_of_random << 17;
    return (double)(state_of_random >> 11) * 0x1p-53;
}

/* On a coarse grid, so that rows lie on borders often. */
static double grid(void) { return floor(9 * uniform()) - 4; }

enum { ROWS = 5 };

static void fill_chunk(kiln_chunk *c, float *means, float *logits, float *log_scales)
{
    const double x = grid();
    *c = splats;
    c->count = ROWS;
    for (int a = 0; a < 3; a++)
        for (int i = 0; i < ROWS; i++) {
            const float v = (float)(x + floor(3 * uniform()));
            means[a * ROWS + i] = v;
            c->box_min[a] = i == 0 || v < c->box_min[a] ? v : c->box_min[a];
            c->box_max[a] = i == 0 || v > c->box_max[a] ? v : c->box_max[a];
        }
    c->max_opacity_logit = c->max_log_scale = -100;
    for (int i = 0; i < 3 * ROWS; i++) {
        log_scales[i] = (float)grid();
        c->max_log_scale = log_scales[i] > c->max_log_scale ? log_scales[i] : c->max_log_scale;
    }
    for (int i = 0; i < ROWS; i++) {
        logits[i] = (float)grid();
        c->max_opacity_logit = logits[i] > c->max_opacity_logit ? logits[i] : c->max_opacity_logit;
    }
}

static void what_a_chunk_says_holds_for_its_rows(void **state)
{
    (void)state;
    static const char *const names[] = {"x", "y", "z", "opacity_raw", "scale_0_raw", "scale_2_raw"};
    static const char *const cmps[] = {"lt", "lte", "gt", "gte", "eq", "neq"};
    uint64_t said[3] = {0, 0, 0};
    for (int round = 0; round < 60000; round++) {
        float means[3 * ROWS], logits[ROWS], log_scales[3 * ROWS];
        char text[192], *box = NULL, *sphere = NULL, *value = NULL;
        kiln_chunk c;
        uint8_t keep[ROWS];
        const void *planes[KILN_FILTERS_MAX] = {NULL};
        const double origin[3] = {grid(), grid() / 3, 1e9 * grid()};
        const double o = floor(origin[1]), x = grid() + origin[0], y = grid() + o,
                     z = grid() + origin[2];
        fill_chunk(&c, means, logits, log_scales);
        switch (round % 3) {
        case 0:
            snprintf(box = text, sizeof text, "%.17g,%.17g,%.17g,%.17g,%.17g,%.17g", x, y, z,
                     x + 6 * uniform(), y + 6, z + 6);
            break;
        case 1:
            snprintf(sphere = text, sizeof text, "%.17g,%.17g,%.17g,%d", x, y, z,
                     1 + (int)(6 * uniform()));
            break;
        default: {
            const int k = (int)(6 * uniform());
            snprintf(value = text, sizeof text, "%s,%s,%.17g", names[k], cmps[(int)(6 * uniform())],
                     grid() + (k < 3 ? origin[k] : 0));
        }
        }
        const kiln_filters f = parsed(box, sphere, value, &splats);
        for (uint32_t k = 0; k < f.n_planes; k++)
            planes[k] = strcmp(f.planes[k].name, "means") == 0            ? means
                        : strcmp(f.planes[k].name, "opacity_logits") == 0 ? logits
                                                                          : log_scales;
        const uint64_t kept = kiln_filters_keep(&f, ROWS, origin, planes, keep);
        const kiln_chunk_part part = kiln_filters_chunk(&f, &c, origin);
        said[part]++;
        if (part == KILN_CHUNK_NONE && kept != 0)
            fail_msg("'%s' keeps %d rows of a chunk that is said to be outside", text, (int)kept);
        if (part == KILN_CHUNK_ALL && kept != ROWS)
            fail_msg("'%s' keeps %d rows of a chunk that is said to be inside", text, (int)kept);
    }
    for (int p = 0; p < 3; p++) assert_true(said[p] > 3000); /* each answer is given */
}

static void an_empty_chunk_is_outside(void **state)
{
    (void)state;
    const kiln_filters f = parsed(NULL, NULL, NULL, &splats);
    kiln_chunk c = splats;
    assert_int_equal(kiln_filters_chunk(&f, &c, nowhere), KILN_CHUNK_NONE);
    c.count = 1;
    assert_int_equal(kiln_filters_chunk(&f, &c, nowhere), KILN_CHUNK_ALL);
}

static void kept_rows_move_together(void **state)
{
    (void)state;
    const uint8_t keep[4] = {0, 1, 0, 1};
    float a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    uint8_t b[4] = {1, 2, 3, 4};
    uint16_t c[4] = {1, 2, 3, 4};
    double d[4] = {1, 2, 3, 4};
    kiln_filters_compact(a, KILN_TYPE_F32, 2, 4, keep, 2);
    kiln_filters_compact(b, KILN_TYPE_U8, 1, 4, keep, 2);
    kiln_filters_compact(c, KILN_TYPE_I16, 1, 4, keep, 2);
    kiln_filters_compact(d, KILN_TYPE_F64, 1, 4, keep, 2);
    assert_memory_equal(a, ((float[]){2, 4, 6, 8}), 16);
    assert_true(b[0] == 2 && b[1] == 4 && c[0] == 2 && c[1] == 4 && d[0] == 2 && d[1] == 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_texts_are_refused),
        cmocka_unit_test(right_texts_are_read),
        cmocka_unit_test(too_many_and_too_long_are_refused),
        cmocka_unit_test(columns_are_found_by_the_names_of_a_ply),
        cmocka_unit_test(unknown_columns_are_told_with_those_that_there_are),
        cmocka_unit_test(borders_are_those_of_splat_transform),
        cmocka_unit_test(the_origin_is_added_in_double),
        cmocka_unit_test(nan_is_kept_by_neq_alone),
        cmocka_unit_test(columns_of_integers_are_compared_as_numbers),
        cmocka_unit_test(all_filters_must_keep_a_row),
        cmocka_unit_test(what_a_chunk_says_holds_for_its_rows),
        cmocka_unit_test(an_empty_chunk_is_outside),
        cmocka_unit_test(kept_rows_move_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
