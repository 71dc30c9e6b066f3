/* single_pass -- a picture without a drawing, in two halves: its work is put on streams, and its end is waited for. In between
 * other pictures may be under way, on other streams and in other memory (lanes.c).
 *
 * pass_outputs.c has what becomes of the picture: parts, bytes, rows and hashes, and their copies.
 */
#ifndef KILN_KERNELS_SINGLE_PASS_H
#define KILN_KERNELS_SINGLE_PASS_H

#include "kernels/draw/draw_gather.h"
#include "kernels/draw/resident.h"

KILN_C_BEGIN

/* Where a picture is made. */
typedef struct {
    kiln_gathered g;
    uint32_t *counts, *ids;
    float *rgba, *depth;
    unsigned char *hashes, *rows, *colours; /* NULL: not wanted */
    uint64_t bytes;
} kiln_pass_block;

/* The caller opens and closes v. All it points to must stay until the pass has ended. */
typedef struct {
    kiln_draw_gather v;
    const kiln_raster_args *picture; /* in host memory; its rgba may be NULL */
    const kiln_draw_outputs *to;
    kiln_store_lane lane;
    uint64_t visible, pairs; /* capacities */
    kiln_pass_block b;       /* in lane.block */
} kiln_pass;

/* Says whether a single pass can be tried: there is a device, no drawing, and a picture was drawn before. */
bool kiln_pass_may(const kiln_draw_scene *s);
/* Returns a pass that has not started. */
kiln_pass kiln_pass_of(const kiln_draw_scene *s, const kiln_raster_args *a, const kiln_draw_outputs *to, kiln_store_lane lane);
/* What a pass may do about memory. */
typedef enum {
    KILN_PASS_BESIDE, /* nothing: others are under way, which read the store's */
    KILN_PASS_IDLE,   /* take some that is left: all lanes are idle */
    KILN_PASS_ALONE   /* take that of the other lanes, too: all are idle */
} kiln_pass_company;
/* Puts all work of the picture on the lane's streams. *fits is false if nothing was, because no earlier picture is of this scene or
 * memory is short. Evicts no planes. */
kiln_status kiln_pass_start(kiln_pass *p, kiln_pass_company company, bool *fits, kiln_error *err) KILN_MUST_CHECK;
/* Waits for it. *done is false if more is visible than there was room for; the store knows now how much that is. */
kiln_status kiln_pass_end(kiln_pass *p, kiln_draw_stats *stats, bool *done, kiln_error *err) KILN_MUST_CHECK;

/* ---- pass_outputs.c --------------------------------------------------------------------------------------------------- */
/* Returns the arguments of raster for the whole picture. */
kiln_raster_args kiln_pass_raster(const kiln_pass *p, const kiln_pass_block *b);
/* Takes what is made of the picture, and the work space for it. */
kiln_status kiln_pass_lay_out_outputs(const kiln_pass *p, kiln_carve *c, kiln_pass_block *b, kiln_error *err) KILN_MUST_CHECK;
/* Puts raster, what is made of its picture, and the copies on the streams. */
kiln_status kiln_pass_draw_parts(const kiln_pass *p, kiln_error *err) KILN_MUST_CHECK;
/* Brings what has landed in the lane's own memory to the caller's, after the wait. */
void kiln_pass_bring(const kiln_pass *p);

KILN_C_END

#endif
