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

/* of the planes, source row included */
constexpr uint64_t ROW_BYTES = 4 * (3 + 3 + 4 + 1 + 3 + 3 * SH_REST + 1);

/* A chunk of the scene as a program has it: its rows of every plane. */
struct host_chunk {
    uint64_t n;
    std::vector<float> planes;
    std::vector<uint32_t> source_rows;
};

/* The planes in chunks as large as those of a bake are at most, rows in the order in which the
 * scene has them. */
class host_scene
{
  public:
    explicit host_scene(const scene &s) : n_(s.n)
    {
        for (uint64_t first = 0; first < n_; first += MOST_ROWS) {
            chunks_.push_back({std::min(MOST_ROWS, n_ - first), {}, {}});
            chunks_.back().source_rows.resize(chunks_.back().n);
            std::iota(chunks_.back().source_rows.begin(), chunks_.back().source_rows.end(),
                      static_cast<uint32_t>(first));
        }
        for (const array<float> *plane :
             {&s.means, &s.log_scales, &s.quats, &s.opacity_logits, &s.sh0, &s.shN})
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
        return {c.n,          p,
                p + 3 * c.n,  p + 6 * c.n,
                p + 10 * c.n, p + 11 * c.n,
                p + 14 * c.n, c.source_rows.data()};
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
        : view_(view), host_(s), canvas_(uint64_t(4) * view.width * view.height), device_(x->device)
    {
        kiln_runner_options o = {};
        o.device = x->device;
        o.threads = x->threads;
        check(kiln_runner_new(&o, &runner_, &err));
        check(kiln_draw_store_new(runner_, &store_, &err));
        pinned_ = kiln_device_pin(device_, canvas_.data(), canvas_.size() * sizeof canvas_[0]);
        scene_.view = &view_;
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
        kiln_draw_want want = {};
        want.rgba = canvas_.data();
        check(kiln_draw(runner_, &scene_, &want, nullptr, &err));
    }
    /* Once a picture was drawn: the same as RGBA bytes, in the first quarter of the canvas. */
    void draw_bytes()
    {
        const kiln_pixel_bytes_args bytes =
            bytes_of(nullptr, reinterpret_cast<unsigned char *>(canvas_.data()));
        draw_bytes_of(scene_, bytes);
    }
    void draw_bytes_of(const kiln_draw_scene &s, const kiln_pixel_bytes_args &bytes)
    {
        kiln_draw_outputs to = {};
        kiln_draw_want want = {};
        kiln_draw_stats stats;
        to.bytes = &bytes;
        want.ways = KILN_DRAW_SINGLE_PASS;
        want.single_pass = &to;
        check(kiln_draw(runner_, &s, &want, &stats, &err));
        if (!stats.way) die(70, "a picture that was drawn before does not fit into its own size");
    }
    const kiln_draw_scene &scene_drawn() const { return scene_; }
    std::vector<float> &canvas() { return canvas_; }
    /* The bytes that stand for these floats. */
    std::vector<unsigned char> as_bytes(const std::vector<float> &rgba) const
    {
        std::vector<unsigned char> out(rgba.size());
        const kiln_pixel_bytes_args a = bytes_of(rgba.data(), out.data());
        kiln_exec x = {};
        size_t work_bytes = 0;
        x.device = KILN_RUNNER_CPU;
        x.threads = 1;
        check(kiln_ops_cpu()->pixel_bytes(&x, &a, out.data(), &work_bytes, &err));
        return out;
    }
    /* Most device memory so far beside the planes. */
    uint64_t memory() const
    {
        return kiln_runner_get_info(runner_).peak_bytes - host_.n() * ROW_BYTES;
    }

  private:
    kiln_pixel_bytes_args bytes_of(const float *rgba, unsigned char *out) const
    {
        return {view_.width, view_.height, view_.width, KILN_PIXELS_RGBA, rgba, out};
    }

    const kiln_view view_;
    host_scene host_;
    std::vector<float> canvas_;
    int device_;
    bool pinned_;
    kiln_runner *runner_ = nullptr;
    kiln_draw_store *store_ = nullptr;
    kiln_draw_scene scene_ = {};
};

} // namespace

