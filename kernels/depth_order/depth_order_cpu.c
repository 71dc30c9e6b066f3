/* depth_order on the CPU: a radix sort of words that have the bits of the depth above the position.
 * A depth is above 0, so that its bits order as it does. The sort is stable, so positions ascend
 * where depths are equal; where source rows do not ascend there, they are sorted afterwards. Such
 * runs are few and short, but for a wall that is parallel to the picture. */
#include "kernels/depth_order/depth_order.h"

#include "base/carve.h"
#include "kernels/depth_order/depth_order_math.h"
#include "kernels/sort/sort.h"

#include <stdbool.h>

enum { SHORT_RUN = 32 };

kiln_depth_order_fn KILN_CPU(depth_order);

typedef struct {
    const uint32_t *source_rows;
    uint64_t *spare; /* as many words as are sorted */
    unsigned threads;
    void *sort_work;
} ties;

static void insert_by_row(const ties *t, uint64_t *words, uint64_t n)
{
    for (uint64_t i = 1; i < n; i++) {
        const uint64_t word = words[i];
        const uint32_t row = t->source_rows[(uint32_t)word];
        uint64_t j = i;
        for (; j > 0 && t->source_rows[(uint32_t)words[j - 1]] > row; j--) words[j] = words[j - 1];
        words[j] = word;
    }
}

/* Sorts a run of words of the same depth by source row. */
static void settle_run(const ties *t, uint64_t *words, uint64_t *spare, uint64_t n)
{
    if (n <= SHORT_RUN) {
        insert_by_row(t, words, n);
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        words[i] = (uint64_t)t->source_rows[(uint32_t)words[i]] << 32 | (uint32_t)words[i];
    const uint64_t *const sorted = kiln_sort_words(n, words, spare, 32, t->threads, t->sort_work);
    for (uint64_t i = 0; sorted != words && i < n; i++) words[i] = sorted[i];
}

/* Puts runs of equal depth into the order of their source rows. Afterwards only the lower halves of
 * words, the positions, say something. */
static void settle_equal_depths(const ties *t, uint64_t *words, uint64_t n)
{
    for (uint64_t first = 0, end; first < n; first = end) {
        const uint64_t depth = words[first] >> 32;
        bool ascending = true;
        for (end = first + 1; end < n && words[end] >> 32 == depth; end++)
            ascending &=
                t->source_rows[(uint32_t)words[end - 1]] <= t->source_rows[(uint32_t)words[end]];
        if (!ascending) settle_run(t, words + first, t->spare + first, end - first);
    }
}

/* kiln_depth_order_cpu, kiln_depth_order_cpu_avx2 */
kiln_status KILN_CPU(depth_order)(const kiln_exec *x, const kiln_depth_order_args *a, void *work,
                                  size_t *work_bytes, kiln_error *err)
{
    kiln_carve c = {work, 0};
    KILN_TRY(kiln_sort_check("depth_order", a->n, err));
    uint64_t *words = kiln_take(&c, a->n, sizeof *words),
             *spare = kiln_take(&c, a->n, sizeof *spare);
    void *sort_work = kiln_take(&c, kiln_sort_words_bytes(a->n, x->threads), 1);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    if (*work_bytes < c.used)
        return kiln_fail(err, KILN_E_CAP,
                         "depth_order needs %zu bytes of work space, but was given %zu", c.used,
                         *work_bytes);

    for (uint64_t i = 0; i < a->n; i++) words[i] = kiln_depth_key(a->depths[i], (uint32_t)i);
    uint64_t *const sorted = kiln_sort_words(a->n, words, spare, 32, x->threads, sort_work);
    const ties t = {a->source_rows, sorted == words ? spare : words, x->threads, sort_work};
    settle_equal_depths(&t, sorted, a->n);
    for (uint64_t i = 0; i < a->n; i++) a->order[i] = (uint32_t)sorted[i];
    return KILN_OK;
}
