/* pass_suite -- metrics, and the operations that pass over rows once: what an import, a pruning and
 * a plan are made of. */
#include "tests/bench/suites.cuh"

#include "tests/bench/inputs.cuh"

#include <math.h>

namespace bench
{

namespace
{

/* A value, in float32 at best: two products, four quantities of eleven fused taps along the row and
 * again down the column, about thirty for the map and the sums. */
constexpr double METRICS_FP32 = 2 + 2 * 4 * 11 + 30;

cost bytes_only(double bytes)
{
    cost c;
    c.bytes = bytes;
    return c;
}

void bench_metrics(runner *b)
{
    const uint64_t values = uint64_t(WIDTH) * HEIGHT * 3;
    array<float> one(values), other(values);
    array<kiln_metrics> out(1);
    kiln_metrics_args a = {};
    cost c = bytes_only(2.0 * sizeof(float) * static_cast<double>(values));
    make_picture(&one, 0);
    make_picture(&other, 1);
    a.width = a.a_row = a.b_row = WIDTH;
    a.height = HEIGHT;
    a.a = one.get();
    a.b = other.get();
    a.a_step = a.b_step = 3;
    a.out = out.get();
    c.fp32 = METRICS_FP32 * static_cast<double>(values);
    b->operation({"metrics 1080p", values / 3, KILN_OP_metrics, &a, c});
}

void bench_pixel_bytes(runner *b, const char *what, kiln_pixel_layout layout,
                       const array<float> &rgba, const array<unsigned char> &bytes)
{
    const kiln_pixel_bytes_args a = {2 * WIDTH, 2 * HEIGHT, 2 * WIDTH,
                                     layout,    rgba.get(), bytes.get()};
    const double written = static_cast<double>(kiln_pixel_bytes_size(layout, a.width, a.height));
    b->operation({what, rgba.size() / 4, KILN_OP_pixel_bytes, &a,
                  bytes_only(4.0 * static_cast<double>(rgba.size()) + written)});
}

/* What a frame of a path leaves the GPU as: hashes, the rows of a PNG, and bytes. */
void bench_frame_outputs(runner *b)
{
    const uint64_t pixels = 4ull * WIDTH * HEIGHT;
    array<float> rgba(4 * pixels);
    array<unsigned char> hashes(KILN_PIXEL_HASH_BYTES * kiln_pixel_pieces(pixels)),
        rows(4 * pixels);
    kiln_pixel_hashes_args h = {};
    kiln_png_rows_args p = {};
    rgba.fill(0);
    make_picture(&rgba, 0); /* the first quarter; values decide no time */
    h.pixels = pixels;
    h.rgba = rgba.get();
    h.hashes = hashes.get();
    b->operation({"pixel_hashes 4K", pixels, KILN_OP_pixel_hashes, &h,
                  bytes_only(16.0 * static_cast<double>(pixels))});
    p.width = 2 * WIDTH;
    p.height = p.n = 2 * HEIGHT;
    p.step = 4;
    p.channels = 3;
    p.bits = 8;
    p.pixels = rgba.get();
    p.rows = rows.get();
    b->operation({"png_rows 4K", pixels, KILN_OP_png_rows, &p,
                  bytes_only(19.0 * static_cast<double>(pixels))});
    bench_pixel_bytes(b, "pixel_bytes 4K RGBA", KILN_PIXELS_RGBA, rgba, rows);
    bench_pixel_bytes(b, "pixel_bytes 4K RGB", KILN_PIXELS_RGB, rgba, rows);
    bench_pixel_bytes(b, "pixel_bytes 4K YUV420", KILN_PIXELS_YUV420, rgba, rows);
}

void bench_ranks(runner *b, const scene &s)
{
    array<uint64_t> bins(KILN_RANK_BINS);
    kiln_ranks_args a = {};
    bins.fill(0);
    a.n = s.n;
    a.values = s.means.get();
    a.counts = bins.get();
    b->operation({"ranks 1M", s.n, KILN_OP_ranks, &a, bytes_only(4.0 * static_cast<double>(s.n))});
}

void bench_prune(runner *b, const scene &s)
{
    array<uint64_t> counts(2 * KILN_PRUNE_RULES);
    array<uint8_t> keep(s.n);
    array<float> log_scales(3 * s.n);
    kiln_prune_rules rules = {};
    kiln_prune_args a = {};
    counts.fill(0);
    for (float *off : {&rules.crop_box[0], &rules.crop_box[3], &rules.crop_sphere[3],
                       &rules.outlier, &rules.max_spacing[0]})
        *off = nanf("");
    rules.min_opacity = -4.0f;
    rules.min_scale = -20.0f;
    rules.max_scale = rules.max_extent = -1.0f;
    rules.max_needle = 100.0f;
    a.n = s.n;
    a.means = s.means.get();
    a.log_scales = s.log_scales.get();
    a.opacity_logits = s.opacity_logits.get();
    a.rules = &rules;
    a.keep = keep.get();
    a.log_scales_out = log_scales.get();
    a.counts = reinterpret_cast<uint64_t(*)[2]>(counts.get());
    b->operation(
        {"prune 1M", s.n, KILN_OP_prune, &a, bytes_only((28.0 + 13.0) * static_cast<double>(s.n))});
}

void bench_initial(runner *b, const scene &s)
{
    array<float> log_scales(3 * s.n), quats(4 * s.n), opacity_logits(s.n), sh0(3 * s.n);
    array<uint64_t> n_fallback(1);
    kiln_initial_args a = {};
    a.n = s.n;
    a.spacing2 = s.opacity_logits.get(); /* any floats */
    a.rgb = s.sh0.get();
    a.opacity = 0.1f;
    a.fallback_log_scale = -5.0f;
    a.log_scales = log_scales.get();
    a.quats = quats.get();
    a.opacity_logits = opacity_logits.get();
    a.sh0 = sh0.get();
    a.n_fallback = n_fallback.get();
    b->operation({"initial 1M", s.n, KILN_OP_initial, &a,
                  bytes_only((16.0 + 44.0) * static_cast<double>(s.n))});
}

} // namespace

void pass_suite(runner *b)
{
    if (b->wants("metrics") || b->wants("rows")) b->table()->section("passes");
    if (b->wants("metrics")) bench_metrics(b);
    if (b->wants("metrics")) bench_frame_outputs(b);
    if (!b->wants("rows")) return;
    scene s(1000000);
    make_scene(&s, 0);
    bench_ranks(b, s);
    bench_prune(b, s);
    bench_initial(b, s);
}

} // namespace bench
