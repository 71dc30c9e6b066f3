/* listing -- tile_lists of what a frame's project left, of just as many Gaussians and pairs as
 * there are: what the peers' lists are. With the plan that raster needs, as in a frame. */
#ifndef KILN_TESTS_BENCH_LISTING_CUH
#define KILN_TESTS_BENCH_LISTING_CUH

#include "tests/bench/bench.cuh"

namespace bench
{

class listing
{
  public:
    /* project: as it has run, with depths and rows. The arrays stay the frame's. */
    listing(const kiln_project_args &project, uint64_t visible, uint64_t pairs);
    const kiln_tile_lists_args &args() const { return args_; }
    uint64_t bytes() const
    {
        return tile_counts_.bytes() + ids_.bytes() + order_.bytes() + stats_.bytes() +
               ends_.bytes();
    }

  private:
    array<uint32_t> tile_counts_, ids_, order_;
    array<uint64_t> stats_, ends_;
    kiln_tile_lists_args args_ = {};
};

} // namespace bench

#endif
