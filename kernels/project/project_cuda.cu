/* project on CUDA: first every row is asked whether it is visible, then the visible rows, made dense in row order, are
 * projected again and coloured. The second time costs 44 bytes of reading a visible row; keeping the outlines of the
 * first would cost 64 bytes of writing and reading for every row, visible or not. */
#include "kernels/project/project.h"

#include "kernels/cuda.cuh"
#include "kernels/project/project_math.h"
#include "kernels/project/sh_math.h"

#include <cub/device/device_select.cuh>
#include <thrust/iterator/counting_iterator.h>

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace
{

namespace cg = cooperative_groups;

enum { BLOCK = 256 };

/* ---- one Gaussian ---------------------------------------------------------------------------------------------------- */
__device__ kiln_raw load(const kiln_project_args &a, uint64_t row)
{
    kiln_raw g;
    for (int c = 0; c < 3; c++) g.mean[c] = a.means[c * a.n + row];
    for (int c = 0; c < 3; c++) g.log_scale[c] = a.log_scales[c * a.n + row];
    for (int c = 0; c < 4; c++) g.quat[c] = a.quats[c * a.n + row];
    g.opacity_logit = a.opacity_logits[row];
    return g;
}

template <bool INRIA> __device__ int outline(const kiln_lens &l, const kiln_raw &g, kiln_seen *seen, kiln_outline *o)
{
    kiln_project_see(&l, &g, seen);
    return INRIA ? kiln_inria_outline(&l, seen, o) : kiln_gsplat_outline(&l, seen, o);
}

/* The coefficients of one degree: a fused multiply-add each, in their order. */
template <int DEGREE> __device__ void add_degree(const kiln_project_args &a, uint64_t row, const float *basis, float sum[3])
{
#pragma unroll
    for (int m = 0; m < 2 * DEGREE + 1; m++) {
        const uint64_t coefficient = DEGREE * DEGREE + m - 1;
        for (int c = 0; c < 3; c++) sum[c] = kiln_fmaf(basis[m], a.shN[(3 * coefficient + c) * a.n + row], sum[c]);
    }
}

__device__ void colour(const kiln_project_args &a, const kiln_lens &l, uint64_t row, const float mean[3], float rgb[3])
{
    const uint32_t degree = a.shN ? a.sh_degree : 0;
    float sum[3], basis[9];
    for (int c = 0; c < 3; c++) sum[c] = a.sh0[c * a.n + row] * KILN_SH_C0;
    if (degree > 0) {
        float x = mean[0] - l.centre[0], y = mean[1] - l.centre[1], z = mean[2] - l.centre[2];
        const float scale = 1.0f / sqrtf(kiln_dot3(x, y, z, x, y, z));
        x *= scale;
        y *= scale;
        z *= scale;
        kiln_sh_basis1(x, y, z, basis);
        add_degree<1>(a, row, basis, sum);
        if (degree > 1) {
            kiln_sh_basis2(x, y, z, basis);
            add_degree<2>(a, row, basis, sum);
        }
        if (degree > 2) {
            kiln_sh_basis3(x, y, z, basis);
            add_degree<3>(a, row, basis, sum);
        }
        if (degree > 3) {
            kiln_sh_basis4(x, y, z, basis);
            add_degree<4>(a, row, basis, sum);
        }
    }
    for (int c = 0; c < 3; c++) rgb[c] = kiln_sh_colour(sum[c]);
}

/* ---- kernels --------------------------------------------------------------------------------------------------------- */
template <bool INRIA> __global__ void __launch_bounds__(BLOCK) find_visible(kiln_project_args a, kiln_lens l, uint8_t *visible)
{
    for (uint64_t row = kiln::thread_index(); row < a.n; row += kiln::thread_count()) {
        const float z = kiln_project_depth(&l, a.means[row], a.means[a.n + row], a.means[2 * a.n + row]);
        int is = kiln_project_in_depth(&l, z);
        if (is) {
            kiln_seen seen;
            kiln_outline o;
            is = outline<INRIA>(l, load(a, row), &seen, &o);
        }
        visible[row] = is != 0;
    }
}

template <bool INRIA> __global__ void __launch_bounds__(BLOCK) make_splats(kiln_project_args a, kiln_lens l, const uint32_t *rows)
{
    const uint64_t n_visible = *a.n_visible;
    uint64_t box_pairs = 0;
    for (uint64_t i = kiln::thread_index(); i < n_visible; i += kiln::thread_count()) {
        const uint32_t row = rows[i];
        const kiln_raw g = load(a, row);
        kiln_seen seen;
        kiln_outline o;
        (void)outline<INRIA>(l, g, &seen, &o);
        kiln_splat2d s;
        s.x = o.x;
        s.y = o.y;
        s.conic[0] = o.a;
        s.conic[1] = o.b;
        s.conic[2] = o.c;
        s.opacity = o.opacity;
        s.power_min = o.power_min;
        s.depth = seen.cam[2];
        s.rgb[0] = s.rgb[1] = s.rgb[2] = 0.0f;
        s.row = row;
        s.tile_x0 = o.tile_x0;
        s.tile_y0 = o.tile_y0;
        s.tile_x1 = o.tile_x1;
        s.tile_y1 = o.tile_y1;
        if (a.sh0) colour(a, l, row, g.mean, s.rgb);
        a.splats[i] = s;
        box_pairs += static_cast<uint64_t>(o.box_x) * static_cast<uint64_t>(o.box_y);
    }
    if (!a.box_pairs) return;
    const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
    box_pairs = cg::reduce(warp, box_pairs, cg::plus<uint64_t>());
    if (warp.thread_rank() == 0 && box_pairs > 0) kiln::add64(a.box_pairs, box_pairs);
}

/* ---- launchers ------------------------------------------------------------------------------------------------------- */
struct workspace {
    uint8_t *visible; /* [n] */
    uint32_t *rows;   /* [n] of the visible ones, in order */
    void *cub;
    size_t cub_bytes, bytes;
};

/* Called with cub NULL for its size, then for the work itself. */
cudaError_t list_visible(const kiln_project_args *a, void *cub, size_t *cub_bytes, const workspace &w, cudaStream_t stream)
{
    return kiln_cub::cub::DeviceSelect::Flagged(cub, *cub_bytes, kiln_cub::thrust::counting_iterator<uint32_t>(0), w.visible,
                                                w.rows, a->n_visible, static_cast<int64_t>(a->n), stream);
}

cudaError_t lay_out(workspace *w, const kiln_project_args *a, void *work, cudaStream_t stream)
{
    kiln_carve c = {static_cast<char *>(work), 0};
    w->visible = kiln::take<uint8_t>(&c, a->n);
    w->rows = kiln::take<uint32_t>(&c, a->n);
    w->cub_bytes = 0;
    const cudaError_t e = list_visible(a, nullptr, &w->cub_bytes, *w, stream);
    w->cub = kiln_take(&c, w->cub_bytes, 1);
    w->bytes = c.used;
    return e;
}

template <bool INRIA> kiln_status run(const kiln_exec *x, const kiln_project_args *a, workspace &w, kiln_error *err)
{
    kiln_lens l;
    kiln_project_lens(&l, a->view, a->profile, a->antialiased);
    const unsigned blocks = kiln::blocks_for(a->n, BLOCK);
    LAUNCH(find_visible<INRIA>, blocks, BLOCK, 0, *a, l, w.visible);
    CUDA_RUN(list_visible(a, w.cub, &w.cub_bytes, w, x->stream));
    LAUNCH(make_splats<INRIA>, blocks, BLOCK, 0, *a, l, w.rows);
    return KILN_OK;
}

} // namespace

extern "C" kiln_status kiln_project_cuda(const kiln_exec *x, const kiln_project_args *a, void *work, size_t *work_bytes,
                                         kiln_error *err)
{
    const kiln::entry entry(x, "project");
    CUDA_ENTER(entry.guard);
    KILN_TRY(kiln_project_check(a, err));
    workspace w;
    CUDA_TRY(lay_out(&w, a, work, x->stream));
    if (!work) {
        *work_bytes = w.bytes;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("project", w.bytes, *work_bytes, err));
    CUDA_RUN(cudaMemsetAsync(a->n_visible, 0, sizeof *a->n_visible, x->stream));
    if (a->box_pairs) CUDA_RUN(cudaMemsetAsync(a->box_pairs, 0, sizeof *a->box_pairs, x->stream));
    if (a->n == 0) return KILN_OK;
    return a->profile == KILN_PROFILE_INRIA ? run<true>(x, a, w, err) : run<false>(x, a, w, err);
}
