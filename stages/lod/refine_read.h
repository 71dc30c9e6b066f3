/* refine_read -- the rows of a chunk and of its neighbours, read and decoded by all threads of a
 * worker. For the worker's part of refine.h.
 *
 * A connection of SQLite is for one thread, so each thread has its own; one that cannot be opened
 * is left out. */
#ifndef KILN_STAGES_LOD_REFINE_READ_H
#define KILN_STAGES_LOD_REFINE_READ_H

#include "stages/lod/lod_rows.h"
#include "stages/lod/refine_units.h"

typedef struct {
    kiln_worker *w;
    const kiln_refine_unit *u;
    const kiln_layer *baked;                            /* borrowed from the worker's state */
    unsigned n;                                         /* threads */
    kiln_manifest *readers[1 + KILN_REFINE_NEIGHBOURS]; /* the first is the worker's own */
} kiln_refine_reader;

/* Fails as kiln_worker_manifest and kiln_lod_state_baked. Close it after a failure, too. */
kiln_status kiln_refine_reader_open(kiln_refine_reader *r, kiln_worker *w,
                                    const kiln_refine_unit *u, kiln_error *err) KILN_MUST_CHECK;
void kiln_refine_reader_close(kiln_refine_reader *r);
/* Host memory of each further thread. */
uint64_t kiln_refine_reader_ram_thread(const kiln_refine_unit *u);

/* Both make `own`, the rows of the unit's chunk, and `others`, those of its neighbours one behind
 * the other; they are released after a failure, too. The visibility of neighbours is not read:
 * nothing is measured of them. KILN_E_IO, KILN_E_INPUT, KILN_E_NOMEM. */
kiln_status kiln_refine_read_full(const kiln_refine_reader *r, kiln_lod_rows *own,
                                  kiln_lod_rows *others, kiln_error *err) KILN_MUST_CHECK;
/* The merged rows of a level from 1 on. */
kiln_status kiln_refine_read_level(const kiln_refine_reader *r, uint32_t level, kiln_lod_rows *own,
                                   kiln_lod_rows *others, kiln_error *err) KILN_MUST_CHECK;
/* Rows of a chunk's level; all rows of the neighbours at a level. */
uint64_t kiln_refine_row_count(uint64_t rows, uint32_t level);
uint64_t kiln_refine_row_count_around(const kiln_refine_unit *u, uint32_t level);
/* Copies rows behind the first `first` of another array, which has room for them. */
void kiln_refine_append(const kiln_coarsen_rows *from, uint64_t first, kiln_coarsen_rows *to);

#endif
