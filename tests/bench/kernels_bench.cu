/* kernels_bench -- how long each kernel takes, beside other programs on the same inputs. Never passes or fails.
 *
 *   kernels_bench [--device N] [--6m] [--no-cpu] [--only frame|metrics|knn|order|rows] [--json FILE]
 *
 * CUDA siblings by events around one call on arrays of the device, CPU siblings by the clock. A frame is what a camera
 * costs with everything on the device: project, order, lists, raster, with the two counts that the host must read. It
 * is run alone so that the figures are comparable: nothing overlaps. */
#include "tests/bench/inputs.cuh"

#include "kernels/cuda.cuh"

#include <math.h>
#include <memory>
#include <stdlib.h>
#include <string.h>

extern "C" const char kiln_bench_commit[];

namespace
{

using bench::array;

constexpr unsigned BLOCK = 256;

__global__ void split(uint64_t n, const kiln_splat2d *splats, float *depths, uint32_t *rows)
{
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count()) {
        depths[i] = splats[i].depth;
        rows[i] = splats[i].row;
    }
}

__global__ void permute(uint64_t n, const kiln_splat2d *from, const uint32_t *order, kiln_splat2d *to)
{
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count()) to[i] = from[order[i]];
}

std::string size_name(uint64_t n) { return n % 1000000 == 0 ? std::to_string(n / 1000000) + "M" : std::to_string(n / 1000) + "k"; }

void bench_knn(bench::runner *b)
{
    for (const bool clustered : {false, true})
        for (const uint64_t n : {10000, 100000, 1000000, 10000000}) {
            array<float> means(3 * n), spacing2(n);
            bench::make_points(&means, n, clustered);
            kiln_knn_args a = {};
            a.n = n;
            a.k = 3;
            a.means = means.get();
            a.spacing2 = spacing2.get();
            b->operation(std::string("knn ") + (clustered ? "clustered " : "uniform ") + size_name(n), n, KILN_OP_knn, &a,
                         n <= 1000000);
        }
}

void bench_order(bench::runner *b)
{
    for (const uint64_t n : {1000000, 10000000}) {
        array<float> means(3 * n);
        array<uint32_t> order(n);
        array<uint64_t> codes(n);
        bench::make_points(&means, n, false);
        kiln_spatial_order_args a = {};
        a.n = n;
        a.means = means.get();
        for (double &c : a.centre) c = 0.5;
        a.half = 0.5;
        a.order = order.get();
        a.codes = codes.get();
        b->operation("spatial_order " + size_name(n), n, KILN_OP_spatial_order, &a, n <= 1000000);
    }
}

void bench_metrics(bench::runner *b)
{
    const uint64_t values = uint64_t(bench::WIDTH) * bench::HEIGHT * 3;
    array<float> one(values), other(values);
    array<kiln_metrics> out(1);
    bench::make_picture(&one, 0);
    bench::make_picture(&other, 1);
    kiln_metrics_args a = {};
    a.width = a.a_row = a.b_row = bench::WIDTH;
    a.height = bench::HEIGHT;
    a.a = one.get();
    a.b = other.get();
    a.a_step = a.b_step = 3;
    a.out = out.get();
    b->operation("metrics 1080p", values / 3, KILN_OP_metrics, &a, true);
}

/* The operations that pass over rows once: what an import, a pruning and a plan are made of. */
void bench_rows(bench::runner *b)
{
    const uint64_t n = 1000000;
    const bench::scene s(n);
    array<uint64_t> bins(KILN_RANK_BINS), counts(2 * KILN_PRUNE_RULES), n_fallback(1);
    array<uint8_t> keep(n);
    array<float> log_scales(3 * n), quats(4 * n), opacity_logits(n), sh0(3 * n);
    BENCH_CUDA(cudaMemset(bins.get(), 0, bins.size() * sizeof(uint64_t)));
    BENCH_CUDA(cudaMemset(counts.get(), 0, counts.size() * sizeof(uint64_t)));
    kiln_ranks_args ranks = {};
    ranks.n = n;
    ranks.values = s.means.get();
    ranks.counts = bins.get();
    b->operation("ranks 1M", n, KILN_OP_ranks, &ranks, true);

    kiln_prune_rules rules = {};
    for (float *off : {&rules.box_min[0], &rules.box_max[0], &rules.sphere_radius, &rules.max_spacing2, &rules.spacing_factor})
        *off = nanf("");
    rules.min_opacity_logit = -4.0f;
    rules.log_floor = -20.0f;
    rules.log_ceiling = rules.log_extent = -1.0f;
    rules.needle_ratio = 100.0f;
    kiln_prune_args prune = {};
    prune.n = n;
    prune.means = s.means.get();
    prune.log_scales = s.log_scales.get();
    prune.opacity_logits = s.opacity_logits.get();
    prune.rules = &rules;
    prune.keep = keep.get();
    prune.log_scales_out = log_scales.get();
    prune.counts = reinterpret_cast<uint64_t(*)[2]>(counts.get());
    b->operation("prune 1M", n, KILN_OP_prune, &prune, true);

    kiln_initial_args initial = {};
    initial.n = n;
    initial.spacing2 = s.opacity_logits.get(); /* any floats */
    initial.rgb = s.sh0.get();
    initial.opacity = 0.1f;
    initial.fallback_log_scale = -5.0f;
    initial.log_scales = log_scales.get();
    initial.quats = quats.get();
    initial.opacity_logits = opacity_logits.get();
    initial.sh0 = sh0.get();
    initial.n_fallback = n_fallback.get();
    b->operation("initial 1M", n, KILN_OP_initial, &initial, true);
}

