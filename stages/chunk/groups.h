/* groups -- the planes of a layer in the order of its chunks, on the disk.
 *
 * Chunks are near each other in space while blocks follow the source: a chunk has a few rows of nearly every block, and
 * where memory does not hold the layer each chunk would decode all of it. So blocks are read once, as many at a time as memory
 * holds: a group. Its file
 *
 *   slices  u32 [n_chunks + 1]  of the group's rows, taken in the order of the chunks, those before chunk i
 *   rows                        chunk after chunk; in each its rows of this group, plane after plane, component after
 *                               component
 *
 * is written once, in order, and a chunk reads one slice of each. A file that has its name is whole: a run that
 * was killed makes the others. The folder is of one plan, which only means decide, so the name also says of what content the
 * group is: another spacing or colour leads to the same plan, and to files of other names.
 */
#ifndef KILN_STAGES_CHUNK_GROUPS_H
#define KILN_STAGES_CHUNK_GROUPS_H

#include "stages/chunk/chunk_rows.h"
#include "stages/chunk/chunk_units.h"
#include "stages/spatial/partition.h"

typedef struct {
    uint32_t first_block, end_block;
    uint64_t first_row, n_rows; /* n_rows is never 0 */
    kiln_hash content;          /* of the planes that its file holds */
} kiln_block_group;

typedef struct {
    kiln_block_group *items; /* owned */
    uint64_t *starts;        /* [n + 1] first rows, owned */
    uint32_t n;
} kiln_block_groups;

/* Whole blocks, at most `rows` rows together or a single one. */
kiln_status kiln_block_groups_cut(const kiln_layer *l, const kiln_row_parts *parts, uint64_t rows, kiln_block_groups *out,
                                  kiln_error *err) KILN_MUST_CHECK;
void kiln_block_groups_release(kiln_block_groups *g);

/* Host memory of a scatter unit of so many rows; the most rows of a group for which that is at most `ram`, 0: none. */
uint64_t kiln_scatter_ram(const kiln_layer *l, const kiln_row_parts *parts, uint64_t rows, uint64_t n_chunks);
uint64_t kiln_scatter_rows(const kiln_layer *l, const kiln_row_parts *parts, uint64_t ram, uint64_t n_chunks);

void kiln_group_name(const kiln_block_group *g, char out[64]);
uint64_t kiln_group_bytes(const kiln_block_group *g, uint64_t n_chunks, uint64_t row_bytes);
bool kiln_group_is_whole(const char *folder, const kiln_block_group *g, uint64_t n_chunks, uint64_t row_bytes);
/* Removes files of groups of other borders or other content. */
void kiln_groups_drop_others(const char *folder, const kiln_block_groups *g);
uint64_t kiln_groups_bytes(const kiln_block_groups *g, uint64_t n_chunks, uint64_t row_bytes);

/* What a scatter unit works on. */
typedef struct {
    kiln_manifest *manifest;
    const char *folder;
    const kiln_row_parts *parts;
    const kiln_planned_chunk *chunks;
    uint64_t n_chunks;
    const kiln_spatial_file *order;
    unsigned threads;
} kiln_scatter;

kiln_status kiln_group_scatter(const kiln_scatter *s, const kiln_block_group *g, kiln_error *err) KILN_MUST_CHECK;

/* The slices of chunk `index`, one behind the other, rows of them as `rows` lists by group. free(*out). */
kiln_status kiln_group_slices(const char *folder, const kiln_block_groups *g, uint64_t n_chunks, uint64_t index, uint64_t row_bytes,
                              const kiln_row_list *rows, unsigned char **out, kiln_error *err) KILN_MUST_CHECK;

#endif
