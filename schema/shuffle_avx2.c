/* shuffle_avx2 -- the set of functions with AVX2, and whether this machine gets it. */
#include "base/isa.h"
#include "schema/shuffle.h"
#include "schema/shuffle_loops.h"

__attribute__((target("avx2"))) static void gather_avx2(const unsigned char *raw, size_t n,
                                                        size_t elem, size_t b, unsigned char *out)
{
    gather(raw, n, elem, b, out);
}

__attribute__((target("avx2"))) static void join_avx2(const unsigned char *planes, size_t n,
                                                      size_t elem, unsigned char *raw)
{
    join(planes, n, elem, raw);
}

static const kiln_shuffle avx2 = {gather_avx2, join_avx2};

const kiln_shuffle *kiln_shuffle_best(void)
{
    return kiln_isa_avx2() ? &avx2 : kiln_shuffle_baseline();
}
