/* samples -- the golden and hostile files of rows: those of tests/data always, all of
 * ../shared/samples where it is there, as far as their formats have readers. */
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

/* ---- golden ---------------------------------------------------------------------------------- */

/* Largest deviation that a side-car allows; 0: the same bits. */
typedef struct {
    /* rotation: 1 - |cos| of half the angle between */
    double position, rotation, log_scale, alpha, sh;
} tolerance;

/* Of the files of tests/data, as the side-cars of all plain PLY files say it. */
static const tolerance same_bits = {.rotation = 1e-6, .alpha = 1e-6};

static tolerance tolerance_of(const json_t *sidecar)
{
    const json_t *t = json_object_get(sidecar, "tolerance");
    assert_true(json_is_object(t));
    return (tolerance){json_number_value(json_object_get(t, "position")),
                       json_number_value(json_object_get(t, "rotation_1_minus_absdot")),
                       json_number_value(json_object_get(t, "log_scale")),
                       json_number_value(json_object_get(t, "alpha")),
                       json_number_value(json_object_get(t, "sh"))};
}

/* NaN is worse than anything */
static void take_worst(double *worst, double v) { *worst = v <= *worst ? *worst : v; }

static double farthest(const float *ours, const float *truth, uint32_t n)
{
    double worst = 0;
    for (uint32_t i = 0; i < n; i++)
        if (memcmp(ours + i, truth + i, sizeof *ours) != 0) {
            const double d = fabs((double)ours[i] - (double)truth[i]);
            take_worst(&worst, d > 0 ? d : 1e-300); /* two zeros differ too, where bits count */
        }
    return worst;
}

static double rotation_between(const float *ours, const float *truth)
{
    double length = 0, dot = 0;
    for (int i = 0; i < 4; i++) {
        length += (double)ours[i] * (double)ours[i];
        dot += (double)ours[i] * (double)truth[i];
    }
    return fabs(1 - fabs(dot / sqrt(length)));
}

/* An alpha of exactly 0 or 1 has no logit: import keeps those of 0.25 and 254.75 of 255. */
static double alpha_between(float logit, float truth)
{
    const double alpha = 1 / (1 + exp(-(double)logit)), d = fabs(alpha - (double)truth);
    const double code = truth == 0 ? 0.25 / 255 : truth == 1 ? 254.75 / 255 : alpha;
    return code != alpha && fabs(code - alpha) < d ? fabs(code - alpha) : d;
}

