/* training_marks_test -- scalars of YAML as trainers write it, and what is none. */
#include "stages/import/dataset/training_marks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *get(const char *text, const char *key, bool top)
{
    static char out[16];
    return kiln_yaml_scalar(text, strlen(text), key, top, out, sizeof out) ? out : NULL;
}

static void scalars_are_read_as_they_stand(void **state)
{
    (void)state;
    assert_string_equal(get("data_dir: x\nantialiased: true\n", "antialiased", true), "true");
    assert_string_equal(get("antialiased: true", "antialiased", true), "true");
    assert_string_equal(get("a: 1\r\nantialiased:  'true' # as trained\r\n", "antialiased", true),
                        "true");
    assert_string_equal(
        get("!!python/object:x\nmodel: !!python/object:y\n  rasterize_mode: antialiased  # z\n",
            "rasterize_mode", false),
        "antialiased");
    assert_string_equal(get("k: a#b\n", "k", true), "a#b");
    assert_string_equal(get("k: &x\nk: 2\n", "k", true), "2"); /* the first that is a scalar */
}

static void what_is_none_is_passed_over(void **state)
{
    static const char *const texts[] = {"",
                                        "k",
                                        "k:",
                                        "k:\n  - true\n",
                                        "k:true",
                                        "kk: 1",
                                        " k: 1",
                                        "# k: 1",
                                        "k: # 1",
                                        "k: {a: 1}",
                                        "k: [1]",
                                        "k: \"1",
                                        "k: |\n 1",
                                        "k: !!python/tuple",
                                        "k: 0123456789abcdef",
                                        "x: k: 1"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_null(get(texts[i], "k", true));
    assert_string_equal(get(" k: 1", "k", false), "1");
    assert_null(get("- k: 1", "k", false));
}

static void bytes_are_no_text(void **state)
{
    char out[16];
    static const char zero[] = "k: a\0b\nk: c\n";
    (void)state;
    assert_true(kiln_yaml_scalar(zero, sizeof zero - 1, "k", true, out, sizeof out));
    assert_string_equal(out, "c");
    assert_false(kiln_yaml_scalar("k: 1", 3, "k", true, out, sizeof out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(scalars_are_read_as_they_stand),
                                       cmocka_unit_test(what_is_none_is_passed_over),
                                       cmocka_unit_test(bytes_are_no_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