/* One camera's frame, with every array that its steps pass on. */
class frame
{
  public:
    frame(bench::runner *b, uint64_t n);
    ~frame();
    frame(const frame &) = delete;
    frame &operator=(const frame &) = delete;
    void run();                    /* everything once; sizes `ranks` the first time */
    void bench_steps(bool on_cpu); /* each operation alone, on what run() has left */

  private:
    void project();
    void put_in_order();
    void list();
    void raster();
    void step(kiln_op_id op, const void *args);

    bench::runner *b_;
    bench::scene scene_;
    kiln_view view_;
    uint32_t tiles_x_, tiles_y_;
    bool prepared_ = false;
    uint64_t *host_; /* pinned: counts that come back */
    array<uint64_t> n_visible_, row_pairs_;
    array<kiln_splat2d> splats_, ordered_;
    array<float> depths_, rgba_;
    array<uint32_t> rows_, order_, tile_counts_;
    std::unique_ptr<array<uint32_t>> ranks_;
    kiln_project_args project_ = {};
    kiln_depth_order_args order_args_ = {};
    kiln_tile_pairs_count_args count_ = {};
    kiln_tile_pairs_emit_args emit_ = {};
    kiln_raster_args raster_ = {};
};

frame::frame(bench::runner *b, uint64_t n)
    : b_(b), scene_(n),
      view_(bench::make_view(0, kiln_profiles[KILN_PROFILE_INRIA].near_m, kiln_profiles[KILN_PROFILE_INRIA].far_m)),
      tiles_x_(kiln_view_tiles_x(&view_)), tiles_y_(kiln_view_tiles_y(&view_)), host_(nullptr), n_visible_(1), row_pairs_(tiles_y_),
      splats_(n), ordered_(n), depths_(n), rgba_(uint64_t(bench::WIDTH) * bench::HEIGHT * 4), rows_(n), order_(n),
      tile_counts_(uint64_t(tiles_x_) * tiles_y_)
{
    BENCH_CUDA(cudaMallocHost(&host_, tiles_y_ * sizeof *host_));
}

frame::~frame() { (void)cudaFreeHost(host_); }

/* The first run prepares: what an operation needs depends on what those before it gave. */
void frame::step(kiln_op_id op, const void *args)
{
    if (!prepared_) b_->prepare(op, args);
    b_->start(op, args);
}

void frame::project()
{
    project_.n = scene_.n;
    project_.means = scene_.means.get();
    project_.log_scales = scene_.log_scales.get();
    project_.quats = scene_.quats.get();
    project_.opacity_logits = scene_.opacity_logits.get();
    project_.sh0 = scene_.sh0.get();
    project_.shN = scene_.shN.get();
    project_.sh_degree = bench::SH_DEGREE;
    project_.view = &view_;
    project_.profile = KILN_PROFILE_INRIA;
    project_.splats = splats_.get();
    project_.n_visible = n_visible_.get();
    step(KILN_OP_project, &project_);
}

void frame::put_in_order()
{
    const kiln_exec *x = b_->exec();
    BENCH_CUDA(cudaMemcpyAsync(host_, n_visible_.get(), sizeof *host_, cudaMemcpyDeviceToHost, x->stream));
    BENCH_CUDA(cudaStreamSynchronize(x->stream));
    const uint64_t n = host_[0];
    split<<<kiln::blocks_for(n, BLOCK), BLOCK, 0, x->stream>>>(n, splats_.get(), depths_.get(), rows_.get());
    BENCH_CUDA(cudaGetLastError());
    order_args_.n = n;
    order_args_.depths = depths_.get();
    order_args_.source_rows = rows_.get();
    order_args_.order = order_.get();
    step(KILN_OP_depth_order, &order_args_);
    permute<<<kiln::blocks_for(n, BLOCK), BLOCK, 0, x->stream>>>(n, splats_.get(), order_.get(), ordered_.get());
    BENCH_CUDA(cudaGetLastError());
}

