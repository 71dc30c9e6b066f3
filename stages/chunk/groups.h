/* groups -- the planes of a layer in the order of its chunks.
 *
 * Chunks are near each other in space while blocks follow the source: a chunk has a few rows of
 * nearly every block. If chunks took them from decoded blocks, each worker would decode the whole
 * layer, and nearly every 4 bytes would be a cache line of their own. So blocks are read once, some
 * at a time; these are a group. From a group three arrays are made,
 *
 *   slices  kiln_slice [n_chunks]  which of the group's rows, taken in the order of the chunks, are
 *                                  of chunk i, and their hash
 *   rows                           chunk after chunk; in each its rows of this group, plane after
 *                                  plane, component after component
 *   sums    kiln_row_sum           block after block: what it adds to each of the n_chunks chunks
 *                                  (row_sums.h), and a hash of that
 *
 * which are written once, in order, and a chunk reads one slice of each group. If memory has room,
 * groups lie one behind the other in memory that the workers share. Otherwise each is a file in the
 * scratch folder. A file that has its name was whole, and its seal tells whether it still is: after
 * a kill, the next run makes only the others. The folder belongs to one plan, which depends on
 * means alone. So the name also has the hash of the group's planes: another spacing or colour leads
 * to the same plan, and to files of other names.
 *
 * No unit waits until the disk has its group: with room in the page cache it never goes to the
 * disk, because it is read soon and removed. So its name also tells of which start of the system it
 * is (after a power cut there is another), and each slice has its hash: what a disk has lost is not
 * taken for rows.
 *
 * If tasks on other hosts read the groups, they always are files, which go to the disk and whose
 * names depend on no host. The hash of a slice is of its bytes, of which rows of the group they
 * are, of the group's planes and of the plan. So a file that is torn, or was put under this name by
 * somebody else, is refused by the chunk that reads it.
 */
#ifndef KILN_STAGES_CHUNK_GROUPS_H
#define KILN_STAGES_CHUNK_GROUPS_H

#include "stages/chunk/chunk_rows.h"
#include "stages/chunk/chunk_units.h"
#include "stages/chunk/row_sums.h"
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
    bool are_of_boot; /* their names tell of which start of the system they are */
} kiln_block_groups;

typedef struct {
    uint32_t begin, end; /* rows of the group */
    kiln_hash hash;      /* kiln_slice_hash; of a slice without rows all zero */
} kiln_slice;

/* Cuts the layer into groups of whole blocks: a single block, or several with at most `rows` rows
 * together. boot: from kiln_scratch_boot; "": files of the groups go to the disk. Release *out also
 * after a failure. */
kiln_status kiln_block_groups_cut(const kiln_layer *l, const kiln_row_parts *parts, uint64_t rows,
                                  const char *boot, kiln_block_groups *out,
                                  kiln_error *err) KILN_MUST_CHECK;
void kiln_block_groups_release(kiln_block_groups *g);

/* Return the host memory of a scatter unit of so many rows on one thread, that of each further
 * thread, and the most rows of a group for which the first is at most `ram` (0: not even a
 * block's). */
uint64_t kiln_scatter_ram(const kiln_layer *l, const kiln_row_parts *parts, uint64_t rows,
                          uint64_t n_chunks);
uint64_t kiln_scatter_ram_thread(const kiln_layer *l, const kiln_row_parts *parts);
uint64_t kiln_scatter_rows(const kiln_layer *l, const kiln_row_parts *parts, uint64_t ram,
                           uint64_t n_chunks);

void kiln_group_name(const kiln_block_group *g, char out[64]);
uint64_t kiln_group_bytes(const kiln_block_group *g, uint64_t n_chunks, uint64_t row_bytes);
/* it has a file, whatever is in it */
bool kiln_group_is_there(const char *folder, const kiln_block_group *g);
bool kiln_group_is_whole(const char *folder, const kiln_block_group *g, uint64_t n_chunks,
                         uint64_t row_bytes);
/* Removes files of groups of other borders or other content. */
void kiln_groups_drop_others(const char *folder, const kiln_block_groups *g);
uint64_t kiln_groups_bytes(const kiln_block_groups *g, uint64_t n_chunks, uint64_t row_bytes);
/* Of the sums of a block, with their hash. */
static inline uint64_t kiln_block_sums_bytes(uint64_t n_chunks)
{
    return (n_chunks + 1) * sizeof(kiln_row_sum);
}

