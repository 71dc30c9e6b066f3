/* project on CUDA, in one pass: a block takes 256 rows in order, projects them, tells those behind
 * it how many it keeps, colours these while those before it say the same, and writes them to their
 * place (place_cuda.cuh). Planes are read once, the parameters only of rows in front of the camera
 * and colour only of visible ones; splats go out by way of shared memory, so that a warp writes one
 * run of whole sectors. */
#include "kernels/project/project.h"

#include "kernels/cuda.cuh"
#include "kernels/math/half_math.h"
#include "kernels/project/place_cuda.cuh"
#include "kernels/project/project_math.h"
#include "kernels/project/sh_math.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace
{

namespace cg = cooperative_groups;

enum {
    BLOCK = 256,
    LANES = 32,
    WARPS = BLOCK / LANES,
    RESIDENT = 5,
    PIECES = 4,
    SECTOR_ROWS = 32 / sizeof(float)
};
/* ns before a block looks back: the blocks before it, which began with it, are then further on */
enum { PATIENCE = 300 };
static_assert(sizeof(kiln_splat2d) == PIECES * sizeof(uint4), "a splat is four pieces");

/* ---- one Gaussian ---------------------------------------------------------------------------- */
__device__ void load_mean(const kiln_project_args &a, uint64_t row, kiln_raw *g)
{
    for (int c = 0; c < 3; c++) g->mean[c] = __ldg(a.means + (c * a.n + row));
}

/* Asks for the means that the block most likely needs, into the L2 cache, while it waits for its
 * ticket: tickets are given nearly in the order of blockIdx. What a wrong guess asks for another
 * block reads. */
__device__ void ask_for_means(const kiln_project_args &a)
{
    const uint64_t row = uint64_t(blockIdx.x) * BLOCK + threadIdx.x;
    if (threadIdx.x % SECTOR_ROWS > 0 || row >= a.n) return;
    for (int c = 0; c < 3; c++)
        asm volatile(
            "prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(a.means + (c * a.n + row))));
}

__device__ void load_shape(const kiln_project_args &a, uint64_t row, kiln_raw *g)
{
    for (int c = 0; c < 3; c++) g->log_scale[c] = __ldg(a.log_scales + (c * a.n + row));
    for (int c = 0; c < 4; c++) g->quat[c] = __ldg(a.quats + (c * a.n + row));
    g->opacity_logit = __ldg(a.opacity_logits + row);
}

/* Of the profile's family: kiln_inria_outline, kiln_gsplat_outline. */
template <kiln_family F>
__device__ bool outline_of(const kiln_projection &l, const kiln_raw &g, kiln_splat3d *splat,
                           kiln_outline *o)
{
    kiln_project_splat3d(&l, &g, splat);
    switch (F) {
#define FAMILY(id)         \
    case KILN_FAMILY_##id: \
        return kiln_##id##_outline(&l, splat, o);
#include "kernels/profiles/profiles.def"
    default:
        return false;
    }
}

template <kiln_family F>
__device__ bool is_tame(const kiln_projection &l, const kiln_raw &g, const kiln_splat3d &splat,
                        const kiln_outline &o)
{
    switch (F) { /* kiln_inria_is_tame, kiln_gsplat_is_tame */
#define FAMILY(id)         \
    case KILN_FAMILY_##id: \
        return kiln_project_is_tame(&g, &splat) & kiln_##id##_is_tame(&l, &splat, &o);
#include "kernels/profiles/profiles.def"
    default:
        return false;
    }
}

/* Is the row visible, and how. First as if it were tame, which nearly all are; the others once
 * more. */
template <kiln_family F>
__device__ bool outline(const kiln_project_args &a, const kiln_projection &l, uint64_t row,
                        kiln_splat3d *splat, kiln_outline *o)
{
    kiln_raw g;
    if (row >= a.n) return false;
    load_mean(a, row, &g);
    if (!kiln_project_in_depth(&l, kiln_project_depth(&l, g.mean[0], g.mean[1], g.mean[2])))
        return false;
    load_shape(a, row, &g);
    kiln_projection how = l;
    if (l.mild) {
        how.tame = 1;
        const bool is_visible = outline_of<F>(how, g, splat, o);
        if (is_tame<F>(l, g, *splat, *o)) return is_visible;
    }
    how.tame = 0;
    return outline_of<F>(how, g, splat, o);
}

/* Where the coefficients behind the first come from, and as what. */
enum class harmonics { FLOATS, ROUNDED, HALVES };

/* The coefficients of one degree: a fused multiply-add each, in their order. */
template <int DEGREE, harmonics FROM>
__device__ void add_degree(const kiln_project_args &a, uint64_t row, const float *basis,
                           float sum[3])
{
    float v[2 * DEGREE + 1][3]; /* all loads on their way before the first is used */
#pragma unroll
    for (int m = 0; m < 2 * DEGREE + 1; m++) {
        const uint64_t coefficient = DEGREE * DEGREE + m - 1;
        for (int c = 0; c < 3; c++) v[m][c] = __ldg(a.shN + ((3 * coefficient + c) * a.n + row));
    }
#pragma unroll
    for (int m = 0; m < 2 * DEGREE + 1; m++)
        for (int c = 0; c < 3; c++)
            sum[c] = kiln_fmaf(
                basis[m], FROM == harmonics::ROUNDED ? kiln_half_round(v[m][c]) : v[m][c], sum[c]);
}

/* The same of a record of halves, which is there. */
template <int DEGREE>
__device__ void add_halves(const uint32_t *words, const float *basis, float sum[3])
{
    constexpr int FIRST = 3 * (DEGREE * DEGREE - 1);
#pragma unroll
    for (int i = 0; i < 3 * (2 * DEGREE + 1); i++)
        sum[i % 3] = kiln_fmaf(
            basis[i / 3], kiln_halves_value(words[(FIRST + i) / 2], (FIRST + i) % 2), sum[i % 3]);
}

/* All degrees up to this one, in the direction (x, y, z). */
template <int DEGREE>
__device__ void add_record(const kiln_project_args &a, uint64_t row, float x, float y, float z,
                           float sum[3])
{
    /* of four words (kiln_sh_words) */
    constexpr uint32_t PIECES_OF_ROW = (3 * ((DEGREE + 1) * (DEGREE + 1) - 1) + 7) / 8;
    uint32_t words[4 * PIECES_OF_ROW];
    float basis[9];
#pragma unroll
    for (uint32_t k = 0; k < PIECES_OF_ROW; k++) {
        const uint4 piece =
            __ldg(reinterpret_cast<const uint4 *>(a.sh_halves) + (row * PIECES_OF_ROW + k));
        memcpy(&words[4 * k], &piece, sizeof piece);
    }
    kiln_sh_basis1(x, y, z, basis);
    add_halves<1>(words, basis, sum);
    if constexpr (DEGREE > 1) {
        kiln_sh_basis2(x, y, z, basis);
        add_halves<2>(words, basis, sum);
    }
    if constexpr (DEGREE > 2) {
        kiln_sh_basis3(x, y, z, basis);
        add_halves<3>(words, basis, sum);
    }
    if constexpr (DEGREE > 3) {
        kiln_sh_basis4(x, y, z, basis);
        add_halves<4>(words, basis, sum);
    }
}

template <harmonics FROM>
__device__ void add_harmonics(const kiln_project_args &a, uint64_t row, uint32_t degree, float x,
                              float y, float z, float sum[3])
{
    float basis[9];
    kiln_sh_basis1(x, y, z, basis);
    add_degree<1, FROM>(a, row, basis, sum);
    if (degree > 1) {
        kiln_sh_basis2(x, y, z, basis);
        add_degree<2, FROM>(a, row, basis, sum);
    }
    if (degree > 2) {
        kiln_sh_basis3(x, y, z, basis);
        add_degree<3, FROM>(a, row, basis, sum);
    }
    if (degree > 3) {
        kiln_sh_basis4(x, y, z, basis);
        add_degree<4, FROM>(a, row, basis, sum);
    }
}

template <>
__device__ void add_harmonics<harmonics::HALVES>(const kiln_project_args &a, uint64_t row,
                                                 uint32_t degree, float x, float y, float z,
                                                 float sum[3])
{
    switch (degree) {
    case 1:
        return add_record<1>(a, row, x, y, z, sum);
    case 2:
        return add_record<2>(a, row, x, y, z, sum);
    case 3:
        return add_record<3>(a, row, x, y, z, sum);
    default:
        return add_record<4>(a, row, x, y, z, sum);
    }
}

__device__ float inverse_root(float x)
{
    return kiln_within(x, 0x1p-60f, 0x1p60f) ? kiln_inverse(kiln_root(x, 1), 1) : 1.0f / sqrtf(x);
}

template <harmonics FROM>
__device__ void colour(const kiln_project_args &a, const kiln_projection &l, uint64_t row,
                       const float mean[3], float rgb[3])
{
    const uint32_t degree =
        (FROM == harmonics::HALVES ? a.sh_halves != nullptr : a.shN != nullptr) ? a.sh_degree : 0;
    float sum[3];
    for (int c = 0; c < 3; c++) sum[c] = __ldg(a.sh0 + (c * a.n + row)) * KILN_SH_C0;
    if (degree > 0) {
        float x = mean[0] - l.centre[0], y = mean[1] - l.centre[1], z = mean[2] - l.centre[2];
        const float scale = inverse_root(kiln_dot3(x, y, z, x, y, z));
        x *= scale;
        y *= scale;
        z *= scale;
        add_harmonics<FROM>(a, row, degree, x, y, z, sum);
    }
    for (int c = 0; c < 3; c++) rgb[c] = kiln_sh_colour(sum[c]);
}

/* ---- out ------------------------------------------------------------------------------------- */
template <harmonics FROM>
__device__ kiln_splat2d splat_of(const kiln_project_args &a, const kiln_projection &l, uint64_t row,
                                 const kiln_splat3d &splat, const kiln_outline &o)
{
    kiln_splat2d s;
    s.x = o.x;
    s.y = o.y;
    s.conic[0] = o.a;
    s.conic[1] = o.b;
    s.conic[2] = o.c;
    s.opacity = o.opacity;
    s.power_min = o.power_min;
    s.depth = splat.cam[2];
    s.rgb[0] = s.rgb[1] = s.rgb[2] = 0.0f;
    s.row = static_cast<uint32_t>(row);
    s.tile_x0 = o.tile_x0;
    s.tile_y0 = o.tile_y0;
    s.tile_x1 = o.tile_x1;
    s.tile_y1 = o.tile_y1;
    if (a.sh0) colour<FROM>(a, l, row, splat.world, s.rgb);
    return s;
}

/* Where piece p of a warp's r-th splat is kept: turned, so that eight lanes with a piece each meet
 * all 32 banks. */
__device__ uint32_t stage_place(uint32_t r, uint32_t p)
{
    return PIECES * r + (p ^ (r >> 1 & (PIECES - 1)));
}

__device__ void put_splat(uint4 *stage, uint32_t r, const kiln_splat2d &s)
{
    uint4 pieces[PIECES];
    memcpy(pieces, &s, sizeof pieces);
    for (uint32_t p = 0; p < PIECES; p++) stage[stage_place(r, p)] = pieces[p];
}

/* The pieces that end with the depth and with the row. */
enum {
    DEPTH_PIECE = offsetof(kiln_splat2d, depth) / sizeof(uint4),
    ROW_PIECE = offsetof(kiln_splat2d, row) / sizeof(uint4)
};
static_assert(offsetof(kiln_splat2d, depth) % sizeof(uint4) == 12 &&
                  offsetof(kiln_splat2d, row) % sizeof(uint4) == 12,
              "ends");

/* A warp's n splats, to place `first` and those behind it. */
__device__ void write_splats(const kiln_project_args &a, const uint4 *stage, uint32_t n,
                             uint32_t first)
{
    for (uint32_t i = threadIdx.x % LANES; i < PIECES * n; i += LANES) {
        const uint32_t p = i % PIECES, to = first + i / PIECES;
        const uint4 piece = stage[stage_place(i / PIECES, p)];
        reinterpret_cast<uint4 *>(a.splats)[uint64_t(PIECES) * to + p] = piece;
        if (!a.depths) continue;
        if (p == DEPTH_PIECE) a.depths[to] = __uint_as_float(piece.w);
        if (p == ROW_PIECE) a.rows[to] = __ldg(&a.source_rows[piece.w]);
    }
}

__device__ void add_box_pairs(const kiln_project_args &a, uint64_t pairs)
{
    const auto warp = cg::tiled_partition<LANES>(cg::this_thread_block());
    pairs = cg::reduce(warp, pairs, cg::plus<uint64_t>());
    if (warp.thread_rank() == 0 && pairs > 0) kiln::add64(a.box_pairs, pairs);
}

/* ---- kernel ---------------------------------------------------------------------------------- */
struct workspace {
    kiln::places places;
    uint32_t *ticket;       /* behind them: one memset for both */
    uint64_t blocks, bytes; /* bytes: of places and ticket, nothing else is here */
};

struct block_memory {
    uint4 stage[WARPS][PIECES * LANES];
    uint32_t counts[WARPS], ticket, first;
    uint32_t told; /* by warps: their number times TOLD, plus the sum of their counts */
};
enum : uint32_t { TOLD = 1u << 16 };
static_assert(uint32_t(BLOCK) < TOLD, "a sum of counts is less");

/* The visible of the block's warps before this one. */
__device__ uint32_t count_before(const block_memory &m, uint32_t warp)
{
    uint32_t before = 0;
    for (uint32_t w = 0; w < WARPS; w++) before += w < warp ? m.counts[w] : 0;
    return before;
}

/* By one thread of a warp, which keeps so many rows. The last warp of the block tells the blocks
 * behind; none waits for another. */
__device__ void tell_count(const workspace &w, uint32_t block, uint32_t warp, uint32_t count,
                           block_memory *m)
{
    const uint32_t own = TOLD + count, all = atomicAdd(&m->told, own) + own;
    m->counts[warp] = count;
    if (all / TOLD == WARPS) kiln::place_say_count(w.places, block, all % TOLD);
}

/* By one whole warp: where the block's splats begin, for all of its threads to see behind a
 * barrier. */
__device__ void find_place(const workspace &w, uint32_t block, block_memory *m)
{
    __nanosleep(PATIENCE);
    const uint32_t first = kiln::place_look_back(w.places, block);
    if (threadIdx.x % LANES == 0) m->first = first;
}

/* By one thread: the block's splats end here. */
__device__ void tell_end(const kiln_project_args &a, const workspace &w, uint32_t block,
                         uint32_t end)
{
    kiln::place_say_sum(w.places, block, end);
    if (block == w.blocks - 1) *a.n_visible = end;
}

/* BOXES: a.box_pairs is there. Else nothing is computed for it, which the compiler does not see at
 * run time. */
template <kiln_family F, harmonics FROM, bool BOXES>
__global__ void __launch_bounds__(BLOCK, RESIDENT)
    project(kiln_project_args a, kiln_projection l, workspace w)
{
    __shared__ block_memory m;
    const uint32_t warp = threadIdx.x / LANES, lane = threadIdx.x % LANES;
    ask_for_means(a);
    if (threadIdx.x == 0) {
        m.ticket = atomicAdd(w.ticket, 1);
        m.told = 0;
    }
    __syncthreads();
    const uint32_t block = m.ticket;
    const uint64_t row = uint64_t(block) * BLOCK + threadIdx.x;
    kiln_splat3d splat;
    kiln_outline o;
    const bool is_visible = outline<F>(a, l, row, &splat, &o);
    const uint32_t visible = __ballot_sync(0xffffffffu, is_visible);
    if (lane == 0) tell_count(w, block, warp, __popc(visible), &m);
    if (is_visible)
        put_splat(m.stage[warp], __popc(visible & ((1u << lane) - 1)),
                  splat_of<FROM>(a, l, row, splat, o));
    if (warp == 0) find_place(w, block, &m);
    __syncthreads();
    const uint32_t first = m.first + count_before(m, warp), kept = __popc(visible);
    if (threadIdx.x == BLOCK - 1) tell_end(a, w, block, first + kept);
    write_splats(a, m.stage[warp], kept, first);
    if (BOXES)
        add_box_pairs(
            a, is_visible ? static_cast<uint64_t>(o.box_x) * static_cast<uint64_t>(o.box_y) : 0);
}

/* ---- launchers ------------------------------------------------------------------------------- */
void lay_out_projection(workspace *w, const kiln_project_args *a, void *work)
{
    kiln_carve c = {static_cast<char *>(work), 0};
    w->blocks = (a->n + BLOCK - 1) / BLOCK;
    w->places = kiln::take_places(&c, w->blocks);
    w->ticket = kiln::take<uint32_t>(&c, 1);
    w->bytes = c.used;
}

using project_kernel = void (*)(kiln_project_args, kiln_projection, workspace);

template <kiln_family F, bool BOXES> project_kernel kernel_with(const kiln_project_args *a)
{
    if (!a->half_sh) return project<F, harmonics::FLOATS, BOXES>;
    return a->sh_halves ? project<F, harmonics::HALVES, BOXES>
                        : project<F, harmonics::ROUNDED, BOXES>;
}

template <kiln_family F> project_kernel kernel_for(const kiln_project_args *a)
{
    return a->box_pairs ? kernel_with<F, true>(a) : kernel_with<F, false>(a);
}

template <kiln_family F>
kiln_status run_projection(const kiln_exec *x, const kiln_project_args *a, const workspace &w,
                           kiln_error *err)
{
    kiln_projection l;
    kiln_project_projection(&l, a->view, &a->cut, a->profile, a->antialiased);
    CUDA_RUN(cudaMemsetAsync(w.places.words, 0, w.bytes, x->stream));
    const project_kernel project_rows = kernel_for<F>(a);
    LAUNCH(project_rows, static_cast<unsigned>(w.blocks), BLOCK, 0, *a, l, w);
    return KILN_OK;
}

} // namespace

extern "C" kiln_status kiln_project_cuda(const kiln_exec *x, const kiln_project_args *a, void *work,
                                         size_t *work_bytes, kiln_error *err)
{
    const kiln::entry entry(x, "project");
    CUDA_ENTER(entry.guard);
    KILN_TRY(kiln_project_check(a, err));
    workspace w;
    lay_out_projection(&w, a, work);
    if (!work) {
        *work_bytes = w.bytes;
        return KILN_OK;
    }
    KILN_TRY(kiln::check_work("project", w.bytes, *work_bytes, err));
    if (a->box_pairs) CUDA_RUN(cudaMemsetAsync(a->box_pairs, 0, sizeof *a->box_pairs, x->stream));
    if (a->n == 0) {
        CUDA_RUN(cudaMemsetAsync(a->n_visible, 0, sizeof *a->n_visible, x->stream));
        return KILN_OK;
    }
    switch (kiln_profiles[a->profile].family) {
#define FAMILY(id)         \
    case KILN_FAMILY_##id: \
        return run_projection<KILN_FAMILY_##id>(x, a, w, err);
#include "kernels/profiles/profiles.def"
    default:
        return kiln_fail(err, KILN_E_BUG, "project: profile %d belongs to no family",
                         static_cast<int>(a->profile));
    }
}
