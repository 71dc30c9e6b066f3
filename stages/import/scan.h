/* scan -- a whole pass over a source before anything is written: what can be rejected is rejected here, and what the
 * blocks need to know is found: the origin, which double columns float32 would change, where each block begins.
 */
#ifndef KILN_STAGES_IMPORT_SCAN_H
#define KILN_STAGES_IMPORT_SCAN_H

#include "base/memory.h"
#include "stages/import/reader.h"

typedef struct {
    kiln_source_info info;
    double origin[3];
    uint8_t keep[KILN_EXTRAS_MAX]; /* of info.extras: the blocks store it */
    uint64_t n_blocks;
} kiln_scan;

/* offsets: u64 per block appended, UINT64_MAX where the reader finds the place itself.
 * KILN_E_INPUT also when no row is usable. A source of 0 rows (a COLMAP model without points) is accepted: n_blocks 0. */
kiln_status kiln_scan_source(const kiln_reader *reader, const char *path, kiln_scan *out, kiln_buffer *offsets,
                             kiln_error *err) KILN_MUST_CHECK;

/* XXH3-128 of a file's content, streamed. */
kiln_status kiln_hash_file(const char *path, kiln_hash *out, kiln_error *err) KILN_MUST_CHECK;

#endif
