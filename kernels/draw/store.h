/* store -- what kernels/draw keeps in the memory of a runner's device: planes of chunks from picture to picture, the records of one
 * drawing, and scratch memory for the operations. All of it counts against the runner's cap (kiln_runner_take).
 *
 * Problem. Copying a scene's planes to the device takes longer than drawing it, and not every scene fits there.
 *
 * Constraint. A picture never fails because planes occupy memory: everything in the store but the current drawing can be dropped.
 *
 * Layout. When memory is short, the drawing and scratch memory have priority over planes.
 *   - Chunks that the current picture has not used are evicted first, the least recently used one first.
 *   - A chunk of the current picture is never evicted for another chunk of the same picture. Otherwise a scene larger than the
 *     memory would evict each chunk right before it is needed again. A chunk without a place is copied for this picture only.
 *   - If an operation of the runner needs more than is left, everything but a drawing is dropped.
 * If all planes of a scene fit at once, they are stored as those of a single chunk (whole.c, "in one piece"). A picture then takes
 * a dozen launches instead of half a dozen for each chunk.
 *
 * Threads: one at a time, as for the runner. `picture` counts pictures and serves as the clock of use.
 */
#ifndef KILN_KERNELS_STORE_H
#define KILN_KERNELS_STORE_H

#include "kernels/draw/draw.h"

KILN_C_BEGIN

/* A block of device memory. When it grows, its contents are lost. */
typedef struct {
    char *at; /* NULL: nothing yet */
    uint64_t bytes;
} kiln_store_block;

typedef struct kiln_store_planes kiln_store_planes;

/* Where a picture is made (lanes.h). */
typedef struct {
    kiln_exec x;             /* its streams */
    kiln_store_block *block; /* device memory */
    char *landing;           /* KILN_STORE_LANDING bytes of host memory */
} kiln_store_lane;

/* What a lane beside the store's own has. */
typedef struct {
    struct CUstream_st *stream, *side; /* NULL: not made yet */
    kiln_store_block block;
} kiln_store_beside;
enum { KILN_STORE_LANES = 6 }; /* with the store's own */

/* A scene in one piece: the planes of all chunks, one chunk after the other. Planes are copied when a camera first needs the chunk.
 */
typedef struct {
    char *at; /* NULL: there is none */
    uint64_t bytes;
    kiln_draw_chunk_header header; /* describes all rows together */
    uint32_t sh_degree, n_chunks;
    uint64_t *starts; /* [n_chunks + 1] rows before each chunk */
    uint8_t *loaded;  /* [n_chunks] KILN_STORE_ */
    bool refused;     /* this scene was dropped for memory that its own pictures needed: it is not tried again */
    kiln_draw_chunk planes;
    uint32_t *halves; /* shN in half precision (sh_halves.h), for chunks in state KILN_STORE_HALVES; NULL: no fast picture was
                         drawn, or there is no memory */
    uint64_t halves_bytes;
    bool halves_refused; /* as `refused`, for halves */
} kiln_store_whole;
/* Bytes of a place in host memory where small things land, so that their copies wait for nothing: first the numbers of
 * draw_gather.h, then the hashes of a picture. */
enum { KILN_STORE_LANDING = 4096, KILN_STORE_NUMBERS = 64 };
enum { KILN_STORE_PARTS = 4 }; /* at most, of a picture that is copied while it is drawn (pass_outputs.c) */
enum { KILN_STORE_NOTHING, KILN_STORE_GEOMETRY, KILN_STORE_ALL, KILN_STORE_HALVES };

/* Sizes of recent pictures of a scene, from which the next picture's buffers are estimated. The largest size is kept and fades
 * slowly: if views come in no order, a large one after a small one would otherwise exceed its buffers again and again. */
typedef struct {
    unsigned char scene[16];
    uint64_t visible, pairs; /* pairs is 0 if not known */
} kiln_store_sizes;

/* Returns the size to remember after a picture of size `last`. */
static inline uint64_t kiln_store_faded(uint64_t most, uint64_t last)
{
    const uint64_t faded = most - most / 64;
    return last > faded ? last : faded;
}

/* Returns the capacity for the next picture: a sixteenth more and a little. Not more, because unused places are sorted, too. */
static inline uint64_t kiln_store_bound(uint64_t last)
{
    enum { LITTLE = 256 };
    return last + last / 16 + LITTLE;
}

struct kiln_draw_store {
    kiln_runner *runner;
    kiln_store_block records, scratch;
    kiln_store_beside beside[KILN_STORE_LANES - 1];
    bool has_drawing;      /* in `records` */
    bool drawing_is_whole; /* its rows are rows of `whole`, not of chunks */
    kiln_store_whole whole;
    uint64_t refused;      /* rows of the smallest view whose Gaussians did not fit; views with as many rows are not tried again */
    kiln_store_sizes last; /* of pictures of whole views, not of slabs */
    uint64_t picture;      /* number of the current picture */
    struct CUevent_st *marks[KILN_STORE_PARTS]; /* NULL: not made yet */
    char *landing; /* [KILN_STORE_LANES][KILN_STORE_LANDING] host memory, page-locked if that could be */
    bool landing_is_pinned;
    uint64_t planes_bytes; /* of all planes */
    kiln_store_planes *newest, *oldest, *chains[1024];
};

/* Makes block b at least `bytes` large; planes are evicted for it. *fits is false if there is not enough memory. If the block
 * grows, its contents are lost. The stream must be idle. */
