/* sog_scratch -- see the header. The scratch file has holes: a place is as long as what could ever
 * come there, and a disk stores only what was written. */
#include "stages/formats/sog/sog_scratch.h"

#include "base/checked.h"
#include "base/harmonics.h"
#include "base/minmax.h"
#include "kernels/palette/palette.h"
#include "stages/image/webp_encode.h"

#include <stdlib.h>
#include <string.h>

/* ---- places ---------------------------------------------------------------------------------- */

/* A bin that is not empty, as it lies in scratch. */
typedef struct {
    uint32_t bin, count;
    uint64_t low;
} full_bin;

typedef struct {
    uint64_t n;
    uint32_t n_values, n_bins;
    uint32_t keys[KILN_CODEBOOK_VALUES];
} book_head;

typedef struct {
    double largest, squares;
    book_head books[KILN_SOG_BOOKS]; /* the bins of all books follow */
} counts_head;

static const uint64_t BINS_MAX = (uint64_t)KILN_SOG_BOOKS * KILN_CODEBOOK_BINS;
static const uint64_t COUNTS_MAX =
    sizeof(counts_head) + (uint64_t)KILN_SOG_BOOKS * KILN_CODEBOOK_BINS * sizeof(full_bin);

const kiln_sog_plan *kiln_sog_plan_of(const kiln_export *e) { return e->plan; }

kiln_sog_plan *kiln_sog_plan_to_fill(kiln_export_parent *p)
{
    return (kiln_sog_plan *)(void *)p->plan->data;
}

uint32_t kiln_sog_degree(const kiln_export *e)
{
    return kiln_export_degree(e, KILN_SOG_DEGREE_MAX);
}

uint32_t kiln_sog_d(const kiln_export *e) { return kiln_sh_components(kiln_sog_degree(e)); }

uint32_t kiln_sog_p(const kiln_export *e)
{
    return (uint32_t)kiln_min_u64(e->n_rows, KILN_SOG_PALETTE_MAX);
}

uint64_t kiln_sog_sample(const kiln_export *e)
{
    return kiln_min_u64(e->n_rows, KILN_PALETTE_ROWS_MAX);
}

/* Rows in equal steps: row j of the sample is floor(j n_rows / sample). 2^20 times a count below
 * 2^32 fits. */
uint64_t kiln_sog_sample_row(const kiln_export *e, uint64_t j)
{
    return j * e->n_rows / kiln_sog_sample(e);
}
uint64_t kiln_sog_sample_from(const kiln_export *e, uint64_t first)
{
    return kiln_div_up(first * kiln_sog_sample(e), e->n_rows);
}

void kiln_sog_picture_size(const kiln_export *e, uint32_t image, uint64_t *width, uint64_t *height)
{
    if (image == KILN_SOG_PALETTE)
        kiln_sog_palette_size(kiln_sog_p(e), kiln_export_degree(e, KILN_SOG_DEGREE_MAX), width,
                              height);
    else
        kiln_sog_image_size(e->n_rows, width, height);
}

uint64_t kiln_sog_at(const kiln_export *e, kiln_sog_array array)
{
    const uint64_t n = e->n_rows, d = kiln_sog_d(e), p = kiln_sog_p(e);
    const uint64_t sizes[KILN_SOG_AT_PICTURES] = {
        [KILN_SOG_AT_CODES] = KILN_SOG_CODES * n,
        [KILN_SOG_AT_LABELS] = 2 * n,
        [KILN_SOG_AT_ROWS] = 2 * d * n,
        [KILN_SOG_AT_SAMPLE] = 2 * d * kiln_sog_sample(e),
        [KILN_SOG_AT_PALETTE] = d * p,
        [KILN_SOG_AT_CENTROIDS] = 2 * d * p,
        [KILN_SOG_AT_INDEX] = d ? 4 * kiln_palette_index_words((uint32_t)p, (uint32_t)d) : 0,
        [KILN_SOG_AT_COUNTS] = e->n_chunks * COUNTS_MAX,
    };
    uint64_t at = 0;
    for (int i = 0; i < (int)array; i++) at += (sizes[i] + 4095) / 4096 * 4096;
    return at;
}

