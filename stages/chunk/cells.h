/* cells -- cuts rows that are sorted along the Hilbert curve into chunks (rules and names:
 * stages/chunk/DESIGN.md).
 *
 * A pure function of the sorted codes, wherever they are read from: no manifest, no thread, the
 * same list on every machine.
 */
#ifndef KILN_STAGES_CHUNK_CELLS_H
#define KILN_STAGES_CHUNK_CELLS_H

#include "base/status.h"

#include <stdint.h>

enum { KILN_CHUNK_ROWS_MAX = 65536 };

typedef struct {
    char name[96];       /* "/0/3/5-7", "/0/3.2", "/" for the whole scene */
    char parent[96];     /* "/0/3", "/0", "" for the whole scene */
    uint64_t begin, end; /* rows [begin, end) in sorted order, never empty */
    /* of its cells; 0: the root cube. 64 bits: no padding, the list is stored as it is */
    uint64_t depth;
} kiln_cell_group;

typedef struct {
    kiln_cell_group *items; /* owned; in curve order: begin of one is end of the one before */
    uint64_t n, capacity;
} kiln_cell_list;

/* Where codes come from that are not in memory: read puts codes [first, first + n) into out. */
typedef struct {
    uint64_t n;
    kiln_status (*read)(void *context, uint64_t first, uint64_t n, uint64_t *out, kiln_error *err);
    void *context;
    /* codes that may be in memory at a time; a cell that fits is read in one piece */
    uint64_t window;
} kiln_code_source;

/* codes: [n] ascending, 63 bits, 3 a level. max >= 1; min: a group or cell with fewer rows joins
 * its neighbour. KILN_E_BUG when max is 0. kiln_cell_list_release also after a failure. */
kiln_status kiln_cells_cut(const uint64_t *codes, uint64_t n, uint32_t max, uint32_t min,
                           kiln_cell_list *out, kiln_error *err) KILN_MUST_CHECK;
/* The same list, from a source. Also what its read fails with. */
kiln_status kiln_cells_cut_from(const kiln_code_source *source, uint32_t max, uint32_t min,
                                kiln_cell_list *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_cell_list_release(kiln_cell_list *l);

#endif
