/* dataset_test -- which of several sources a directory gives, how cameras are named, fitted to photos and split.
 *
 * Data sets are made in a scratch folder; photos are tiny PNGs of our own writer. */
#include "base/file.h"
#include "stages/cameras/camera_file.h"
#include "stages/files/json_file.h"
#include "stages/image/image.h"
#include "stages/import/dataset/dataset.h"
#include "tests/unit/test_folder.h"

#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

static char root[TEST_FOLDER_MAX];
static kiln_dataset data;

static int make_root(void **state)
{
    (void)state;
    return test_folder_new(root, "dataset");
}

static int remove_root(void **state)
{
    (void)state;
    kiln_dataset_release(&data);
    return test_folder_remove(root);
}

static const char *at(const char *name)
{
    static char path[4][TEST_PATH_MAX];
    static unsigned turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", root, name);
    return p;
}

static void put(const char *name, const char *text)
{
    kiln_error err = {0};
    if (kiln_file_write(at(name), text, strlen(text), &err) != KILN_OK) fail_msg("%s", err.msg);
}

static void put_photo(const char *name, uint32_t width, uint32_t height)
{
    kiln_error err = {0};
    float *black = calloc((size_t)width * height, 3 * sizeof *black);
    assert_non_null(black);
    if (kiln_picture_write(&(kiln_picture_job){.path = at(name),
                                               .format = KILN_PNG8,
                                               .data = black,
                                               .width = width,
                                               .height = height,
                                               .step = 3,
                                               .channels = 3,
                                               .seen = &(kiln_product_seen){.overwrite = 1}},
                           &err) != KILN_OK)
        fail_msg("%s", err.msg);
    free(black);
}

/* A PLY of n points, or of n Gaussians. */
static void put_ply(const char *name, unsigned n, bool splats)
{
    static const char *const names[] = {"x",       "y",       "z",       "f_dc_0", "f_dc_1", "f_dc_2", "opacity",
                                        "scale_0", "scale_1", "scale_2", "rot_0",  "rot_1",  "rot_2",  "rot_3"};
    kiln_buffer b = {0};
    kiln_error err = {0};
    const int columns = splats ? 14 : 3;
    assert_int_equal(kiln_buffer_printf(&b, &err, "ply\nformat ascii 1.0\nelement vertex %u\n", n), KILN_OK);
    for (int i = 0; i < columns; i++) assert_int_equal(kiln_buffer_printf(&b, &err, "property float %s\n", names[i]), KILN_OK);
    assert_int_equal(kiln_buffer_printf(&b, &err, "end_header\n"), KILN_OK);
    for (unsigned k = 0; k < n; k++)
        for (int i = 0; i < columns; i++)
            assert_int_equal(kiln_buffer_printf(&b, &err, "%u%c", k + 1, i == columns - 1 ? '\n' : ' '), KILN_OK);
    if (kiln_file_write(at(name), b.data, b.size, &err) != KILN_OK) fail_msg("%s", err.msg);
    kiln_buffer_release(&b);
}

static void put_transforms(const char *name, const char *keys, const char *const *paths)
{
    kiln_buffer b = {0};
    kiln_error err = {0};
    assert_int_equal(kiln_buffer_printf(&b, &err, "{%s, \"frames\": [", keys), KILN_OK);
    for (int i = 0; paths[i]; i++)
        assert_int_equal(
            kiln_buffer_printf(&b, &err,
                               "%s{\"file_path\": \"%s\", \"transform_matrix\": [[1,0,0,%d],[0,1,0,2],[0,0,1,3],[0,0,0,1]]}",
                               i ? ", " : "", paths[i], i),
            KILN_OK);
    assert_int_equal(kiln_buffer_printf(&b, &err, "]}"), KILN_OK);
    if (kiln_file_write(at(name), b.data, b.size, &err) != KILN_OK) fail_msg("%s", err.msg);
    kiln_buffer_release(&b);
}

/* One PINHOLE or SIMPLE_RADIAL camera, images by name. */
static void put_colmap(const char *folder, const char *camera, const char *const *images)
{
    char name[256];
    kiln_buffer b = {0};
    kiln_error err = {0};
    snprintf(name, sizeof name, "%s/cameras.txt", folder);
    put(name, camera);
    for (int i = 0; images[i]; i++)
        assert_int_equal(kiln_buffer_printf(&b, &err, "%d 1 0 0 0 %d 0 0 1 %s\n\n", i + 1, i, images[i]), KILN_OK);
    assert_int_equal(kiln_buffer_put(&b, "", 1, &err), KILN_OK);
    snprintf(name, sizeof name, "%s/images.txt", folder);
    put(name, (const char *)b.data);
    snprintf(name, sizeof name, "%s/points3D.txt", folder);
    put(name, "1 0 0 0 255 0 0 1\n2 1 0 0 255 0 0 1\n");
    kiln_buffer_release(&b);
}

static const char pinhole[] = "1 PINHOLE 40 30 50 51 20 15\n";
static const char inria_camera[] = "[{\"id\": 0, \"img_name\": \"a\", \"width\": 8, \"height\": 6, \"position\": [0, 0, 0], "
                                   "\"rotation\": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], \"fx\": 7, \"fy\": 7}]";

static void find_with(const char *cameras, const char *avoid)
{
    kiln_error err = {0};
    if (kiln_dataset_find(root, &(kiln_dataset_wishes){.cameras = cameras, .avoid = avoid}, &data, &err) != KILN_OK)
        fail_msg("%s", err.msg);
}

static void find(void) { find_with(NULL, NULL); }

static void find_refused(const char *because)
{
    kiln_error err = {0};
    assert_int_equal(kiln_dataset_find(root, &(kiln_dataset_wishes){0}, &data, &err), KILN_E_INPUT);
    if (!strstr(err.msg, because)) fail_msg("'%s' does not say '%s'", err.msg, because);
}

static const char *rows(void) { return data.rows_path + strlen(root) + 1; }

static const char *why_not(const char *name, bool *used)
{
    *used = false;
    for (uint32_t i = 0; i < data.set.n_findings; i++) {
        if (strcmp(data.set.findings[i].path, at(name)) != 0) continue;
        *used = data.set.findings[i].used;
        return data.set.findings[i].why_not;
    }
    return "";
}

static void assert_near(double a, double b) { assert_true(fabs(a - b) < 1e-9); }

/* ---- precedence ----------------------------------------------------------------------------------------------------------- */

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
    for (unsigned i = 100; i > 0; i--) { /* the last one first: a folder in memory lists it at its end */
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
    assert_string_equal(why_not("splat_x.ply", &used), "splat_30000.ply has more, 3");
    kiln_dataset_release(&data);
    put_ply("other.ply", 4, true); /* another pattern: the larger one, as ever */
    find();
    assert_string_equal(rows(), "other.ply");
}

