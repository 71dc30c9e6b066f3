/* undistort on CUDA: one thread a pixel in each step. A photo is warped once while its camera's
 * picture is drawn many times, so the double arithmetic of the lens does not show. */
#include "kernels/undistort/undistort.h"

#include "kernels/cuda.cuh"
#include "kernels/undistort/undistort_math.h"

namespace
{

enum { BLOCK = 256 };

__global__ void __launch_bounds__(BLOCK)
    warp_pixels(kiln_undistort_args a, kiln_pinhole pinhole, kiln_undistort_plane to)
{
    const uint64_t n = uint64_t(to.width) * to.height;
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count())
        kiln_undistort_warp(&a, &pinhole, &to, static_cast<uint32_t>(i % to.width),
                            static_cast<uint32_t>(i / to.width));
}

__global__ void __launch_bounds__(BLOCK)
    scale_pixels(kiln_undistort_args a, kiln_undistort_plane from, kiln_undistort_plane to,
                 int along_y)
{
    const uint64_t n = uint64_t(to.width) * to.height;
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count())
        kiln_undistort_scale(&a, &from, &to, along_y, static_cast<uint32_t>(i % to.width),
                             static_cast<uint32_t>(i / to.width));
}

uint64_t pixels_of(const kiln_undistort_plane &p) { return uint64_t(p.width) * p.height; }

} // namespace

extern "C" kiln_status kiln_undistort_cuda(const kiln_exec *x, const kiln_undistort_args *a,
                                           void *work, size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "undistort");
    CUDA_ENTER(entry.guard);
    kiln_carve c = {static_cast<char *>(work), 0};
    const kiln_undistort_plan p = kiln_undistort_plan_of(a, &c);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("undistort", c.used, *work_bytes, err));
    KILN_TRY(kiln_undistort_check(a, err));
    LAUNCH(warp_pixels, kiln::blocks_for(pixels_of(p.planes[0]), BLOCK), BLOCK, 0, *a, p.pinhole,
           p.planes[0]);
    for (unsigned k = 0; k + 1 < p.n; k++) {
        const kiln_undistort_plane &to = p.planes[k + 1];
        const int along_y = kiln_undistort_along_y(&p, k);
        LAUNCH(scale_pixels, kiln::blocks_for(pixels_of(to), BLOCK), BLOCK, 0, *a, p.planes[k], to,
               along_y);
    }
    return KILN_OK;
}
