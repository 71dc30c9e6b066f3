/* sog_writer -- SOG of PlayCanvas, version 2: meta.json and lossless WebP images, as a folder or stored in a ZIP archive (.sog).
 *
 *   0  chunks    counts of log scales, colours and coefficients, from which
 *   1  one unit  makes the codebooks
 *   2  chunks    rows become codes, at their places in scratch; coefficients become rows of whole numbers, some of them the sample
 *   3  one unit  the palette of the sample, and its codebook
 *   4  chunks    the entry of each row
 *   5  images    an image a unit: its codes from scratch, encoded, back to scratch
 *   6  one unit  puts the files together
 *
 * Memory is that of a chunk or of the sample, and in round 5 that of an image with what libwebp takes for it: there are no parts of
 * an image in WebP.
 * Format: PlayCanvas, "The SOG Format"; layout: sog_layout.h.
 */
#include "stages/export/float_places.h"
#include "stages/export/rows.h"
#include "stages/export/sog_encode.h"
#include "stages/export/sog_numbers.h"
#include "stages/export/sog_rounds.h"
#include "stages/export/sog_scratch.h"
#include "stages/export/webp_encode.h"
#include "stages/export/writer.h"
#include "stages/export/zip_writer.h"

#include "base/file.h"
#include "base/minmax.h"
#include "kernels/ops.h"
#include "kernels/palette/palette.h"
#include "stages/engine/json_text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COLOURS = KILN_ROWS_LOG_SCALES | KILN_ROWS_SH0 | KILN_ROWS_SHN };
static const char META[] = "meta.json";
const kiln_export_count kiln_sog_lost[] = {
    {"coefficient was clamped to 32 times its usual size", "coefficients were clamped to 32 times their usual size"}, {NULL, NULL}};

static uint32_t degree_of(const kiln_export *e) { return kiln_export_degree(e, KILN_SOG_DEGREE_MAX); }
static const kiln_sog_plan *plan_of(const kiln_export *e) { return e->plan; }
static kiln_sog_plan *plan_to_fill(kiln_export_parent *p) { return (kiln_sog_plan *)(void *)p->plan->data; }

/* ---- before anything is written --------------------------------------------------------------------------------------------- */

static kiln_status check_sizes(const kiln_export *e, kiln_error *err)
{
    uint64_t width, height;
    kiln_sog_image_size(e->n_rows, &width, &height);
    if (width > KILN_WEBP_SIDE_MAX || height > KILN_WEBP_SIDE_MAX)
        return kiln_fail(
            err, KILN_E_INPUT,
            "%llu Gaussians take pictures of %llu x %llu pixels, and WebP has at most %d a side; write fewer (--chunks, "
            "--filter-box), or several files",
            (unsigned long long)e->n_rows, (unsigned long long)width, (unsigned long long)height, KILN_WEBP_SIDE_MAX);
    return KILN_OK;
}

static kiln_status take_bounds(const kiln_export *e, kiln_sog_text *t, kiln_error *err)
{
    for (int a = 0; a < 3; a++) {
        const double lo = (double)e->survey.means[a].lo + e->origin[a], hi = (double)e->survey.means[a].hi + e->origin[a];
        t->mins[a] = kiln_sog_position_log(lo);
        t->maxs[a] = kiln_sog_position_log(hi);
        if (t->mins[a] < -KILN_SOG_POSITION_LOG_MAX || t->maxs[a] > KILN_SOG_POSITION_LOG_MAX)
            return kiln_fail(err, KILN_E_INPUT,
                             "positions reach from %g to %g along %c; SOG holds them up to 5.5e34, and nothing precisely there", lo,
                             hi, 'x' + a);
    }
    return KILN_OK;
}

static kiln_status plan(kiln_export_parent *p, kiln_error *err)
{
    kiln_sog_plan k = {.text = {.n = p->e->n_rows, .degree = degree_of(p->e), .antialiased = kiln_export_scene(p->e)->antialiased}};
    KILN_TRY(check_sizes(p->e, err));
    KILN_TRY(take_bounds(p->e, &k.text, err));
    if (p->e->sh_degree > KILN_SOG_DEGREE_MAX)
        KILN_TRY(kiln_export_note(p, err, "SOG holds no spherical harmonics above degree 3"));
    KILN_TRY(kiln_float_places_note(p, err));
    p->plan->size = 0;
    return kiln_buffer_put(p->plan, &k, sizeof k, err);
}

