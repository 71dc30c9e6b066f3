/* at_once -- see at_once.cuh. */
#include "tests/bench/at_once.cuh"

#include "kernels/draw/pass_sizes.h"
#include "tests/bench/outputs.cuh"

namespace bench
{

at_once::at_once(runner *b, const frame &f)
    : b_(b), project_(f.project()), raster_(f.raster()), stats_(STATS), tile_counts_(f.tiles()),
      ids_(kiln_pass_bound(f.pairs())), ends_(f.tiles()), order_(f.tiles()), rgba_(4 * f.pixels())
{
    BENCH_CUDA(cudaMallocHost(&host_, STATS * sizeof *host_));
    lists_.n = std::min(kiln_pass_bound(f.visible()), project_.n);
    lists_.n_visible = project_.n_visible;
    lists_.splats = project_.splats;
    lists_.depths = project_.depths;
    lists_.source_rows = project_.rows;
    lists_.view = project_.view;
    lists_.row1 = kiln_view_tiles_y(project_.view);
    lists_.capacity = ids_.size();
    lists_.tile_counts = tile_counts_.get();
    lists_.ids = ids_.get();
    lists_.stats = stats_.get();
    lists_.plan = {ends_.get(), order_.get(), 1};
    raster_.plan = lists_.plan;
    raster_.n = lists_.n;
    raster_.splats = lists_.splats;
    raster_.tile_counts = lists_.tile_counts;
    raster_.ranks = lists_.ids;
    raster_.n_pairs = lists_.capacity;
    raster_.rgba = rgba_.get();
    work_bytes_ =
        std::max(b_->prepare(KILN_OP_project, &project_), b_->prepare(KILN_OP_tile_lists, &lists_));
    work_bytes_ = std::max(work_bytes_, b_->prepare(KILN_OP_raster, &raster_));
}

at_once::~at_once() { (void)cudaFreeHost(host_); }

void at_once::set_fast(bool fast)
{
    const uint32_t columns = 3 * SH_REST;
    if (fast && !halves_) {
        halves_.reset(new array<uint32_t>(kiln_sh_words(columns) * project_.n));
        const kiln_sh_halves_args a = {project_.n,    0, project_.n, columns, project_.shN,
                                       halves_->get()};
        (void)b_->prepare(KILN_OP_sh_halves, &a);
        b_->start(KILN_OP_sh_halves, &a);
    }
    project_.half_sh = raster_.fast = fast;
    project_.sh_halves = fast ? halves_->get() : nullptr;
}

void at_once::run()
{
    b_->start(KILN_OP_project, &project_);
    b_->start(KILN_OP_tile_lists, &lists_);
    b_->start(KILN_OP_raster, &raster_);
    BENCH_CUDA(cudaMemcpyAsync(host_, stats_.get(), stats_.bytes(), cudaMemcpyDeviceToHost,
                               b_->exec()->stream));
}

void at_once::poison(int byte) const
{
    BENCH_CUDA(cudaMemset(project_.splats, byte, project_.n * sizeof *project_.splats));
    BENCH_CUDA(cudaMemset(project_.depths, byte, project_.n * sizeof *project_.depths));
    BENCH_CUDA(cudaMemset(project_.rows, byte, project_.n * sizeof *project_.rows));
    stats_.fill(byte);
    tile_counts_.fill(byte);
    ids_.fill(byte);
    ends_.fill(byte);
    order_.fill(byte);
    rgba_.fill(byte);
}

/* Where a bound is too low none is listed, and a program would begin again; here it is the same
 * picture each time. */
uint64_t at_once::sum() const
{
    if (host_[0] != host_[1] || host_[2] > lists_.n)
        die(70, "a frame has more pairs than the same one before");
    return sum_of(rgba_.get(), rgba_.bytes());
}

uint64_t at_once::memory() const
{
    const uint64_t projected =
        project_.n * (sizeof *project_.splats + sizeof *project_.depths + sizeof *project_.rows);
    return work_bytes_ + projected + stats_.bytes() + tile_counts_.bytes() + ids_.bytes() +
           ends_.bytes() + order_.bytes() + rgba_.bytes();
}

} // namespace bench
