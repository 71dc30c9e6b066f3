/* voxel_search -- the state of one search in voxels, which the files of its unit share.
 *
 *   voxel_unit.c  how the search goes: rounds, parts, the order of what stands below
 *   voxel_grid.c  where the grid lies, and which blocks rows reach in it
 *   voxel_pass.c  a pass over the rows of the layer
 *   voxel_forecast.c  the refusal of too much work
 *   voxel_want.c  first pass of a part: the blocks that are wanted
 *   voxel_sums.c  second pass: the densities of all rows are added there
 *   voxel_keep.c  third pass: the rows that stay; for a cluster once, after the last part
 *
 * A block is one of 4 x 4 x 4 voxels; a block of rows is called a block of the layer. Boxes and
 * coordinates count from the middle block of the grid, lengths are in scene units (voxel_math.h).
 *
 * Threads. The unit's thread calls the functions of a search. In a pass threads share the rows of a
 * block of the layer. They write the table, whose functions allow that, two counts by atomic
 * additions, and `strays`, of which one thread has all rows of a byte. Nothing else changes then.
 *
 * Besides what is said, functions fail as what reads planes and allocates; then the search can only
 * be released. */
#ifndef KILN_STAGES_PRUNE_VOXEL_SEARCH_H
#define KILN_STAGES_PRUNE_VOXEL_SEARCH_H

#include "stages/prune/prune_units.h"
#include "stages/prune/voxel_table.h"

/* Wanted blocks that are near each other: order[first] to order[first + n - 1] of the search. */
typedef struct {
    kiln_voxel_box box; /* the smallest that has them */
    uint32_t first, n;
} kiln_voxel_cell;

typedef struct {
    uint64_t cell;  /* the key of the cell that the block belongs to */
    uint32_t place; /* of the block, in the table */
} kiln_voxel_cell_block;

/* Groups of fields stand in the order in which they are written. All zero at first, but for fd and
 * reads. */
typedef struct {
    /* By the unit, before all else. */
    kiln_worker *w;
    kiln_prune_input *in;
    kiln_prune_voxels o;
    unsigned threads; /* of a pass */
    uint32_t need;    /* the sum of densities from which on a voxel is solid */
    /* As KILN_PRUNE_STRAYS has them: all rows at first. A row loses its bit when it is kept: alone,
     * when it is placed, or by the third pass. */
    uint8_t *strays;
    int fd, reads; /* of a cluster: the scratch file of solid blocks, to write and to read; or -1 */
    char path[64];

    /* By kiln_voxel_search_find_grid. */
    float middle[3]; /* the median of the means, as the layer has them */
    kiln_voxel_grid grid;

    /* By kiln_voxel_search_place_rows: where rows of a block of the layer may hit voxels, and where
     * they have densities; then the same of all rows. */
    kiln_voxel_box *meets, *touches; /* [n_chunks] */
    kiln_voxel_box all_meet, all_touch;

    /* By the unit, as a round begins; it takes parts away and puts halves in. */
    int32_t from, to;      /* the blocks that it asks for: so many away from that of a row's mean */
    uint8_t *undecided;    /* strays as they were then, so that all parts want the same voxels */
    kiln_voxel_box *parts; /* [n_parts] that are still to be done in this round */
    uint32_t n_parts;

    /* By a part's first pass: its wanted blocks, and how many blocks rows have asked for, of this
     * part and of those before that were not halved. */
    kiln_voxel_table table;
    uint64_t asked_of_part, asked;

    /* By its second pass: cells of these blocks, then their sums and what is solid, in the table;
     * and how often boxes of rows met wanted blocks, in all parts. */
    kiln_voxel_cell_block *order; /* [o.capacity], table.n of them are set */
    kiln_voxel_cell *cells;       /* [o.capacity], n_cells likewise */
    uint32_t n_cells;
    uint64_t meetings;

    /* Of a cluster: blocks in the scratch file, to which each part adds. For the last pass the
     * table has all of them, without sums, and there are no cells. */
    uint64_t n_solid_blocks;
    kiln_prune_voxels_found found;
} kiln_voxel_search;