/* Of one row, into what is worst so far. */
static void compare_row(tolerance *worst, const float *ours, const float *truth, uint32_t sh_floats)
{
    take_worst(&worst->position, farthest(ours, truth, 3));
    take_worst(&worst->rotation, rotation_between(ours + 3, truth + 3));
    take_worst(&worst->log_scale, farthest(ours + 7, truth + 7, 3));
    take_worst(&worst->alpha, alpha_between(ours[10], truth[10]));
    take_worst(&worst->sh, farthest(ours + 11, truth + 11, sh_floats));
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

static void check_golden(const char *path, const char *truth_path, uint32_t degree,
                         const tolerance *allowed)
{
    import_source s;
    kiln_error err = {0};
    unsigned char *truth = NULL;
    size_t size;
    tolerance worst = {0};
    if (import_source_read(path, &s, &err) != KILN_OK) fail_msg("%s", err.msg);
    if (kiln_file_read(truth_path, 1 << 24, &truth, &size, &err) != KILN_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(s.scan.info.kind, KILN_SCENE_SPLATS);
    assert_int_equal(s.scan.info.sh_degree, degree);
    assert_int_equal(size, s.n * s.floats * sizeof(float));
    if (s.scan.info.folded) unfold(&s);
    for (uint64_t i = 0; i < s.n; i++)
        compare_row(&worst, s.rows + i * s.floats,
                    (const float *)(const void *)truth + i * s.floats, s.floats - 11);
    print_message("%-40s %4llu rows, %llu alphas clamped; off by %.2g %.2g %.2g %.2g %.2g\n",
                  kiln_path_base(path), (unsigned long long)s.n,
                  (unsigned long long)(s.counts.clamped[KILN_CLAMP_OPACITY_HIGH] +
                                       s.counts.clamped[KILN_CLAMP_OPACITY_LOW]),
                  worst.position, worst.rotation, worst.log_scale, worst.alpha, worst.sh);
    if (!(worst.position <= allowed->position && worst.rotation <= allowed->rotation &&
          worst.log_scale <= allowed->log_scale && worst.alpha <= allowed->alpha &&
          worst.sh <= allowed->sh))
        fail_msg(
            "%s differs from its truth: position %g, rotation %g, log scale %g, alpha %g, SH %g",
            path, worst.position, worst.rotation, worst.log_scale, worst.alpha, worst.sh);
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
        check_golden(path, truth, files[k].degree, &same_bits);
    }
}

/* Is there a reader of the format that a sample's name begins with ("golden_spz_v4_sh1.spz": spz)?
 * By name, of which the format is one word: "ply" and "compressed-ply". */
static bool has_reader(const char *file)
{
    const char *word = strchr(file, '_') + 1;
    size_t n = strcspn(word, "_.");
    if (strncmp(word, "cply", n) == 0) {
        word = "compressed";
        n = strlen(word);
    }
    for (const kiln_reader *const *r = kiln_readers; *r; r++) {
        const char *at = (*r)->name;
        for (size_t k; *at; at += k + strspn(at + k, "-")) {
            k = strcspn(at, "-");
            if (k == n && memcmp(at, word, n) == 0) return true;
        }
    }
    return false;
}

/* What to import of a sample: a file, or the file that says what a folder holds. */
static void path_of(const char *file, char *path, size_t capacity)
{
    static const char *const names[] = {"", "/meta.json", "/lod-meta.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, capacity, "%s/%s%s", samples(), file, names[i]);
        if (kiln_is_file(path)) return;
    }
    fail_msg("there is no '%s'", file);
}

/* truth: beside the samples, without suffix. */
static void check_sample(const char *file, const char *truth, uint32_t degree)
{
    char path[1024], values[1024], name[256];
    path_of(file, path, sizeof path);
    snprintf(name, sizeof name, "%s.json", truth);
    snprintf(values, sizeof values, "%s/%s.f32", samples(), truth);
    json_t *sidecar = load(name);
    const tolerance allowed = tolerance_of(sidecar);
    check_golden(path, values, degree, &allowed);
    json_decref(sidecar);
}

static void every_golden_file_of_gaussians_decodes_to_its_truth(void **state)
{
    json_t *index = load("golden_index.json"), *g;
    size_t i, n = 0, skipped = 0;
    (void)state;
    json_array_foreach(index, i, g)
    {
        const char *file = json_string_value(json_object_get(g, "file"));
        const char *kind = json_string_value(json_object_get(g, "kind"));
        char path[1024];
        if (strcmp(kind, "gaussians") != 0) continue;
        /* its side-car has the rows of all levels: sog_test.c */
        if (strcmp(file, "golden_lod") == 0) continue;
        if (!has_reader(file)) {
            skipped++;
            continue;
        }
        check_sample(file, json_string_value(json_object_get(g, "truth")),
                     (uint32_t)json_integer_value(json_object_get(g, "sh_degree")));
        import_source s;
        path_of(file, path, sizeof path);
        assert_int_equal(import_source_read(path, &s, NULL), KILN_OK);
        assert_int_equal(s.scan.info.antialiased, json_is_true(json_object_get(g, "antialiased")));
        import_source_free(&s);
        n++;
    }
    json_decref(index);
    print_message("%zu golden files read, %zu skipped: their formats have no reader\n", n, skipped);
    assert_true(n >= 39);
}

static void files_of_independent_writers_decode_to_their_truth(void **state)
{
    static const struct {
        const char *file, *truth;
        uint32_t degree;
    } files[] = {
        {"foreign/foreign_cply.compressed.ply", "foreign/foreign_cply", 1},
        {"foreign/foreign_splat.splat", "foreign/foreign_splat", 0},
        {"foreign/foreign_sog.sog", "foreign/foreign_sog", 3},
        {"foreign/foreign_gltf.glb", "foreign/foreign_gltf", 2},
    };
    size_t skipped = 0;
    (void)state;
    json_decref(load("golden_index.json")); /* skips where there are no samples */
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        if (has_reader(files[k].file))
            check_sample(files[k].file, files[k].truth, files[k].degree);
        else
            skipped++;
    }
    print_message("%zu files of independent writers skipped: their formats have no reader\n",
                  skipped);
}

static void filter_3d_folds_to_the_fused_values_of_its_sidecar(void **state)
{
    json_t *j = load("golden_ply_mip_filter3d_sh0.json");
    const json_t *scales = json_object_get(json_object_get(j, "fused"), "log_scales"),
                 *alpha = json_object_get(json_object_get(j, "fused"), "alpha");
    import_source s;
    (void)state;
    assert_int_equal(import_source_read("tests/data/ply/golden_ply_mip_filter3d_sh0.ply", &s, NULL),
                     KILN_OK);
    for (uint64_t i = 0; i < s.n; i++) {
        const float *row = s.rows + i * s.floats;
        for (size_t c = 0; c < 3; c++)
            assert_true(fabs((double)row[7 + c] - json_number_value(json_array_get(
                                                      json_array_get(scales, i), c))) < 1e-6);
        assert_true(fabs(1 / (1 + exp(-(double)row[10])) -
                         json_number_value(json_array_get(alpha, i))) < 1e-6);
    }
    import_source_free(&s);
    json_decref(j);
}

