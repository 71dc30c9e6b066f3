/* whole -- a scene in one piece: the planes of all chunks in device memory, one chunk after the
 * other, as those of a single chunk.
 *
 * Problem. A chunk has some ten thousand rows, too few to keep a device busy, and takes as many
 * launches as one with a million rows.
 *
 * Layout. In one piece the scene takes the launches of one chunk. Rows of chunks that no camera has
 * needed yet have NaN means, which no profile counts as visible; so when a chunk is first needed,
 * only its planes are copied. Rows of chunks that this camera cannot see are read and found
 * invisible, which costs 12 bytes of reading for each.
 *
 * The store has it (store.h), and finds and takes its memory.
 */
#ifndef KILN_KERNELS_DRAW_WHOLE_H
#define KILN_KERNELS_DRAW_WHOLE_H

#include "kernels/draw/draw_types.h"

KILN_C_BEGIN

typedef struct {
    char *at; /* NULL: there is none */
    uint64_t bytes;
    kiln_draw_chunk_header header; /* describes all rows together */
    uint32_t sh_degree, n_chunks;
    uint64_t *starts; /* [n_chunks + 1] rows before each chunk */
    uint8_t *loaded;  /* [n_chunks] which of its planes are there (whole.c) */
    /* this scene was dropped for memory that its own pictures needed: it is not tried again */
    bool refused;
    kiln_draw_chunk planes;
    /* shN in half precision (sh_halves.h); NULL: no fast picture was drawn, or there is no
     * memory */
    uint32_t *halves;
    uint64_t halves_bytes;
    bool halves_refused; /* as `refused`, for halves */
} kiln_whole;

/* A scene as it is looked for. */
typedef struct {
    const kiln_draw_chunk_header *all, *headers; /* of all chunks as one, and [n_chunks] of each */
    uint32_t n_chunks, sh_degree;
} kiln_whole_scene;

/* Returns a header that describes all chunks as one; its colour is not set. */
kiln_draw_chunk_header kiln_whole_header(const kiln_draw_chunk_header *headers, uint32_t n_chunks);
/* Returns true if it is, or was before it was dropped, this scene of this degree. */
bool kiln_whole_is(const kiln_whole *w, const kiln_whole_scene *s);
/* Begins this scene in w->at, which has w->bytes, without a loaded chunk. */
kiln_status kiln_whole_begin(kiln_whole *w, const kiln_exec *x, const kiln_whole_scene *s,
                             kiln_error *err) KILN_MUST_CHECK;
/* Returns true if the planes of this chunk are loaded. */
bool kiln_whole_has(const kiln_whole *w, uint32_t chunk, bool colour);
/* Loads the planes of this chunk and waits for the copies. `from` may be without colour. After a
 * failure the chunk may be incomplete. */
kiln_status kiln_whole_load(kiln_whole *w, const kiln_exec *x, uint32_t chunk,
                            const kiln_draw_chunk *from, kiln_error *err) KILN_MUST_CHECK;
/* Returns the bytes of shN in half precision. */
uint64_t kiln_whole_halves_bytes(const kiln_whole *w);
/* Makes shN in half precision of the loaded chunks, in w->halves. Runs on the stream, after the
 * copies and before the picture. */
kiln_status kiln_whole_halve(kiln_whole *w, kiln_runner *r, uint64_t *violation,
                             kiln_error *err) KILN_MUST_CHECK;
/* Give their memory back. `starts` stays: a drawing may still need it to name its chunks. */
void kiln_whole_drop(kiln_whole *w, kiln_runner *r);
void kiln_whole_drop_halves(kiln_whole *w, kiln_runner *r); /* the planes stay */
void kiln_whole_release(kiln_whole *w, kiln_runner *r);
/* Returns the chunk that has this row of the scene; *row_of_chunk is the row in it. Works after the
 * scene was dropped, too. */
uint32_t kiln_whole_chunk(const kiln_whole *w, uint32_t row, uint32_t *row_of_chunk);

KILN_C_END

#endif
