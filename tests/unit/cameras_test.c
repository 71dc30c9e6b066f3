/* cameras_test -- every golden data set gives the cameras of its side-car, every hostile one is
 * refused or counted as its index says: those of tests/data always, all of ../shared where it is
 * there. */
#include "import_source.h"

#include "base/file.h"
#include "base/log.h"
#include "stages/import/dataset/dataset.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define OURS "tests/data/cameras"

/* A path in ../shared, or the test is skipped. */
static const char *shared(const char *name)
{
    static char path[KILN_PATH_MAX];
    const char *root = getenv("KILN_SHARED");
    snprintf(path, sizeof path, "%s/%s", root && *root ? root : "../shared", name);
    if (kiln_is_file(path) || kiln_is_dir(path)) return path;
    print_message("skipped: '%s' is absent\n", path);
    skip();
    return NULL;
}

static json_t *load(const char *dir, const char *name)
{
    char path[KILN_PATH_MAX];
    json_error_t e;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    json_t *j = json_load_file(path, 0, &e);
    if (!j) fail_msg("%s: %s", path, e.text);
    return j;
}

static const kiln_camera *camera_called(const kiln_dataset *d, const char *name)
{
    for (uint32_t i = 0; i < d->set.n_cameras; i++)
        if (strcmp(d->set.cameras[i].name, name) == 0) return &d->set.cameras[i];
    fail_msg("no camera '%s'", name);
    return NULL;
}

/* "./images/img_0001.png" -> "img_0001" */
static const char *name_of(const char *file)
{
    static char name[1100];
    if (strncmp(file, "./", 2) == 0) file += 2;
    if (strncmp(file, "images/", 7) == 0) file += 7;
    snprintf(name, sizeof name, "%s", file);
    if (strrchr(name, '.')) *strrchr(name, '.') = 0;
    return name;
}

static double get(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static void check_pose(const kiln_camera *c, const json_t *rows, double tolerance)
{
    assert_int_equal(json_array_size(rows), 3);
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 4; k++) {
            const double truth = json_number_value(json_array_get(json_array_get(rows, i), k)),
                         ours = k < 3 ? c->r[3 * i + k] : c->t[i];
            if (!(fabs(truth - ours) <= tolerance))
                fail_msg("%s: row %zu, column %zu is %.17g, not %.17g", c->name, i, k, ours, truth);
        }
}

static void check_frame(const kiln_dataset *d, const json_t *frame, const json_t *tolerance)
{
    static const char *const terms[] = {"k1", "k2", "p1", "p2"};
    const kiln_camera *c =
        camera_called(d, name_of(json_string_value(json_object_get(frame, "file"))));
    const char *split = json_string_value(json_object_get(frame, "split"));
    const double near = get(tolerance, "focal");
    bool bent = false;
    check_pose(c, json_object_get(frame, "world_to_camera"), get(tolerance, "matrix"));
    assert_true(c->width == get(frame, "width") && c->height == get(frame, "height"));
    assert_true(fabs(c->fx - get(frame, "fx")) <= near && fabs(c->fy - get(frame, "fy")) <= near);
    assert_true(fabs(c->cx - get(frame, "cx")) <= near && fabs(c->cy - get(frame, "cy")) <= near);
    for (size_t i = 0; i < 4; i++) {
        bent |= get(frame, terms[i]) != 0;
        if (json_object_get(frame, terms[i])) assert_true(c->params[4 + i] == get(frame, terms[i]));
    }
    assert_int_equal(c->distorted, bent);
    if (split) assert_string_equal(c->split, strcmp(split, "test") == 0 ? "test" : "train");
}

static void check_colmap(const kiln_dataset *d, const json_t *truth)
{
    size_t i, k;
    json_t *image, *camera, *p;
    json_array_foreach(json_object_get(truth, "images"), i, image)
    {
        const kiln_camera *c =
            camera_called(d, name_of(json_string_value(json_object_get(image, "name"))));
        check_pose(c, json_object_get(image, "world_to_camera"),
                   get(json_object_get(truth, "tolerance"), "matrix"));
        json_array_foreach(json_object_get(truth, "cameras"), k, camera)
        {
            if (get(camera, "id") != get(image, "camera_id")) continue;
            size_t n;
            assert_string_equal(c->model, json_string_value(json_object_get(camera, "model")));
            assert_true(c->width == get(camera, "width") && c->height == get(camera, "height"));
            assert_int_equal(c->n_params, json_array_size(json_object_get(camera, "params")));
            json_array_foreach(json_object_get(camera, "params"), n, p)
                assert_true(c->params[n] == json_number_value(p));
        }
    }
}

