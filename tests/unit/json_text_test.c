/* Lists in JSON that are cut, or read one element after the other, without the whole of them in
 * memory. */
#include "stages/engine/json_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static json_t *shortened(const char *text, size_t most)
{
    json_t *v = NULL;
    assert_int_equal(kiln_json_parse_short(text, strlen(text), most, "a test", &v, NULL), KILN_OK);
    return v;
}

static void assert_short(const char *text, size_t most, const char *want)
{
    json_t *v = shortened(text, most);
    char *got = kiln_json_text(v, JSON_COMPACT);
    assert_non_null(got);
    assert_string_equal(got, want);
    free(got);
    json_decref(v);
}

static void long_arrays_are_cut(void **state)
{
    (void)state;
    assert_short("{\"a\": [1, 2, 3], \"b\": 4}", 2, "{\"a\":[1,2],\"b\":4}");
    assert_short("{\"a\": [1, 2, 3], \"b\": 4}", 3, "{\"a\":[1,2,3],\"b\":4}");
    assert_short("[{\"x\": [1, 2]}, {\"y\": [[], {}]}, 7]", 1, "[{\"x\":[1]}]");
    assert_short("[\"],[\", \"a\\\\\", \"\\\"]\", {\"k,\": [1, [2, 3], 4]}]", 3,
                 "[\"],[\",\"a\\\\\",\"\\\"]\"]");
    assert_short("{\"k,\": [[1, 2, 3], [4, 5, 6], [7]], \"o\": {\"p\": 1, \"q\": 2, \"r\": 3}}", 2,
                 "{\"k,\":[[1,2],[4,5]],\"o\":{\"p\":1,\"q\":2,\"r\":3}}");
    assert_short("[]", 1, "[]");
}

static void no_json_stays_none(void **state)
{
    static const char *const texts[] = {
        "", "{", "[1, 2", "[1, 2, 3}", "{\"a\": [1, 2, 3]", "\"", "[1, 2, \"", "]]", "[1, 2, 3]]"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_null(shortened(texts[i], 2));
}

typedef struct {
    char said[256];
    unsigned left; /* how many are taken */
} seen;

static kiln_status see(void *context, const json_t *item, kiln_error *err)
{
    seen *s = context;
    char *text = kiln_json_text(item, JSON_COMPACT | JSON_ENCODE_ANY);
    assert_non_null(text);
    (void)snprintf(s->said + strlen(s->said), sizeof s->said - strlen(s->said), "%s;", text);
    free(text);
    return --s->left ? KILN_OK : kiln_fail(err, KILN_E_IO, "enough");
}

static void assert_each(const char *text, const char *want)
{
    seen s = {.left = 100};
    assert_int_equal(kiln_json_each(text, strlen(text), "rows", see, &s, NULL), KILN_OK);
    assert_string_equal(s.said, want);
}

static void elements_come_one_after_the_other(void **state)
{
    (void)state;
    assert_each("{\"rows\": [1, {\"a\": [2, \"]\"]}, \"x,y\"], \"more\": [9]}",
                "1;{\"a\":[2,\"]\"]};\"x,y\";");
    assert_each("{\"o\": {\"rows\": [5]}, \"t\": \"rows\", \"rows\" : [ 6 ]}", "6;");
    assert_each("{\"rows\": []}", "");
    assert_each("{\"rows\": {\"rows\": [1]}}", "");
    assert_each("{\"cows\": [1]}", "");
    assert_each("{\"rows\": [1, nonsense, 2", "1;2;");
    assert_each("", "");
    assert_each("{\"rows\"", "");
}

static void a_failure_ends_it(void **state)
{
    seen s = {.left = 2};
    const char *text = "{\"rows\": [1, 2, 3]}";
    (void)state;
    assert_int_equal(kiln_json_each(text, strlen(text), "rows", see, &s, NULL), KILN_E_IO);
    assert_string_equal(s.said, "1;2;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_arrays_are_cut), cmocka_unit_test(no_json_stays_none),
        cmocka_unit_test(elements_come_one_after_the_other), cmocka_unit_test(a_failure_ends_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
