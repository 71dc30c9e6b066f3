/* tile_pairs_cpu -- counts the pairs of tile rows on the CPU: threads take blocks of splats and add
 * to their own row sums. How the tiles are found: tile_walk.h. */
#include "kernels/tile_pairs/tile_pairs.h"

#include "base/carve.h"
#include "base/checked.h"
#include "kernels/tile_pairs/tile_walk.h"

#include <omp.h>
#include <string.h>

enum {
    COUNT_BLOCK = 32 * KILN_TILE_BATCH, /* splats a thread takes at a time */
    /* of FEW in a row of splats before sums of 32 bits might be too small: a view has at most 2^16
     * columns of tiles */
    SUMMED = 1 << 16,
};

/* Sums of one thread. A Gaussian of few rows adds two rows at once: two[r] has pairs of row r in
 * its low half and of row r + 1 in its high half. */
typedef struct {
    uint64_t *row_pairs, *two;
    uint64_t rows, summed;
    uint32_t row0;
} row_sums;

static void add_pairs(void *to, uint32_t row, uint32_t column, uint32_t n)
{
    const row_sums *s = to;
    (void)column;
    s->row_pairs[row - s->row0] += n;
}

static void add_two(row_sums *s)
{
    for (uint64_t r = 0; r < s->rows; r++) {
        s->row_pairs[r] += (s->two[r] & UINT32_MAX) + (r > 0 ? s->two[r - 1] >> 32 : 0);
    }
    memset(s->two, 0, (size_t)(s->rows + KILN_TILE_FEW_ROWS) * sizeof *s->two);
    s->summed = 0;
}

static inline void add_few(const kiln_tile_eight *restrict e, const row_sums *s)
{
    uint64_t low[KILN_TILE_LANES], high[KILN_TILE_LANES];
    uint64_t *const two = s->two - s->row0;
#pragma omp simd
    for (int i = 0; i < KILN_TILE_LANES; i++) {
        low[i] = (uint32_t)e->tiles[0][i] | (uint64_t)(uint32_t)e->tiles[1][i] << 32;
        high[i] = (uint32_t)e->tiles[2][i] | (uint64_t)(uint32_t)e->tiles[3][i] << 32;
    }
    for (int i = 0; i < KILN_TILE_LANES; i++) {
        two[e->row[i]] += low[i];
        two[e->row[i] + 2] += high[i];
    }
}

static void count_block(const kiln_tile_walk *w, uint64_t first, uint64_t end, row_sums *s)
{
    kiln_tile_batch k;
    for (; first < end; first += k.n) {
        kiln_tile_walk_find(w, first, end, &k);
        for (uint32_t i = 0; i < k.n; i += KILN_TILE_LANES) {
            const kiln_tile_eight *const e = kiln_tile_eight_of(&k, i);
            add_few(e, s);
            for (uint32_t left = e->others; left; left &= left - 1)
                kiln_tile_walk_other(w, &k, i + (uint32_t)__builtin_ctz(left), add_pairs, s);
        }
    }
}

/* kiln_tile_pairs_count_cpu, kiln_tile_pairs_count_cpu_avx2 */
kiln_status KILN_CPU(tile_pairs_count)(const kiln_exec *x, const kiln_tile_pairs_count_args *a,
                                       void *work, size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_tile_pairs_check(a->n, a->view, a->row0, a->row1, err));
    const uint64_t rows = a->row1 - a->row0;
    kiln_carve c = {.base = work};
    const uint64_t each = 2 * rows + KILN_TILE_FEW_ROWS;
    uint64_t *mine = kiln_take(&c, x->threads * each, sizeof *mine);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    if (*work_bytes < c.used)
        return kiln_fail(err, KILN_E_CAP,
                         "tile_pairs_count needs %zu bytes of work space, but was given %zu",
                         c.used, *work_bytes);

    memset(mine, 0, (size_t)(x->threads * each) * sizeof *mine);
    const kiln_tile_walk w = {
        .splats = a->splats, .n = a->n, .view = a->view, .row0 = a->row0, .row1 = a->row1};
    const int64_t blocks = (int64_t)kiln_div_up(a->n, COUNT_BLOCK);
#pragma omp parallel num_threads(x->threads)
    {
        uint64_t *const own = mine + (uint64_t)omp_get_thread_num() * each;
        row_sums s = {.row_pairs = own, .two = own + rows, .rows = rows, .row0 = a->row0};
#pragma omp for schedule(dynamic)
        for (int64_t b = 0; b < blocks; b++) {
            const uint64_t first = (uint64_t)b * COUNT_BLOCK, left = a->n - first;
            count_block(&w, first, first + (left < COUNT_BLOCK ? left : COUNT_BLOCK), &s);
            s.summed += COUNT_BLOCK;
            if (s.summed >= SUMMED - COUNT_BLOCK) add_two(&s);
        }
        add_two(&s);
    }
    for (uint64_t r = 0; r < rows; r++) {
        a->row_pairs[r] = 0;
        for (unsigned k = 0; k < x->threads; k++) a->row_pairs[r] += mine[k * each + r];
    }
    return KILN_OK;
}
