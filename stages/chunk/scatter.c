/* Scatter: the planes of a group of blocks go to their group in the order of the chunks.
 *
 * The group's planes are decoded into arrays as long as the group. Its rows are sorted by their
 * places along the curve, which are read in one piece; chunks are ranges of places. Then chunk
 * after chunk is put together in a buffer of a few MiB, a component at a time (its array and the
 * buffer's piece of it are what the caches hold), and written behind the one before.
 *
 * Rejected: finding the group's rows by a pass over the whole order, as before. Each group then
 * reads 4 bytes a row of the layer, which is little for 39 groups, and for the 763 of 50 million
 * rows takes as long as all other work. */
#include "stages/chunk/groups.h"

#include "base/memory.h"
#include "base/minmax.h"
#include "kernels/sort/sort.h"
#include "stages/engine/engine.h"
#include "stages/spatial/row_places.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* Indices of the arrays in kiln_scatter_arrays. */
enum { PLANES, BLOCKS, OUT, LIST, KEYS, WORK, SLICES, HEAD, SUMS, ARRAYS };
_Static_assert(ARRAYS <= sizeof(((kiln_scatter_arrays *)0)->items) / sizeof(void *),
               "items are too few");

typedef struct {
    const kiln_chunk_scatter *s;
    const kiln_block_group *g;
    uint32_t group;        /* its number */
    unsigned char *planes; /* part after part, each planar over the group's rows */
    /* [n_readers - 1] a plane of a block, for readers behind the first, which has `out` */
    unsigned char *blocks;
    uint64_t block_bytes;
    bool is_one;    /* the group is a single block, whose planes are its own */
    uint32_t *list; /* [n_rows] the group's rows in the order of the chunks */
    /* [n_rows] their places; once the list is cut its memory has the chunk of each row, u32 */
    uint64_t *keys;
    uint32_t *slices;   /* [n_chunks + 1] of the list */
    kiln_slice *head;   /* [n_chunks] as they are written */
    kiln_row_sum *sums; /* [n_chunks + 1] of a block */
    unsigned char *out; /* [out_rows * row_bytes], at least block_bytes */
    uint64_t out_rows;
    kiln_scratch_file file;
    uint64_t file_at; /* where the group begins in it */
} scatter;

/* ---- what it needs --------------------------------------------------------------------------- */
static uint64_t largest_plane(const kiln_layer *l, const kiln_row_parts *parts, uint64_t rows)
{
    uint64_t block = 0;
    for (uint32_t i = 0; i < l->n_chunks; i++) block = kiln_max_u64(block, l->chunks[i].count);
    return kiln_min_u64(block, rows) * kiln_row_parts_largest(parts);
}

/* A quarter of the group, but never less than a chunk of it. */
static uint64_t buffer_rows(uint64_t rows)
{
    const uint64_t slice = rows < KILN_CHUNK_ROWS_MAX ? rows : KILN_CHUNK_ROWS_MAX;
    return rows / 4 > slice ? rows / 4 : slice;
}

static uint64_t buffer_bytes(const kiln_layer *l, const kiln_row_parts *parts, uint64_t rows)
{
    const uint64_t out = buffer_rows(rows) * parts->row_bytes,
                   plane = largest_plane(l, parts, rows);
    return out > plane ? out : plane;
}

uint64_t kiln_scatter_ram(const kiln_layer *l, const kiln_row_parts *parts, uint64_t rows,
                          uint64_t n_chunks)
{
    /* list, keys and the workspace of the sort */
    enum { SORTED = 2 * sizeof(uint32_t) + 2 * sizeof(uint64_t) };
    return rows * parts->row_bytes + buffer_bytes(l, parts, rows) +
           kiln_read_ram(largest_plane(l, parts, rows)) + rows * SORTED + kiln_sort_bytes(1, 1) +
           (n_chunks + 1) * sizeof(uint32_t) +
           n_chunks * (sizeof(kiln_slice) + sizeof(kiln_planned_chunk)) +
           kiln_block_sums_bytes(n_chunks);
}

uint64_t kiln_scatter_ram_thread(const kiln_layer *l, const kiln_row_parts *parts)
{
    const uint64_t plane = largest_plane(l, parts, l->count);
    return KILN_CONNECTION_RAM + plane + kiln_read_ram(plane) + kiln_sort_bytes(1, 1);
}

uint64_t kiln_scatter_rows(const kiln_layer *l, const kiln_row_parts *parts, uint64_t ram,
                           uint64_t n_chunks)
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

