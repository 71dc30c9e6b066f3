/* suites -- the parts of the kernel bench; each asks the runner which operations and scenes are
 * wanted. */
#ifndef KILN_TESTS_BENCH_SUITES_CUH
#define KILN_TESTS_BENCH_SUITES_CUH

#include "tests/bench/bench.cuh"

namespace bench
{

void knn_suite(runner *b); /* knn, knn_join, spatial_order */
/* frame, project, visible, lists, raster; shared: NULL, or reference data */
void frame_suite(runner *b, const char *shared);
void palette_suite(runner *b, const char *shared);
void pass_suite(runner *b); /* metrics, and ranks, prune and initial under the name rows */

} // namespace bench

#endif
