/* where_test -- in a build with DEBUG=1 a sentence says where it was made. This file is compiled as
 * such a build is. */
#ifndef KILN_SAYS_WHERE
#define KILN_SAYS_WHERE
#endif
#include "base/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int say_where(void **state)
{
    (void)state;
    return setenv("KILN_WHERE", "1", 1);
}

static void a_sentence_ends_with_file_and_line(void **state)
{
    kiln_error err = {0};
    char want[200];
    (void)state;
    assert_int_equal(kiln_fail(&err, KILN_E_INPUT, "cannot open '%s'", "x"), KILN_E_INPUT);
    snprintf(want, sizeof want, "cannot open 'x' (tests/unit/where_test.c:%d)", __LINE__ - 1);
    assert_string_equal(err.msg, want);
    assert_int_equal(err.status, KILN_E_INPUT);
    kiln_note(&err, "chunk %d", 7);
    assert_memory_equal(err.msg, "chunk 7: cannot open 'x' (tests/", 32);
    unsetenv("KILN_WHERE");
    assert_int_equal(kiln_fail(&err, KILN_E_INPUT, "no"), KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "no (tests/unit/where_test.c:"));
}

static void the_environment_can_leave_it_out(void **state)
{
    kiln_error err = {0};
    (void)state;
    setenv("KILN_WHERE", "0", 1);
    assert_int_equal(kiln_fail(&err, KILN_E_IO, "no room"), KILN_E_IO);
    assert_string_equal(err.msg, "no room");
}

/* What a build without DEBUG calls. */
static void the_function_itself_says_nothing_of_it(void **state)
{
    kiln_error err = {0};
    (void)state;
    assert_int_equal((kiln_fail)(&err, KILN_E_CAP, "needs %d MiB", 12), KILN_E_CAP);
    assert_string_equal(err.msg, "needs 12 MiB");
}

static void a_long_sentence_keeps_its_own_words(void **state)
{
    kiln_error err = {0};
    char text[sizeof err.msg];
    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(kiln_fail(&err, KILN_E_INPUT, "%s", text), KILN_E_INPUT);
    assert_string_equal(err.msg, text);
    assert_int_equal(kiln_fail(NULL, KILN_E_INPUT, "nobody asks"), KILN_E_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_sentence_ends_with_file_and_line, say_where),
        cmocka_unit_test_setup(the_environment_can_leave_it_out, say_where),
        cmocka_unit_test_setup(the_function_itself_says_nothing_of_it, say_where),
        cmocka_unit_test_setup(a_long_sentence_keeps_its_own_words, say_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
