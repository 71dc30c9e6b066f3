/* ssim3d and ssim3d_backward on CUDA: tiles of 32 columns, four rows and 32 slices, a thread a
 * column and row.
 *
 * A block walks through its tile slice by slice. Each slice, with five voxels around it, is read
 * into shared memory, filtered along x and then y, and kept there until the eleven slices around an
 * output are filtered. 64 KiB of shared memory, which every device has that CUDA 13 compiles for,
 * hold a tile of four rows.
 */
#include "kernels/ssim3d/ssim3d.h"

#include "kernels/ssim/ssim_sum_cuda.cuh"
#include "kernels/ssim3d/ssim3d_math.h"

namespace
{

enum {
    LANES = kiln::SSIM_LANES,
    RADIUS = KILN_SSIM_RADIUS,
    TAPS = KILN_SSIM_TAPS,
    COLUMNS = LANES,
    ROWS = 4,
    SLICES = KILN_SSIM3D_SLICES,
    SPREAD = COLUMNS + 2 * RADIUS,
    SPAN = ROWS + 2 * RADIUS,
    THREADS = COLUMNS * ROWS,
    TILES_MOST = 1 << 8, /* whose sums a thread adds up by itself, of 32 values each */
};

/* All that a kernel needs to know of the batch. */
struct volumes {
    /* tiles: of all planes; then along each axis */
    uint64_t values, count, tiles, across, down, through;
    /* margin: so many voxels at each side do not count */
    int64_t width, height, depth, margin;
};

/* Where a tile begins. */
struct corner {
    uint64_t plane; /* values before it */
    int64_t x, y, z;
};

__device__ corner corner_of(const volumes &v, uint64_t tile)
{
    const uint64_t row = tile / v.across, slab = row / v.down, plane = slab / v.through;
    return {plane * v.depth * v.height * v.width,
            static_cast<int64_t>(tile - row * v.across) * COLUMNS,
            static_cast<int64_t>(row - slab * v.down) * ROWS,
            static_cast<int64_t>(slab - plane * v.through) * SLICES};
}

__device__ uint64_t voxel_at(const volumes &v, const corner &c, int64_t x, int64_t y, int64_t z)
{
    return c.plane + (z * v.height + y) * v.width + x;
}

/* What a block has in shared memory. OP::RAW: what is read of a voxel; OP::VALUES: doubles of it
 * that are filtered. */
template <class OP> struct slab {
    typename OP::raw in[SPAN][SPREAD];
    double along[OP::VALUES][SPAN][COLUMNS];
    double slices[TAPS][OP::VALUES][THREADS]; /* slice z of the tile is at z modulo 11 */
};

/* Filters slice z along x and y; every thread keeps its own column and row. */
template <class OP>
__device__ void keep_slice(const OP &op, const volumes &v, const corner &c, int64_t z, slab<OP> *t)
{
    double(*const kept)[THREADS] = t->slices[(z - c.z + RADIUS) % TAPS];
    if (z < 0 || z >= v.depth) {
        for (int q = 0; q < OP::VALUES; q++) kept[q][threadIdx.x] = 0.0;
        return;
    }
    for (int i = threadIdx.x; i < SPAN * SPREAD; i += THREADS) {
        const int64_t x = c.x - RADIUS + i % SPREAD, y = c.y - RADIUS + i / SPREAD;
        const bool inside = x >= 0 && x < v.width && y >= 0 && y < v.height;
        t->in[i / SPREAD][i % SPREAD] =
            inside ? op.read(v, voxel_at(v, c, x, y, z)) : typename OP::raw{};
    }
    __syncthreads();
    for (int i = threadIdx.x; i < SPAN * COLUMNS; i += THREADS) {
        const int row = i / COLUMNS, column = i % COLUMNS;
        double sums[OP::VALUES] = {};
#pragma unroll
        for (int k = 0; k < TAPS; k++) {
            double values[OP::VALUES];
            op.expand(t->in[row][column + k], values);
            for (int q = 0; q < OP::VALUES; q++) sums[q] = kiln_ssim3d_tap(sums[q], k, values[q]);
        }
        for (int q = 0; q < OP::VALUES; q++) t->along[q][row][column] = sums[q];
    }
    __syncthreads();
    for (int q = 0; q < OP::VALUES; q++) {
        double sum = 0.0;
#pragma unroll
        for (int k = 0; k < TAPS; k++)
            sum = kiln_ssim3d_tap(sum, k,
                                  t->along[q][threadIdx.x / COLUMNS + k][threadIdx.x % COLUMNS]);
        kept[q][threadIdx.x] = sum;
    }
}

/* Filters slice z, whose neighbours are kept, along z, and has op finish it. */
template <class OP>
__device__ void finish_slice(OP *op, const volumes &v, const corner &c, int64_t z,
                             const slab<OP> *t)
{
    const int64_t x = c.x + threadIdx.x % COLUMNS, y = c.y + threadIdx.x / COLUMNS;
    if (x >= v.width || y >= v.height) return;
    double sums[OP::VALUES] = {};
    for (int k = 0; k < TAPS; k++)
        for (int q = 0; q < OP::VALUES; q++)
            sums[q] = kiln_ssim3d_tap(sums[q], k, t->slices[(z - c.z + k) % TAPS][q][threadIdx.x]);
    const bool counts = kiln_ssim3d_counts(x, v.width, v.margin) &&
                        kiln_ssim3d_counts(y, v.height, v.margin) &&
                        kiln_ssim3d_counts(z, v.depth, v.margin);
    op->finish(v, voxel_at(v, c, x, y, z), counts, sums);
}

template <class OP>
__device__ void filter_tile(OP *op, const volumes &v, uint64_t tile, slab<OP> *t)
{
    const corner c = corner_of(v, tile);
    const int64_t end = c.z + SLICES < v.depth ? c.z + SLICES : v.depth;
    for (int64_t z = c.z - RADIUS; z < end + RADIUS; z++) {
        keep_slice(*op, v, c, z, t);
        if (z - RADIUS >= c.z) finish_slice(op, v, c, z - RADIUS, t);
    }
    __syncthreads(); /* before the next tile's first slice */
}

/* ---- ssim3d ---------------------------------------------------------------------------------- */

struct measuring {
    enum { VALUES = KILN_SSIM3D_MOMENTS };
    using raw = float2;
    kiln_ssim3d_args a;
    int64_t sum;
    bool bad;

