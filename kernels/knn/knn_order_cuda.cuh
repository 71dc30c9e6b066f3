/* knn_order_cuda -- the order in which knn's CUDA sibling lays its points down: along a Hilbert
 * curve over a warped space.
 *
 * Any order gives the right result; a good one makes it fast, and must not be spoilt by one
 * outlier, an offset, clusters far apart or many equal points. Each axis is warped by a map from a
 * sorted sample of its values, a blend of
 *   127 parts  where a point is in a cube around the middle of the points, whose side is the
 *              largest of the three spreads (from rank m / 16 to rank 15 m / 16 of the sample), its
 *              face for those outside: keeps leaves of floors and walls as flat as these are
 *   1 part     its rank in the sample, in between in proportion: divides whatever the cube cannot,
 *              however small it is
 */
#ifndef KILN_KERNELS_KNN_ORDER_CUDA_CUH
#define KILN_KERNELS_KNN_ORDER_CUDA_CUH

#include "kernels/cuda.cuh"
#include "kernels/knn/knn_sort_cuda.cuh"
#include "kernels/knn/knn_tree_cuda.cuh"
#include "kernels/ranks/ranks.h"
#include "kernels/spatial_order/spatial_order_math.h"

#include <math.h>
#include <stdint.h>

namespace
{

enum { SAMPLE_BLOCK = 1024, SAMPLES = 2 * SAMPLE_BLOCK, CODE_BLOCK = 512 };
/* as many as fit 132 multiprocessors at once: each loads the map first */
enum { CODE_BLOCKS = 132 * 4 };
enum { AXIS_BITS = 16, CODE_BITS = 3 * AXIS_BITS };
static_assert(CODE_BITS == MOST_BITS, "the sort's most digits are those of a code");
enum { SPREAD = 16, CELLS = 512 };
/* side of the cube over the spread: 1.14 for points spread evenly */
constexpr float CUBE_MARGIN = 1.25f;
constexpr float RANK_SHARE = 1.0f / 128;

/* Sorted; of fewer points than SAMPLES each is one, and the rest is infinite. */
struct samples {
    float at[3][SAMPLES];
};

inline __host__ __device__ uint32_t sample_count(uint64_t n)
{
    return n < SAMPLES ? static_cast<uint32_t>(n) : SAMPLES;
}

/* Where sample s is taken: somewhere in its share of the rows, so that no period of the input is
 * met. */
__device__ inline uint64_t sample_row(uint64_t n, uint32_t s)
{
    if (n <= SAMPLES) return s;
    const uint32_t somewhere = (s * 2654435761u) >> 16; /* Knuth's multiplicative hash */
    return (((uint64_t(s) << 16 | somewhere) * n) >> 16) / SAMPLES;
}

__device__ inline void clear(void *words, uint64_t count)
{
    for (uint64_t i = kiln::thread_index(); i < count; i += kiln::thread_count())
        static_cast<uint32_t *>(words)[i] = 0;
}

/* Keeps the smaller or the larger of two. */
__device__ inline void exchange(uint32_t *key, uint32_t other, bool smaller)
{
    *key = smaller ? min(*key, other) : max(*key, other);
}

/* Sorts the block's keys, two neighbours a thread: bitonic, in registers if both keys of a
 * comparison are in one warp. Otherwise keys go through one half of `capacity` and then the other,
 * so that a step waits once. */
__device__ inline void sort_block(uint32_t keys[2], uint2 capacity[2][SAMPLE_BLOCK])
{
    const unsigned t = threadIdx.x;
    unsigned half = 0;
    for (unsigned size = 1; size <= SAMPLE_BLOCK; size *= 2) { /* threads in a sorted run */
        const bool ascending = !(t & size);
        for (unsigned step = size / 2; step > 0; step /= 2) {
            uint2 other;
            if (step < WARP) {
                other = make_uint2(__shfl_xor_sync(ALL_LANES, keys[0], step),
                                   __shfl_xor_sync(ALL_LANES, keys[1], step));
            } else {
                capacity[half][t] = make_uint2(keys[0], keys[1]);
                __syncthreads();
                other = capacity[half][t ^ step];
                half = 1 - half;
            }
            const bool smaller = ascending == !(t & step);
            exchange(&keys[0], other.x, smaller);
            exchange(&keys[1], other.y, smaller);
        }
        const uint32_t first = keys[0];
        exchange(&keys[0], keys[1], ascending);
        exchange(&keys[1], first, !ascending);
    }
}

/* A block an axis. Clears the counts of digits, too. */
__global__ void __launch_bounds__(SAMPLE_BLOCK)
    sort_samples(uint64_t n, const float *means, samples *out, digit_counts *counts)
{
    __shared__ uint2 capacity[2][SAMPLE_BLOCK];
    const unsigned axis = blockIdx.x;
    const uint32_t m = sample_count(n);
    uint32_t keys[2];
    kiln::launch_before_is_done();
    kiln::let_next_launch_begin();
    clear(counts, sizeof *counts / sizeof(uint32_t));
    for (unsigned i = 0; i < 2; i++) {
        const uint32_t s = 2 * threadIdx.x + i;
        const float v = s < m ? means[axis * n + sample_row(n, s)] : INFINITY;
        keys[i] = kiln_rank_key(v == 0.0f ? 0.0f : v); /* -0 and +0 are one place */
    }
    sort_block(keys, capacity);
    for (unsigned i = 0; i < 2; i++) out->at[axis][2 * threadIdx.x + i] = kiln_rank_value(keys[i]);
}

/* One axis of the cube. */
struct cube_axis {
    float from, per_unit;
    /* From 0 to 1. Where the side is 0 or its inverse overflows it is 0 or 1. */
    __device__ float place(float v) const
    {
        return fminf(fmaxf((v - from) * per_unit, 0.0f), 1.0f); /* NaN: 0 */
    }
    __device__ static uint32_t cell(float place)
    {
        return min(static_cast<uint32_t>(place * CELLS), CELLS - 1u);
    }
};

/* The Hilbert curve two levels at a step: state * 64 + (x | y << 2 | z << 4), two bits of each
 * coordinate, -> the next state * 64 above 6 bits of code. */
enum { CURVE_STEPS = KILN_HILBERT_STATES * 64 };

__device__ inline uint16_t curve_step(unsigned i)
{
    const unsigned x = i & 3, y = i >> 2 & 3, z = i >> 4 & 3;
    const uint32_t first = kiln_hilbert_digit(i / 64, x >> 1 | (y >> 1) << 1 | (z >> 1) << 2);
    const uint32_t second = kiln_hilbert_digit(first >> 3, (x & 1) | (y & 1) << 1 | (z & 1) << 2);
    return static_cast<uint16_t>((second >> 3) << 12 | (first & 7) << 3 | (second & 7));
}

/* What a block needs to warp points. */
struct warp_map {
    samples sorted;
    cube_axis cube[3];
    /* the first sample in a cell or behind it; above 16 bits that of the next cell */
    uint32_t first[3][CELLS];
    uint16_t steps[CURVE_STEPS];
};

__device__ inline void find_cube(const samples &s, uint32_t m, cube_axis cube[3])
{
    float side = 0.0f, middle[3];
    for (int a = 0; a < 3; a++) {
        const float lo = s.at[a][m / SPREAD], hi = s.at[a][m - 1 - m / SPREAD];
        middle[a] = 0.5f * lo + 0.5f * hi;
        side = fmaxf(side, CUBE_MARGIN * (hi - lo));
    }
    for (int a = 0; a < 3; a++) cube[a] = {middle[a] - 0.5f * side, 1.0f / side};
}

__device__ inline uint32_t first_in_cell(const float *sorted, uint32_t m, const cube_axis &cube,
                                         uint32_t cell)
{
    if (cell == CELLS) return m;
    uint32_t lo = 0, hi = m;
    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;
        if (cube.cell(cube.place(sorted[mid])) < cell)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* All but the steps, by the whole block. */
__device__ inline void load_map(const samples *sorted, uint32_t m, warp_map *w)
{
    for (unsigned i = threadIdx.x; i < 3 * SAMPLES; i += blockDim.x)
        w->sorted.at[i / SAMPLES][i % SAMPLES] = sorted->at[i / SAMPLES][i % SAMPLES];
    __syncthreads();
    if (threadIdx.x == 0) find_cube(w->sorted, m, w->cube);
    __syncthreads();
    for (unsigned i = threadIdx.x; i < 3 * CELLS; i += blockDim.x) {
        const unsigned a = i / CELLS, cell = i % CELLS;
        const float *const of = w->sorted.at[a];
        w->first[a][cell] = first_in_cell(of, m, w->cube[a], cell) |
                            first_in_cell(of, m, w->cube[a], cell + 1) << 16;
    }
    __syncthreads();
}

/* The rank of v among the samples, in between in proportion. near: the samples in v's cell, as in
 * warp_map. */
__device__ inline float rank_of(float v, uint32_t m, const float *sorted, uint32_t near)
{
    uint32_t k = near & 0xffffu, end = near >> 16;
    while (k < end) {
        const uint32_t mid = (k + end) / 2;
        if (sorted[mid] < v)
            k = mid + 1;
        else
            end = mid;
    }
    const float below = sorted[k > 0 ? k - 1 : 0], above = sorted[k < m ? k : m - 1];
    /* NaN: 0 */
    const float between = fminf(fmaxf(__fdividef(v - below, above - below), 0.0f), 1.0f);
    return static_cast<float>(k) + between;
}

/* The warped coordinate: monotonic in v but for rounding. Few samples in a cell of the cube need no
 * search, since even all their ranks are no more than four steps of the result. Outside the cube
 * ranks are all there is. */
__device__ inline uint32_t warped(float v, uint32_t m, const float *sorted, const uint32_t *first,
                                  const cube_axis &cube)
{
    constexpr float full = 1u << AXIS_BITS;
    constexpr uint32_t few = 16;
    const float place = cube.place(v);
    const uint32_t cell = cube.cell(place), near = first[cell],
                   in_cell = (near >> 16) - (near & 0xffffu);
    float rank;
    if (in_cell <= few && place > 0.0f && place < 1.0f)
        rank = static_cast<float>(near & 0xffffu) +
               static_cast<float>(in_cell) * (place * CELLS - static_cast<float>(cell));
    else
        rank = rank_of(v, m, sorted, near);
    const float at =
        (1.0f - RANK_SHARE) * place + RANK_SHARE * __fdividef(rank, static_cast<float>(m + 1));
    return min(static_cast<uint32_t>(at * full), (1u << AXIS_BITS) - 1);
}

__device__ inline uint64_t curve_code(const uint32_t at[3], const uint16_t *steps)
{
    uint64_t code = 0;
    uint32_t state = KILN_HILBERT_ROOT * 64;
#pragma unroll
    for (int bit = AXIS_BITS - 2; bit >= 0; bit -= 2) {
        const uint32_t step = steps[state | (at[0] >> bit & 3u) | (at[1] >> bit & 3u) << 2 |
                                    (at[2] >> bit & 3u) << 4];
        code = code << 6 | (step & 63u);
        state = step >> 6;
    }
    return code;
}
static_assert(AXIS_BITS % 2 == 0, "two levels a step");

/* The code of a point. */
__device__ inline uint64_t code_of(const float v[3], uint32_t m, const warp_map &w)
{
    uint32_t at[3];
#pragma unroll
    for (int a = 0; a < 3; a++) at[a] = warped(v[a], m, w.sorted.at[a], w.first[a], w.cube[a]);
    return curve_code(at, w.steps);
}

/* Are codes of 32 bits enough? A sample's distance to the next along the curve says how many points
 * are in a cell of such a code. Up to one in eight cells a code of more bits changes nothing. In
 * uniform space a sixth of 10^8 points' samples are nearer by chance. */
__global__ void __launch_bounds__(SAMPLE_BLOCK)
    choose_codes(const float *means, const samples *sorted, const __grid_constant__ row_sort s)
{
    __shared__ warp_map w;
    __shared__ uint2 capacity[2][SAMPLE_BLOCK];
    const uint64_t n = s.low.n, least = 8 * n / SAMPLES;
    const uint32_t m = sample_count(n);
    uint32_t keys[2];
    for (unsigned i = threadIdx.x; i < CURVE_STEPS; i += SAMPLE_BLOCK) w.steps[i] = curve_step(i);
    kiln::launch_before_is_done();
    load_map(sorted, m, &w);
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t row = sample_row(n, 2 * threadIdx.x + i);
        const float v[3] = {means[row], means[n + row], means[2 * n + row]};
        keys[i] = static_cast<uint32_t>(code_of(v, m, w) >> (CODE_BITS - SHORT_BITS));
    }
    sort_block(keys, capacity);
    const int near = __syncthreads_count(keys[1] - keys[0] < least);
    if (threadIdx.x == 0 && 3 * near <= SAMPLE_BLOCK) *s.is_short = 1;
}

/* From which row on points have places that the sort does not use, by the length of its codes. */
struct codes_first {
    uint64_t with_long, with_short;
};

/* The coordinates of each such point together, the codes, the counts of their digits, and what the
 * sort wants to be 0. */
__global__ void __launch_bounds__(CODE_BLOCK)
    make_codes(const samples *sorted, const __grid_constant__ row_sort s,
               const __grid_constant__ point_places points,
               const __grid_constant__ codes_first early)
{
    __shared__ warp_map w;
    __shared__ uint32_t counts[MOST_DIGITS][kiln::RADIX_DIGITS];
    const uint64_t n = s.low.n;
    const float *const means = points.means;
    const uint32_t m = sample_count(n);
    const unsigned bits = s.low.plan.bits + s.high.plan.bits, low = s.low.plan.passes,
                   digits = low + s.high.plan.passes;
    for (unsigned i = threadIdx.x; i < MOST_DIGITS * kiln::RADIX_DIGITS; i += CODE_BLOCK)
        (&counts[0][0])[i] = 0;
    for (unsigned i = threadIdx.x; i < CURVE_STEPS; i += CODE_BLOCK) w.steps[i] = curve_step(i);
    kiln::launch_before_is_done();
    clear(s.low.look_back[0], s.look_back_words[0]);
    clear(s.high.look_back[0], s.look_back_words[1]);
    load_map(sorted, m, &w);
    const bool is_short = *s.is_short;
    const uint64_t first = is_short ? early.with_short : early.with_long;
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count()) {
        const float v[3] = {means[i], means[n + i], means[2 * n + i]};
        if (i >= first) points.points[i - points.first] = {v[0], v[1], v[2]};
        const uint64_t code = code_of(v, m, w) >> (CODE_BITS - bits);
        if (is_short)
            reinterpret_cast<uint32_t *>(s.places[0])[i] =
                static_cast<uint32_t>(code >> s.low.plan.bits);
        else
            s.places[0][i] = code;
        for (unsigned digit = is_short ? low : 0; digit < digits; digit++)
            atomicAdd(
                &counts[digit][kiln::radix_digit(code, digit * kiln::RADIX_BITS, kiln::RADIX_BITS)],
                1u);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < digits * kiln::RADIX_DIGITS; i += CODE_BLOCK) {
        const unsigned digit = i / kiln::RADIX_DIGITS, which = i % kiln::RADIX_DIGITS;
        uint64_t *const to =
            digit < low ? s.counts->low.counts[digit] : s.counts->high.counts[digit - low];
        if (counts[digit][which]) kiln::add64(to + which, counts[digit][which]);
    }
}

/* The points whose places the sort has used. After the sort. */
__global__ void __launch_bounds__(CODE_BLOCK)
    make_late_points(const __grid_constant__ row_sort s,
                     const __grid_constant__ point_places points,
                     const __grid_constant__ codes_first early)
{
    const uint64_t n = s.low.n;
    kiln::launch_before_is_done();
    const uint64_t end = *s.is_short ? early.with_short : early.with_long;
    for (uint64_t i = points.first + kiln::thread_index(); i < end; i += kiln::thread_count())
        points.points[i - points.first] = {points.means[i], points.means[n + i],
                                           points.means[2 * n + i]};
}

} // namespace

#endif
