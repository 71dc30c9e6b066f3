/* store -- what kernels/draw keeps in the memory of a runner's device: planes of chunks from
 * picture to picture, the records of one drawing, and scratch memory for the operations. All of it
 * counts against the runner's cap (kiln_runner_take).
 *
 * Problem. Copying a scene's planes to the device takes longer than drawing it, and not every scene
 * fits there.
 *
 * Constraint. A picture never fails because planes occupy memory: everything in the store but the
 * current drawing can be dropped.
 *
 * Layout. When memory is short, the drawing and scratch memory have priority over planes.
 *   - Chunks that the current picture has not used are evicted first, the least recently used one
 *     first.
 *   - A chunk of the current picture is never evicted for another chunk of the same picture.
 *     Otherwise a scene larger than the memory would evict each chunk right before it is needed
 *     again. A chunk without a place is copied for this picture only.
 *   - If an operation of the runner needs more than is left, everything but a drawing is dropped.
 * If all planes of a scene fit at once, they are stored as those of a single chunk (whole.h, "in
 * one piece"). A picture then takes a dozen launches instead of half a dozen for each chunk.
 *
 * What a store is made of is known in store.c alone; others ask it. Threads: one at a time, as for
 * the runner.
 */
#ifndef KILN_KERNELS_STORE_H
#define KILN_KERNELS_STORE_H

#include "kernels/draw/draw_types.h"
#include "kernels/draw/pass_sizes.h"
#include "kernels/draw/whole.h"
#include "kernels/raster/raster_plan.h"

KILN_C_BEGIN

kiln_runner *kiln_store_runner(const kiln_draw_store *s);
kiln_exec kiln_store_exec(const kiln_draw_store *s); /* of its runner */
/* Begins a picture: planes that it uses are not evicted for others of it. The number of the picture
 * is the clock of use. */
void kiln_store_next_picture(kiln_draw_store *s);

/* ---- blocks of memory ------------------------------------------------------------------------ */
/* A block of device memory. When it grows, its contents are lost. */
typedef struct {
    char *at; /* NULL: nothing yet */
    uint64_t bytes;
} kiln_store_block;
kiln_store_block *kiln_store_scratch(kiln_draw_store *s); /* for one step at a time */
kiln_store_block *kiln_store_records(kiln_draw_store *s); /* of the drawing */
/* Makes block b at least `bytes` large; planes are evicted for it. *fits is false if there is not
 * enough memory. If the block grows, its contents are lost. The stream must be idle. */
kiln_status kiln_store_reserve(kiln_draw_store *s, kiln_store_block *b, uint64_t bytes, bool *fits,
                               kiln_error *err) KILN_MUST_CHECK;
/* Gives a block back. The stream must be idle. */
void kiln_store_drop_block(kiln_draw_store *s, kiln_store_block *b);
/* Call before a drawing is made. If the blocks of earlier drawings are so large that these sizes do
 * not fit beside them, both blocks are given back. */
void kiln_store_trim_blocks(kiln_draw_store *s, uint64_t scratch_bytes, uint64_t records_bytes);
/* Returns how many bytes both blocks together could have if all planes were dropped. */
uint64_t kiln_store_most(const kiln_draw_store *s);

/* ---- the drawing ----------------------------------------------------------------------------- */
bool kiln_store_has_drawing(const kiln_draw_store *s);
/* From now on the block of records holds a drawing. whole: its rows are rows of the scene in one
 * piece, not of chunks. */
void kiln_store_hold_drawing(kiln_draw_store *s, bool whole);
bool kiln_store_drawing_is_whole(const kiln_draw_store *s);
void kiln_store_release_drawing(kiln_draw_store *s); /* the block stays */
/* The arrays of a drawing of n Gaussians in one block of memory. With `at` NULL only `bytes` is
 * set. */
typedef struct {
    kiln_splat2d *splats;
    uint32_t *chunks, *rows;
    uint64_t bytes;
} kiln_store_ordered;
kiln_store_ordered kiln_store_ordered_at(char *at, uint64_t n);
/* Of views whose Gaussians did not fit, the one of fewest rows is remembered: views with as many
 * are not tried again. */
void kiln_store_refuse(kiln_draw_store *s, uint64_t rows);
bool kiln_store_may(const kiln_draw_store *s, uint64_t rows);

/* ---- planes of chunks ------------------------------------------------------------------------ */
/* of all planes, a scene in one piece and its halves included */
uint64_t kiln_store_planes_bytes(const kiln_draw_store *s);
/* Finds the planes of a chunk and marks them as used by the current picture. Returns false if they
 * are not on the device. */
bool kiln_store_find(kiln_draw_store *s, const kiln_draw_chunk_header *l, uint32_t sh_degree,
                     kiln_draw_chunk *out);
/* Copies a chunk's planes from host memory and keeps them; if there is no memory for that, copies
 * them to `staging` for this picture only. Waits for everything on the stream. */
kiln_status kiln_store_load(kiln_draw_store *s, const kiln_draw_chunk_header *l, uint32_t sh_degree,
                            const kiln_draw_chunk *from, char *staging, kiln_draw_chunk *out,
                            kiln_error *err) KILN_MUST_CHECK;

/* ---- a scene in one piece (whole.h) ---------------------------------------------------------- */
const kiln_whole *kiln_store_whole(const kiln_draw_store *s);
/* Sets *there if this scene is on the device in one piece. If it is not, but fits together with
 * `beside` bytes for a drawing, memory is taken for it; its chunks are loaded later. */
kiln_status kiln_store_whole_get(kiln_draw_store *s, const kiln_whole_scene *scene, uint64_t beside,
                                 bool *there, kiln_error *err) KILN_MUST_CHECK;
/* Loads the planes of this chunk and waits for the copies. `from` may be without colour. */
kiln_status kiln_store_whole_load(kiln_draw_store *s, uint32_t chunk, const kiln_draw_chunk *from,
                                  kiln_error *err) KILN_MUST_CHECK;
/* For fast pictures: makes shN in half precision of the loaded chunks, if there is memory. The
 * picture is the same without, but takes longer. */
kiln_status kiln_store_whole_halve(kiln_draw_store *s, uint64_t *violation,
                                   kiln_error *err) KILN_MUST_CHECK;

/* ---- for a picture --------------------------------------------------------------------------- */
/* of pictures of whole views, not of slabs */
kiln_pass_sizes *kiln_store_sizes(kiln_draw_store *s);
/* Bytes of a place in host memory where small things land, so that their copies wait for nothing:
 * first the numbers of draw_gather.h, then the hashes of a picture. */
enum { KILN_STORE_LANDING = 4096, KILN_STORE_NUMBERS = 64 };
/* page-locked if that could be; NULL on the CPU */
char *kiln_store_landing(const kiln_draw_store *s);
/* [KILN_PLAN_PARTS] of the parts of a picture that is copied while it is drawn (pass_outputs.c);
 * NULL: not made yet */
struct CUevent_st **kiln_store_marks(kiln_draw_store *s);

KILN_C_END

#endif
