/* The partition: as many blocks as memory holds are put in order by the operation spatial_order and
 * written as a sorted run, then the runs are merged. One run needs no merge: what fits into memory
 * is one operation. No step depends on how the rows lie in space, so that a cloud in a single cell
 * costs what any other costs. */
#include "stages/spatial/partition.h"

#include "base/memory.h"
#include "base/option.h"
#include "kernels/sort/sort.h"
#include "stages/engine/engine.h"
#include "stages/spatial/spatial_merge.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* means 12, order 4, codes 8, workspace of the sort 12 and a little */
enum { RUN_ROW_BYTES = 37 };

typedef struct {
    const kiln_spatial_args *a;
    uint64_t *starts; /* [n_runs + 1] first rows of the runs */
    uint64_t n_runs;
    /* of the largest block for each reader, planar; then interleaved means on their way out */
    float *block;
    uint64_t n_block;     /* its rows */
    uint64_t *block_rows; /* [n_chunks] first rows of the blocks in their run */
    float *means;         /* of a run, planar */
    uint32_t *order;
    uint64_t *codes;
    kiln_place_files runs, done; /* runs: only where there are several */
} partition;

static void partition_release(partition *p)
{
    kiln_place_files *const both[] = {&p->runs, &p->done};
    for (int i = 0; i < 2; i++) {
        kiln_scratch_drop(&both[i]->codes);
        kiln_scratch_drop(&both[i]->rows);
        kiln_scratch_drop(&both[i]->means);
    }
    free(p->codes);
    free(p->order);
    free(p->means);
    free(p->block);
    free(p->block_rows);
    free(p->starts);
}

/* ---- what it needs --------------------------------------------------------------------------- */
static uint64_t largest_partition_block(const kiln_layer *l)
{
    uint64_t largest = 0;
    for (uint32_t i = 0; i < l->n_chunks; i++)
        if (l->chunks[i].count > largest) largest = l->chunks[i].count;
    return largest;
}

/* Blocks of which `rows` fit into memory make a run, one block at least; starts may be NULL. */
static uint64_t cut_runs(const kiln_layer *l, uint64_t rows, uint64_t *starts)
{
    uint64_t n_runs = 0, first = 0, end = 0;
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        const uint64_t count = l->chunks[i].count;
        if (end > first && end - first + count > rows) {
            if (starts) starts[n_runs] = first;
            n_runs++;
            first = end;
        }
        end += count;
    }
    if (starts) starts[n_runs] = first;
    n_runs += end > first;
    if (starts) starts[n_runs] = end;
    return n_runs;
}

static uint64_t rows_in_memory(const kiln_layer *l, uint64_t ram)
{
    const uint64_t block = largest_partition_block(l) * KILN_MEAN_BYTES;
    return ram > block ? (ram - block) / RUN_ROW_BYTES : 0;
}

uint64_t kiln_spatial_reader_ram(const kiln_layer *l)
{
    const uint64_t block = largest_partition_block(l) * KILN_MEAN_BYTES;
    return KILN_CONNECTION_RAM + block + kiln_read_ram(block);
}

/* What a merge of runs has for its buffers. The rest is for the seals of what it writes. */
static uint64_t merge_ram(uint64_t ram) { return ram - ram / 8; }

/* The least buffers fit, and so do the seals, which have an item for each buffer that is
 * written. */
static bool is_enough_to_merge(const kiln_layer *l, uint64_t n_runs, uint64_t ram)
{
    const uint64_t places = kiln_merge_buffer_places(merge_ram(ram), n_runs, true);
    return places >= KILN_MERGE_ROWS_MIN && 3 * kiln_seal_ram(l->count / places + 1) <= ram / 8;
}

static bool is_enough(const kiln_layer *l, uint64_t ram)
{
    const uint64_t rows = rows_in_memory(l, ram), n_runs = cut_runs(l, rows, NULL);
    if (rows < largest_partition_block(l)) return false;
    return n_runs <= 1 || is_enough_to_merge(l, n_runs, ram);
}

uint64_t kiln_spatial_least_ram(const kiln_layer *l)
{
    uint64_t ram = largest_partition_block(l) * (KILN_MEAN_BYTES + RUN_ROW_BYTES);
    while (!is_enough(l, ram)) ram += ram / 8 + RUN_ROW_BYTES;
    return ram;
}

uint64_t kiln_spatial_most_ram(const kiln_layer *l)
{
    return largest_partition_block(l) * KILN_MEAN_BYTES + l->count * RUN_ROW_BYTES + 1;
}

