/* dataset_test -- which of several sources a directory gives, for Gaussians, points and cameras. */
#include "tests/unit/dataset_fixture.h"

static void the_last_iteration_counts(void **state)
{
    (void)state;
    put_ply("point_cloud/iteration_7000/point_cloud.ply", 9, true);
    put_ply("point_cloud/iteration_30000/point_cloud.ply", 3, true);
    put_ply("point_cloud/iteration_x/point_cloud.ply", 3, true);
    put_ply("large.ply", 50, true);
    put_ply("input.ply", 5, false);
    find();
    assert_string_equal(rows(), "point_cloud/iteration_30000/point_cloud.ply");
    assert_int_equal(data.set.n_findings, 4);
}

static void the_last_of_many_iterations_counts(void **state)
{
    (void)state;
    char name[64];
    /* the last one first: a folder in memory lists it at its end */
    for (unsigned i = 100; i > 0; i--) {
        snprintf(name, sizeof name, "point_cloud/iteration_%u/point_cloud.ply", i);
        put_ply(name, 3, true);
    }
    find();
    assert_string_equal(rows(), "point_cloud/iteration_100/point_cloud.ply");
}

static void the_largest_splat_file_counts(void **state)
{
    (void)state;
    put_ply("a.ply", 3, true);
    put_ply("b.ply", 5, true);
    put_ply("c.ply", 4, true);
    put_ply("points.ply", 90, false);
    find();
    assert_string_equal(rows(), "b.ply");
}

static void the_last_step_counts(void **state)
{
    bool used;
    (void)state;
    put_ply("splat_7000.ply", 9, true);
    put_ply("splat_30000.ply", 3, true);
    put_ply("splat_x.ply", 2, true);
    find();
    assert_string_equal(rows(), "splat_30000.ply");
    assert_string_equal(why_not("splat_7000.ply", &used), "splat_30000.ply is a later step");
    assert_string_equal(why_not("splat_x.ply", &used), "splat_30000.ply has more: 3");
    kiln_dataset_release(&data);
    put_ply("other.ply", 4, true); /* another pattern: the larger one, as ever */
    find();
    assert_string_equal(rows(), "other.ply");
}

static void the_last_of_many_steps_is_looked_at(void **state)
{
    char name[64];
    (void)state;
    /* by name 100 comes before 99, and only 64 files are opened */
    for (unsigned i = 1; i <= 100; i++) {
        snprintf(name, sizeof name, "z_%u.ply", i);
        put_ply(name, 3, true);
    }
    put_ply("z_9.splat.ply", 2, true);
    find();
    assert_string_equal(rows(), "z_100.ply");
}

static void find_staying(const char *stays)
{
    kiln_error err = {0};
    if (kiln_dataset_find(root, &(kiln_dataset_wishes){.stays = stays}, &data, &err) != KILN_OK)
        fail_msg("%s", err.msg);
}

static void the_choice_of_a_bake_stays(void **state)
{
    bool used;
    const char *const one[] = {"a.png", NULL};
    (void)state;
    put_ply("splat_7000.ply", 9, true);
    put_ply("splat_x.ply", 10, true);
    find_staying(at("splat_7000.ply"));
    assert_string_equal(rows(), "splat_7000.ply");
    assert_string_equal(data.passed_over, "splat_x.ply");
    assert_string_equal(why_not("splat_x.ply", &used),
                        "the bake was made of splat_7000.ply, which stays until --reset");
    kiln_dataset_release(&data);
    assert_int_equal(unlink(at("splat_x.ply")), 0);
    put_ply("splat_30000.ply", 3, true);
    find_staying(at("splat_100.ply")); /* it is gone */
    assert_string_equal(rows(), "splat_30000.ply");
    kiln_dataset_release(&data);
    /* points, beside which Gaussians were exported into a folder */
    assert_int_equal(unlink(at("splat_7000.ply")) | unlink(at("splat_30000.ply")), 0);
    put_colmap("sparse/0", pinhole, one);
    put_ply("exports/splat/splat.ply", 3, true);
    find_staying(at("sparse/0/points3D.txt"));
    assert_string_equal(rows(), "sparse/0/points3D.txt");
    kiln_dataset_release(&data);
    find();
    assert_string_equal(rows(), "exports/splat/splat.ply");
}

