/* again -- the test's own program once more, as a process of its own: for what must not be in the
 * test's process, such as a fault that costs the context, or a process that has never seen device
 * 0. */
#ifndef KILN_TESTS_GPU_AGAIN_H
#define KILN_TESTS_GPU_AGAIN_H

#include <stddef.h>

/* With these arguments; what it prints goes to `said`. Returns its exit code, 128 when it had
 * none. */
int run_again(const char *a, const char *b, const char *c, char *said, size_t capacity);
/* False, with the reason printed, under KILN_GPU_SMALL: beneath compute-sanitizer such a process
 * does not come back. */
int can_run_again(void);

#endif
