/* voxel_table -- a sparse grid: the blocks of 4 x 4 x 4 voxels that something touches, found by a
 * hash of their place. Threads may add at a time; what comes out does not depend on their order.
 *
 * Blocks have places 0, 1, 2, ... in the order in which they come, which may be another one in the
 * next run. A sum stops growing once it is at least `need`. */
#ifndef KILN_STAGES_PRUNE_VOXEL_TABLE_H
#define KILN_STAGES_PRUNE_VOXEL_TABLE_H

#include "base/status.h"
#include "stages/prune/voxel_math.h"

#include <stdatomic.h>

#define KILN_VOXEL_NONE UINT32_MAX
enum { KILN_VOXEL_TABLE_THREADS = 256 }; /* at most, that take blocks in or add at a time */

typedef struct {
    uint32_t capacity, n_slots; /* blocks; a power of two */
    _Atomic(uint64_t) *keys;    /* [n_slots] */
    _Atomic(uint32_t) *places;  /* [n_slots] place + 1; 0: not known yet */
    atomic_uint n;              /* blocks; more than capacity: one had no place */
    uint64_t *blocks;           /* [capacity] keys */
    uint64_t *solid;            /* [capacity] a bit a voxel, likewise below */
    /* with sums: [capacity] voxels whose sums are wanted and below `need`; their sums */
    _Atomic(uint64_t) *open;
    _Atomic(uint32_t) (*sums)[KILN_VOXELS];
} kiln_voxel_table;

/* A block's coordinates as one number, and back. */
uint64_t kiln_voxel_key(const int32_t block[3]);
void kiln_voxel_unkey(uint64_t key, int32_t block[3]);

uint64_t kiln_voxel_table_bytes(uint64_t capacity, bool sums);
/* Release *out also after a failure. capacity: 1 to 2^30. KILN_E_NOMEM. */
kiln_status kiln_voxel_table_make(uint32_t capacity, bool sums, kiln_voxel_table *out,
                                  kiln_error *err) KILN_MUST_CHECK;
void kiln_voxel_table_release(kiln_voxel_table *t); /* all zero: nothing */
void kiln_voxel_table_clear(kiln_voxel_table *t);   /* by one thread */

/* The place of a block, which is taken in if it is new; KILN_VOXEL_NONE: the table is full, and
 * says so from now on. From any thread. */
uint32_t kiln_voxel_table_take(kiln_voxel_table *t, uint64_t key);
bool kiln_voxel_table_is_full(const kiln_voxel_table *t);
/* KILN_VOXEL_NONE: it is not there. Not while blocks are taken in. */
uint32_t kiln_voxel_table_find(const kiln_voxel_table *t, uint64_t key);
/* Says that the sums of these voxels are wanted, before anything is added. From any thread. */
void kiln_voxel_table_want(kiln_voxel_table *t, uint32_t place, uint64_t voxels);
/* Adds a row's densities to sums of a block that are open. From any thread. */
void kiln_voxel_table_add(kiln_voxel_table *t, uint32_t place, uint64_t voxels,
                          const uint32_t add[KILN_VOXELS], uint32_t need);
/* Makes `solid` of the sums. */
void kiln_voxel_table_settle(kiln_voxel_table *t, uint32_t need);

#endif