/* What an archive has of a row at most in scenes of any kind that were measured, 15 bytes and 2 for the label: noise does not pack.
 */
uint64_t kiln_sog_archive_bytes(const kiln_export *e) { return e->n_rows * (e->sh_degree ? 17 : 15); }

kiln_status kiln_sog_plan_archive(kiln_export_parent *p, kiln_error *err)
{
    const uint64_t bytes = kiln_sog_archive_bytes(p->e);
    KILN_TRY(check_sizes(p->e, err));
    if (bytes >= UINT32_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "%llu Gaussians make a ZIP archive of about %llu MiB, and one that all readers take is below 4 GiB; write "
                         "--format sog-folder",
                         (unsigned long long)p->e->n_rows, (unsigned long long)(bytes >> 20));
    return plan(p, err);
}

/* ---- rounds 0 and 1: codebooks ---------------------------------------------------------------------------------------------- */

static uint64_t counts_bytes(void) { return KILN_SOG_BOOKS * sizeof(kiln_codebook_counts) + kiln_sog_counts_ram(); }
static uint64_t count_ram(const kiln_export *e, uint64_t unit) { return kiln_export_rows_ram(e, unit, COLOURS) + counts_bytes(); }

static kiln_status count_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_export_rows rows;
    kiln_sog_counts c = {0};
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_export_rows_read(x, unit, COLOURS, &rows, err));
    KILN_GO(KILN_ALLOC(&c.books, KILN_SOG_BOOKS, "counts of values", err));
    kiln_sog_count(&rows, kiln_sog_d(x->e), &c);
    KILN_GO(kiln_sog_counts_put(x, unit, &c, err));
done:
    free(c.books);
    kiln_export_rows_release(&rows);
    return st;
}

static uint64_t books_ram(const kiln_export *e, uint64_t unit)
{
    (void)e, (void)unit;
    return counts_bytes() + kiln_codebook_work_bytes() + sizeof(kiln_sog_plan) * 2;
}

static uint64_t books(const kiln_export *e) { return kiln_sog_d(e) ? KILN_SOG_BOOKS : KILN_SOG_SHN_BOOK; }

/* One of the three; the others of its plan are as they were. */
static kiln_status make_book(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_sog_plan k = *plan_of(x->e);
    kiln_sog_counts c = {0};
    void *work = NULL;
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC(&c.books, KILN_SOG_BOOKS, "counts of values", err));
    KILN_GO(kiln_alloc_unset(&work, kiln_codebook_work_bytes(), 1, "codebooks", err));
    for (uint64_t i = 0; i < x->e->n_chunks; i++) KILN_GO(kiln_sog_counts_add(x, i, &c, err));
    if (unit == KILN_SOG_SCALES_BOOK) {
        kiln_codebook_make(&c.books[unit], KILN_CODEBOOK_RARE, work, k.text.log_scales);
    } else if (unit == KILN_SOG_SH0_BOOK) {
        kiln_codebook_make(&c.books[unit], KILN_CODEBOOK_RARE, work, k.text.sh0);
    } else {
        kiln_codebook_make(&c.books[unit], KILN_CODEBOOK_ALL, work, k.text.shN);
        kiln_sog_choose_numbers(&c, &k);
    }
    KILN_GO(kiln_export_result(x, &k, sizeof k, err));
done:
    free(work);
    free(c.books);
    return st;
}

static kiln_status take_book(kiln_export_parent *p, uint64_t unit, const void *result, size_t bytes, kiln_error *err)
{
    kiln_sog_plan k, *to = plan_to_fill(p);
    if (bytes != sizeof k) return kiln_fail(err, KILN_E_BUG, "a plan of %zu bytes", bytes);
    memcpy(&k, result, sizeof k);
    if (unit == KILN_SOG_SCALES_BOOK) memcpy(to->text.log_scales, k.text.log_scales, sizeof k.text.log_scales);
    if (unit == KILN_SOG_SH0_BOOK) memcpy(to->text.sh0, k.text.sh0, sizeof k.text.sh0);
    if (unit != KILN_SOG_SHN_BOOK) return KILN_OK;
    memcpy(to->text.shN, k.text.shN, sizeof k.text.shN);
    memcpy(to->levels, k.levels, sizeof k.levels);
    to->few = k.few;
    to->scale = k.scale;
    return KILN_OK;
}

