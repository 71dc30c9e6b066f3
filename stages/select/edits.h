/* edits -- moves the rows that are written, and cuts their degree: --scale, --rotate, --translate,
 * --sh-degree.
 *
 *   x' = s R (x + from) + t - to      from: origin of the rows' layer, to: origin of what is
 *                                     written
 *
 * as in kiln-import: scaled first, then turned about x, y and z, then translated, with rotations,
 * log scales, spherical harmonics and normals (kernels/similarity). Coordinates are doubles in
 * between and are rounded to float32 once, so that a scene that is moved on export has the rows
 * that it has when it is moved on import. The same bits on every machine.
 *
 * Pure functions; any thread may call them.
 */
#ifndef KILN_STAGES_SELECT_EDITS_H
#define KILN_STAGES_SELECT_EDITS_H

#include "base/status.h"
#include "kernels/similarity/similarity.h"
#include "schema/manifest.h"

#include <stdbool.h>
#include <stdint.h>

/* Without pointers, so that it can be a part of a worker's request. */
typedef struct {
    kiln_similarity move;
    bool moves;
    uint32_t sh_degree; /* of what is written, at most */
} kiln_edits;

void kiln_edits_of(const double translate[3], const double rotate[3], double scale,
                   uint32_t sh_degree, kiln_edits *out);

/* Degree of what is written of a layer. */
static inline uint32_t kiln_edits_degree(const kiln_edits *e, uint32_t layer_degree)
{
    return layer_degree < e->sh_degree ? layer_degree : e->sh_degree;
}

/* Where coordinates of what is written are measured from, found from one layer after the other. */
typedef struct {
    uint32_t n;              /* layers */
    bool same;               /* all of them have `first` as their origin */
    double first[3], far[3]; /* of the first layer; of the first one whose origin is not 0, moved */
    bool has_far;
    double lo[3], hi[3]; /* of the moved boxes of chunks with rows */
} kiln_edits_span;
/* span: zeroed before the first layer. chosen[c] 0: chunk c of the layer is not written; NULL: all
 * are. */
void kiln_edits_span_add(kiln_edits_span *span, const kiln_edits *e, const kiln_layer *layer,
                         const uint8_t *chosen, const double origin[3]);
/* Without a move and with one origin that one, to the bit. Else whole numbers: where a layer has an
 * origin, that of the first such one, moved; where none has one, 0, or the middle of what is
 * written where that lies farther from 0 than 256 times its size (as import decides, which leaves
 * out the outermost rows for it). */
void kiln_edits_origin(const kiln_edits_span *span, const kiln_edits *e, double origin[3]);

/* Planes of n rows, planar, changed in place; NULL: there is none. */
typedef struct {
    uint64_t n;
    float *means, *log_scales, *quats, *shN;
    float *normals[3];  /* columns nx, ny, nz: all or none */
    uint32_t sh_degree; /* of shN as it is given: cut it first, kiln_edits_degree */
} kiln_edit_rows;

/* work: [3][n], needed where there are means; *bad: the first row that is not finite afterwards, or
 * whose log scale is above 88, n: there is none. Log scales below -87 become -87, as on import.
 * Bits of what the move does not change stay. */
void kiln_edits_rows(const kiln_edits *e, const double from[3], const double to[3],
                     const kiln_edit_rows *rows, double *work, uint64_t *bad);

#endif
