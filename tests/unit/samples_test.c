/* samples -- the golden and hostile PLY files: those of tests/data always, all of ../shared/samples where it is there. */
#include "import_source.h"

#include "base/file.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char *samples(void)
{
    static char path[512];
    const char *shared = getenv("KILN_SHARED");
    snprintf(path, sizeof path, "%s/samples", shared && *shared ? shared : "../shared");
    return path;
}

/* A JSON file beside the samples; skips where it is absent. */
static json_t *load(const char *name)
{
    char path[1024];
    json_error_t e;
    snprintf(path, sizeof path, "%s/%s", samples(), name);
    if (!kiln_is_file(path)) {
        print_message("skipped: '%s' is absent\n", path);
        skip();
    }
    json_t *j = json_load_file(path, 0, &e);
    if (!j) fail_msg("%s: %s", path, e.text);
    return j;
}

/* ---- golden
 * ---------------------------------------------------------------------------------------------------------------------- */

static void compare_row(const char *name, uint64_t row, const float *ours, const float *truth, uint32_t sh_floats)
{
    double length = 0, dot = 0, alpha = 1 / (1 + exp(-(double)ours[10]));
    for (int i = 0; i < 4; i++) {
        length += (double)ours[3 + i] * (double)ours[3 + i];
        dot += (double)ours[3 + i] * (double)truth[3 + i];
    }
    bool same = memcmp(ours, truth, 3 * sizeof *ours) == 0;     /* positions bit by bit */
    same &= memcmp(ours + 7, truth + 7, 3 * sizeof *ours) == 0; /* log scales */
    same &= 1 - fabs(dot / sqrt(length)) < 1e-6;
    same &= fabs(alpha - (double)truth[10]) < 1e-6;
    same &= memcmp(ours + 11, truth + 11, sh_floats * sizeof *ours) == 0;
    if (!same) fail_msg("%s, row %llu differs from its truth", name, (unsigned long long)row);
}

/* The raw columns of a file with filter_3D are extras; its planes hold what they fold to. */
static void unfold(import_source *s)
{
    const kiln_source_info *info = &s->scan.info;
    for (uint64_t i = 0; i < s->n; i++)
        for (uint32_t e = 0; e < info->n_extras; e++) {
            float v = (float)s->extras[i * info->n_extras + e];
            if (strncmp(info->extras[e].name, "scale_", 6) == 0)
                s->rows[i * s->floats + 7 + (uint32_t)(info->extras[e].name[6] - '0')] = v;
            if (strcmp(info->extras[e].name, "opacity") == 0) s->rows[i * s->floats + 10] = v;
        }
}

