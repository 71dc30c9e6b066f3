/* fast -- pictures of kiln-render --fast beside the exact ones (raster.h). */
#ifndef KILN_TESTS_BENCH_FAST_CUH
#define KILN_TESTS_BENCH_FAST_CUH

#include "tests/bench/at_once.cuh"

namespace bench
{

/* The picture once more, fast, and as far as they are wanted projection and raster alone: their
 * times, and how far it is from the exact one, which f has drawn, of so many pairs. Leaves f as it
 * was, but for its picture. */
void bench_fast(runner *b, const std::string &name, at_once *f, uint64_t pairs,
                const cost &project_least, const cost &raster_least, const cost &frame_least);

} // namespace bench

#endif
