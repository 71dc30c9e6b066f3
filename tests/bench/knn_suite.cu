/* knn_suite -- the three nearest of uniform and clustered points, and of what breaks a grid over
 * the data's box. */
#include "tests/bench/suites.cuh"

#include "kernels/cuda.cuh"
#include "tests/bench/exact.cuh"
#include "tests/bench/inputs.cuh"

#include <float.h>
#include <stdio.h>

namespace bench
{

namespace
{

constexpr unsigned BLOCK = 256;
constexpr uint64_t MILLION = 1000000;

uint64_t sampled(const runner &b) { return b.quick() ? 1024 : 4096; }

/* A point's coordinates are read and its result written; any exact way puts points near each other
 * first. */
cost knn_cost(uint64_t n)
{
    cost c;
    c.bytes = 16.0 * static_cast<double>(n);
    c.sorted = n;
    return c;
}

void bench_knn(runner *b, const std::string &what, uint64_t n, bool clustered, float moved)
{
    array<float> means(3 * n), spacing2(n);
    kiln_knn_args a = {};
    make_points(&means, n, clustered, moved);
    a.n = n;
    a.k = 3;
    a.means = means.get();
    a.spacing2 = spacing2.get();
    row r = b->measure({what, n, KILN_OP_knn, &a, knn_cost(n)});
    r.memory = b->prepare(KILN_OP_knn, &a);
    b->table()->add(r);
    b->table()->add(check_knn(what, means.get(), n, spacing2.get(), sampled(*b)));
}

__global__ void gather(uint64_t n, const uint32_t *order, const float *from, float *to)
{
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count())
        for (uint64_t c = 0; c < 3; c++) to[c * n + i] = from[c * n + order[i]];
}

kiln_spatial_order_args order_of(uint64_t n, const float *means, uint32_t *order, uint64_t *codes)
{
    kiln_spatial_order_args a = {};
    a.n = n;
    a.means = means;
    for (double &c : a.centre) c = 0.5;
    a.half = 0.5;
    a.order = order;
    a.codes = codes;
    return a;
}

/* Two sets of a million, uniform and clustered: the one asks, in spatial order, the other is
 * searched. */
void bench_join(runner *b)
{
    const uint64_t n = MILLION;
    array<float> candidates(3 * n), points(3 * n), queries(3 * n), best(3 * n);
    array<uint32_t> order(n);
    array<uint64_t> codes(n);
    make_points(&candidates, n, true, 0.0f);
    make_points(&points, n, false, 0.0f);
    const kiln_spatial_order_args o = order_of(n, points.get(), order.get(), codes.get());
    b->prepare(KILN_OP_spatial_order, &o);
    b->start(KILN_OP_spatial_order, &o);
    b->wait();
    gather<<<kiln::blocks_for(n, BLOCK), BLOCK>>>(n, order.get(), points.get(), queries.get());
    BENCH_CUDA(cudaGetLastError());
    const std::vector<float> none(3 * n, FLT_MAX);
    best.from_host(none.data());
    kiln_knn_join_args a = {};
    a.n = a.n_queries = n;
    a.k = 3;
    a.means = candidates.get();
    a.queries = queries.get();
    a.best = best.get();
    cost c = knn_cost(n);
    c.bytes += 36.0 * static_cast<double>(n); /* queries; their best, read and written */
    row r = b->measure({"knn_join 1M", n, KILN_OP_knn_join, &a, c});
    r.memory = b->prepare(KILN_OP_knn_join, &a);
    b->table()->add(r);
    b->table()->add(check_knn_join("knn_join 1M", a, sampled(*b)));
}

void bench_order(runner *b)
{
    for (const uint64_t n : {MILLION, 10 * MILLION}) {
        array<float> means(3 * n);
        array<uint32_t> order(n);
        array<uint64_t> codes(n);
        cost c = {};
        make_points(&means, n, false, 0.0f);
        const kiln_spatial_order_args a = order_of(n, means.get(), order.get(), codes.get());
        c.bytes = 24.0 * static_cast<double>(n);
        c.sorted = n;
        b->operation({"spatial_order " + size_name(n), n, KILN_OP_spatial_order, &a, c});
        if (b->quick()) break;
    }
}

/* Points, results, and work of at most 29 bytes a point; a sorted order to compare with in ceilings
 * takes less. */
bool device_fits(uint64_t n)
{
    size_t left = 0, all = 0;
    BENCH_CUDA(cudaMemGetInfo(&left, &all));
    if (left > 48 * n) return true;
    printf("no memory for %s points\n", size_name(n).c_str());
    return false;
}

} // namespace

void knn_suite(runner *b)
{
    std::vector<uint64_t> sizes = {10000, 100000, MILLION};
    if (!b->quick()) sizes.push_back(10 * MILLION);
    if (b->wants_scene("100m") && device_fits(100 * MILLION)) sizes.push_back(100 * MILLION);
    if (b->wants("knn")) {
        b->table()->section("knn");
        for (const bool clustered : {false, true})
            for (const uint64_t n : sizes)
                bench_knn(
                    b, std::string("knn ") + (clustered ? "clustered " : "uniform ") + size_name(n),
                    n, clustered, 0.0f);
        bench_knn(b, "knn moved 1M", MILLION, false, 1000.0f);
    }
    if (b->wants("knn_join")) bench_join(b);
    if (b->wants("spatial_order")) bench_order(b);
}

} // namespace bench
