/* drawn -- see drawn.cuh. The scene is one chunk, as in frame.cuh. */
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

/* The planes as a program has them. */
struct host_scene {
    uint64_t n;
    std::vector<float> means, log_scales, quats, opacity_logits, sh0, shN;
    std::vector<uint32_t> source_rows;
    explicit host_scene(const scene &s)
        : n(s.n), means(s.means.to_host()), log_scales(s.log_scales.to_host()), quats(s.quats.to_host()),
          opacity_logits(s.opacity_logits.to_host()), sh0(s.sh0.to_host()), shN(s.shN.to_host()), source_rows(s.n)
    {
        std::iota(source_rows.begin(), source_rows.end(), 0u);
    }
};

kiln_status label(void *context, uint32_t, kiln_draw_label *out, kiln_error *)
{
    *out = kiln_draw_label();
    out->n = static_cast<const host_scene *>(context)->n;
    out->colour = true;
    return KILN_OK;
}

kiln_status chunk(void *context, uint32_t, kiln_draw_chunk *out, kiln_error *)
{
    const host_scene *h = static_cast<const host_scene *>(context);
    *out = {h->n,          h->means.data(), h->log_scales.data(), h->quats.data(), h->opacity_logits.data(),
            h->sh0.data(), h->shN.data(),   h->source_rows.data()};
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
        scene_.n_chunks = 1;
        scene_.chunk = chunk;
        scene_.label = label;
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
        kiln_drawing d = {};
        check(kiln_draw_collect(runner_, &scene_, &d, &err));
        check(kiln_draw_picture(runner_, &scene_, &d, black, canvas_.data(), nullptr, nullptr, &err));
        kiln_drawing_release(&d);
    }
    std::vector<float> &canvas() { return canvas_; }
    /* Most device memory so far beside the planes. */
    uint64_t memory() const { return kiln_runner_tell(runner_).peak_bytes - host_.n * ROW_BYTES; }

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