uint64_t kiln_spatial_scratch_bytes(const kiln_layer *l, bool with_means, uint64_t ram)
{
    const uint64_t files = l->count * (KILN_PLACE_BYTES + (with_means ? KILN_MEAN_BYTES : 0));
    return cut_runs(l, rows_in_memory(l, ram), NULL) > 1 ? 2 * files : files;
}

/* ---- files ----------------------------------------------------------------------------------- */
static kiln_status create_files(const partition *p, const char *prefix, kiln_place_files *f,
                                kiln_error *err)
{
    char name[32];
    const uint64_t n = p->a->layer->count;
    f->with_means = p->a->with_means;
    (void)snprintf(name, sizeof name, "%scodes", prefix);
    KILN_TRY(kiln_scratch_create(p->a->folder, name, n * sizeof *p->codes, &f->codes, err));
    (void)snprintf(name, sizeof name, "%srows", prefix);
    KILN_TRY(kiln_scratch_create(p->a->folder, name, n * sizeof *p->order, &f->rows, err));
    (void)snprintf(name, sizeof name, "%smeans", prefix);
    return f->with_means
               ? kiln_scratch_create(p->a->folder, name, n * KILN_MEAN_BYTES, &f->means, err)
               : KILN_OK;
}

static kiln_status write_means(const partition *p, uint64_t first, uint64_t n,
                               const kiln_scratch_file *to, kiln_error *err)
{
    for (uint64_t at = 0; at < n; at += p->n_block) {
        const uint64_t count = n - at < p->n_block ? n - at : p->n_block;
        for (uint64_t i = 0; i < count; i++)
            for (int c = 0; c < 3; c++) p->block[3 * i + c] = p->means[c * n + p->order[at + i]];
        KILN_TRY(kiln_scratch_write(to, (first + at) * KILN_MEAN_BYTES, p->block,
                                    count * KILN_MEAN_BYTES, err));
    }
    return KILN_OK;
}

/* ---- runs ------------------------------------------------------------------------------------ */
/* The means of a block, which is not empty, to rows [at, at + count) of a run of n. Reader 0 is the
 * manifest. */
static kiln_status read_block_means(const partition *p, const kiln_chunk *c, uint64_t n,
                                    uint64_t at, unsigned reader, kiln_error *err)
{
    float *block = p->block + reader * p->n_block * 3;
    kiln_manifest *m = reader ? p->a->readers[reader - 1] : p->a->manifest;
    KILN_TRY(kiln_plane_read(m, c, "means", block, c->count * KILN_MEAN_BYTES, err));
    for (int k = 0; k < 3; k++)
        memcpy(p->means + k * n + at, block + k * c->count, c->count * sizeof *p->means);
    return KILN_OK;
}

/* The means of a run of n rows, whole blocks from *block on, which becomes the block behind them.
 * If several fail, *err is that of one of them. */
static kiln_status read_means(const partition *p, uint64_t n, uint32_t *block, kiln_error *err)
{
    const kiln_layer *l = p->a->layer;
    const uint32_t first = *block;
    kiln_status st = KILN_OK;
    for (uint64_t at = 0; at < n; (*block)++) {
        p->block_rows[*block] = at;
        at += l->chunks[*block].count;
    }
    const uint32_t end = *block;
#pragma omp parallel for num_threads(p->a->n_readers + 1) schedule(dynamic) if (p->a->n_readers > 0)
    for (uint32_t b = first; b < end; b++) {
        kiln_error why = {0};
        if (l->chunks[b].count == 0) continue;
        const kiln_status one = read_block_means(p, &l->chunks[b], n, p->block_rows[b],
                                                 (unsigned)omp_get_thread_num(), &why);
        if (one == KILN_OK) continue;
#pragma omp critical(kiln_partition)
        {
            st = one;
            if (err) *err = why;
        }
    }
    return st;
}

static kiln_status sort_run(const partition *p, uint64_t run, uint32_t *block,
                            const kiln_place_files *to, kiln_error *err)
{
    const uint64_t first = p->starts[run], n = p->starts[run + 1] - first;
    kiln_spatial_order_args a = {
        .n = n, .means = p->means, .half = p->a->half, .order = p->order, .codes = p->codes};
    memcpy(a.centre, p->a->centre, sizeof a.centre);
    KILN_TRY(read_means(p, n, block, err));
    KILN_TRY(kiln_runner_run(p->a->runner, KILN_OP_spatial_order, &a, err));
    if (to->with_means) KILN_TRY(write_means(p, first, n, &to->means, err));
    for (uint64_t i = 0; first && i < n; i++) p->order[i] += (uint32_t)first;
    KILN_TRY(kiln_scratch_write(&to->codes, first * sizeof *p->codes, p->codes,
                                n * sizeof *p->codes, err));
    return kiln_scratch_write(&to->rows, first * sizeof *p->order, p->order, n * sizeof *p->order,
                              err);
}

