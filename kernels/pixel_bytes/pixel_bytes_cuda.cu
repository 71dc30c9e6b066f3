/* pixel_bytes on CUDA. RGB and RGBA: a thread makes the bytes of four pixels in the order in which they are written, so that it
 * writes whole words wherever rows begin. YUV: a thread takes 2 x 2 pixels. */
#include "kernels/pixel_bytes/pixel_bytes.h"

#include "kernels/cuda.cuh"
#include "kernels/pixel_bytes/pixel_bytes_math.h"

namespace
{

enum { BLOCK = 256, TOGETHER = 4 };

__device__ float4 pixel_at(const kiln_pixel_bytes_args &a, uint64_t x, uint64_t y)
{
    return __ldcs(reinterpret_cast<const float4 *>(a.pixels) + y * a.stride + x);
}

__device__ uint32_t byte_of(float v) { return static_cast<uint32_t>(kiln_png_code(v, 255.f)); }

/* Red in the lowest byte. */
__device__ uint32_t word_of(const float4 p) { return byte_of(p.x) | byte_of(p.y) << 8 | byte_of(p.z) << 16 | byte_of(p.w) << 24; }

/* n pixels behind another, at most TOGETHER, to out. */
template <int CHANNELS> __device__ void write_pixels(const uint32_t pixels[TOGETHER], uint64_t n, unsigned char *out)
{
    if (n == TOGETHER && CHANNELS == 4) {
        *reinterpret_cast<uint4 *>(out) = make_uint4(pixels[0], pixels[1], pixels[2], pixels[3]);
    } else if (n == TOGETHER) { /* of each the lower three bytes */
        uint32_t *const words = reinterpret_cast<uint32_t *>(out);
        words[0] = __byte_perm(pixels[0], pixels[1], 0x4210);
        words[1] = __byte_perm(pixels[1], pixels[2], 0x5421);
        words[2] = __byte_perm(pixels[2], pixels[3], 0x6542);
    } else {
        for (uint64_t i = 0; i < n; i++)
            for (int c = 0; c < CHANNELS; c++) out[i * CHANNELS + c] = static_cast<unsigned char>(pixels[i] >> 8 * c);
    }
}

template <int CHANNELS> __global__ void __launch_bounds__(BLOCK) write_interleaved(const kiln_pixel_bytes_args a)
{
    const uint64_t n = uint64_t(a.width) * a.height;
    for (uint64_t i = TOGETHER * kiln::thread_index(); i < n; i += TOGETHER * kiln::thread_count()) {
        uint64_t x = i % a.width, y = i / a.width;
        uint32_t pixels[TOGETHER] = {};
        for (int k = 0; k < TOGETHER && i + k < n; k++) {
            pixels[k] = word_of(pixel_at(a, x, y));
            if (++x == a.width) {
                x = 0;
                y++;
            }
        }
        write_pixels<CHANNELS>(pixels, n - i < TOGETHER ? n - i : TOGETHER, a.bytes + i * CHANNELS);
    }
}

/* The colours of a pixel, added to sum; writes its luma. */
__device__ void add_pixel(const kiln_pixel_bytes_args &a, const kiln_yuv_matrix &m, uint64_t x, uint64_t y, int32_t sum[3])
{
    const float4 p = pixel_at(a, x, y);
    const int32_t rgb[3] = {static_cast<int32_t>(byte_of(p.x)), static_cast<int32_t>(byte_of(p.y)),
                            static_cast<int32_t>(byte_of(p.z))};
    for (int c = 0; c < 3; c++) sum[c] += rgb[c];
    a.bytes[y * a.width + x] = kiln_yuv_luma(&m, rgb);
}

__global__ void __launch_bounds__(BLOCK) write_yuv420(const kiln_pixel_bytes_args a, const kiln_yuv_matrix m)
{
    const uint64_t half_width = (a.width + 1) / 2, n = half_width * ((a.height + 1) / 2);
    unsigned char *const cb = a.bytes + uint64_t(a.width) * a.height;
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count()) {
        const uint64_t x = 2 * (i % half_width), y = 2 * (i / half_width);
        const uint64_t right = x + 1 < a.width ? x + 1 : x, below = y + 1 < a.height ? y + 1 : y;
        int32_t sum[3] = {};
        add_pixel(a, m, x, y, sum);
        add_pixel(a, m, right, y, sum); /* at an odd edge the same pixel again, with the same luma */
        add_pixel(a, m, x, below, sum);
        add_pixel(a, m, right, below, sum);
        cb[i] = kiln_yuv_byte(m.cb, sum, 2, 128);
        cb[n + i] = kiln_yuv_byte(m.cr, sum, 2, 128);
    }
}

template <int CHANNELS> kiln_status interleaved(const kiln_exec *x, const kiln_pixel_bytes_args *a, kiln_error *err)
{
    const uint64_t groups = (uint64_t(a->width) * a->height + TOGETHER - 1) / TOGETHER;
    LAUNCH(write_interleaved<CHANNELS>, kiln::blocks_for(groups, BLOCK), BLOCK, 0, *a);
    return KILN_OK;
}

kiln_status yuv420(const kiln_exec *x, const kiln_pixel_bytes_args *a, kiln_error *err)
{
    const uint64_t squares = uint64_t((a->width + 1) / 2) * ((a->height + 1) / 2);
    LAUNCH(write_yuv420, kiln::blocks_for(squares, BLOCK), BLOCK, 0, *a, kiln_yuv_matrix_of(a->width, a->height));
    return KILN_OK;
}

} // namespace

extern "C" kiln_status kiln_pixel_bytes_cuda(const kiln_exec *x, const kiln_pixel_bytes_args *a, void *work, size_t *work_bytes,
                                             kiln_error *err)
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
