/* pixel_bytes on CUDA. RGB and RGBA: lanes make the bytes of neighbouring pixels in the order in
 * which they are written, so that whole words are written wherever rows begin. YUV: a thread takes
 * 2 x 2 pixels. */
#include "kernels/pixel_bytes/pixel_bytes.h"

#include "kernels/early_cuda.cuh"
#include "kernels/pixel_bytes/pixel_bytes_math.h"

namespace
{

enum : uint32_t {
    BLOCK = 256,
    TOGETHER = 4,             /* pixels that a thread asks for at a time */
    PIECE = BLOCK * TOGETHER, /* of a block */
    GROUP = 4,                /* pixels of RGB in whole words */
};

__device__ float4 pixel_at(const kiln_pixel_bytes_args &a, uint64_t x, uint64_t y)
{
    return __ldcs(reinterpret_cast<const float4 *>(a.pixels) + y * a.stride + x);
}

__device__ uint32_t byte_of(float v) { return static_cast<uint32_t>(kiln_png_code(v, 255.f)); }

/* Red in the lowest byte. */
__device__ uint32_t word_of(const float4 p)
{
    return byte_of(p.x) | byte_of(p.y) << 8 | byte_of(p.z) << 16 | byte_of(p.w) << 24;
}

/* Three channels of four neighbours are three words, which the first three of their lanes write;
 * word: of the lane's own pixel. Every lane of a warp calls this. n: pixels from the lane's own
 * group of four on; out: where the group's bytes begin. */
__device__ void write_rgb(uint32_t word, uint64_t n, unsigned char *out)
{
    const uint32_t part = threadIdx.x % GROUP, next = __shfl_down_sync(0xffffffff, word, 1);
    if (n >= GROUP) {
        /* of each the lower three */
        const uint32_t bytes = part == 0 ? 0x4210 : part == 1 ? 0x5421 : 0x6542;
        if (part < 3) reinterpret_cast<uint32_t *>(out)[part] = __byte_perm(word, next, bytes);
    } else if (part < n) {
        for (uint32_t c = 0; c < 3; c++)
            out[3 * part + c] = static_cast<unsigned char>(word >> 8 * c);
    }
}

/* A block takes pixels behind one another, neighbouring lanes neighbouring pixels: a warp reads 512
 * bytes in one piece. */
template <int CHANNELS>
__global__ void __launch_bounds__(BLOCK) write_interleaved(const kiln_pixel_bytes_args a)
{
    const uint64_t n = uint64_t(a.width) * a.height;
    kiln::launch_before_is_done();
    for (uint64_t first = uint64_t(blockIdx.x) * PIECE; first < n;
         first += uint64_t(gridDim.x) * PIECE) {
        const uint64_t y0 = first / a.width;
        const uint32_t x0 = static_cast<uint32_t>(first - y0 * a.width);
        float4 pixels[TOGETHER] = {};
/* All are on their way before the first is used. */
#pragma unroll
        for (uint32_t k = 0; k < TOGETHER; k++) {
            /* both sides are at most 2^20 */
            const uint32_t behind = k * BLOCK + threadIdx.x, x = x0 + behind;
            if (first + behind < n) pixels[k] = pixel_at(a, x % a.width, y0 + x / a.width);
        }
#pragma unroll
        for (uint32_t k = 0; k < TOGETHER; k++) {
            const uint64_t i = first + k * BLOCK + threadIdx.x, group = i - threadIdx.x % GROUP;
            const uint32_t word = word_of(pixels[k]);
            if (CHANNELS == 3)
                write_rgb(word, group < n ? n - group : 0, a.bytes + 3 * group);
            else if (i < n)
                reinterpret_cast<uint32_t *>(a.bytes)[i] = word;
        }
    }
}

/* The colours of a pixel, added to sum; writes its luma. */
__device__ void add_pixel(const kiln_pixel_bytes_args &a, const kiln_yuv_matrix &m, uint64_t x,
                          uint64_t y, int32_t sum[3])
{
    const float4 p = pixel_at(a, x, y);
    const int32_t rgb[3] = {static_cast<int32_t>(byte_of(p.x)), static_cast<int32_t>(byte_of(p.y)),
                            static_cast<int32_t>(byte_of(p.z))};
    for (int c = 0; c < 3; c++) sum[c] += rgb[c];
    a.bytes[y * a.width + x] = kiln_yuv_luma(&m, rgb);
}

__global__ void __launch_bounds__(BLOCK)
    write_yuv420(const kiln_pixel_bytes_args a, const kiln_yuv_matrix m)
{
    const uint64_t half_width = (a.width + 1) / 2, n = half_width * ((a.height + 1) / 2);
    unsigned char *const cb = a.bytes + uint64_t(a.width) * a.height;
    kiln::launch_before_is_done();
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count()) {
        const uint64_t x = 2 * (i % half_width), y = 2 * (i / half_width);
        const uint64_t right = x + 1 < a.width ? x + 1 : x, below = y + 1 < a.height ? y + 1 : y;
        int32_t sum[3] = {};
        add_pixel(a, m, x, y, sum);
        /* at an odd edge the same pixel again, with the same luma */
        add_pixel(a, m, right, y, sum);
        add_pixel(a, m, x, below, sum);
        add_pixel(a, m, right, below, sum);
        cb[i] = kiln_yuv_byte(m.cb, sum, 2, 128);
        cb[n + i] = kiln_yuv_byte(m.cr, sum, 2, 128);
    }
}

template <int CHANNELS>
kiln_status interleaved(const kiln_exec *x, const kiln_pixel_bytes_args *a, kiln_error *err)
{
    LAUNCH_EARLY(write_interleaved<CHANNELS>,
                 kiln::blocks_for(uint64_t(a->width) * a->height, PIECE), BLOCK, *a);
    return KILN_OK;
}

kiln_status yuv420(const kiln_exec *x, const kiln_pixel_bytes_args *a, kiln_error *err)
{
    const uint64_t squares = uint64_t((a->width + 1) / 2) * ((a->height + 1) / 2);
    LAUNCH_EARLY(write_yuv420, kiln::blocks_for(squares, BLOCK), BLOCK, *a,
                 kiln_yuv_matrix_of(a->width, a->height));
    return KILN_OK;
}

} // namespace

extern "C" kiln_status kiln_pixel_bytes_cuda(const kiln_exec *x, const kiln_pixel_bytes_args *a,
                                             void *work, size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "pixel_bytes");
    CUDA_ENTER(entry.guard);
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    KILN_TRY(kiln_pixel_bytes_check(a, err));
    if (a->layout == KILN_PIXELS_RGBA) return interleaved<4>(x, a, err);
    return a->layout == KILN_PIXELS_RGB ? interleaved<3>(x, a, err) : yuv420(x, a, err);
}