static kiln_status take_plan(kiln_export_parent *p, uint64_t unit, const void *result, size_t bytes, kiln_error *err)
{
    (void)unit;
    if (bytes != sizeof(kiln_sog_plan) || p->plan->size != bytes) return kiln_fail(err, KILN_E_BUG, "a plan of %zu bytes", bytes);
    memcpy(p->plan->data, result, bytes);
    return KILN_OK;
}

/* ---- round 2: codes --------------------------------------------------------------------------------------------------------- */

static uint64_t code_ram(const kiln_export *e, uint64_t unit)
{
    return kiln_export_rows_ram(e, unit, KILN_ROWS_SPLAT) + e->chunks[unit].n * (KILN_SOG_CODES + 4 * kiln_sog_d(e));
}

static kiln_status put_codes(kiln_export_worker *x, const kiln_export_rows *rows, kiln_error *err)
{
    const kiln_sog_text *t = &plan_of(x->e)->text;
    const uint64_t n = rows->n, at = kiln_sog_at(x->e, KILN_SOG_AT_CODES);
    uint8_t *codes = NULL;
    kiln_status st = KILN_OK;
    KILN_TRY(KILN_ALLOC_UNSET(&codes, KILN_SOG_CODES * n, "codes", err));
    uint8_t *of[KILN_SOG_LABELS];
    for (uint32_t i = 0; i < KILN_SOG_LABELS; i++) of[i] = codes + kiln_sog_pictures[i].first * n;
    kiln_sog_encode_means(n, rows->means, n, x->e->origin, t->mins, t->maxs, of[KILN_SOG_MEANS_L], of[KILN_SOG_MEANS_U]);
    kiln_codebook_codes(t->log_scales, rows->log_scales, 3 * n, of[KILN_SOG_SCALES]);
    kiln_sog_encode_quats(n, rows->quats, n, of[KILN_SOG_QUATS]);
    kiln_codebook_codes(t->sh0, rows->sh0, 3 * n, of[KILN_SOG_SH0]);
    kiln_sog_encode_opacities(n, rows->opacity_logits, of[KILN_SOG_SH0] + 3 * n);
    for (uint64_t c = 0; c < KILN_SOG_CODES; c++)
        KILN_GO(kiln_export_scratch_write(x, codes + c * n, n, at + c * x->e->n_rows + rows->first, err));
done:
    free(codes);
    return st;
}

/* The rows of the chunk that are in the sample lie beside each other there. */
static kiln_status put_sample(kiln_export_worker *x, const kiln_export_rows *rows, const int16_t *numbers, kiln_error *err)
{
    const uint64_t d = kiln_sog_d(x->e), from = kiln_sog_sample_from(x->e, rows->first),
                   end = kiln_sog_sample_from(x->e, rows->first + rows->n);
    int16_t *sample = NULL;
    KILN_TRY(KILN_ALLOC_UNSET(&sample, (end - from) * d, "a sample", err));
    for (uint64_t j = from; j < end; j++)
        memcpy(sample + (j - from) * d, numbers + (kiln_sog_sample_row(x->e, j) - rows->first) * d, d * sizeof *sample);
    const kiln_status st = kiln_export_scratch_write(x, sample, (end - from) * d * sizeof *sample,
                                                     kiln_sog_at(x->e, KILN_SOG_AT_SAMPLE) + from * d * sizeof *sample, err);
    free(sample);
    return st;
}

static kiln_status put_numbers(kiln_export_worker *x, const kiln_export_rows *rows, kiln_error *err)
{
    const kiln_sog_plan *k = plan_of(x->e);
    const uint32_t d = kiln_sog_d(x->e);
    const uint64_t n = rows->n;
    int16_t *numbers = NULL;
    kiln_status st = KILN_OK;
    if (d == 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC_UNSET(&numbers, n * d, "coefficients", err));
    if (k->few)
        kiln_sog_encode_rows_levels(n, d, rows->shN, n, k->text.shN, k->levels, numbers);
    else
        x->counts[0] += kiln_sog_encode_rows_scaled(n, d, rows->shN, n, k->scale, numbers);
    KILN_GO(kiln_export_scratch_write(x, numbers, n * d * sizeof *numbers,
                                      kiln_sog_at(x->e, KILN_SOG_AT_ROWS) + rows->first * d * sizeof *numbers, err));
    KILN_GO(put_sample(x, rows, numbers, err));
done:
    free(numbers);
    return st;
}

