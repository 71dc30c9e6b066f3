/* Scatter: the planes of a group of blocks go to the disk in the order of the chunks.
 *
 * The group's planes are decoded into arrays as long as the group. One pass over the whole order finds the group's rows in it:
 * as many passes as there are groups, of 4 bytes a row each, is less than any index would take on the disk. Then chunk after
 * chunk is put together in a buffer of a few MiB, a component at a time (its array and the buffer's piece of it are what
 * the caches hold), and written behind the one before. */
#include "stages/chunk/groups.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    const kiln_scatter *s;
    const kiln_block_group *g;
    unsigned char *planes; /* part after part, each planar over the group's rows */
    unsigned char *block;  /* a plane of a block */
    uint32_t *list;        /* [n_rows + 1] the group's rows in the order of the chunks */
    uint32_t *slices;      /* [n_chunks + 1] of the list */
    uint32_t *window;      /* rows of a chunk */
    unsigned char *out;    /* [out_rows * row_bytes] */
    uint64_t out_rows;
    kiln_scratch_file file;
} scatter;

static void scatter_release(scatter *k)
{
    kiln_scratch_drop(&k->file);
    free(k->out);
    free(k->window);
    free(k->slices);
    free(k->list);
    free(k->block);
    free(k->planes);
}

/* ---- what it needs ------------------------------------------------------------------------------------------------------ */
static uint64_t largest_plane(const kiln_layer *l, const kiln_row_parts *parts)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < l->n_chunks; i++)
        if (l->chunks[i].count > rows) rows = l->chunks[i].count;
    return rows * kiln_row_parts_largest(parts);
}

/* A quarter of the group, but never less than a chunk of it. */
static uint64_t buffer_rows(uint64_t rows)
{
    const uint64_t slice = rows < KILN_CHUNK_ROWS_MAX ? rows : KILN_CHUNK_ROWS_MAX;
    return rows / 4 > slice ? rows / 4 : slice;
}

uint64_t kiln_scatter_ram(const kiln_layer *l, const kiln_row_parts *parts, uint64_t rows, uint64_t n_chunks)
{
    return (rows + buffer_rows(rows)) * parts->row_bytes + largest_plane(l, parts) + (rows + 1) * sizeof(uint32_t) +
           (n_chunks + 1) * sizeof(uint32_t) + KILN_CHUNK_ROWS_MAX * sizeof(uint32_t) + n_chunks * sizeof(kiln_planned_chunk);
}

