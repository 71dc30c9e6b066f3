/* sog_write -- SOG of PlayCanvas, version 2, as a folder or stored in a ZIP archive (sog.h).
 *
 *   0  chunks    counts of log scales, colours and coefficients, from which
 *   1  one unit  makes the codebooks
 *   2  chunks    rows become codes, at their places in scratch; coefficients become rows of whole
 *                numbers, some of them the sample
 *   3  images    an image a unit: its codes from scratch, encoded, back to scratch; those that need
 *                no palette, where 4 to 6 are on GPUs and this round goes on beside them
 *   4  one unit  the palette of the sample, and its codebook
 *   5  chunks    the entry of each row
 *   6  images    as in 3: all that are left
 *   7  one unit  puts the files together
 *
 * Memory is that of a chunk or of the sample, and in rounds 3 and 6 that of an image with what
 * libwebp takes for it: there are no parts of an image in WebP.
 */
#include "stages/formats/float_places.h"
#include "stages/formats/rows.h"
#include "stages/formats/sog/sog_encode.h"
#include "stages/formats/sog/sog_files.h"
#include "stages/formats/sog/sog_numbers.h"
#include "stages/formats/sog/sog_palette.h"
#include "stages/formats/sog/sog_rounds.h"
#include "stages/formats/sog/sog_scratch.h"
#include "stages/formats/writer.h"
#include "stages/image/webp_encode.h"

#include "base/minmax.h"

#include <stdlib.h>
#include <string.h>

enum { COLOURS = KILN_ROWS_LOG_SCALES | KILN_ROWS_SH0 | KILN_ROWS_SHN };
const kiln_export_count kiln_sog_lost[] = {
    {"coefficient was clamped to 32 times its usual size",
     "coefficients were clamped to 32 times their usual size"},
    {NULL, NULL}};

/* ---- before anything is written -------------------------------------------------------------- */

static kiln_status check_sizes(const kiln_export *e, kiln_error *err)
{
    uint64_t width, height;
    kiln_sog_image_size(e->n_rows, &width, &height);
    if (width > KILN_WEBP_SIDE_MAX || height > KILN_WEBP_SIDE_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "%llu Gaussians take pictures of %llu x %llu pixels, and WebP has at most "
                         "%d a side; write fewer (--chunks, "
                         "--filter-box), or several files",
                         (unsigned long long)e->n_rows, (unsigned long long)width,
                         (unsigned long long)height, KILN_WEBP_SIDE_MAX);
    return KILN_OK;
}

static kiln_status take_bounds(const kiln_export *e, kiln_sog_text *t, kiln_error *err)
{
    for (int a = 0; a < 3; a++) {
        const double lo = (double)e->survey.means[a].lo + e->origin[a],
                     hi = (double)e->survey.means[a].hi + e->origin[a];
        t->mins[a] = kiln_sog_position_log(lo);
        t->maxs[a] = kiln_sog_position_log(hi);
        if (t->mins[a] < -KILN_SOG_POSITION_LOG_MAX || t->maxs[a] > KILN_SOG_POSITION_LOG_MAX)
            return kiln_fail(err, KILN_E_INPUT,
                             "positions reach from %g to %g along %c; SOG holds them up to 5.5e34, "
                             "and nothing precisely there",
                             lo, hi, 'x' + a);
    }
    return KILN_OK;
}

static kiln_status plan_sog(kiln_export_parent *p, kiln_error *err)
{
    kiln_sog_plan k = {.text = {.n = p->e->n_rows,
                                .degree = kiln_sog_degree(p->e),
                                .antialiased = kiln_export_scene(p->e)->antialiased}};
    KILN_TRY(kiln_export_is_2dgs(p->e, &k.text.is_2dgs, err));
    KILN_TRY(check_sizes(p->e, err));
    KILN_TRY(take_bounds(p->e, &k.text, err));
    if (p->e->sh_degree > KILN_SOG_DEGREE_MAX)
        KILN_TRY(kiln_export_note(p, err, "SOG holds no spherical harmonics above degree 3"));
    KILN_TRY(kiln_float_places_note(p, err));
    p->plan->size = 0;
    return kiln_buffer_put(p->plan, &k, sizeof k, err);
}

