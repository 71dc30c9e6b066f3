/* cpu_nanoflann -- the same means of squared distances by nanoflann (Debian's libnanoflann-dev), a
 * k-d tree of others. Without its header the bench is built with cpu_no_nanoflann.c. */
#ifndef KILN_TESTS_BENCH_CPU_NANOFLANN_H
#define KILN_TESTS_BENCH_CPU_NANOFLANN_H

#include "base/extern_c.h"

#include <stdbool.h>
#include <stdint.h>

KILN_C_BEGIN

/* Why it is not there; NULL: it is. */
const char *cpu_nanoflann_missing(void);
/* Build (its own is of one thread) and query with `threads`: spacing2 [n] of points [n][3], the
 * layout that suits it best, by the three nearest neighbours. False: out of memory. */
bool cpu_nanoflann(const float *points, uint64_t n, unsigned threads, float *spacing2);

KILN_C_END

#endif
