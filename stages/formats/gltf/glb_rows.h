/* glb_rows -- rows of planar arrays as the arrays of a GLB's attributes (glb_layout.h). */
#ifndef KILN_STAGES_FORMATS_GLTF_GLB_ROWS_H
#define KILN_STAGES_FORMATS_GLTF_GLB_ROWS_H

#include <stdint.h>

/* What a worker needs beside the rows. */
typedef struct {
    /* 1 or -1 by the file's frame; quats w x y z; sh[0] is degree 0 */
    float means[3], quats[4], sh[16];
    uint8_t linear[4096]; /* codes of colours c / 4095, decoded from sRGB */
} kiln_glb_tables;

/* A chunk: planes [components][n] as in the manifest, activated where GLB wants them so
 * (linear.h). */
typedef struct {
    uint64_t n;
    const float *means, *scales, *quats, *alphas, *sh0, *shN;
} kiln_glb_rows;

/* sign: by which the frame multiplies the axes, 1 or -1, two of them -1 or none. */
void kiln_glb_tables_make(const int sign[3], kiln_glb_tables *t);
/* out: [n] elements of an attribute (kiln_glb_element_bytes each). */
void kiln_glb_encode(const kiln_glb_tables *t, const kiln_glb_rows *r, uint32_t attribute,
                     void *out);

#endif
