/* cpu_no_nanoflann -- where nanoflann is not installed. */
#include "tests/bench/cpu_nanoflann.h"

const char *cpu_nanoflann_missing(void)
{
    return "this build has no nanoflann (Debian: libnanoflann-dev)";
}

bool cpu_nanoflann(const float *points, uint64_t n, unsigned threads, float *spacing2)
{
    (void)points;
    (void)n;
    (void)threads;
    (void)spacing2;
    return false;
}