    __device__ raw read(const volumes &, uint64_t at) const
    {
        return make_float2(__ldg(a.a + at), __ldg(a.b + at));
    }
    __device__ void expand(const raw &r, double values[VALUES]) const
    {
        kiln_ssim3d_moments(r.x, r.y, values);
    }
    __device__ void finish(const volumes &v, uint64_t at, bool counts,
                           const double filtered[VALUES])
    {
        const kiln_ssim_pixel pixel = kiln_ssim3d_pixel_of(filtered);
        const bool number = kiln_ssim_is_number(pixel.falls_short);
        bad |= counts && !number;
        sum += counts && number ? kiln_fixed(static_cast<double>(pixel.falls_short)) : 0;
        if (!a.partials) return;
        const kiln_ssim_slope f =
            kiln_ssim3d_slope_of(pixel, filtered, __ldg(a.a + at), __ldg(a.b + at));
        a.partials[at] = counts ? f.at : 0.0f;
        a.partials[v.values + at] = counts ? f.by_s : 0.0f;
        a.partials[2 * v.values + at] = counts ? f.by_d : 0.0f;
    }
};

__global__ void __launch_bounds__(THREADS)
    measure_volumes(volumes v, kiln_ssim3d_args a, kiln::ssim_sum *sums)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    slab<measuring> *const t = reinterpret_cast<slab<measuring> *>(shared_memory);
    __shared__ kiln::ssim_sum of_block;
    measuring op = {a, 0, false};
    unsigned tiles = 0;
    kiln::let_next_launch_begin();
    kiln::ssim_begin_sum(&of_block);
    for (uint64_t tile = blockIdx.x; tile < v.tiles; tile += gridDim.x) {
        filter_tile(&op, v, tile, t);
        if (++tiles % TILES_MOST != 0) continue;
        kiln::ssim_add(&of_block, op.sum, op.bad);
        op.sum = 0;
    }
    kiln::ssim_add(&of_block, op.sum, op.bad);
    kiln::ssim_leave_sum(of_block, sums + blockIdx.x);
}

/* ---- ssim3d_backward ------------------------------------------------------------------------- */

struct differentiating {
    enum { VALUES = KILN_SSIM_PARTIALS };
    struct raw {
        double values[VALUES];
    };
    kiln_ssim3d_backward_args a;
    float scale;

