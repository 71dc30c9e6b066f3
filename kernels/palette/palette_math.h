/* palette_math -- what both siblings compute alike: hashes, rounded means, and where things lie in
 * the index.
 *
 * A row of d values is handled as pairs of 16-bit values, a word each, with a zero behind an odd
 * number of them.
 *
 *   index:  cells   [n_cells][pairs]   the centres of cells, two values a word, the first in the
 *                                      low bits
 *           starts  [n_cells + 1]      where the entries of each cell begin in
 *           order   [p]                entries by cell, ascending in each
 *
 * An entry belongs to the cell with the nearest centre, the lowest of equally near ones. A search
 * looks at all entries of the KILN_PALETTE_PROBES cells whose centres are nearest to the row, cells
 * without entries left out; of equally near entries the first in `order` is taken. The cell of an
 * entry is the nearest one of a row equal to it, so such a row finds it.
 */
#ifndef KILN_KERNELS_PALETTE_MATH_H
#define KILN_KERNELS_PALETTE_MATH_H

#include "base/hd.h"
#include "kernels/palette/palette.h"

enum {
    KILN_PALETTE_PROBES = 16,
    KILN_PALETTE_TRAIN_PROBES = 8,
    KILN_PALETTE_PASSES = 8,
    KILN_PALETTE_CELL_PASSES = 3,
    KILN_PALETTE_CELLS_MAX = 1024,
    KILN_PALETTE_PAIRS_MAX = KILN_PALETTE_VALUES_MAX / 2,
    KILN_PALETTE_ONE_CELL = 256, /* so few entries are all looked at */
};

typedef struct {
    uint32_t pairs, n_cells;
    uint64_t starts, order, words; /* of the index */
} kiln_palette_places;

static inline KILN_HD kiln_palette_places kiln_palette_places_of(uint32_t p, uint32_t d)
{
    kiln_palette_places l;
    l.pairs = (d + 1) / 2;
    l.n_cells = 1;
    /* a power of two, at least 2 sqrt(p) */
    while (p > KILN_PALETTE_ONE_CELL && l.n_cells * l.n_cells < 4 * p) l.n_cells *= 2;
    l.starts = (uint64_t)l.n_cells * l.pairs;
    l.order = l.starts + l.n_cells + 1;
    l.words = l.order + p;
    return l;
}

/* The entry that a cell's centre starts as. */
static inline KILN_HD uint32_t kiln_palette_first_entry(uint32_t cell, uint32_t n_cells, uint32_t p)
{
    return (uint32_t)((uint64_t)cell * p / n_cells);
}

static inline KILN_HD uint32_t kiln_palette_word(int16_t first, int16_t second)
{
    return (uint16_t)first | (uint32_t)(uint16_t)second << 16;
}

/* Pair k of a row of d values. */
static inline KILN_HD uint32_t kiln_palette_pair(const int16_t *row, uint32_t d, uint32_t k)
{
    return kiln_palette_word(row[2 * k], (int16_t)(2 * k + 1 < d ? row[2 * k + 1] : 0));
}

/* The last step of SplitMix64 (Steele, Lea and Flood, 2014). */
static inline KILN_HD uint64_t kiln_palette_mix(uint64_t v)
{
    v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
    v = (v ^ v >> 27) * 0x94d049bb133111ebu;
    return v ^ v >> 31;
}

static inline KILN_HD uint64_t kiln_palette_hash(const int16_t *row, uint32_t d, uint64_t seed)
{
    uint64_t h = kiln_palette_mix(seed + 0x9e3779b97f4a7c15u); /* the golden ratio */
    for (uint32_t k = 0; 2 * k < d; k++)
        h = kiln_palette_mix(h + kiln_palette_pair(row, d, k) + 0x9e3779b97f4a7c15u);
    return h;
}

static inline KILN_HD int kiln_palette_rows_equal(const int16_t *a, const int16_t *b, uint32_t d)
{
    for (uint32_t k = 0; k < d; k++)
        if (a[k] != b[k]) return 0;
    return 1;
}

/* Is word i of an index one that palette_assign can follow? Cells within the limit, starts from 0
 * ascending to p, entries below p.
 */
static inline KILN_HD int kiln_palette_index_word_is_good(const uint32_t *index,
                                                          const kiln_palette_places *at, uint32_t p,
                                                          uint64_t i)
{
    const uint32_t word = index[i];
    if (i < at->starts) {
        const int first = (int16_t)(word & 0xffff), second = (int16_t)(word >> 16);
        return first >= -KILN_PALETTE_LIMIT && first <= KILN_PALETTE_LIMIT &&
               second >= -KILN_PALETTE_LIMIT && second <= KILN_PALETTE_LIMIT;
    }
    if (i == at->starts) return word == 0;
    if (i + 1 < at->order) return word >= index[i - 1] && word <= p;
    if (i < at->order) return word == p && word >= index[i - 1];
    return word < p;
}

/* The nearest whole number, halves away from zero; count > 0. */
static inline KILN_HD int16_t kiln_palette_mean(int32_t sum, uint32_t count)
{
    const int64_t n = count;
    return (int16_t)((2 * (int64_t)sum + (sum < 0 ? -n : n)) / (2 * n));
}

/* Orders entries by their error, the largest first, of equal ones the lowest; errors are below
 * 2^51. */
static inline KILN_HD uint64_t kiln_palette_error_key(uint64_t error)
{
    return ~error & (((uint64_t)1 << 51) - 1);
}

/* The farthest row of an entry is the largest of these: of equally far ones the lowest. */
static inline KILN_HD uint64_t kiln_palette_far(uint32_t distance, uint32_t row)
{
    return (uint64_t)distance << 32 | (uint32_t)~row;
}
static inline KILN_HD uint32_t kiln_palette_far_row(uint64_t far) { return ~(uint32_t)far; }

#endif
