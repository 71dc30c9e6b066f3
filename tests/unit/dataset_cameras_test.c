/* dataset_cameras_test -- what camera files say, of COLMAP, nerfstudio, instant-ngp, INRIA and
 * forks of it. */
#include "tests/unit/dataset_fixture.h"

static void lists_are_used_as_they_stand(void **state)
{
    kiln_error err = {0};
    (void)state;
    put("path.json", "[{\"R\": [0,-1,0, 1,0,0, 0,0,1], \"t\": [1,2,3], \"fx\": 9, \"fy\": 8, "
                     "\"cx\": 3, \"cy\": 2.5, \"width\": 7, "
                     "\"height\": 5},"
                     " {\"R\": [[1,0,0],[0,1,0],[0,0,1]], \"t\": [0,0,0], \"fx\": 9, \"fy\": 9, "
                     "\"width\": 8, \"height\": 6, "
                     "\"name\": \"front\"}]");
    if (kiln_cameras_read(at("path.json"), NULL, &data.set, &err) != KILN_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(data.set.n_cameras, 2);
    const kiln_camera *c = &data.set.cameras[0];
    assert_string_equal(c->name, "cam0");
    assert_true(c->r[1] == -1 && c->r[3] == 1 && c->t[2] == 3 && c->fx == 9 && c->fy == 8 &&
                c->cy == 2.5 && c->width == 7);
    assert_string_equal(data.set.cameras[1].name, "front");
    assert_true(data.set.cameras[1].cx == 4);
}

static void transposed_matrices_are_refused(void **state)
{
    (void)state;
    put("transforms.json", "{\"fl_x\": 7, \"w\": 8, \"h\": 6, \"frames\": [{\"file_path\": \"a\", "
                           "\"transform_matrix\": "
                           "[[1,0,0,0],[0,1,0,0],[0,0,1,0],[4,5,6,1]]}]}");
    find_refused("transposed");
}

static void a_frame_overrides_its_file(void **state)
{
    (void)state;
    put_photo("a.png", 8, 6);
    put("transforms.json", "{\"fl_x\": 7, \"fl_y\": 9, \"cx\": 1, \"frames\": [{\"file_path\": "
                           "\"a.png\", \"camera_angle_x\": "
                           "1.5707963267948966, \"cy\": 2, "
                           "\"transform_matrix\": [[1,0,0,0],[0,1,0,0],[0,0,1,0]]}]}");
    find();
    assert_near(data.set.cameras[0].fx, 4);
    assert_near(data.set.cameras[0].fy, 4);
    assert_true(data.set.cameras[0].cx == 1 && data.set.cameras[0].cy == 2);
}

static void lenses_that_no_model_describes_are_refused(void **state)
{
    const char *const frames[] = {"a.png", NULL};
    (void)state;
    put_photo("a.png", 8, 6);
    put_transforms("transforms.json", "\"fl_x\": 7, \"ftheta_p0\": 1", frames);
    find_refused("ftheta_p0");
    put_transforms("transforms.json", "\"fl_x\": 7, \"camera_model\": \"VR180_L\"", frames);
    find_refused("VR180_L");
}

static void degrees_of_instant_ngp_are_angles(void **state)
{
    const char *const frames[] = {"a.png", NULL};
    (void)state;
    put_photo("a.png", 8, 6);
    put_transforms("transforms.json", "\"x_fov\": 90, \"camera_angle_x\": 1", frames);
    find();
    assert_near(data.set.cameras[0].fx, 4);
    assert_near(data.set.cameras[0].fy, 4);
}

static void every_colmap_model_knows_itself(void **state)
{
    const double params[KILN_CAMERA_PARAMS] = {50, 51, 20, 15};
    (void)state;
    for (int id = 0; id < 18; id++) {
        kiln_camera c = {.width = 40, .height = 30};
        kiln_error err = {0};
        const kiln_camera_model *m = kiln_camera_model_by_id(id);
        assert_non_null(m);
        assert_ptr_equal(kiln_camera_model_by_name(m->name), m);
        assert_true(m->n_params <= KILN_CAMERA_PARAMS &&
                    (!m->n_focal || m->n_focal + 2 + m->n_bending <= m->n_params));
        assert_int_equal(m->stretched != NULL, m->n_focal == 1);
        if (m->stretched)
            assert_true(kiln_camera_model_by_name(m->stretched)->n_params > m->n_params);
        assert_int_equal(kiln_camera_take_lens(&c, m, params, "file", "camera 1", &err), KILN_OK);
        kiln_camera_scale(&c, 2, 3, 80, 90);
        if (m->n_focal) assert_true(c.fx == 100 && c.fy == (m->n_focal == 1 ? 150 : 153));
    }
    assert_null(kiln_camera_model_by_id(18));
}

static void put_inria(const char *file, const char *a, const char *b)
{
    kiln_buffer text = {0};
    kiln_error err = {0};
    assert_int_equal(kiln_buffer_printf(&text, &err,
                                        "[{\"img_name\": \"%s\", \"width\": 8, \"height\": 6, "
                                        "\"position\": [0, 0, 0], \"rotation\": "
                                        "[[1, 0, 0], [0, 1, 0], [0, 0, 1]], \"fx\": 7, \"fy\": 7}, "
                                        "{\"img_name\": \"%s\", \"width\": 8, "
                                        "\"height\": 6, \"position\": [1, 0, 0], \"rotation\": "
                                        "[[1, 0, 0], [0, 1, 0], [0, 0, 1]], "
                                        "\"fx\": 7, \"fy\": 7}]",
                                        a, b),
                     KILN_OK);
    if (kiln_file_write(at(file), text.data, text.size, &err) != KILN_OK) fail_msg("%s", err.msg);
    kiln_buffer_release(&text);
}

static void train_and_test_cameras_are_one_source(void **state)
{
    bool used;
    (void)state;
    put_ply("point_cloud/iteration_7/point_cloud.ply", 3, true);
    put_pairs();
    put("cfg_args", "Namespace(eval=False)");
    put_inria("train_cameras.json", "a", "c");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "tt");
    put_inria("test_cameras.json", "b", "d");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "tTtT");
    assert_string_equal(data.set.split_rule, "as the camera files say");
    assert_string_equal(rows(), "point_cloud/iteration_7/point_cloud.ply");
    (void)why_not("test_cameras.json", &used);
    assert_true(used);
    put("cameras.json", inria_camera);
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "t");
    assert_string_equal(why_not("test_cameras.json", &used), "other cameras take precedence");
}

static void names_that_both_files_have_get_their_folder(void **state)
{
    (void)state;
    put_photo("test/r_0.png", 8, 6);
    put_photo("train/r_0.png", 16, 12);
    put_inria("train_cameras.json", "r_0", "r_1");
    put_inria("test_cameras.json", "r_0", "s");
    find_as(&(kiln_dataset_wishes){0});
    assert_int_equal(data.set.n_cameras, 4);
    assert_string_equal(splits(), "TTtt");
    assert_string_equal(camera("train/r_0")->photo, at("train/r_0.png"));
    assert_int_equal(camera("train/r_0")->width, 16);
    assert_string_equal(camera("test/r_0")->photo, at("test/r_0.png"));
    (void)camera("test/s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(lists_are_used_as_they_stand),
        IN_SCRATCH(transposed_matrices_are_refused),
        IN_SCRATCH(a_frame_overrides_its_file),
        IN_SCRATCH(lenses_that_no_model_describes_are_refused),
        IN_SCRATCH(degrees_of_instant_ngp_are_angles),
        IN_SCRATCH(train_and_test_cameras_are_one_source),
        IN_SCRATCH(names_that_both_files_have_get_their_folder),
        cmocka_unit_test(every_colmap_model_knows_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