static kiln_status code_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_export_rows rows;
    KILN_TRY(kiln_export_rows_read(x, unit, KILN_ROWS_SPLAT, &rows, err));
    kiln_status st = put_codes(x, &rows, err);
    if (st == KILN_OK) st = put_numbers(x, &rows, err);
    kiln_export_rows_release(&rows);
    return st;
}

/* ---- round 3: the palette --------------------------------------------------------------------------------------------------- */

static uint64_t one_if_degree(const kiln_export *e) { return kiln_sog_d(e) ? 1 : 0; }

typedef struct {
    int16_t *rows, *centroids;
    uint32_t *index;
    uint16_t *labels;
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
    free(a->labels);
    free(a->codes);
    free(a->book);
    free(a->work);
}

static uint32_t entries_of(const kiln_export *e) { return kiln_sog_entries(e->n_rows, plan_of(e)->few); }

static kiln_palette_train_args train_args(const kiln_export *e, const palette_arrays *a)
{
    return (kiln_palette_train_args){.n = kiln_sog_sample(e),
                                     .seed = KILN_SOG_SEED,
                                     .d = kiln_sog_d(e),
                                     .p = entries_of(e),
                                     .rows = a->rows,
                                     .centroids = a->centroids,
                                     .n_entries = (uint64_t *)(uintptr_t)&a->n_entries};
}

/* Work space of operations on the CPU; 0 where one is refused, which it says itself when it runs. */
static const int16_t no_rows[1]; /* measuring reads no array */
static int16_t no_entries[1];
static uint32_t no_index[1];
static uint16_t no_labels[1];

static uint64_t train_work(const kiln_export *e, unsigned threads)
{
    const palette_arrays a = {.rows = no_entries, .centroids = no_entries};
    const kiln_palette_train_args train = train_args(e, &a);
    const kiln_palette_index_args index = {.d = kiln_sog_d(e), .p = kiln_sog_p(e), .centroids = no_entries, .index = no_index};
    const kiln_exec cpu = {.device = -1, .threads = threads};
    size_t of_train = 0, of_index = 0;
    if (kiln_ops_cpu()->palette_train(&cpu, &train, NULL, &of_train, NULL) != KILN_OK) return 0;
    if (kiln_ops_cpu()->palette_index(&cpu, &index, NULL, &of_index, NULL) != KILN_OK) return 0;
    return kiln_max_u64(of_train, of_index);
}

static uint64_t palette_ram(const kiln_export *e, uint64_t unit)
{
    const uint64_t d = kiln_sog_d(e), p = kiln_sog_p(e), words = kiln_palette_index_words((uint32_t)p, (uint32_t)d);
    (void)unit;
    return 2 * d * kiln_sog_sample(e) + 3 * d * p + 4 * words + train_work(e, 1) + sizeof(kiln_codebook_counts) +
           kiln_codebook_work_bytes() + 2 * sizeof(kiln_sog_plan);
}

static uint64_t palette_ram_thread(const kiln_export *e, uint64_t unit)
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

static kiln_status put_palette(kiln_export_worker *x, palette_arrays *a, kiln_sog_plan *k, kiln_error *err)
{
    const uint32_t d = kiln_sog_d(x->e), p = k->text.palette;
    KILN_TRY(KILN_ALLOC_UNSET(&a->codes, (uint64_t)d * p, "a palette", err));
    KILN_TRY(KILN_ALLOC_UNSET(&a->index, kiln_palette_index_words(p, d), "the index of a palette", err));
    kiln_sog_encode_palette(p, d, k->levels, a->centroids, a->codes);
    const kiln_palette_index_args index = {.d = d, .p = p, .centroids = a->centroids, .index = a->index};
    KILN_TRY(KILN_WORK(x->w, palette_index, &index, err));
    KILN_TRY(kiln_export_scratch_write(x, a->codes, (uint64_t)d * p, kiln_sog_at(x->e, KILN_SOG_AT_PALETTE), err));
    KILN_TRY(kiln_export_scratch_write(x, a->centroids, (uint64_t)d * p * sizeof *a->centroids,
                                       kiln_sog_at(x->e, KILN_SOG_AT_CENTROIDS), err));
    return kiln_export_scratch_write(x, a->index, kiln_palette_index_words(p, d) * sizeof *a->index,
                                     kiln_sog_at(x->e, KILN_SOG_AT_INDEX), err);
}

