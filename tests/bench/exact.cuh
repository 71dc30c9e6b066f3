/* exact -- the plainest kernels that compute what an operation promises, and comparisons with them.
 * Slow, and independent of how the operation does it: knn by all distances, lists by all pixels, a
 * picture by one thread a pixel. */
#ifndef KILN_TESTS_BENCH_EXACT_CUH
#define KILN_TESTS_BENCH_EXACT_CUH

#include "tests/bench/bench.cuh"

namespace bench
{

/* Of some of the points, the squared distances to the three nearest of n candidates [3][n],
 * ascending. */
struct nearest {
    std::vector<uint32_t> queries; /* which */
    std::vector<float> best;       /* [3][queries] */
};
/* points [3][n_points]. same: the candidates are the points, and none is its own neighbour. */
nearest nearest_three(const float *candidates, uint64_t n, const float *points, uint64_t n_points,
                      bool same, uint64_t n_queries);

/* spacing2 [n] as knn gave it for k = 3. */
finding check_knn(const std::string &what, const float *means, uint64_t n, const float *spacing2,
                  uint64_t n_queries);
/* best [3][n_queries] as knn_join gave it. */
finding check_knn_join(const std::string &what, const kiln_knn_join_args &a, uint64_t n_queries);

/* Lists of all tile rows: nothing missing, nothing that does not belong, in order. Two findings.
 * All of a.n are there; without depths they are in drawing order. */
void check_lists(table *t, const std::string &what, const kiln_tile_lists_args &a);

/* Every float of a->rgba. Blends counts what reached a pixel's colour: the least that must be
 * computed. */
finding check_raster(const std::string &what, const kiln_raster_args &a, uint64_t *blends);

/* Where each list begins: [tiles + 1]. */
std::vector<uint64_t> list_begins(const uint32_t *tile_counts, uint64_t tiles);

} // namespace bench

#endif
