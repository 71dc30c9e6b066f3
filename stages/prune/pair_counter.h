/* pair_counter -- projects rows to a camera and counts their pairs, in the memory of its user, one
 * block at a time. */
#ifndef KILN_STAGES_PRUNE_PAIR_COUNTER_H
#define KILN_STAGES_PRUNE_PAIR_COUNTER_H

#include "stages/prune/prune_units.h"

typedef struct {
    kiln_worker *w;
    const kiln_view_request *request;
    kiln_splat2d *splats; /* [rows of the largest block] */
    uint64_t *row_pairs;  /* [tile rows of the view] */
} kiln_pair_counter;

/* Projects into c->splats; *visible of them are set. */
kiln_status kiln_pair_counter_project(const kiln_pair_counter *c, const kiln_geometry *g,
                                      uint64_t *visible, kiln_error *err) KILN_MUST_CHECK;
/* Counts the pairs of n splats. */
kiln_status kiln_pair_counter_count(const kiln_pair_counter *c, uint64_t n,
                                    const kiln_splat2d *splats, uint64_t *pairs,
                                    kiln_error *err) KILN_MUST_CHECK;
/* Copies the rows that `which` does not have 0 for, planar, into to[11 * how many]; *out are
 * these. */
void kiln_geometry_gather(const kiln_geometry *from, const uint8_t *which, float *to,
                          kiln_geometry *out);

#endif