    __device__ raw read(const volumes &v, uint64_t at) const
    {
        const kiln_ssim_slope f = {__ldg(a.partials + at), __ldg(a.partials + v.values + at),
                                   __ldg(a.partials + 2 * v.values + at)};
        raw r;
        kiln_ssim3d_to_origin(f, __ldg(a.a + at), __ldg(a.b + at), r.values);
        return r;
    }
    __device__ void expand(const raw &r, double values[VALUES]) const
    {
        for (int q = 0; q < VALUES; q++) values[q] = r.values[q];
    }
    __device__ void finish(const volumes &, uint64_t at, bool, const double filtered[VALUES])
    {
        a.gradient[at] = kiln_ssim3d_gradient(filtered, __ldg(a.a + at), __ldg(a.b + at), scale);
    }
};

__global__ void __launch_bounds__(THREADS)
    differentiate_volumes(volumes v, kiln_ssim3d_backward_args a)
{
    extern __shared__ __align__(16) unsigned char shared_memory[];
    slab<differentiating> *const t = reinterpret_cast<slab<differentiating> *>(shared_memory);
    differentiating op = {a, kiln_ssim_scale(*a.upstream, v.count)};
    for (uint64_t tile = blockIdx.x; tile < v.tiles; tile += gridDim.x)
        filter_tile(&op, v, tile, t);
}

static_assert(sizeof(slab<measuring>) <= 65536 - 64 && sizeof(slab<differentiating>) <= 65536,
              "a block fits every device");

/* ---- entries --------------------------------------------------------------------------------- */

template <class ARGS> volumes volumes_of(const ARGS *a)
{
    volumes v = {};
    v.values = a->planes * a->depth * a->height * a->width;
    v.count = kiln_ssim3d_count(a->planes, a->width, a->height, a->depth, a->valid);
    v.across = (static_cast<uint64_t>(a->width) + COLUMNS - 1) / COLUMNS;
    v.down = (static_cast<uint64_t>(a->height) + ROWS - 1) / ROWS;
    v.through = (static_cast<uint64_t>(a->depth) + SLICES - 1) / SLICES;
    v.tiles = a->planes * v.across * v.down * v.through;
    v.width = a->width;
    v.height = a->height;
    v.depth = a->depth;
    v.margin = a->valid ? RADIUS : 0;
    return v;
}

unsigned blocks_of(const volumes &v)
{
    return static_cast<unsigned>(v.tiles < kiln::BLOCKS_MOST ? v.tiles : kiln::BLOCKS_MOST);
}

} // namespace

extern "C" kiln_status kiln_ssim3d_cuda(const kiln_exec *x, const kiln_ssim3d_args *a, void *work,
                                        size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "ssim3d");
    constexpr int bytes = sizeof(slab<measuring>);
    CUDA_ENTER(entry.guard);
    KILN_TRY(kiln_ssim3d_check(a->planes, a->width, a->height, a->depth, err));
    const volumes v = volumes_of(a);
    kiln_carve c = {static_cast<char *>(work), 0};
    kiln::ssim_sum *const sums = kiln::take<kiln::ssim_sum>(&c, blocks_of(v));
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("ssim3d", c.used, *work_bytes, err));
    CUDA_TRY(
        cudaFuncSetAttribute(measure_volumes, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    LAUNCH(measure_volumes, blocks_of(v), THREADS, bytes, v, *a, sums);
    LAUNCH_EARLY(kiln::ssim_make_mean, 1, kiln::SSIM_MEAN_THREADS, v.count, blocks_of(v), sums,
                 a->mean);
    return KILN_OK;
}

extern "C" kiln_status kiln_ssim3d_backward_cuda(const kiln_exec *x,
                                                 const kiln_ssim3d_backward_args *a, void *work,
                                                 size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "ssim3d_backward");
    constexpr int bytes = sizeof(slab<differentiating>);
    CUDA_ENTER(entry.guard);
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    KILN_TRY(kiln_ssim3d_check(a->planes, a->width, a->height, a->depth, err));
    const volumes v = volumes_of(a);
    CUDA_TRY(cudaFuncSetAttribute(differentiate_volumes,
                                  cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    LAUNCH(differentiate_volumes, blocks_of(v), THREADS, bytes, v, *a);
    return KILN_OK;
}
