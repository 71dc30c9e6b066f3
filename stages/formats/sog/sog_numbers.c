/* sog_numbers -- see sog_numbers.h. */
#include "stages/formats/sog/sog_numbers.h"

#include "base/minmax.h"
#include "kernels/palette/palette.h"

#include <math.h>

void kiln_sog_count(const kiln_export_rows *rows, uint32_t d, kiln_sog_counts *c)
{
    kiln_codebook_add(&c->books[KILN_SOG_SCALES_BOOK], rows->log_scales, 3 * rows->n);
    kiln_codebook_add(&c->books[KILN_SOG_SH0_BOOK], rows->sh0, 3 * rows->n);
    kiln_codebook_add(&c->books[KILN_SOG_SHN_BOOK], rows->shN, d * rows->n);
    for (uint64_t i = 0; i < d * rows->n; i++) {
        const double v = fabs((double)rows->shN[i]);
        c->largest = v > c->largest ? v : c->largest;
        c->squares += v * v;
    }
}

void kiln_sog_choose_numbers(const kiln_sog_counts *c, kiln_sog_plan *k)
{
    const kiln_codebook_counts *book = &c->books[KILN_SOG_SHN_BOOK];
    const double usual = book->n ? sqrt(c->squares / (double)book->n) : 0,
                 most = fmin(c->largest, 32 * usual);
    k->few = book->n_values <= KILN_CODEBOOK_VALUES;
    k->scale = most > 0 ? KILN_PALETTE_LIMIT / most : 0;
    if (k->few) kiln_codebook_levels(k->text.shN, k->levels);
}

uint32_t kiln_sog_entries(uint64_t n, bool few)
{
    uint32_t p = KILN_SOG_PALETTE_MAX;
    if (few) return (uint32_t)kiln_min_u64(n, KILN_SOG_PALETTE_MAX);
    while (p > n) p /= 2;
    return p;
}

void kiln_sog_book_of_entries(const int16_t *centroids, uint64_t n, kiln_codebook_counts *book,
                              void *work, kiln_sog_plan *k)
{
    enum { PIECE = 4096 };
    float values[PIECE];
    for (uint64_t at = 0; at < n; at += PIECE) {
        const uint64_t m = kiln_min_u64(PIECE, n - at);
        for (uint64_t i = 0; i < m; i++)
            values[i] = (float)(k->scale > 0 ? centroids[at + i] / k->scale : 0);
        kiln_codebook_add(book, values, m);
    }
    kiln_codebook_make(book, KILN_CODEBOOK_ALL, work, k->text.shN);
    for (int i = 0; i < 256; i++)
        k->levels[i] = (int16_t)(int32_t)floor((double)k->text.shN[i] * k->scale + 0.5);
}
