/* rad_chunk -- a chunk of a RAD file, and the head of the file (rad.h). */
#ifndef KILN_STAGES_FORMATS_RAD_RAD_CHUNK_H
#define KILN_STAGES_FORMATS_RAD_RAD_CHUNK_H

#include "stages/formats/rad/rad_rows.h"

/* Appends the chunk of rows [base, base + n), records[n]; as long as a multiple of 8.
 * KILN_E_NOMEM. */
kiln_status kiln_rad_chunk_put(const kiln_export *e, const kiln_rad_head *h, uint64_t base,
                               uint64_t n, const unsigned char *records, kiln_buffer *out,
                               kiln_error *err) KILN_MUST_CHECK;
/* The most that a chunk of n rows takes, and the memory that making it takes beside the records. */
uint64_t kiln_rad_chunk_max(const kiln_export *e, uint64_t n);
uint64_t kiln_rad_chunk_ram(const kiln_export *e, uint64_t n);
/* Appends the head: chunks follow it, sizes[kiln_rad_chunks]. */
kiln_status kiln_rad_head_put(const kiln_export *e, const kiln_rad_head *h, const uint64_t *sizes,
                              kiln_buffer *out, kiln_error *err) KILN_MUST_CHECK;

#endif