static void a_later_step_takes_the_place_of_the_choice(void **state)
{
    bool used;
    (void)state;
    put_ply("splat_7000.ply", 9, true);
    put_ply("splat_30000.ply", 3, true);
    put_ply("splat_30000_x.ply", 3, true);
    find_staying(at("splat_7000.ply"));
    assert_string_equal(rows(), "splat_30000.ply");
    assert_string_equal(data.passed_over, "");
    assert_non_null(strstr(data.set.notes, "'splat_30000.ply' takes the place of 'splat_7000.ply', "
                                           "as a later training step"));
    kiln_dataset_release(&data);
    put_ply("other.ply", 50, true); /* is none, though it has more */
    find_staying(at("splat_7000.ply"));
    assert_string_equal(rows(), "splat_30000.ply");
    assert_string_equal(data.passed_over, "other.ply");
    assert_string_equal(why_not("other.ply", &used),
                        "the bake is of the training of splat_30000.ply until --reset");
    kiln_dataset_release(&data);
    /* the same number of another run */
    put_ply("a/run_1/splat_7.ply", 3, true);
    put_ply("a/run_2/splat_9.ply", 3, true);
    assert_int_equal(unlink(at("splat_7000.ply")) | unlink(at("splat_30000.ply")) |
                         unlink(at("splat_30000_x.ply")) | unlink(at("other.ply")),
                     0);
    find_staying(at("a/run_1/splat_7.ply"));
    assert_string_equal(rows(), "a/run_1/splat_7.ply");
    assert_string_equal(data.passed_over, "a/run_2/splat_9.ply");
}

static void splats_below_are_found(void **state)
{
    const char *const images[] = {"a.png", NULL};
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    (void)state;
    put_colmap("sparse/0", pinhole, images);
    put_ply("a/b/c/d/four.ply", 50, true);
    put_ply(".hidden/x.ply", 50, true);
    put_ply("bake/x.ply", 50, true);
    put("bake/manifest.db", "x");
    put_ply("a/points.ply", 50, false);
    put("a/broken.ply", "ply\n");
    find();
    assert_string_equal(rows(), "sparse/0/points3D.txt");
    kiln_dataset_release(&data);
    put_ply("results/ply/point_cloud_6999.ply", 9, true);
    put_ply("results/ply/point_cloud_29999.ply", 3, true);
    find();
    assert_string_equal(rows(), "results/ply/point_cloud_29999.ply");
    assert_int_equal(data.set.n_cameras, 1);
    kiln_dataset_release(&data);
    put_ply("outputs/1/splat.ply", 9, true); /* runs of one name: the newer one */
    put_ply("outputs/2/splat.ply", 12, true);
    assert_int_equal(utimensat(AT_FDCWD, at("outputs/2/splat.ply"), old, 0), 0);
    find();
    assert_string_equal(rows(), "outputs/1/splat.ply");
    kiln_dataset_release(&data);
    put_ply("own.ply", 1, true); /* the folder's own come first */
    find();
    assert_string_equal(rows(), "own.ply");
}

/* n rows of 32 zeros, packed by gzip or not. */
static void put_splat(const char *name, unsigned n, bool packed)
{
    const unsigned char row[32] = {0};
    gzFile f = gzopen(at(name), packed ? "wb" : "wbT");
    assert_non_null(f);
    for (unsigned i = 0; i < n; i++) assert_int_equal(gzwrite(f, row, sizeof row), sizeof row);
    assert_int_equal(gzclose(f), Z_OK);
}

static void a_packed_file_is_not_taken_for_the_smaller(void **state)
{
    bool used;
    (void)state;
    put_splat("big.splat.gz", 60, true);
    find();
    assert_string_equal(rows(), "big.splat.gz"); /* the only one */
    kiln_dataset_release(&data);
    put_splat("a.splat", 4, false);
    find_refused("holds several splat files, 'a.splat', 'big.splat.gz', but "
                 "'big.splat.gz' must be unpacked to know which one has the most Gaussians; name "
                 "one of them on the command line");
    put_splat("big.splat", 60, false);
    find();
    assert_string_equal(rows(), "big.splat");
    assert_string_equal(why_not("big.splat.gz", &used), "big.splat exists unpacked");
    assert_false(used);
    assert_string_equal(why_not("a.splat", &used), "big.splat has more: 60");
}

