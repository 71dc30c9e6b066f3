/* draw_gather -- projects the chunks of a view into one array of visible Gaussians in device
 * memory.
 *
 * Problem. Chunks are projected one by one, and only the device knows how many Gaussians of each
 * are visible. Reading that number back would make the host wait for every chunk.
 *
 * Constraint. The host waits only where planes are copied to the device. All arrays have a capacity
 * that is fixed before the first launch.
 *
 * Layout. If the whole scene is on the device in one piece (whole.h), one projection finds all
 * visible Gaussians. Otherwise each chunk is projected, and visible_gather appends its visible
 * Gaussians where those of the chunks before end; a counter in device memory says where. Gaussians
 * beyond the capacity are counted but not written.
 *
 *   kiln_gather_open      asks for the chunk headers
 *   kiln_gather_lay_out   takes its arrays from the caller's block; called with a block at NULL
 *                         first, to measure
 *   kiln_gather_run       puts the work on the stream
 *   kiln_gather_ask       has the counters copied to the host
 *   kiln_gather_read      waits for them
 *   kiln_gather_close     after every kiln_gather_open, after a failure, too
 */
#ifndef KILN_KERNELS_GATHER_H
#define KILN_KERNELS_GATHER_H

#include "base/carve.h"
#include "kernels/draw/store.h"

KILN_C_BEGIN

typedef struct kiln_draw_gather kiln_draw_gather;
/* Sets *bytes to the device memory that the caller needs besides the planes, for a capacity of so
 * many Gaussians. */
typedef kiln_status kiln_gather_bytes_fn(const kiln_draw_gather *v, uint64_t capacity,
                                         uint64_t *bytes, kiln_error *err);

/* One view. The caller sets the members up to `bytes`; kiln_gather_open sets the others. */
struct kiln_draw_gather {
    const kiln_draw_scene *scene;
    kiln_draw_store *store;
    kiln_exec x;
    /* of all operations, if it is known from laying out the same before; 0: they are asked */
    size_t work_bytes;
    char *landing; /* KILN_STORE_LANDING bytes of host memory */
    bool counts;   /* only counts are wanted, and nothing is sorted */
    /* used to decide whether the scene fits on the device in one piece */
    kiln_gather_bytes_fn *bytes;
    kiln_draw_chunk_header *headers; /* [n_chunks] */
    kiln_draw_chunk_header all;      /* describes all chunks as if they were one */
    /* describes the largest piece that one launch projects: a chunk, or all */
    kiln_draw_chunk_header largest;
    uint64_t rows; /* of all chunks that are not hidden */
    bool whole;    /* the scene is on the device in one piece */
};

/* What the host reads back at the end. Before the first launch all are 0, except `violation`, which
 * is KILN_VIOLATION_NONE. */
typedef struct {
    uint64_t violation;
    uint64_t total;         /* visible Gaussians, including those beyond the capacity */
    uint64_t list_stats[3]; /* `stats` of tile_lists; used by single_pass.c */
} kiln_gather_numbers;

/* Arrays in device memory. */
typedef struct {
    uint64_t capacity;
    kiln_gather_numbers *numbers;
    uint64_t *violation, *total, *list_stats; /* the members of *numbers */
    kiln_splat2d *splats;                     /* [capacity] visible Gaussians, not sorted */
    float *depths;                            /* [capacity] */
    /* [capacity] source row and chunk of each; chunks is NULL if v->whole */
    uint32_t *rows, *chunks;
    /* [n_chunks] pairs of the renderer's own boxes; NULL unless v->counts */
    uint64_t *boxes;
    /* [1] visible Gaussians of a chunk; NULL if v->whole, as are the next two */
    uint64_t *visible;
    /* planes of a chunk for which the store has no place */
    char *staging;
    kiln_splat2d *of_chunk; /* the projection of a chunk */
    /* those of of_chunk that belong to the slab; NULL without a window, as are the next two */
    kiln_splat2d *kept;
    uint64_t *n_kept;
    uint32_t *live; /* kiln_visible_window.live */
    void *work;     /* of all operations, because one runs after the other */
    size_t work_bytes;
} kiln_gathered;

/* Asks for the headers and decides whether the scene is, or can be, on the device in one piece.
 * *may is false if a view with no more rows has failed to fit before. Call kiln_gather_close in any
 * case. */
kiln_status kiln_gather_open(kiln_draw_gather *v, bool *may, kiln_error *err) KILN_MUST_CHECK;
void kiln_gather_close(kiln_draw_gather *v);
/* Takes the arrays of *g from the block c. The work space is taken last: the caller names its own
 * operations with kiln_gather_add_work, then calls kiln_gather_take_work. */
kiln_status kiln_gather_lay_out(const kiln_draw_gather *v, kiln_carve *c, uint64_t capacity,
                                kiln_gathered *g, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_gather_add_work(const kiln_draw_gather *v, kiln_op_id op, const void *args,
                                 kiln_gathered *g, kiln_error *err) KILN_MUST_CHECK;
void kiln_gather_take_work(kiln_carve *c, kiln_gathered *g);
/* Clears the violation word and the counters, then projects and gathers all chunks on the
 * stream. */
kiln_status kiln_gather_run(const kiln_draw_gather *v, const kiln_gathered *g,
                            kiln_error *err) KILN_MUST_CHECK;
/* Launches one more operation with the same work space and violation word. */
kiln_status kiln_gather_launch(const kiln_draw_gather *v, const kiln_gathered *g, kiln_op_id op,
                               const void *args, kiln_error *err) KILN_MUST_CHECK;

/* Has the counters copied to the first bytes of v->landing. */
kiln_status kiln_gather_ask(const kiln_draw_gather *v, const kiln_gathered *g,
                            kiln_error *err) KILN_MUST_CHECK;
/* Waits for the streams, takes the counters from there, and turns a violation into an error. */
kiln_status kiln_gather_read(const kiln_draw_gather *v, kiln_gather_numbers *out,
                             kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
