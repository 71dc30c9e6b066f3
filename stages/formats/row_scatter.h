/* row_scatter -- rows of a fixed size into the order of their source rows.
 *
 * A chunk of a spatial layer holds rows from all over the source. Writing each to its place in the
 * file takes a system call and a touched page a row: 50 M rows took three times the disk's own
 * time. So the file is cut into buckets of source rows:
 *   1. each chunk's rows go to scratch in the order of their source rows, in one piece, with a list
 *      of where each bucket begins;
 *   2. each bucket is put together from its pieces of all chunks, window after window.
 * Nothing has to know the rank of every row: the counts of the buckets give the place of each.
 *
 * Copies are most of the work. A copy of what the core's own cache holds takes a quarter of the
 * time of any other. So rows are encoded, put together and written in steps that fit there.
 */
#ifndef KILN_STAGES_FORMATS_ROW_SCATTER_H
#define KILN_STAGES_FORMATS_ROW_SCATTER_H

#include "stages/formats/rows.h"

/* At the begin of e->plan of a writer that scatters. Behind it, from round 2 on, uint32_t
 * at[n_chunks][n_buckets + 1]: how many rows of a chunk lie in the buckets before. */
typedef struct {
    uint64_t file_first;  /* offset of the first row in the file */
    uint64_t bucket_rows; /* source rows of a bucket; a power of two */
    uint64_t window_rows; /* most rows of a window */
    uint32_t row_bytes, n_buckets;
} kiln_row_scatter;

/* Begins a plan. */
kiln_status kiln_scatter_plan(const kiln_export *e, uint64_t file_first, uint32_t row_bytes,
                              kiln_buffer *plan, kiln_error *err) KILN_MUST_CHECK;
/* Sorts the chunk's rows by source row; rows needs source_row. KILN_E_INPUT: a source row is none
 * of its source. */
kiln_status kiln_scatter_sort(kiln_export_worker *x, kiln_export_rows *rows,
                              kiln_error *err) KILN_MUST_CHECK;
/* Round 1: encoded rows, sorted so, `n` from the `at`-th on, to scratch; and when all are there,
 * their source rows, with which the unit's result is made. */
kiln_status kiln_scatter_put(kiln_export_worker *x, const kiln_export_rows *rows, uint64_t at,
                             uint64_t n, const void *encoded, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_scatter_put_end(kiln_export_worker *x, const kiln_export_rows *rows,
                                 kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_scatter_gather(kiln_export_parent *p, uint64_t unit, const void *result,
                                size_t bytes, kiln_error *err) KILN_MUST_CHECK;
/* What kiln_scatter_sort, put and put_end take beside the rows and what is encoded. */
uint64_t kiln_scatter_put_ram(const kiln_export *e, uint64_t unit);
/* Round 2: a bucket a unit. KILN_E_IO: a source row occurs twice. */
uint64_t kiln_scatter_buckets(const kiln_export *e);
uint64_t kiln_scatter_bucket_ram(const kiln_export *e, uint64_t unit);
uint64_t kiln_scatter_foresee(const kiln_export *e); /* of any bucket, before round 1 has counted */
kiln_status kiln_scatter_bucket(kiln_export_worker *x, uint64_t unit,
                                kiln_error *err) KILN_MUST_CHECK;

#endif
