/* palette_suite -- the palette of a scene's harmonics, and what a search through cells loses:
 * beside it, ten of Lloyd's passes in which every row is compared with every entry, from entries
 * that are rows. Not as fast as it could be, but plain. */
#include "tests/bench/suites.cuh"

#include "kernels/cuda.cuh"
#include "kernels/palette/palette_math.h"
#include "tests/bench/inputs.cuh"
#include "tests/bench/real_scene.h"

#include <math.h>
#include <stdio.h>

namespace bench
{

namespace
{

constexpr unsigned BLOCK = 256, TILE = 32, PLAIN_PASSES = 10;
constexpr uint32_t D = 3 * SH_REST, PAIRS = (D + 1) / 2;
constexpr double MAY_LOSE_DB = 0.2;

__global__ void find_largest(uint64_t n, const float *v, unsigned *bits)
{
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count())
        atomicMax(bits, __float_as_uint(fabsf(v[i])));
}

/* Rows of planes [D][n], each value a share of the largest; the same row again where more than n
 * are asked for. */
__global__ void make_rows(uint64_t n, const float *shN, float largest, uint64_t n_rows,
                          int16_t *rows)
{
    for (uint64_t i = kiln::thread_index(); i < n_rows * D; i += kiln::thread_count())
        rows[i] =
            static_cast<int16_t>(rintf(shN[i % D * n + i / D % n] / largest * KILN_PALETTE_LIMIT));
}

__global__ void add_squares(uint64_t n, const int16_t *rows, uint64_t *sum)
{
    uint64_t own = 0;
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count())
        own += static_cast<uint64_t>(rows[i] * rows[i]);
    kiln::add64(sum, own);
}

__global__ void add_distances(uint64_t n, const uint32_t *distances, uint64_t *sum)
{
    uint64_t own = 0;
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count()) own += distances[i];
    kiln::add64(sum, own);
}

__global__ void first_entries(uint64_t n, uint32_t p, const int16_t *rows, int16_t *entries)
{
    for (uint64_t i = kiln::thread_index(); i < uint64_t(p) * D; i += kiln::thread_count())
        entries[i] = rows[i / D * n / p * D + i % D];
}

__device__ int32_t squares_of(uint32_t word)
{
    const int32_t first = static_cast<int16_t>(word & 0xffff),
                  second = static_cast<int16_t>(word >> 16);
    return first * first + second * second;
}

/* A row a thread, against all entries. */
__global__ void __launch_bounds__(BLOCK)
    search_all(uint64_t n, uint32_t p, const int16_t *rows, const int16_t *entries,
               uint16_t *labels, uint32_t *distances)
{
    __shared__ int words[TILE][PAIRS + 1];
    __shared__ int32_t norms[TILE];
    const uint64_t row = kiln::thread_index();
    int cuts[PAIRS];
    int32_t norm = 0, least = INT32_MAX;
    uint32_t best = 0;
    for (uint32_t k = 0; k < PAIRS; k++) {
        const uint32_t word = row < n ? kiln_palette_pair(rows + row * D, D, k) : 0;
        const int first = static_cast<int16_t>(word & 0xffff),
                  second = static_cast<int16_t>(word >> 16);
        cuts[k] = (first & 63) | (second & 63) << 8 | (first >> 6 & 255) << 16 |
                  static_cast<int>(unsigned(second >> 6) << 24);
        norm += squares_of(word);
    }
    for (uint32_t e0 = 0; e0 < p; e0 += TILE) {
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < TILE * PAIRS; i += BLOCK)
            if (e0 + i / PAIRS < p)
                words[i / PAIRS][i % PAIRS] = static_cast<int>(
                    kiln_palette_pair(entries + uint64_t(e0 + i / PAIRS) * D, D, i % PAIRS));
        __syncthreads();
        if (threadIdx.x < TILE) {
            int32_t own = 0;
            for (uint32_t k = 0; k < PAIRS; k++)
                own += squares_of(static_cast<uint32_t>(words[threadIdx.x][k]));
            norms[threadIdx.x] = own;
        }
        __syncthreads();
        for (uint32_t e = 0; e < TILE && e0 + e < p; e++) {
            int low = 0, high = 0;
#pragma unroll
            for (uint32_t k = 0; k < PAIRS; k++) {
                low = __dp2a_lo(words[e][k], cuts[k], low);
                high = __dp2a_hi(words[e][k], cuts[k], high);
            }
            const int32_t score = norms[e] - 2 * (low + 64 * high);
            if (score < least) {
                least = score;
                best = e0 + e;
            }
        }
    }
    if (row >= n) return;
    labels[row] = static_cast<uint16_t>(best);
    distances[row] = static_cast<uint32_t>(least + norm);
}