/* What an archive has of a row at most in scenes of any kind that were measured, 15 bytes and 2 for
 * the label: noise does not pack.
 */
uint64_t kiln_sog_archive_bytes(const kiln_export *e)
{
    return e->n_rows * (e->sh_degree ? 17 : 15);
}

kiln_status kiln_sog_plan_archive(kiln_export_parent *p, kiln_error *err)
{
    const uint64_t bytes = kiln_sog_archive_bytes(p->e);
    KILN_TRY(check_sizes(p->e, err));
    if (bytes >= UINT32_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "%llu Gaussians make a ZIP archive of about %llu MiB, and one that all "
                         "readers take is below 4 GiB; write "
                         "--format sog-folder",
                         (unsigned long long)p->e->n_rows, (unsigned long long)(bytes >> 20));
    return plan_sog(p, err);
}

/* ---- rounds 0 and 1: codebooks --------------------------------------------------------------- */

static uint64_t counts_bytes(void)
{
    return KILN_SOG_BOOKS * sizeof(kiln_codebook_counts) + kiln_sog_counts_ram();
}
static uint64_t count_ram(const kiln_export *e, uint64_t unit)
{
    return kiln_export_rows_ram(e, unit, COLOURS) + counts_bytes();
}

/* A worker's counts, which are zero between two units, and room to put them: kept until the round
 * ends, because most of a small chunk's time would be that of their 24 MiB of new pages. */
static kiln_status find_counts(kiln_export_worker *x, kiln_sog_counts *c, void **memory,
                               kiln_error *err)
{
    const uint64_t bytes = KILN_SOG_BOOKS * sizeof *c->books;
    if (!x->own)
        KILN_TRY(kiln_alloc(&x->own, bytes + kiln_sog_counts_memory_bytes(), 1, "counts of values",
                            err));
    *c = (kiln_sog_counts){.books = x->own};
    *memory = (char *)x->own + bytes;
    return KILN_OK;
}

static kiln_status count_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_export_rows rows;
    kiln_sog_counts c;
    void *memory;
    KILN_TRY(kiln_export_rows_read(x, unit, COLOURS, &rows, err));
    kiln_status st = find_counts(x, &c, &memory, err);
    if (st == KILN_OK) kiln_sog_count(&rows, kiln_sog_d(x->e), &c);
    if (st == KILN_OK) st = kiln_sog_counts_put(x, unit, &c, memory, err);
    kiln_export_rows_release(&rows);
    return st;
}

static uint64_t books_ram(const kiln_export *e, uint64_t unit)
{
    (void)e, (void)unit;
    return counts_bytes() + kiln_codebook_work_bytes() + sizeof(kiln_sog_plan) * 2;
}

static uint64_t book_units(const kiln_export *e)
{
    return kiln_sog_d(e) ? KILN_SOG_BOOKS : KILN_SOG_SHN_BOOK;
}

/* One of the three; the others of its plan are as they were. */
static kiln_status make_book(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_sog_plan k = *kiln_sog_plan_of(x->e);
    kiln_sog_counts c = {0};
    void *work = NULL;
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC(&c.books, KILN_SOG_BOOKS, "counts of values", err));
    KILN_GO(kiln_alloc_unset(&work, kiln_codebook_work_bytes(), 1, "codebooks", err));
    for (uint64_t i = 0; i < x->e->n_chunks; i++)
        KILN_GO(kiln_sog_counts_add(x, i, (uint32_t)unit, &c, err));
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

