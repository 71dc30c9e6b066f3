/* gltf -- the layout of glTF 2.0 with Gaussians, for the reader and for the writers of GLB and of
 * tiles: KHR_gaussian_splatting as it was ratified, its earlier draft, and the SPZ that either may
 * be packed with. Sources: Khronos glTF 2.0, sections 3.6.2 and 4.4; KhronosGroup/glTF,
 * extensions/2.0/Khronos/KHR_gaussian_splatting and KHR_gaussian_splatting_compression_spz_2.
 *
 *   .glb    u32 "glTF"  u32 version 2  u32 bytes of the file
 *           u32 bytes   u32 "JSON"     text, filled up with blanks to a multiple of 4
 *           u32 bytes   u32 "BIN\0"    buffer 0, filled up with zeros; may be missing. Further
 *                                      chunks are passed over
 *   .gltf   the text alone
 *
 * All little-endian; lengths have 32 bits. Attributes of a primitive of mode POINTS, each an array
 * of all rows; ":" stands for the extension and a colon, and in a draft for "_":
 *
 *     POSITION                VEC3 float
 *     COLOR_0                 VEC4        linear colour of degree 0 and opacity: what programs
 *                                         without the extension show
 *     :ROTATION               VEC4        x y z w, unit
 *     :SCALE                  VEC3        linear
 *     :OPACITY                SCALAR      0..1; of a draft, which has no degree 0 either, in
 *                                         COLOR_0
 *     :SH_DEGREE_l_COEF_n     VEC3 float  l = 0 .. 3, n = 0 .. 2l
 *
 * Packed, the accessors have no buffer view, and the SPZ is a view that the inner extension names.
 */
#ifndef KILN_STAGES_FORMATS_GLTF_GLTF_H
#define KILN_STAGES_FORMATS_GLTF_GLTF_H

#include "base/endian.h"

#include <stdint.h>
#include <stdio.h>

/* ---- GLB ------------------------------------------------------------------------------------- */

enum {
    KILN_GLB_MAGIC = 0x46546c67, /* "glTF" */
    KILN_GLB_VERSION = 2,
    KILN_GLB_JSON = 0x4e4f534a, /* types of chunks */
    KILN_GLB_BIN = 0x004e4942,
    KILN_GLB_HEADER = 12, /* bytes of the file's header, and of a chunk's */
    KILN_GLB_CHUNK = 8,
};

static inline unsigned char *kiln_glb_put_header(unsigned char *at, uint64_t file_bytes)
{
    return kiln_put_u32(kiln_put_u32(kiln_put_u32(at, KILN_GLB_MAGIC), KILN_GLB_VERSION),
                        file_bytes);
}

static inline unsigned char *kiln_glb_put_chunk(unsigned char *at, uint64_t bytes, uint32_t type)
{
    return kiln_put_u32(kiln_put_u32(at, bytes), type);
}

/* ---- accessors ------------------------------------------------------------------------------- */

/* componentType, target of a buffer view, mode of a primitive. */
enum {
    KILN_GLTF_BYTE = 5120,
    KILN_GLTF_UNSIGNED_BYTE = 5121,
    KILN_GLTF_SHORT = 5122,
    KILN_GLTF_UNSIGNED_SHORT = 5123,
    KILN_GLTF_UNSIGNED_INT = 5125,
    KILN_GLTF_FLOAT = 5126,
    KILN_GLTF_ARRAY_BUFFER = 34962,
    KILN_GLTF_POINTS = 0,
};

/* Type of an accessor of 1 to 4 components. */
static inline const char *kiln_gltf_type(uint32_t components)
{
    static const char *const names[] = {"SCALAR", "VEC2", "VEC3", "VEC4"};
    return names[components - 1];
}

/* ---- Gaussians ------------------------------------------------------------------------------- */

#define KILN_GLTF_EXTENSION "KHR_gaussian_splatting"
#define KILN_GLTF_EXTENSION_SPZ KILN_GLTF_EXTENSION "_compression_spz_2"

#define KILN_GLTF_PREFIX KILN_GLTF_EXTENSION ":" /* of the names below, and of a draft */
#define KILN_GLTF_DRAFT_PREFIX "_"
#define KILN_GLTF_POSITION "POSITION" /* these two without a prefix */
#define KILN_GLTF_COLOUR "COLOR_0"
#define KILN_GLTF_ROTATION "ROTATION"
#define KILN_GLTF_SCALE "SCALE"
#define KILN_GLTF_OPACITY "OPACITY"

/* prefix: one of the two; coefficient: of the degree. */
static inline void kiln_gltf_sh_name(const char *prefix, uint32_t degree, uint32_t coefficient,
                                     char out[64])
{
    (void)snprintf(out, 64, "%sSH_DEGREE_%u_COEF_%u", prefix, degree, coefficient);
}

/* Keys of the extension and what stands there. */
#define KILN_GLTF_KEY_KERNEL "kernel"
#define KILN_GLTF_ELLIPSE "ellipse"
#define KILN_GLTF_KEY_COLOURS "colorSpace"
#define KILN_GLTF_LINEAR "lin_rec709_display"
#define KILN_GLTF_SRGB "srgb_rec709_display"
/* Among a primitive's extras: the extension has no word for it. */
#define KILN_GLTF_KEY_ANTIALIASED "antialiased"

/* What is written into the extension, without its braces, and behind it. */
#define KILN_GLTF_WRITTEN                                                             \
    "\"" KILN_GLTF_KEY_KERNEL "\":\"" KILN_GLTF_ELLIPSE "\",\"" KILN_GLTF_KEY_COLOURS \
    "\":\"" KILN_GLTF_SRGB                                                            \
    "\",\"projection\":\"perspective\",\"sortingMethod\":\"cameraDistance\""
#define KILN_GLTF_WRITTEN_EXTRAS ",\"extras\":{\"" KILN_GLTF_KEY_ANTIALIASED "\":true}"

#endif
