/* pass_outputs -- what becomes of a picture of a single pass (single_pass.h): it is drawn in parts
 * of some tile rows, bytes, rows and hashes are made of it, and what the caller wants is copied. */
#ifndef KILN_KERNELS_PASS_OUTPUTS_H
#define KILN_KERNELS_PASS_OUTPUTS_H

#include "kernels/draw/draw_gather.h"

KILN_C_BEGIN

/* Where a picture is made. */
typedef struct {
    kiln_gathered g;
    uint32_t *counts, *ids;
    kiln_raster_plan plan;
    float *rgba, *depth;
    unsigned char *hashes, *rows, *colours; /* NULL: not wanted */
    uint64_t bytes;
} kiln_pass_block;

/* The caller opens and closes v. All it points to must stay until the pass has ended. */
typedef struct {
    kiln_draw_gather v;
    const kiln_raster_args *picture; /* in host memory; its rgba may be NULL */
    const kiln_draw_outputs *to;
    uint64_t visible, pairs; /* capacities */
    kiln_pass_block b;       /* in the store's scratch block */
} kiln_pass;

/* Returns in how many parts the picture is drawn, at most KILN_PLAN_PARTS. */
uint32_t kiln_pass_parts(const kiln_pass *p);
/* Returns the arguments of raster for the whole picture. */
kiln_raster_args kiln_pass_raster(const kiln_pass *p, const kiln_pass_block *b);
/* Takes what is made of the picture, and the work space for it. */
kiln_status kiln_pass_lay_out_outputs(const kiln_pass *p, kiln_carve *c, kiln_pass_block *b,
                                      kiln_error *err) KILN_MUST_CHECK;
/* Puts raster, what is made of its picture, and the copies on the streams. */
kiln_status kiln_pass_draw_parts(const kiln_pass *p, kiln_error *err) KILN_MUST_CHECK;
/* Brings what has landed in the store's own memory to the caller's, after the wait. */
void kiln_pass_bring(const kiln_pass *p);

KILN_C_END

#endif
