/* palette_search -- nearest cells and entries on the CPU; private to this folder.
 *
 * Cells and entries lie in blocks of 16: word k of each of the 16, then word k + 1, ...; the norms
 * (sums of squares) beside them. A score is the squared distance without the row's own norm: norm -
 * 2 (row . entry). Places that are empty, and cells without entries, have the norm NEVER, which is
 * more than any score.
 *
 * Rows are taken in batches. First all cells are scored for each row, and the nearest are kept;
 * then the batch's (cell, row) pairs are sorted by cell. So the entries of a cell are read once for
 * all rows of the batch that need it, four rows at a time.
 */
#ifndef KILN_KERNELS_PALETTE_SEARCH_H
#define KILN_KERNELS_PALETTE_SEARCH_H

#include "base/carve.h"
#include "kernels/exec.h"
#include "kernels/palette/palette_math.h"

enum { PALETTE_BLOCK = 16, PALETTE_BATCH = 2048 };

typedef struct {
    uint32_t d, p;
    kiln_palette_places at;
    uint32_t *cell_words, *entry_words; /* blocks */
    int32_t *cell_norms, *entry_norms;
    uint32_t *entries;      /* [place]: its entry */
    uint32_t *first_blocks; /* [n_cells + 1] */
    uint16_t *cells_of;     /* [p]: the cell of each entry */
    char *scratch;          /* [threads][scratch_bytes] */
    size_t scratch_bytes;
    unsigned threads;
} palette_search;

/* Takes the memory of a search from *c, for as many threads. */
/* kiln_palette_search_take_cpu, kiln_palette_search_take_cpu_avx2 */
palette_search KILN_CPU(palette_search_take)(kiln_carve *c, uint32_t d, uint32_t p,
                                             unsigned threads);

/* The steps of making an index, which is `index` (palette_math.h). */
/* kiln_palette_make_index_cpu, kiln_palette_make_index_cpu_avx2 */
void KILN_CPU(palette_make_index)(palette_search *s, const int16_t *centroids, uint32_t *index);

/* Readies a search by an index that is in order. */
/* kiln_palette_load_index_cpu, kiln_palette_load_index_cpu_avx2 */
void KILN_CPU(palette_load_index)(palette_search *s, const int16_t *centroids,
                                  const uint32_t *index);

/* Finds labels [n] and, unless NULL, squared distances [n]. */
/* kiln_palette_search_rows_cpu, kiln_palette_search_rows_cpu_avx2 */
void KILN_CPU(palette_search_rows)(const palette_search *s, const int16_t *rows, uint64_t n,
                                   uint32_t probes, uint16_t *labels, uint32_t *distances);

#endif
