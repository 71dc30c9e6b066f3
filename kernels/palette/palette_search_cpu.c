/* palette_search on the CPU: see palette_search.h. */
#include "kernels/palette/palette_search.h"

#include "kernels/palette/palette_lanes.h"

#include <omp.h>
#include <string.h>

enum {
    TILE = 4, /* rows that are scored together */
    /* as a norm; 48 * 2047^2 is less than 2^28, scores are less than 2^30 */
    NEVER = 1 << 30,
    SCORES = KILN_PALETTE_CELLS_MAX, /* of a row at a time */
    GROUPS = 64,
};

typedef struct {
    int32_t scores[TILE][SCORES];
    uint32_t words[PALETTE_BATCH][KILN_PALETTE_PAIRS_MAX]; /* the rows, in pairs */
    int32_t best[PALETTE_BATCH];                           /* score, and its place */
    uint32_t place[PALETTE_BATCH];
    uint16_t cells[PALETTE_BATCH][KILN_PALETTE_PROBES];
    uint8_t n_cells[PALETTE_BATCH];
    uint32_t starts[KILN_PALETTE_CELLS_MAX + 1];
    uint16_t rows[PALETTE_BATCH * KILN_PALETTE_PROBES]; /* by cell */
} batch;

/* ---- blocks ---------------------------------------------------------------------------------- */

static uint64_t blocks_of(uint64_t n) { return (n + PALETTE_BLOCK - 1) / PALETTE_BLOCK; }
/* Places for cells, in whole groups. */
static uint32_t capacity_of_cells(const palette_search *s)
{
    return (s->at.n_cells + GROUPS - 1) / GROUPS * GROUPS;
}

/* kiln_palette_search_take_cpu, kiln_palette_search_take_cpu_avx2 */
palette_search KILN_CPU(palette_search_take)(kiln_carve *c, uint32_t d, uint32_t p,
                                             unsigned threads)
{
    palette_search s = {.d = d, .p = p, .at = kiln_palette_places_of(p, d), .threads = threads};
    const uint64_t cells = capacity_of_cells(&s),
                   entries = (blocks_of(p) + s.at.n_cells) * PALETTE_BLOCK;
    s.cell_words = kiln_take(c, cells * s.at.pairs, sizeof *s.cell_words);
    s.cell_norms = kiln_take(c, cells, sizeof *s.cell_norms);
    s.entry_words = kiln_take(c, entries * s.at.pairs, sizeof *s.entry_words);
    s.entry_norms = kiln_take(c, entries, sizeof *s.entry_norms);
    s.entries = kiln_take(c, entries, sizeof *s.entries);
    s.first_blocks = kiln_take(c, s.at.n_cells + 1, sizeof *s.first_blocks);
    s.cells_of = kiln_take(c, p, sizeof *s.cells_of);
    s.scratch_bytes = (sizeof(batch) + 255) & ~(size_t)255;
    s.scratch = kiln_take(c, threads, s.scratch_bytes);
    return s;
}

static void put_words(uint32_t *words, const int16_t *row, uint32_t d)
{
    const uint32_t whole = d / 2;
    memcpy(words, row, whole * sizeof *words);
    if (d % 2) words[whole] = kiln_palette_word(row[d - 1], 0);
}

/* One place of a block; words NULL: an empty one. */
static void put_place(uint32_t *block_words, int32_t *block_norms, uint32_t lane,
                      const uint32_t *words, uint32_t pairs)
{
    int32_t norm = 0;
    for (uint32_t k = 0; k < pairs; k++) {
        const uint32_t word = words ? words[k] : 0;
        const int32_t first = (int16_t)(word & 0xffff), second = (int16_t)(word >> 16);
        block_words[k * PALETTE_BLOCK + lane] = word;
        norm += first * first + second * second;
    }
    block_norms[lane] = words ? norm : NEVER;
}

/* starts NULL: none is known to be without entries. */
static void load_cells(palette_search *s, const uint32_t *cells, const uint32_t *starts)
{
    const uint32_t pairs = s->at.pairs, n = s->at.n_cells;
    for (uint32_t c = 0; c < capacity_of_cells(s); c++) {
        const uint32_t block = c / PALETTE_BLOCK, lane = c % PALETTE_BLOCK;
        put_place(s->cell_words + (uint64_t)block * pairs * PALETTE_BLOCK,
                  s->cell_norms + block * PALETTE_BLOCK, lane,
                  c < n && !(starts && starts[c] == starts[c + 1]) ? cells + (uint64_t)c * pairs
                                                                   : NULL,
                  pairs);
    }
}