__global__ void add_rows(uint64_t n, const int16_t *rows, const uint16_t *labels, int32_t *sums,
                         uint32_t *counts)
{
    for (uint64_t i = kiln::thread_index(); i < n * D; i += kiln::thread_count()) {
        atomicAdd(&sums[labels[i / D] * D + i % D], rows[i]);
        if (i % D == 0) atomicAdd(&counts[labels[i / D]], 1u);
    }
}

__global__ void move_entries(uint32_t p, const int32_t *sums, const uint32_t *counts,
                             int16_t *entries)
{
    for (uint64_t i = kiln::thread_index(); i < uint64_t(p) * D; i += kiln::thread_count())
        if (counts[i / D] > 0) entries[i] = kiln_palette_mean(sums[i], counts[i / D]);
}

unsigned blocks_of(uint64_t n) { return static_cast<unsigned>((n + BLOCK - 1) / BLOCK); }
constexpr unsigned BLOCKS = 132 * 16;

uint64_t sum_of(const array<uint32_t> &distances)
{
    array<uint64_t> sum(1);
    sum.fill(0);
    add_distances<<<BLOCKS, BLOCK>>>(distances.size(), distances.get(), sum.get());
    BENCH_CUDA(cudaGetLastError());
    return sum.to_host()[0];
}

void search_plainly(const array<int16_t> &rows, const array<int16_t> &entries,
                    array<uint16_t> *labels, array<uint32_t> *distances)
{
    const uint64_t n = rows.size() / D;
    search_all<<<blocks_of(n), BLOCK>>>(n, static_cast<uint32_t>(entries.size() / D), rows.get(),
                                        entries.get(), labels->get(), distances->get());
    BENCH_CUDA(cudaGetLastError());
}

/* The error after ten passes and a last search. */
uint64_t plain_error(const array<int16_t> &rows, uint32_t p)
{
    const uint64_t n = rows.size() / D;
    array<int16_t> entries(uint64_t(p) * D);
    array<int32_t> sums(uint64_t(p) * D);
    array<uint32_t> counts(p), distances(n);
    array<uint16_t> labels(n);
    first_entries<<<BLOCKS, BLOCK>>>(n, p, rows.get(), entries.get());
    for (unsigned pass = 0; pass < PLAIN_PASSES; pass++) {
        search_plainly(rows, entries, &labels, &distances);
        sums.fill(0);
        counts.fill(0);
        add_rows<<<BLOCKS, BLOCK>>>(n, rows.get(), labels.get(), sums.get(), counts.get());
        move_entries<<<BLOCKS, BLOCK>>>(p, sums.get(), counts.get(), entries.get());
        BENCH_CUDA(cudaGetLastError());
    }
    search_plainly(rows, entries, &labels, &distances);
    return sum_of(distances);
}

void compare(runner *b, const std::string &what, const array<int16_t> &rows,
             const array<int16_t> &entries, uint64_t error)
{
    const uint64_t n = rows.size() / D;
    const uint32_t p = static_cast<uint32_t>(entries.size() / D);
    array<uint64_t> energy(1);
    array<uint16_t> labels(n);
    array<uint32_t> distances(n);
    energy.fill(0);
    add_squares<<<BLOCKS, BLOCK>>>(n * D, rows.get(), energy.get());
    BENCH_CUDA(cudaGetLastError());
    search_plainly(rows, entries, &labels, &distances);
    const double all = static_cast<double>(energy.to_host()[0]),
                 ours = 10 * log10(all / static_cast<double>(error)),
                 searched = 10 * log10(all / static_cast<double>(sum_of(distances))),
                 plain = 10 * log10(all / static_cast<double>(plain_error(rows, p)));
    printf("%s: %.3f dB; with the nearest of all entries %.3f dB; ten plain passes %.3f dB: %+.3f "
           "dB\n",
           what.c_str(), ours, searched, plain, ours - plain);
    b->table()->add(finding{what, "palettes more than 0.2 dB below ten plain passes", 1,
                            ours < plain - MAY_LOSE_DB ? 1u : 0u});
}