/* ---- the grid (voxel_grid.c) ----------------------------------------------------------------- */
uint64_t kiln_voxel_middle_bytes(void); /* memory of the next */
/* Finds the middle and lays the grid around it. */
kiln_status kiln_voxel_search_find_grid(kiln_voxel_search *s, kiln_error *err) KILN_MUST_CHECK;
/* Finds what rows reach. Of floaters it keeps rows that make a voxel solid alone. */
kiln_status kiln_voxel_search_place_rows(kiln_voxel_search *s, kiln_error *err) KILN_MUST_CHECK;
/* Row i of a block of the layer, in any grid. */
void kiln_voxel_row_get(const kiln_voxel_grid *g, const kiln_geometry *rows, uint64_t i,
                        kiln_voxel_row *out);

/* ---- passes (voxel_pass.c) ------------------------------------------------------------------- */
enum { KILN_VOXEL_ROWS_AT_A_TIME = 512 }; /* that a thread takes: whole bytes of bits of rows */
typedef struct {
    /* Looks at a row that the grid has, from any thread. True: the row stays; false: that is still
     * open. */
    bool (*fn)(kiln_voxel_search *s, const kiln_voxel_row *row, const kiln_voxel_box *part);
    /* [n_chunks] meets or touches: blocks of the layer apart from the part are not read */
    const kiln_voxel_box *boxes;
    const uint8_t *asks; /* bits of the rows that it looks at, as strays; NULL: all */
} kiln_voxel_pass;
/* KILN_E_INPUT: the search has become too much work. */
kiln_status kiln_voxel_search_pass(kiln_voxel_search *s, const kiln_voxel_box *part,
                                   const kiln_voxel_pass *pass, kiln_error *err) KILN_MUST_CHECK;

/* ---- too much work (voxel_forecast.c) -------------------------------------------------------- */
/* Foretells the work, before any pass. KILN_E_INPUT: it is too much; says which voxels would do. */
kiln_status kiln_voxel_search_check_size(const kiln_voxel_search *s,
                                         kiln_error *err) KILN_MUST_CHECK;
/* Of the work until now, likewise. */
kiln_status kiln_voxel_search_check_work(kiln_voxel_search *s, kiln_error *err) KILN_MUST_CHECK;
/* From any thread: rows are to be left out, as the search is to be refused. */
bool kiln_voxel_search_meets_too_often(kiln_voxel_search *s);

/* ---- the passes of a part -------------------------------------------------------------------- */
/* Empties the table and takes in the wanted blocks. If it is full afterwards, some are missing, and
 * the part has to be halved. */
kiln_status kiln_voxel_search_want(kiln_voxel_search *s, const kiln_voxel_box *part,
                                   kiln_error *err) KILN_MUST_CHECK;
/* Cuts a part whose blocks fill the table where half of these lie. */
kiln_status kiln_voxel_search_halve(const kiln_voxel_search *s, const kiln_voxel_box *part,
                                    kiln_voxel_box halves[2], kiln_error *err) KILN_MUST_CHECK;
/* Makes the sums of wanted voxels, and of these which are solid. */
kiln_status kiln_voxel_search_sum(kiln_voxel_search *s, const kiln_voxel_box *part,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Of floaters: keeps rows that hit a solid voxel of the part, or have their mean in one. */
kiln_status kiln_voxel_search_keep(kiln_voxel_search *s, const kiln_voxel_box *part,
                                   kiln_error *err) KILN_MUST_CHECK;
/* Of a cluster: adds the part's solid blocks to the scratch file. */
kiln_status kiln_voxel_search_store(kiln_voxel_search *s, kiln_error *err) KILN_MUST_CHECK;

/* Of a cluster, after all parts: reads all solid blocks in place of the table and the cells, finds
 * the cluster among them, and keeps the rows that hit it. KILN_E_CAP: --ram has no room. */
kiln_status kiln_voxel_search_keep_cluster(kiln_voxel_search *s, kiln_error *err) KILN_MUST_CHECK;

#endif
