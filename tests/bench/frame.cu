/* frame -- see frame.cuh. */
#include "tests/bench/frame.cuh"

#include "tests/bench/outputs.cuh"

#include <numeric>

namespace bench
{

frame::frame(runner *b, const scene &s, const kiln_view &view, memory_by how)
    : b_(b), view_(view), how_(how), tiles_x_(kiln_view_tiles_x(&view)),
      tiles_y_(kiln_view_tiles_y(&view)), n_(s.n), n_visible_(1), row_pairs_(tiles_y_), splats_(n_),
      ordered_(n_), depths_(n_), rgba_(uint64_t(4) * view.width * view.height), source_rows_(n_),
      rows_(n_), order_(n_), ordered_rows_(n_), tile_counts_(uint64_t(tiles_x_) * tiles_y_)
{
    std::vector<uint32_t> source_rows(n_);
    std::iota(source_rows.begin(), source_rows.end(), 0u);
    source_rows_.from_host(source_rows.data());
    BENCH_CUDA(cudaMallocHost(&host_, std::max(tiles_y_, 1u) * sizeof *host_));
    set_scene(s);
    set_order();
}

frame::~frame() { (void)cudaFreeHost(host_); }

void frame::set_scene(const scene &s)
{
    project_.n = n_;
    project_.means = s.means.get();
    project_.log_scales = s.log_scales.get();
    project_.quats = s.quats.get();
    project_.opacity_logits = s.opacity_logits.get();
    project_.sh0 = s.sh0.get();
    project_.shN = s.shN.get();
    project_.sh_degree = SH_DEGREE;
    project_.view = count_.view = emit_.view = raster_.view = &view_;
    project_.profile = raster_.profile = PROFILE;
    project_.splats = splats_.get();
    project_.n_visible = n_visible_.get();
    project_.source_rows = source_rows_.get();
    project_.depths = depths_.get();
    project_.rows = rows_.get();
}

void frame::set_order()
{
    order_args_.depths = depths_.get();
    order_args_.source_rows = rows_.get();
    order_args_.order = order_.get();
    move_.splats = splats_.get();
    move_.order = order_.get();
    move_.ordered = ordered_.get();
    move_.ordered_rows = ordered_rows_.get();
    count_.splats = emit_.splats = raster_.splats = ordered_.get();
    count_.row1 = tiles_y_;
    count_.row_pairs = row_pairs_.get();
    emit_.tile_counts = tile_counts_.get();
    raster_.tile_counts = tile_counts_.get();
}

/* The first run prepares: what an operation needs depends on what those before it gave. */
void frame::step(kiln_op_id op, const void *args)
{
    if (!prepared_) work_bytes_ = std::max(work_bytes_, b_->prepare(op, args));
    b_->start(op, args);
}

void frame::read_back(const uint64_t *from, uint64_t n)
{
    const kiln_exec *x = b_->exec();
    BENCH_CUDA(cudaMemcpyAsync(host_, from, n * sizeof *host_, cudaMemcpyDeviceToHost, x->stream));
    BENCH_CUDA(cudaStreamSynchronize(x->stream));
}

void frame::collect()
{
    step(KILN_OP_project, &project_);
    read_back(n_visible_.get(), 1);
    order_args_.n = move_.n = count_.n = emit_.n = raster_.n = host_[0];
}

void frame::put_in_order()
{
    step(KILN_OP_depth_order, &order_args_);
    step(KILN_OP_visible_order, &move_);
}

void frame::count_pairs()
{
    step(KILN_OP_tile_pairs_count, &count_);
    read_back(row_pairs_.get(), tiles_y_);
    pairs_ = std::accumulate(host_, host_ + tiles_y_, uint64_t(0));
}

void frame::reserve(uint64_t pairs)
{
    if (ranks_ && ranks_->size() >= pairs) return;
    BENCH_CUDA(cudaStreamSynchronize(b_->exec()->stream)); /* the last band may be reading them */
    ranks_.reset(new array<uint32_t>(pairs));
}

/* Tile rows [row0, row1). */
void frame::draw(uint32_t row0, uint32_t row1)
{
    const uint64_t pairs = std::accumulate(host_ + row0, host_ + row1, uint64_t(0));
    reserve(pairs);
    emit_.row0 = raster_.row0 = row0;
    emit_.row1 = raster_.row1 = row1;
    emit_.capacity = raster_.n_pairs = pairs;
    emit_.ranks = ranks_->get();
    raster_.ranks = ranks_->get();
    raster_.rgba = rgba_.get() + uint64_t(4) * row0 * KILN_TILE * view_.width;
    step(KILN_OP_tile_pairs_emit, &emit_);
    step(KILN_OP_raster, &raster_);
}

void frame::run()
{
    std::vector<uint32_t> starts = {0, tiles_y_};
    uint32_t bands = 1;
    collect();
    put_in_order();
    count_pairs();
    if (how_ == memory_by::BANDS) {
        starts.resize(tiles_y_ + 1);
        bands = kiln_tile_bands(host_, tiles_y_, starts.data());
    }
    for (uint32_t i = 0; i < bands; i++) draw(starts[i], starts[i + 1]);
    prepared_ = true;
}

std::vector<const array<uint32_t> *> frame::numbers() const
{
    return {&rows_, &order_, &ordered_rows_, &tile_counts_, ranks_.get()};
}

void frame::poison(int byte) const
{
    splats_.fill(byte);
    ordered_.fill(byte);
    depths_.fill(byte);
    rgba_.fill(byte);
    for (const array<uint32_t> *a : numbers()) a->fill(byte);
}

uint64_t frame::sum() const { return sum_of(rgba_.get(), rgba_.bytes()); }

uint64_t frame::memory() const
{
    uint64_t bytes =
        work_bytes_ + splats_.bytes() + ordered_.bytes() + depths_.bytes() + rgba_.bytes();
    for (const array<uint32_t> *a : numbers()) bytes += a->bytes();
    return bytes;
}

} // namespace bench
