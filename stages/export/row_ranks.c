#include "stages/export/row_ranks.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

typedef kiln_status visit_fn(kiln_row_ranks *r, const uint32_t *rows, uint64_t n, kiln_error *err);

/* The table has room for the scene's rows (kiln_row_ranks_ram), which a damaged manifest may exceed. */
static kiln_status measure(kiln_row_ranks *r, const uint32_t *rows, uint64_t n, kiln_error *err)
{
    for (uint64_t i = 0; i < n; i++) {
        if (rows[i] >= r->n_source_rows)
            return kiln_fail(err, KILN_E_INPUT, "the layer names source row %u, but its source has %llu rows", rows[i],
                             (unsigned long long)r->n_source_rows);
        if (rows[i] / 64 >= r->n_words) r->n_words = rows[i] / 64 + 1;
    }
    return KILN_OK;
}

static kiln_status set(kiln_row_ranks *r, const uint32_t *rows, uint64_t n, kiln_error *err)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t bit = 1ull << rows[i] % 64;
        if (r->bits[rows[i] / 64] & bit)
            return kiln_fail(err, KILN_E_IO, "source row %u occurs twice in the layer; export it with --order baked", rows[i]);
        r->bits[rows[i] / 64] |= bit;
    }
    return KILN_OK;
}

static kiln_status visit(kiln_row_ranks *r, const kiln_export *e, kiln_manifest *m, visit_fn *fn, kiln_error *err)
{
    kiln_status st = KILN_OK;
    uint32_t *rows = NULL;
    for (uint32_t c = 0; c < e->layer->n_chunks && st == KILN_OK; c++) {
        const kiln_chunk *chunk = &e->layer->chunks[c];
        if (!e->chosen[c] || chunk->count == 0) continue;
        KILN_GO(KILN_ALLOC(&rows, chunk->count, "source rows", err));
        KILN_GO(kiln_plane_read(m, chunk, "source_row", rows, chunk->count * sizeof *rows, err));
        st = fn(r, rows, chunk->count, err);
        free(rows);
        rows = NULL;
    }
done:
    free(rows);
    return st;
}

kiln_status kiln_row_ranks_init(kiln_row_ranks *r, const kiln_export *e, kiln_manifest *m, kiln_error *err)
{
    kiln_stage_row import;
    KILN_TRY(kiln_stage_get(m, "import", &import, err));
    /* a partial import has counted the rows of the blocks that it has, and not those in between */
    *r = (kiln_row_ranks){.n_source_rows = import.state == KILN_STAGE_PARTIAL ? UINT32_MAX : e->scene->rows_read};
    KILN_TRY(visit(r, e, m, measure, err));
    KILN_TRY(KILN_ALLOC(&r->bits, r->n_words, "the order of the rows", err));
    KILN_TRY(KILN_ALLOC(&r->before, r->n_words / 8 + 1, "the order of the rows", err));
    KILN_TRY(visit(r, e, m, set, err));
    uint64_t n = 0;
    for (uint64_t w = 0; w < r->n_words; w++) {
        if (w % 8 == 0) r->before[w / 8] = n;
        n += (uint64_t)__builtin_popcountll(r->bits[w]);
    }
    return KILN_OK;
}

uint64_t kiln_row_ranks_ram(uint64_t n_source_rows)
{
    const uint64_t words = n_source_rows / 64 + 1;
    return words * sizeof(uint64_t) + (words / 8 + 1) * sizeof(uint64_t);
}

void kiln_row_ranks_release(kiln_row_ranks *r)
{
    free(r->bits);
    free(r->before);
    memset(r, 0, sizeof *r);
}

uint64_t kiln_row_rank(const kiln_row_ranks *r, uint32_t source_row)
{
    uint64_t word = source_row / 64, n = r->before[word / 8];
    for (uint64_t w = word & ~7ull; w < word; w++) n += (uint64_t)__builtin_popcountll(r->bits[w]);
    return n + (uint64_t)__builtin_popcountll(r->bits[word] & ((1ull << source_row % 64) - 1));
}
