/* dataset_limits_test -- files of cameras that are made to take memory. */
#include "tests/unit/dataset_fixture.h"

static void nesting_ends_at_64(void **state)
{
    char text[256];
    json_t *json;
    kiln_error err = {0};
    (void)state;
    for (int depth = 64; depth <= 65; depth++) {
        const int n =
            snprintf(text, sizeof text, "%.*s\"[[[\\\"[[\"%.*s", depth,
                     "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", depth,
                     "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]");
        assert_int_equal(n, 2 * depth + 9);
        put("deep.json", text);
        assert_int_equal(kiln_json_file_read(at("deep.json"), &json, &err),
                         depth == 64 ? KILN_OK : KILN_E_INPUT);
        json_decref(json);
    }
    assert_non_null(strstr(err.msg, "nested deeper"));
}

/* open, then n times item with a comma between, then close; free() it. "%u" in item is the
 * index. */
static char *repeated(const char *open, const char *item, const char *close, unsigned n)
{
    char *text = malloc(strlen(open) + strlen(close) + (size_t)n * (strlen(item) + 12) + 1);
    assert_non_null(text);
    char *to = text + sprintf(text, "%s", open);
    for (unsigned i = 0; i < n; i++) {
        const char *at = strstr(item, "%u");
        if (i) *to++ = ',';
        to += at ? sprintf(to, "%.*s%u%s", (int)(at - item), item, i, at + 2)
                 : sprintf(to, "%s", item);
    }
    strcpy(to, close);
    return text;
}

static kiln_status parse(const char *text, uint64_t limit, json_t **out, kiln_error *err)
{
    return kiln_json_text_read("x.json", (const unsigned char *)text, strlen(text), limit, out,
                               err);
}

static size_t bytes_in_use(void)
{
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

/* What is expected of a text before it is parsed is never less than jansson takes, and not three
 * times as much. */
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
            if (parse(text, taken - 1, &json, &err) != KILN_E_INPUT)
                fail_msg("%s: takes %zu bytes", shapes[i].item, taken);
            assert_non_null(strstr(err.msg, "so many values"));
            if (parse(text, 3 * taken, &json, &err) != KILN_OK)
                fail_msg("%zu bytes, but %s", taken, err.msg);
            json_decref(json);
        }
        free(text);
    }
}

/* 6.6 MB that would take 512 MiB; and a file of 100,000 frames, which is not refused. */
static void json_of_too_many_values_is_refused_before_it_is_parsed(void **state)
{
    static const char frame[] =
        "{\"file_path\":\"images/"
        "frame_%u.jpg\",\"colmap_im_id\":1,\"transform_matrix\":[[0.1234567891,"
        "-0.1234567891,0.1234567891,-1.234567891],[0.1234567891,-0.1234567891,0.1234567891,-1."
        "234567891],"
        "[0.1234567891,-0.1234567891,0.1234567891,-1.234567891],[0.0,0.0,0.0,1.0]],\"fl_x\":1000."
        "25,"
        "\"fl_y\":1000.5,\"cx\":960.25,\"cy\":540.25,\"w\":1920,\"h\":1080,\"k1\":0.01,\"k2\":0."
        "002}";
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
    assert_int_equal(kiln_file_write(at("sparse/0/cameras.bin"), &camera, sizeof camera, &err),
                     KILN_OK);
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
        assert_int_equal(
            kiln_buffer_printf(&b, &err, "%d 1 0 0 0 0 0 0 1 photo %d.png\n", image, image),
            KILN_OK);
        for (int i = 0; i < 150000; i++)
            assert_int_equal(kiln_buffer_put(&b, "12.3456 65.4321 -1 ", 19, &err), KILN_OK);
        assert_int_equal(kiln_buffer_put(&b, "\n", 1, &err), KILN_OK);
    }
    assert_int_equal(kiln_file_write(at("sparse/0/images.txt"), b.data, b.size, &err), KILN_OK);
    kiln_buffer_release(&b);
    find();
    assert_int_equal(data.set.n_cameras, 2);
    assert_string_equal(data.set.cameras[1].name, "photo 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCRATCH(nesting_ends_at_64),
        cmocka_unit_test(values_are_counted_by_the_memory_that_they_take),
        IN_SCRATCH(json_of_too_many_values_is_refused_before_it_is_parsed),
        IN_SCRATCH(keypoint_counts_whose_bytes_overflow_are_refused),
        IN_SCRATCH(keys_that_occur_twice_are_refused),
        IN_SCRATCH(keypoint_lines_have_no_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
