/* scan -- a whole pass over a source before anything is written: what can be rejected is rejected
 * here, and what the blocks need to know is found: the origin, which double columns float32 would
 * change, where each block begins.
 */
#ifndef KILN_STAGES_IMPORT_SCAN_H
#define KILN_STAGES_IMPORT_SCAN_H

#include "base/memory.h"
#include "kernels/similarity/similarity.h"
#include "stages/engine/engine.h"
#include "stages/formats/reader.h"

typedef struct {
    kiln_source_info info;
    double origin[3];
    uint8_t keep[KILN_EXTRAS_MAX]; /* of info.extras: the blocks store it */
    uint64_t n_blocks;
} kiln_scan;

/* Host memory that importing Gaussians of degree 3 takes at a time, which is asked for before the
 * file is opened; and what a scan of this one takes: a block of rows, the reader (COLMAP's keeps
 * ids), counts for the origin. */
enum { KILN_SCAN_RAM = 64 << 20 };
uint64_t kiln_scan_ram(const kiln_reader *reader, const kiln_source_info *info);

/* at: with its spool filled, where the reader has one. w: whose share of --ram it must fit, as the
 * blocks later must (KILN_E_CAP); NULL: no limit. offsets: u64 per block appended, UINT64_MAX where
 * the reader finds the place itself. KILN_E_INPUT also when no row is usable. A source of 0 rows (a
 * COLMAP model without points) is accepted: n_blocks 0. */
kiln_status kiln_scan_source(const kiln_worker *w, const kiln_reader *reader,
                             const kiln_source_at *at, kiln_scan *out, kiln_buffer *offsets,
                             kiln_error *err) KILN_MUST_CHECK;

/* The same of several files of one scene: the origin is that of all their rows, moved; usable is
 * what is so after the move. out [n]; offsets of one file behind those of the other. */
typedef struct {
    const kiln_reader *reader;
    kiln_source_at at;
    kiln_similarity move;
} kiln_scan_part;
kiln_status kiln_scan_sources(const kiln_worker *w, const kiln_scan_part *parts, uint32_t n,
                              kiln_scan *out, kiln_buffer *offsets,
                              kiln_error *err) KILN_MUST_CHECK;

/* Checks scans that come from a manifest, where a stranger may have put anything: numbers in their
 * ranges, texts that end, columns that exist. What they say of rows is compared with the file by
 * whoever reads those. KILN_E_IO. */
kiln_status kiln_scan_check(const kiln_scan *scans, uint32_t n, kiln_error *err) KILN_MUST_CHECK;

#endif
