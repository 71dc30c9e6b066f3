/* resident_collect -- gathers a view on the device of its store, and makes a drawing or counts of
 * it there.
 *
 * *done: as in resident.h. Device memory: a drawing has 72 bytes for each visible Gaussian. While
 * it is made, 100 more for each Gaussian of the capacity, and the planes of the largest chunk.
 */
#ifndef KILN_KERNELS_RESIDENT_COLLECT_H
#define KILN_KERNELS_RESIDENT_COLLECT_H

#include "kernels/draw/draw_gather.h"

KILN_C_BEGIN

/* As kiln_draw_collect. s->store and s->header must be set. */
kiln_status kiln_resident_collect(const kiln_draw_scene *s, kiln_drawing *out, bool *done,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Sets *capacity to the number of Gaussians that one slab can have; 0 if slabs would be too small
 * to be worth it.
 */
kiln_status kiln_resident_slab_capacity(const kiln_draw_scene *s, uint64_t *capacity,
                                        kiln_error *err) KILN_MUST_CHECK;
/* As kiln_draw_count_all, except that t->pairs is left to the caller. The other members of t must
 * be zero; t is unchanged unless *done. */
kiln_status kiln_resident_count_all(const kiln_draw_scene *s, kiln_draw_tally *t, bool *done,
                                    kiln_error *err) KILN_MUST_CHECK;
/* A kiln_draw_gather.bytes: what a drawing or a count needs. */
kiln_gather_bytes_fn kiln_resident_bytes;

KILN_C_END

#endif
