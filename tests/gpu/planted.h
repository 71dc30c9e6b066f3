/* planted -- operations with the faults that our own must not have, to see that they are found.
 * Each takes the place of knn in a table. */
#ifndef KILN_TESTS_GPU_PLANTED_H
#define KILN_TESTS_GPU_PLANTED_H

#include "base/extern_c.h"
#include "kernels/knn/knn.h"

KILN_C_BEGIN

/* Right, but without the guard: leaves its device current. */
kiln_knn_fn kiln_planted_unguarded;
/* Its kernel `write_far_outside` writes where no memory is. */
kiln_knn_fn kiln_planted_write;
/* Starts its kernel `do_nothing` with more threads in a block than there can be. */
kiln_knn_fn kiln_planted_launch;

KILN_C_END

#endif
