/* shuffle -- the set of functions for any processor. */
#include "schema/shuffle.h"

#include "schema/shuffle_loops.h"

static void gather_baseline(const unsigned char *raw, size_t n, size_t elem, size_t b,
                            unsigned char *out)
{
    gather(raw, n, elem, b, out);
}

static void join_baseline(const unsigned char *planes, size_t n, size_t elem, unsigned char *raw)
{
    join(planes, n, elem, raw);
}

static const kiln_shuffle baseline = {gather_baseline, join_baseline};

const kiln_shuffle *kiln_shuffle_baseline(void) { return &baseline; }
