/* row_sort -- rows of a fixed size into the order of a key, least first, those of one key in the
 * order of the layer; in scratch, so that memory is that of a chunk or a bucket however many rows
 * there are.
 *
 *   1. each chunk's rows go to scratch sorted, with their keys, and every KILN_SORT_STEP-th of them
 *      is a sample;
 *   2. samples, sorted, cut all rows into buckets; each chunk says how many of its rows lie before
 *      each cut;
 *   3. each bucket is put together from its pieces of all chunks, sorted, and written in one piece.
 * A cut is a row, not a key: equal keys do not make a bucket larger. The bytes are the same
 * whatever the buckets are.
 */
#ifndef KILN_STAGES_FORMATS_ROW_SORT_H
#define KILN_STAGES_FORMATS_ROW_SORT_H

#include "stages/formats/rows.h"

enum { KILN_SORT_STEP = 256 };

/* Round 1: the n rows of the unit's chunk, encoded in the order of the layer, [n][row_bytes], with
 * keys[n]. Gives the unit's result. */
kiln_status kiln_row_sort_put(kiln_export_worker *x, uint64_t unit, const uint64_t *keys,
                              const unsigned char *rows, uint64_t n,
                              kiln_error *err) KILN_MUST_CHECK;
uint64_t kiln_row_sort_put_ram(const kiln_export *e, uint64_t unit, uint32_t row_bytes);
/* Begins a plan; of round 1 `gather` and, behind the last unit, `end`. */
kiln_status kiln_row_sort_plan(kiln_buffer *plan, uint32_t row_bytes,
                               kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_row_sort_gather(kiln_export_parent *p, uint64_t unit, const void *result,
                                 size_t bytes, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_row_sort_end(kiln_export_parent *p, kiln_error *err) KILN_MUST_CHECK;

/* Rounds 2 and 3 of a writer. The file has the rows alone, from its first byte on. */
uint64_t kiln_row_sort_count_ram(const kiln_export *e, uint64_t unit);
kiln_status kiln_row_sort_count(kiln_export_worker *x, uint64_t unit,
                                kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_row_sort_count_gather(kiln_export_parent *p, uint64_t unit, const void *result,
                                       size_t bytes, kiln_error *err) KILN_MUST_CHECK;
uint64_t kiln_row_sort_count_foresee(const kiln_export *e);
uint64_t kiln_row_sort_buckets(const kiln_export *e);
uint64_t kiln_row_sort_bucket_ram(const kiln_export *e, uint64_t unit);
uint64_t kiln_row_sort_bucket_foresee(const kiln_export *e);
kiln_status kiln_row_sort_bucket(kiln_export_worker *x, uint64_t unit,
                                 kiln_error *err) KILN_MUST_CHECK;
#define KILN_ROW_SORT_ROUNDS                                                                 \
    {.what = "counting",                                                                     \
     .ram = kiln_row_sort_count_ram,                                                         \
     .run = kiln_row_sort_count,                                                             \
     .gather = kiln_row_sort_count_gather,                                                   \
     .foresee = kiln_row_sort_count_foresee},                                                \
    {                                                                                        \
        .what = "ordering", .units = kiln_row_sort_buckets, .ram = kiln_row_sort_bucket_ram, \
        .run = kiln_row_sort_bucket, .foresee = kiln_row_sort_bucket_foresee                 \
    }

#endif
