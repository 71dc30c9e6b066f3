/* palette_search -- nearest cells and entries on CUDA.
 *
 * A block takes ROWS rows: all threads score all cells for them, one cell a thread, into shared
 * memory; then a warp takes a row, finds the cells to look at and scores their entries, one a lane.
 * Words of cells and entries lie by pair ([pair][place]), so that lanes read side by side. A score
 * is the squared distance without the row's own norm, as on the CPU; the least (score, place) wins.
 *
 * Products: a row's value v is cut into v >> 6 and v & 63, a byte each, so that two dp2a do what a
 * pair needs: sums of high parts and of low parts, both exact.
 */
#ifndef KILN_KERNELS_PALETTE_SEARCH_CUDA_CUH
#define KILN_KERNELS_PALETTE_SEARCH_CUDA_CUH

#include "kernels/cuda.cuh"
#include "kernels/palette/palette_math.h"
#include "kernels/sort/sort.cuh"

namespace
{

enum {
    BLOCK = 256,
    ROWS = BLOCK / 32,
    NEVER = 1 << 30,
    PAIRS = KILN_PALETTE_PAIRS_MAX,
    CELLS = KILN_PALETTE_CELLS_MAX
};
constexpr unsigned ALL_LANES = 0xffffffffu;

/* What a search reads; all of it is device memory. */
struct search {
    uint32_t d, p;
    kiln_palette_places at;
    uint32_t *cell_words;  /* [pairs][n_cells] */
    int32_t *cell_norms;   /* [n_cells] */
    uint32_t *entry_words; /* [pairs][p], by place */
    int32_t *entry_norms;  /* [p] */
    uint32_t *starts;      /* [n_cells + 1], at most p */
    uint32_t *entries;     /* [p]: the entry of each place, below p */
};

inline search take_search(kiln_carve *c, uint32_t d, uint32_t p)
{
    search s = {};
    s.d = d;
    s.p = p;
    s.at = kiln_palette_places_of(p, d);
    s.cell_words = kiln::take<uint32_t>(c, static_cast<uint64_t>(s.at.n_cells) * s.at.pairs);
    s.cell_norms = kiln::take<int32_t>(c, s.at.n_cells);
    s.entry_words = kiln::take<uint32_t>(c, static_cast<uint64_t>(p) * s.at.pairs);
    s.entry_norms = kiln::take<int32_t>(c, p);
    s.starts = kiln::take<uint32_t>(c, s.at.n_cells + 1);
    s.entries = kiln::take<uint32_t>(c, p);
    return s;
}

__device__ inline int32_t norm_of(uint32_t word)
{
    const int32_t first = static_cast<int16_t>(word & 0xffff),
                  second = static_cast<int16_t>(word >> 16);
    return first * first + second * second;
}

/* Low parts in the low two bytes, high parts above. */
__device__ inline uint32_t cut_word(uint32_t word)
{
    const int32_t first = static_cast<int16_t>(word & 0xffff),
                  second = static_cast<int16_t>(word >> 16);
    return static_cast<uint32_t>(first & 63) | static_cast<uint32_t>(second & 63) << 8 |
           static_cast<uint32_t>(first >> 6 & 255) << 16 |
           static_cast<uint32_t>(second >> 6 & 255) << 24;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* starts NULL: no cell is known to be without entries. */
__global__ void __launch_bounds__(BLOCK)
    load_cells(search s, const uint32_t *cells, const uint32_t *starts)
{
    for (uint64_t c = kiln::thread_index(); c < s.at.n_cells; c += kiln::thread_count()) {
        int32_t norm = 0;
        for (uint32_t k = 0; k < s.at.pairs; k++) {
            const uint32_t word = cells[c * s.at.pairs + k];
            s.cell_words[static_cast<uint64_t>(k) * s.at.n_cells + c] = word;
            norm += norm_of(word);
        }
        s.cell_norms[c] = norm;
        if (!starts) continue;
        if (starts[c] == starts[c + 1]) s.cell_norms[c] = NEVER;
        s.starts[c] = min(starts[c], s.p);
        if (c + 1 == s.at.n_cells) s.starts[c + 1] = min(starts[c + 1], s.p);
    }
}

__global__ void __launch_bounds__(BLOCK)
    load_entries(search s, const int16_t *centroids, const uint32_t *order)
{
    for (uint64_t place = kiln::thread_index(); place < s.p; place += kiln::thread_count()) {
        const uint32_t entry = min(order[place], s.p - 1);
        int32_t norm = 0;
        for (uint32_t k = 0; k < s.at.pairs; k++) {
            const uint32_t word =
                kiln_palette_pair(centroids + static_cast<uint64_t>(entry) * s.d, s.d, k);
            s.entry_words[static_cast<uint64_t>(k) * s.p + place] = word;
            norm += norm_of(word);
        }
        s.entry_norms[place] = norm;
        s.entries[place] = entry;
    }
}

/* ---- searching ------------------------------------------------------------------------------- */

/* What a block has of its rows. */
struct tile {
    uint32_t cuts[PAIRS][ROWS];
    int32_t norms[ROWS];
    int32_t scores[ROWS][CELLS];
    uint16_t cells[ROWS][KILN_PALETTE_PROBES];
};

__device__ inline uint64_t key_of_score(int32_t score, uint32_t place)
{
    return static_cast<uint64_t>(static_cast<uint32_t>(score) ^ 0x80000000u) << 32 | place;
}

__device__ inline uint64_t least_key(uint64_t key)
{
    for (int step = 16; step > 0; step /= 2) {
        const uint64_t other = __shfl_xor_sync(ALL_LANES, key, step);
        key = other < key ? other : key;
    }
    return key;
}

__device__ inline int32_t sum_lanes(int32_t v)
{
    for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(ALL_LANES, v, step);
    return v;
}
__device__ inline int32_t least_lane(int32_t v)
{
    for (int step = 16; step > 0; step /= 2) v = min(v, __shfl_xor_sync(ALL_LANES, v, step));
    return v;
}
__device__ inline int32_t largest_lane(int32_t v)
{
    for (int step = 16; step > 0; step /= 2) v = max(v, __shfl_xor_sync(ALL_LANES, v, step));
    return v;
}

/* Rows from `first` on, at most ROWS; missing ones are zeros. */
__device__ inline void load_tile(tile *t, const search &s, const int16_t *rows, uint64_t first,
                                 uint64_t n)
{
    for (uint32_t i = threadIdx.x; i < s.at.pairs * ROWS; i += BLOCK) {
        const uint32_t k = i / ROWS, r = i % ROWS;
        t->cuts[k][r] =
            first + r < n ? cut_word(kiln_palette_pair(rows + (first + r) * s.d, s.d, k)) : 0;
    }
    if (threadIdx.x < ROWS) {
        int32_t norm = 0;
        for (uint32_t k = 0; k < s.at.pairs && first + threadIdx.x < n; k++)
            norm += norm_of(kiln_palette_pair(rows + (first + threadIdx.x) * s.d, s.d, k));
        t->norms[threadIdx.x] = norm;
    }
    __syncthreads();
}

/* Scores of all cells for all rows of the tile. */
__device__ inline void score_cells(tile *t, const search &s)
{
    for (uint32_t c = threadIdx.x; c < s.at.n_cells; c += BLOCK) {
        int32_t low[ROWS] = {}, high[ROWS] = {};
        for (uint32_t k = 0; k < s.at.pairs; k++) {
            const int word =
                static_cast<int>(s.cell_words[static_cast<uint64_t>(k) * s.at.n_cells + c]);
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                low[r] = __dp2a_lo(word, static_cast<int>(t->cuts[k][r]), low[r]);
                high[r] = __dp2a_hi(word, static_cast<int>(t->cuts[k][r]), high[r]);
            }
        }
        const int32_t norm = s.cell_norms[c];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            t->scores[r][c] = norm == NEVER ? NEVER : norm - 2 * (low[r] + 64 * high[r]);
    }
    __syncthreads();
}

/* Of a warp: the `probes` cells of the lowest (score, cell) that have entries, to t->cells[row],
 * ascending; returns how many. */
__device__ inline uint32_t nearest_cells(tile *t, const search &s, uint32_t row, uint32_t probes)
{
    const uint32_t lane = threadIdx.x % 32, n = s.at.n_cells;
    const int32_t *scores = t->scores[row];
    int32_t valid = 0, least = NEVER;
    for (uint32_t c = lane; c < n; c += 32) {
        valid += scores[c] < NEVER;
        least = min(least, scores[c]);
    }
    const int32_t want = min(sum_lanes(valid), static_cast<int32_t>(probes));
    /* the want-th least score is in [lo, hi]: where each lane has a cell, 32 of them are at most
     * the largest of the lanes' least */
    int32_t lo = least_lane(least), hi = largest_lane(least);
    if (hi >= NEVER) hi = NEVER - 1;
    while (lo < hi) {
        const int32_t middle = lo + (hi - lo) / 2;
        int32_t count = 0;
        for (uint32_t c = lane; c < n; c += 32) count += scores[c] <= middle;
        if (sum_lanes(count) >= want)
            hi = middle;
        else
            lo = middle + 1;
    }
    int32_t below = 0;
    for (uint32_t c = lane; c < n; c += 32) below += scores[c] < lo;
    int32_t ties = want - sum_lanes(below);
    uint32_t found = 0;
    for (uint32_t first = 0; first < n; first += 32) {
        const uint32_t c = first + lane;
        const int32_t score = c < n ? scores[c] : NEVER;
        const unsigned before = (1u << lane) - 1,
                       tied = __ballot_sync(ALL_LANES, score == lo && score < NEVER);
        const bool taken =
            score < lo || (score == lo && score < NEVER && __popc(tied & before) < ties);
        const unsigned all = __ballot_sync(ALL_LANES, taken);
        if (taken) t->cells[row][found + __popc(all & before)] = static_cast<uint16_t>(c);
        ties -= min(ties, __popc(tied));
        found += __popc(all);
    }
    __syncwarp();
    return found;
}

/* Of a warp: the least (score, place) of the entries of the row's cells. */
__device__ inline uint64_t nearest_entry(const tile *t, const search &s, uint32_t row,
                                         uint32_t n_cells)
{
    uint64_t best = ~uint64_t(0);
    for (uint32_t i = 0; i < n_cells; i++) {
        const uint32_t cell = t->cells[row][i], end = s.starts[cell + 1];
        for (uint32_t place = s.starts[cell] + threadIdx.x % 32; place < end; place += 32) {
            int32_t low = 0, high = 0;
#pragma unroll 8
            for (uint32_t k = 0; k < s.at.pairs; k++) {
                const int word =
                    static_cast<int>(s.entry_words[static_cast<uint64_t>(k) * s.p + place]);
                const int cuts = static_cast<int>(t->cuts[k][row]);
                low = __dp2a_lo(word, cuts, low);
                high = __dp2a_hi(word, cuts, high);
            }
            const uint64_t key = key_of_score(s.entry_norms[place] - 2 * (low + 64 * high), place);
            best = key < best ? key : best;
        }
    }
    return least_key(best);
}

/* Nothing is done where *go is at most p; go NULL: it is. distances may be NULL. */
__global__ void __launch_bounds__(BLOCK)
    search_rows(search s, const int16_t *rows, uint64_t n, uint32_t probes, const uint64_t *go,
                uint16_t *labels, uint32_t *distances)
{
    __shared__ tile t;
    if (go && *go <= s.p) return;
    for (uint64_t first = uint64_t(blockIdx.x) * ROWS; first < n;
         first += uint64_t(gridDim.x) * ROWS) {
        load_tile(&t, s, rows, first, n);
        score_cells(&t, s);
        const uint32_t row = threadIdx.x / 32;
        const uint32_t n_cells = nearest_cells(&t, s, row, probes);
        const uint64_t best = nearest_entry(&t, s, row, n_cells);
        if (threadIdx.x % 32 == 0 && first + row < n) {
            const uint32_t place = min(static_cast<uint32_t>(best), s.p - 1);
            const int32_t score =
                static_cast<int32_t>(static_cast<uint32_t>(best >> 32) ^ 0x80000000u);
            labels[first + row] = static_cast<uint16_t>(s.entries[place]);
            if (distances) distances[first + row] = static_cast<uint32_t>(score + t.norms[row]);
        }
        __syncthreads();
    }
}

/* ---- the index ------------------------------------------------------------------------------- */

/* The memory that making an index takes besides the search. */
struct indexing {
    kiln::sort_pairs<uint32_t> by_cell; /* [p] */
    int32_t *sums;                      /* [n_cells][d] */
    uint32_t *counts;                   /* [n_cells] */
    void *temp;
    size_t temp_bytes;
};

inline cudaError_t take_indexing(indexing *m, kiln_carve *c, const search &s, cudaStream_t stream)
{
    for (int i = 0; i < 2; i++) {
        m->by_cell.keys[i] = kiln::take<uint32_t>(c, s.p);
        m->by_cell.values[i] = kiln::take<uint32_t>(c, s.p);
    }
    m->sums = kiln::take<int32_t>(c, static_cast<uint64_t>(s.at.n_cells) * s.d);
    m->counts = kiln::take<uint32_t>(c, s.at.n_cells);
    m->temp_bytes = 0;
    kiln::sort_pairs<uint32_t> pairs = m->by_cell;
    const cudaError_t e = kiln::sort(nullptr, &m->temp_bytes, &pairs, s.p, 10, stream);
    m->temp = kiln::take<char>(c, m->temp_bytes);
    return e;
}

__global__ void __launch_bounds__(BLOCK)
    first_cells(search s, const int16_t *centroids, uint32_t *cells)
{
    const uint64_t n = static_cast<uint64_t>(s.at.n_cells) * s.at.pairs;
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count()) {
        const uint32_t entry =
            kiln_palette_first_entry(static_cast<uint32_t>(i / s.at.pairs), s.at.n_cells, s.p);
        cells[i] = kiln_palette_pair(centroids + static_cast<uint64_t>(entry) * s.d, s.d,
                                     static_cast<uint32_t>(i % s.at.pairs));
    }
}

