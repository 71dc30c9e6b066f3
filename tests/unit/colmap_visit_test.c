/* colmap_visit_test -- images and keypoints of a COLMAP model, one after the other, the same from
 * both encodings. */
#include "base/file.h"
#include "stages/cameras/colmap/colmap_visit.h"
#include "tests/unit/test_folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char root[TEST_FOLDER_MAX];

/* What a visitor gets, as text. */
typedef struct {
    kiln_buffer visits;
    const char *unwanted; /* image whose keypoints it refuses; NULL none */
    uint64_t stop_at;     /* point at which it fails; 0 none */
    uint64_t n, sum;      /* keypoints and their ids; their text only while quiet is false */
    bool quiet;
} diary;

static int make_root(void **state)
{
    (void)state;
    return test_folder_new(root, "visit");
}

static int remove_root(void **state)
{
    (void)state;
    return test_folder_remove(root);
}

static void write_file(const char *name, const void *data, size_t bytes)
{
    char path[TEST_PATH_MAX];
    kiln_error err = {0};
    snprintf(path, sizeof path, "%s/%s", root, name);
    if (kiln_file_write(path, data, bytes, &err) != KILN_OK) fail_msg("%s", err.msg);
}

static void write_text(const char *images)
{
    static const char camera[] = "7 PINHOLE 40 30 50 51 20 15\n";
    write_file("cameras.txt", camera, strlen(camera));
    write_file("images.txt", images, strlen(images));
}

static void put(kiln_buffer *b, const void *p, size_t n)
{
    assert_int_equal(kiln_buffer_put(b, p, n, NULL), KILN_OK);
}

static void put_keypoint(kiln_buffer *b, double x, double y, uint64_t point)
{
    put(b, &x, 8);
    put(b, &y, 8);
    put(b, &point, 8);
}

static void put_image(kiln_buffer *b, uint32_t id, const char *name, uint64_t n_keypoints)
{
    const double pose[7] = {1, 0, 0, 0, 0, 0, 0};
    const uint32_t camera = 7;
    put(b, &id, 4);
    put(b, pose, sizeof pose);
    put(b, &camera, 4);
    put(b, name, strlen(name) + 1);
    put(b, &n_keypoints, 8);
}

static void write_binary_cameras(void)
{
    const uint64_t one = 1, size[2] = {40, 30};
    const uint32_t id = 7, pinhole = 1;
    const double params[4] = {50, 51, 20, 15};
    kiln_buffer b = {0};
    put(&b, &one, 8);
    put(&b, &id, 4);
    put(&b, &pinhole, 4);
    put(&b, size, sizeof size);
    put(&b, params, sizeof params);
    write_file("cameras.bin", b.data, b.size);
    kiln_buffer_release(&b);
}

static kiln_status on_image(void *context, const char *camera, uint32_t width, uint32_t height,
                            bool *wanted, kiln_error *err)
{
    diary *d = context;
    *wanted = !d->unwanted || strcmp(camera, d->unwanted) != 0;
    return kiln_buffer_printf(&d->visits, err, "%s %ux%u\n", camera, width, height);
}

static kiln_status on_keypoint(void *context, double x, double y, uint64_t point, kiln_error *err)
{
    diary *d = context;
    if (d->stop_at && point == d->stop_at) return kiln_fail(err, KILN_E_CAP, "enough");
    d->n++;
    d->sum += point;
    return d->quiet ? KILN_OK
                    : kiln_buffer_printf(&d->visits, err, "  %g %g %lld\n", x, y, (long long)point);
}

static kiln_status visit(const char *suffix, diary *d, kiln_error *err)
{
    const kiln_colmap_visitor v = {.context = d, .image = on_image, .keypoint = on_keypoint};
    return kiln_colmap_visit(root, suffix, &v, err);
}