/* kiln_palette_load_index_cpu, kiln_palette_load_index_cpu_avx2 */
void KILN_CPU(palette_load_index)(palette_search *s, const int16_t *centroids,
                                  const uint32_t *index)
{
    const uint32_t *starts = index + s->at.starts, *order = index + s->at.order,
                   pairs = s->at.pairs;
    load_cells(s, index, starts);
    s->first_blocks[0] = 0;
    for (uint32_t c = 0; c < s->at.n_cells; c++) {
        const uint32_t count = starts[c + 1] - starts[c];
        s->first_blocks[c + 1] = s->first_blocks[c] + (uint32_t)blocks_of(count);
    }
    const int threads = (int)s->threads;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (uint32_t c = 0; c < s->at.n_cells; c++) {
        const uint32_t count = starts[c + 1] - starts[c];
        for (uint32_t b = s->first_blocks[c]; b < s->first_blocks[c + 1]; b++)
            for (uint32_t lane = 0; lane < PALETTE_BLOCK; lane++) {
                const uint32_t i = (b - s->first_blocks[c]) * PALETTE_BLOCK + lane,
                               entry = i < count ? order[starts[c] + i] : 0;
                uint32_t words[KILN_PALETTE_PAIRS_MAX];
                put_words(words, centroids + (uint64_t)entry * s->d, s->d);
                put_place(s->entry_words + (uint64_t)b * pairs * PALETTE_BLOCK,
                          s->entry_norms + (uint64_t)b * PALETTE_BLOCK, lane,
                          i < count ? words : NULL, pairs);
                s->entries[(uint64_t)b * PALETTE_BLOCK + lane] = entry;
            }
    }
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* Scores of four rows against n_blocks blocks, to scores[row][place in the blocks]. */
static inline void score_blocks(const uint32_t *const row[TILE], const uint32_t *words,
                                const int32_t *norms, uint64_t n_blocks, uint32_t pairs,
                                int32_t scores[TILE][SCORES])
{
    enum { STEPS = PALETTE_BLOCK / (2 * LANES) };
    const uint32_t *r0 = row[0], *r1 = row[1], *r2 = row[2], *r3 = row[3];
    for (uint64_t step = 0; step < n_blocks * STEPS; step++) {
        const uint64_t at = step * 2 * LANES;
        const uint32_t *w = words + step / STEPS * pairs * PALETTE_BLOCK + step % STEPS * 2 * LANES;
        lanes a0 = lanes_zero(), a1 = a0, b0 = a0, b1 = a0, c0 = a0, c1 = a0, d0 = a0, d1 = a0;
#pragma GCC unroll 4
        for (uint32_t k = 0; k < pairs; k++, w += PALETTE_BLOCK) {
            const lanes x = lanes_load(w), y = lanes_load(w + LANES);
            lanes v = lanes_all(r0[k]);
            a0 = lanes_add_products(a0, x, v);
            a1 = lanes_add_products(a1, y, v);
            v = lanes_all(r1[k]);
            b0 = lanes_add_products(b0, x, v);
            b1 = lanes_add_products(b1, y, v);
            v = lanes_all(r2[k]);
            c0 = lanes_add_products(c0, x, v);
            c1 = lanes_add_products(c1, y, v);
            v = lanes_all(r3[k]);
            d0 = lanes_add_products(d0, x, v);
            d1 = lanes_add_products(d1, y, v);
        }
        const lanes n0 = lanes_load(norms + at), n1 = lanes_load(norms + at + LANES);
        lanes_store(scores[0] + at, lanes_minus_twice(n0, a0));
        lanes_store(scores[0] + at + LANES, lanes_minus_twice(n1, a1));
        lanes_store(scores[1] + at, lanes_minus_twice(n0, b0));
        lanes_store(scores[1] + at + LANES, lanes_minus_twice(n1, b1));
        lanes_store(scores[2] + at, lanes_minus_twice(n0, c0));
        lanes_store(scores[2] + at + LANES, lanes_minus_twice(n1, c1));
        lanes_store(scores[3] + at, lanes_minus_twice(n0, d0));
        lanes_store(scores[3] + at + LANES, lanes_minus_twice(n1, d1));
    }
}

/* n: a multiple of PALETTE_BLOCK. */
static inline int32_t least_of(const int32_t *v, uint32_t n)
{
    int32_t least = INT32_MAX;
#pragma omp simd reduction(min : least)
    for (uint32_t i = 0; i < n; i++) least = v[i] < least ? v[i] : least;
    return least;
}

static inline uint32_t place_of_value(const int32_t *v, int32_t value)
{
    uint32_t i = 0;
    while (v[i] != value) i++;
    return i;
}

static inline uint32_t score_cells(const palette_search *s, const uint32_t *const row[TILE],
                                   int32_t scores[TILE][SCORES])
{
    const uint32_t n = capacity_of_cells(s);
    score_blocks(row, s->cell_words, s->cell_norms, n / PALETTE_BLOCK, s->at.pairs, scores);
    return n;
}

/* ---- the nearest cells ----------------------------------------------------------------------- */

/* At least `want` of the values are at most the result, seldom many more. want <= GROUPS. */
static inline int32_t bound_of(const int32_t v[GROUPS], uint32_t want)
{
    /* the bound is in [lo, hi]; both are within 2^30 of 0, so that sums fit */
    int32_t lo = INT32_MAX, hi = INT32_MIN;
    for (uint32_t i = 0; i < GROUPS; i++) lo = v[i] < lo ? v[i] : lo;
    for (uint32_t i = 0; i < GROUPS; i++) hi = v[i] > hi ? v[i] : hi;
    while (lo < hi) {
        const int32_t middle = lo + (hi - lo) / 2;
        int32_t n = 0;
        for (uint32_t i = 0; i < GROUPS; i++) n += v[i] <= middle;
        if ((uint32_t)n - want <= 2) return middle; /* want to want + 2 */
        if ((uint32_t)n > want)
            hi = middle;
        else
            lo = middle + 1;
    }
    return hi;
}

/* A bit for each of GROUPS values that is at most the bound. */
static inline uint64_t at_most(const int32_t *v, int32_t bound)
{
    const lanes limit = lanes_all((uint32_t)bound);
    uint64_t above = 0;
    for (int i = 0; i < GROUPS; i += LANES)
        above |= (uint64_t)lanes_above(lanes_load(v + i), limit) << i;
    return ~above;
}

/* The `want` cells of the lowest (score, cell), without those that have no entries, to cells;
 * returns how many. n: a multiple of GROUPS. The least of each group of cells bounds what can be
 * among them. */
static inline uint32_t nearest_cells(const int32_t *scores, uint32_t n, uint32_t want,
                                     uint16_t *cells)
{
    int32_t group[GROUPS];
    uint64_t found[SCORES]; /* (score, cell) */
    uint32_t n_found = 0;
    memcpy(group, scores, sizeof group);
    for (uint32_t i = GROUPS; i < n; i += GROUPS)
        for (uint32_t g = 0; g < GROUPS; g++)
            group[g] = scores[i + g] < group[g] ? scores[i + g] : group[g];
    int32_t bound = bound_of(group, want);
    if (bound >= NEVER) bound = NEVER - 1; /* fewer groups than wanted have any cell */
    for (uint32_t i = 0; i < n; i += GROUPS)
        for (uint64_t left = at_most(scores + i, bound); left; left &= left - 1) {
            const uint32_t c = i + (uint32_t)__builtin_ctzll(left);
            found[n_found++] = (uint64_t)((uint32_t)scores[c] ^ 0x80000000u) << 32 | c;
        }
    for (; n_found > want; n_found--) { /* the farthest goes */
        uint32_t worst = 0;
        for (uint32_t i = 1; i < n_found; i++) worst = found[i] > found[worst] ? i : worst;
        found[worst] = found[n_found - 1];
    }
    for (uint32_t i = 0; i < n_found; i++) cells[i] = (uint16_t)found[i];
    return n_found;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* The tile from row `first` of n on; it ends with the last row again where there are fewer. */
static inline void tile_of(const batch *b, const uint16_t *rows, uint32_t first, uint32_t n,
                           const uint32_t *tile[TILE])
{
    for (uint32_t t = 0; t < TILE; t++) {
        const uint32_t i = first + t < n ? first + t : n - 1;
        tile[t] = b->words[rows ? rows[i] : i];
    }
}

static void load_batch(batch *b, const int16_t *rows, uint32_t n, uint32_t d)
{
    for (uint32_t i = 0; i < n; i++) {
        put_words(b->words[i], rows + (uint64_t)i * d, d);
        b->best[i] = INT32_MAX;
        b->place[i] = 0;
    }
}

static void find_cells(const palette_search *s, batch *b, uint32_t n, uint32_t probes)
{
    for (uint32_t i = 0; i < n; i += TILE) {
        const uint32_t *tile[TILE];
        tile_of(b, NULL, i, n, tile);
        const uint32_t n_scores = score_cells(s, tile, b->scores);
        for (uint32_t t = 0; t < TILE && i + t < n; t++)
            b->n_cells[i + t] =
                (uint8_t)nearest_cells(b->scores[t], n_scores, probes, b->cells[i + t]);
    }
}

/* Sorts the batch's pairs by cell; rows of a cell ascending. */
static void sort_by_cell(const palette_search *s, batch *b, uint32_t n)
{
    uint32_t sum = 0;
    memset(b->starts, 0, (s->at.n_cells + 1) * sizeof *b->starts);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < b->n_cells[i]; j++) b->starts[b->cells[i][j] + 1]++;
    for (uint32_t c = 0; c <= s->at.n_cells; c++) b->starts[c] = sum += b->starts[c];
    for (uint32_t i = n; i-- > 0;)
        for (uint32_t j = 0; j < b->n_cells[i]; j++)
            b->rows[--b->starts[b->cells[i][j] + 1]] = (uint16_t)i;
    /* starts[c + 1] has become the begin of cell c */
    memmove(b->starts, b->starts + 1, s->at.n_cells * sizeof *b->starts);
    b->starts[s->at.n_cells] = sum;
}

/* The rows of the batch that look at a cell, against some of its blocks. Places ascend from call to
 * call, so the first of equal scores stays. */
static inline void look_at_blocks(const palette_search *s, batch *b, uint32_t cell,
                                  uint32_t first_block, uint32_t n_blocks)
{
    const uint32_t pairs = s->at.pairs, end = b->starts[cell + 1],
                   n_scores = n_blocks * PALETTE_BLOCK;
    const uint32_t *words = s->entry_words + (uint64_t)first_block * pairs * PALETTE_BLOCK;
    const int32_t *norms = s->entry_norms + (uint64_t)first_block * PALETTE_BLOCK;
    for (uint32_t i = b->starts[cell]; i < end; i += TILE) {
        const uint32_t *tile[TILE];
        tile_of(b, b->rows, i, end, tile);
        score_blocks(tile, words, norms, n_blocks, pairs, b->scores);
        for (uint32_t t = 0; t < TILE && i + t < end; t++) {
            const uint32_t row = b->rows[i + t];
            const int32_t least = least_of(b->scores[t], n_scores);
            if (least >= b->best[row]) continue;
            b->best[row] = least;
            b->place[row] = first_block * PALETTE_BLOCK + place_of_value(b->scores[t], least);
        }
    }
}

static void look_at_entries(const palette_search *s, batch *b)
{
    for (uint32_t cell = 0; cell < s->at.n_cells; cell++) {
        if (b->starts[cell] == b->starts[cell + 1]) continue;
        const uint32_t end = s->first_blocks[cell + 1];
        for (uint32_t block = s->first_blocks[cell]; block < end; block += SCORES / PALETTE_BLOCK)
            look_at_blocks(s, b, cell, block,
                           end - block < SCORES / PALETTE_BLOCK ? end - block
                                                                : SCORES / PALETTE_BLOCK);
    }
}

static int32_t norm_of(const uint32_t *words, uint32_t pairs)
{
    int32_t norm = 0;
    for (uint32_t k = 0; k < pairs; k++) {
        const int32_t first = (int16_t)(words[k] & 0xffff), second = (int16_t)(words[k] >> 16);
        norm += first * first + second * second;
    }
    return norm;
}

/* kiln_palette_search_rows_cpu, kiln_palette_search_rows_cpu_avx2 */
void KILN_CPU(palette_search_rows)(const palette_search *s, const int16_t *rows, uint64_t n,
                                   uint32_t probes, uint16_t *labels, uint32_t *distances)
{
    const int threads = (int)s->threads;
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (uint64_t first = 0; first < n; first += PALETTE_BATCH) {
        batch *b = (batch *)(void *)(s->scratch + (size_t)omp_get_thread_num() * s->scratch_bytes);
        const uint32_t count = n - first < PALETTE_BATCH ? (uint32_t)(n - first) : PALETTE_BATCH;
        load_batch(b, rows + first * s->d, count, s->d);
        find_cells(s, b, count, probes);
        sort_by_cell(s, b, count);
        look_at_entries(s, b);
        for (uint32_t i = 0; i < count; i++) {
            labels[first + i] = (uint16_t)s->entries[b->place[i]];
            if (distances)
                distances[first + i] = (uint32_t)(b->best[i] + norm_of(b->words[i], s->at.pairs));
        }
    }
}

/* ---- the index ------------------------------------------------------------------------------- */

/* The nearest cell of each entry. */
static void cells_of_entries(const palette_search *s, const int16_t *centroids, uint16_t *cells)
{
    const int threads = (int)s->threads;
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (uint32_t first = 0; first < s->p; first += PALETTE_BATCH) {
        batch *b = (batch *)(void *)(s->scratch + (size_t)omp_get_thread_num() * s->scratch_bytes);
        const uint32_t count = s->p - first < PALETTE_BATCH ? s->p - first : PALETTE_BATCH;
        load_batch(b, centroids + (uint64_t)first * s->d, count, s->d);
        for (uint32_t i = 0; i < count; i += TILE) {
            const uint32_t *tile[TILE];
            tile_of(b, NULL, i, count, tile);
            const uint32_t n_scores = score_cells(s, tile, b->scores);
            for (uint32_t t = 0; t < TILE && i + t < count; t++)
                cells[first + i + t] =
                    (uint16_t)place_of_value(b->scores[t], least_of(b->scores[t], n_scores));
        }
    }
}

/* Entries by cell, ascending in each. */
static void order_entries(const palette_search *s, const uint16_t *cells, uint32_t *starts,
                          uint32_t *order)
{
    const uint32_t n = s->at.n_cells;
    memset(starts, 0, (n + 1) * sizeof *starts);
    for (uint32_t e = 0; e < s->p; e++) starts[cells[e]]++;
    uint32_t sum = 0;
    /* the end of each */
    for (uint32_t c = 0; c <= n; c++) starts[c] = sum += c < n ? starts[c] : 0;
    for (uint32_t e = s->p; e-- > 0;) order[--starts[cells[e]]] = e;
}

/* Puts each centre into the middle of its entries; one without entries stays. */
static void move_cells(const palette_search *s, const int16_t *centroids, const uint32_t *starts,
                       const uint32_t *order, uint32_t *cells)
{
    const uint32_t pairs = s->at.pairs;
    for (uint32_t c = 0; c < s->at.n_cells; c++) {
        const uint32_t count = starts[c + 1] - starts[c];
        int32_t sums[KILN_PALETTE_VALUES_MAX] = {0};
        int16_t mean[KILN_PALETTE_VALUES_MAX];
        if (count == 0) continue;
        for (uint32_t i = starts[c]; i < starts[c + 1]; i++)
            for (uint32_t k = 0; k < s->d; k++) sums[k] += centroids[(uint64_t)order[i] * s->d + k];
        for (uint32_t k = 0; k < s->d; k++) mean[k] = kiln_palette_mean(sums[k], count);
        put_words(cells + (uint64_t)c * pairs, mean, s->d);
    }
}

/* kiln_palette_make_index_cpu, kiln_palette_make_index_cpu_avx2 */
void KILN_CPU(palette_make_index)(palette_search *s, const int16_t *centroids, uint32_t *index)
{
    uint32_t *starts = index + s->at.starts, *order = index + s->at.order;
    uint16_t *cells = s->cells_of;
    for (uint32_t c = 0; c < s->at.n_cells; c++)
        put_words(index + (uint64_t)c * s->at.pairs,
                  centroids + (uint64_t)kiln_palette_first_entry(c, s->at.n_cells, s->p) * s->d,
                  s->d);
    for (unsigned pass = 0; pass <= KILN_PALETTE_CELL_PASSES; pass++) {
        if (pass > 0) move_cells(s, centroids, starts, order, index);
        load_cells(s, index, NULL);
        cells_of_entries(s, centroids, cells);
        order_entries(s, cells, starts, order);
    }
}