static kiln_status take_book(kiln_export_parent *p, uint64_t unit, const void *result, size_t bytes,
                             kiln_error *err)
{
    kiln_sog_plan k, *to = kiln_sog_plan_to_fill(p);
    if (bytes != sizeof k) return kiln_fail(err, KILN_E_BUG, "a plan of %zu bytes", bytes);
    memcpy(&k, result, sizeof k);
    if (unit == KILN_SOG_SCALES_BOOK)
        memcpy(to->text.log_scales, k.text.log_scales, sizeof k.text.log_scales);
    if (unit == KILN_SOG_SH0_BOOK) memcpy(to->text.sh0, k.text.sh0, sizeof k.text.sh0);
    if (unit != KILN_SOG_SHN_BOOK) return KILN_OK;
    memcpy(to->text.shN, k.text.shN, sizeof k.text.shN);
    memcpy(to->levels, k.levels, sizeof k.levels);
    to->few = k.few;
    to->scale = k.scale;
    return KILN_OK;
}

static kiln_status take_plan(kiln_export_parent *p, uint64_t unit, const void *result, size_t bytes,
                             kiln_error *err)
{
    (void)unit;
    if (bytes != sizeof(kiln_sog_plan) || p->plan->size != bytes)
        return kiln_fail(err, KILN_E_BUG, "a plan of %zu bytes", bytes);
    memcpy(p->plan->data, result, bytes);
    return KILN_OK;
}

/* ---- round 2: codes -------------------------------------------------------------------------- */

static uint64_t code_ram(const kiln_export *e, uint64_t unit)
{
    return kiln_export_rows_ram(e, unit, KILN_ROWS_SPLAT) +
           e->chunks[unit].n * (KILN_SOG_CODES + 4 * kiln_sog_d(e));
}

static kiln_status put_codes(kiln_export_worker *x, const kiln_export_rows *rows, kiln_error *err)
{
    const kiln_sog_text *t = &kiln_sog_plan_of(x->e)->text;
    const uint64_t n = rows->n, at = kiln_sog_at(x->e, KILN_SOG_AT_CODES);
    uint8_t *codes = NULL;
    kiln_status st = KILN_OK;
    KILN_TRY(KILN_ALLOC_UNSET(&codes, KILN_SOG_CODES * n, "codes", err));
    uint8_t *of[KILN_SOG_LABELS];
    for (uint32_t i = 0; i < KILN_SOG_LABELS; i++) of[i] = codes + kiln_sog_pictures[i].first * n;
    kiln_sog_encode_means(n, rows->means, x->e->origin, t->mins, t->maxs, of[KILN_SOG_MEANS_L],
                          of[KILN_SOG_MEANS_U]);
    kiln_codebook_codes(t->log_scales, rows->log_scales, 3 * n, of[KILN_SOG_SCALES]);
    kiln_sog_encode_quats(n, rows->quats, of[KILN_SOG_QUATS]);
    kiln_codebook_codes(t->sh0, rows->sh0, 3 * n, of[KILN_SOG_SH0]);
    kiln_sog_encode_opacities(n, rows->opacity_logits, of[KILN_SOG_SH0] + 3 * n);
    for (uint64_t c = 0; c < KILN_SOG_CODES; c++)
        KILN_GO(kiln_export_scratch_write(x, codes + c * n, n, at + c * x->e->n_rows + rows->first,
                                          err));
done:
    free(codes);
    return st;
}

/* The rows of the chunk that are in the sample lie beside each other there. */
static kiln_status put_sample(kiln_export_worker *x, const kiln_export_rows *rows,
                              const int16_t *numbers, kiln_error *err)
{
    const uint64_t d = kiln_sog_d(x->e), from = kiln_sog_sample_from(x->e, rows->first),
                   end = kiln_sog_sample_from(x->e, rows->first + rows->n);
    int16_t *sample = NULL;
    KILN_TRY(KILN_ALLOC_UNSET(&sample, (end - from) * d, "a sample", err));
    for (uint64_t j = from; j < end; j++)
        memcpy(sample + (j - from) * d, numbers + (kiln_sog_sample_row(x->e, j) - rows->first) * d,
               d * sizeof *sample);
    const kiln_status st = kiln_export_scratch_write(
        x, sample, (end - from) * d * sizeof *sample,
        kiln_sog_at(x->e, KILN_SOG_AT_SAMPLE) + from * d * sizeof *sample, err);
    free(sample);
    return st;
}

