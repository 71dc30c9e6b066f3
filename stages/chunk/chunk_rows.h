/* chunk_rows -- what a row of a layer is made of, and lists of rows that lie in one piece of it. */
#ifndef KILN_STAGES_CHUNK_ROWS_H
#define KILN_STAGES_CHUNK_ROWS_H

#include "schema/manifest.h"

/* A plane that goes into a chunk. */
typedef struct {
    const kiln_layer *layer; /* where it is: the input, or the layer `spacing` */
    const kiln_plane *plane; /* name, type and components, as in every block */
    uint32_t size;           /* bytes of an element */
    /* bytes of a row in the parts that lie before this one: those of wider elements first */
    uint64_t at;
} kiln_row_part;

typedef struct {
    kiln_row_part *items; /* owned */
    uint32_t n;
    uint64_t row_bytes;
} kiln_row_parts;

/* The planes of the layer by name, then spacing2 of `spacing` unless that is NULL. Borrows both.
 * Also right for a layer without rows, which has none. */
kiln_status kiln_row_parts_make(const kiln_layer *layer, const kiln_layer *spacing,
                                kiln_row_parts *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_row_parts_release(kiln_row_parts *p);
uint64_t kiln_row_parts_largest(const kiln_row_parts *p); /* bytes of a row in its largest plane */
/* KILN_E_IO when the block has the plane in another type. */
kiln_status kiln_row_part_check(const kiln_row_part *p, const kiln_chunk *block,
                                kiln_error *err) KILN_MUST_CHECK;

/* Rows of a layer by their blocks: starts[i] is the first row of block i, starts[n_blocks] the
 * count. free(*out). */
kiln_status kiln_block_starts(const kiln_layer *l, uint64_t **out, kiln_error *err) KILN_MUST_CHECK;
/* The piece in which a row lies: starts[result] <= row < starts[result + 1]. */
uint32_t kiln_piece_of(const uint64_t *starts, uint32_t n_pieces, uint64_t row);
/* The pair of a row below starts[n_blocks]: its block, and its row there. The hash of a chunk's
 * pairs says which rows it has. */
static inline void kiln_row_pair(const uint64_t *starts, uint32_t n_blocks, uint32_t row,
                                 uint32_t pair[2])
{
    pair[0] = kiln_piece_of(starts, n_blocks, row);
    pair[1] = (uint32_t)(row - starts[pair[0]]);
}

/* Places of a chunk by the pieces that their rows lie in, in each piece in the order of places. */
typedef struct {
    uint32_t *from;   /* [n] row in its piece */
    uint32_t *to;     /* [n] place in the chunk */
    uint64_t *starts; /* [n_pieces + 1] of the pieces in both */
    uint64_t n;
} kiln_row_list;

/* rows: [n], below starts[n_pieces] (KILN_E_IO). Release also after a failure. */
kiln_status kiln_row_list_make(const uint32_t *rows, uint64_t n, const uint64_t *starts,
                               uint32_t n_pieces, kiln_row_list *out,
                               kiln_error *err) KILN_MUST_CHECK;
void kiln_row_list_release(kiln_row_list *l);

/* Planar arrays of elements; rows is the distance between components. */
typedef struct {
    const unsigned char *from;
    unsigned char *to;
    uint64_t from_rows, to_rows;
    uint32_t components, size;
} kiln_row_copy;

/* to[to[i]] = from[from[i]] of every component; from or to NULL: i itself. */
void kiln_rows_copy(const kiln_row_copy *c, const uint32_t *from, const uint32_t *to, uint64_t n,
                    unsigned threads);
/* The same of one component on this thread, for short pieces: a parallel region would cost more
 * than they do. */
void kiln_row_component_copy(const kiln_row_copy *s, uint32_t c, const uint32_t *from,
                             const uint32_t *to, uint64_t n);

#endif
