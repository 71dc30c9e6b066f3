/* store -- what kernels/draw keeps in the memory of a runner's device: planes of chunks from picture to picture, the records of
 * one drawing, and room to work in. All of it counts against the runner's cap (kiln_runner_take).
 *
 * Who goes first where memory is short: the drawing and the room that work needs, then planes. Planes that were not used for the
 * picture in hand give way to those that are, the least recently used first; planes of the picture in hand do not give way to
 * others of it, or a scene that is larger than the memory would throw out each chunk right before it is needed again: what finds
 * no place is copied for this picture alone. Where an operation of the runner needs more than is left, all gives way but a drawing.
 *
 * Where there is room for all planes of a scene at once, they are kept as those of a single chunk (whole.c): a camera's picture
 * then takes a dozen launches instead of half a dozen for each chunk.
 */
#ifndef KILN_KERNELS_STORE_H
#define KILN_KERNELS_STORE_H

#include "kernels/draw/draw.h"

KILN_C_BEGIN

/* Device memory that grows and is not kept over a growth. */
typedef struct {
    char *at; /* NULL: nothing yet */
    uint64_t bytes;
} kiln_store_block;

typedef struct kiln_store_planes kiln_store_planes;

/* All chunks of a scene, one behind the other; those that no camera has seen yet are not there. */
typedef struct {
    char *at; /* NULL: there is none */
    uint64_t bytes;
    kiln_draw_chunk_header header; /* of all rows together */
    uint32_t sh_degree, n_chunks;
    uint64_t *starts; /* [n_chunks + 1] rows before each chunk */
    uint8_t *loaded;  /* [n_chunks] KILN_STORE_ */
    bool refused;     /* it had to give way to what this scene needs beside it: not tried again */
    kiln_draw_chunk planes;
    uint32_t *halves; /* of shN (sh_halves.h), of chunks that say so; NULL: no fast picture was drawn, or there is no room */
    uint64_t halves_bytes;
    bool halves_refused; /* as refused */
} kiln_store_whole;
enum { KILN_STORE_NOTHING, KILN_STORE_GEOMETRY, KILN_STORE_ALL, KILN_STORE_HALVES };

/* Of the last picture: the next one of that scene has about as many. What the most of those before had fades slowly, or views that
 * come in no order, a large one behind a small one, would again and again have too little room. */
typedef struct {
    unsigned char scene[16];
    uint64_t visible, pairs; /* pairs 0: not known */
} kiln_store_sizes;

static inline uint64_t kiln_store_faded(uint64_t most, uint64_t last)
{
    const uint64_t faded = most - most / 64;
    return last > faded ? last : faded;
}

/* What the next one has room for: a sixteenth more, and a little, as what is not used of it is sorted all the same. */
static inline uint64_t kiln_store_bound(uint64_t last)
{
    enum { LITTLE = 256 };
    return last + last / 16 + LITTLE;
}

struct kiln_draw_store {
    kiln_runner *runner;
    kiln_store_block records, scratch;
    bool has_drawing;      /* in records */
    bool drawing_is_whole; /* its rows are those of `whole`, all chunks counted through */
    kiln_store_whole whole;
    uint64_t refused;      /* rows of the smallest view whose Gaussians found no room: that many are not tried again */
    kiln_store_sizes last; /* of a picture of all that a camera sees */
    uint64_t picture;      /* counts pictures: the clock of use */
    uint64_t planes_bytes; /* of all planes */
    kiln_store_planes *newest, *oldest, *chains[1024];
};

/* At least so many bytes, for which planes give way; *fits false where there are not so many. What the block held is lost when it
 * grows. The stream must be idle. */
kiln_status kiln_store_reserve(kiln_draw_store *s, kiln_store_block *b, uint64_t bytes, bool *fits,
                               kiln_error *err) KILN_MUST_CHECK;
/* Before a drawing: blocks of earlier ones go where they are so large that one leaves too little for the other. */
void kiln_store_trim_blocks(kiln_draw_store *s, uint64_t scratch_bytes, uint64_t records_bytes);
/* Until so many bytes are left, as far as that can be; planes and blocks give way. There is no drawing, and the stream is idle. */
void kiln_store_make_room(kiln_draw_store *s, uint64_t bytes);
/* Of a drawing that is not there any more. */
void kiln_store_drop_records(kiln_draw_store *s);
/* What both blocks together could have. */
uint64_t kiln_store_most(const kiln_draw_store *s);