kiln_status kiln_store_reserve(kiln_draw_store *s, kiln_store_block *b, uint64_t bytes, bool *fits,
                               kiln_error *err) KILN_MUST_CHECK;
/* Gives a block back. The stream must be idle. */
void kiln_store_drop_block(kiln_draw_store *s, kiln_store_block *b);
/* Call before a drawing is made. If the blocks of earlier drawings are so large that these sizes do not fit beside them, both
 * blocks are given back. */
void kiln_store_trim_blocks(kiln_draw_store *s, uint64_t scratch_bytes, uint64_t records_bytes);
/* Drops planes, then blocks, until `bytes` are free or nothing is left to drop. There must be no drawing, and the stream must be
 * idle. */
void kiln_store_make_room(kiln_draw_store *s, uint64_t bytes);
/* Gives back the block of a drawing that was released. */
void kiln_store_drop_records(kiln_draw_store *s);
/* Returns how many bytes both blocks together could have if all planes were dropped. */
uint64_t kiln_store_most(const kiln_draw_store *s);

/* Copies a chunk's planes from host memory to the planes `to`, starting at row `first`; waits for the copies. */
kiln_status kiln_store_copy_planes(const kiln_draw_store *s, const kiln_draw_chunk *from, const kiln_draw_chunk *to, uint64_t first,
                                   uint32_t sh_degree, kiln_error *err) KILN_MUST_CHECK;
/* Sets the pointers of *out to a chunk's planes in the block `at` and returns their bytes. With `at` NULL it only measures. */
uint64_t kiln_store_lay_out(const kiln_draw_chunk_header *l, uint32_t sh_degree, char *at, kiln_draw_chunk *out);
/* Finds the planes of a chunk and marks them as used by the current picture. Returns false if they are not on the device. */
bool kiln_store_find(kiln_draw_store *s, const kiln_draw_chunk_header *l, uint32_t sh_degree, kiln_draw_chunk *out);
/* Copies a chunk's planes from host memory and keeps them; if there is no memory for that, copies them to `staging` for this
 * picture only. Waits for everything on the stream. */
kiln_status kiln_store_load(kiln_draw_store *s, const kiln_draw_chunk_header *l, uint32_t sh_degree, const kiln_draw_chunk *from,
                            char *staging, kiln_draw_chunk *out, kiln_error *err) KILN_MUST_CHECK;

/* ---- a scene in one piece (whole.c) ------------------------------------------------------------------------------------------ */
/* Returns a header that describes all chunks as one; its colour is not set. */
kiln_draw_chunk_header kiln_store_whole_header(const kiln_draw_chunk_header *headers, uint32_t n_chunks);
/* Sets *there if this scene is on the device in one piece. If it is not, but fits together with `beside` bytes for a drawing,
 * memory is taken for it; its chunks are loaded later. */
kiln_status kiln_store_whole_get(kiln_draw_store *s, const kiln_draw_chunk_header *all, const kiln_draw_chunk_header *headers,
                                 uint32_t n_chunks, uint32_t sh_degree, uint64_t beside, bool *there,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Returns true if it is this scene, and on the device. */
bool kiln_store_whole_is(const kiln_store_whole *w, const kiln_draw_chunk_header *all, uint32_t sh_degree);
/* Returns true if kiln_store_whole_halve would have something to do for this chunk. */
bool kiln_store_whole_lacks_halves(const kiln_store_whole *w, uint32_t chunk);
/* Returns true if the planes of this chunk are loaded. */
bool kiln_store_whole_has(const kiln_store_whole *w, uint32_t chunk, bool colour);
/* Loads the planes of this chunk and waits for the copies. `from` may be without colour. */
kiln_status kiln_store_whole_load(kiln_draw_store *s, uint32_t chunk, const kiln_draw_chunk *from, kiln_error *err) KILN_MUST_CHECK;
/* For fast pictures: makes shN in half precision of the loaded chunks, if there is memory. The picture is the same without, but
 * takes longer. */
kiln_status kiln_store_whole_halve(kiln_draw_store *s, uint64_t *violation, kiln_error *err) KILN_MUST_CHECK;
void kiln_store_whole_drop(kiln_draw_store *s);
void kiln_store_halves_drop(kiln_draw_store *s); /* the planes stay */
/* Returns the chunk that has this row of the scene; *row_of_chunk is the row in it. Works after the scene was dropped, too. */
uint32_t kiln_store_whole_chunk(const kiln_store_whole *w, uint32_t row, uint32_t *row_of_chunk);

/* The arrays of a drawing of n Gaussians in one block of memory. With `at` NULL only `bytes` is set. */
typedef struct {
    kiln_splat2d *splats;
    uint32_t *chunks, *rows;
    uint64_t bytes;
} kiln_store_ordered;
kiln_store_ordered kiln_store_ordered_at(char *at, uint64_t n);

/* Clear the violation word in device memory before the first operation; read it after the last one. Reading waits for the stream
 * and turns a violation into an error. *host must stay valid until the stream has been waited for, whatever this returns. */
kiln_status kiln_store_clear_violation(const kiln_exec *x, uint64_t *violation, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_store_read_violation(const kiln_exec *x, const uint64_t *violation, uint64_t *host,
                                      kiln_error *err) KILN_MUST_CHECK;
/* Returns st. If it is a failure, waits for the stream first, because work that is under way reads and writes host memory. */
kiln_status kiln_store_settle(const kiln_exec *x, kiln_status st) KILN_MUST_CHECK;

KILN_C_END

#endif
