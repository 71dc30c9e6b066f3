/* drawn -- see drawn.cuh. */
#include "tests/bench/drawn.cuh"

#include "kernels/draw/draw.h"

#include <numeric>
#include <string.h>

namespace bench
{

namespace
{

kiln_error err;

void check(kiln_status st)
{
    if (st != KILN_OK) die(kiln_exit_code(st), err.msg);
}

constexpr uint64_t ROW_BYTES = 4 * (3 + 3 + 4 + 1 + 3 + 3 * SH_REST + 1); /* of the planes, source row included */

/* A chunk of the scene as a program has it: its rows of every plane. */
struct host_chunk {
    uint64_t n;
    std::vector<float> planes;
    std::vector<uint32_t> source_rows;
};

/* The planes in chunks as large as those of a bake are at most, rows in the order in which the scene has them. */
class host_scene
{
  public:
    explicit host_scene(const scene &s) : n_(s.n)
    {
        for (uint64_t first = 0; first < n_; first += MOST_ROWS) {
            chunks_.push_back({std::min(MOST_ROWS, n_ - first), {}, {}});
            chunks_.back().source_rows.resize(chunks_.back().n);
            std::iota(chunks_.back().source_rows.begin(), chunks_.back().source_rows.end(), static_cast<uint32_t>(first));
        }
        for (const array<float> *plane : {&s.means, &s.log_scales, &s.quats, &s.opacity_logits, &s.sh0, &s.shN})
            cut(plane->to_host());
    }
    uint64_t n() const { return n_; }
    uint32_t n_chunks() const { return static_cast<uint32_t>(chunks_.size()); }
    kiln_draw_chunk_header label(uint32_t i) const
    {
        kiln_draw_chunk_header l = {};
        l.n = chunks_[i].n;
        memcpy(l.key, &i, sizeof i); /* any that differ */
        l.colour = true;
        return l;
    }
    kiln_draw_chunk chunk(uint32_t i) const
    {
        const host_chunk &c = chunks_[i];
        const float *const p = c.planes.data();
        return {c.n, p, p + 3 * c.n, p + 6 * c.n, p + 10 * c.n, p + 11 * c.n, p + 14 * c.n, c.source_rows.data()};
    }

  private:
    static constexpr uint64_t MOST_ROWS = 65536;

    /* Appends each chunk's share of a plane. */
    void cut(const std::vector<float> &plane)
    {
        uint64_t first = 0;
        for (host_chunk &c : chunks_) {
            for (uint64_t component = 0; component < plane.size() / n_; component++) {
                const float *const from = plane.data() + component * n_ + first;
                c.planes.insert(c.planes.end(), from, from + c.n);
            }
            first += c.n;
        }
    }

    uint64_t n_;
    std::vector<host_chunk> chunks_;
};

kiln_status label(void *context, uint32_t i, kiln_draw_chunk_header *out, kiln_error *)
{
    *out = static_cast<const host_scene *>(context)->label(i);
    return KILN_OK;
}

kiln_status chunk(void *context, uint32_t i, kiln_draw_chunk *out, kiln_error *)
{
    *out = static_cast<const host_scene *>(context)->chunk(i);
    return KILN_OK;
}

/* A runner with its store, and the host's canvas. */
class artist
{
  public:
    artist(const kiln_exec *x, const scene &s, const kiln_view &view)
        : host_(s), canvas_(uint64_t(4) * view.width * view.height), device_(x->device)
    {
        kiln_runner_options o = {};
        o.device = x->device;
        o.threads = x->threads;
        check(kiln_runner_new(&o, &runner_, &err));
        check(kiln_draw_store_new(runner_, &store_, &err));
        pinned_ = kiln_device_pin(device_, canvas_.data(), canvas_.size() * sizeof canvas_[0]);
        scene_.view = &view;
        scene_.profile = PROFILE;
        scene_.sh_degree = SH_DEGREE;
        scene_.n_chunks = host_.n_chunks();
        scene_.chunk = chunk;
        scene_.header = label;
        scene_.context = &host_;
        scene_.store = store_;
    }
    ~artist()
    {
        if (pinned_) kiln_device_unpin(device_, canvas_.data());
        kiln_draw_store_free(store_);
        kiln_runner_free(runner_);
    }
    artist(const artist &) = delete;
    artist &operator=(const artist &) = delete;

    void draw()
    {
        const float black[3] = {0, 0, 0};
        check(kiln_draw_view(runner_, &scene_, black, canvas_.data(), nullptr, nullptr, &err));
    }
    std::vector<float> &canvas() { return canvas_; }
    /* Most device memory so far beside the planes. */
    uint64_t memory() const { return kiln_runner_get_info(runner_).peak_bytes - host_.n() * ROW_BYTES; }

  private:
    host_scene host_;
    std::vector<float> canvas_;
    int device_;
    bool pinned_;
    kiln_runner *runner_ = nullptr;
    kiln_draw_store *store_ = nullptr;
    kiln_draw_scene scene_ = {};
};

} // namespace

void bench_drawn(runner *b, const std::string &name, const scene &s, const kiln_view &view, const float *rgba)
{
    artist a(b->exec(), s, view);
    const uint64_t floats = a.canvas().size();
    std::vector<float> want(floats);
    finding same = {"drawn " + name, "floats differ from the frame's", floats, 0};
    row r = b->measure_host("drawn " + name, s.n, [&] { a.draw(); });
    r.memory = a.memory();
    std::fill(a.canvas().begin(), a.canvas().end(), -1.0f);
    a.draw();
    BENCH_CUDA(cudaMemcpy(want.data(), rgba, floats * sizeof want[0], cudaMemcpyDeviceToHost));
    for (uint64_t i = 0; i < floats; i++) same.wrong += memcmp(&want[i], &a.canvas()[i], sizeof want[i]) != 0;
    b->table()->add(r);
    b->table()->add(same);
}

} // namespace bench
