/* cuts -- decides where a view is cut into slabs of ascending depth, so that no slab has more than
 * `capacity` Gaussians.
 *
 * Problem. The Gaussians of the view do not fit into memory, so their depths cannot be sorted to
 * find the cuts.
 *
 * Constraint. Slabs must follow the drawing order exactly, ties included. Cuts are therefore values
 * of the sort key of depth_order_math.h (bits of the depth, then source row). Gaussians of equal
 * depth are cut between source rows.
 *
 * Layout. A histogram of keys is refined until no bin exceeds the capacity:
 *
 *   kiln_cuts_begin
 *   do kiln_cuts_add for every key of the view
 *   while kiln_cuts_settle sets *more
 *   kiln_cuts_next, once for each slab
 *
 * One pass suffices unless more Gaussians than the capacity lie within a hundredth of their depth.
 * Memory: KILN_CUTS_BYTES, and about 48 bytes for each slab.
 */
#ifndef KILN_KERNELS_CUTS_H
#define KILN_KERNELS_CUTS_H

#include "base/extern_c.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

KILN_C_BEGIN

enum { KILN_CUTS_BYTES = 4 << 20 }; /* the counters, and twice the ranges made of them */

/* A bin of the histogram: `count` keys from `from` up to the next range. */
typedef struct {
    uint64_t from, count;
    uint32_t bits; /* the range ends at from + 2^bits; set only while it is open */
    bool open;     /* holds more than the capacity: its parts are counted in the next pass */
} kiln_cuts_range;

typedef struct {
    uint64_t capacity; /* most Gaussians of a slab, at least 1 */
    kiln_cuts_range *ranges;
    uint64_t n;
    uint64_t *open; /* [n_open] indices of the open ranges that this pass counts, ascending */
    uint32_t n_open, part_bits;
    uint64_t *counts; /* [n_open][2^part_bits] */
} kiln_cuts;

typedef struct {
    uint64_t from, to; /* keys [from, to) */
    uint64_t count;
} kiln_slab;

/* Call kiln_cuts_release afterwards, after a failure, too. */
kiln_status kiln_cuts_begin(kiln_cuts *c, uint64_t capacity, kiln_error *err) KILN_MUST_CHECK;
void kiln_cuts_release(kiln_cuts *c);
/* Counts a key. Keys outside the open ranges are ignored. Several threads may call it at the same
 * time. */
void kiln_cuts_add(kiln_cuts *c, uint64_t key);
/* Returns true if an open range overlaps [first, last]. Chunks whose keys overlap none need not be
 * added again. */
bool kiln_cuts_asks_for(const kiln_cuts *c, uint64_t first, uint64_t last);
/* Ends a pass. *more: open ranges are left, and all keys must be added once more. */
kiln_status kiln_cuts_settle(kiln_cuts *c, bool *more, kiln_error *err) KILN_MUST_CHECK;
/* Returns the next slab in *out; false after the last one. Set *at to 0 before the first call. A
 * slab exceeds the capacity only if all its Gaussians have the same key. */
bool kiln_cuts_next(const kiln_cuts *c, uint64_t *at, kiln_slab *out);

KILN_C_END

#endif