uint64_t kiln_scatter_kept(const kiln_layer *l, const kiln_row_parts *parts)
{
    return kiln_read_ram(largest_plane(l, parts, l->count));
}

void kiln_scatter_arrays_release(kiln_scatter_arrays *r)
{
    for (int i = 0; i < ARRAYS; i++) free(r->items[i]);
    *r = (kiln_scatter_arrays){0};
}

/* Makes an array at least so large; what it held is lost. */
static kiln_status take_scatter_array(const scatter *k, int array, uint64_t count, uint64_t elem,
                                      void *out, kiln_error *err)
{
    kiln_scatter_arrays *r = k->s->arrays;
    const uint64_t bytes = count * elem; /* counted by kiln_scatter_ram: far below 2^64 */
    if (!r->items[array] || r->bytes[array] < bytes) {
        free(r->items[array]);
        r->bytes[array] = 0;
        KILN_TRY(kiln_alloc_unset(&r->items[array], count, elem, "a group of blocks", err));
        r->bytes[array] = bytes;
    }
    memcpy(out, &r->items[array], sizeof r->items[array]);
    return KILN_OK;
}

/* ---- in -------------------------------------------------------------------------------------- */
/* Decodes a plane of a block, whose first row is the group's row `at`. */
static kiln_status read_group_plane(const scatter *k, const kiln_row_part *p,
                                    const kiln_chunk *block, uint64_t at, unsigned reader,
                                    kiln_error *err)
{
    const uint64_t n = k->g->n_rows, bytes = block->count * p->plane->components * p->size;
    unsigned char *planes = k->planes + n * p->at,
                  *own = reader ? k->blocks + (reader - 1) * k->block_bytes : k->out;
    unsigned char *to = k->is_one ? planes : own;
    KILN_TRY(kiln_row_part_check(p, block, err));
    if (block->count > n - at || (k->is_one ? block->count != n : bytes > k->block_bytes))
        return kiln_fail(err, KILN_E_IO, "block '%s' of layer '%s' has too many rows", block->name,
                         p->layer->kind);
    KILN_TRY(kiln_plane_read(k->s->readers[reader], block, p->plane->name, to, bytes, err));
    for (uint64_t c = 0; !k->is_one && c < p->plane->components; c++)
        memcpy(planes + (c * n + at) * p->size, to + c * block->count * p->size,
               block->count * p->size);
    return KILN_OK;
}

static uint64_t row_of_block(const scatter *k, uint32_t block)
{
    uint64_t at = 0;
    const kiln_layer *l = k->s->parts->items[0].layer;
    for (uint32_t b = k->g->first_block; b < block; b++) at += l->chunks[b].count;
    return at;
}

/* Each thread decodes planes of its own. If several fail, *err is that of one of them. */
static kiln_status read_planes(scatter *k, kiln_error *err)
{
    const kiln_row_parts *parts = k->s->parts;
    const kiln_layer *l = parts->items[0].layer;
    const uint32_t n_blocks = k->g->end_block - k->g->first_block;
    const int64_t n_jobs = (int64_t)parts->n * n_blocks;
    kiln_status st = KILN_OK;
    k->is_one = n_blocks == 1;
    k->block_bytes = largest_plane(l, parts, k->g->n_rows);
    k->out_rows = buffer_rows(k->g->n_rows);
    KILN_TRY(take_scatter_array(k, PLANES, k->g->n_rows, parts->row_bytes, &k->planes, err));
    KILN_TRY(take_scatter_array(k, OUT, buffer_bytes(l, parts, k->g->n_rows), 1, &k->out, err));
    if (!k->is_one && k->s->n_readers > 1)
        KILN_TRY(
            take_scatter_array(k, BLOCKS, k->s->n_readers - 1, k->block_bytes, &k->blocks, err));
#pragma omp parallel for num_threads(k->s->n_readers) schedule(dynamic) if (k->s->n_readers > 1)
    for (int64_t j = 0; j < n_jobs; j++) {
        const kiln_row_part *p = &parts->items[j / n_blocks];
        const uint32_t b = k->g->first_block + (uint32_t)(j % n_blocks);
        const kiln_chunk *block = &p->layer->chunks[b];
        kiln_error why = {0};
        if (block->count == 0) continue;
        const kiln_status one =
            read_group_plane(k, p, block, row_of_block(k, b), (unsigned)omp_get_thread_num(), &why);
        if (one == KILN_OK) continue;
#pragma omp critical(kiln_chunk_scatter)
        {
            st = one;
            if (err) *err = why;
        }
    }
    return st;
}

