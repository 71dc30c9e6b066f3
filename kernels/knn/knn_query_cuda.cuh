/* knn_query_cuda -- a query of one lane with the best distances that it has found, and distances of
 * boxes and of a leaf's points.
 */
#ifndef KILN_KERNELS_KNN_QUERY_CUDA_CUH
#define KILN_KERNELS_KNN_QUERY_CUDA_CUH

#include "kernels/knn/knn_tree_cuda.cuh"

#include <float.h>

namespace
{

struct box {
    span x, y, z;
};

__device__ inline box box_at(const node &n, unsigned i)
{
    return {{n.lo[0][i], n.hi[0][i]}, {n.lo[1][i], n.hi[1][i]}, {n.lo[2][i], n.hi[2][i]}};
}

/* kiln_knn_gap in three instructions. At most one of the two differences is above 0, unless a box
 * is inside out. Floats above 0 compare like their bits as integers, and those below 0 are negative
 * integers. An empty box is at distance infinity. */
__device__ inline float gap(span a, span b)
{
    return __int_as_float(
        __vimax_s32_relu(__float_as_int(a.lo - b.hi), __float_as_int(b.lo - a.hi)));
}

/* Returns a lower bound of the squared distance of any two points in the boxes (knn_math.h). */
__device__ inline float distance2(const box &a, const box &b)
{
    return kiln_knn_distance2(gap(a.x, b.x), gap(a.y, b.y), gap(a.z, b.z));
}

__device__ inline box box_of(float x, float y, float z) { return {{x, x}, {y, y}, {z, z}}; }

/* The query of one lane and the best distances found so far. K is at least k; if it is more, the
 * first K - k values are -1 and never change. */
template <int K> struct query {
    float x, y, z;
    float best[K]; /* ascending */

    __device__ query(float x_, float y_, float z_, bool wanted, uint32_t k) : x(x_), y(y_), z(z_)
    {
#pragma unroll
        for (int i = 0; i < K; i++) /* 0: a lane without a query; no box is nearer */
            best[i] = !wanted ? 0.0f : i + k < K ? -1.0f : FLT_MAX;
    }
    __device__ float bound() const { return best[K - 1]; }
    __device__ float distance2(float4 p) const
    {
        return kiln_knn_distance2(p.x - x, p.y - y, p.z - z);
    }
    __device__ void keep(float d)
    {
        if (K > 4 && !(d < bound())) return;
        d = fminf(d, bound());
#pragma unroll
        for (int i = K - 1; i > 0; i--) best[i] = fmaxf(best[i - 1], fminf(best[i], d));
        best[0] = fminf(best[0], d);
    }
    /* Keeps both. With three-way minima, two values at a time take fewer steps than one after the
     * other. */
    __device__ void keep(float c, float d)
    {
        if constexpr (K == 3) {
            const int lo = min(__float_as_int(c), __float_as_int(d)),
                      hi = max(__float_as_int(c), __float_as_int(d));
            const int b0 = __float_as_int(best[0]), b1 = __float_as_int(best[1]),
                      b2 = __float_as_int(best[2]);
            best[0] = __int_as_float(min(b0, lo));
            best[1] = __int_as_float(__vimin3_s32(b1, hi, max(b0, lo)));
            best[2] = __int_as_float(__vimin3_s32(b2, max(b1, lo), max(b0, hi)));
        } else {
            keep(c);
            keep(d);
        }
    }
    /* Reads the k values from a previous search. Value i is `stride` floats behind value i - 1. */
    __device__ void load(const float *from, uint64_t stride, uint32_t k)
    {
#pragma unroll
        for (int i = 0; i < K; i++)
            if (i + k >= K) best[i] = from[(i + k - K) * stride];
    }
    __device__ void store(float *to, uint64_t stride, uint32_t k) const
    {
#pragma unroll
        for (int i = 0; i < K; i++)
            if (i + k >= K) to[(i + k - K) * stride] = best[i];
    }
    __device__ float mean(uint32_t k) const
    {
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < K; i++)
            if (i + k >= K) sum += best[i];
        return sum / static_cast<float>(k);
    }
};

__device__ inline float warp_max(float v)
{
    for (unsigned step = WARP / 2; step > 0; step /= 2)
        v = fmaxf(v, __shfl_xor_sync(ALL_LANES, v, step));
    return v;
}

/* Returns the largest value of the warp, for values that are not negative or -1. Compares bits as
 * integers. */
__device__ inline float warp_max_bound(float v)
{
#if __CUDA_ARCH__ >= 800
    return __int_as_float(__reduce_max_sync(ALL_LANES, __float_as_int(v)));
#else
    return warp_max(v);
#endif
}

/* The distances of a leaf's points from (x, y, z). */
struct leaf_distances {
    float d[LEAF];

    __device__ leaf_distances(const leaf &l, float x, float y, float z)
    {
        float4 part[3][LEAF / 4];
#pragma unroll
        for (int a = 0; a < 3; a++)
#pragma unroll
            for (int i = 0; i < LEAF / 4; i++)
                part[a][i] = reinterpret_cast<const float4 *>(l.at[a])[i];
#pragma unroll
        for (int i = 0; i < LEAF / 4; i++) {
            const float4 px = part[0][i], py = part[1][i], pz = part[2][i];
            d[4 * i] = kiln_knn_distance2(px.x - x, py.x - y, pz.x - z);
            d[4 * i + 1] = kiln_knn_distance2(px.y - x, py.y - y, pz.y - z);
            d[4 * i + 2] = kiln_knn_distance2(px.z - x, py.z - y, pz.z - z);
            d[4 * i + 3] = kiln_knn_distance2(px.w - x, py.w - y, pz.w - z);
        }
    }
};

} // namespace

#endif
