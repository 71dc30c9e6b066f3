/* gltf_scene -- which Gaussians a glTF scene shows, in which order, and where: primitives with
 * KHR_gaussian_splatting, and the nodes that place them.
 *
 * The default scene is walked in document order, a node before its children. Each node that has a
 * mesh with splats gives one part a primitive; a mesh that several nodes name is there several
 * times. Rows are numbered through the parts.
 *
 * The extension as ratified, its earlier draft, and the compressed form of both, where a buffer
 * view holds an SPZ (gltf.h, spz_rows.h).
 */
#ifndef KILN_STAGES_FORMATS_GLTF_GLTF_SCENE_H
#define KILN_STAGES_FORMATS_GLTF_GLTF_SCENE_H

#include "kernels/similarity/similarity.h"
#include "stages/formats/gltf/gltf_document.h"
#include "stages/formats/reader.h"
#include "stages/formats/spz/spz_rows.h"

enum {
    KILN_GLTF_SPLATS_MAX = 1024,
    KILN_GLTF_PARTS_MAX = 16384,
    KILN_GLTF_SH_MAX = 25, /* the extension ends with degree 3, our rows with 4 */
};

/* One primitive. */
typedef struct {
    uint64_t n;
    uint32_t sh_degree;
    bool is_draft; /* colour and opacity in `opacity`, four components; sh[0] is not used */
    bool is_spz;   /* nothing is in the accessors */
    kiln_gltf_accessor position, rotation, scale, opacity, sh[KILN_GLTF_SH_MAX];
    kiln_gltf_range packed; /* the SPZ in its buffer */
    kiln_spz_header spz;
    uint64_t spz_at; /* in scratch, unpacked */
} kiln_gltf_splats;

/* One primitive at one node. */
typedef struct {
    uint64_t first; /* row of the scene */
    uint32_t splats;
    bool moves; /* at_scene is not the identity */
    kiln_similarity at_scene;
} kiln_gltf_part;

typedef struct {
    kiln_gltf_splats *splats; /* owned */
    kiln_gltf_part *parts;    /* owned */
    uint32_t n_splats, n_parts, n_drafts, n_linear, n_spz;
    uint64_t n_rows;
    uint32_t sh_degree, least_degree;
    bool antialiased; /* an SPZ says so, or the extras of a primitive */
    /* it failed because there are no splats, not because something is wrong */
    bool has_none;
    uint64_t spool_bytes; /* buffers and unpacked SPZ */
} kiln_gltf_scene;

/* KILN_E_INPUT: no splats, something that they need is missing, wrong or of an unknown extension; a
 * node moves them as no Gaussian can be moved. kiln_gltf_scene_release afterwards in any case. */
kiln_status kiln_gltf_scene_find(kiln_gltf_document *d, kiln_gltf_scene *out,
                                 kiln_error *err) KILN_MUST_CHECK;
void kiln_gltf_scene_release(kiln_gltf_scene *s);

/* Of one primitive; *is_linear: its colours are linear. */
kiln_status kiln_gltf_splats_find(kiln_gltf_document *d, const json_t *primitive,
                                  kiln_gltf_splats *out, bool *is_linear,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Has a primitive the extension? */
bool kiln_gltf_is_splats(const json_t *primitive);
/* KILN_E_INPUT: the file needs an extension that nobody here knows. */
kiln_status kiln_gltf_extensions_check(const kiln_gltf_document *d,
                                       kiln_error *err) KILN_MUST_CHECK;

#endif