void frame::list()
{
    const kiln_exec *x = b_->exec();
    uint64_t pairs = 0;
    count_.n = emit_.n = order_args_.n;
    count_.splats = emit_.splats = ordered_.get();
    count_.view = emit_.view = &view_;
    count_.row1 = emit_.row1 = tiles_y_;
    count_.row_pairs = row_pairs_.get();
    step(KILN_OP_tile_pairs_count, &count_);
    BENCH_CUDA(cudaMemcpyAsync(host_, row_pairs_.get(), tiles_y_ * sizeof *host_, cudaMemcpyDeviceToHost, x->stream));
    BENCH_CUDA(cudaStreamSynchronize(x->stream));
    for (uint32_t i = 0; i < tiles_y_; i++) pairs += host_[i];
    if (!ranks_ || ranks_->size() < pairs) ranks_.reset(new array<uint32_t>(pairs));
    emit_.room = pairs;
    emit_.tile_counts = tile_counts_.get();
    emit_.ranks = ranks_->get();
    step(KILN_OP_tile_pairs_emit, &emit_);
}

void frame::raster()
{
    raster_.n = emit_.n;
    raster_.splats = ordered_.get();
    raster_.view = &view_;
    raster_.profile = KILN_PROFILE_INRIA;
    raster_.row1 = tiles_y_;
    raster_.tile_counts = tile_counts_.get();
    raster_.ranks = ranks_->get();
    raster_.n_pairs = emit_.room;
    raster_.rgba = rgba_.get();
    step(KILN_OP_raster, &raster_);
}

void frame::run()
{
    project();
    put_in_order();
    list();
    raster();
    prepared_ = true;
}

void frame::bench_steps(bool on_cpu)
{
    const std::string size = size_name(scene_.n);
    b_->operation("project " + size, scene_.n, KILN_OP_project, &project_, on_cpu);
    b_->operation("depth_order " + size, order_args_.n, KILN_OP_depth_order, &order_args_, on_cpu);
    b_->operation("tile_pairs_count " + size, count_.n, KILN_OP_tile_pairs_count, &count_, on_cpu);
    b_->operation("tile_pairs_emit " + size, emit_.room, KILN_OP_tile_pairs_emit, &emit_, on_cpu);
    b_->add_sum("lists " + size, {"depth_order " + size, "tile_pairs_count " + size, "tile_pairs_emit " + size});
    b_->operation("raster " + size, emit_.room, KILN_OP_raster, &raster_, on_cpu);
}

/* The steps alone come from what the last frame has left in the arrays. */
void bench_frame(bench::runner *b, uint64_t n)
{
    frame f(b, n);
    f.run();
    b->wait();
    const bench::row whole = b->time("frame " + size_name(n), n, [&] { f.run(); });
    b->wait();
    f.bench_steps(n <= 1000000);
    b->add(whole);
}

struct options {
    int device = 0;
    bool large = false, cpu = true;
    const char *only = "", *json = nullptr;
};

void read_options(int argc, char **argv, options *o)
{
    for (int i = 1; i < argc; i++) {
        const bool has_value = i + 1 < argc;
        if (!strcmp(argv[i], "--6m"))
            o->large = true;
        else if (!strcmp(argv[i], "--no-cpu"))
            o->cpu = false;
        else if (!strcmp(argv[i], "--device") && has_value)
            o->device = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--only") && has_value)
            o->only = argv[++i];
        else if (!strcmp(argv[i], "--json") && has_value)
            o->json = argv[++i];
        else
            bench::die(2,
                       "usage: kernels_bench [--device N] [--6m] [--no-cpu] [--only frame|metrics|knn|order|rows] [--json FILE]");
    }
}

} // namespace

int main(int argc, char **argv)
{
    options o;
    read_options(argc, argv, &o);
    const auto wanted = [&](const char *what) { return !*o.only || !strcmp(o.only, what); };
    bench::runner b(o.device, o.cpu);
    b.print_head(kiln_bench_commit);
    if (wanted("frame")) bench_frame(&b, 1000000);
    if (wanted("frame") && o.large) bench_frame(&b, 6000000);
    if (wanted("metrics")) bench_metrics(&b);
    if (wanted("knn")) bench_knn(&b);
    if (wanted("order")) bench_order(&b);
    if (wanted("rows")) bench_rows(&b);
    if (o.json) b.write_json(o.json, kiln_bench_commit);
    return 0;
}
