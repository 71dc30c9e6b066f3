/* png_rows on CUDA: a thread makes the bytes of a pixel and, for the filter, the codes of its three
 * neighbours anew. They are in the cache, because the threads beside it read them too; keeping them
 * would need memory for the codes and a second launch. */
#include "kernels/png_rows/png_rows.h"

#include "kernels/cuda.cuh"
#include "kernels/png_rows/png_rows_math.h"

namespace
{

enum { BLOCK = 256 };

/* The codes of a pixel, as bytes. */
template <int CHANNELS, int CODE_BYTES> struct pixel_codes {
    unsigned char bytes[CHANNELS * CODE_BYTES];
};

template <int CHANNELS, int CODE_BYTES>
__device__ pixel_codes<CHANNELS, CODE_BYTES> codes_at(const kiln_png_rows_args &a, int64_t x,
                                                      int64_t y)
{
    pixel_codes<CHANNELS, CODE_BYTES> p = {};
    if (x < 0 || y < 0) return p;
    const float *const src = a.pixels + (uint64_t(y) * a.width + uint64_t(x)) * a.step;
    float v[4] = {};
    if (a.step == 4) {
        const float4 all = *reinterpret_cast<const float4 *>(src);
        v[0] = all.x;
        v[1] = all.y;
        v[2] = all.z;
        v[3] = all.w;
    } else {
        for (int c = 0; c < CHANNELS; c++) v[c] = src[c];
    }
    if (CHANNELS == 4 && a.straight) {
        const float over[4] = {v[0], v[1], v[2], v[3]};
        kiln_png_straighten(over, a.over, v);
    }
    for (int c = 0; c < CHANNELS; c++) {
        const int code = kiln_png_code(v[c], CODE_BYTES == 2 ? 65535.f : 255.f);
        if (CODE_BYTES == 2) p.bytes[c * CODE_BYTES] = static_cast<unsigned char>(code >> 8);
        p.bytes[c * CODE_BYTES + CODE_BYTES - 1] = static_cast<unsigned char>(code);
    }
    return p;
}

template <int CHANNELS, int CODE_BYTES>
__global__ void __launch_bounds__(BLOCK) filter_pixels(const kiln_png_rows_args a)
{
    constexpr int BYTES = CHANNELS * CODE_BYTES;
    const uint64_t n = uint64_t(a.n) * a.width;
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count()) {
        const int64_t x = static_cast<int64_t>(i % a.width),
                      row = static_cast<int64_t>(i / a.width), y = a.first + row;
        const auto own = codes_at<CHANNELS, CODE_BYTES>(a, x, y),
                   left = codes_at<CHANNELS, CODE_BYTES>(a, x - 1, y);
        const auto above = codes_at<CHANNELS, CODE_BYTES>(a, x, y - 1),
                   corner = codes_at<CHANNELS, CODE_BYTES>(a, x - 1, y - 1);
        unsigned char *const out =
            a.rows + uint64_t(row) * (1 + uint64_t(a.width) * BYTES) + 1 + uint64_t(x) * BYTES;
        if (x == 0) out[-1] = KILN_PNG_PAETH;
        for (int k = 0; k < BYTES; k++)
            out[k] = static_cast<unsigned char>(
                own.bytes[k] - kiln_png_guess(left.bytes[k], above.bytes[k], corner.bytes[k]));
    }
}

template <int CHANNELS, int CODE_BYTES>
kiln_status run_png_rows(const kiln_exec *x, const kiln_png_rows_args *a, kiln_error *err)
{
    const uint64_t pixels = uint64_t(a->n) * a->width;
    LAUNCH((filter_pixels<CHANNELS, CODE_BYTES>), kiln::blocks_for(pixels, BLOCK), BLOCK, 0, *a);
    return KILN_OK;
}

template <int CODE_BYTES>
kiln_status run_channels(const kiln_exec *x, const kiln_png_rows_args *a, kiln_error *err)
{
    if (a->channels == 1) return run_png_rows<1, CODE_BYTES>(x, a, err);
    if (a->channels == 3) return run_png_rows<3, CODE_BYTES>(x, a, err);
    return run_png_rows<4, CODE_BYTES>(x, a, err);
}

} // namespace

extern "C" kiln_status kiln_png_rows_cuda(const kiln_exec *x, const kiln_png_rows_args *a,
                                          void *work, size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "png_rows");
    CUDA_ENTER(entry.guard);
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    KILN_TRY(kiln_png_rows_check(a, err));
    if (a->n == 0) return KILN_OK;
    return a->bits == 16 ? run_channels<2>(x, a, err) : run_channels<1>(x, a, err);
}
