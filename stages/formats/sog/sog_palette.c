/* sog_palette -- see the header. */
#include "stages/formats/sog/sog_palette.h"

#include "base/minmax.h"
#include "kernels/ops.h"
#include "kernels/palette/palette.h"
#include "stages/formats/sog/sog_encode.h"
#include "stages/formats/sog/sog_numbers.h"
#include "stages/formats/sog/sog_scratch.h"

#include <stdlib.h>

/* ---- the palette ----------------------------------------------------------------------------- */

typedef struct {
    int16_t *rows, *centroids;
    uint32_t *index;
    uint8_t *codes;
    kiln_codebook_counts *book;
    void *work;
    uint64_t n_entries;
} palette_arrays;

static void release_palette(palette_arrays *a)
{
    free(a->rows);
    free(a->centroids);
    free(a->index);
    free(a->codes);
    free(a->book);
    free(a->work);
}

static kiln_palette_train_args train_args(const kiln_export *e, const palette_arrays *a)
{
    return (kiln_palette_train_args){.n = kiln_sog_sample(e),
                                     .seed = KILN_SOG_SEED,
                                     .d = kiln_sog_d(e),
                                     .p = kiln_sog_entries(e->n_rows, kiln_sog_plan_of(e)->few),
                                     .rows = a->rows,
                                     .centroids = a->centroids,
                                     .n_entries = (uint64_t *)(uintptr_t)&a->n_entries};
}

/* Work space of operations on the CPU; 0 where one is refused, which it says itself when it
 * runs. */
static const int16_t no_rows[1]; /* measuring reads no array */
static int16_t no_entries[1];
static uint32_t no_index[1];
static uint16_t no_labels[1];

static uint64_t train_work(const kiln_export *e, unsigned threads)
{
    const palette_arrays a = {.rows = no_entries, .centroids = no_entries};
    const kiln_palette_train_args train = train_args(e, &a);
    const kiln_palette_index_args index = {
        .d = kiln_sog_d(e), .p = kiln_sog_p(e), .centroids = no_entries, .index = no_index};
    const kiln_exec cpu = {.device = -1, .threads = threads};
    size_t of_train = 0, of_index = 0;
    if (kiln_ops_cpu()->palette_train(&cpu, &train, NULL, &of_train, NULL) != KILN_OK) return 0;
    if (kiln_ops_cpu()->palette_index(&cpu, &index, NULL, &of_index, NULL) != KILN_OK) return 0;
    return kiln_max_u64(of_train, of_index);
}

/* The sample is the largest part, so it goes before the book, the codes and the index are made. */
uint64_t kiln_sog_palette_ram(const kiln_export *e, uint64_t unit)
{
    const uint64_t d = kiln_sog_d(e), p = kiln_sog_p(e),
                   words = kiln_palette_index_words((uint32_t)p, (uint32_t)d);
    const uint64_t sample = 2 * d * kiln_sog_sample(e), entries = 2 * d * p,
                   made = sizeof(kiln_codebook_counts) + kiln_codebook_work_bytes() + d * p +
                          4 * words;
    (void)unit;
    return entries + train_work(e, 1) + kiln_max_u64(sample, made) + 2 * sizeof(kiln_sog_plan);
}

uint64_t kiln_sog_palette_ram_thread(const kiln_export *e, uint64_t unit)
{
    (void)unit;
    return train_work(e, 2) - train_work(e, 1);
}

/* A codebook for the values of the entries, where the rows had not few values. */
static kiln_status book_of_entries(palette_arrays *a, uint64_t n, kiln_sog_plan *k, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&a->book, 1, "counts of values", err));
    KILN_TRY(kiln_alloc_unset(&a->work, kiln_codebook_work_bytes(), 1, "codebooks", err));
    kiln_sog_book_of_entries(a->centroids, n, a->book, a->work, k);
    return KILN_OK;
}

static kiln_status put_palette(kiln_export_worker *x, palette_arrays *a, kiln_sog_plan *k,
                               kiln_error *err)
{
    const uint32_t d = kiln_sog_d(x->e), p = k->text.palette;
    KILN_TRY(KILN_ALLOC_UNSET(&a->codes, (uint64_t)d * p, "a palette", err));
    KILN_TRY(
        KILN_ALLOC_UNSET(&a->index, kiln_palette_index_words(p, d), "the index of a palette", err));
    kiln_sog_encode_palette(p, d, k->levels, a->centroids, a->codes);
    const kiln_palette_index_args index = {
        .d = d, .p = p, .centroids = a->centroids, .index = a->index};
    KILN_TRY(KILN_WORK(x->w, palette_index, &index, err));
    KILN_TRY(kiln_export_scratch_write(x, a->codes, (uint64_t)d * p,
                                       kiln_sog_at(x->e, KILN_SOG_AT_PALETTE), err));
    KILN_TRY(kiln_export_scratch_write(x, a->centroids, (uint64_t)d * p * sizeof *a->centroids,
                                       kiln_sog_at(x->e, KILN_SOG_AT_CENTROIDS), err));
    return kiln_export_scratch_write(x, a->index, kiln_palette_index_words(p, d) * sizeof *a->index,
                                     kiln_sog_at(x->e, KILN_SOG_AT_INDEX), err);
}

