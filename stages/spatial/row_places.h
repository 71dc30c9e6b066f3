/* row_places -- the inverse of a partition's order: at which place along the curve a row of the
 * layer lies.
 *
 *   places u32 [n]  in the partition's folder; places[rows[i]] = i
 *
 * A unit that works through the layer block by block reads the places of a block's rows in one
 * piece, instead of looking for them in the whole order. */
#ifndef KILN_STAGES_SPATIAL_ROW_PLACES_H
#define KILN_STAGES_SPATIAL_ROW_PLACES_H

#include "stages/spatial/partition.h"

/* Makes the file from the partition, which must be complete. Does nothing if the file is there and
 * sound. ram: host memory in bytes that it may take, at least kiln_row_places_least_ram(threads);
 * with 4 bytes a row more, the order is read once, else several times. KILN_E_IO: the order names a
 * row that the layer lacks; else as kiln_scratch_create. */
kiln_status kiln_row_places_make(const char *folder, uint64_t n, uint64_t ram, unsigned threads,
                                 kiln_error *err) KILN_MUST_CHECK;
uint64_t kiln_row_places_least_ram(unsigned threads);
bool kiln_row_places_are_complete(const char *folder, uint64_t n);

/* For reading, by any number of readers: kiln_row_places_read, kiln_scratch_drop. KILN_E_IO: it is
 * missing. */
kiln_status kiln_row_places_open(const char *folder, uint64_t n, kiln_scratch_file *out,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Reads the places of rows [first, first + count). KILN_E_IO. */
kiln_status kiln_row_places_read(const kiln_scratch_file *f, uint64_t first, uint64_t count,
                                 uint32_t *out, kiln_error *err) KILN_MUST_CHECK;

#endif