/* Cuts the group's rows, which are sorted by place, into slices: chunks are ranges of places, one
 * behind the other. */
static kiln_status cut_list(const scatter *k, kiln_error *err)
{
    const kiln_chunk_scatter *s = k->s;
    uint64_t found = 0, place = 0;
    k->slices[0] = 0;
    for (uint64_t i = 0; i < s->store->n_chunks; i++) {
        const kiln_cell_group *c = &s->chunks[i].cells;
        if (c->begin != place || c->end < place || c->end - place > KILN_CHUNK_ROWS_MAX)
            return kiln_fail(err, KILN_E_IO,
                             "chunk '%.95s' of the plan has places %llu to %llu, but those of the "
                             "chunk before end at %llu",
                             c->name, (unsigned long long)c->begin, (unsigned long long)c->end,
                             (unsigned long long)place);
        place = c->end;
        while (found < k->g->n_rows && k->keys[found] < place) found++;
        k->slices[i + 1] = (uint32_t)found;
    }
    return found == k->g->n_rows
               ? KILN_OK
               : kiln_fail(err, KILN_E_IO, "the plan of the chunks does not have all rows");
}

static kiln_status find_rows(scatter *k, kiln_error *err)
{
    const kiln_chunk_scatter *s = k->s;
    const uint64_t n = k->g->n_rows;
    void *work;
    KILN_TRY(kiln_sort_check("a group of blocks", n, err));
    KILN_TRY(take_scatter_array(k, LIST, n, sizeof *k->list, &k->list, err));
    KILN_TRY(take_scatter_array(k, KEYS, n, sizeof *k->keys, &k->keys, err));
    KILN_TRY(take_scatter_array(k, WORK, kiln_sort_bytes(n, s->threads), 1, &work, err));
    KILN_TRY(
        take_scatter_array(k, SLICES, s->store->n_chunks + 1, sizeof *k->slices, &k->slices, err));
    KILN_TRY(take_scatter_array(k, HEAD, s->store->n_chunks, sizeof *k->head, &k->head, err));
    KILN_TRY(kiln_row_places_read(s->places, k->g->first_row, n, k->list, err));
    for (uint64_t i = 0; i < n; i++) {
        k->keys[i] = k->list[i];
        k->list[i] = (uint32_t)i;
    }
    kiln_sort_pairs(n, k->keys, k->list, s->threads, work);
    for (uint64_t i = 1; i < n; i++)
        if (k->keys[i] == k->keys[i - 1])
            return kiln_fail(
                err, KILN_E_IO,
                "scratch '%s' gives two rows the same place; run the same command again",
                s->places->path);
    return cut_list(k, err);
}

/* ---- out ------------------------------------------------------------------------------------- */
/* One part of the chunks [begin, end) into the buffer. */
static void fill_part(const scatter *k, const kiln_row_part *p, uint64_t begin, uint64_t end)
{
    const uint64_t n = k->g->n_rows, row_bytes = k->s->parts->row_bytes;
    const int components = (int)p->plane->components;
#pragma omp parallel for num_threads(k->s->threads) \
    schedule(static) if (components > 1 && k->s->threads > 1)
    for (int c = 0; c < components; c++)
        for (uint64_t i = begin; i < end; i++) {
            const uint64_t first = k->slices[i], count = k->slices[i + 1] - first;
            const kiln_row_copy copy = {.from = k->planes + n * p->at,
                                        .to = k->out + (first - k->slices[begin]) * row_bytes +
                                              count * p->at,
                                        .from_rows = n,
                                        .to_rows = count,
                                        .components = p->plane->components,
                                        .size = p->size};
            kiln_row_component_copy(&copy, (uint32_t)c, k->list + first, NULL, count);
        }
}

static void describe_slice(const scatter *k, uint64_t begin, uint64_t i)
{
    const uint64_t row_bytes = k->s->parts->row_bytes, first = k->slices[i],
                   n = k->slices[i + 1] - first;
    k->head[i] = (kiln_slice){.begin = k->slices[i], .end = k->slices[i + 1]};
    const unsigned char *bytes = k->out + (first - k->slices[begin]) * row_bytes;
    if (n) k->head[i].hash = kiln_slice_hash(k->s->store, k->group, k->list + first, bytes, n);
}