static kiln_status make_palette(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const uint64_t d = kiln_sog_d(x->e), n = kiln_sog_sample(x->e);
    kiln_sog_plan k = *plan_of(x->e);
    palette_arrays a = {0};
    kiln_status st = KILN_OK;
    (void)unit;
    KILN_GO(KILN_ALLOC_UNSET(&a.rows, n * d, "a sample", err));
    KILN_GO(KILN_ALLOC_UNSET(&a.centroids, kiln_sog_p(x->e) * d, "a palette", err));
    KILN_GO(kiln_export_scratch_read(x, a.rows, n * d * sizeof *a.rows, kiln_sog_at(x->e, KILN_SOG_AT_SAMPLE), err));
    const kiln_palette_train_args args = train_args(x->e, &a);
    KILN_GO(KILN_WORK(x->w, palette_train, &args, err));
    k.text.palette = (uint32_t)a.n_entries;
    if (!k.few) KILN_GO(book_of_entries(&a, a.n_entries * d, &k, err));
    KILN_GO(put_palette(x, &a, &k, err));
    KILN_GO(kiln_export_result(x, &k, sizeof k, err));
done:
    release_palette(&a);
    return st;
}

/* ---- round 4: labels -------------------------------------------------------------------------------------------------------- */

static uint64_t chunks_if_degree(const kiln_export *e) { return kiln_sog_d(e) ? e->n_chunks : 0; }

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

static uint64_t label_ram(const kiln_export *e, uint64_t unit)
{
    const uint64_t d = kiln_sog_d(e), p = kiln_sog_p(e), n = e->chunks[unit].n;
    return n * (2 * d + 2 + 4) + 2 * p * d + 4 * kiln_palette_index_words((uint32_t)p, (uint32_t)d) + assign_work(e, n, 1);
}

static uint64_t label_ram_thread(const kiln_export *e, uint64_t unit)
{
    return assign_work(e, e->chunks[unit].n, 2) - assign_work(e, e->chunks[unit].n, 1);
}

static kiln_status label_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const kiln_export_chunk *chunk = &x->e->chunks[unit];
    const uint32_t d = kiln_sog_d(x->e), p = plan_of(x->e)->text.palette;
    const uint64_t n = chunk->n, words = kiln_palette_index_words(p, d);
    palette_arrays a = {0};
    uint32_t *distances = NULL;
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC_UNSET(&a.rows, n * d, "coefficients", err));
    KILN_GO(KILN_ALLOC_UNSET(&a.labels, n, "labels", err));
    KILN_GO(KILN_ALLOC_UNSET(&distances, n, "distances", err));
    KILN_GO(KILN_ALLOC_UNSET(&a.centroids, (uint64_t)p * d, "a palette", err));
    KILN_GO(KILN_ALLOC_UNSET(&a.index, words, "the index of a palette", err));
    KILN_GO(kiln_export_scratch_read(x, a.rows, n * d * sizeof *a.rows,
                                     kiln_sog_at(x->e, KILN_SOG_AT_ROWS) + chunk->first * d * sizeof *a.rows, err));
    KILN_GO(kiln_export_scratch_read(x, a.centroids, (uint64_t)p * d * sizeof *a.centroids,
                                     kiln_sog_at(x->e, KILN_SOG_AT_CENTROIDS), err));
    KILN_GO(kiln_export_scratch_read(x, a.index, words * sizeof *a.index, kiln_sog_at(x->e, KILN_SOG_AT_INDEX), err));
    const kiln_palette_assign_args args = {.n = n,
                                           .d = d,
                                           .p = p,
                                           .rows = a.rows,
                                           .centroids = a.centroids,
                                           .index = a.index,
                                           .labels = a.labels,
                                           .distances = distances};
    KILN_GO(KILN_WORK(x->w, palette_assign, &args, err));
    KILN_GO(kiln_export_scratch_write(x, a.labels, n * sizeof *a.labels,
                                      kiln_sog_at(x->e, KILN_SOG_AT_LABELS) + chunk->first * sizeof *a.labels, err));