static void check_golden(const char *path, const char *truth_path, uint32_t degree)
{
    import_source s;
    kiln_error err = {0};
    unsigned char *truth = NULL;
    size_t size;
    if (import_source_read(path, &s, &err) != KILN_OK) fail_msg("%s", err.msg);
    if (kiln_file_read(truth_path, 1 << 24, &truth, &size, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(s.scan.info.kind, KILN_SCENE_SPLATS);
    assert_int_equal(s.scan.info.sh_degree, degree);
    assert_int_equal(size, s.n * s.floats * sizeof(float));
    if (s.scan.info.folded) unfold(&s);
    for (uint64_t i = 0; i < s.n; i++)
        compare_row(path, i, s.rows + i * s.floats, (const float *)(const void *)truth + i * s.floats, s.floats - 11);
    free(truth);
    import_source_free(&s);
}

static void golden_files_of_the_repository_decode_to_their_truth(void **state)
{
    static const struct {
        const char *file, *truth;
        uint32_t degree;
    } files[] = {
        {"golden_ply_inria_sh1", "golden_ply_inria_sh1", 1},
        {"golden_ply_bigendian_sh1", "golden_ply_inria_sh1", 1},
        {"golden_ply_reversed_extra_sh1", "golden_ply_inria_sh1", 1},
        {"golden_ply_ascii_crlf_sh0", "golden_ply_inria_sh0", 0},
        {"golden_ply_extra_elements_sh0", "golden_ply_inria_sh0", 0},
        {"golden_ply_mip_filter3d_sh0", "golden_ply_inria_sh0", 0},
        {"golden_ply_2dgs_sh0", "golden_ply_2dgs_sh0", 0},
    };
    (void)state;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        char path[256], truth[256];
        snprintf(path, sizeof path, "tests/data/ply/%s.ply", files[k].file);
        snprintf(truth, sizeof truth, "tests/data/ply/%s.f32", files[k].truth);
        check_golden(path, truth, files[k].degree);
    }
}

static void every_golden_ply_decodes_to_its_truth(void **state)
{
    json_t *index = load("golden_index.json"), *g;
    size_t i, n = 0;
    (void)state;
    json_array_foreach(index, i, g)
    {
        const char *file = json_string_value(json_object_get(g, "file"));
        char path[1024], truth[1024];
        if (strncmp(file, "golden_ply_", 11) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", samples(), file);
        snprintf(truth, sizeof truth, "%s/%s.f32", samples(), json_string_value(json_object_get(g, "truth")));
        check_golden(path, truth, (uint32_t)json_integer_value(json_object_get(g, "sh_degree")));
        import_source s;
        assert_int_equal(import_source_read(path, &s, NULL), KILN_OK);
        assert_int_equal(s.scan.info.antialiased, json_is_true(json_object_get(g, "antialiased")));
        import_source_free(&s);
        n++;
    }
    json_decref(index);
    assert_true(n >= 20);
}

static void filter_3d_folds_to_the_fused_values_of_its_sidecar(void **state)
{
    json_t *j = load("golden_ply_mip_filter3d_sh0.json");
    const json_t *scales = json_object_get(json_object_get(j, "fused"), "log_scales"),
                 *alpha = json_object_get(json_object_get(j, "fused"), "alpha");
    import_source s;
    (void)state;
    assert_int_equal(import_source_read("tests/data/ply/golden_ply_mip_filter3d_sh0.ply", &s, NULL), KILN_OK);
    for (uint64_t i = 0; i < s.n; i++) {
        const float *row = s.rows + i * s.floats;
        for (size_t c = 0; c < 3; c++)
            assert_true(fabs((double)row[7 + c] - json_number_value(json_array_get(json_array_get(scales, i), c))) < 1e-6);
        assert_true(fabs(1 / (1 + exp(-(double)row[10])) - json_number_value(json_array_get(alpha, i))) < 1e-6);
    }
    import_source_free(&s);
    json_decref(j);
}

static void every_golden_point_cloud_decodes_to_its_truth(void **state)
{
    static const char *const files[] = {"golden_pcd_uchar", "golden_pcd_rgba", "golden_pcd_float_rgb", "golden_pcd_double_xyz"};
    (void)state;
    for (size_t k = 0; k < 4; k++) {
        char name[64], path[1024];
        import_source s;
        snprintf(name, sizeof name, "%s.json", files[k]);
        json_t *j = load(name);
        snprintf(path, sizeof path, "%s/%s.ply", samples(), files[k]);
        assert_int_equal(import_source_read(path, &s, NULL), KILN_OK);
        assert_int_equal(s.n, json_integer_value(json_object_get(j, "count")));
        for (uint64_t i = 0; i < s.n; i++)
            for (size_t c = 0; c < 3; c++) {
                double p = json_number_value(json_array_get(json_array_get(json_object_get(j, "positions"), i), c));
                double v = json_number_value(json_array_get(json_array_get(json_object_get(j, "rgb_0_1"), i), c));
                assert_true(s.rows[i * 6 + c] == (float)p);
                assert_true(fabs((double)s.rows[i * 6 + 3 + c] - v) < 1e-6);
            }
        import_source_free(&s);
        json_decref(j);
    }
}

/* ---- hostile
 * ----------------------------------------------------------------------------------------------------------------------- */

static void check_bad(const char *path, bool accept, uint64_t read, uint64_t dropped, const json_t *rows)
{
    import_source s;
    kiln_error err = {0};
    kiln_status st = import_source_read(path, &s, &err);
    if (st != (accept ? KILN_OK : KILN_E_INPUT)) fail_msg("%s: %s (%s)", path, kiln_status_name(st), err.msg);
    if (!accept && !strstr(err.msg, kiln_path_base(path))) fail_msg("'%s' does not name the file", err.msg);
    if (accept && (s.counts.read != read || s.counts.read - s.n != dropped))
        fail_msg("%s: %llu rows read, %llu kept", path, (unsigned long long)s.counts.read, (unsigned long long)s.n);
    for (size_t i = 0; i < json_array_size(rows); i++)
        for (uint64_t k = 0; k < s.n; k++) assert_true(s.source_row[k] != (uint32_t)json_integer_value(json_array_get(rows, i)));
    import_source_free(&s);
}

static void hostile_files_of_the_repository_are_told_apart(void **state)
{
    static const struct {
        const char *file;
        bool accept;
        uint64_t read, dropped;
    } files[] = {
        {"bad_ply_nonfinite", true, 16, 9},        {"bad_ply_ascii_nan", true, 8, 1},   {"bad_ply_cut_mid_row", false, 0, 0},
        {"bad_ply_ascii_long_token", false, 0, 0}, {"bad_ply_f_rest_gap", false, 0, 0}, {"bad_ply_count_2pow61", false, 0, 0},
        {"bad_ply_cr_only", false, 0, 0},          {"bad_ply_all_nan", false, 0, 0},    {"bad_cply_nan_bound", false, 0, 0},
        {"bad_ply_face_before", false, 0, 0},
    };
    (void)state;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        char path[256];
        snprintf(path, sizeof path, "tests/data/ply/%s.ply", files[k].file);
        check_bad(path, files[k].accept, files[k].read, files[k].dropped, NULL);
    }
}

static void every_hostile_ply_is_refused_or_read_as_its_index_says(void **state)
{
    json_t *index = load("bad_index.json"), *b;
    size_t i, n = 0;
    (void)state;
    json_array_foreach(index, i, b)
    {
        const char *file = json_string_value(json_object_get(b, "file"));
        char path[1024];
        if (strncmp(file, "bad_ply_", 8) != 0 && strncmp(file, "bad_cply_", 9) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", samples(), file);
        check_bad(path, strcmp(json_string_value(json_object_get(b, "expect")), "accept") == 0,
                  (uint64_t)json_integer_value(json_object_get(b, "rows_read")),
                  (uint64_t)json_integer_value(json_object_get(b, "rows_dropped")), json_object_get(b, "dropped_rows"));
        n++;
    }
    json_decref(index);
    assert_true(n >= 60);
}

static void compressed_ply_gets_one_sentence(void **state)
{
    import_source s;
    kiln_error err = {0};
    (void)state;
    assert_int_equal(import_source_read("tests/data/ply/bad_cply_nan_bound.ply", &s, &err), KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "compressed PLY is not read yet"));
    import_source_free(&s);
}

static void clamps_keep_the_8_bit_code(void **state)
{
    import_source s;
    (void)state;
    assert_int_equal(import_source_read("tests/data/ply/bad_ply_nonfinite.ply", &s, NULL), KILN_OK);
    for (uint64_t i = 0; i < s.n; i++) {
        const float *row = s.rows + i * s.floats;
        double alpha = 255 / (1 + exp(-(double)row[10]));
        if (s.source_row[i] == 9) assert_true(fabs(alpha - 254.75) < 1e-4);
        if (s.source_row[i] == 10) assert_true(fabs(alpha - 0.25) < 1e-4);
        if (s.source_row[i] == 11) assert_true(row[7] == -87 || row[8] == -87 || row[9] == -87);
    }
    assert_int_equal(s.counts.clamped[KILN_CLAMP_OPACITY_HIGH], 1);
    assert_int_equal(s.counts.clamped[KILN_CLAMP_OPACITY_LOW], 1);
    assert_int_equal(s.counts.clamped[KILN_CLAMP_SCALE_LOW], 1);
    assert_int_equal(s.counts.dropped[KILN_DROP_ZERO_ROTATION], 1);
    import_source_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_files_of_the_repository_decode_to_their_truth),
        cmocka_unit_test(every_golden_ply_decodes_to_its_truth),
        cmocka_unit_test(filter_3d_folds_to_the_fused_values_of_its_sidecar),
        cmocka_unit_test(every_golden_point_cloud_decodes_to_its_truth),
        cmocka_unit_test(hostile_files_of_the_repository_are_told_apart),
        cmocka_unit_test(every_hostile_ply_is_refused_or_read_as_its_index_says),
        cmocka_unit_test(compressed_ply_gets_one_sentence),
        cmocka_unit_test(clamps_keep_the_8_bit_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