static void every_golden_point_cloud_decodes_to_its_truth(void **state)
{
    static const char *const files[] = {"golden_pcd_uchar", "golden_pcd_rgba",
                                        "golden_pcd_float_rgb", "golden_pcd_double_xyz"};
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
                double p = json_number_value(
                    json_array_get(json_array_get(json_object_get(j, "positions"), i), c));
                double v = json_number_value(
                    json_array_get(json_array_get(json_object_get(j, "rgb_0_1"), i), c));
                assert_true(s.rows[i * 6 + c] == (float)p);
                assert_true(fabs((double)s.rows[i * 6 + 3 + c] - v) < 1e-6);
            }
        import_source_free(&s);
        json_decref(j);
    }
}

/* ---- hostile --------------------------------------------------------------------------------- */

static void check_bad(const char *path, bool accept, uint64_t read, uint64_t dropped,
                      const json_t *rows)
{
    import_source s;
    kiln_error err = {0};
    kiln_status st = import_source_read(path, &s, &err);
    if (st != (accept ? KILN_OK : KILN_E_INPUT))
        fail_msg("%s: %s (%s)", path, kiln_status_name(st), err.msg);
    if (!accept && !strstr(err.msg, kiln_path_base(path)))
        fail_msg("'%s' does not name the file", err.msg);
    if (accept && (s.counts.read != read || s.counts.read - s.n != dropped))
        fail_msg("%s: %llu rows read, %llu kept", path, (unsigned long long)s.counts.read,
                 (unsigned long long)s.n);
    for (size_t i = 0; i < json_array_size(rows); i++)
        for (uint64_t k = 0; k < s.n; k++)
            assert_true(s.source_row[k] != (uint32_t)json_integer_value(json_array_get(rows, i)));
    import_source_free(&s);
}

static void hostile_files_of_the_repository_are_told_apart(void **state)
{
    static const struct {
        const char *file;
        bool accept;
        uint64_t read, dropped;
    } files[] = {
        {"bad_ply_nonfinite", true, 16, 9},   {"bad_ply_ascii_nan", true, 8, 1},
        {"bad_ply_cut_mid_row", false, 0, 0}, {"bad_ply_ascii_long_token", false, 0, 0},
        {"bad_ply_f_rest_gap", false, 0, 0},  {"bad_ply_count_2pow61", false, 0, 0},
        {"bad_ply_cr_only", false, 0, 0},     {"bad_ply_all_nan", false, 0, 0},
        {"bad_cply_nan_bound", false, 0, 0},  {"bad_ply_face_before", false, 0, 0},
    };
    (void)state;
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        char path[256];
        snprintf(path, sizeof path, "tests/data/ply/%s.ply", files[k].file);
        check_bad(path, files[k].accept, files[k].read, files[k].dropped, NULL);
    }
}

/* Files, and one folder that is called like a file, whose format has a reader; other folders belong
 * to cameras_test. */
static void every_hostile_file_is_refused_or_read_as_its_index_says(void **state)
{
    json_t *index = load("bad_index.json"), *b;
    size_t i, n = 0, skipped = 0;
    (void)state;
    json_array_foreach(index, i, b)
    {
        const char *file = json_string_value(json_object_get(b, "file"));
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", samples(), file);
        if (!kiln_is_file(path) && !strchr(file, '.')) continue;
        if (!has_reader(file)) {
            skipped++;
            continue;
        }
        check_bad(path, strcmp(json_string_value(json_object_get(b, "expect")), "accept") == 0,
                  (uint64_t)json_integer_value(json_object_get(b, "rows_read")),
                  (uint64_t)json_integer_value(json_object_get(b, "rows_dropped")),
                  json_object_get(b, "dropped_rows"));
        n++;
    }
    json_decref(index);
    print_message("%zu hostile files tried, %zu skipped: their formats have no reader\n", n,
                  skipped);
    assert_true(n >= 85);
}

static void packed_rows_between_bounds_that_are_no_numbers_are_dropped(void **state)
{
    import_source s;
    kiln_error err = {0};
    (void)state;
    assert_int_equal(import_source_read("tests/data/ply/bad_cply_nan_bound.ply", &s, &err),
                     KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "no usable row: 8 of 8 have a position not finite"));
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
        cmocka_unit_test(every_golden_file_of_gaussians_decodes_to_its_truth),
        cmocka_unit_test(files_of_independent_writers_decode_to_their_truth),
        cmocka_unit_test(filter_3d_folds_to_the_fused_values_of_its_sidecar),
        cmocka_unit_test(every_golden_point_cloud_decodes_to_its_truth),
        cmocka_unit_test(hostile_files_of_the_repository_are_told_apart),
        cmocka_unit_test(every_hostile_file_is_refused_or_read_as_its_index_says),
        cmocka_unit_test(packed_rows_between_bounds_that_are_no_numbers_are_dropped),
        cmocka_unit_test(clamps_keep_the_8_bit_code),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
