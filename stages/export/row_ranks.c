#include "stages/export/row_ranks.h"

#include "base/memory.h"
#include "schema/layers.h"
#include "stages/import/reader.h"

#include <stdlib.h>
#include <string.h>

typedef kiln_status visit_fn(kiln_row_ranks *r, const uint32_t *rows, uint64_t n, kiln_error *err);

/* The table has room for the source's rows (kiln_row_ranks_ram), which a damaged manifest may exceed. */
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
    *r = (kiln_row_ranks){.n_source_rows = e->n_source_rows};
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

/* Where a block's rows end in the source. It may hold fewer, which import dropped; a source row is 32 bits. */
static kiln_status block_end(const char *name, uint64_t *out, kiln_error *err)
{
    const bool is_number = name[0] && name[strspn(name, "0123456789")] == '\0';
    const unsigned long long number = is_number ? strtoull(name, NULL, 10) : 0;
    if (!is_number || number > UINT32_MAX / KILN_BLOCK_ROWS)
        return kiln_fail(err, KILN_E_INPUT, "a block of the source layer is called '%s', which is no number of a block", name);
    *out = (number + 1) * KILN_BLOCK_ROWS;
    return KILN_OK;
}

static kiln_status end_of_blocks(const kiln_layer *source, uint64_t *out, kiln_error *err)
{
    *out = 0;
    for (uint32_t c = 0; c < source->n_chunks; c++) {
        uint64_t end = 0;
        KILN_TRY(block_end(source->chunks[c].name, &end, err));
        if (end > *out) *out = end;
    }
    return KILN_OK;
}

kiln_status kiln_source_rows(kiln_manifest *m, const kiln_scene *s, uint64_t *out, kiln_error *err)
{
    kiln_stage_row import;
    kiln_layer *source = NULL;
    *out = s->rows_read;
    KILN_TRY(kiln_stage_get(m, "import", &import, err));
    if (import.state != KILN_STAGE_PARTIAL) return KILN_OK;
    /* a partial import has counted the rows of the blocks that it has, and not those in between */
    kiln_status st = kiln_layer_current(m, KILN_LAYER_source, &source, err);
    if (st == KILN_E_STALE) return KILN_OK; /* the file has no source layer */
    if (st == KILN_OK) st = end_of_blocks(source, out, err);
    kiln_layer_free(source);
    return st;
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