/* The nearest cell of each entry; the sums of each cell's entries. */
__global__ void __launch_bounds__(BLOCK)
    cells_of_entries(search s, const int16_t *centroids, uint32_t *cells, uint32_t *values,
                     int32_t *sums, uint32_t *counts)
{
    __shared__ tile t;
    for (uint64_t first = uint64_t(blockIdx.x) * ROWS; first < s.p;
         first += uint64_t(gridDim.x) * ROWS) {
        load_tile(&t, s, centroids, first, s.p);
        score_cells(&t, s);
        const uint32_t row = threadIdx.x / 32, lane = threadIdx.x % 32;
        uint64_t best = ~uint64_t(0);
        for (uint32_t c = lane; c < s.at.n_cells; c += 32) {
            const uint64_t key = key_of_score(t.scores[row][c], c);
            best = key < best ? key : best;
        }
        const uint32_t cell = static_cast<uint32_t>(least_key(best));
        if (first + row < s.p) {
            for (uint32_t k = lane; k < s.d; k += 32)
                atomicAdd(&sums[cell * s.d + k], centroids[(first + row) * s.d + k]);
            if (lane == 0) {
                cells[first + row] = cell;
                values[first + row] = static_cast<uint32_t>(first + row);
                atomicAdd(&counts[cell], 1u);
            }
        }
        __syncthreads();
    }
}

