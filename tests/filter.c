/* filter -- linked into every unit test: KILN_TEST='ties*' runs only the tests whose names match
 * (tests/run sets it from T='unit/knn:ties*'). A constructor, so that no test's main has to
 * know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) static void choose_tests(void)
{
    const char *pattern = getenv("KILN_TEST");
    if (pattern && *pattern) cmocka_set_test_filter(pattern);
}
