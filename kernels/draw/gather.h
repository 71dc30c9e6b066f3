/* gather -- what a camera sees of a scene, in a device's memory: the headers of its chunks, which of their planes must come, and
 * the projection of all of them into one room. A scene that is there in one piece is projected at once; else each chunk's visible
 * Gaussians are appended where those of the chunks before end, which a number in device memory says.
 *
 *   kiln_gather_open       asks for headers
 *   kiln_gather_lay_out    in a block of the caller's, who adds arrays of its own: once at NULL, for the bytes
 *   kiln_gather_run        puts it on the stream; waits where planes are copied, and nowhere else
 *   kiln_gather_read       waits
 *   kiln_gather_close
 */
#ifndef KILN_KERNELS_GATHER_H
#define KILN_KERNELS_GATHER_H

#include "base/carve.h"
#include "kernels/draw/store.h"

KILN_C_BEGIN

typedef struct kiln_gather kiln_gather;
/* All device memory beside planes that is taken when there is room for so many Gaussians. */
typedef kiln_status kiln_gather_bytes_fn(const kiln_gather *v, uint64_t capacity, uint64_t *bytes, kiln_error *err);

/* A view before it is drawn. */
struct kiln_gather {
    const kiln_draw_scene *scene;
    kiln_draw_store *store;
    kiln_exec x;
    bool counts;                     /* for its number and its boxes' pairs alone: in no order */
    kiln_gather_bytes_fn *bytes;     /* decides whether the scene can be there in one piece */
    kiln_draw_chunk_header *headers; /* [n_chunks] */
    kiln_draw_chunk_header all;      /* of them together */
    kiln_draw_chunk_header largest;  /* of what is projected at a time */
    uint64_t rows;                   /* of all chunks that may be seen */
    bool whole;                      /* in one piece */
};

/* What the host learns when all is done; 0 before, but for the violation. */
typedef struct {
    uint64_t violation;
    uint64_t total;         /* visible Gaussians, with or without room */
    uint64_t list_stats[3]; /* of tile_lists, for who calls it */
} kiln_gather_numbers;

/* Arrays in device memory. */
typedef struct {
    uint64_t capacity;
    kiln_gather_numbers *numbers;
    uint64_t *violation, *total, *list_stats; /* where they are in it */
    kiln_splat2d *splats;                     /* [room] as they come, and their depths and source rows */
    float *depths;
    uint32_t *rows, *chunks; /* chunks NULL where the scene is in one piece */
    uint64_t *boxes;         /* [n_chunks] when it counts */
    uint64_t *visible;       /* of a chunk, this and what follows; NULL where the scene is in one piece */
    char *staging;
    kiln_splat2d *of_chunk;
    kiln_splat2d *kept; /* of a slab, of one chunk */
    uint64_t *n_kept;
    uint32_t *live;
    void *work; /* of each operation on them: one runs after the other */
    size_t work_bytes;
} kiln_gathered;

/* Of v the first members, up to `bytes`, are there. *may false: no view of so many rows found room. In any case, and after a
 * failure, kiln_gather_close. */
kiln_status kiln_gather_open(kiln_gather *v, bool *may, kiln_error *err) KILN_MUST_CHECK;
void kiln_gather_close(kiln_gather *v);
/* g->work is taken last, by kiln_gather_take_work, when all operations have said what they need. */
kiln_status kiln_gather_lay_out(const kiln_gather *v, kiln_carve *c, uint64_t capacity, kiln_gathered *g,
                                kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_gather_add_work(const kiln_gather *v, kiln_op_id op, const void *args, kiln_gathered *g,
                                 kiln_error *err) KILN_MUST_CHECK;
void kiln_gather_take_work(kiln_carve *c, kiln_gathered *g);
/* Clears the violation word before. */
kiln_status kiln_gather_run(const kiln_gather *v, const kiln_gathered *g, kiln_error *err) KILN_MUST_CHECK;
/* One more operation, with the same work and violation word. */
kiln_status kiln_gather_launch(const kiln_gather *v, const kiln_gathered *g, kiln_op_id op, const void *args,
                               kiln_error *err) KILN_MUST_CHECK;

/* Waits, and says what was wrong; *out must stay where it is until the stream has been waited for, whatever this returns. */
kiln_status kiln_gather_read(const kiln_gather *v, const kiln_gathered *g, kiln_gather_numbers *out,
                             kiln_error *err) KILN_MUST_CHECK;
/* What a drawing takes, or a count: for `bytes` above (resident_collect.c). */
kiln_gather_bytes_fn kiln_resident_bytes;

KILN_C_END

#endif