done:
    free(distances);
    release_palette(&a);
    return st;
}

/* ---- round 5: images -------------------------------------------------------------------------------------------------------- */

enum { PIECE = 1 << 16 }; /* pixels whose codes are read at once */

static uint64_t pictures(const kiln_export *e) { return kiln_sog_n_pictures(degree_of(e)); }

static uint64_t picture_ram(const kiln_export *e, uint64_t unit)
{
    uint64_t width, height;
    kiln_sog_picture_size(e, (uint32_t)unit, &width, &height);
    return 4 * width * height + kiln_webp_encode_ram(width, height) + 8 * PIECE +
           (unit == KILN_SOG_PALETTE ? (uint64_t)kiln_sog_d(e) * kiln_sog_p(e) : 0);
}

/* The codes of rows [first, first + n), planes [channels][n]. */
static kiln_status read_codes(kiln_export_worker *x, uint32_t image, uint64_t first, uint64_t n, uint8_t *codes, kiln_error *err)
{
    const kiln_sog_picture *pic = &kiln_sog_pictures[image];
    if (image == KILN_SOG_LABELS) {
        uint8_t *labels = codes + 2 * n; /* little-endian, as everything here */
        KILN_TRY(kiln_export_scratch_read(x, labels, 2 * n, kiln_sog_at(x->e, KILN_SOG_AT_LABELS) + 2 * first, err));
        for (uint64_t i = 0; i < n; i++) {
            codes[i] = labels[2 * i];
            codes[n + i] = labels[2 * i + 1];
        }
        return KILN_OK;
    }
    for (uint64_t c = 0; c < pic->n; c++)
        KILN_TRY(kiln_export_scratch_read(x, codes + c * n, n,
                                          kiln_sog_at(x->e, KILN_SOG_AT_CODES) + (pic->first + c) * x->e->n_rows + first, err));
    return KILN_OK;
}

static kiln_status fill_rows(kiln_export_worker *x, uint32_t image, uint32_t *argb, uint64_t pixels, kiln_error *err)
{
    const uint32_t channels = kiln_sog_pictures[image].n;
    const uint64_t n = x->e->n_rows;
    uint8_t *codes = NULL;
    kiln_status st = KILN_OK;
    KILN_TRY(KILN_ALLOC_UNSET(&codes, 4 * PIECE, "codes", err));
    for (uint64_t at = 0; at < n; at += PIECE) {
        const uint64_t m = kiln_min_u64(PIECE, n - at);
        KILN_GO(read_codes(x, image, at, m, codes, err));
        kiln_sog_fill(channels, codes, m, argb + at);
    }
    for (uint64_t i = n; i < pixels; i++) argb[i] = channels > 3 ? 0 : 0xff000000u;
done:
    free(codes);
    return st;
}

static kiln_status fill_palette(kiln_export_worker *x, uint32_t *argb, kiln_error *err)
{
    const uint32_t p = plan_of(x->e)->text.palette, d = kiln_sog_d(x->e);
    uint8_t *codes = NULL;
    KILN_TRY(KILN_ALLOC_UNSET(&codes, (uint64_t)p * d, "a palette", err));
    const kiln_status st = kiln_export_scratch_read(x, codes, (uint64_t)p * d, kiln_sog_at(x->e, KILN_SOG_AT_PALETTE), err);
    if (st == KILN_OK) kiln_sog_fill_palette(p, degree_of(x->e), codes, argb);
    free(codes);
    return st;
}

static kiln_status encode_picture(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const uint32_t image = (uint32_t)unit;
    uint64_t width, height;
    uint32_t *argb = NULL;
    kiln_buffer webp = {0};
    kiln_status st = KILN_OK;
    if (image == KILN_SOG_PALETTE)
        kiln_sog_palette_size(plan_of(x->e)->text.palette, degree_of(x->e), &width, &height);
    else
        kiln_sog_image_size(x->e->n_rows, &width, &height);
    KILN_GO(KILN_ALLOC_UNSET(&argb, width * height, "an image", err));
    KILN_GO(image == KILN_SOG_PALETTE ? fill_palette(x, argb, err) : fill_rows(x, image, argb, width * height, err));
    KILN_GO(kiln_webp_encode(argb, width, height, &webp, err));
    if (webp.size > kiln_webp_bytes_max(width, height))
        KILN_GO(kiln_fail(err, KILN_E_BUG, "an image of %zu bytes, more than is left for it", webp.size));
    KILN_GO(kiln_export_scratch_write(x, webp.data, webp.size, kiln_sog_picture_at(x->e, image), err));
    const uint64_t webp_bytes = webp.size;
    KILN_GO(kiln_export_result(x, &webp_bytes, sizeof webp_bytes, err));
done:
    kiln_buffer_release(&webp);
    free(argb);
    return st;
}

