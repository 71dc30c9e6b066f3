/* undistort on the CPU: the definition. Rows of each step on all threads. */
#include "kernels/undistort/undistort.h"

#include "kernels/undistort/undistort_math.h"

kiln_undistort_fn KILN_CPU(undistort);

/* kiln_undistort_cpu, kiln_undistort_cpu_avx2 */
kiln_status KILN_CPU(undistort)(const kiln_exec *x, const kiln_undistort_args *a, void *work,
                                size_t *work_bytes, kiln_error *err)
{
    kiln_carve c = {.base = work};
    const kiln_undistort_plan p = kiln_undistort_plan_of(a, &c);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    if (*work_bytes < c.used)
        return kiln_fail(err, KILN_E_CAP,
                         "undistort needs %zu bytes of work space, but was given %zu", c.used,
                         *work_bytes);
    KILN_TRY(kiln_undistort_check(a, err));
    const kiln_undistort_plane *const warped = &p.planes[0];
#pragma omp parallel for num_threads(x->threads) schedule(dynamic, 4)
    for (int64_t y = 0; y < warped->height; y++)
        for (uint32_t i = 0; i < warped->width; i++)
            kiln_undistort_warp(a, &p.pinhole, warped, i, (uint32_t)y);
    for (unsigned k = 0; k + 1 < p.n; k++) {
        const kiln_undistort_plane *const from = &p.planes[k], *const to = &p.planes[k + 1];
        const int along_y = kiln_undistort_along_y(&p, k);
#pragma omp parallel for num_threads(x->threads) schedule(dynamic, 4)
        for (int64_t y = 0; y < to->height; y++)
            for (uint32_t i = 0; i < to->width; i++)
                kiln_undistort_scale(a, from, to, along_y, i, (uint32_t)y);
    }
    return KILN_OK;
}