static void visits_are(const char *suffix, diary d, const char *expected)
{
    kiln_error err = {0};
    if (visit(suffix, &d, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(kiln_buffer_put(&d.visits, "", 1, NULL), KILN_OK);
    assert_string_equal((const char *)d.visits.data, expected);
    kiln_buffer_release(&d.visits);
}

static void text_tells_images_and_their_keypoints(void **state)
{
    (void)state;
    write_text("# a comment\n1 1 0 0 0 0 0 0 7 images/a b.png\n 1.5 2 8\t-3 4e1 9 \r\n2 1 0 0 0 0 "
               "0 0 7 c.jpg\n\n"
               "3 1 0 0 0 0 0 0 7 d.jpg\n5 6 18446744073709551614");
    visits_are("txt", (diary){0}, "a b 40x30\n  1.5 2 8\n  -3 40 9\nc 40x30\nd 40x30\n  5 6 -2\n");
}

static void keypoints_that_are_nobodys_are_passed_over(void **state)
{
    (void)state;
    write_text("1 1 0 0 0 0 0 0 7 a.png\n1 2 -1 1e5e5 2 8 1 2 3.5 nan 1 4 7 8 9\n");
    visits_are("txt", (diary){0}, "a 40x30\n  nan 1 4\n  7 8 9\n");
}

static void binary_tells_the_same(void **state)
{
    const uint64_t two = 2;
    kiln_buffer b = {0};
    (void)state;
    write_binary_cameras();
    put(&b, &two, 8);
    put_image(&b, 1, "images/a b.png", 3);
    put_keypoint(&b, 1.5, 2, 8);
    put_keypoint(&b, 3, 4, UINT64_MAX);
    put_keypoint(&b, -3, 40, 9);
    put_image(&b, 2, "c.jpg", 0);
    write_file("images.bin", b.data, b.size);
    visits_are("bin", (diary){0}, "a b 40x30\n  1.5 2 8\n  3 4 -1\n  -3 40 9\nc 40x30\n");
    visits_are("bin", (diary){.unwanted = "a b"}, "a b 40x30\nc 40x30\n");
    write_file("images.bin", b.data, b.size - 1 - 8 - 72);
    kiln_error err = {0};
    diary d = {0};
    assert_int_equal(visit("bin", &d, &err), KILN_E_INPUT); /* cut inside the keypoints */
    assert_non_null(strstr(err.msg, "images.bin"));
    kiln_buffer_release(&d.visits);
    kiln_buffer_release(&b);
}

static void keypoints_of_unwanted_images_are_not_told(void **state)
{
    (void)state;
    write_text("1 1 0 0 0 0 0 0 7 a.png\n1 2 3\n2 1 0 0 0 0 0 0 7 b.png\n4 5 6\n");
    visits_are("txt", (diary){.unwanted = "a"}, "a 40x30\nb 40x30\n  4 5 6\n");
}

/* Longer than the line buffer, so that it comes in pieces and words are cut anywhere. */
static void a_line_of_any_length_is_read_in_pieces(void **state)
{
    enum { N = 200000 };
    kiln_buffer b = {0};
    kiln_error err = {0};
    diary d = {.quiet = true};
    (void)state;
    assert_int_equal(kiln_buffer_printf(&b, &err, "1 1 0 0 0 0 0 0 7 a.png\n"), KILN_OK);
    for (int i = 1; i <= N; i++)
        assert_int_equal(kiln_buffer_printf(&b, &err, "1234.5678 8765.4321 %d ", i), KILN_OK);
    assert_true(b.size > 5u << 20);
    assert_int_equal(kiln_buffer_printf(&b, &err, "\n2 1 0 0 0 0 0 0 7 b.png\n1 2 3"), KILN_OK);
    put(&b, "", 1);
    write_text((const char *)b.data);
    if (visit("txt", &d, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(d.n, N + 1);
    assert_int_equal(d.sum, (uint64_t)N * (N + 1) / 2 + 3);
    kiln_buffer_release(&d.visits);
    kiln_buffer_release(&b);
}

static void the_visitors_failure_ends_the_visit(void **state)
{
    kiln_error err = {0};
    diary d = {.stop_at = 6};
    (void)state;
    write_text("1 1 0 0 0 0 0 0 7 a.png\n1 2 3 4 5 6 7 8 9\n2 1 0 0 0 0 0 0 7 b.png\n\n");
    assert_int_equal(visit("txt", &d, &err), KILN_E_CAP);
    assert_string_equal(err.msg, "enough");
    assert_int_equal(d.n, 1);
    kiln_buffer_release(&d.visits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_tells_images_and_their_keypoints, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(keypoints_that_are_nobodys_are_passed_over, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(binary_tells_the_same, make_root, remove_root),
        cmocka_unit_test_setup_teardown(keypoints_of_unwanted_images_are_not_told, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(a_line_of_any_length_is_read_in_pieces, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(the_visitors_failure_ends_the_visit, make_root,
                                        remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