static kiln_status take_picture(kiln_export_parent *p, uint64_t unit, const void *result, size_t bytes, kiln_error *err)
{
    uint64_t webp_bytes;
    if (bytes != sizeof webp_bytes || unit >= KILN_SOG_IMAGES)
        return kiln_fail(err, KILN_E_BUG, "the size of an image as %zu bytes", bytes);
    memcpy(&webp_bytes, result, sizeof webp_bytes);
    plan_to_fill(p)->bytes[unit] = webp_bytes;
    return KILN_OK;
}

/* ---- the files -------------------------------------------------------------------------------------------------------------- */

static uint64_t files_ram(const kiln_export *e, uint64_t unit)
{
    uint64_t most = 0;
    (void)unit;
    for (uint32_t i = 0; i < KILN_SOG_IMAGES; i++) most = kiln_max_u64(most, plan_of(e)->bytes[i]);
    return most + 2 * KILN_SOG_META_BYTES;
}

/* A file of the target. */
typedef kiln_status put_fn(void *to, const char *name, const void *data, uint64_t bytes, kiln_error *err);

/* meta.json, and the images out of scratch. */
static kiln_status put_files(kiln_export_worker *x, put_fn *put, void *to, kiln_error *err)
{
    const kiln_sog_plan *k = plan_of(x->e);
    kiln_buffer text = {0};
    unsigned char *image = NULL;
    kiln_status st = KILN_OK;
    KILN_GO(kiln_sog_meta_put(&k->text, &text, err));
    KILN_GO(put(to, META, text.data, text.size, err));
    for (uint32_t i = 0; i < pictures(x->e); i++) {
        free(image);
        image = NULL;
        KILN_GO(KILN_ALLOC_UNSET(&image, k->bytes[i], "an image", err));
        KILN_GO(kiln_export_scratch_read(x, image, k->bytes[i], kiln_sog_picture_at(x->e, i), err));
        KILN_GO(put(to, kiln_sog_pictures[i].file, image, k->bytes[i], err));
    }
done:
    free(image);
    kiln_buffer_release(&text);
    return st;
}

static kiln_status put_entry(void *to, const char *name, const void *data, uint64_t bytes, kiln_error *err)
{
    return kiln_zip_writer_add(to, name, data, bytes, err);
}

static kiln_status put_file(void *to, const char *name, const void *data, uint64_t bytes, kiln_error *err)
{
    const kiln_export_worker *x = to;
    char path[KILN_PATH_MAX];
    int fd = -1;
    KILN_TRY(kiln_path_join(path, sizeof path, x->e->temporary, name, err));
    KILN_TRY(kiln_file_create(path, &fd, err));
    kiln_status st = kiln_file_write_at(fd, path, 0, data, bytes, err);
    if (close(fd) != 0 && st == KILN_OK) st = kiln_file_write_failed(path, errno, err);
    return st;
}

/* meta.json names the images; how large they are it does not say. */
bool kiln_sog_complete(const char *target)
{
    static const char *const members[] = {"means", "scales", "quats", "sh0", "shN"};
    char path[KILN_PATH_MAX];
    unsigned char *text;
    size_t size, i;
    json_t *meta = NULL, *file;
    const char *why;
    if (kiln_path_join(path, sizeof path, target, META, NULL) != KILN_OK) return false;
    if (kiln_file_read(path, KILN_SOG_META_BYTES, &text, &size, NULL) != KILN_OK) return false;
    bool all = kiln_json_parse((const char *)text, size, 0, path, &meta, NULL, NULL) == KILN_OK && meta;
    free(text);
    for (size_t m = 0; all && m < sizeof members / sizeof *members; m++) {
        json_array_foreach(json_object_get(json_object_get(meta, members[m]), "files"), i, file)
        {
            const char *name = json_string_value(file);
            kiln_file_info info;
            all = all && name && kiln_name_is_safe(name, &why) &&
                  kiln_path_join(path, sizeof path, target, name, NULL) == KILN_OK && kiln_is_file(path) &&
                  kiln_file_stat(path, &info, NULL) == KILN_OK && info.size > 0;
        }
    }
    json_decref(meta);
    return all;
}

