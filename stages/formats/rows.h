/* rows -- the rows of a chunk as writers get them: selected, moved, cut to the wanted degree.
 *
 * Arrays are planar and little-endian as in the manifest: component c of row i at [c * n + i]. They
 * are the caller's until kiln_export_rows_release; a writer may change them. A worker has the rows
 * of one chunk at a time.
 */
#ifndef KILN_STAGES_FORMATS_ROWS_H
#define KILN_STAGES_FORMATS_ROWS_H

#include "stages/formats/writer.h"

/* Planes that a writer reads. Those that a selection or a move needs are read besides. */
enum {
    KILN_ROWS_MEANS = 1,
    KILN_ROWS_LOG_SCALES = 2,
    KILN_ROWS_QUATS = 4,
    KILN_ROWS_OPACITY = 8,
    KILN_ROWS_SH0 = 16,
    KILN_ROWS_SHN = 32,
    KILN_ROWS_SOURCE_ROW = 64,
    KILN_ROWS_RGB = 128, /* of points */
    /* all other planes of the chunk, as they are: extra/NAME, spacing2, visibility */
    KILN_ROWS_EXTRAS = 256,
    KILN_ROWS_ANCESTRY = 512, /* source_last and source_count, which only chunks of levels have */
    KILN_ROWS_WEIGHTS = 1024, /* the weights of levels, likewise */
    KILN_ROWS_SPLAT = 63,     /* what makes a Gaussian */
};

typedef struct {
    char name[96]; /* of the plane */
    kiln_type type;
    uint32_t components;
    void *data; /* [components][n] */
} kiln_export_plane;

typedef struct {
    const kiln_export_chunk *chunk;
    uint64_t n;     /* rows that are written: chunk->n */
    uint64_t first; /* place of the first in the file, in baked order: chunk->first */
    /* NULL where not asked for */
    float *means;          /* [3][n] without e->origin */
    float *log_scales;     /* [3][n] */
    float *quats;          /* [4][n] w x y z, of any length but 0 */
    float *opacity_logits; /* [n] */
    float *sh0;            /* [3][n] */
    /* [3K][n] coefficient-major, K = (e->sh_degree + 1)^2 - 1; NULL for degree 0 */
    float *shN;
    /* [n] in its bake; of a row of a level the first of those that it stands for */
    uint32_t *source_row;
    float *rgb; /* [3][n] 0..1 */
    /* Of chunks of levels, else NULL. */
    uint32_t *source_last;  /* [n] the last of the source rows that a row stands for */
    uint32_t *source_count; /* [n] how many they are */
    float *weights;         /* [n] opacity times surface, summed over them */
    kiln_export_plane *extras;
    uint32_t n_extras;
} kiln_export_rows;

/* Reads chunk `index` of e->chunks. KILN_E_INPUT: it lacks a plane, a plane has another shape, or
 * the means do not span the chunk's box. KILN_E_IO: it is damaged. */
kiln_status kiln_export_rows_read(kiln_export_worker *x, uint64_t index, unsigned planes,
                                  kiln_export_rows *rows, kiln_error *err) KILN_MUST_CHECK;
/* The bit of a plane's name: KILN_ROWS_MEANS for "means"; KILN_ROWS_EXTRAS for any that has none of
 * its own. */
unsigned kiln_export_plane_bit(const char *name);
/* The array of a plane that was read, by the plane's name; NULL: it was not, or the chunk has
 * none. */
const void *kiln_export_rows_plane(const kiln_export_rows *rows, const char *name);
/* Puts the rows into another order: row i becomes what row order[i] was. work: memory of
 * KILN_ROWS_ORDER_BYTES a row. */
enum { KILN_ROWS_ORDER_BYTES = 8 };
void kiln_export_rows_order(const kiln_export *e, kiln_export_rows *rows, const uint32_t *order,
                            void *work);
void kiln_export_rows_release(kiln_export_rows *rows);
/* What reading takes at most for chunk `index`, and the arrays afterwards: for a round's ram. */
uint64_t kiln_export_rows_ram(const kiln_export *e, uint64_t index, unsigned planes);

#endif
