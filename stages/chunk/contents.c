/* contents -- see contents.h. */
#include "stages/chunk/contents.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    kiln_chunk_unit *payloads;
    kiln_unit *units;
    uint64_t n; /* blocks with rows */
} block_list;

static void block_list_release(block_list *l)
{
    if (l->units) kiln_units_release(l->units, l->n);
    free(l->units);
    free(l->payloads);
}

static kiln_status list_blocks(const kiln_chunk_spill *y, const kiln_hash *keys, block_list *l,
                               kiln_error *err)
{
    const uint32_t n_blocks = y->layer->n_chunks;
    KILN_TRY(KILN_ALLOC(&l->payloads, n_blocks, "the sums of blocks", err));
    KILN_TRY(KILN_ALLOC(&l->units, n_blocks, "the sums of blocks", err));
    for (uint32_t b = 0; b < n_blocks; b++) {
        if (y->layer->chunks[b].count == 0) continue;
        kiln_chunk_unit *payload = &l->payloads[l->n];
        kiln_unit *u = &l->units[l->n++];
        *payload = *y->model;
        payload->unit = KILN_CHUNK_SUMS;
        payload->index = b;
        kiln_hasher *h = kiln_hasher_new();
        kiln_key_hash(h, "sums of rows, by the plan", payload->plan);
        kiln_key_u64(h, "block", b);
        kiln_key_hash(h, "planes", keys[b]);
        *u = (kiln_unit){.key = kiln_hasher_end(h),
                         .payload = payload,
                         .payload_bytes = sizeof *payload,
                         .cost = y->layer->chunks[b].count,
                         .n_outputs = 1,
                         .planning = true};
        (void)snprintf(u->name, sizeof u->name, "rows of block %u", b);
    }
    return KILN_OK;
}

/* What units read: the groups, the blocks themselves where few are due, nothing where a plan stands
 * that has stored all sums. */
static kiln_status prepare_spill(kiln_run *r, kiln_chunk_spill *y, const block_list *l,
                                 uint64_t n_chunks, kiln_error *err)
{
    uint64_t due;
    KILN_TRY(kiln_chunk_due(r, l->units, l->n, &due, err));
    if (due == 0 || !(y->model->use == KILN_SCRATCH_OWN || y->model->use == KILN_SCRATCH_PLAN))
        return KILN_OK;
    KILN_TRY(kiln_chunk_spill_order(r, y, err));
    if (due <= l->n / 2) return KILN_OK;
    KILN_TRY(kiln_chunk_spill_decide(y, n_chunks, n_chunks, err));
    return kiln_chunk_spill_scatter(y, n_chunks, err);
}

static kiln_status add_block(kiln_run *r, const kiln_unit *u, uint64_t n_chunks,
                             kiln_row_sum *content, kiln_error *err)
{
    kiln_row_sum *sums = NULL;
    uint64_t bytes = 0;
    KILN_TRY(kiln_unit_data(r, u, "sums", (void **)&sums, &bytes, err));
    if (bytes != n_chunks * sizeof *sums) {
        free(sums);
        return kiln_unit_refuse(r, u,
                                kiln_fail(err, KILN_E_IO,
                                          "it has %llu bytes of sums for %llu chunks",
                                          (unsigned long long)bytes, (unsigned long long)n_chunks),
                                err);
    }
    for (uint64_t c = 0; c < n_chunks; c++) {
        content[c].low += sums[c].low;
        content[c].high += sums[c].high;
    }
    free(sums);
    return KILN_OK;
}

static kiln_status add_blocks(kiln_run *r, kiln_chunk_spill *y, block_list *l, uint64_t n_chunks,
                              kiln_row_sum *content, kiln_error *err)
{
    for (uint64_t i = 0; i < l->n; i++) {
        l->payloads[i].group_rows = y->group_rows;
        l->payloads[i].memory = y->memory;
        l->units[i].ram = kiln_chunk_spill_sums_ram(y, l->units[i].cost, n_chunks);
    }
    KILN_TRY(kiln_run_units(r, "summing rows", l->units, l->n, err));
    for (uint64_t i = 0; i < l->n; i++) {
        /* 3 billion rows without order have 3 billion sums */
        KILN_TRY(kiln_run_interrupted(r, err));
        KILN_TRY(add_block(r, &l->units[i], n_chunks, content, err));
    }
    return KILN_OK;
}

kiln_status kiln_chunk_contents(kiln_run *r, kiln_chunk_spill *y, const kiln_hash *keys,
                                uint64_t n_chunks, kiln_row_sum *content, kiln_error *err)
{
    block_list l = {0};
    kiln_status st = list_blocks(y, keys, &l, err);
    if (st == KILN_OK) st = prepare_spill(r, y, &l, n_chunks, err);
    if (st == KILN_OK) st = add_blocks(r, y, &l, n_chunks, content, err);
    block_list_release(&l);
    return st;
}
