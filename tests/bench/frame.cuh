/* frame -- what a camera costs with everything on the device when its pairs are counted first, as
 * the first picture of a scene and every drawing: the operations in the order in which kernels/draw
 * calls them, with the numbers that the host must read in between, and nothing that overlaps. The
 * scene's planes are there in one piece. */
#ifndef KILN_TESTS_BENCH_FRAME_CUH
#define KILN_TESTS_BENCH_FRAME_CUH

#include "tests/bench/bench.cuh"
#include "tests/bench/inputs.cuh"

namespace bench
{

/* How lists find their memory. */
enum class memory_by {
    COUNT, /* all at once */
    BANDS  /* in bands (tile_pairs.h), which caps it */
};

class frame
{
  public:
    frame(runner *b, const scene &s, const kiln_view &view, memory_by how);
    ~frame();
    frame(const frame &) = delete;
    frame &operator=(const frame &) = delete;

    /* everything once; the first time finds out what memory it takes */
    void run();
    void poison(int byte) const; /* all that it writes */
    uint64_t sum() const;        /* of the picture */
    uint64_t memory() const;     /* bytes on the device beside the scene */
    uint64_t visible() const { return order_args_.n; }
    uint64_t pairs() const { return pairs_; }
    uint64_t tiles() const { return tile_counts_.size(); }
    uint64_t pixels() const { return rgba_.size() / 4; }

    /* Arguments as run() has left them. Of the whole picture, but in bands. */
    const kiln_project_args &project() const { return project_; }
    const kiln_depth_order_args &depth_order() const { return order_args_; }
    const kiln_visible_order_args &order() const { return move_; }
    const kiln_tile_pairs_count_args &count() const { return count_; }
    const kiln_tile_pairs_emit_args &emit() const { return emit_; }
    const kiln_raster_args &raster() const { return raster_; }

  private:
    void set_scene(const scene &s);
    void set_order();
    void collect();
    void put_in_order();
    void count_pairs();
    void reserve(uint64_t pairs);
    void draw(uint32_t row0, uint32_t row1);
    void step(kiln_op_id op, const void *args);
    void read_back(const uint64_t *from, uint64_t n);
    std::vector<const array<uint32_t> *> numbers() const; /* all that it writes of that type */

    runner *b_;
    kiln_view view_;
    memory_by how_;
    bool prepared_ = false;
    uint32_t tiles_x_, tiles_y_;
    uint64_t work_bytes_ = 0, pairs_ = 0, n_;
    uint64_t *host_ = nullptr; /* pinned: counts that come back */
    array<uint64_t> n_visible_, row_pairs_;
    array<kiln_splat2d> splats_, ordered_;
    array<float> depths_, rgba_;
    array<uint32_t> source_rows_, rows_, order_, ordered_rows_, tile_counts_;
    std::unique_ptr<array<uint32_t>> ranks_;
    kiln_project_args project_ = {};
    kiln_depth_order_args order_args_ = {};
    kiln_visible_order_args move_ = {};
    kiln_tile_pairs_count_args count_ = {};
    kiln_tile_pairs_emit_args emit_ = {};
    kiln_raster_args raster_ = {};
};

} // namespace bench

#endif