static kiln_status put_numbers(kiln_export_worker *x, const kiln_export_rows *rows, kiln_error *err)
{
    const kiln_sog_plan *k = kiln_sog_plan_of(x->e);
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
    KILN_GO(kiln_export_scratch_write(
        x, numbers, n * d * sizeof *numbers,
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

/* ---- all rounds ------------------------------------------------------------------------------ */

static uint64_t one_if_degree(const kiln_export *e) { return kiln_sog_d(e) ? 1 : 0; }

static uint64_t chunks_if_degree(const kiln_export *e) { return kiln_sog_d(e) ? e->n_chunks : 0; }

/* Images of round 3, the first in the order of kiln_sog_pictures; the others are those of round
 * 6. */
static uint64_t images_beside(const kiln_export *e)
{
    return e->apart && kiln_sog_d(e) ? KILN_SOG_LABELS : 0;
}

static uint64_t images_left(const kiln_export *e) { return kiln_sog_images(e) - images_beside(e); }

static uint64_t left_ram(const kiln_export *e, uint64_t unit)
{
    return kiln_sog_image_ram(e, images_beside(e) + unit);
}

static uint64_t left_cost(const kiln_export *e, uint64_t unit)
{
    return kiln_sog_image_cost(e, images_beside(e) + unit);
}

static kiln_status encode_left(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    return kiln_sog_image_encode(x, images_beside(x->e) + unit, err);
}

static kiln_status take_left(kiln_export_parent *p, uint64_t unit, const void *result, size_t bytes,
                             kiln_error *err)
{
    return kiln_sog_image_take(p, images_beside(p->e) + unit, result, bytes, err);
}

/* What kiln_sog_files_ram says is below that of the largest image, whose file is in memory when it
 * is encoded. */
static uint64_t rounds_ram(const kiln_export *e)
{
    uint64_t most = books_ram(e, 0);
    if (kiln_sog_d(e)) most = kiln_max_u64(most, kiln_sog_palette_ram(e, 0));
    for (uint64_t i = 0; i < e->n_chunks; i++) {
        most = kiln_max_u64(most, kiln_max_u64(count_ram(e, i), code_ram(e, i)));
        if (kiln_sog_d(e)) most = kiln_max_u64(most, kiln_sog_label_ram(e, i));
    }
    for (uint64_t i = 0; i < kiln_sog_images(e); i++)
        most = kiln_max_u64(most, kiln_sog_image_ram(e, i));
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
    {.what = "codebooks",
     .units = book_units,
     .ram = books_ram,
     .run = make_book,
     .gather = take_book},
    {.what = "coding", .ram = code_ram, .run = code_chunk},
    {.what = "image beside",
     .units = images_beside,
     .ram = kiln_sog_image_ram,
     .cost = kiln_sog_image_cost,
     .run = kiln_sog_image_encode,
     .gather = kiln_sog_image_take,
     .beside = true},
    {.what = "palette",
     .units = one_if_degree,
     .ram = kiln_sog_palette_ram,
     .ram_thread = kiln_sog_palette_ram_thread,
     .run = kiln_sog_palette_make,
     .gather = take_plan,
     .computes = true},
    {.what = "labels",
     .units = chunks_if_degree,
     .ram = kiln_sog_label_ram,
     .ram_thread = kiln_sog_label_ram_thread,
     .run = kiln_sog_label_chunk,
     .computes = true},
    {.what = "image",
     .units = images_left,
     .ram = left_ram,
     .cost = left_cost,
     .run = encode_left,
     .gather = take_left,
     .stays = true},
    {.what = "files",
     .units = kiln_export_one_unit,
     .ram = kiln_sog_files_ram,
     .run = kiln_sog_files_write},
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
                                                      .plan = plan_sog,
                                                      .rounds = kiln_sog_rounds,
                                                      .n_rounds = KILN_SOG_ROUNDS,
                                                      .is_ours = kiln_sog_is_ours,
                                                      .last_file = KILN_SOG_META,
                                                      .complete = kiln_sog_complete};
