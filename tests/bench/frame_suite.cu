/* frame_suite -- whole frames and each operation of a frame: the scenes of stages/generate/inputs.h
 * as several cameras see them, the same with exploded scales, in 4K, and trained scenes. Pictures
 * and lists are compared with the plainest kernels. */
#include "tests/bench/suites.cuh"

#include "tests/bench/at_once.cuh"
#include "tests/bench/drawn.cuh"
#include "tests/bench/exact.cuh"
#include "tests/bench/fast.cuh"
#include "tests/bench/frame.cuh"
#include "tests/bench/listing.cuh"
#include "tests/bench/real_scene.h"

#include <stdio.h>

namespace bench
{

namespace
{

/* What draws one Gaussian to one pixel in float32 instructions, of those that no other pixel
 * shares: power 2, its test 1, exponential 10, alpha 2 and its test 1, transmittance 2 and its test
 * 1, weight 1, colour 6, counting (raster_math.h, real.h). */
constexpr double BLEND_FP32 = 26;

/* A view, counted. */
struct amount {
    double rows, visible, pairs, tiles, pixels, blends;
};

amount amount_of(const scene &s, const frame &f, uint64_t blends)
{
    return {static_cast<double>(s.n),        static_cast<double>(f.visible()),
            static_cast<double>(f.pairs()),  static_cast<double>(f.tiles()),
            static_cast<double>(f.pixels()), static_cast<double>(blends)};
}

cost moved(double bytes)
{
    cost c;
    c.bytes = bytes;
    return c;
}

/* All means; of the visible scale, rotation, opacity and 48 numbers of colour in, 64 bytes out. */
cost project_cost(const amount &a) { return moved(12 * a.rows + (32 + 192 + 64) * a.visible); }
cost order_cost(const amount &a) { return moved((68 + 68) * a.visible); }
/* Of a record 40 bytes decide where it is listed. */
cost count_cost(const amount &a) { return moved(40 * a.visible); }
cost emit_cost(const amount &a) { return moved(40 * a.visible + 4 * a.pairs + 4 * a.tiles); }

cost sort_cost(const amount &a)
{
    cost c;
    c.sorted = static_cast<uint64_t>(a.visible);
    return c;
}

cost lists_cost(const amount &a)
{
    cost c = emit_cost(a);
    c.sorted = static_cast<uint64_t>(a.visible);
    return c;
}

cost raster_cost(const amount &a)
{
    cost c = moved(40 * a.visible + 4 * a.pairs + 16 * a.pixels);
    c.fp32 = BLEND_FP32 * a.blends;
    return c;
}

/* Of a fast picture: 45 of the 48 numbers of colour take two bytes. */
cost halved(cost c, const amount &a)
{
    c.bytes -= 90 * a.visible;
    return c;
}

/* The records go from step to step once. */
cost frame_cost(const amount &a)
{
    cost c = raster_cost(a);
    c.bytes += project_cost(a).bytes + lists_cost(a).bytes;
    c.sorted = lists_cost(a).sorted;
    return c;
}

template <typename Frame>
row measure_frame(runner *b, const std::string &what, Frame *f, const amount &a)
{
    row r = b->measure(
        what, static_cast<uint64_t>(a.rows), frame_cost(a), [&] { f->run(); },
        [&](int byte) { f->poison(byte); }, [&] { return f->sum(); });
    r.memory = f->memory();
    return r;
}

/* The peers' lists are tile_lists, from visible Gaussians to what a tile draws; the others list in
 * bands, which asks for a count.
 */
void measure_lists(runner *b, const std::string &name, frame *f, const amount &a)
{
    const listing l(f->project(), f->visible(), f->pairs());
    b->operation({"depth_order " + name, f->visible(), KILN_OP_depth_order, &f->depth_order(),
                  sort_cost(a)});
    b->operation({"tile_pairs_count " + name, f->visible(), KILN_OP_tile_pairs_count, &f->count(),
                  count_cost(a)});
    b->operation(
        {"tile_pairs_emit " + name, f->pairs(), KILN_OP_tile_pairs_emit, &f->emit(), emit_cost(a)});
    row r = b->measure({"lists " + name, f->pairs(), KILN_OP_tile_lists, &l.args(), lists_cost(a)});
    r.memory = b->prepare(KILN_OP_tile_lists, &l.args()) + l.bytes();
    b->table()->add(r);
    check_lists(b->table(), "lists " + name, l.args());
}

/* Lists of a frame that was counted, by rank. */
void check_frame_lists(runner *b, const std::string &what, const kiln_raster_args &r)
{
    kiln_tile_lists_args a = {};
    a.n = r.n;
    a.splats = r.splats;
    a.view = r.view;
    a.row1 = r.row1;
    a.tile_counts = const_cast<uint32_t *>(r.tile_counts); /* looked at alone */
    a.ids = const_cast<uint32_t *>(r.ranks);
    check_lists(b->table(), what, a);
}

/* Each operation alone, on what the last frame has left; raster's lists are those of a picture at
 * once. */
void measure_steps(runner *b, const std::string &name, frame *f, const kiln_raster_args &raster,
                   const amount &a)
{
    if (b->wants("project")) {
        /* without what the depth order asks for, as others' figures are */
        kiln_project_args alone = f->project();
        alone.source_rows = nullptr;
        alone.depths = nullptr;
        alone.rows = nullptr;
        b->operation({"project " + name, static_cast<uint64_t>(a.rows), KILN_OP_project, &alone,
                      project_cost(a)});
    }
    if (b->wants("visible"))
        b->operation({"visible_order " + name, f->visible(), KILN_OP_visible_order, &f->order(),
                      order_cost(a)});
    if (b->wants("lists")) measure_lists(b, name, f, a);
    if (b->wants("raster"))
        b->operation({"raster " + name, f->pairs(), KILN_OP_raster, &raster, raster_cost(a)});
}

enum class much { EVERY_STEP, WHOLE };

amount bench_view(runner *b, const std::string &name, const scene &s, const kiln_view &view,
                  much how)
{
    frame f(b, s, view, memory_by::COUNT);
    uint64_t blends = 0;
    f.run();
    b->wait();
    at_once picture(b, f);
    picture.run();
    b->wait();
    (void)check_raster("", picture.raster(), &blends);
    const amount a = amount_of(s, f, blends);
    if (how == much::EVERY_STEP) measure_steps(b, name, &f, picture.raster(), a);
    if (b->wants("frame")) {
        b->table()->add(measure_frame(b, "frame " + name, &picture, a));
        b->table()->add(finding{"frame " + name, "pictures differ from the counted one's", 1,
                                picture.sum() != f.sum()});
        if (how == much::EVERY_STEP) bench_drawn(b, name, s, view, picture.raster().rgba);
    }
    if (b->wants("lists")) check_frame_lists(b, "tile_pairs_emit " + name, f.raster());
    if (b->wants("raster"))
        b->table()->add(check_raster("raster " + name, picture.raster(), &blends));
    if (b->wants("frame") || b->wants("raster") || b->wants("project"))
        bench_fast(b, name, &picture, f.pairs(), halved(project_cost(a), a), raster_cost(a),
                   halved(frame_cost(a), a));
    return a;
}

/* Counted first, and in bands, as kernels/draw makes it where memory is short; `a` is what the view
 * had. */
void bench_counted(runner *b, const std::string &name, const scene &s, const kiln_view &view,
                   const amount &a)
{
    if (!b->wants("frame")) return;
    for (const memory_by how : {memory_by::COUNT, memory_by::BANDS}) {
        frame f(b, s, view, how);
        f.run();
        b->wait();
        b->table()->add(measure_frame(
            b, "frame " + name + (how == memory_by::BANDS ? " in bands" : " counted"), &f, a));
    }
}

void bench_orbit(runner *b, uint64_t n)
{
    const std::string size = size_name(n);
    scene s(n);
    make_scene(&s, 0);
    b->table()->section(("scene of " + size).c_str());
    const kiln_view view = make_view(0, WIDTH, HEIGHT);
    const amount a = bench_view(b, size, s, view, much::EVERY_STEP);
    if (b->wants("frame")) bench_small(b, "small cameras " + size, s);
    if (!b->quick()) {
        bench_counted(b, size, s, view, a);
        for (const int camera : {5, 10})
            (void)bench_view(b, size + " camera " + std::to_string(camera), s,
                             make_view(camera, WIDTH, HEIGHT), much::WHOLE);
    }
    if (b->wants_scene("4k"))
        (void)bench_view(b, size + " 4K", s, make_view(0, 2 * WIDTH, 2 * HEIGHT), much::EVERY_STEP);
}

void bench_exploded(runner *b, uint64_t n)
{
    const std::string name = "exploded " + size_name(n);
    const kiln_view view = make_view(0, WIDTH, HEIGHT);
    scene s(n);
    make_scene(&s, 10);
    b->table()->section(name.c_str());
    const amount a = bench_view(b, name, s, view, much::EVERY_STEP);
    bench_counted(b, name, s, view, a);
}

void bench_real(runner *b, const char *shared)
{
    if (!shared) {
        printf("\nno trained scenes: --shared DIR names the folder of reference data\n");
        return;
    }
    b->table()->section("trained scenes");
    for (unsigned i = 0; i < bench_real_scenes(); i++) {
        std::string name;
        kiln_view view;
        const std::unique_ptr<scene> s = real_scene(shared, i, &name, &view);
        if (s) (void)bench_view(b, name, *s, view, much::EVERY_STEP);
    }
}

} // namespace

void frame_suite(runner *b, const char *shared)
{
    bool any = false;
    for (const char *op : {"frame", "project", "visible", "lists", "raster"})
        any = any || b->wants(op);
    if (!any) return;
    if (b->wants_scene("1m")) bench_orbit(b, 1000000);
    if (b->wants_scene("6m")) bench_orbit(b, 6000000);
    if (b->wants_scene("exploded")) bench_exploded(b, 1000000);
    if (b->wants_scene("real")) bench_real(b, shared);
}

} // namespace bench
