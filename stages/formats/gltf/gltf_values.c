/* gltf_values -- tight loops without branches on values: 3 of 59 numbers of a row are logarithms,
 * and they must not take the time of the other 56. */
#include "stages/formats/gltf/gltf_values.h"

#include <string.h>

#define GATHER(ctype, value)                       \
    for (uint64_t i = 0; i < n; i++) {             \
        ctype v;                                   \
        memcpy(&v, src + i * a->stride, sizeof v); \
        dst[i] = value;                            \
    }                                              \
    break
/* A float stays as it is; the others are exact in double. */
#define GATHER_SWITCH(real)                                                                        \
    src += component * kiln_gltf_component_bytes[a->type];                                         \
    switch (a->type) {                                                                             \
    case KILN_GLTF_I8:                                                                             \
        GATHER(int8_t, (real)(a->normalised ? (v < -127 ? -1.0 : (double)v / 127.0) : (double)v)); \
    case KILN_GLTF_U8:                                                                             \
        GATHER(uint8_t, (real)(a->normalised ? (double)v / 255.0 : (double)v));                    \
    case KILN_GLTF_I16:                                                                            \
        GATHER(int16_t,                                                                            \
               (real)(a->normalised ? (v < -32767 ? -1.0 : (double)v / 32767.0) : (double)v));     \
    case KILN_GLTF_U16:                                                                            \
        GATHER(uint16_t, (real)(a->normalised ? (double)v / 65535.0 : (double)v));                 \
    case KILN_GLTF_U32:                                                                            \
        GATHER(uint32_t, (real)v);                                                                 \
    case KILN_GLTF_F32:                                                                            \
        GATHER(float, (real)v);                                                                    \
    }

void kiln_gltf_gather_f32(const kiln_gltf_accessor *a, const unsigned char *src, uint32_t component,
                          uint64_t n, float *dst)
{
    GATHER_SWITCH(float)
}

void kiln_gltf_gather_f64(const kiln_gltf_accessor *a, const unsigned char *src, uint32_t component,
                          uint64_t n, double *dst)
{
    GATHER_SWITCH(double)
}
