/* sog_scratch -- what the rounds of the SOG writer (sog_write.c) hand to one another: a plan of a
 * few KiB, and the scratch file, in which every array has its place from the beginning. */
#ifndef KILN_STAGES_FORMATS_SOG_SOG_SCRATCH_H
#define KILN_STAGES_FORMATS_SOG_SOG_SCRATCH_H

#include "kernels/palette/codebook.h"
#include "stages/formats/sog/sog_layout.h"
#include "stages/formats/writer.h"

#include <stdbool.h>
#include <stdint.h>

/* Grows from round to round; the bytes of the plan. */
typedef struct {
    /* bounds at once, codebooks of log_scales and sh0 after round 1, of shN and the palette after
     * round 4 */
    kiln_sog_text text;
    bool few;                        /* shN has at most 256 different values, which are kept */
    double scale;                    /* else: whole number = round(value * scale) */
    int16_t levels[256];             /* the whole number of each value of the codebook of shN */
    uint64_t bytes[KILN_SOG_IMAGES]; /* of the WebP files, after the last round */
} kiln_sog_plan;

const kiln_sog_plan *kiln_sog_plan_of(const kiln_export *e);
kiln_sog_plan *kiln_sog_plan_to_fill(kiln_export_parent *p);

enum { KILN_SOG_SCALES_BOOK, KILN_SOG_SH0_BOOK, KILN_SOG_SHN_BOOK, KILN_SOG_BOOKS };
enum { KILN_SOG_SEED = 20 }; /* of the palette */

/* degree: of the harmonics that are written; d: values of a row of shN; p: most entries that a
 * palette may have, for which there are places; sample: rows that the palette is made of */
uint32_t kiln_sog_degree(const kiln_export *e);
uint32_t kiln_sog_d(const kiln_export *e);
uint32_t kiln_sog_p(const kiln_export *e);
uint64_t kiln_sog_sample(const kiln_export *e);
/* The rows [first, first + n) of the file have the sample's rows [*from, the same of first + n);
 * row j of the sample is this row.
 */
uint64_t kiln_sog_sample_from(const kiln_export *e, uint64_t first);
uint64_t kiln_sog_sample_row(const kiln_export *e, uint64_t j);

typedef enum {
    KILN_SOG_AT_CODES,     /* [17][n_rows] u8: planes of the images (kiln_sog_pictures) */
    KILN_SOG_AT_LABELS,    /* [n_rows] u16 */
    KILN_SOG_AT_ROWS,      /* [n_rows][d] i16 */
    KILN_SOG_AT_SAMPLE,    /* [sample][d] i16 */
    KILN_SOG_AT_PALETTE,   /* [d][p] u8 */
    KILN_SOG_AT_CENTROIDS, /* [p][d] i16 */
    KILN_SOG_AT_INDEX,     /* u32: of palette_index */
    KILN_SOG_AT_COUNTS,    /* [n_chunks][COUNTS_MAX]: what kiln_sog_counts_put wrote */
    KILN_SOG_AT_PICTURES,  /* [KILN_SOG_IMAGES][kiln_webp_bytes_max]: WebP files */
} kiln_sog_array;
uint64_t kiln_sog_at(const kiln_export *e, kiln_sog_array array);
uint64_t kiln_sog_picture_at(const kiln_export *e, uint32_t image);
void kiln_sog_picture_size(const kiln_export *e, uint32_t image, uint64_t *width, uint64_t *height);

/* Counts of a chunk, of which most bins are empty, as bytes: three books, and of shN the largest
 * size and the sum of squares. */
typedef struct {
    kiln_codebook_counts *books; /* [KILN_SOG_BOOKS] */
    double largest, squares;
} kiln_sog_counts;
/* Writes those of a chunk and sets the counts to zero. room: kiln_sog_counts_memory_bytes, of any
 * content. */
kiln_status kiln_sog_counts_put(kiln_export_worker *x, uint64_t unit, kiln_sog_counts *c,
                                void *memory, kiln_error *err) KILN_MUST_CHECK;
uint64_t kiln_sog_counts_memory_bytes(void);
/* Adds one book of those of a chunk, and of shN the largest size and the sum of squares. */
kiln_status kiln_sog_counts_add(kiln_export_worker *x, uint64_t unit, uint32_t book,
                                kiln_sog_counts *c, kiln_error *err) KILN_MUST_CHECK;
/* Host memory of either beside the counts. */
uint64_t kiln_sog_counts_ram(void);

#endif