uint64_t kiln_scatter_rows(const kiln_layer *l, const kiln_row_parts *parts, uint64_t ram, uint64_t n_chunks)
{
    uint64_t lo = 0, hi = l->count + 1; /* lo fits, hi does not */
    while (hi - lo > 1) {
        const uint64_t middle = lo + (hi - lo) / 2;
        if (kiln_scatter_ram(l, parts, middle, n_chunks) <= ram)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

/* ---- in ----------------------------------------------------------------------------------------------------------------- */
static kiln_status read_plane(const scatter *k, const kiln_row_part *p, const kiln_chunk *block, uint64_t at, kiln_error *err)
{
    const uint64_t n = k->g->n_rows;
    KILN_TRY(kiln_row_part_check(p, block, err));
    KILN_TRY(kiln_plane_read(k->s->manifest, block, p->plane->name, k->block, block->count * p->plane->components * p->size, err));
    for (uint64_t c = 0; c < p->plane->components; c++)
        memcpy(k->planes + n * p->at + (c * n + at) * p->size, k->block + c * block->count * p->size, block->count * p->size);
    return KILN_OK;
}

static kiln_status read_planes(scatter *k, kiln_error *err)
{
    const kiln_row_parts *parts = k->s->parts;
    const uint64_t n = k->g->n_rows;
    const kiln_layer *l = parts->items[0].layer;
    KILN_TRY(kiln_alloc_unset((void **)&k->planes, n, parts->row_bytes, "the planes of a group of blocks", err));
    KILN_TRY(kiln_alloc_unset((void **)&k->block, largest_plane(l, parts), 1, "a plane of a block", err));
    for (uint32_t i = 0; i < parts->n; i++) {
        const kiln_row_part *p = &parts->items[i];
        uint64_t at = 0;
        for (uint32_t b = k->g->first_block; b < k->g->end_block; b++) {
            const kiln_chunk *block = &p->layer->chunks[b];
            if (block->count > n - at)
                return kiln_fail(err, KILN_E_IO, "block '%s' of layer '%s' has too many rows", block->name, p->layer->kind);
            if (block->count) KILN_TRY(read_plane(k, p, block, at, err));
            at += block->count;
        }
    }
    free(k->block);
    k->block = NULL;
    return KILN_OK;
}

/* Every row is written to the list and stays where it is one of the group's. */
static kiln_status find_rows(scatter *k, kiln_error *err)
{
    const kiln_scatter *s = k->s;
    const uint64_t first = k->g->first_row, n = k->g->n_rows;
    uint64_t found = 0;
    KILN_TRY(KILN_ALLOC_UNSET(&k->list, n + 1, "the rows of a group of blocks", err));
    KILN_TRY(KILN_ALLOC_UNSET(&k->slices, s->n_chunks + 1, "the rows of a group of blocks", err));
    KILN_TRY(KILN_ALLOC_UNSET(&k->window, KILN_CHUNK_ROWS_MAX, "the rows of a chunk", err));
    k->slices[0] = 0;
    for (uint64_t i = 0; i < s->n_chunks; i++) {
        const kiln_cell_group *c = &s->chunks[i].cells;
        const uint64_t count = c->end - c->begin;
        if (count > KILN_CHUNK_ROWS_MAX)
            return kiln_fail(err, KILN_E_IO, "chunk '%.95s' of the plan has %llu rows", c->name, (unsigned long long)count);
        KILN_TRY(kiln_spatial_rows(s->order, c->begin, count, k->window, err));
        for (uint64_t j = 0; j < count; j++) {
            const uint64_t row = k->window[j] - first; /* wraps where it lies before the group */
            k->list[found] = (uint32_t)row;
            found += row < n;
            if (found > n) return kiln_fail(err, KILN_E_IO, "the order of the rows names some of them twice");
        }
        k->slices[i + 1] = (uint32_t)found;
    }
    return found == n ? KILN_OK : kiln_fail(err, KILN_E_IO, "the order of the rows does not name all of them");
}

/* ---- out ---------------------------------------------------------------------------------------------------------------- */
/* One part of the chunks [begin, end) into the buffer. */
static void fill_part(const scatter *k, const kiln_row_part *p, uint64_t begin, uint64_t end)
{
    const uint64_t n = k->g->n_rows, row_bytes = k->s->parts->row_bytes;
    const int components = (int)p->plane->components;
#pragma omp parallel for num_threads(k->s->threads) schedule(static) if (components > 1)
    for (int c = 0; c < components; c++)
        for (uint64_t i = begin; i < end; i++) {
            const uint64_t first = k->slices[i], count = k->slices[i + 1] - first;
            unsigned char *to = k->out + (first - k->slices[begin]) * row_bytes + count * p->at + c * count * p->size;
            const kiln_row_copy copy = {
                .from = k->planes + n * p->at + c * n * p->size, .to = to, .components = 1, .size = p->size};
            kiln_rows_copy(&copy, k->list + first, NULL, count, 1);
        }
}

static kiln_status write_rows(const scatter *k, uint64_t begin, uint64_t end, kiln_error *err)
{
    const kiln_row_parts *parts = k->s->parts;
    const uint64_t head = (k->s->n_chunks + 1) * sizeof *k->slices, first = k->slices[begin], n = k->slices[end] - first;
    for (uint32_t i = 0; i < parts->n; i++) fill_part(k, &parts->items[i], begin, end);
    return kiln_scratch_write(&k->file, head + first * parts->row_bytes, k->out, n * parts->row_bytes, err);
}

static kiln_status write_file(scatter *k, kiln_error *err)
{
    const kiln_scatter *s = k->s;
    char name[64];
    k->out_rows = buffer_rows(k->g->n_rows);
    KILN_TRY(kiln_alloc_unset((void **)&k->out, k->out_rows, s->parts->row_bytes, "the rows of chunks", err));
    kiln_group_name(k->g, name);
    KILN_TRY(kiln_scratch_create(s->folder, name, kiln_group_bytes(k->g, s->n_chunks, s->parts->row_bytes), &k->file, err));
    KILN_TRY(kiln_scratch_write(&k->file, 0, k->slices, (s->n_chunks + 1) * sizeof *k->slices, err));
    for (uint64_t begin = 0, end; begin < s->n_chunks; begin = end) {
        for (end = begin + 1; end < s->n_chunks && k->slices[end + 1] - k->slices[begin] <= k->out_rows;) end++;
        KILN_TRY(write_rows(k, begin, end, err));
    }
    return kiln_scratch_finish(&k->file, err);
}

kiln_status kiln_group_scatter(const kiln_scatter *s, const kiln_block_group *g, kiln_error *err)
{
    scatter k = {.s = s, .g = g};
    kiln_status st = find_rows(&k, err);
    if (st == KILN_OK) st = read_planes(&k, err);
    if (st == KILN_OK) st = write_file(&k, err);
    scatter_release(&k);
    return st;
}