/* Where the groups of a plan lie. Borrows all that it points to. */
typedef struct {
    const kiln_block_groups *groups;
    uint64_t n_chunks, row_bytes;
    const char *folder; /* of the files */
    /* [n_memory] of kiln_groups_bytes each, group i in memory[i % n_memory]; NULL: on the disk */
    const kiln_scratch_file *memory;
    uint32_t n_memory;
    kiln_hash plan;  /* its key */
    bool only_reads; /* files that are damaged stay: other hosts may see them otherwise */
} kiln_group_store;

/* Reads the file of a group that an earlier run may have left. *kept: it is sound; else it is gone
 * (kiln_scratch_keep_sound). */
kiln_status kiln_group_keep_sound(const kiln_group_store *s, uint32_t group, bool *kept,
                                  kiln_error *err) KILN_MUST_CHECK;

/* The hash of a slice of n rows: rows[n] of the group, in the order of the chunk, and their bytes,
 * n times store->row_bytes. */
kiln_hash kiln_slice_hash(const kiln_group_store *s, uint32_t group, const uint32_t *rows,
                          const unsigned char *bytes, uint64_t n);

/* Arrays that a worker keeps from group to group, because faulting their pages anew would cost as
 * much as the work itself. All zero at first. */
typedef struct {
    void *items[9]; /* owned */
    uint64_t bytes[9];
} kiln_scatter_arrays;
void kiln_scatter_arrays_release(kiln_scatter_arrays *r);

/* What a scatter unit works on. */
typedef struct {
    const kiln_group_store *store;
    /* [n_readers] planes are decoded on so many threads, each with a connection of its own */
    kiln_manifest *const *readers;
    unsigned n_readers, threads;
    const kiln_row_parts *parts;
    const kiln_planned_chunk *chunks; /* [store->n_chunks] */
    const kiln_scratch_file *places;  /* of the rows (stages/spatial/row_places.h) */
    kiln_scatter_arrays *arrays;
} kiln_chunk_scatter;

/* Returns the bytes that a scatter unit keeps for reading planes; a part of its memory. */
uint64_t kiln_scatter_kept(const kiln_layer *l, const kiln_row_parts *parts);
kiln_status kiln_group_scatter(const kiln_chunk_scatter *s, uint32_t group,
                               kiln_error *err) KILN_MUST_CHECK;

/* What the rows of a block add to each chunk, sums[n_chunks]: decodes the block. s->store needs no
 * groups. */
kiln_status kiln_block_sums(const kiln_chunk_scatter *s, uint32_t block, kiln_row_sum *sums,
                            kiln_error *err) KILN_MUST_CHECK;
/* The same, read from its group: sums[n_chunks + 1], of which the last is not for the caller.
 * KILN_E_IO as kiln_group_slices. */
kiln_status kiln_group_sums(const kiln_group_store *s, uint32_t block, kiln_row_sum *sums,
                            kiln_error *err) KILN_MUST_CHECK;
/* The hash behind the sums of a block. */
kiln_row_sum kiln_sums_hash(const kiln_group_store *s, uint32_t group, const kiln_row_sum *sums);

/* Reads the slices of chunk `index`, one behind the other, into out[rows->n * row_bytes]. `rows`
 * lists the chunk's rows by group. KILN_E_IO: they are of another plan, or damaged; then the
 * group's file is removed, unless the store only reads, so that the next run makes it anew. */
kiln_status kiln_group_slices(const kiln_group_store *s, uint64_t index, const kiln_row_list *rows,
                              unsigned char *out, kiln_error *err) KILN_MUST_CHECK;

/* Open a group to be written, finish it, or drop it: every kiln_group_create is followed by one of
 * the other two. *at: where the group begins in *out. */
kiln_status kiln_group_create(const kiln_group_store *s, uint32_t group, kiln_scratch_file *out,
                              uint64_t *at, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_group_finish(const kiln_group_store *s, kiln_scratch_file *f,
                              kiln_error *err) KILN_MUST_CHECK;
void kiln_group_drop(const kiln_group_store *s, kiln_scratch_file *f);

#endif
