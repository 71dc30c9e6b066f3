/* gltf_values -- numbers of accessors as planes. */
#ifndef KILN_STAGES_FORMATS_GLTF_GLTF_VALUES_H
#define KILN_STAGES_FORMATS_GLTF_GLTF_VALUES_H

#include "stages/formats/gltf/gltf_document.h"

/* One component of n elements, the first of which stands at src; normalised integers become -1..1
 * or 0..1. */
void kiln_gltf_gather_f32(const kiln_gltf_accessor *a, const unsigned char *src, uint32_t component,
                          uint64_t n, float *dst);
void kiln_gltf_gather_f64(const kiln_gltf_accessor *a, const unsigned char *src, uint32_t component,
                          uint64_t n, double *dst);

#endif