static void the_last_of_many_steps_is_looked_at(void **state)
{
    char name[64];
    (void)state;
    for (unsigned i = 1; i <= 100; i++) { /* by name 100 comes before 99, and only 64 files are opened */
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
    if (kiln_dataset_find(root, &(kiln_dataset_wishes){.stays = stays}, &data, &err) != KILN_OK) fail_msg("%s", err.msg);
}

static void the_choice_of_a_bake_stays(void **state)
{
    bool used;
    const char *const one[] = {"a.png", NULL};
    (void)state;
    put_ply("splat_7000.ply", 9, true);
    put_ply("splat_30000.ply", 3, true);
    find_staying(at("splat_7000.ply"));
    assert_string_equal(rows(), "splat_7000.ply");
    assert_non_null(
        strstr(data.set.notes, "'splat_7000.ply' stays, as the bake was made of it; 'splat_30000.ply' would be chosen now"));
    assert_string_equal(why_not("splat_30000.ply", &used), "the bake was made of splat_7000.ply, which stays until --reset");
    kiln_dataset_release(&data);
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
    find_refused("holds several splat files, 'a.splat', 'big.splat.gz', and which has most Gaussians is not known before "
                 "'big.splat.gz' is unpacked; name one of them on the command line");
    put_splat("big.splat", 60, false);
    find();
    assert_string_equal(rows(), "big.splat");
    assert_string_equal(why_not("big.splat.gz", &used), "big.splat is there, unpacked");
    assert_false(used);
    assert_string_equal(why_not("a.splat", &used), "big.splat has more, 60");
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
    put("scene.ply", "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float f_dc_0\nend_header\n1 2\n");
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
    const char *const images[] = {"c.png", NULL}, *const blender[] = {"b.png", NULL}, *const frames[] = {"t.png", NULL};
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
    put_transforms("transforms.json", "\"fl_x\": 7, \"ply_file_path\": \"clouds/mine.ply\"", frames);
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
    const char *const one[] = {"a.png", NULL}, *const places[] = {"colmap/sparse/0",    "sparse",      ".",
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
    assert_int_equal(kiln_dataset_find(at("scene.ply"), &(kiln_dataset_wishes){0}, &data, &err), KILN_OK);
    assert_int_equal(data.set.n_cameras, 0);
    assert_string_equal(data.name, "scene");
    assert_string_equal(data.set.root, root);
    kiln_dataset_release(&data);
    assert_int_equal(kiln_dataset_find(at("scene.ply"), &(kiln_dataset_wishes){.cameras = at("cameras.json")}, &data, &err),
                     KILN_OK);
    assert_int_equal(data.set.n_cameras, 1);
    assert_non_null(data.reader);
}

static void cfg_args_is_read_and_not_evaluated(void **state)
{
    (void)state;
    put_ply("point_cloud/iteration_1/point_cloud.ply", 3, true);
    put("cfg_args",
        "Namespace(eval=True, images='photos', my_white_background=False, sh_degree=3, source_path='/x', white_background=True)");
    put_photo("photos/a.png", 8, 6);
    put("cameras.json", inria_camera);
    find();
    assert_true(data.has_background && data.background[0] == 1);
    assert_string_equal(data.cfg_args, "{\"white_background\":true,\"sh_degree\":3,\"eval\":true,\"images\":\"photos\"}");
    assert_string_equal(data.set.cameras[0].photo, at("photos/a.png"));
}

/* ---- names and photos ------------------------------------------------------------------------------------------------------ */

static void names_lose_image_folder_and_extension_only(void **state)
{
    const char *const frames[] = {"./images/a.b.png", "images_4/left/c.JPG", "sub/images/d", ".\\\\images\\\\e.jpeg", NULL};
    const char *const names[] = {"a.b", "e", "left/c", "sub/images/d"};
    (void)state;
    put_transforms("transforms.json", "\"fl_x\": 7, \"w\": 8, \"h\": 6", frames);
    put_photo("images/a.b.png", 8, 6);
    put_photo("images_4/left/c.JPG", 8, 6);
    put_photo("sub/images/d.png", 8, 6);
    put_photo("images/e.jpeg", 8, 6);
    find();
    assert_int_equal(data.set.n_cameras, 4);
    for (int i = 0; i < 4; i++) assert_string_equal(data.set.cameras[i].name, names[i]);
}

static void equal_names_are_refused(void **state)
{
    const char *const images[] = {"a.png", "a.jpg", NULL};
    (void)state;
    put_colmap("sparse/0", pinhole, images);
    find_refused("occurs twice");
}

static void intrinsics_follow_the_photo(void **state)
{
    const char *const images[] = {"a.png", NULL};
    (void)state;
    put_colmap("sparse/0", pinhole, images);
    put_photo("images_2/a.png", 20, 15);
    find();
    const kiln_camera *c = &data.set.cameras[0];
    assert_int_equal(c->width, 20);
    assert_int_equal(c->height, 15);
    assert_near(c->fx, 25);
    assert_near(c->fy, 25.5);
    assert_near(c->cx, 10);
    assert_near(c->params[3], 7.5);
    assert_non_null(strstr(data.set.notes, "scaled"));
}

static void one_focal_length_becomes_two_when_axes_scale_apart(void **state)
{
    const char *const images[] = {"a.png", NULL};
    (void)state;
    put_colmap("sparse/0", "1 SIMPLE_RADIAL 40 30 50 20 15 0.1\n", images);
    put_photo("images/a.png", 20, 14);
    find();
    const kiln_camera *c = &data.set.cameras[0];
    assert_string_equal(c->model, "OPENCV");
    assert_int_equal(c->n_params, 8);
    assert_near(c->fx, 25);
    assert_near(c->fy, 50 * 14 / 30.);
    assert_near(c->params[4], 0.1);
    assert_near(c->params[5], 0);
    assert_true(c->distorted);
}

static void unreadable_photos_leave_the_camera(void **state)
{
    const char *const images[] = {"a.png", NULL};
    (void)state;
    put_colmap("sparse/0", pinhole, images);
    put("images/a.png", "RIFF....WEBP");
    find();
    assert_int_equal(data.set.n_cameras, 1);
    assert_string_equal(data.set.cameras[0].photo, "");
    assert_non_null(strstr(data.set.notes, "cannot be read"));
}

static void a_photo_counts_once_wherever_it_was_sought(void **state)
{
    const char *const frames[] = {"images/a.png", "images/b.png", "images/c.png", "images/d.png", NULL};
    (void)state;
    put_transforms("transforms.json", "\"fl_x\": 7", frames);
    put("images/a.png", "GIF89a");
    put("images_2/a.png", "GIF89a");
    put("images/b.png", "GIF89a");
    put("images/c.png", "GIF89a");
    put_photo("images_2/c.png", 4, 3);
    put_photo("images/d.png", 8, 6);
    find();
    assert_int_equal(data.set.n_cameras, 2);
    assert_int_equal(data.set.frames_unreadable, 2);
    assert_non_null(strstr(data.set.notes, "2 photos cannot be read and are left out"));
    assert_non_null(strstr(data.set.notes, "of 1 photo one file cannot be read and another is taken"));
}

static void photos_of_a_kind_that_is_not_read_are_no_missing_ones(void **state)
{
    const char *const frames[] = {"a.gif", "b.gif", NULL};
    (void)state;
    put_transforms("transforms.json", "\"fl_x\": 7", frames);
    put("a.gif", "GIF89a");
    put("b.gif", "GIF89a");
    find_refused("none of the photos of 2 frames in '");
    assert_int_equal(unlink(at("b.gif")), 0);
    find_refused("none of the 2 frames in '");
    find_refused("The first missing, 'b.gif', was sought in '.'");
}

static void masks_are_found_beside_a_transforms_json(void **state)
{
    const char *const frames[] = {"images/0001.jpg", "images/0002.jpg", "images/0003.jpg", NULL};
    (void)state;
    put_transforms("transforms.json", "\"fl_x\": 7, \"w\": 8, \"h\": 6", frames);
    for (int i = 0; frames[i]; i++) put_photo(frames[i], 8, 6);
    put_photo("masks/0001.jpg.png", 8, 6);
    put("masks/0002.jpg.png", "GIF89a");
    put("masks/0002.png", "GIF89a");
    put_photo("masks/0003.jpg.png", 8, 2);
    find();
    assert_int_equal(data.set.n_masks, 1);
    assert_string_equal(data.set.cameras[0].mask, at("masks/0001.jpg.png"));
    assert_non_null(strstr(data.set.notes, "1 mask cannot be read and is left out; the first: "));
    assert_non_null(strstr(data.set.notes, "0002.jpg.png"));
    assert_non_null(strstr(data.set.notes, "1 mask does not fit its photo and is left out; the first: "));
}

static void frames_without_photo_are_drawn_in_the_size_of_the_file(void **state)
{
    const char *const frames[] = {"a.png", "b.png", NULL};
    kiln_error err = {0};
    (void)state;
    put_transforms("transforms.json", "\"fl_x\": 7, \"w\": 8, \"h\": 6", frames);
    put_photo("b.png", 8, 6);
    assert_int_equal(kiln_cameras_read(at("transforms.json"), NULL, &data.set, &err), KILN_OK);
    assert_int_equal(data.set.n_cameras, 2);
    kiln_dataset_release(&data);
    find();
    assert_int_equal(data.set.n_cameras, 2);
    assert_true(data.set.cameras[0].width == 8 && data.set.cameras[0].height == 6 && !data.set.cameras[0].photo[0]);
    assert_non_null(strstr(data.set.notes, "1 of 2 cameras have no photo; what has none is drawn, not measured"));
    kiln_dataset_release(&data);
    put_transforms("transforms.json", "\"fl_x\": 7", frames); /* no size: only a photo has one */
    find();
    assert_int_equal(data.set.n_cameras, 1);
    assert_int_equal(data.set.frames_dropped, 1);
    kiln_dataset_release(&data);
    assert_int_equal(unlink(at("b.png")), 0);
    find_refused("and the file has no size to draw them in (w and h)");
}

static void absolute_paths_count_by_their_last_parts(void **state)
{
    const char *const windows[] = {"D:\\\\work\\\\cap\\\\images\\\\left\\\\a.png", "D:\\\\work\\\\cap\\\\images\\\\right\\\\a.png",
                                   NULL};
    const char *const posix[] = {"/home/me/scan/rgb/a.jpg", "/home/me/scan/rgb/b.jpg", NULL}, *const server[] = {
                                                                                                  "//nas/cap/images_2/a.png", NULL};
    const char *const blender[] = {"/data/chair/train/r_0", NULL}, *const tests[] = {"/data/chair/test/r_0", NULL};
    const char *const mixed[] = {"images/a.png", "/x/images/b.png", NULL}, *const up[] = {"/x/../images/b.png", NULL};
    (void)state;
    put_transforms("transforms.json", "\"fl_x\": 7, \"w\": 8, \"h\": 6", windows);
    put_photo("images/left/a.png", 8, 6);
    put_photo("images/right/a.png", 8, 6);
    find();
    assert_string_equal(data.set.cameras[0].name, "left/a");
    assert_string_equal(data.set.cameras[1].photo, at("images/right/a.png"));
    assert_non_null(strstr(data.set.notes, "has absolute paths of another machine: 2 of them were sought by their last parts"));
    kiln_dataset_release(&data);
    put_transforms("transforms.json", "\"fl_x\": 7, \"w\": 8, \"h\": 6", posix);
    put_photo("scan/rgb/a.jpg", 8, 6);
    put_photo("b.png", 8, 6);
    find();
    assert_string_equal(data.set.cameras[0].name, "a");
    assert_string_equal(data.set.cameras[0].photo, at("scan/rgb/a.jpg")); /* by its longest end */
    assert_string_equal(data.set.cameras[1].photo, at("b.png"));          /* by its shortest, with another extension */
    kiln_dataset_release(&data);
    put_transforms("transforms.json", "\"fl_x\": 7, \"w\": 8, \"h\": 6", server);
    find();
    assert_string_equal(data.set.cameras[0].name, "a");
    assert_string_equal(data.set.cameras[0].photo, "");
    kiln_dataset_release(&data);
    put_transforms("transforms.json", "\"fl_x\": 7, \"w\": 8, \"h\": 6", mixed);
    put_photo("images/a.png", 8, 6);
    put_photo("images/b.png", 8, 6);
    find();
    assert_string_equal(data.set.cameras[1].photo, at("images/b.png"));
    kiln_dataset_release(&data);
    put_transforms("transforms.json", "\"fl_x\": 7, \"w\": 8, \"h\": 6", up);
    find();
    assert_string_equal(data.set.cameras[0].photo, at("images/b.png"));
    kiln_dataset_release(&data);
    assert_int_equal(unlink(at("transforms.json")), 0);
    put_transforms("transforms_train.json", "\"camera_angle_x\": 0.7", blender);
    put_transforms("transforms_test.json", "\"camera_angle_x\": 0.7", tests);
    put_photo("train/r_0.png", 8, 6);
    put_photo("test/r_0.png", 8, 6);
    find();
    assert_string_equal(data.set.cameras[0].name, "test/r_0");
    assert_string_equal(data.set.cameras[0].photo, at("test/r_0.png"));
    assert_string_equal(data.set.cameras[1].name, "train/r_0");
}

static void absolute_paths_are_never_opened(void **state)
{
    char there[TEST_PATH_MAX];
    const char *const frames[] = {there, NULL}, *const none[] = {"/etc/passwd", NULL};
    (void)state;
    put_photo("real.png", 8, 6);
    snprintf(there, sizeof there, "%s", at("real.png"));
    put_transforms("scene/transforms.json", "\"fl_x\": 7, \"w\": 8, \"h\": 6", frames);
    kiln_error err = {0};
    assert_int_equal(kiln_dataset_find(at("scene"), &(kiln_dataset_wishes){0}, &data, &err), KILN_OK);
    assert_string_equal(data.set.cameras[0].photo, "");
    kiln_dataset_release(&data);
    put_transforms("transforms.json", "\"fl_x\": 7, \"w\": 8, \"h\": 6", none);
    find_refused("'/etc/passwd', is refused: it is absolute and no photo");
}

static void names_that_differ_in_case_are_matched(void **state)
{
    const char *const images[] = {"V0.PNG", "left/CAF\xc3\x89.JPG", "two.png", NULL};
    (void)state;
    put_colmap("sparse/0", pinhole, images);
    put_photo("images/v0.png", 40, 30);
    put_photo("images/Left/cafe\xcc\x81.png", 40, 30); /* the accent apart, another extension */
    put_photo("images/Two.png", 40, 30);
    put_photo("images/TWO.png", 40, 30);
    put_photo("masks/v0.png.png", 40, 30);
    find();
    assert_string_equal(data.set.cameras[0].name, "V0");
    assert_string_equal(data.set.cameras[0].photo, at("images/v0.png"));
    assert_string_equal(data.set.cameras[0].mask, at("masks/v0.png.png"));
    assert_string_equal(data.set.cameras[1].photo, at("images/Left/cafe\xcc\x81.png"));
    assert_string_equal(data.set.cameras[2].photo, ""); /* two could be meant */
    assert_non_null(
        strstr(data.set.notes,
               "2 photos are found by names that differ in case or in Unicode normalisation; the first: 'V0.PNG' is 'v0.png'"));
}

static void photos_of_another_shape_are_named(void **state)
{
    const char *const images[] = {"a.png", "b.png", NULL};
    (void)state;
    put_colmap("sparse/0", pinhole, images);
    put_photo("images/a.png", 40, 24);
    put_photo("images/b.png", 21, 15); /* half the size but for rounding */
    find();
    assert_non_null(strstr(data.set.notes, "1 photo was cropped or stretched since its camera was made"));
    assert_non_null(strstr(data.set.notes, "images/a.png' is 40 x 24 pixels, its camera 40 x 30"));
}

static void masks_of_realityscan_are_found(void **state)
{
    const char *const images[] = {"a.jpg", "b.jpg", NULL};
    (void)state;
    put_colmap("sparse/0", pinhole, images);
    put_photo("images/a.jpg", 40, 30);
    put_photo("images/b.jpg", 40, 30);
    put_photo("masks/a.jpg.mask.png", 40, 30);
    put_photo("masks/b.mask.png", 40, 30);
    find();
    assert_int_equal(data.set.n_masks, 2);
    assert_string_equal(data.set.cameras[0].mask, at("masks/a.jpg.mask.png"));
    kiln_dataset_release(&data);
    assert_int_equal(unlink(at("masks/a.jpg.mask.png")) | unlink(at("masks/b.mask.png")), 0);
    find();
    assert_null(strstr(data.set.notes, "none is the mask")); /* an empty folder */
    kiln_dataset_release(&data);
    put_photo("masks/mask_of_b.png", 40, 30);
    put("masks/readme.txt", "x");
    find();
    assert_int_equal(data.set.n_masks, 0);
    assert_non_null(
        strstr(data.set.notes, "masks' holds 1 picture, and none is the mask of a photo; the first is 'mask_of_b.png'"));
}

static void every_source_is_listed(void **state)
{
    const char *const images[] = {"a.png", NULL};
    (void)state;
    put_colmap("sparse/0", pinhole, images);
    put_photo("images/a.png", 40, 30);
    find();
    assert_int_equal(data.set.n_sources, 3);
    assert_string_equal(data.set.sources[0].path, at("images/a.png"));
    assert_string_equal(data.set.sources[0].role, "photo");
    assert_string_equal(data.set.sources[1].path, at("sparse/0/cameras.txt"));
    assert_true(data.set.sources[1].size == strlen(pinhole) && data.set.sources[1].inode);
}

/* ---- split ------------------------------------------------------------------------------------------------------------------ */

static void every_8th_name_is_test_when_nothing_says_so(void **state)
{
    char names[17][16];
    const char *images[18] = {0};
    (void)state;
    for (int i = 0; i < 17; i++) {
        snprintf(names[i], sizeof names[i], "p%02d.png", 16 - i);
        images[i] = names[i];
    }
    put_colmap("sparse/0", pinhole, images);
    find();
    for (uint32_t i = 0; i < 17; i++) {
        snprintf(names[0], sizeof names[0], "p%02u", i);
        assert_string_equal(data.set.cameras[i].name, names[0]);
        assert_string_equal(data.set.cameras[i].split, i % 8 == 0 ? "test" : "train");
    }
}

static void explicit_splits_win(void **state)
{
    const char *const frames[] = {"a.png", "b.png", "test/c.png", NULL};
    (void)state;
    put_photo("a.png", 8, 6);
    put_photo("b.png", 8, 6);
    put_photo("test/c.png", 8, 6);
    put_transforms("transforms.json", "\"fl_x\": 7", frames);
    find();
    assert_string_equal(data.set.cameras[0].split, "train");
    assert_string_equal(data.set.cameras[2].split, "test");
    kiln_dataset_release(&data);
    put_transforms("transforms.json", "\"fl_x\": 7, \"test_filenames\": [\"./b.png\"]", frames);
    find();
    assert_string_equal(data.set.cameras[1].split, "test");
    assert_string_equal(data.set.cameras[2].split, "train");
}

/* ---- camera files ------------------------------------------------------------------------------------------------------------ */

static void lists_are_used_as_they_stand(void **state)
{
    kiln_error err = {0};
    (void)state;
    put("path.json", "[{\"R\": [0,-1,0, 1,0,0, 0,0,1], \"t\": [1,2,3], \"fx\": 9, \"fy\": 8, \"cx\": 3, \"cy\": 2.5, \"width\": 7, "
                     "\"height\": 5},"
                     " {\"R\": [[1,0,0],[0,1,0],[0,0,1]], \"t\": [0,0,0], \"fx\": 9, \"fy\": 9, \"width\": 8, \"height\": 6, "
                     "\"name\": \"front\"}]");
    if (kiln_cameras_read(at("path.json"), NULL, &data.set, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(data.set.n_cameras, 2);
    const kiln_camera *c = &data.set.cameras[0];
    assert_string_equal(c->name, "cam0");
    assert_true(c->r[1] == -1 && c->r[3] == 1 && c->t[2] == 3 && c->fx == 9 && c->fy == 8 && c->cy == 2.5 && c->width == 7);
    assert_string_equal(data.set.cameras[1].name, "front");
    assert_true(data.set.cameras[1].cx == 4);
}

static void transposed_matrices_are_refused(void **state)
{
    (void)state;
    put("transforms.json", "{\"fl_x\": 7, \"w\": 8, \"h\": 6, \"frames\": [{\"file_path\": \"a\", \"transform_matrix\": "
                           "[[1,0,0,0],[0,1,0,0],[0,0,1,0],[4,5,6,1]]}]}");
    find_refused("transposed");
}

static void a_frame_overrides_its_file(void **state)
{
    (void)state;
    put_photo("a.png", 8, 6);
    put("transforms.json", "{\"fl_x\": 7, \"fl_y\": 9, \"cx\": 1, \"frames\": [{\"file_path\": \"a.png\", \"camera_angle_x\": "
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

static void nesting_ends_at_64(void **state)
{
    char text[256];
    json_t *json;
    kiln_error err = {0};
    (void)state;
    for (int depth = 64; depth <= 65; depth++) {
        const int n = snprintf(text, sizeof text, "%.*s\"[[[\\\"[[\"%.*s", depth,
                               "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", depth,
                               "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
        assert_int_equal(n, 2 * depth + 9);
        put("deep.json", text);
        assert_int_equal(kiln_json_file_read(at("deep.json"), &json, &err), depth == 64 ? KILN_OK : KILN_E_INPUT);
        json_decref(json);
    }
    assert_non_null(strstr(err.msg, "nested deeper"));
}

/* open, then n times item with a comma between, then close; free() it. "%u" in item is the index. */
static char *repeated(const char *open, const char *item, const char *close, unsigned n)
{
    char *text = malloc(strlen(open) + strlen(close) + (size_t)n * (strlen(item) + 12) + 1);
    assert_non_null(text);
    char *to = text + sprintf(text, "%s", open);
    for (unsigned i = 0; i < n; i++) {
        const char *at = strstr(item, "%u");
        if (i) *to++ = ',';
        to += at ? sprintf(to, "%.*s%u%s", (int)(at - item), item, i, at + 2) : sprintf(to, "%s", item);
    }
    strcpy(to, close);
    return text;
}

static kiln_status parse(const char *text, uint64_t limit, json_t **out, kiln_error *err)
{
    return kiln_json_text_read("x.json", (const unsigned char *)text, strlen(text), limit, out, err);
}

static size_t bytes_in_use(void)
{
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* What is expected of a text before it is parsed is never less than jansson takes, and not three times as much. */
static void values_are_counted_by_the_memory_that_they_take(void **state)
{
    static const struct {
        const char *open, *item, *close;
    } shapes[] = {
        {"[", "1.5e-3", "]"},
        {"[", "-1", "]"},
        {"[", "null", "]"},
        {"[", "[]", "]"},
        {"[", "{}", "]"},
        {"[", "\"a\"", "]"},
        {"[", "\"a text of forty bytes, [{:,\\\"1 2 3 4 5 6 7\"", "]"},
        {"{", "\"%u\":null", "}"},
        {"{", "\"a key that is longer than others %u\":7", "}"},
        {"[", "[1,2,3,4,5,6,7,8,9]", "]"},
        {"[", "{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9}", "]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        json_t *json;
        kiln_error err = {0};
        char *text = repeated(shapes[i].open, shapes[i].item, shapes[i].close, (1 << 16) + 1);
        const size_t before = bytes_in_use();
        if (parse(text, UINT64_MAX, &json, &err) != KILN_OK) fail_msg("%s", err.msg);
        const size_t taken = bytes_in_use() - before;
        json_decref(json);
        if (taken) { /* 0: a sanitizer has its own allocator */
            if (parse(text, taken - 1, &json, &err) != KILN_E_INPUT) fail_msg("%s: takes %zu bytes", shapes[i].item, taken);
            assert_non_null(strstr(err.msg, "so many values"));
            if (parse(text, 3 * taken, &json, &err) != KILN_OK) fail_msg("%zu bytes, but %s", taken, err.msg);
            json_decref(json);
        }
        free(text);
    }
}

/* 6.6 MB that would take 512 MiB; and a file of 100,000 frames, which is not refused. */
static void json_of_too_many_values_is_refused_before_it_is_parsed(void **state)
{
    static const char frame[] = "{\"file_path\":\"images/frame_%u.jpg\",\"colmap_im_id\":1,\"transform_matrix\":[[0.1234567891,"
                                "-0.1234567891,0.1234567891,-1.234567891],[0.1234567891,-0.1234567891,0.1234567891,-1.234567891],"
                                "[0.1234567891,-0.1234567891,0.1234567891,-1.234567891],[0.0,0.0,0.0,1.0]],\"fl_x\":1000.25,"
                                "\"fl_y\":1000.5,\"cx\":960.25,\"cy\":540.25,\"w\":1920,\"h\":1080,\"k1\":0.01,\"k2\":0.002}";
    json_t *json;
    kiln_error err = {0};
    (void)state;
    char *text = repeated("[", "{}", "]", 2200000);
    put("many.json", text);
    assert_int_equal(kiln_json_file_read(at("many.json"), &json, &err), KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "so many values"));
    assert_int_equal(remove(at("many.json")), 0);
    free(text);
    text = repeated("{\"frames\":[", frame, "]}", 100000);
    if (parse(text, KILN_JSON_TREE_LIMIT, &json, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(json_array_size(json_object_get(json, "frames")), 100000);
    json_decref(json);
    free(text);
}

/* 24 bytes times 2^61 is 0 in 64 bits. */
static void keypoint_counts_whose_bytes_overflow_are_refused(void **state)
{
    const struct {
        uint64_t count;
        uint32_t id, model;
        uint64_t width, height;
        double params[4];
    } camera = {1, 1, 1, 40, 30, {50, 51, 20, 15}};
    const double pose[7] = {1};
    const uint32_t one = 1;
    const uint64_t count = 1, points = (uint64_t)1 << 61;
    kiln_buffer b = {0};
    kiln_error err = {0};
    (void)state;
    assert_int_equal(kiln_file_write(at("sparse/0/cameras.bin"), &camera, sizeof camera, &err), KILN_OK);
    assert_int_equal(kiln_buffer_put(&b, &count, sizeof count, &err), KILN_OK);
    assert_int_equal(kiln_buffer_put(&b, &one, sizeof one, &err), KILN_OK);
    assert_int_equal(kiln_buffer_put(&b, pose, sizeof pose, &err), KILN_OK);
    assert_int_equal(kiln_buffer_put(&b, &one, sizeof one, &err), KILN_OK);
    assert_int_equal(kiln_buffer_put(&b, "a.png", 6, &err), KILN_OK);
    assert_int_equal(kiln_buffer_put(&b, &points, sizeof points, &err), KILN_OK);
    assert_int_equal(kiln_file_write(at("sparse/0/images.bin"), b.data, b.size, &err), KILN_OK);
    kiln_buffer_release(&b);
    put("sparse/0/points3D.bin", "x");
    find_refused("keypoints do not fit");
}

static void keys_that_occur_twice_are_refused(void **state)
{
    (void)state;
    put("transforms.json", "{\"fl_x\": 7, \"fl_x\": 8, \"frames\": []}");
    find_refused("not valid JSON");
}

static void keypoint_lines_have_no_bound(void **state)
{
    kiln_buffer b = {0};
    kiln_error err = {0};
    (void)state;
    put("sparse/0/cameras.txt", pinhole);
    put("sparse/0/points3D.txt", "1 0 0 0 255 0 0 1\n");
    for (int image = 1; image <= 2; image++) {
        assert_int_equal(kiln_buffer_printf(&b, &err, "%d 1 0 0 0 0 0 0 1 photo %d.png\n", image, image), KILN_OK);
        for (int i = 0; i < 150000; i++) assert_int_equal(kiln_buffer_put(&b, "12.3456 65.4321 -1 ", 19, &err), KILN_OK);
        assert_int_equal(kiln_buffer_put(&b, "\n", 1, &err), KILN_OK);
    }
    assert_int_equal(kiln_file_write(at("sparse/0/images.txt"), b.data, b.size, &err), KILN_OK);
    kiln_buffer_release(&b);
    find();
    assert_int_equal(data.set.n_cameras, 2);
    assert_string_equal(data.set.cameras[1].name, "photo 2");
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
        assert_true(m->n_params <= KILN_CAMERA_PARAMS && (!m->n_focal || m->n_focal + 2 + m->n_bending <= m->n_params));
        assert_int_equal(m->stretched != NULL, m->n_focal == 1);
        if (m->stretched) assert_true(kiln_camera_model_by_name(m->stretched)->n_params > m->n_params);
        assert_int_equal(kiln_camera_take_lens(&c, m, params, "file", "camera 1", &err), KILN_OK);
        kiln_camera_scale(&c, 2, 3, 80, 90);
        if (m->n_focal) assert_true(c.fx == 100 && c.fy == (m->n_focal == 1 ? 150 : 153));
    }
    assert_null(kiln_camera_model_by_id(18));
}

static void find_as(const kiln_dataset_wishes *wishes)
{
    kiln_error err = {0};
    kiln_dataset_release(&data);
    if (kiln_dataset_find(root, wishes, &data, &err) != KILN_OK) fail_msg("%s", err.msg);
}

static void find_as_refused(const char *scene, const kiln_dataset_wishes *wishes, const char *because)
{
    kiln_error err = {0};
    kiln_dataset_release(&data);
    assert_int_equal(kiln_dataset_find(scene, wishes, &data, &err), KILN_E_INPUT);
    if (!strstr(err.msg, because) || strchr(err.msg, '\n')) fail_msg("'%s' does not say '%s'", err.msg, because);
}

static const kiln_camera *camera(const char *name)
{
    for (uint32_t i = 0; i < data.set.n_cameras; i++)
        if (strcmp(data.set.cameras[i].name, name) == 0) return &data.set.cameras[i];
    fail_msg("no camera '%s'", name);
    return NULL;
}

/* The splits of all cameras in the order of their names: "Ttt" where the first is a test view. */
static const char *splits(void)
{
    static char letters[64];
    assert_true(data.set.n_cameras < sizeof letters);
    for (uint32_t i = 0; i < data.set.n_cameras; i++) letters[i] = strcmp(data.set.cameras[i].split, "test") == 0 ? 'T' : 't';
    letters[data.set.n_cameras] = 0;
    return letters;
}

/* The finding of a file of the scene, "" where there is none. *used: whether it is used. */
/* ---- lists of names, --split ------------------------------------------------------------------------------------------------ */

/* left/1, left/2, right/1, right/2, of a COLMAP model. */
static void put_pairs(void)
{
    const char *const images[] = {"left/1.png", "left/2.png", "right/1.png", "right/2.png", NULL};
    put_colmap("sparse/0", pinhole, images);
}

static void lists_beside_the_scene_choose_test_views(void **state)
{
    bool used;
    (void)state;
    put_pairs();
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "Tttt");
    put("sparse/0/train.txt", "left/1.png\nright/2.png\n");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "tTTt");
    put("train.txt", "left/1.png\nleft/2.png\n");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "ttTT");
    put("sparse/0/test.txt", "right/2.png\n");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "tttT");
    assert_string_equal(why_not("train.txt", &used), "another list takes precedence");
    put("test.txt", "\xef\xbb\xbf# held out\r\n\n  ./images_2/left/2.JPG \r\n.\\right\\1\nnowhere.png");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "tTTt");
    assert_string_equal(data.set.split_rule, "names in test.txt");
    assert_non_null(strstr(data.set.notes, "1 of 3 names fit no camera; the first: 'nowhere.png'"));
    (void)why_not("test.txt", &used);
    assert_true(used);
    for (uint32_t i = 0; i < data.set.n_sources; i++) used &= strcmp(data.set.sources[i].path, at("sparse/0/test.txt")) != 0;
    assert_true(used);
    assert_string_equal(data.set.sources[data.set.n_sources - 1].path, at("test.txt"));
}

static void lists_about_something_else_are_passed_over(void **state)
{
    bool used;
    (void)state;
    put_pairs();
    put("test.txt", "This folder holds a scan of a chair.\n");
    put("train.txt", "left/1\n\xff\n");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "Tttt");
    assert_string_equal(data.set.split_rule, "every 8th by name");
    assert_string_equal(why_not("test.txt", &used), "none of its names is a camera's");
    assert_non_null(strstr(why_not("train.txt", &used), "not UTF-8"));
}

static void camera_files_come_before_lists(void **state)
{
    const char *const frames[] = {"a.png", "b.png", "c.png", NULL};
    (void)state;
    for (int i = 0; frames[i]; i++) put_photo(frames[i], 8, 6);
    put("test.txt", "c\n");
    put_transforms("transforms.json", "\"fl_x\": 7, \"val_filenames\": [\"b.png\"]", frames);
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "tTt");
    put_transforms("transforms.json", "\"fl_x\": 7, \"val_filenames\": [], \"train_filenames\": [\"b.png\", \"./c.png\"]", frames);
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "Ttt");
    put_transforms("transforms.json", "\"fl_x\": 7, \"train_filenames\": [\"a.png\", \"b.png\", \"c.png\"]", frames);
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "ttt");
    assert_string_equal(data.set.split_rule, "as the camera files say");
    put_transforms("transforms.json", "\"fl_x\": 7, \"test_filenames\": []", frames);
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "ttT");
}