static kiln_status write_slice_rows(const scatter *k, uint64_t begin, uint64_t end, kiln_error *err)
{
    const kiln_row_parts *parts = k->s->parts;
    const uint64_t head = k->s->store->n_chunks * sizeof *k->head, first = k->slices[begin],
                   n = k->slices[end] - first;
    for (uint32_t i = 0; i < parts->n; i++) fill_part(k, &parts->items[i], begin, end);
    for (uint64_t i = begin; i < end; i++) describe_slice(k, begin, i);
    return kiln_scratch_write(&k->file, k->file_at + head + first * parts->row_bytes, k->out,
                              n * parts->row_bytes, err);
}

static void list_chunks(const scatter *k)
{
    uint32_t *chunk = k->s->arrays->items[KEYS];
    for (uint64_t c = 0; c < k->s->store->n_chunks; c++)
        for (uint64_t i = k->slices[c]; i < k->slices[c + 1]; i++) chunk[k->list[i]] = (uint32_t)c;
}

/* Of the block whose first row is row `first` of the group. */
static void sum_block(const scatter *k, uint32_t block, uint64_t first, kiln_row_sum *sums)
{
    const kiln_row_parts *parts = k->s->parts;
    const kiln_block_rows rows = {.parts = parts,
                                  .planes = k->planes,
                                  .n_rows = k->g->n_rows,
                                  .first = first,
                                  .count = parts->items[0].layer->chunks[block].count,
                                  .block = block,
                                  .chunk = k->s->arrays->items[KEYS]};
    memset(sums, 0, k->s->store->n_chunks * sizeof *sums);
    kiln_row_sums_add(&rows, sums);
}

static kiln_status write_sums(scatter *k, kiln_error *err)
{
    const kiln_group_store *store = k->s->store;
    const uint64_t bytes = kiln_block_sums_bytes(store->n_chunks);
    uint64_t at =
        k->file_at + store->n_chunks * sizeof *k->head + k->g->n_rows * k->s->parts->row_bytes;
    KILN_TRY(take_scatter_array(k, SUMS, store->n_chunks + 1, sizeof *k->sums, &k->sums, err));
    list_chunks(k);
    for (uint32_t b = k->g->first_block; b < k->g->end_block; b++, at += bytes) {
        sum_block(k, b, row_of_block(k, b), k->sums);
        k->sums[store->n_chunks] = kiln_sums_hash(store, k->group, k->sums);
        KILN_TRY(kiln_scratch_write(&k->file, at, k->sums, bytes, err));
    }
    return KILN_OK;
}

static kiln_status write_group(scatter *k, kiln_error *err)
{
    const kiln_chunk_scatter *s = k->s;
    const uint64_t n_chunks = s->store->n_chunks;
    KILN_TRY(kiln_group_create(s->store, k->group, &k->file, &k->file_at, err));
    for (uint64_t begin = 0, end; begin < n_chunks; begin = end) {
        for (end = begin + 1;
             end < n_chunks && k->slices[end + 1] - k->slices[begin] <= k->out_rows;)
            end++;
        KILN_TRY(write_slice_rows(k, begin, end, err));
    }
    KILN_TRY(kiln_scratch_write(&k->file, k->file_at, k->head, n_chunks * sizeof *k->head, err));
    KILN_TRY(write_sums(k, err));
    return kiln_group_finish(s->store, &k->file, err);
}

kiln_status kiln_group_scatter(const kiln_chunk_scatter *s, uint32_t group, kiln_error *err)
{
    scatter k = {.s = s, .group = group};
    if (group >= s->store->groups->n)
        return kiln_fail(err, KILN_E_BUG, "group %u of blocks does not exist", group);
    k.g = &s->store->groups->items[group];
    kiln_status st = find_rows(&k, err);
    if (st == KILN_OK) st = read_planes(&k, err);
    if (st == KILN_OK) st = write_group(&k, err);
    kiln_group_drop(s->store, &k.file);
    return st;
}

kiln_status kiln_block_sums(const kiln_chunk_scatter *s, uint32_t block, kiln_row_sum *sums,
                            kiln_error *err)
{
    const kiln_layer *l = s->parts->items[0].layer;
    kiln_block_group g = {.first_block = block, .end_block = block + 1};
    scatter k = {.s = s, .g = &g};
    if (block >= l->n_chunks) return kiln_fail(err, KILN_E_BUG, "block %u does not exist", block);
    for (uint32_t b = 0; b < block; b++) g.first_row += l->chunks[b].count;
    g.n_rows = l->chunks[block].count;
    KILN_TRY(find_rows(&k, err));
    KILN_TRY(read_planes(&k, err));
    list_chunks(&k);
    sum_block(&k, block, 0, sums);
    return KILN_OK;
}