uint64_t kiln_sog_picture_at(const kiln_export *e, uint32_t image)
{
    uint64_t at = kiln_sog_at(e, KILN_SOG_AT_PICTURES);
    for (uint32_t i = 0; i < image; i++) {
        uint64_t width, height;
        kiln_sog_picture_size(e, i, &width, &height);
        at += kiln_webp_bytes_max(width, height);
    }
    return at;
}

/* ---- counts ---------------------------------------------------------------------------------- */

uint64_t kiln_sog_counts_ram(void) { return COUNTS_MAX + sizeof(kiln_codebook_counts); }

/* Bins that are not empty; they are set to zero. */
static uint64_t take_bins(kiln_codebook_counts *c, book_head *head, full_bin *out)
{
    *head = (book_head){.n = c->n, .n_values = c->n_values};
    memcpy(head->keys, c->keys, sizeof head->keys);
    for (uint32_t b = 0; b < KILN_CODEBOOK_BINS; b++) {
        if (c->count[b] == 0) continue;
        out[head->n_bins++] = (full_bin){b, (uint32_t)c->count[b], c->low[b]};
        c->count[b] = c->low[b] = 0;
    }
    c->n = c->n_values = 0;
    return head->n_bins;
}

uint64_t kiln_sog_counts_memory_bytes(void) { return BINS_MAX * sizeof(full_bin); }

kiln_status kiln_sog_counts_put(kiln_export_worker *x, uint64_t unit, kiln_sog_counts *c,
                                void *memory, kiln_error *err)
{
    const uint64_t at = kiln_sog_at(x->e, KILN_SOG_AT_COUNTS) + unit * COUNTS_MAX;
    counts_head head = {.largest = c->largest, .squares = c->squares};
    full_bin *const bins = memory;
    uint64_t n = 0;
    for (int b = 0; b < KILN_SOG_BOOKS; b++) n += take_bins(&c->books[b], &head.books[b], bins + n);
    c->largest = c->squares = 0;
    KILN_TRY(kiln_export_scratch_write(x, &head, sizeof head, at, err));
    return kiln_export_scratch_write(x, bins, n * sizeof *bins, at + sizeof head, err);
}

/* Where the bins of a book begin among those of all. */
static kiln_status find_bins(const counts_head *head, uint32_t book, uint64_t *first,
                             kiln_error *err)
{
    uint64_t n = 0;
    for (uint32_t b = 0; b < KILN_SOG_BOOKS; b++) {
        if (b == book) *first = n;
        n += head->books[b].n_bins;
    }
    return n <= BINS_MAX ? KILN_OK
                         : kiln_fail(err, KILN_E_BUG, "counts of %llu bins in scratch",
                                     (unsigned long long)n);
}

kiln_status kiln_sog_counts_add(kiln_export_worker *x, uint64_t unit, uint32_t book,
                                kiln_sog_counts *c, kiln_error *err)
{
    const uint64_t at = kiln_sog_at(x->e, KILN_SOG_AT_COUNTS) + unit * COUNTS_MAX;
    kiln_status st = KILN_OK;
    full_bin *bins = NULL;
    counts_head head;
    uint64_t first = 0;
    KILN_TRY(kiln_export_scratch_read(x, &head, sizeof head, at, err));
    KILN_TRY(find_bins(&head, book, &first, err));
    const book_head *const from = &head.books[book];
    kiln_codebook_counts *const to = &c->books[book];
    KILN_GO(KILN_ALLOC_UNSET(&bins, from->n_bins, "counts of values", err));
    KILN_GO(kiln_export_scratch_read(x, bins, from->n_bins * sizeof *bins,
                                     at + sizeof head + first * sizeof *bins, err));
    c->largest = head.largest > c->largest ? head.largest : c->largest;
    c->squares += head.squares;
    for (uint32_t i = 0; i < from->n_bins; i++) {
        /* scratch is our own; a bit that flipped writes nowhere else */
        const uint32_t bin = bins[i].bin % KILN_CODEBOOK_BINS;
        to->count[bin] += bins[i].count;
        to->low[bin] += bins[i].low;
    }
    kiln_codebook_merge_values(to, from->n, from->n_values, from->keys);
done:
    free(bins);
    return st;
}