static size_t check_goldens(const char *dir)
{
    json_t *index = load(dir, "golden_index.json"), *g, *frame;
    size_t i, k, n = 0;
    json_array_foreach(index, i, g)
    {
        static kiln_dataset d;
        char path[KILN_PATH_MAX], truth_name[256];
        kiln_error err = {0};
        if (strcmp(json_string_value(json_object_get(g, "kind")), "cameras") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", dir, json_string_value(json_object_get(g, "file")));
        snprintf(truth_name, sizeof truth_name, "%s.json",
                 json_string_value(json_object_get(g, "truth")));
        json_t *truth = load(dir, truth_name);
        const json_t *frames = json_object_get(truth, "frames");
        if (kiln_dataset_find(path, &(kiln_dataset_wishes){0}, &d, &err) != KILN_OK)
            fail_msg("%s", err.msg);
        assert_int_equal(d.set.n_cameras,
                         json_array_size(frames ? frames : json_object_get(truth, "images")));
        json_array_foreach(frames, k, frame)
            check_frame(&d, frame, json_object_get(truth, "tolerance"));
        if (!frames) check_colmap(&d, truth);
        kiln_dataset_release(&d);
        json_decref(truth);
        n++;
    }
    json_decref(index);
    return n;
}

static void golden_cameras_of_the_repository_meet_their_truth(void **state)
{
    (void)state;
    assert_int_equal(check_goldens(OURS), 9);
}

static void all_golden_cameras_meet_their_truth(void **state)
{
    (void)state;
    assert_true(check_goldens(shared("samples")) >= 12);
}

/* ---- hostile --------------------------------------------------------------------------------- */

/* Data set, then rows: what the import stage does before it makes a manifest. */
static kiln_status read_all(const char *path, kiln_dataset *d, import_source *rows, kiln_error *err)
{
    memset(rows, 0, sizeof *rows);
    KILN_TRY(kiln_dataset_find(path, &(kiln_dataset_wishes){0}, d, err));
    kiln_status st = d->reader ? import_source_read(d->rows_path, rows, err) : KILN_OK;
    if (st != KILN_OK) kiln_dataset_release(d);
    return st;
}

static void check_accepted(const json_t *o, const char *path, const kiln_dataset *d,
                           const import_source *rows)
{
    const json_t *images = json_object_get(o, "images_read"),
                 *points = json_object_get(o, "points_read");
    const uint64_t read =
        (uint64_t)json_integer_value(images ? images : json_object_get(o, "frames_read"));
    const uint64_t dropped = (uint64_t)json_integer_value(
        json_object_get(o, images ? "images_dropped" : "frames_dropped"));
    if (d->set.frames_read != read || d->set.frames_dropped != dropped ||
        d->set.n_cameras != read - dropped)
        fail_msg("%s: %llu frames read, %llu dropped, %u cameras", path,
                 (unsigned long long)d->set.frames_read, (unsigned long long)d->set.frames_dropped,
                 d->set.n_cameras);
    if (points)
        assert_int_equal(rows->n, json_integer_value(points) -
                                      json_integer_value(json_object_get(o, "points_dropped")));
}

static bool is_ours(const char *format)
{
    return strcmp(format, "colmap") == 0 || strcmp(format, "transforms.json") == 0 ||
           strcmp(format, "cameras.json") == 0 || strcmp(format, "inria model") == 0;
}

/* Reference samples that were written when a frame without its image was no camera. Today it is one
 * that is drawn, in the size that the file gives. */
static bool is_drawn_today(const char *file)
{
    return strcmp(file, "bad_transforms_image_missing") == 0 ||
           strcmp(file, "bad_transforms_images_missing") == 0;
}

static void check_drawn(const char *path, const kiln_dataset *d)
{
    if (d->set.frames_dropped != 0 || d->set.n_cameras != 2 || d->set.photos_missing == 0)
        fail_msg("%s: not two cameras", path);
}

static size_t check_hostiles(const char *dir)
{
    json_t *index = load(dir, "bad_index.json"), *o;
    size_t i, n = 0;
    json_array_foreach(index, i, o)
    {
        static kiln_dataset d;
        import_source rows;
        char path[KILN_PATH_MAX];
        kiln_error err = {0};
        const bool drawn = is_drawn_today(json_string_value(json_object_get(o, "file")));
        const bool accept =
            drawn || strcmp(json_string_value(json_object_get(o, "expect")), "accept") == 0;
        if (!is_ours(json_string_value(json_object_get(o, "format")))) continue;
        snprintf(path, sizeof path, "%s/%s", dir, json_string_value(json_object_get(o, "file")));
        const kiln_status st = read_all(path, &d, &rows, &err);
        if (st != (accept ? KILN_OK : KILN_E_INPUT))
            fail_msg("%s: %s (%s)", path, kiln_status_name(st), err.msg);
        if (accept) {
            if (drawn)
                check_drawn(path, &d);
            else
                check_accepted(o, path, &d, &rows);
            kiln_dataset_release(&d);
        } else {
            assert_true(err.msg[0] && !strchr(err.msg, '\n')); /* one sentence */
        }
        import_source_free(&rows);
        n++;
    }
    json_decref(index);
#ifndef __SANITIZE_ADDRESS__
    assert_true(kiln_peak_rss() < (uint64_t)256 << 20);
#endif
    return n;
}

static void hostile_cameras_of_the_repository_are_told_apart(void **state)
{
    (void)state;
    assert_int_equal(check_hostiles(OURS), 20);
}

static void all_hostile_cameras_are_told_apart(void **state)
{
    (void)state;
    assert_true(check_hostiles(shared("samples")) >= 98);
}

/* ---- real data sets -------------------------------------------------------------------------- */

static kiln_dataset *find_scene(const char *name)
{
    static kiln_dataset d;
    kiln_error err = {0};
    if (kiln_dataset_find(shared(name), &(kiln_dataset_wishes){0}, &d, &err) != KILN_OK)
        fail_msg("%s", err.msg);
    return &d;
}

static uint32_t count_test(const kiln_dataset *d)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->set.n_cameras; i++)
        n += strcmp(d->set.cameras[i].split, "test") == 0;
    return n;
}

