/* test_folder -- a folder of a test's own: within the one that tests/run made for it (KILN_TMP),
 * else where the user keeps such things (TMPDIR), else in /tmp. */
#ifndef KILN_TESTS_TEST_FOLDER_H
#define KILN_TESTS_TEST_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEST_FOLDER_MAX = 192, TEST_PATH_MAX = TEST_FOLDER_MAX + 64 };

static inline const char *test_folder_parent(void)
{
    const char *const run = getenv("KILN_TMP"), *const user = getenv("TMPDIR");
    return run && *run ? run : user && *user ? user : "/tmp";
}

/* A new one, its name beginning with that; 0, or -1 where there can be none. */
static inline int test_folder_new(char folder[TEST_FOLDER_MAX], const char *name)
{
    const int n = snprintf(folder, TEST_FOLDER_MAX, "%s/%s.XXXXXX", test_folder_parent(), name);
    return n > 0 && n < TEST_FOLDER_MAX && mkdtemp(folder) ? 0 : -1;
}

/* With all that is in it. */
static inline int test_folder_remove(const char *folder)
{
    char command[TEST_FOLDER_MAX + 16];
    const int n = snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return n > 0 && n < (int)sizeof command ? system(command) : -1;
}

#endif
