/* file_hash: the content hash of a file is that of its bytes, however many threads read it. */

#include "base/file.h"
#include "stages/files/hash_file.h"
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

enum { PIECE = KILN_HASH_RAM };

static void hash_is_of_the_bytes_with_any_number_of_threads(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 7 * PIECE + 12345};
    static const unsigned threads[] = {1, 2, 3, 16};
    char folder[TEST_FOLDER_MAX], path[TEST_PATH_MAX];
    kiln_error err = {0};
    kiln_hash hash;
    unsigned char *data = malloc(8 * PIECE);
    uint32_t x = 1;
    assert_non_null(data);
    for (size_t i = 0; i < 8 * PIECE; i++)
        data[i] = (unsigned char)((x = x * 1664525u + 1013904223u) >> 24); /* Numerical Recipes */
    assert_int_equal(test_folder_new(folder, "file_hash"), 0);
    (void)snprintf(path, sizeof path, "%s/file", folder);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        assert_int_equal(kiln_file_write(path, data, sizes[s], &err), KILN_OK);
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            memset(&hash, 0, sizeof hash);
            assert_int_equal(kiln_hash_file_with(path, threads[t], &hash, &err), KILN_OK);
            assert_true(kiln_hash_equal(hash, kiln_hash_of(data, sizes[s])));
        }
        assert_int_equal(kiln_hash_file(path, &hash, &err), KILN_OK);
        assert_true(kiln_hash_equal(hash, kiln_hash_of(data, sizes[s])));
    }
    assert_int_equal(test_folder_remove(folder), 0);
    free(data);
}

static void missing_file_is_named(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_hash hash;
    assert_int_equal(kiln_hash_file_with("/nowhere/scene.ply", 4, &hash, &err), KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "/nowhere/scene.ply"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hash_is_of_the_bytes_with_any_number_of_threads),
        cmocka_unit_test(missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