static void the_chair_has_each_camera_once(void **state)
{
    kiln_dataset *d = find_scene("scenes/chair");
    (void)state;
    assert_int_equal(d->set.n_cameras, 21);
    assert_int_equal(count_test(d), 9);
    assert_string_equal(d->set.cameras[0].name, "test/r_0");
    assert_string_equal(d->name, "chair");
    assert_string_equal(kiln_path_base(d->rows_path), "chair.ply");
    for (uint32_t i = 0; i < 21; i++) {
        assert_int_equal(d->set.cameras[i].photo_width, 400);
        assert_int_equal(strncmp(d->set.cameras[i].name, "test/", 5) == 0,
                         strcmp(d->set.cameras[i].split, "test") == 0);
    }
    kiln_dataset_release(d);
}

/* The chair's cameras.json and transforms say the same in two conventions. */
static void inria_and_blender_agree_on_the_chair(void **state)
{
    static kiln_dataset inria, blender;
    kiln_error err = {0};
    char path[KILN_PATH_MAX];
    (void)state;
    snprintf(path, sizeof path, "%s", shared("scenes/chair"));
    assert_int_equal(kiln_dataset_find(path, &(kiln_dataset_wishes){0}, &inria, &err), KILN_OK);
    strcat(path, "/transforms_train.json");
    if (kiln_cameras_read(path, NULL, &blender.set, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(blender.set.n_cameras, 12);
    for (uint32_t i = 0; i < blender.set.n_cameras; i++) {
        const kiln_camera *b = &blender.set.cameras[i], *a = camera_called(&inria, b->name);
        for (int k = 0; k < 9; k++) assert_true(fabs(a->r[k] - b->r[k]) < 1e-6);
        for (int k = 0; k < 3; k++) assert_true(fabs(a->t[k] - b->t[k]) < 1e-5);
        assert_true(fabs(a->fx - b->fx) < 1e-4 && a->cx == b->cx);
    }
    kiln_dataset_release(&inria);
    kiln_dataset_release(&blender);
}

static void the_sculpture_has_23_cameras_with_photos(void **state)
{
    kiln_dataset *d = find_scene("scenes/colmap_sculpture");
    (void)state;
    assert_int_equal(d->set.n_cameras, 23);
    assert_int_equal(count_test(d), 3); /* 0, 8, 16 */
    assert_string_equal(d->reader->name, "colmap-bin");
    for (uint32_t i = 0; i < 23; i++)
        assert_true(d->set.cameras[i].photo_width == d->set.cameras[i].width &&
                    !d->set.cameras[i].distorted);
    kiln_dataset_release(d);
}

static void the_fox_has_10_bent_cameras(void **state)
{
    kiln_dataset *d = find_scene("scenes/fox_transforms");
    (void)state;
    assert_int_equal(d->set.n_cameras, 10);
    assert_null(d->reader);
    assert_string_equal(d->set.cameras[0].model, "OPENCV");
    assert_true(d->set.cameras[0].distorted && d->set.cameras[0].fx == 343.88 &&
                d->set.cameras[0].params[7] == 0.00015575);
    kiln_dataset_release(d);
}

static void blender_tiny_has_a_camera_and_points(void **state)
{
    kiln_dataset *d = find_scene("scenes/blender_tiny");
    (void)state;
    assert_int_equal(d->set.n_cameras, 1);
    assert_string_equal(d->set.cameras[0].name, "train/r_0");
    /* fl_x, not camera_angle_x */
    assert_true(d->set.cameras[0].fx == 50 && d->set.cameras[0].photo_width == 50);
    assert_string_equal(kiln_path_base(d->rows_path), "init.ply");
    kiln_dataset_release(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_cameras_of_the_repository_meet_their_truth),
        cmocka_unit_test(all_golden_cameras_meet_their_truth),
        cmocka_unit_test(hostile_cameras_of_the_repository_are_told_apart),
        cmocka_unit_test(all_hostile_cameras_are_told_apart),
        cmocka_unit_test(the_chair_has_each_camera_once),
        cmocka_unit_test(inria_and_blender_agree_on_the_chair),
        cmocka_unit_test(the_sculpture_has_23_cameras_with_photos),
        cmocka_unit_test(the_fox_has_10_bent_cameras),
        cmocka_unit_test(blender_tiny_has_a_camera_and_points),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
