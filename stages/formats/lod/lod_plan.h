/* lod_plan -- streamed SOG (lod.h): which rows lie in which file, and what each leaf has of each
 * level.
 *
 * A leaf is a chunk of the layer. Level k of the set stands for the whole scene with the nodes'
 * levels k: that of a leaf is its own up to its coarsest, above it those rows of level k of the
 * nodes above that are nearest to it (by the distance of their means to the boxes of the leaves'
 * means), so every row of a level belongs to one leaf. A level that no node above a leaf has is the
 * one before. Viewers draw each leaf at a level of its own choice.
 *
 * A file holds chunks of one level in the tree's order, rows of a chunk sorted by leaf, and is
 * closed once it has KILN_LOD_FILE_ROWS.
 *
 * The plan is plain bytes: a head, then arrays at the places it names. */
#ifndef KILN_STAGES_FORMATS_LOD_LOD_PLAN_H
#define KILN_STAGES_FORMATS_LOD_LOD_PLAN_H

#include "stages/formats/writer.h"

/* A file of so many rows is 1 to 3 MB, a request that a phone makes in a second; splat-transform
 * has four times as many. */
enum { KILN_LOD_FILE_ROWS = 1 << 17 };

/* Of a leaf: boxes as they are written, without kiln_export.origin. lo > hi: of nothing. */
typedef struct {
    uint32_t node;
    float mean_lo[3], mean_hi[3]; /* of the means of level 0 */
    float lo[3], hi[3];           /* of the ellipsoids of one sigma of all its levels */
} kiln_lod_leaf;

/* What a leaf has of a level. */
typedef struct {
    uint32_t file, offset, n;
} kiln_lod_part;

typedef struct {
    uint64_t rows;
    uint32_t level, number;   /* its folder is LEVEL_NUMBER */
    uint32_t first, n_chunks; /* of the list of chunks */
} kiln_lod_file;

/* Counts, and offsets of arrays in the plan. */
typedef struct {
    uint32_t n_leaves, n_levels, n_own, n_inner, n_files, n_members;
    uint64_t own, inner; /* u32: e->chunks of leaves, and of inner nodes */
    uint64_t leaves;     /* kiln_lod_leaf[n_leaves], in the tree's order */
    uint64_t parts;      /* kiln_lod_part[n_leaves][n_levels] */
    uint64_t files;      /* kiln_lod_file[n_files]; behind round 1 */
    uint64_t members;    /* u32[n_members]: e->chunks of all files */
} kiln_lod_head;

#define KILN_LOD_AT(plan, type, offset) ((type *)(void *)((char *)(uintptr_t)(plan) + (offset)))

/* The first plan: leaves without boxes. */
kiln_status kiln_lod_plan_begin(const kiln_export *e, kiln_buffer *plan,
                                kiln_error *err) KILN_MUST_CHECK;
/* Adds files, members and the places of parts, whose counts are there. */
kiln_status kiln_lod_plan_files(const kiln_export *e, kiln_buffer *plan,
                                kiln_error *err) KILN_MUST_CHECK;
/* The leaves below a node: [*first, *end). */
void kiln_lod_leaves_of(const kiln_level_tree *t, uint32_t node, uint32_t *first, uint32_t *end);
/* Rows of the largest file, before there is a plan. */
uint64_t kiln_lod_file_rows_max(const kiln_export *e);

#endif
