/* glb_layout -- what stands where in a GLB of one primitive of Gaussians, as KHR_gaussian_splatting
 * was ratified (gltf.h): its attributes one after the other, COLOR_0 in bytes, all others in
 * floats.
 *
 * Every element has a multiple of 4 bytes, so nothing is between the arrays.
 */
#ifndef KILN_STAGES_FORMATS_GLTF_GLB_LAYOUT_H
#define KILN_STAGES_FORMATS_GLTF_GLB_LAYOUT_H

#include "base/memory.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    KILN_GLB_POSITION,
    KILN_GLB_COLOUR,
    KILN_GLB_ROTATION,
    KILN_GLB_SCALE,
    KILN_GLB_OPACITY,
    KILN_GLB_SH, /* coefficient k of all degrees is attribute KILN_GLB_SH + k */
    KILN_GLB_ATTRIBUTES_MAX = KILN_GLB_SH + 16,
    KILN_GLB_SH_DEGREE_MAX = 3,
};

typedef struct {
    uint64_t n_rows;
    uint32_t sh_degree;
    /* for which the extension has no word: "antialiased" among the extras of the primitive */
    bool antialiased;
    float least[3], most[3]; /* of the positions as they are stored */
    double translation[3];   /* of the node: what positions are relative to */
} kiln_glb_scene;

/* The file up to the first byte of POSITION. KILN_E_INPUT: the file would be too long; the sentence
 * says how many rows fit. */
kiln_status kiln_glb_head(const kiln_glb_scene *s, kiln_buffer *head,
                          kiln_error *err) KILN_MUST_CHECK;
/* Number of attributes, bytes of an element, and the bytes of all arrays before an attribute's; of
 * KILN_GLB_SH + 16 or the number: of all. */
uint32_t kiln_glb_attributes(uint32_t sh_degree);
uint32_t kiln_glb_element_bytes(uint32_t attribute);
uint64_t kiln_glb_place(uint64_t n_rows, uint32_t attribute);

#endif
