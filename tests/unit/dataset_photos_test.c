/* dataset_photos_test -- how cameras are named, and fitted to photos and masks. */
#include "tests/unit/dataset_fixture.h"

static void names_lose_image_folder_and_extension_only(void **state)
{
    const char *const frames[] = {"./images/a.b.png", "images_4/left/c.JPG", "sub/images/d",
                                  ".\\\\images\\\\e.jpeg", NULL};
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
    const char *const frames[] = {"images/a.png", "images/b.png", "images/c.png", "images/d.png",
                                  NULL};
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
    assert_non_null(
        strstr(data.set.notes, "for 1 photo one file cannot be read, and another one is used"));
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
    find_refused("The first missing photo is 'b.gif', looked for in '.'");
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
    assert_non_null(
        strstr(data.set.notes, "1 mask does not fit its photo and is left out; the first: "));
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
    assert_true(data.set.cameras[0].width == 8 && data.set.cameras[0].height == 6 &&
                !data.set.cameras[0].photo[0]);
    assert_non_null(strstr(
        data.set.notes,
        "1 of 2 cameras have no photo; a camera without a photo is drawn, but not measured"));
    kiln_dataset_release(&data);
    put_transforms("transforms.json", "\"fl_x\": 7", frames); /* no size: only a photo has one */
    find();
    assert_int_equal(data.set.n_cameras, 1);
    assert_int_equal(data.set.frames_dropped, 1);
    kiln_dataset_release(&data);
    assert_int_equal(unlink(at("b.png")), 0);
    find_refused("and the file gives no picture size (w and h)");
}

static void absolute_paths_count_by_their_last_parts(void **state)
{
    const char *const windows[] = {"D:\\\\work\\\\cap\\\\images\\\\left\\\\a.png",
                                   "D:\\\\work\\\\cap\\\\images\\\\right\\\\a.png", NULL};
    const char *const posix[] = {"/home/me/scan/rgb/a.jpg", "/home/me/scan/rgb/b.jpg", NULL},
                      *const server[] = {"//nas/cap/images_2/a.png", NULL};
    const char *const blender[] = {"/data/chair/train/r_0", NULL}, *const tests[] = {
                                                                       "/data/chair/test/r_0",
                                                                       NULL};
    const char *const mixed[] = {"images/a.png", "/x/images/b.png", NULL}, *const up[] = {
                                                                               "/x/../images/b.png",
                                                                               NULL};
    (void)state;
    put_transforms("transforms.json", "\"fl_x\": 7, \"w\": 8, \"h\": 6", windows);
    put_photo("images/left/a.png", 8, 6);
    put_photo("images/right/a.png", 8, 6);
    find();
    assert_string_equal(data.set.cameras[0].name, "left/a");
    assert_string_equal(data.set.cameras[1].photo, at("images/right/a.png"));
    assert_non_null(
        strstr(data.set.notes,
               "has absolute paths of another machine: 2 of them were sought by their last parts"));
    kiln_dataset_release(&data);
    put_transforms("transforms.json", "\"fl_x\": 7, \"w\": 8, \"h\": 6", posix);
    put_photo("scan/rgb/a.jpg", 8, 6);
    put_photo("b.png", 8, 6);
    find();
    assert_string_equal(data.set.cameras[0].name, "a");
    assert_string_equal(data.set.cameras[0].photo, at("scan/rgb/a.jpg")); /* by its longest end */
    /* by its shortest, with another extension */
    assert_string_equal(data.set.cameras[1].photo, at("b.png"));
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
    assert_int_equal(kiln_dataset_find(at("scene"), &(kiln_dataset_wishes){0}, &data, &err),
                     KILN_OK);
    assert_string_equal(data.set.cameras[0].photo, "");
    kiln_dataset_release(&data);
    put_transforms("transforms.json", "\"fl_x\": 7, \"w\": 8, \"h\": 6", none);
    find_refused("'/etc/passwd', is refused: it is absolute, but no photo");
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
    assert_non_null(strstr(data.set.notes,
                           "2 photos are found by names that differ in case or in Unicode "
                           "normalisation; the first is 'V0.PNG' is 'v0.png'"));
}

static void photos_of_another_shape_are_named(void **state)
{
    const char *const images[] = {"a.png", "b.png", NULL};
    (void)state;
    put_colmap("sparse/0", pinhole, images);
    put_photo("images/a.png", 40, 24);
    put_photo("images/b.png", 21, 15); /* half the size but for rounding */
    find();
    assert_non_null(
        strstr(data.set.notes, "1 photo was cropped or stretched since its camera was made"));
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
    assert_non_null(strstr(
        data.set.notes,
        "masks' holds 1 picture, but none is the mask of a photo; the first is 'mask_of_b.png'"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
