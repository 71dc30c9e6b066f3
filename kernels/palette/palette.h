/* palette -- vector quantisation: a palette of at most 65,536 entries for rows of small integers,
 * and the entry of each row.
 *
 * Made for the spherical harmonics of SOG scenes: rows of 9, 24 or 45 values, which the caller has
 * scaled and rounded to -2047 .. 2047 (KILN_PALETTE_LIMIT). All arithmetic is in integers, so both
 * siblings give the same bits for any number of threads.
 *
 * palette_train -- finds the entries by k-means over a sample of the rows.
 *
 *   rows       [n][d]  i16  in   n at most KILN_PALETTE_ROWS_MAX, each value within the limit
 *   centroids  [p][d]  i16  out  entries 0 .. *n_entries - 1, zeros behind them
 *   n_entries  [1]     u64  out  the smaller of p and the number of different rows
 *
 * If at most p different rows are given, they are the entries. Else each entry is the rounded mean
 * of rows near it. Another seed gives another palette of about the same error.
 *
 * palette_index -- prepares the search, from the entries alone, which the caller may have changed
 * after training (SOG rounds them to 256 values: assigning to the rounded entries loses less).
 *
 *   centroids  [p][d]                           i16  in   p as left by training: without the zeros
 *                                                         behind the entries
 *   index      [kiln_palette_index_words(p, d)] u32  out  for palette_assign; the same on all
 *                                                         machines
 *
 * palette_assign -- finds an entry near each row. A row's label depends on that row, centroids and
 * index only, so rows may come in any number of calls.
 *
 *   rows       [n][d]  i16  in
 *   centroids  [p][d]  i16  in
 *   index      [...]   u32  in   as palette_index made it of these centroids
 *   labels     [n]     u16  out  below p; the nearest entry of those that the index offers
 *   distances  [n]     u32  out  squared distance to it; may be NULL
 *
 * A row that is equal to an entry always gets that entry, or the lowest that is equal to it:
 * distance 0. For others, the nearest of all entries is missed for some rows, by little; DESIGN.md
 * has figures.
 *
 * Work space, ownership, waiting: as in knn.h. Work is a few bytes a row for training, nothing a
 * row for the other two. KILN_E_INPUT: d is 0 or above KILN_PALETTE_VALUES_MAX, p is 0 or above
 * KILN_PALETTE_ENTRIES_MAX, n is too large; a value is beyond the limit; palette_assign: the index
 * is of other centroids' counts, or damaged.
 */
#ifndef KILN_KERNELS_PALETTE_H
#define KILN_KERNELS_PALETTE_H

#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"

#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

/* 48 squared differences of 4094 fit into 31 bits. */
enum {
    KILN_PALETTE_LIMIT = 2047,
    KILN_PALETTE_VALUES_MAX = 48,
    KILN_PALETTE_ENTRIES_MAX = 65536,
    KILN_PALETTE_ROWS_MAX = 1 << 20, /* of training; palette_assign: 2^32 - 2 */
};

typedef struct {
    uint64_t n, seed;
    uint32_t d, p;
    const int16_t *rows;
    int16_t *centroids;
    uint64_t *n_entries;
} kiln_palette_train_args;

typedef struct {
    uint32_t d, p;
    const int16_t *centroids;
    uint32_t *index;
} kiln_palette_index_args;

typedef struct {
    uint64_t n;
    uint32_t d, p;
    const int16_t *rows, *centroids;
    const uint32_t *index;
    uint16_t *labels;
    uint32_t *distances;
} kiln_palette_assign_args;

typedef kiln_status kiln_palette_train_fn(const kiln_exec *x, const kiln_palette_train_args *a,
                                          void *work, size_t *work_bytes, kiln_error *err);
typedef kiln_status kiln_palette_index_fn(const kiln_exec *x, const kiln_palette_index_args *a,
                                          void *work, size_t *work_bytes, kiln_error *err);
typedef kiln_status kiln_palette_assign_fn(const kiln_exec *x, const kiln_palette_assign_args *a,
                                           void *work, size_t *work_bytes, kiln_error *err);

/* What both siblings refuse: of n rows at most `most`. KILN_E_INPUT as above. */
kiln_status kiln_palette_check(const char *op, uint64_t n, uint64_t most, uint32_t d, uint32_t p,
                               kiln_error *err) KILN_MUST_CHECK;

/* Words of the index of p entries of d values: about half a megabyte for 65,536. */
uint64_t kiln_palette_index_words(uint32_t p, uint32_t d);

/* The arrays that they read and write, for kernels/arrays.h. */
#define KILN_ARRAYS_palette_train(A)         \
    A(IN, rows, a->n * a->d)                 \
    A(OUT, centroids, (uint64_t)a->p * a->d) \
    A(OUT, n_entries, 1)

#define KILN_ARRAYS_palette_index(A)        \
    A(IN, centroids, (uint64_t)a->p * a->d) \
    A(OUT, index, kiln_palette_index_words(a->p, a->d))

#define KILN_ARRAYS_palette_assign(A)                  \
    A(IN, rows, a->n * a->d)                           \
    A(IN, centroids, (uint64_t)a->p * a->d)            \
    A(IN, index, kiln_palette_index_words(a->p, a->d)) \
    A(OUT, labels, a->n)                               \
    A(OUT, distances, a->n)

KILN_C_END

#endif
