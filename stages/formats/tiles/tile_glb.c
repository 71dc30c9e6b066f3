/* tile_glb -- see the header. */
#include "stages/formats/tiles/tile_glb.h"

#include "base/option.h"
#include "stages/formats/gltf/gltf.h"

#include <stdio.h>

enum { FIXED = 4 };
#define SPLATS KILN_GLTF_EXTENSION
#define PACKED KILN_GLTF_EXTENSION_SPZ

/* POSITION, COLOR_0, scale, rotation, then the harmonics above degree 0: what the SPZ decodes
 * to. */
static void name_attribute(uint32_t a, char out[64])
{
    static const char *const names[FIXED] = {KILN_GLTF_POSITION, KILN_GLTF_COLOUR,
                                             KILN_GLTF_PREFIX KILN_GLTF_SCALE,
                                             KILN_GLTF_PREFIX KILN_GLTF_ROTATION};
    uint32_t degree = 1, k = a - FIXED + 1; /* of all coefficients */
    if (a < FIXED) {
        (void)snprintf(out, 64, "%s", names[a]);
        return;
    }
    while ((degree + 1) * (degree + 1) <= k) degree++;
    kiln_gltf_sh_name(KILN_GLTF_PREFIX, degree, k - degree * degree, out);
}

static uint32_t tile_attributes(uint32_t sh_degree)
{
    return FIXED + (sh_degree + 1) * (sh_degree + 1) - 1;
}

static kiln_status put_accessor(const kiln_tile_scene *s, uint32_t a, kiln_buffer *b,
                                kiln_error *err)
{
    const bool is_colour = a == 1;
    KILN_TRY(kiln_buffer_printf(
        b, err, "%s{\"componentType\":%d,\"count\":%llu,\"type\":\"%s\"%s", a ? "," : "",
        is_colour ? KILN_GLTF_UNSIGNED_BYTE : KILN_GLTF_FLOAT, (unsigned long long)s->n_rows,
        kiln_gltf_type(a == 1 || a == 3 ? 4 : 3), is_colour ? ",\"normalized\":true" : ""));
    if (a == 0)
        KILN_TRY(kiln_buffer_printf(b, err, ",\"min\":[%.9g,%.9g,%.9g],\"max\":[%.9g,%.9g,%.9g]",
                                    (double)s->least[0], (double)s->least[1], (double)s->least[2],
                                    (double)s->most[0], (double)s->most[1], (double)s->most[2]));
    return kiln_buffer_printf(b, err, "}");
}

static kiln_status put_document(const kiln_tile_scene *s, uint64_t bytes, kiln_buffer *b,
                                kiln_error *err)
{
    const uint32_t n = tile_attributes(s->sh_degree);
    const double *t = s->translation;
    char name[64];
    KILN_TRY(kiln_buffer_printf(
        b, err,
        "{\"asset\":{\"version\":\"2.0\",\"generator\":\"SplatKiln "
        "%s\"},\"extensionsUsed\":[\"" SPLATS "\",\"" PACKED "\"],\"extensionsRequired\":[\"" SPLATS
        "\",\"" PACKED "\"],\"scene\":0,\"scenes\":[{\"nodes\":[0]}],"
        "\"nodes\":[{\"mesh\":0,\"matrix\":[1,0,0,0,0,1,0,0,0,0,1,0,%.17g,%.17g,%.17g,1]}],"
        "\"meshes\":[{\"primitives\":[{\"mode\":0,\"attributes\":{",
        kiln_version, t[0] + 0.0, t[1] + 0.0, t[2] + 0.0));
    for (uint32_t a = 0; a < n; a++) {
        name_attribute(a, name);
        KILN_TRY(kiln_buffer_printf(b, err, "%s\"%s\":%u", a ? "," : "", name, a));
    }
    KILN_TRY(kiln_buffer_printf(b, err,
                                "},\"extensions\":{\"" SPLATS "\":{" KILN_GLTF_WRITTEN
                                ",\"extensions\":{\"" PACKED
                                "\":{\"bufferView\":0}}}}%s}]}],\"accessors\":[",
                                s->antialiased ? KILN_GLTF_WRITTEN_EXTRAS : ""));
    for (uint32_t a = 0; a < n; a++) KILN_TRY(put_accessor(s, a, b, err));
    return kiln_buffer_printf(b, err,
                              "],\"bufferViews\":[{\"buffer\":0,\"byteLength\":%llu}],\"buffers\":["
                              "{\"byteLength\":%llu}]}",
                              (unsigned long long)bytes, (unsigned long long)bytes);
}

static kiln_status put_chunk(uint32_t type, const void *data, uint64_t bytes, const char *filler,
                             kiln_buffer *out, kiln_error *err)
{
    const uint64_t size = (bytes + 3) / 4 * 4; /* checked by the caller */
    unsigned char head[KILN_GLB_CHUNK];
    kiln_glb_put_chunk(head, size, type);
    KILN_TRY(kiln_buffer_put(out, head, sizeof head, err));
    KILN_TRY(kiln_buffer_put(out, data, bytes, err));
    return kiln_buffer_put(out, filler, size - bytes, err);
}

kiln_status kiln_tile_glb(const kiln_tile_scene *s, const void *spz, uint64_t bytes,
                          kiln_buffer *out, kiln_error *err)
{
    unsigned char head[KILN_GLB_HEADER];
    kiln_buffer text = {0};
    kiln_status st = put_document(s, bytes, &text, err);
    const uint64_t all =
        KILN_GLB_HEADER + 2 * KILN_GLB_CHUNK + (text.size + 3) / 4 * 4 + (bytes + 3) / 4 * 4;
    if (st == KILN_OK && all > UINT32_MAX)
        st = kiln_fail(err, KILN_E_INPUT,
                       "a GLB has at most 4 GiB; a tile of %llu Gaussians would be larger",
                       (unsigned long long)s->n_rows);
    KILN_GO(st);
    kiln_glb_put_header(head, all);
    KILN_GO(kiln_buffer_put(out, head, sizeof head, err));
    KILN_GO(put_chunk(KILN_GLB_JSON, text.data, text.size, "   ", out, err));
    KILN_GO(put_chunk(KILN_GLB_BIN, spz, bytes, "\0\0\0", out, err));
done:
    kiln_buffer_release(&text);
    return st;
}