namespace
{

void bench_bytes(runner *b, const std::string &name, uint64_t rows, artist *a,
                 const std::vector<float> &floats)
{
    const std::vector<unsigned char> want = a->as_bytes(floats);
    finding same = {name, "bytes differ from the frame's floats", want.size(), 0};
    b->table()->add(b->measure_host(name, rows, [&] { a->draw_bytes(); }));
    std::fill(a->canvas().begin(), a->canvas().end(), -1.0f);
    a->draw_bytes();
    const unsigned char *const got = reinterpret_cast<const unsigned char *>(a->canvas().data());
    for (size_t i = 0; i < want.size(); i++) same.wrong += want[i] != got[i];
    b->table()->add(same);
}

/* Page-locked. */
class locked_bytes
{
  public:
    explicit locked_bytes(size_t n) { BENCH_CUDA(cudaMallocHost(&at_, n)); }
    ~locked_bytes() { (void)cudaFreeHost(at_); }
    locked_bytes(const locked_bytes &) = delete;
    locked_bytes &operator=(const locked_bytes &) = delete;
    unsigned char *get() const { return at_; }

  private:
    unsigned char *at_ = nullptr;
};

/* Small pictures of a scene from cameras of its orbit in turn, to RGBA bytes. */
class small_cameras
{
  public:
    enum : uint32_t {
        WIDTH = 640,
        HEIGHT = 400,
        CAMERAS = 16,
        PICTURES = 64,
        BYTES = 4 * WIDTH * HEIGHT
    };

    small_cameras(const kiln_exec *x, const scene &s)
        : artist_(x, s, make_view(0, WIDTH, HEIGHT)), bytes_(PICTURES * BYTES), views_(CAMERAS),
          scenes_(CAMERAS, artist_.scene_drawn()), outputs_(PICTURES)
    {
        for (uint32_t k = 0; k < CAMERAS; k++) {
            views_[k] = make_view(static_cast<int>(k), WIDTH, HEIGHT);
            scenes_[k].view = &views_[k];
        }
        for (uint32_t i = 0; i < PICTURES; i++)
            outputs_[i] = {
                WIDTH, HEIGHT, WIDTH, KILN_PIXELS_RGBA, nullptr, bytes_.get() + i * BYTES};
        artist_.draw();
    }
    void draw()
    {
        for (uint32_t i = 0; i < PICTURES; i++)
            artist_.draw_bytes_of(scenes_[i % CAMERAS], outputs_[i]);
    }
    uint64_t memory() const { return artist_.memory(); }

  private:
    artist artist_;
    locked_bytes bytes_;
    std::vector<kiln_view> views_;
    std::vector<kiln_draw_scene> scenes_;
    std::vector<kiln_pixel_bytes_args> outputs_;
};

row of_each(row r, uint32_t n)
{
    r.gpu /= n;
    r.gpu_least /= n;
    return r;
}

} // namespace

void bench_small(runner *b, const std::string &name, const scene &s)
{
    small_cameras m(b->exec(), s);
    row r = b->measure_host(name, small_cameras::PICTURES, [&] { m.draw(); });
    r.memory = m.memory();
    b->table()->add(of_each(r, small_cameras::PICTURES));
}

void bench_drawn(runner *b, const std::string &name, const scene &s, const kiln_view &view,
                 const float *rgba)
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
    for (uint64_t i = 0; i < floats; i++)
        same.wrong += memcmp(&want[i], &a.canvas()[i], sizeof want[i]) != 0;
    b->table()->add(r);
    b->table()->add(same);
    bench_bytes(b, "drawn " + name + " as 8-bit", s.n, &a, want);
}

} // namespace bench
