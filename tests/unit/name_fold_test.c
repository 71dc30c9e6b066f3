/* name_fold_test -- names that differ in case or in Unicode normalisation, and those that do
 * not. */
#include "stages/files/name_fold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static bool fold_alike(const char *a, const char *b)
{
    char x[256], y[256];
    assert_true(kiln_name_fold(a, strlen(a), x, sizeof x) &&
                kiln_name_fold(b, strlen(b), y, sizeof y));
    return strcmp(x, y) == 0;
}

static void names_that_people_take_for_one_fold_alike(void **state)
{
    (void)state;
    assert_true(fold_alike("V0.PNG", "v0.png"));
    /* e acute, composed and not */
    assert_true(fold_alike("caf\xc3\xa9", "CAFE\xcc\x81"));
    /* of two marks */
    assert_true(fold_alike("\xe1\xbb\x87", "e\xcc\xa3\xcc\x82"));
    assert_true(fold_alike("\xed\x95\x9c", "\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab")); /* Hangul */
    /* Kana with a voiced mark */
    assert_true(fold_alike("\xe3\x81\x8c", "\xe3\x81\x8b\xe3\x82\x99"));
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
    /* longer when it is taken apart */
    assert_false(kiln_name_fold("a\xc3\xa9", 3, small, sizeof small));
}

/* stem: of a name with an extension of three letters. */
static bool may_hold(kiln_folded_names *f, const char *dir, const char *relative)
{
    bool may = false;
    assert_int_equal(kiln_folded_may_hold(f, dir, relative, strlen(relative) - 4, &may, NULL),
                     KILN_OK);
    return may;
}

static void put_file(const char *dir, const char *name)
{
    char path[KILN_PATH_MAX];
    assert_true(snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
}

static void a_list_says_what_cannot_be_there(void **state)
{
    static const char *const here[] = {"a1.png", "B.JPG", "c.d.png", "e"}, *const none[] = {
                                                                               "a.png", "a2.png",
                                                                               "bb.jpg", "f.png"};
    char dir[] = "/tmp/kiln-name-fold.XXXXXX", inner[KILN_PATH_MAX], name[32], command[64];
    kiln_folded_names f = {0}, of_long = {0};
    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(inner, sizeof inner, "%s/inner", dir);
    assert_int_equal(mkdir(inner, 0777), 0);
    for (size_t i = 0; i < 4; i++) put_file(dir, here[i]);
    put_file(inner, "g.png");
    assert_true(may_hold(&f, dir, "a1.png") && may_hold(&f, dir, "a1.jpg") &&
                may_hold(&f, dir, "b.png"));
    assert_true(may_hold(&f, dir, "c.jpg") && may_hold(&f, dir, "E.png") &&
                may_hold(&f, dir, "inner/G.tif"));
    assert_true(may_hold(&f, dir, "a.png")); /* a1 begins so: only a look tells */
    for (size_t i = 1; i < 4; i++) assert_false(may_hold(&f, dir, none[i]));
    assert_false(may_hold(&f, dir, "inner/a1.png") || may_hold(&f, dir, "none/a1.png") ||
                 may_hold(&f, dir, "a1.png/a1.png"));
    /* not listed; folded by others otherwise */
    assert_true(may_hold(&f, dir, ".hidden.png") && may_hold(&f, dir, "\xd4\xb1.png"));
    for (int i = 0; i < 100; i++) { /* a folder for each photo: not all of them are listed */
        (void)snprintf(name, sizeof name, "none%d/a.png", i);
        assert_int_equal(may_hold(&of_long, dir, name), i >= 64);
    }
    kiln_folded_names_release(&f);
    kiln_folded_names_release(&of_long);
    (void)snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_list_says_what_cannot_be_there),
                                       cmocka_unit_test(names_that_people_take_for_one_fold_alike),
                                       cmocka_unit_test(other_names_do_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