static kiln_status make_runs(partition *p, const kiln_place_files *to, kiln_error *err)
{
    uint64_t longest = 0;
    uint32_t block = 0;
    for (uint64_t i = 0; i < p->n_runs; i++)
        if (p->starts[i + 1] - p->starts[i] > longest) longest = p->starts[i + 1] - p->starts[i];
    KILN_TRY(
        KILN_ALLOC_UNSET(&p->block_rows, p->a->layer->n_chunks, "the rows of the blocks", err));
    KILN_TRY(kiln_alloc_unset((void **)&p->block, (p->a->n_readers + 1) * p->n_block,
                              KILN_MEAN_BYTES, "the means of a block", err));
    KILN_TRY(kiln_alloc_unset((void **)&p->means, longest, KILN_MEAN_BYTES, "the means of a layer",
                              err));
    KILN_TRY(KILN_ALLOC_UNSET(&p->order, longest, "the order of the rows", err));
    KILN_TRY(KILN_ALLOC_UNSET(&p->codes, longest, "the codes of the rows", err));
    for (uint64_t i = 0; i < p->n_runs; i++) KILN_TRY(sort_run(p, i, &block, to, err));
    return KILN_OK;
}

/* The merge has the memory to itself. */
static void free_run(partition *p)
{
    free(p->codes);
    free(p->order);
    free(p->means);
    free(p->block);
    p->codes = NULL;
    p->order = NULL;
    p->means = p->block = NULL;
    kiln_runner_trim(p->a->runner);
}

static kiln_status check_partition(const kiln_spatial_args *a, kiln_error *err)
{
    char least[32], given[32];
    uint64_t sum = 0;
    KILN_TRY(kiln_sort_check("partition", a->layer->count, err));
    for (uint32_t i = 0; i < a->layer->n_chunks; i++) sum += a->layer->chunks[i].count;
    if (sum != a->layer->count)
        return kiln_fail(err, KILN_E_IO, "layer '%s' claims %llu rows, but its blocks have %llu",
                         a->layer->kind, (unsigned long long)a->layer->count,
                         (unsigned long long)sum);
    if (is_enough(a->layer, a->ram)) return KILN_OK;
    return kiln_fail(err, KILN_E_CAP,
                     "the order of layer '%s' takes at least %s of memory, but only %s are "
                     "allowed; give more with --ram",
                     a->layer->kind, kiln_size_text(kiln_spatial_least_ram(a->layer), least),
                     kiln_size_text(a->ram, given));
}

static kiln_status make_partition_order(partition *p, kiln_error *err)
{
    const kiln_layer *l = p->a->layer;
    KILN_TRY(KILN_ALLOC(&p->starts, (uint64_t)l->n_chunks + 2, "the runs of the order", err));
    p->n_runs = cut_runs(l, rows_in_memory(l, p->a->ram), p->starts);
    p->n_block = largest_partition_block(l);
    const bool several = p->n_runs > 1;
    if (several) KILN_TRY(create_files(p, "run-", &p->runs, err));
    p->runs.codes.left_in_cache = p->runs.rows.left_in_cache = p->runs.means.left_in_cache = true;
    p->runs.codes.stays_unnamed = p->runs.rows.stays_unnamed = p->runs.means.stays_unnamed = true;
    if (!several) KILN_TRY(create_files(p, "", &p->done, err));
    const kiln_status made = make_runs(p, several ? &p->runs : &p->done, err);
    free_run(p);
    KILN_TRY(made);
    if (several) {
        KILN_TRY(create_files(p, "", &p->done, err));
        const unsigned threads = kiln_runner_get_info(p->a->runner).threads;
        KILN_TRY(kiln_merge_runs(&p->runs, p->starts, p->n_runs, merge_ram(p->a->ram), threads,
                                 &p->done, err));
    }
    KILN_TRY(kiln_scratch_finish(&p->done.codes, err));
    if (p->done.with_means) KILN_TRY(kiln_scratch_finish(&p->done.means, err));
    return kiln_scratch_finish(&p->done.rows, err);
}

kiln_status kiln_spatial_partition(const kiln_spatial_args *a, kiln_error *err)
{
    partition p = {.a = a};
    bool kept;
    KILN_TRY(kiln_spatial_keep_sound(a->folder, a->layer->count, a->with_means, &kept, err));
    if (kept) return KILN_OK;
    KILN_TRY(check_partition(a, err));
    const kiln_status st = make_partition_order(&p, err);
    partition_release(&p);
    return st;
}
