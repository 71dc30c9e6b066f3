/* cuts -- where a view is cut into slabs of ascending depth: values of the drawing order's own key (depth_order_math.h), so that
 * equal depths are cut as they are drawn, between source rows.
 *
 *   kiln_cuts_begin
 *   do kiln_cuts_add, for all keys of the view; while kiln_cuts_settle says that it must see some of them again
 *   kiln_cuts_next, once a slab
 *
 * Once is enough unless more Gaussians than a slab has room for lie within a hundredth of their depth. Memory: KILN_CUTS_BYTES,
 * and some 48 bytes a slab.
 */
#ifndef KILN_KERNELS_CUTS_H
#define KILN_KERNELS_CUTS_H

#include "base/extern_c.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

KILN_C_BEGIN

enum { KILN_CUTS_BYTES = 4 << 20 }; /* counters, and their parts as ranges, twice */

/* Keys from `from` up to the next range: `count` of them. */
typedef struct {
    uint64_t from, count;
    uint32_t bits; /* of an open one, whose parts are counted: it ends at from + 2^bits */
    bool open;
} kiln_cuts_range;

typedef struct {
    uint64_t capacity; /* for the Gaussians of a slab, at least 1 */
    kiln_cuts_range *ranges;
    uint64_t n;
    uint64_t *open; /* [n_open] which ranges are, ascending */
    uint32_t n_open, part_bits;
    uint64_t *counts; /* [n_open][2^part_bits] */
} kiln_cuts;

typedef struct {
    uint64_t from, to; /* keys [from, to) */
    uint64_t count;
} kiln_slab;

/* After a failure, too, kiln_cuts_release. */
kiln_status kiln_cuts_begin(kiln_cuts *c, uint64_t capacity, kiln_error *err) KILN_MUST_CHECK;
void kiln_cuts_release(kiln_cuts *c);
/* Those of keys between which it must still cut; the threads of a team may share the work. */
void kiln_cuts_add(kiln_cuts *c, uint64_t key);
/* May a key of [first, last] matter to kiln_cuts_add? */
bool kiln_cuts_asks_for(const kiln_cuts *c, uint64_t first, uint64_t last);
/* *more: all keys must be added once more. */
kiln_status kiln_cuts_settle(kiln_cuts *c, bool *more, kiln_error *err) KILN_MUST_CHECK;
/* The next slab; *at: 0 before the first one. False behind the last. More Gaussians than there is room for are in a slab only
 * where they have one key. */
bool kiln_cuts_next(const kiln_cuts *c, uint64_t *at, kiln_slab *out);

KILN_C_END

#endif