static void known_point_names_come_before_larger_clouds(void **state)
{
    (void)state;
    put_ply("all.ply", 90, false);
    put_ply("sparse_pc.ply", 3, false);
    find();
    assert_string_equal(rows(), "sparse_pc.ply");
}

static void a_broken_splat_file_does_not_become_points(void **state)
{
    (void)state;
    put("scene.ply", "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float "
                     "f_dc_0\nend_header\n1 2\n");
    put_ply("input.ply", 5, false);
    find_refused("scene.ply");
}

static void a_broken_file_beside_splats_is_told(void **state)
{
    (void)state;
    put("broken.ply", "ply\nformat ascii 1.0\nelement vertex 3\nend_header\n");
    put_ply("good.ply", 5, true);
    find();
    assert_string_equal(rows(), "good.ply");
    assert_non_null(strstr(data.set.notes, "broken.ply"));
}

static void cameras_come_in_order_of_precedence(void **state)
{
    const char *const images[] = {"c.png", NULL}, *const blender[] = {"b.png", NULL},
                      *const frames[] = {"t.png", NULL};
    (void)state;
    put_photo("t.png", 8, 6);
    put_photo("b.png", 8, 6);
    put_ply("scene.ply", 3, true);
    put_transforms("transforms_train.json", "\"fl_x\": 7", blender);
    find();
    assert_string_equal(data.set.cameras[0].name, "b");
    kiln_dataset_release(&data);
    put_transforms("transforms.json", "\"fl_x\": 7", frames);
    find();
    assert_string_equal(data.set.cameras[0].name, "t");
    kiln_dataset_release(&data);
    put_colmap("sparse/0", pinhole, images);
    find();
    assert_string_equal(data.set.cameras[0].name, "c");
    kiln_dataset_release(&data);
    put("cameras.json", inria_camera);
    find();
    assert_string_equal(data.set.cameras[0].name, "a");
    assert_int_equal(data.set.n_cameras, 1);
    kiln_dataset_release(&data);
    find_with(at("transforms.json"), NULL);
    assert_string_equal(data.set.cameras[0].name, "t");
}

static void a_foreign_cameras_json_is_passed_over(void **state)
{
    const char *const images[] = {"c.png", NULL};
    (void)state;
    put("cameras.json", "{\"viewer\": 3}");
    put_colmap("sparse/0", pinhole, images);
    find();
    assert_string_equal(data.set.cameras[0].name, "c");
    assert_non_null(strstr(data.set.findings[0].why_not, "no cameras"));
}

static void points_follow_the_cameras(void **state)
{
    const char *const frames[] = {"t.png", NULL};
    (void)state;
    put_photo("t.png", 8, 6);
    put_ply("input.ply", 5, false);
    put_ply("clouds/mine.ply", 3, false);
    put_transforms("transforms.json", "\"fl_x\": 7, \"ply_file_path\": \"clouds/mine.ply\"",
                   frames);
    find();
    assert_string_equal(rows(), "clouds/mine.ply");
}

static void a_ply_path_that_leaves_the_folder_is_refused(void **state)
{
    const char *const frames[] = {"t.png", NULL};
    (void)state;
    put_transforms("transforms.json", "\"fl_x\": 7, \"ply_file_path\": \"../mine.ply\"", frames);
    find_refused("ply_file_path");
}

static void the_model_with_most_images_counts(void **state)
{
    const char *const one[] = {"a.png", NULL}, *const two[] = {"b.png", "c.png", NULL};
    (void)state;
    put_colmap("sparse/0", pinhole, one);
    put_colmap("sparse/1", pinhole, two);
    put_colmap("sparse/2", pinhole, two);
    find();
    assert_int_equal(data.set.n_cameras, 2);
    assert_string_equal(rows(), "sparse/1/points3D.txt");
}

static void colmap_is_found_in_each_of_its_places(void **state)
{
    const char *const one[] = {"a.png", NULL},
                      *const places[] = {"colmap/sparse/0",    "sparse",      ".",
                                         "dense/0/sparse",     "dense/0",     "dense/sparse",
                                         "distorted/sparse/0", "sparse_text", "sparse_text/0"};
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char command[TEST_PATH_MAX];
        put_colmap(places[i], pinhole, one);
        find();
        assert_int_equal(data.set.n_cameras, 1);
        kiln_dataset_release(&data);
        snprintf(command, sizeof command, "rm -r '%s'/*", root);
        assert_int_equal(system(command), 0);
    }
}

