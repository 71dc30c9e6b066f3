/* sog_numbers -- what the writers of SOG share: from values to codebooks, and to the whole numbers
 * that the palette is made of. */
#ifndef KILN_STAGES_FORMATS_SOG_SOG_NUMBERS_H
#define KILN_STAGES_FORMATS_SOG_SOG_NUMBERS_H

#include "stages/formats/rows.h"
#include "stages/formats/sog/sog_scratch.h"

#include <stdbool.h>
#include <stdint.h>

/* Adds log scales, sh0 and d values of shN a row to the counts. */
void kiln_sog_count(const kiln_export_rows *rows, uint32_t d, kiln_sog_counts *c);
/* Whole numbers for coefficients, behind the codebook of shN: the values themselves where there are
 * few, else in steps of their usual size / 64, so that what lies far outside costs the others no
 * precision. */
void kiln_sog_choose_numbers(const kiln_sog_counts *c, kiln_sog_plan *k);
/* Most entries of a palette of n rows: the largest power of two that is not above n, as
 * splat-transform has it. Where shN has few values, as in a scene that was read from SOG, there may
 * be an entry for each row, so that no palette of a small scene is lost. */
uint32_t kiln_sog_entries(uint64_t n, bool few);
/* The codebook of shN from n values of entries, and the levels of its values, where the rows had
 * not few values. book: all zero; work: kiln_codebook_work_bytes. */
void kiln_sog_book_of_entries(const int16_t *centroids, uint64_t n, kiln_codebook_counts *book,
                              void *work, kiln_sog_plan *k);

#endif
