/* tile_pairs_cpu -- counts the pairs of tile rows on the CPU: threads take blocks of splats and add
 * to their own row sums. How the tiles are found: tile_walk.h. */
#include "kernels/tile_pairs/tile_pairs.h"

#include "base/carve.h"
#include "base/checked.h"
#include "kernels/tile_pairs/tile_walk.h"

#include <omp.h>
#include <string.h>

enum { COUNT_BLOCK = 4 * KILN_TILE_BATCH }; /* splats a thread takes at a time */

typedef struct {
    uint64_t *row_pairs;
    uint32_t row0;
} row_sums;

static void add_pairs(void *to, uint32_t row, uint32_t column, uint64_t bits)
{
    const row_sums *s = to;
    (void)column;
    s->row_pairs[row - s->row0] += (uint32_t)__builtin_popcountll(bits);
}

static void count_block(const kiln_tile_walk *w, uint64_t first, uint64_t end, uint64_t *row_pairs)
{
    kiln_tile_batch k;
    row_sums sums = {row_pairs, w->row0};
    for (; first < end; first += k.n) {
        kiln_tile_walk_find(w, first, end, &k);
        for (uint32_t i = 0; i < k.n; i++) kiln_tile_walk_one(w, &k, i, add_pairs, &sums);
    }
}

/* kiln_tile_pairs_count_cpu, kiln_tile_pairs_count_cpu_avx2 */
kiln_status KILN_CPU(tile_pairs_count)(const kiln_exec *x, const kiln_tile_pairs_count_args *a,
                                       void *work, size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_tile_pairs_check(a->n, a->view, a->row0, a->row1, err));
    const uint64_t rows = a->row1 - a->row0;
    kiln_carve c = {.base = work};
    uint64_t *mine = kiln_take(&c, x->threads * rows, sizeof *mine);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    if (*work_bytes < c.used)
        return kiln_fail(err, KILN_E_CAP,
                         "tile_pairs_count needs %zu bytes of work space, but was given %zu",
                         c.used, *work_bytes);

    memset(mine, 0, (size_t)(x->threads * rows) * sizeof *mine);
    const kiln_tile_walk w = {
        .splats = a->splats, .view = a->view, .row0 = a->row0, .row1 = a->row1};
    const int64_t blocks = (int64_t)kiln_div_up(a->n, COUNT_BLOCK);
#pragma omp parallel for num_threads(x->threads) schedule(dynamic)
    for (int64_t b = 0; b < blocks; b++) {
        const uint64_t first = (uint64_t)b * COUNT_BLOCK, left = a->n - first;
        count_block(&w, first, first + (left < COUNT_BLOCK ? left : COUNT_BLOCK),
                    mine + (uint64_t)omp_get_thread_num() * rows);
    }
    for (uint64_t r = 0; r < rows; r++) {
        a->row_pairs[r] = 0;
        for (unsigned k = 0; k < x->threads; k++) a->row_pairs[r] += mine[k * rows + r];
    }
    return KILN_OK;
}
