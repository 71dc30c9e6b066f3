/* dataset_fixture -- data sets for the tests of stages/import/dataset, made in a scratch folder,
 * and what is found in them. Photos are tiny PNGs of our own writer. */
#ifndef KILN_TESTS_DATASET_FIXTURE_H
#define KILN_TESTS_DATASET_FIXTURE_H

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

static inline int make_root(void **state)
{
    (void)state;
    return test_folder_new(root, "dataset");
}

static inline int remove_root(void **state)
{
    (void)state;
    kiln_dataset_release(&data);
    return test_folder_remove(root);
}

static inline const char *at(const char *name)
{
    static char path[4][TEST_PATH_MAX];
    static unsigned turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", root, name);
    return p;
}

static inline void put(const char *name, const char *text)
{
    kiln_error err = {0};
    if (kiln_file_write(at(name), text, strlen(text), &err) != KILN_OK) fail_msg("%s", err.msg);
}

static inline void put_photo(const char *name, uint32_t width, uint32_t height)
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
static inline void put_ply(const char *name, unsigned n, bool splats)
{
    static const char *const names[] = {"x",      "y",       "z",       "f_dc_0",  "f_dc_1",
                                        "f_dc_2", "opacity", "scale_0", "scale_1", "scale_2",
                                        "rot_0",  "rot_1",   "rot_2",   "rot_3"};
    kiln_buffer b = {0};
    kiln_error err = {0};
    const int columns = splats ? 14 : 3;
    assert_int_equal(kiln_buffer_printf(&b, &err, "ply\nformat ascii 1.0\nelement vertex %u\n", n),
                     KILN_OK);
    for (int i = 0; i < columns; i++)
        assert_int_equal(kiln_buffer_printf(&b, &err, "property float %s\n", names[i]), KILN_OK);
    assert_int_equal(kiln_buffer_printf(&b, &err, "end_header\n"), KILN_OK);
    for (unsigned k = 0; k < n; k++)
        for (int i = 0; i < columns; i++)
            assert_int_equal(
                kiln_buffer_printf(&b, &err, "%u%c", k + 1, i == columns - 1 ? '\n' : ' '),
                KILN_OK);
    if (kiln_file_write(at(name), b.data, b.size, &err) != KILN_OK) fail_msg("%s", err.msg);
    kiln_buffer_release(&b);
}

static inline void put_transforms(const char *name, const char *keys, const char *const *paths)
{
    kiln_buffer b = {0};
    kiln_error err = {0};
    assert_int_equal(kiln_buffer_printf(&b, &err, "{%s, \"frames\": [", keys), KILN_OK);
    for (int i = 0; paths[i]; i++)
        assert_int_equal(kiln_buffer_printf(&b, &err,
                                            "%s{\"file_path\": \"%s\", \"transform_matrix\": "
                                            "[[1,0,0,%d],[0,1,0,2],[0,0,1,3],[0,0,0,1]]}",
                                            i ? ", " : "", paths[i], i),
                         KILN_OK);
    assert_int_equal(kiln_buffer_printf(&b, &err, "]}"), KILN_OK);
    if (kiln_file_write(at(name), b.data, b.size, &err) != KILN_OK) fail_msg("%s", err.msg);
    kiln_buffer_release(&b);
}

/* One PINHOLE or SIMPLE_RADIAL camera, images by name. */
static inline void put_colmap(const char *folder, const char *camera, const char *const *images)
{
    char name[64];
    kiln_buffer b = {0};
    kiln_error err = {0};
    snprintf(name, sizeof name, "%s/cameras.txt", folder);
    put(name, camera);
    for (int i = 0; images[i]; i++)
        assert_int_equal(
            kiln_buffer_printf(&b, &err, "%d 1 0 0 0 %d 0 0 1 %s\n\n", i + 1, i, images[i]),
            KILN_OK);
    assert_int_equal(kiln_buffer_put(&b, "", 1, &err), KILN_OK);
    snprintf(name, sizeof name, "%s/images.txt", folder);
    put(name, (const char *)b.data);
    snprintf(name, sizeof name, "%s/points3D.txt", folder);
    put(name, "1 0 0 0 255 0 0 1\n2 1 0 0 255 0 0 1\n");
    kiln_buffer_release(&b);
}

static const char pinhole[] __attribute__((unused)) = "1 PINHOLE 40 30 50 51 20 15\n";
static const char inria_camera[] __attribute__((unused)) =
    "[{\"id\": 0, \"img_name\": \"a\", \"width\": 8, \"height\": 6, \"position\": [0, 0, 0], "
    "\"rotation\": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], \"fx\": 7, \"fy\": 7}]";

static inline void find_with(const char *cameras, const char *avoid)
{
    kiln_error err = {0};
    if (kiln_dataset_find(root, &(kiln_dataset_wishes){.cameras = cameras, .avoid = avoid}, &data,
                          &err) != KILN_OK)
        fail_msg("%s", err.msg);
}

static inline void find(void) { find_with(NULL, NULL); }

static inline void find_refused(const char *because)
{
    kiln_error err = {0};
    assert_int_equal(kiln_dataset_find(root, &(kiln_dataset_wishes){0}, &data, &err), KILN_E_INPUT);
    if (!strstr(err.msg, because)) fail_msg("'%s' does not say '%s'", err.msg, because);
}

static inline const char *rows(void) { return data.rows_path + strlen(root) + 1; }

static inline const char *why_not(const char *name, bool *used)
{
    *used = false;
    for (uint32_t i = 0; i < data.set.n_findings; i++) {
        if (strcmp(data.set.findings[i].path, at(name)) != 0) continue;
        *used = data.set.findings[i].used;
        return data.set.findings[i].why_not;
    }
    return "";
}

static inline void assert_near(double a, double b) { assert_true(fabs(a - b) < 1e-9); }

static inline void find_as(const kiln_dataset_wishes *wishes)
{
    kiln_error err = {0};
    kiln_dataset_release(&data);
    if (kiln_dataset_find(root, wishes, &data, &err) != KILN_OK) fail_msg("%s", err.msg);
}

static inline void find_as_refused(const char *scene, const kiln_dataset_wishes *wishes,
                                   const char *because)
{
    kiln_error err = {0};
    kiln_dataset_release(&data);
    assert_int_equal(kiln_dataset_find(scene, wishes, &data, &err), KILN_E_INPUT);
    if (!strstr(err.msg, because) || strchr(err.msg, '\n'))
        fail_msg("'%s' does not say '%s'", err.msg, because);
}

static inline const kiln_camera *camera(const char *name)
{
    for (uint32_t i = 0; i < data.set.n_cameras; i++)
        if (strcmp(data.set.cameras[i].name, name) == 0) return &data.set.cameras[i];
    fail_msg("no camera '%s'", name);
    return NULL;
}

/* The splits of all cameras in the order of their names: "Ttt" where the first is a test view. */
static inline const char *splits(void)
{
    static char letters[64];
    assert_true(data.set.n_cameras < sizeof letters);
    for (uint32_t i = 0; i < data.set.n_cameras; i++)
        letters[i] = strcmp(data.set.cameras[i].split, "test") == 0 ? 'T' : 't';
    letters[data.set.n_cameras] = 0;
    return letters;
}

/* left/1, left/2, right/1, right/2, of a COLMAP model. */
static inline void put_pairs(void)
{
    const char *const images[] = {"left/1.png", "left/2.png", "right/1.png", "right/2.png", NULL};
    put_colmap("sparse/0", pinhole, images);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

#endif
