/* origin -- where the coordinates of a float64 source are measured from.
 *
 * If the largest |coordinate| exceeds 256 times the diagonal of the box of the central 98 % (exact
 * nearest ranks of each axis), the origin is that box's centre rounded to a whole unit, else 0.
 *
 * Exact ranks of doubles that arrive in pieces, in 3 MiB: the doubles as ordered 64-bit keys, 16
 * bits settled per pass over the file, at most four passes. Almost always the first pass, which the
 * scan makes anyway, already shows that the origin is 0: then no other is needed.
 */
#ifndef KILN_STAGES_IMPORT_ORIGIN_H
#define KILN_STAGES_IMPORT_ORIGIN_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t n; /* rows counted in the first pass */
    double max_abs;
    unsigned pass;      /* 0..3 */
    uint64_t prefix[6]; /* settled high bits of the keys: low x y z, high x y z */
    uint64_t rank[6];   /* from 0, among the keys with that prefix */
    uint64_t *counts;   /* [6][65536] owned */
} kiln_origin;

kiln_status kiln_origin_init(kiln_origin *o, kiln_error *err) KILN_MUST_CHECK;
void kiln_origin_release(kiln_origin *o);
/* means [3][n]; rows whose `skip` is not 0 do not count. The same rows in every pass. */
void kiln_origin_add(kiln_origin *o, const double *means, const unsigned char *skip, uint64_t n);
/* Ends a pass. True: another pass is needed; false: *origin holds the answer. */
bool kiln_origin_next(kiln_origin *o, double origin[3]);

#endif