/* The three operations on n rows of a scene, at most 2^20 of them for training. */
void bench_palette(runner *b, const std::string &name, const scene &s, uint64_t n, uint32_t p,
                   bool compares)
{
    const uint64_t n_train = n < KILN_PALETTE_ROWS_MAX ? n : KILN_PALETTE_ROWS_MAX;
    array<unsigned> largest(1);
    array<int16_t> rows(n * D), entries(uint64_t(p) * D);
    array<uint64_t> n_entries(1);
    array<uint32_t> index(kiln_palette_index_words(p, D)), distances(n);
    array<uint16_t> labels(n);
    largest.fill(0);
    find_largest<<<BLOCKS, BLOCK>>>(s.n * D, s.shN.get(), largest.get());
    const unsigned bits = largest.to_host()[0];
    float most;
    memcpy(&most, &bits, sizeof most);
    make_rows<<<BLOCKS, BLOCK>>>(s.n, s.shN.get(), most, n, rows.get());
    BENCH_CUDA(cudaGetLastError());
    BENCH_CUDA(cudaDeviceSynchronize());

    kiln_palette_train_args t = {};
    t.n = n_train;
    t.seed = 1;
    t.d = D;
    t.p = p;
    t.rows = rows.get();
    t.centroids = entries.get();
    t.n_entries = n_entries.get();
    const kiln_palette_index_args i = {D, p, entries.get(), index.get()};
    kiln_palette_assign_args a = {};
    a.n = n;
    a.d = D;
    a.p = p;
    a.rows = rows.get();
    a.centroids = entries.get();
    a.index = index.get();
    a.labels = labels.get();
    a.distances = distances.get();
    cost train_cost = {}, index_cost = {}, assign_cost = {};
    train_cost.bytes = 2.0 * D * static_cast<double>(n_train);
    index_cost.bytes = 2.0 * D * p;
    assign_cost.bytes = (2.0 * D + 6) * static_cast<double>(n);
    row r = b->measure({"palette_train " + name, n_train, KILN_OP_palette_train, &t, train_cost});
    r.memory = b->prepare(KILN_OP_palette_train, &t);
    b->table()->add(r);
    b->operation({"palette_index " + name, p, KILN_OP_palette_index, &i, index_cost});
    b->operation({"palette_assign " + name, n, KILN_OP_palette_assign, &a, assign_cost});
    if (compares) compare(b, "palette " + name, rows, entries, sum_of(distances));
}

uint32_t entries_for(uint64_t n)
{
    uint32_t p = 1;
    /* 16 rows or more an entry */
    while (p < KILN_PALETTE_ENTRIES_MAX && 32 * uint64_t(p) <= n) p *= 2;
    return p;
}

} // namespace

void palette_suite(runner *b, const char *shared)
{
    if (!b->wants("palette")) return;
    b->table()->section("palette");
    for (unsigned i = 0; shared && b->wants_scene("real") && i < bench_real_scenes(); i++) {
        std::string name;
        kiln_view view;
        const std::unique_ptr<scene> s = real_scene(shared, i, &name, &view);
        if (s) bench_palette(b, name, *s, s->n, entries_for(s->n), true);
    }
    for (const uint64_t millions : {1, 6}) {
        const uint64_t n = millions * 1000000;
        if (!b->wants_scene(millions == 1 ? "1m" : "6m")) continue;
        scene s(n);
        make_scene(&s, 0);
        bench_palette(b, size_name(n), s, n, KILN_PALETTE_ENTRIES_MAX, millions == 1);
    }
}

} // namespace bench