__global__ void __launch_bounds__(BLOCK)
    move_cells(search s, const int32_t *sums, const uint32_t *counts, uint32_t *cells)
{
    const uint64_t n = static_cast<uint64_t>(s.at.n_cells) * s.at.pairs;
    for (uint64_t i = kiln::thread_index(); i < n; i += kiln::thread_count()) {
        const uint64_t c = i / s.at.pairs, k = i % s.at.pairs;
        if (counts[c] == 0) continue;
        const int16_t first = kiln_palette_mean(sums[c * s.d + 2 * k], counts[c]);
        const int16_t second =
            2 * k + 1 < s.d ? kiln_palette_mean(sums[c * s.d + 2 * k + 1], counts[c]) : int16_t(0);
        cells[i] = kiln_palette_word(first, second);
    }
}

/* A thousand cells: each thread adds up the counts before its own. */
__global__ void __launch_bounds__(BLOCK)
    put_starts(search s, const uint32_t *counts, uint32_t *starts)
{
    for (uint64_t c = kiln::thread_index(); c <= s.at.n_cells; c += kiln::thread_count()) {
        uint32_t sum = 0;
        for (uint64_t i = 0; i < c; i++) sum += counts[i];
        starts[c] = sum;
    }
}

inline kiln_status make_index(const kiln_exec *x, const search &s, indexing *m,
                              const int16_t *centroids, uint32_t *index, kiln_error *err)
{
    const uint64_t words = static_cast<uint64_t>(s.at.n_cells) * s.at.pairs;
    LAUNCH(first_cells, kiln::blocks_for(words, BLOCK), BLOCK, 0, s, centroids, index);
    for (unsigned pass = 0; pass <= KILN_PALETTE_CELL_PASSES; pass++) {
        if (pass > 0)
            LAUNCH(move_cells, kiln::blocks_for(words, BLOCK), BLOCK, 0, s, m->sums, m->counts,
                   index);
        LAUNCH(load_cells, kiln::blocks_for(s.at.n_cells, BLOCK), BLOCK, 0, s, index, nullptr);
        CUDA_RUN(cudaMemsetAsync(
            m->sums, 0, static_cast<uint64_t>(s.at.n_cells) * s.d * sizeof *m->sums, x->stream));
        CUDA_RUN(cudaMemsetAsync(m->counts, 0, s.at.n_cells * sizeof *m->counts, x->stream));
        LAUNCH(cells_of_entries, kiln::blocks_for(s.p, ROWS), BLOCK, 0, s, centroids,
               m->by_cell.keys[0], m->by_cell.values[0], m->sums, m->counts);
    }
    LAUNCH(put_starts, kiln::blocks_for(s.at.n_cells + 1, BLOCK), BLOCK, 0, s, m->counts,
           index + s.at.starts);
    kiln::sort_pairs<uint32_t> pairs = m->by_cell;
    CUDA_RUN(kiln::sort(m->temp, &m->temp_bytes, &pairs, s.p, 10, x->stream));
    CUDA_RUN(kiln::bring(index + s.at.order, pairs.values[0], s.p, x->stream));
    return KILN_OK;
}

inline kiln_status load_index(const kiln_exec *x, const search &s, const int16_t *centroids,
                              const uint32_t *index, kiln_error *err)
{
    LAUNCH(load_cells, kiln::blocks_for(s.at.n_cells, BLOCK), BLOCK, 0, s, index,
           index + s.at.starts);
    LAUNCH(load_entries, kiln::blocks_for(s.p, BLOCK), BLOCK, 0, s, centroids, index + s.at.order);
    return KILN_OK;
}

} // namespace

#endif
