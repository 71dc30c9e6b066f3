/* name_fold_test -- names that differ in case or in Unicode normalisation, and those that do not. */
#include "stages/import/dataset/name_fold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static bool fold_alike(const char *a, const char *b)
{
    char x[256], y[256];
    assert_true(kiln_name_fold(a, strlen(a), x, sizeof x) && kiln_name_fold(b, strlen(b), y, sizeof y));
    return strcmp(x, y) == 0;
}

static void names_that_people_take_for_one_fold_alike(void **state)
{
    (void)state;
    assert_true(fold_alike("V0.PNG", "v0.png"));
    assert_true(fold_alike("caf\xc3\xa9", "CAFE\xcc\x81"));                          /* e acute, composed and not */
    assert_true(fold_alike("\xe1\xbb\x87", "e\xcc\xa3\xcc\x82"));                    /* of two marks */
    assert_true(fold_alike("\xed\x95\x9c", "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab")); /* Hangul */
    assert_true(fold_alike("\xe3\x81\x8c", "\xe3\x81\x8b\xe3\x82\x99"));             /* Kana with a voiced mark */
    assert_true(fold_alike("\xd0\x96", "\xd0\xb6") && fold_alike("\xce\xa3", "\xcf\x82"));
    assert_true(fold_alike("\xc3\x98", "\xc3\xb8"));
}

static void other_names_do_not(void **state)
{
    char small[4];
    (void)state;
    assert_false(fold_alike("cafe", "caf\xc3\xa9"));
    assert_false(fold_alike("a.png", "a.jpg"));
    assert_false(fold_alike("\xc3\x97", "\xc3\xb7")); /* times and divided by */
    assert_false(fold_alike("a\xff", "a\xfe"));       /* no UTF-8 */
    assert_true(fold_alike("A\xff", "a\xff"));
    assert_false(fold_alike("\xce\xa2", "\xcf\x83")); /* no letter, beside the capital sigma */
    assert_false(kiln_name_fold("abcd", 4, small, sizeof small));
    assert_true(kiln_name_fold("abc", 3, small, sizeof small));
    assert_false(kiln_name_fold("a\xc3\xa9", 3, small, sizeof small)); /* longer when it is taken apart */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_that_people_take_for_one_fold_alike),
                                       cmocka_unit_test(other_names_do_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