static void cfg_args_says_whether_any_were_held_out(void **state)
{
    (void)state;
    put_pairs();
    put("cfg_args", "Namespace(eval=False, sh_degree=3)");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "tttt");
    assert_non_null(strstr(data.set.split_rule, "cfg_args says eval=False"));
    put("cfg_args", "Namespace(eval=True, sh_degree=3)");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "Tttt");
    put("cfg_args", "Namespace(eval=False, sh_degree=3)");
    put("sparse/0/test.txt", "left/2.png\n");
    find_as(&(kiln_dataset_wishes){0});
    assert_string_equal(splits(), "tTtt");
}

static void the_user_has_the_last_word_on_the_split(void **state)
{
    char list[TEST_PATH_MAX];
    (void)state;
    snprintf(list, sizeof list, "%s", at("mine.txt"));
    const kiln_dataset_wishes names = {.split = {.kind = KILN_SPLIT_NAMES, .file = list}};
    put_pairs();
    put("test.txt", "left/2.png\n");
    find_as(&(kiln_dataset_wishes){.split = {.kind = KILN_SPLIT_EVERY, .every = 3}});
    assert_string_equal(splits(), "TttT");
    find_as(&(kiln_dataset_wishes){.split = {.kind = KILN_SPLIT_EVERY, .every = 1}});
    assert_string_equal(splits(), "TTTT");
    find_as(&(kiln_dataset_wishes){.split = {.kind = KILN_SPLIT_ALL_TRAIN}});
    assert_string_equal(splits(), "tttt");
    put("mine.txt", "right/1.png\n");
    find_as(&names);
    assert_string_equal(splits(), "ttTt");
    put("mine.txt", "2.png\n"); /* without its folder: each of that name */
    find_as(&names);
    assert_string_equal(splits(), "tTtT");
    put("mine.txt", "elsewhere/left/1\n");
    find_as(&names);
    assert_string_equal(splits(), "Tttt");
    put("mine.txt", "middle/1.png\n"); /* another photo, though its last part is known */
    find_as_refused(root, &names, "none of the 1 names");
    put("mine.txt", "# nothing\n\n");
    find_as_refused(root, &names, "holds no name");
    put("mine.txt", "\xff\n");
    find_as_refused(root, &names, "not UTF-8");
}

