/* dataset_nerfstudio_test -- paths of nerfstudio's viewer, and the world that it trains in. */
#include "tests/unit/dataset_fixture.h"

#define PATH_MATRIX "[1,0,0,4, 0,0,-1,5, 0,1,0,6, 0,0,0,1]" /* looks along y, z is up */
#define PATH_CAMERA "{\"camera_to_world\": " PATH_MATRIX ", \"fov\": 90, \"aspect\": 1.5}"

static void camera_paths_are_read(void **state)
{
    kiln_error err = {0};
    (void)state;
    put("path.json", "{\"keyframes\": [{\"matrix\": \"[]\", \"fov\": 50}], \"camera_type\": "
                     "\"perspective\", \"render_height\": 40, "
                     "\"render_width\": 60, \"fps\": 24, \"camera_path\": [" PATH_CAMERA
                     ", " PATH_CAMERA "], \"crop\": null}");
    if (kiln_cameras_read(at("path.json"), NULL, &data.set, &err) != KILN_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(data.set.n_cameras, 2);
    const kiln_camera *c = camera("path/0001");
    assert_true(c->width == 60 && c->height == 40 && c->cx == 30 && c->cy == 20 && c->fx == c->fy &&
                !c->distorted);
    assert_near(c->fx, 20);
    /* right is x, down is -z, forward is y; the centre is (4, 5, 6) */
    const double r[9] = {1, 0, 0, 0, 0, -1, 0, 1, 0}, t[3] = {-4, 6, -5};
    for (int i = 0; i < 9; i++) assert_near(c->r[i], r[i]);
    for (int i = 0; i < 3; i++) assert_near(c->t[i], t[i]);
    kiln_dataset_release(&data);
    /* without a width the aspect gives it; rows of a matrix are as good as its numbers */
    put("path.json", "{\"render_height\": 40, \"camera_path\": [{\"camera_to_world\": "
                     "[[1,0,0,4],[0,0,-1,5],[0,1,0,6],[0,0,0,1]], "
                     "\"fov\": 90, \"aspect\": 1.5}]}");
    if (kiln_cameras_read(at("path.json"), NULL, &data.set, &err) != KILN_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(camera("path/0000")->width, 60);
}

static void camera_paths_that_cannot_be_drawn_are_refused(void **state)
{
    static const char *const refused[][2] = {
        {"{\"camera_path\": [], \"keyframes\": [1]}", "only keyframes"},
        {"{\"keyframes\": []}", "no camera in camera_path"},
        {"{\"camera_path\": {}}", "no camera in camera_path"},
        {"{\"camera_path\": [" PATH_CAMERA "], \"render_width\": 60}", "no render_height"},
        {"{\"camera_path\": [" PATH_CAMERA "], \"render_height\": 0}",
         "render_height is not a size"},
        {"{\"camera_path\": [" PATH_CAMERA "], \"render_height\": \"40\"}",
         "render_height is not a size"},
        {"{\"camera_path\": [" PATH_CAMERA
         "], \"render_height\": 40, \"camera_type\": \"fisheye\"}",
         "'fisheye' cannot be drawn"},
        {"{\"camera_path\": [" PATH_CAMERA
         "], \"render_height\": 40, \"camera_type\": \"equirectangular\"}",
         "choose perspective"},
        {"{\"camera_path\": [" PATH_CAMERA "], \"render_height\": 40, \"camera_type\": 1}",
         "camera_type"},
        {"{\"camera_path\": [3], \"render_height\": 40}", "not 16 numbers"},
        {"{\"camera_path\": [{\"camera_to_world\": [1,0,0,0, 0,0,-1,0, 0,1,0,0, 4,5,6,1], \"fov\": "
         "9}], \"render_height\": 40}",
         "transposed"},
        {"{\"camera_path\": [{\"camera_to_world\": [1,0,0,0, 0,1,0,0, 0,0,-1,0, 0,0,0,1], \"fov\": "
         "9}], \"render_height\": 40, "
         "\"render_width\": 9}",
         "reflection"},
        {"{\"camera_path\": [{\"camera_to_world\": " PATH_MATRIX
         "}], \"render_height\": 40, \"render_width\": 9}",
         "fov"},
        {"{\"camera_path\": [{\"camera_to_world\": " PATH_MATRIX
         ", \"fov\": 180}], \"render_height\": 40}",
         "fov"},
        {"{\"camera_path\": [{\"camera_to_world\": " PATH_MATRIX
         ", \"fov\": 90}], \"render_height\": 40}",
         "aspect"},
        {"{\"camera_path\": [{\"camera_to_world\": " PATH_MATRIX
         ", \"fov\": 90}], \"render_height\": 40, \"render_width\": 1e9}",
         "larger than allowed"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        kiln_error err = {0};
        put("path.json", refused[i][0]);
        const kiln_status st = kiln_cameras_read(at("path.json"), NULL, &data.set, &err);
        if (st != KILN_E_INPUT || !strstr(err.msg, refused[i][1]) || strchr(err.msg, '\n'))
            fail_msg("%s: %s, '%s'", refused[i][0], kiln_status_name(st), err.msg);
        kiln_dataset_release(&data);
    }
}

static void names_of_long_paths_keep_their_order(void **state)
{
    kiln_buffer b = {0};
    kiln_error err = {0};
    (void)state;
    assert_int_equal(
        kiln_buffer_printf(&b, &err,
                           "{\"render_height\": 4, \"render_width\": 4, \"camera_path\": ["),
        KILN_OK);
    for (int i = 0; i <= 10000; i++)
        assert_int_equal(
            kiln_buffer_printf(
                &b, &err,
                "%s{\"camera_to_world\": [1,0,0,%d, 0,1,0,0, 0,0,1,0, 0,0,0,1], \"fov\": 90}",
                i ? ", " : "", i),
            KILN_OK);
    assert_int_equal(kiln_buffer_printf(&b, &err, "]}"), KILN_OK);
    if (kiln_file_write(at("path.json"), b.data, b.size, &err) != KILN_OK) fail_msg("%s", err.msg);
    kiln_buffer_release(&b);
    if (kiln_cameras_read(at("path.json"), NULL, &data.set, &err) != KILN_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(data.set.n_cameras, 10001);
    assert_string_equal(data.set.cameras[10000].name, "path/10000");
    for (uint32_t i = 0; i < data.set.n_cameras; i++)
        assert_true(data.set.cameras[i].t[0] == -(double)i);
}

/* ---- the world that nerfstudio trains in ----------------------------------------------------- */

/* T turns about the vertical by 90 degrees, after applied_transform; then it moves. */
#define DATAPARSER "{\"transform\": [[0, 0, 1, 0.5], [1, 0, 0, -2], [0, 1, 0, 3]], \"scale\": 0.25}"
static const double dataparser_r[9] = {0, 0, 1, 1, 0, 0, 0, 1, 0}, dataparser_t[3] = {0.5, -2, 3};
#define APPLIED                                                                   \
    "\"fl_x\": 7, \"applied_transform\": [[1,0,0,0.125],[0,0,1,0],[0,-1,0,-1]], " \
    "\"applied_scale\": 0.5"

/* p and q lie on one pixel of a and of b, and q is `scale` times as deep. */
static void assert_same_pixel(const kiln_camera *a, const double p[3], const kiln_camera *b,
                              const double q[3], double scale)
{
    double x[3], y[3];
    for (int i = 0; i < 3; i++) {
        x[i] = a->r[3 * i] * p[0] + a->r[3 * i + 1] * p[1] + a->r[3 * i + 2] * p[2] + a->t[i];
        y[i] = b->r[3 * i] * q[0] + b->r[3 * i + 1] * q[1] + b->r[3 * i + 2] * q[2] + b->t[i];
    }
    for (int i = 0; i < 3; i++) assert_near(x[i] * scale, y[i]);
}

/* All cameras of `saved` have been moved as the file says; `to_saved` gives a point of their world
 * for one of the original. */
static void assert_moved(const kiln_dataset *before, double scale,
                         void (*to_saved)(const double original[3], double saved[3]))
{
    static const double points[4][3] = {{0, 0, 0}, {1, 0, 0}, {0.5, -3, 7}, {-11, 2, 0.25}};
    assert_int_equal(before->set.n_cameras, data.set.n_cameras);
    for (uint32_t i = 0; i < data.set.n_cameras; i++)
        for (int k = 0; k < 4; k++) {
            double saved[3], trained[3];
            to_saved(points[k], saved);
            for (int a = 0; a < 3; a++)
                trained[a] = 0.25 * (dataparser_r[3 * a] * points[k][0] +
                                     dataparser_r[3 * a + 1] * points[k][1] +
                                     dataparser_r[3 * a + 2] * points[k][2] + dataparser_t[a]);
            assert_same_pixel(&before->set.cameras[i], saved, &data.set.cameras[i], trained, scale);
        }
}

/* APPLIED without its scale, which nerfstudio takes for one of the poses alone. */
static void applied(const double x[3], double saved[3])
{
    saved[0] = x[0] + 0.125;
    saved[1] = x[2];
    saved[2] = -x[1] - 1;
}

static void as_it_is(const double x[3], double saved[3]) { memcpy(saved, x, 3 * sizeof *x); }

static bool has_moved(const kiln_dataset *before)
{
    bool moved = false;
    assert_int_equal(before->set.n_cameras, data.set.n_cameras);
    for (uint32_t i = 0; i < data.set.n_cameras; i++) {
        const kiln_camera *was = &before->set.cameras[i], *is = &data.set.cameras[i];
        assert_string_equal(was->photo, is->photo);
        moved |= memcmp(was->r, is->r, sizeof is->r) || memcmp(was->t, is->t, sizeof is->t);
    }
    return moved;
}

static void cameras_follow_gaussians_that_nerfstudio_trained(void **state)
{
    static kiln_dataset before;
    const char *const frames[] = {"a.png", "b.png", NULL};
    bool used;
    kiln_error err = {0};
    (void)state;
    put_photo("a.png", 8, 6);
    put_photo("b.png", 8, 6);
    put_ply("splat.ply", 3, true);
    put_transforms("transforms.json",
                   "\"fl_x\": 7, \"applied_transform\": [[1,0,0,0.125],[0,0,1,0],[0,-1,0,-1]]",
                   frames);
    assert_int_equal(kiln_dataset_find(root, &(kiln_dataset_wishes){0}, &before, &err), KILN_OK);
    put("dataparser_transforms.json", DATAPARSER);
    find_as(&(kiln_dataset_wishes){0});
    assert_moved(&before, 0.25, applied);
    (void)why_not("dataparser_transforms.json", &used);
    assert_true(used);
    assert_non_null(strstr(
        data.set.transforms,
        "{\"dataparser_scale\":0.25,\"dataparser_transform\":[[0.0,0.0,1.0,0.5],[1.0,0.0,0.0,"
        "-2.0],[0.0,1.0,0.0,3.0]],\"of\":\"cameras\"}]"));
    assert_non_null(strstr(data.set.transforms, "[{\"applied_transform\":"));
    used = false;
    for (uint32_t i = 0; i < data.set.n_sources; i++)
        used |= strcmp(data.set.sources[i].path, at("dataparser_transforms.json")) == 0;
    assert_true(used);
    find_as(&(kiln_dataset_wishes){.no_dataparser = true});
    assert_false(has_moved(&before));
    assert_string_equal(why_not("dataparser_transforms.json", &used), "--no-dataparser");
    assert_string_equal(data.set.transforms, before.set.transforms);
    /* the Gaussians alone, with cameras from elsewhere: the file lies beside them */
    kiln_dataset_release(&data);
    assert_int_equal(kiln_dataset_find(at("splat.ply"),
                                       &(kiln_dataset_wishes){.cameras = at("transforms.json")},
                                       &data, &err),
                     KILN_OK);
    assert_moved(&before, 0.25, applied);
    kiln_dataset_release(&before);
}

/* The side-car of the golden data set names a point in the original world, in the saved one and in
 * that of training. */
static void the_golden_point_stays_on_its_pixels(void **state)
{
    static kiln_dataset before;
    json_t *truth;
    json_error_t why;
    kiln_error err = {0};
    char command[TEST_FOLDER_MAX + 64];
    double saved[3], trained[3];
    (void)state;
    snprintf(command, sizeof command, "cp -r tests/data/cameras/golden_nerfstudio/. '%s'", root);
    assert_int_equal(system(command), 0);
    truth = json_load_file("tests/data/cameras/golden_nerfstudio.json", 0, &why);
    assert_true(
        kiln_json_vector(json_array_get(json_object_get(truth, "points_first_in_saved_world"), 0),
                         3, saved) &&
        kiln_json_vector(
            json_object_get(json_object_get(truth, "dataparser_check"), "trained_point"), 3,
            trained));
    json_decref(truth);
    assert_int_equal(kiln_dataset_find(root, &(kiln_dataset_wishes){0}, &before, &err), KILN_OK);
    put_ply("splat.ply", 3, true);
    find_as(&(kiln_dataset_wishes){0});
    assert_int_equal(data.set.n_cameras, 5);
    assert_true(has_moved(&before));
    for (uint32_t i = 0; i < data.set.n_cameras; i++)
        assert_same_pixel(&before.set.cameras[i], saved, &data.set.cameras[i], trained, 0.23);
    kiln_dataset_release(&before);
}

/* nerfstudio scales poses by its own factor, and the file's scale is that times applied_scale. */
static void applied_scale_is_part_of_the_scale(void **state)
{
    const char *const frames[] = {"a.png", NULL};
    (void)state;
    put_photo("a.png", 8, 6);
    put_ply("splat.ply", 3, true);
    put_transforms("transforms.json", "\"fl_x\": 7, \"applied_scale\": 0.5", frames);
    put("dataparser_transforms.json",
        "{\"transform\": [[1,0,0,0],[0,1,0,0],[0,0,1,0]], \"scale\": 0.125}");
    find_as(&(kiln_dataset_wishes){0});
    /* the centre was (0, 2, 3) */
    const kiln_camera *c = camera("a");
    assert_near(c->t[1], 0.25 * 2);
    assert_near(c->t[2], 0.25 * 3);
}

static void cameras_of_colmap_lie_in_the_original_world(void **state)
{
    static kiln_dataset before;
    kiln_error err = {0};
    (void)state;
    put_pairs();
    put_ply("splat.ply", 3, true);
    assert_int_equal(kiln_dataset_find(root, &(kiln_dataset_wishes){0}, &before, &err), KILN_OK);
    put("dataparser_transforms.json", DATAPARSER);
    find_as(&(kiln_dataset_wishes){0});
    assert_true(has_moved(&before));
    assert_moved(&before, 0.25, as_it_is);
    kiln_dataset_release(&before);
}

static void what_nerfstudio_did_not_train_stays(void **state)
{
    static kiln_dataset before;
    const char *const frames[] = {"a.png", NULL};
    bool used;
    kiln_error err = {0};
    (void)state;
    put("dataparser_transforms.json", "this is not even looked at");
    put_photo("a.png", 8, 6);
    /* points lie in the world of their cameras */
    put_ply("sparse_pc.ply", 5, false);
    put_transforms("transforms.json", APPLIED ", \"ply_file_path\": \"sparse_pc.ply\"", frames);
    find_as(&(kiln_dataset_wishes){0});
    assert_non_null(strstr(why_not("dataparser_transforms.json", &used), "concerns Gaussians"));
    assert_near(camera("a")->t[1], 2);
    /* a path of the viewer is of the world of training */
    put_ply("splat.ply", 3, true);
    put("path.json",
        "{\"render_height\": 40, \"render_width\": 40, \"camera_path\": [" PATH_CAMERA "]}");
    find_as(&(kiln_dataset_wishes){.cameras = at("path.json")});
    assert_near(camera("path/0000")->t[0], -4);
    /* so are INRIA's cameras, with INRIA's Gaussians, whatever else lies there */
    put("cameras.json", inria_camera);
    find_as(&(kiln_dataset_wishes){0});
    assert_int_equal(data.set.n_cameras, 1);
    unlink(at("cameras.json"));
    put_ply("point_cloud/iteration_7/point_cloud.ply", 3, true);
    find_as(&(kiln_dataset_wishes){0});
    assert_near(camera("a")->t[1], 2);
    assert_string_equal(why_not("dataparser_transforms.json", &used), "");
    assert_int_equal(kiln_dataset_find(root, &(kiln_dataset_wishes){0}, &before, &err), KILN_OK);
    /* but one beside them is about them */
    put("point_cloud/iteration_7/dataparser_transforms.json", DATAPARSER);
    find_as(&(kiln_dataset_wishes){0});
    assert_true(has_moved(&before));
    kiln_dataset_release(&before);
}

static void a_dataparser_that_cannot_be_used_is_refused(void **state)
{
    static const char *const refused[][2] = {
        {"{", "JSON"},
        {"[]", "no transform as nerfstudio writes it"},
        {"{\"transform\": [[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1]], \"scale\": 1}",
         "no transform as nerfstudio writes it"},
        {"{\"transform\": [[1,0,0,0],[0,1,0,0],[0,0,1,0]]}", "3 x 4 numbers and a scale"},
        {"{\"transform\": [[1,0,0,0],[0,1,0,0],[0,0,1,0]], \"scale\": 0}", "not positive"},
        {"{\"transform\": [[1,0,0,0],[0,1,0,0],[0,0,1,0]], \"scale\": -1}", "not positive"},
        {"{\"transform\": [[2,0,0,0],[0,2,0,0],[0,0,2,0]], \"scale\": 1}", "not a rotation"},
        {"{\"transform\": [[1,0.1,0,0],[0,1,0,0],[0,0,1,0]], \"scale\": 1}", "not a rotation"},
        {"{\"transform\": [[-1,0,0,0],[0,1,0,0],[0,0,1,0]], \"scale\": 1}", "reflection"},
        {"{\"transform\": [[1,0,0,1e308],[0,1,0,1e308],[0,0,1,1e308]], \"scale\": 1e300}",
         "beyond all bounds"},
    };
    const char *const frames[] = {"a.png", NULL};
    (void)state;
    put_photo("a.png", 8, 6);
    put_ply("splat.ply", 3, true);
    put_transforms("transforms.json", "\"fl_x\": 7", frames);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        put("dataparser_transforms.json", refused[i][0]);
        find_as_refused(root, &(kiln_dataset_wishes){0}, refused[i][1]);
        find_as(&(kiln_dataset_wishes){.no_dataparser = true});
        assert_int_equal(data.set.n_cameras, 1);
    }
    put("dataparser_transforms.json", DATAPARSER);
    put_transforms("transforms.json",
                   "\"fl_x\": 7, \"applied_transform\": [[1,0,0,0],[1,0,0,0],[0,0,1,0]]", frames);
    find_as_refused(root, &(kiln_dataset_wishes){0}, "no inverse");
    put_transforms("transforms.json", "\"fl_x\": 7, \"applied_scale\": 0", frames);
    find_as_refused(root, &(kiln_dataset_wishes){0}, "applied_scale");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(camera_paths_are_read),
        IN_SCRATCH(camera_paths_that_cannot_be_drawn_are_refused),
        IN_SCRATCH(names_of_long_paths_keep_their_order),
        IN_SCRATCH(cameras_follow_gaussians_that_nerfstudio_trained),
        IN_SCRATCH(the_golden_point_stays_on_its_pixels),
        IN_SCRATCH(applied_scale_is_part_of_the_scale),
        IN_SCRATCH(cameras_of_colmap_lie_in_the_original_world),
        IN_SCRATCH(what_nerfstudio_did_not_train_stays),
        IN_SCRATCH(a_dataparser_that_cannot_be_used_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