/* Copies a chunk's planes from host memory to row `first` of those of `to`; waits for that. */
kiln_status kiln_store_copy_planes(const kiln_draw_store *s, const kiln_draw_chunk *from, const kiln_draw_chunk *to, uint64_t first,
                                   uint32_t sh_degree, kiln_error *err) KILN_MUST_CHECK;
/* A chunk's planes in device memory; sets the pointers of `out` and says how many bytes that are; at NULL: the bytes alone. */
uint64_t kiln_store_lay_out(const kiln_draw_chunk_header *l, uint32_t sh_degree, char *at, kiln_draw_chunk *out);
/* Finds the planes of a chunk and notes that they are used; false: they are not here. */
bool kiln_store_find(kiln_draw_store *s, const kiln_draw_chunk_header *l, uint32_t sh_degree, kiln_draw_chunk *out);
/* Copies planes from host memory, to be kept where there is room, else into `staging`. Done when it returns, as is all before
 * it. */
kiln_status kiln_store_load(kiln_draw_store *s, const kiln_draw_chunk_header *l, uint32_t sh_degree, const kiln_draw_chunk *from,
                            char *staging, kiln_draw_chunk *out, kiln_error *err) KILN_MUST_CHECK;

/* ---- a scene in one piece (whole.c) ------------------------------------------------------------------------------------------ */
/* The header of all chunks together, but for colour. */
kiln_draw_chunk_header kiln_store_whole_header(const kiln_draw_chunk_header *headers, uint32_t n_chunks);
/* Is this scene there in one piece, or is there room for it beside `beside` bytes for a drawing? It is made then, empty. */
kiln_status kiln_store_whole_get(kiln_draw_store *s, const kiln_draw_chunk_header *all, const kiln_draw_chunk_header *headers,
                                 uint32_t n_chunks, uint32_t sh_degree, uint64_t beside, bool *there,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Are the planes of this chunk in their place? */
bool kiln_store_whole_has(const kiln_store_whole *w, uint32_t chunk, bool colour);
/* Puts them there; `from` may be without colour. Done when it returns. */
kiln_status kiln_store_whole_load(kiln_draw_store *s, uint32_t chunk, const kiln_draw_chunk *from, kiln_error *err) KILN_MUST_CHECK;
/* For a fast picture: harmonics in half precision of the chunks whose planes are in place, where there is room for them. The
 * picture is the same without. */
kiln_status kiln_store_whole_halve(kiln_draw_store *s, uint64_t *violation, kiln_error *err) KILN_MUST_CHECK;
void kiln_store_whole_drop(kiln_draw_store *s);
void kiln_store_halves_drop(kiln_draw_store *s); /* the scene stays */
/* A row of all of them: the chunk that has it, and which row it is there. Known of a scene that was dropped, too. */
uint32_t kiln_store_whole_chunk(const kiln_store_whole *w, uint32_t row, uint32_t *row_of_chunk);

/* A drawing of n in one block of memory; at NULL: the bytes alone. */
typedef struct {
    kiln_splat2d *splats;
    uint32_t *chunks, *rows;
    uint64_t bytes;
} kiln_store_ordered;
kiln_store_ordered kiln_store_ordered_at(char *at, uint64_t n);

/* The violation word in device memory, before the first operation, and behind the last one: waits, and says what is wrong. `host`
 * must stay where it is until the stream has been waited for, whatever this returns. */
kiln_status kiln_store_clear_violation(const kiln_exec *x, uint64_t *violation, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_store_read_violation(const kiln_exec *x, const uint64_t *violation, uint64_t *host,
                                      kiln_error *err) KILN_MUST_CHECK;
/* The status of what was put on the stream; where that failed, waits for what is under way, which reads and writes host memory. */
kiln_status kiln_store_settle(const kiln_exec *x, kiln_status st) KILN_MUST_CHECK;

KILN_C_END

#endif
