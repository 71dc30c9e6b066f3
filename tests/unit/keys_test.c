/* keys_test -- what of a stage's options is in its key: each keyed one, but for the default of one
 * that is newer than bakes. */
#include "stages/engine/parent/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static uint32_t count, axis;
static kiln_run run; /* too big for the stack */

#define COUNT KILN_OPTION_NUMBER("count", &count, "N", "how many", .def = "4", .flags = KILN_KEYED)
#define AXIS(flag_set)                                                              \
    KILN_OPTION_ENUM("axis", &axis, "AXIS", "auto|x|y", "which one", .def = "auto", \
                     .flags = (flag_set))
static const kiln_opt before[] = {COUNT, KILN_OPTION_END};
static const kiln_opt keyed[] = {COUNT, AXIS(KILN_KEYED), KILN_OPTION_END};
static const kiln_opt later[] = {COUNT, AXIS(KILN_KEYED | KILN_LATER), KILN_OPTION_END};

static kiln_hash key_of(const kiln_opt *options)
{
    static const kiln_stage_program program = {.name = "stage"};
    run.program = &program;
    run.cli.options = options;
    return kiln_key_end(kiln_run_key(&run));
}

static void a_keyed_option_is_in_the_key(void **state)
{
    (void)state;
    count = 4, axis = 0;
    const kiln_hash four = key_of(before);
    assert_false(kiln_hash_equal(four, key_of(keyed)));
    count = 5;
    assert_false(kiln_hash_equal(four, key_of(before)));
}

static void the_default_of_a_later_one_is_not(void **state)
{
    (void)state;
    count = 4, axis = 0;
    assert_true(kiln_hash_equal(key_of(before), key_of(later)));
    axis = 1;
    const kiln_hash x = key_of(later);
    assert_false(kiln_hash_equal(key_of(before), x));
    axis = 2;
    assert_false(kiln_hash_equal(x, key_of(later)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_keyed_option_is_in_the_key),
        cmocka_unit_test(the_default_of_a_later_one_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
