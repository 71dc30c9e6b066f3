/* exact_knn -- see exact.cuh: every candidate for every query. A block takes 256 queries and a
 * slice of the candidates, a second kernel puts the slices together. */
#include "tests/bench/exact.cuh"

#include "kernels/cuda.cuh"
#include "kernels/knn/knn_math.h"
#include "stages/generate/inputs.h"

#include <float.h>
#include <string.h>

namespace bench
{

namespace
{

constexpr unsigned BLOCK = 256;
constexpr uint64_t SLICES = 512;

struct three {
    float b0, b1, b2;
};

__device__ void insert(three *t, float d)
{
    t->b2 = fminf(t->b2, fmaxf(t->b1, d));
    t->b1 = fminf(t->b1, fmaxf(t->b0, d));
    t->b0 = fminf(t->b0, d);
}

struct search {
    const float *candidates, *points;
    const uint32_t *queries;
    uint64_t n, n_points, n_queries;
    bool same;
    three *found; /* [SLICES][n_queries] */
};

__global__ void search_slice(const search s)
{
    __shared__ float held[3][BLOCK];
    const uint64_t q = uint64_t(blockIdx.x) * BLOCK + threadIdx.x, slice = blockIdx.y;
    const uint64_t row = s.queries[q < s.n_queries ? q : 0], from = s.n * slice / SLICES,
                   end = s.n * (slice + 1) / SLICES;
    const float x = s.points[row], y = s.points[s.n_points + row],
                z = s.points[2 * s.n_points + row];
    three best = {FLT_MAX, FLT_MAX, FLT_MAX};
    for (uint64_t first = from; first < end; first += BLOCK) {
        const uint64_t mine = first + threadIdx.x;
        __syncthreads();
        for (unsigned c = 0; c < 3 && mine < end; c++)
            held[c][threadIdx.x] = s.candidates[c * s.n + mine];
        __syncthreads();
        for (unsigned i = 0; i < BLOCK && first + i < end; i++)
            if (!(s.same && first + i == row))
                insert(&best, kiln_knn_distance2(held[0][i] - x, held[1][i] - y, held[2][i] - z));
    }
    if (q < s.n_queries) s.found[slice * s.n_queries + q] = best;
}

__global__ void join_slices(const search s, float *best)
{
    const uint64_t q = kiln::thread_index();
    three all = {FLT_MAX, FLT_MAX, FLT_MAX};
    if (q >= s.n_queries) return;
    for (uint64_t slice = 0; slice < SLICES; slice++) {
        const three &part = s.found[slice * s.n_queries + q];
        insert(&all, part.b0);
        insert(&all, part.b1);
        insert(&all, part.b2);
    }
    best[q] = all.b0;
    best[s.n_queries + q] = all.b1;
    best[2 * s.n_queries + q] = all.b2;
}

bool same_bits(float a, float b) { return memcmp(&a, &b, sizeof a) == 0; }

} // namespace

nearest nearest_three(const float *candidates, uint64_t n, const float *points, uint64_t n_points,
                      bool same, uint64_t n_queries)
{
    nearest out;
    out.queries = {0, static_cast<uint32_t>(n_points - 1)};
    for (uint64_t i = 0; out.queries.size() < n_queries; i++)
        out.queries.push_back(static_cast<uint32_t>(kg_at(7, i) % n_points));
    array<uint32_t> queries(n_queries);
    array<three> found(SLICES * n_queries);
    array<float> best(3 * n_queries);
    queries.from_host(out.queries.data());
    const search s = {candidates, points, queries.get(), n, n_points, n_queries, same, found.get()};
    const unsigned blocks = static_cast<unsigned>((n_queries + BLOCK - 1) / BLOCK);
    search_slice<<<dim3(blocks, SLICES), BLOCK>>>(s);
    BENCH_CUDA(cudaGetLastError());
    join_slices<<<blocks, BLOCK>>>(s, best.get());
    BENCH_CUDA(cudaGetLastError());
    out.best = best.to_host();
    return out;
}

finding check_knn(const std::string &what, const float *means, uint64_t n, const float *spacing2,
                  uint64_t n_queries)
{
    const nearest want = nearest_three(means, n, means, n, true, n_queries);
    finding f = {what, "sampled queries differ from brute force", n_queries, 0};
    for (uint64_t q = 0; q < n_queries; q++) {
        const float mean =
            ((want.best[q] + want.best[n_queries + q]) + want.best[2 * n_queries + q]) / 3.0f;
        float have;
        BENCH_CUDA(
            cudaMemcpy(&have, spacing2 + want.queries[q], sizeof have, cudaMemcpyDeviceToHost));
        f.wrong += !same_bits(mean, have);
    }
    return f;
}

finding check_knn_join(const std::string &what, const kiln_knn_join_args &a, uint64_t n_queries)
{
    const nearest want = nearest_three(a.means, a.n, a.queries, a.n_queries, false, n_queries);
    finding f = {what, "sampled queries differ from brute force", n_queries, 0};
    for (uint64_t q = 0; q < n_queries; q++) {
        bool wrong = false;
        for (uint64_t k = 0; k < 3; k++) {
            float have;
            BENCH_CUDA(cudaMemcpy(&have, a.best + k * a.n_queries + want.queries[q], sizeof have,
                                  cudaMemcpyDeviceToHost));
            wrong = wrong || !same_bits(want.best[k * n_queries + q], have);
        }
        f.wrong += wrong;
    }
    return f;
}

} // namespace bench
