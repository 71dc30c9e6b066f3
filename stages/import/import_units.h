/* import_units -- what workers do for kiln-import, and the lists of such units that its parent
 * makes. */
#ifndef KILN_STAGES_IMPORT_UNITS_H
#define KILN_STAGES_IMPORT_UNITS_H

#include "stages/import/dataset/sources.h"
#include "stages/import/import_scene.h"

/* Any unit of import, in a worker. */
#define KILN_SCAN_UNIT "scan"
kiln_status kiln_import_unit(kiln_worker *w, const char *name, const void *payload, size_t bytes,
                             kiln_error *err) KILN_MUST_CHECK;

/* In this order, each with what the one before has filled. As kiln_run_units.
 *   prepare  makes each file of rows readable in any order (spool.h); KILN_E_INPUT when a member
 *            changed since it was hashed
 *   scan     validates the files and fills i->scan; *offsets: of the blocks, to be freed after all
 *            blocks are read. Says what comes of a scene without rows
 *   blocks   reads and stores all blocks, of which units and requests have i->scan.n_blocks; fills
 *            i's counts. KILN_E_PARTIAL: none could be
 *   cube     the root cube of the layer that they make */
kiln_status kiln_import_prepare(kiln_run *r, const char *manifest, kiln_import_result *i,
                                const kiln_sources *s, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_import_scan(kiln_run *r, kiln_import_result *i, const kiln_sources *s,
                             uint64_t **offsets, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_import_blocks(kiln_run *r, kiln_import_result *i, const kiln_sources *s,
                               kiln_unit *units, kiln_block_request *requests,
                               kiln_error *err) KILN_MUST_CHECK;
/* Instead of blocks, where nothing is stored: volatile units, which kiln_block_measure computes;
 * fills i's counts. */
kiln_status kiln_import_measure(kiln_run *r, kiln_import_result *i, kiln_unit *units,
                                kiln_block_request *requests, kiln_error *err) KILN_MUST_CHECK;
/* Their requests, [i->scan.n_blocks], of which there are rows. */
void kiln_import_requests(const kiln_import_result *i, const kiln_sources *s,
                          kiln_block_request *requests);
/* What such a unit takes, or any that reads a block and puts none of it, at most. */
uint64_t kiln_import_block_ram(const kiln_import_result *i);
kiln_status kiln_import_cube(kiln_run *r, kiln_import_result *i, const kiln_layer *l,
                             kiln_error *err) KILN_MUST_CHECK;

#endif
