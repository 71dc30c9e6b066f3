/* codebook -- 256 values for many: the k-means of one dimension, for the codebooks of SOG scenes
 * (log scales, sh0, entries of the palette).
 *
 * Values come in pieces. Counts hold what the codebook needs in fixed memory (4 MiB): a histogram
 * of up to 65,536 bins, each at most 2^-12 of a value wide, with the mean of each bin. It also
 * keeps the different values themselves as long as there are at most 256. All of it is in integers,
 * so neither the order of the pieces nor that of merging shows. Host only.
 *
 *   kiln_codebook_counts *c = calloc(1, sizeof *c);       all zero: no values yet
 *   kiln_codebook_add(c, values, n); ...                  one after the other, or in several
 *                                                         structs that are merged
 *   kiln_codebook_make(c, KILN_CODEBOOK_RARE, work, codebook);
 *   kiln_codebook_codes(codebook, values, n, codes);
 */
#ifndef KILN_KERNELS_PALETTE_CODEBOOK_H
#define KILN_KERNELS_PALETTE_CODEBOOK_H

#include "base/extern_c.h"

#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

enum { KILN_CODEBOOK_VALUES = 256, KILN_CODEBOOK_BINS = 1 << 18 };

/* Plain bytes: may be sent to another process of this machine. */
typedef struct {
    uint64_t n;
    uint64_t count[KILN_CODEBOOK_BINS]; /* ascending by value: see codebook.c */
    uint64_t low[KILN_CODEBOOK_BINS];   /* sum of the places within the bin */
    /* different ones; KILN_CODEBOOK_VALUES + 1: too many, `values` is not used any more */
    uint32_t n_values;
    uint32_t keys[KILN_CODEBOOK_VALUES]; /* of the different values, ascending */
} kiln_codebook_counts;

/* Adds n finite values; -0 counts as 0. */
void kiln_codebook_add(kiln_codebook_counts *c, const float *values, uint64_t n);
void kiln_codebook_merge(kiln_codebook_counts *to, const kiln_codebook_counts *from);
/* The part of merging that is not the bins: how many values there are, and the different ones. For
 * a caller that keeps only the bins that are not empty, and adds count and low of each itself. */
void kiln_codebook_merge_values(kiln_codebook_counts *to, uint64_t n, uint32_t n_values,
                                const uint32_t keys[KILN_CODEBOOK_VALUES]);

/* Bytes of work that kiln_codebook_make needs. */
size_t kiln_codebook_work_bytes(void);
/* What a codebook is to be good at. */
typedef enum {
    /* the least sum of squared errors, a value being as important as any other */
    KILN_CODEBOOK_ALL,
    /* rare values count for more: 1,024 equal parts of the range each count by the cube root of how
     * many values they have. A scene's few largest scales cover most of a picture, and the least
     * error gives them one value */
    KILN_CODEBOOK_RARE,
} kiln_codebook_aim;

/* Makes 256 ascending values with a small sum of squared errors, the same on all machines. At most
 * 256 different values are kept exactly, the largest repeated behind them; without values all are
 * 0. */
void kiln_codebook_make(const kiln_codebook_counts *c, kiln_codebook_aim aim, void *work,
                        float codebook[KILN_CODEBOOK_VALUES]);

/* The nearest value of an ascending codebook for each value; of equally near ones the lowest. */
void kiln_codebook_codes(const float codebook[KILN_CODEBOOK_VALUES], const float *values,
                         uint64_t n, uint8_t *codes);

/* Whole numbers within KILN_PALETTE_LIMIT for the values of a codebook: in proportion to them,
 * moved where needed so that different values keep different numbers. Rows made of at most 256
 * different values, as a SOG file gives them, go through the palette without loss this way: value
 * -> level, palette, level -> value. */
void kiln_codebook_levels(const float codebook[KILN_CODEBOOK_VALUES],
                          int16_t levels[KILN_CODEBOOK_VALUES]);

KILN_C_END

#endif
