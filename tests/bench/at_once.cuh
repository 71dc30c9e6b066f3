/* at_once -- what a camera costs with everything on the device, as kernels/draw/single_pass.c draws
 * it: projection, lists and raster within bounds, nothing read in between. */
#ifndef KILN_TESTS_BENCH_AT_ONCE_CUH
#define KILN_TESTS_BENCH_AT_ONCE_CUH

#include "tests/bench/frame.cuh"

namespace bench
{

class at_once
{
  public:
    /* f: has run, and stays: its projection is shared. Bounds are those of a picture behind it. */
    at_once(runner *b, const frame &f);
    ~at_once();
    at_once(const at_once &) = delete;
    at_once &operator=(const at_once &) = delete;

    void run();
    void poison(int byte) const; /* all that it writes */
    uint64_t sum() const;        /* of the picture, when the bounds have held */
    std::vector<float> picture() const { return rgba_.to_host(); }
    void set_fast(bool fast); /* pictures from now on, as kernels/draw draws fast ones */
    uint64_t rows() const { return project_.n; }
    const kiln_project_args &project() const { return project_; }
    uint64_t memory() const; /* bytes on the device beside the scene */
    const kiln_raster_args &raster() const { return raster_; }

  private:
    enum { STATS = 3 }; /* pairs listed, pairs found, visible */

    runner *b_;
    kiln_project_args project_;
    kiln_tile_lists_args lists_ = {};
    kiln_raster_args raster_;
    uint64_t work_bytes_ = 0;
    uint64_t *host_ = nullptr; /* pinned [STATS] */
    array<uint64_t> stats_;
    array<uint32_t> tile_counts_, ids_;
    array<uint64_t> ends_;
    array<uint32_t> order_;
    array<float> rgba_;
    /* of the scene's harmonics, once a fast picture was asked for */
    std::unique_ptr<array<uint32_t>> halves_;
};

} // namespace bench

#endif