kiln_status kiln_sog_palette_make(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const uint64_t d = kiln_sog_d(x->e), n = kiln_sog_sample(x->e);
    kiln_sog_plan k = *kiln_sog_plan_of(x->e);
    palette_arrays a = {0};
    kiln_status st = KILN_OK;
    (void)unit;
    KILN_GO(KILN_ALLOC_UNSET(&a.rows, n * d, "a sample", err));
    KILN_GO(KILN_ALLOC_UNSET(&a.centroids, kiln_sog_p(x->e) * d, "a palette", err));
    KILN_GO(kiln_export_scratch_read(x, a.rows, n * d * sizeof *a.rows,
                                     kiln_sog_at(x->e, KILN_SOG_AT_SAMPLE), err));
    const kiln_palette_train_args args = train_args(x->e, &a);
    KILN_GO(KILN_WORK(x->w, palette_train, &args, err));
    free(a.rows);
    a.rows = NULL;
    k.text.palette = (uint32_t)a.n_entries;
    if (!k.few) KILN_GO(book_of_entries(&a, a.n_entries * d, &k, err));
    KILN_GO(put_palette(x, &a, &k, err));
    KILN_GO(kiln_export_result(x, &k, sizeof k, err));
done:
    release_palette(&a);
    return st;
}

/* ---- labels ---------------------------------------------------------------------------------- */

static uint64_t assign_work(const kiln_export *e, uint64_t n, unsigned threads)
{
    const kiln_palette_assign_args args = {.n = n,
                                           .d = kiln_sog_d(e),
                                           .p = kiln_sog_p(e),
                                           .rows = no_rows,
                                           .centroids = no_rows,
                                           .index = no_index,
                                           .labels = no_labels};
    const kiln_exec cpu = {.device = -1, .threads = threads};
    size_t bytes = 0;
    return kiln_ops_cpu()->palette_assign(&cpu, &args, NULL, &bytes, NULL) == KILN_OK ? bytes : 0;
}

uint64_t kiln_sog_label_ram(const kiln_export *e, uint64_t unit)
{
    const uint64_t d = kiln_sog_d(e), p = kiln_sog_p(e), n = e->chunks[unit].n;
    return n * (2 * d + 2) + 2 * p * d + 4 * kiln_palette_index_words((uint32_t)p, (uint32_t)d) +
           assign_work(e, n, 1);
}

uint64_t kiln_sog_label_ram_thread(const kiln_export *e, uint64_t unit)
{
    return assign_work(e, e->chunks[unit].n, 2) - assign_work(e, e->chunks[unit].n, 1);
}

/* The palette of a worker until its round ends, on the device if that has room: it is twice as
 * large as the coefficients of a chunk. */
typedef struct {
    const uint32_t *index;
    const int16_t *centroids;
} kept_palette;

static kiln_status read_palette(kiln_export_worker *x, uint64_t index_bytes,
                                uint64_t centroid_bytes, kiln_error *err)
{
    char *data = NULL;
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC_UNSET(&data, index_bytes + centroid_bytes, "a palette", err));
    KILN_GO(
        kiln_export_scratch_read(x, data, index_bytes, kiln_sog_at(x->e, KILN_SOG_AT_INDEX), err));
    KILN_GO(kiln_export_scratch_read(x, data + index_bytes, centroid_bytes,
                                     kiln_sog_at(x->e, KILN_SOG_AT_CENTROIDS), err));
    KILN_GO(
        kiln_runner_keep(kiln_worker_runner(x->w), data, index_bytes + centroid_bytes, false, err));
    x->own = data;
    data = NULL;
done:
    free(data);
    return st;
}

static kiln_status find_palette(kiln_export_worker *x, kept_palette *out, kiln_error *err)
{
    const uint32_t d = kiln_sog_d(x->e), p = kiln_sog_plan_of(x->e)->text.palette;
    const uint64_t index_bytes = kiln_palette_index_words(p, d) * sizeof *out->index;
    if (!x->own)
        KILN_TRY(read_palette(x, index_bytes, (uint64_t)p * d * sizeof *out->centroids, err));
    *out =
        (kept_palette){x->own, (const int16_t *)(const void *)((const char *)x->own + index_bytes)};
    return KILN_OK;
}

kiln_status kiln_sog_label_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const kiln_export_chunk *chunk = &x->e->chunks[unit];
    const uint32_t d = kiln_sog_d(x->e);
    const uint64_t n = chunk->n, row_bytes = d * sizeof(int16_t);
    kept_palette palette;
    void *rows, *labels;
    KILN_TRY(find_palette(x, &palette, err));
    KILN_TRY(
        kiln_export_keep(x, KILN_KEPT_COEFFICIENTS, n * row_bytes, "coefficients", &rows, err));
    KILN_TRY(kiln_export_keep(x, KILN_KEPT_LABELS, n * sizeof(uint16_t), "labels", &labels, err));
    KILN_TRY(kiln_export_scratch_read(
        x, rows, n * row_bytes, kiln_sog_at(x->e, KILN_SOG_AT_ROWS) + chunk->first * row_bytes,
        err));
    const kiln_palette_assign_args args = {.n = n,
                                           .d = d,
                                           .p = kiln_sog_plan_of(x->e)->text.palette,
                                           .rows = rows,
                                           .centroids = palette.centroids,
                                           .index = palette.index,
                                           .labels = labels};
    KILN_TRY(KILN_WORK(x->w, palette_assign, &args, err));
    return kiln_export_scratch_write(
        x, labels, n * sizeof(uint16_t),
        kiln_sog_at(x->e, KILN_SOG_AT_LABELS) + chunk->first * sizeof(uint16_t), err);
}