static bool is_ours(const char *name)
{
    bool found = strcmp(name, META) == 0;
    for (int i = 0; i < KILN_SOG_IMAGES; i++) found = found || strcmp(name, kiln_sog_pictures[i].file) == 0;
    return found;
}

static kiln_status write_files(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_zip_writer z;
    (void)unit;
    if (x->fd < 0) return put_files(x, put_file, x, err); /* a folder */
    kiln_zip_writer_init(&z, x->fd, x->e->temporary);
    KILN_TRY(put_files(x, put_entry, &z, err));
    return kiln_zip_writer_end(&z, err);
}

/* ---- all rounds -------------------------------------------------------------------------------------------------------------- */

/* What files_ram says is below that of the largest image, whose file is in memory when it is encoded. */
static uint64_t rounds_ram(const kiln_export *e)
{
    uint64_t most = books_ram(e, 0);
    if (kiln_sog_d(e)) most = kiln_max_u64(most, palette_ram(e, 0));
    for (uint64_t i = 0; i < e->n_chunks; i++) {
        most = kiln_max_u64(most, kiln_max_u64(count_ram(e, i), code_ram(e, i)));
        if (kiln_sog_d(e)) most = kiln_max_u64(most, label_ram(e, i));
    }
    for (uint64_t i = 0; i < pictures(e); i++) most = kiln_max_u64(most, picture_ram(e, i));
    return most;
}

/* Few values or many decide how large the palette is, and only the survey tells. */
uint64_t kiln_sog_foresee(const kiln_export *e)
{
    const kiln_sog_plan many = {.few = false}, few = {.few = true};
    kiln_export with = *e;
    with.plan_bytes = sizeof many;
    with.plan = &many;
    const uint64_t most = rounds_ram(&with);
    with.plan = &few;
    return kiln_max_u64(most, rounds_ram(&with)) + kiln_export_shared_ram(e, sizeof many);
}

const kiln_export_round kiln_sog_rounds[KILN_SOG_ROUNDS] = {
    {.what = "counting values", .ram = count_ram, .run = count_chunk},
    {.what = "codebooks", .units = books, .ram = books_ram, .run = make_book, .gather = take_book},
    {.what = "coding", .ram = code_ram, .run = code_chunk},
    {.what = "palette",
     .units = one_if_degree,
     .ram = palette_ram,
     .ram_thread = palette_ram_thread,
     .run = make_palette,
     .gather = take_plan,
     .computes = true},
    {.what = "labels",
     .units = chunks_if_degree,
     .ram = label_ram,
     .ram_thread = label_ram_thread,
     .run = label_chunk,
     .computes = true},
    {.what = "image", .units = pictures, .ram = picture_ram, .run = encode_picture, .gather = take_picture},
    {.what = "files", .units = kiln_export_one_unit, .ram = files_ram, .run = write_files},
};

const kiln_writer_functions kiln_writer_sog = {.place = KILN_PLACE_FILE,
                                               .reader = "sog",
                                               .scratch = true,
                                               .counts = kiln_sog_lost,
                                               .foresee = kiln_sog_foresee,
                                               .plan = kiln_sog_plan_archive,
                                               .rounds = kiln_sog_rounds,
                                               .n_rounds = KILN_SOG_ROUNDS};

const kiln_writer_functions kiln_writer_sog_folder = {.place = KILN_PLACE_FOLDER,
                                                      .reader = "sog",
                                                      .scratch = true,
                                                      .counts = kiln_sog_lost,
                                                      .foresee = kiln_sog_foresee,
                                                      .plan = plan,
                                                      .rounds = kiln_sog_rounds,
                                                      .n_rounds = KILN_SOG_ROUNDS,
                                                      .is_ours = is_ours,
                                                      .last_file = META,
                                                      .complete = kiln_sog_complete};