static void splits_are_checked_as_texts(void **state)
{
    static const char *const refused[] = {"",         "every", "every:", "every:0", "every:-1", "every:1.5",
                                          "every:8 ", "names", "names:", "all",     "Auto",     "every:99999999999"};
    kiln_split s;
    kiln_error err = {0};
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_int_equal(kiln_split_parse(refused[i], &s, &err), KILN_E_USAGE);
    assert_int_equal(kiln_split_parse("auto", &s, &err), KILN_OK);
    assert_int_equal(s.kind, KILN_SPLIT_AUTO);
    assert_int_equal(kiln_split_parse("every:08", &s, &err), KILN_OK);
    assert_true(s.kind == KILN_SPLIT_EVERY && s.every == 8);
    assert_int_equal(kiln_split_parse("names:a:b", &s, &err), KILN_OK);
    assert_true(s.kind == KILN_SPLIT_NAMES && strcmp(s.file, "a:b") == 0);
    assert_int_equal(kiln_split_parse("all-train", &s, &err), KILN_OK);
    assert_int_equal(s.kind, KILN_SPLIT_ALL_TRAIN);
}

/* ---- the files of forks ------------------------------------------------------------------------------------------------------ */

static void put_inria(const char *file, const char *a, const char *b)
{
    kiln_buffer text = {0};
    kiln_error err = {0};
    assert_int_equal(
        kiln_buffer_printf(&text, &err,
                           "[{\"img_name\": \"%s\", \"width\": 8, \"height\": 6, \"position\": [0, 0, 0], \"rotation\": "
                           "[[1, 0, 0], [0, 1, 0], [0, 0, 1]], \"fx\": 7, \"fy\": 7}, {\"img_name\": \"%s\", \"width\": 8, "
                           "\"height\": 6, \"position\": [1, 0, 0], \"rotation\": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "
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

/* ---- paths of nerfstudio's viewer -------------------------------------------------------------------------------- */

#define PATH_MATRIX "[1,0,0,4, 0,0,-1,5, 0,1,0,6, 0,0,0,1]" /* looks along y, z is up */
#define PATH_CAMERA "{\"camera_to_world\": " PATH_MATRIX ", \"fov\": 90, \"aspect\": 1.5}"

static void camera_paths_are_read(void **state)
{
    kiln_error err = {0};
    (void)state;
    put("path.json",
        "{\"keyframes\": [{\"matrix\": \"[]\", \"fov\": 50}], \"camera_type\": \"perspective\", \"render_height\": 40, "
        "\"render_width\": 60, \"fps\": 24, \"camera_path\": [" PATH_CAMERA ", " PATH_CAMERA "], \"crop\": null}");
    if (kiln_cameras_read(at("path.json"), NULL, &data.set, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(data.set.n_cameras, 2);
    const kiln_camera *c = camera("path/0001");
    assert_true(c->width == 60 && c->height == 40 && c->cx == 30 && c->cy == 20 && c->fx == c->fy && !c->distorted);
    assert_near(c->fx, 20);
    /* right is x, down is -z, forward is y; the centre is (4, 5, 6) */
    const double r[9] = {1, 0, 0, 0, 0, -1, 0, 1, 0}, t[3] = {-4, 6, -5};
    for (int i = 0; i < 9; i++) assert_near(c->r[i], r[i]);
    for (int i = 0; i < 3; i++) assert_near(c->t[i], t[i]);
    kiln_dataset_release(&data);
    /* without a width the aspect gives it; rows of a matrix are as good as its numbers */
    put("path.json", "{\"render_height\": 40, \"camera_path\": [{\"camera_to_world\": [[1,0,0,4],[0,0,-1,5],[0,1,0,6],[0,0,0,1]], "
                     "\"fov\": 90, \"aspect\": 1.5}]}");
    if (kiln_cameras_read(at("path.json"), NULL, &data.set, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(camera("path/0000")->width, 60);
}

static void camera_paths_that_cannot_be_drawn_are_refused(void **state)
{
    static const char *const refused[][2] = {
        {"{\"camera_path\": [], \"keyframes\": [1]}", "only keyframes"},
        {"{\"keyframes\": []}", "no camera in camera_path"},
        {"{\"camera_path\": {}}", "no camera in camera_path"},
        {"{\"camera_path\": [" PATH_CAMERA "], \"render_width\": 60}", "no render_height"},
        {"{\"camera_path\": [" PATH_CAMERA "], \"render_height\": 0}", "render_height is no size"},
        {"{\"camera_path\": [" PATH_CAMERA "], \"render_height\": \"40\"}", "render_height is no size"},
        {"{\"camera_path\": [" PATH_CAMERA "], \"render_height\": 40, \"camera_type\": \"fisheye\"}", "'fisheye' cannot be drawn"},
        {"{\"camera_path\": [" PATH_CAMERA "], \"render_height\": 40, \"camera_type\": \"equirectangular\"}", "only perspective"},
        {"{\"camera_path\": [" PATH_CAMERA "], \"render_height\": 40, \"camera_type\": 1}", "camera_type"},
        {"{\"camera_path\": [3], \"render_height\": 40}", "not 16 numbers"},
        {"{\"camera_path\": [{\"camera_to_world\": [1,0,0,0, 0,0,-1,0, 0,1,0,0, 4,5,6,1], \"fov\": 9}], \"render_height\": 40}",
         "transposed"},
        {"{\"camera_path\": [{\"camera_to_world\": [1,0,0,0, 0,1,0,0, 0,0,-1,0, 0,0,0,1], \"fov\": 9}], \"render_height\": 40, "
         "\"render_width\": 9}",
         "reflection"},
        {"{\"camera_path\": [{\"camera_to_world\": " PATH_MATRIX "}], \"render_height\": 40, \"render_width\": 9}", "fov"},
        {"{\"camera_path\": [{\"camera_to_world\": " PATH_MATRIX ", \"fov\": 180}], \"render_height\": 40}", "fov"},
        {"{\"camera_path\": [{\"camera_to_world\": " PATH_MATRIX ", \"fov\": 90}], \"render_height\": 40}", "aspect"},
        {"{\"camera_path\": [{\"camera_to_world\": " PATH_MATRIX ", \"fov\": 90}], \"render_height\": 40, \"render_width\": 1e9}",
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
    assert_int_equal(kiln_buffer_printf(&b, &err, "{\"render_height\": 4, \"render_width\": 4, \"camera_path\": ["), KILN_OK);
    for (int i = 0; i <= 10000; i++)
        assert_int_equal(kiln_buffer_printf(&b, &err, "%s{\"camera_to_world\": [1,0,0,%d, 0,1,0,0, 0,0,1,0, 0,0,0,1], \"fov\": 90}",
                                            i ? ", " : "", i),
                         KILN_OK);
    assert_int_equal(kiln_buffer_printf(&b, &err, "]}"), KILN_OK);
    if (kiln_file_write(at("path.json"), b.data, b.size, &err) != KILN_OK) fail_msg("%s", err.msg);
    kiln_buffer_release(&b);
    if (kiln_cameras_read(at("path.json"), NULL, &data.set, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(data.set.n_cameras, 10001);
    assert_string_equal(data.set.cameras[10000].name, "path/10000");
    for (uint32_t i = 0; i < data.set.n_cameras; i++) assert_true(data.set.cameras[i].t[0] == -(double)i);
}

/* ---- the world that nerfstudio trains in ------------------------------------------------------------------------- */

/* T turns about the vertical by 90 degrees, after applied_transform; then it moves. */
#define DATAPARSER "{\"transform\": [[0, 0, 1, 0.5], [1, 0, 0, -2], [0, 1, 0, 3]], \"scale\": 0.25}"
static const double dataparser_r[9] = {0, 0, 1, 1, 0, 0, 0, 1, 0}, dataparser_t[3] = {0.5, -2, 3};
#define APPLIED "\"fl_x\": 7, \"applied_transform\": [[1,0,0,0.125],[0,0,1,0],[0,-1,0,-1]], \"applied_scale\": 0.5"

/* p and q lie on one pixel of a and of b, and q is `scale` times as deep. */
static void assert_same_pixel(const kiln_camera *a, const double p[3], const kiln_camera *b, const double q[3], double scale)
{
    double x[3], y[3];
    for (int i = 0; i < 3; i++) {
        x[i] = a->r[3 * i] * p[0] + a->r[3 * i + 1] * p[1] + a->r[3 * i + 2] * p[2] + a->t[i];
        y[i] = b->r[3 * i] * q[0] + b->r[3 * i + 1] * q[1] + b->r[3 * i + 2] * q[2] + b->t[i];
    }
    for (int i = 0; i < 3; i++) assert_near(x[i] * scale, y[i]);
}

/* All cameras of `saved` have been moved as the file says; `to_saved` gives a point of their world for one of the original. */
static void assert_moved(const kiln_dataset *before, double scale, void (*to_saved)(const double original[3], double saved[3]))
{
    static const double points[4][3] = {{0, 0, 0}, {1, 0, 0}, {0.5, -3, 7}, {-11, 2, 0.25}};
    assert_int_equal(before->set.n_cameras, data.set.n_cameras);
    for (uint32_t i = 0; i < data.set.n_cameras; i++)
        for (int k = 0; k < 4; k++) {
            double saved[3], trained[3];
            to_saved(points[k], saved);
            for (int a = 0; a < 3; a++)
                trained[a] = 0.25 * (dataparser_r[3 * a] * points[k][0] + dataparser_r[3 * a + 1] * points[k][1] +
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
    put_transforms("transforms.json", "\"fl_x\": 7, \"applied_transform\": [[1,0,0,0.125],[0,0,1,0],[0,-1,0,-1]]", frames);
    assert_int_equal(kiln_dataset_find(root, &(kiln_dataset_wishes){0}, &before, &err), KILN_OK);
    put("dataparser_transforms.json", DATAPARSER);
    find_as(&(kiln_dataset_wishes){0});
    assert_moved(&before, 0.25, applied);
    (void)why_not("dataparser_transforms.json", &used);
    assert_true(used);
    assert_non_null(strstr(data.set.transforms,
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
    assert_int_equal(kiln_dataset_find(at("splat.ply"), &(kiln_dataset_wishes){.cameras = at("transforms.json")}, &data, &err),
                     KILN_OK);
    assert_moved(&before, 0.25, applied);
    kiln_dataset_release(&before);
}

/* The side-car of the golden data set names a point in the original world, in the saved one and in that of training. */
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
    assert_true(kiln_json_vector(json_array_get(json_object_get(truth, "points_first_in_saved_world"), 0), 3, saved) &&
                kiln_json_vector(json_object_get(json_object_get(truth, "dataparser_check"), "trained_point"), 3, trained));
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
    put("dataparser_transforms.json", "{\"transform\": [[1,0,0,0],[0,1,0,0],[0,0,1,0]], \"scale\": 0.125}");
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
    assert_non_null(strstr(why_not("dataparser_transforms.json", &used), "about Gaussians"));
    assert_near(camera("a")->t[1], 2);
    /* a path of the viewer is of the world of training */
    put_ply("splat.ply", 3, true);
    put("path.json", "{\"render_height\": 40, \"render_width\": 40, \"camera_path\": [" PATH_CAMERA "]}");
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
    put("point_cloud/iteration_7/dataparser_transforms.json", DATAPARSER); /* but one beside them is about them */
    find_as(&(kiln_dataset_wishes){0});
    assert_true(has_moved(&before));
    kiln_dataset_release(&before);
}

static void a_dataparser_that_cannot_be_used_is_refused(void **state)
{
    static const char *const refused[][2] = {
        {"{", "JSON"},
        {"[]", "no transform of 3 x 4"},
        {"{\"transform\": [[1,0,0,0],[0,1,0,0],[0,0,1,0],[0,0,0,1]], \"scale\": 1}", "no transform of 3 x 4"},
        {"{\"transform\": [[1,0,0,0],[0,1,0,0],[0,0,1,0]]}", "with a scale"},
        {"{\"transform\": [[1,0,0,0],[0,1,0,0],[0,0,1,0]], \"scale\": 0}", "not positive"},
        {"{\"transform\": [[1,0,0,0],[0,1,0,0],[0,0,1,0]], \"scale\": -1}", "not positive"},
        {"{\"transform\": [[2,0,0,0],[0,2,0,0],[0,0,2,0]], \"scale\": 1}", "no rotation"},
        {"{\"transform\": [[1,0.1,0,0],[0,1,0,0],[0,0,1,0]], \"scale\": 1}", "no rotation"},
        {"{\"transform\": [[-1,0,0,0],[0,1,0,0],[0,0,1,0]], \"scale\": 1}", "reflection"},
        {"{\"transform\": [[1,0,0,1e308],[0,1,0,1e308],[0,0,1,1e308]], \"scale\": 1e300}", "out of all bounds"},
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
    put_transforms("transforms.json", "\"fl_x\": 7, \"applied_transform\": [[1,0,0,0],[1,0,0,0],[0,0,1,0]]", frames);
    find_as_refused(root, &(kiln_dataset_wishes){0}, "no inverse");
    put_transforms("transforms.json", "\"fl_x\": 7, \"applied_scale\": 0", frames);
    find_as_refused(root, &(kiln_dataset_wishes){0}, "applied_scale");
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(the_last_iteration_counts),
        IN_SCRATCH(the_last_of_many_iterations_counts),
        IN_SCRATCH(the_largest_splat_file_counts),
        IN_SCRATCH(the_last_step_counts),
        IN_SCRATCH(the_last_of_many_steps_is_looked_at),
        IN_SCRATCH(the_choice_of_a_bake_stays),
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
        IN_SCRATCH(names_lose_image_folder_and_extension_only),
        IN_SCRATCH(equal_names_are_refused),
        IN_SCRATCH(intrinsics_follow_the_photo),
        IN_SCRATCH(one_focal_length_becomes_two_when_axes_scale_apart),
        IN_SCRATCH(unreadable_photos_leave_the_camera),
        IN_SCRATCH(a_photo_counts_once_wherever_it_was_sought),
        IN_SCRATCH(photos_of_a_kind_that_is_not_read_are_no_missing_ones),
        IN_SCRATCH(masks_are_found_beside_a_transforms_json),
        IN_SCRATCH(frames_without_photo_are_drawn_in_the_size_of_the_file),
        IN_SCRATCH(absolute_paths_count_by_their_last_parts),
        IN_SCRATCH(absolute_paths_are_never_opened),
        IN_SCRATCH(names_that_differ_in_case_are_matched),
        IN_SCRATCH(photos_of_another_shape_are_named),
        IN_SCRATCH(masks_of_realityscan_are_found),
        IN_SCRATCH(every_source_is_listed),
        IN_SCRATCH(every_8th_name_is_test_when_nothing_says_so),
        IN_SCRATCH(explicit_splits_win),
        IN_SCRATCH(lists_are_used_as_they_stand),
        IN_SCRATCH(transposed_matrices_are_refused),
        IN_SCRATCH(a_frame_overrides_its_file),
        IN_SCRATCH(lenses_that_no_model_describes_are_refused),
        IN_SCRATCH(degrees_of_instant_ngp_are_angles),
        IN_SCRATCH(nesting_ends_at_64),
        cmocka_unit_test(values_are_counted_by_the_memory_that_they_take),
        IN_SCRATCH(json_of_too_many_values_is_refused_before_it_is_parsed),
        IN_SCRATCH(keypoint_counts_whose_bytes_overflow_are_refused),
        IN_SCRATCH(keys_that_occur_twice_are_refused),
        IN_SCRATCH(keypoint_lines_have_no_bound),
        IN_SCRATCH(lists_beside_the_scene_choose_test_views),
        IN_SCRATCH(lists_about_something_else_are_passed_over),
        IN_SCRATCH(camera_files_come_before_lists),
        IN_SCRATCH(cfg_args_says_whether_any_were_held_out),
        IN_SCRATCH(the_user_has_the_last_word_on_the_split),
        cmocka_unit_test(splits_are_checked_as_texts),
        IN_SCRATCH(train_and_test_cameras_are_one_source),
        IN_SCRATCH(names_that_both_files_have_get_their_folder),
        IN_SCRATCH(camera_paths_are_read),
        IN_SCRATCH(camera_paths_that_cannot_be_drawn_are_refused),
        IN_SCRATCH(names_of_long_paths_keep_their_order),
        IN_SCRATCH(cameras_follow_gaussians_that_nerfstudio_trained),
        IN_SCRATCH(the_golden_point_stays_on_its_pixels),
        IN_SCRATCH(applied_scale_is_part_of_the_scale),
        IN_SCRATCH(cameras_of_colmap_lie_in_the_original_world),
        IN_SCRATCH(what_nerfstudio_did_not_train_stays),
        IN_SCRATCH(a_dataparser_that_cannot_be_used_is_refused),
        cmocka_unit_test(every_colmap_model_knows_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