static void folders_of_a_bake_are_not_looked_into(void **state)
{
    const char *const one[] = {"a.png", NULL};
    (void)state;
    put_ply("scene.ply", 3, true);
    put_colmap("sparse/0", pinhole, one);
    put("sparse/0/manifest.db", "x");
    put_photo("images/a.png", 40, 30);
    find();
    assert_int_equal(data.set.n_cameras, 0);
    kiln_dataset_release(&data);
    assert_int_equal(unlink(at("sparse/0/manifest.db")), 0);
    find_with(NULL, at("images"));
    assert_int_equal(data.set.n_cameras, 1);
    assert_string_equal(data.set.cameras[0].photo, "");
}

static void an_empty_folder_says_what_could_be_in_it(void **state)
{
    (void)state;
    find_refused("nothing to import");
}

static void a_file_by_itself_has_no_cameras(void **state)
{
    kiln_error err = {0};
    (void)state;
    put_ply("scene.ply", 3, true);
    put("cameras.json", inria_camera);
    assert_int_equal(kiln_dataset_find(at("scene.ply"), &(kiln_dataset_wishes){0}, &data, &err),
                     KILN_OK);
    assert_int_equal(data.set.n_cameras, 0);
    assert_string_equal(data.name, "scene");
    assert_string_equal(data.set.root, root);
    kiln_dataset_release(&data);
    assert_int_equal(kiln_dataset_find(at("scene.ply"),
                                       &(kiln_dataset_wishes){.cameras = at("cameras.json")}, &data,
                                       &err),
                     KILN_OK);
    assert_int_equal(data.set.n_cameras, 1);
    assert_non_null(data.reader);
}

static void cfg_args_is_read_and_not_evaluated(void **state)
{
    (void)state;
    put_ply("point_cloud/iteration_1/point_cloud.ply", 3, true);
    put("cfg_args", "Namespace(eval=True, images='photos', my_white_background=False, sh_degree=3, "
                    "source_path='/x', white_background=True)");
    put_photo("photos/a.png", 8, 6);
    put("cameras.json", inria_camera);
    find();
    assert_true(data.has_background && data.background[0] == 1);
    assert_string_equal(
        data.cfg_args,
        "{\"white_background\":true,\"sh_degree\":3,\"eval\":true,\"images\":\"photos\"}");
    assert_string_equal(data.set.cameras[0].photo, at("photos/a.png"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(the_last_iteration_counts),
        IN_SCRATCH(the_last_of_many_iterations_counts),
        IN_SCRATCH(the_largest_splat_file_counts),
        IN_SCRATCH(the_last_step_counts),
        IN_SCRATCH(the_last_of_many_steps_is_looked_at),
        IN_SCRATCH(the_choice_of_a_bake_stays),
        IN_SCRATCH(a_later_step_takes_the_place_of_the_choice),
        IN_SCRATCH(splats_below_are_found),
        IN_SCRATCH(a_packed_file_is_not_taken_for_the_smaller),
        IN_SCRATCH(known_point_names_come_before_larger_clouds),
        IN_SCRATCH(a_broken_splat_file_does_not_become_points),
        IN_SCRATCH(a_broken_file_beside_splats_is_told),
        IN_SCRATCH(cameras_come_in_order_of_precedence),
        IN_SCRATCH(a_foreign_cameras_json_is_passed_over),
        IN_SCRATCH(points_follow_the_cameras),
        IN_SCRATCH(a_ply_path_that_leaves_the_folder_is_refused),
        IN_SCRATCH(the_model_with_most_images_counts),
        IN_SCRATCH(colmap_is_found_in_each_of_its_places),
        IN_SCRATCH(folders_of_a_bake_are_not_looked_into),
        IN_SCRATCH(an_empty_folder_says_what_could_be_in_it),
        IN_SCRATCH(a_file_by_itself_has_no_cameras),
        IN_SCRATCH(cfg_args_is_read_and_not_evaluated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
