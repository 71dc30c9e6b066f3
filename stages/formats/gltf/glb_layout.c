/* glb_layout -- see the header. */
#include "stages/formats/gltf/glb_layout.h"

#include "base/option.h"
#include "stages/formats/gltf/gltf.h"

#include <stdio.h>

enum { TEXT_MAX = 1 << 16 };

/* ---- places ---------------------------------------------------------------------------------- */

uint32_t kiln_glb_attributes(uint32_t sh_degree)
{
    return KILN_GLB_SH + (sh_degree + 1) * (sh_degree + 1);
}

uint32_t kiln_glb_element_bytes(uint32_t attribute)
{
    static const uint32_t bytes[KILN_GLB_SH] = {12, 4, 16, 12, 4};
    return attribute < KILN_GLB_SH ? bytes[attribute] : 12;
}

uint64_t kiln_glb_place(uint64_t n_rows, uint32_t attribute)
{
    uint64_t bytes = 0;
    for (uint32_t a = 0; a < attribute; a++) bytes += kiln_glb_element_bytes(a);
    return bytes * n_rows;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void name_attribute(uint32_t attribute, char out[64])
{
    static const char *const names[KILN_GLB_SH] = {
        KILN_GLTF_POSITION, KILN_GLTF_COLOUR, KILN_GLTF_PREFIX KILN_GLTF_ROTATION,
        KILN_GLTF_PREFIX KILN_GLTF_SCALE, KILN_GLTF_PREFIX KILN_GLTF_OPACITY};
    uint32_t degree = 0;
    if (attribute < KILN_GLB_SH) {
        (void)snprintf(out, 64, "%s", names[attribute]);
        return;
    }
    attribute -= KILN_GLB_SH;
    while ((degree + 1) * (degree + 1) <= attribute) degree++;
    kiln_gltf_sh_name(KILN_GLTF_PREFIX, degree, attribute - degree * degree, out);
}

/* 17 digits, so that a reader has just the number. */
static kiln_status put_three(kiln_buffer *b, const char *name, const double v[3], kiln_error *err)
{
    return kiln_buffer_printf(b, err, ",\"%s\":[%.17g,%.17g,%.17g]", name, v[0], v[1], v[2]);
}

static kiln_status put_three_floats(kiln_buffer *b, const char *name, const float v[3],
                                    kiln_error *err)
{
    return put_three(b, name, (const double[3]){(double)v[0], (double)v[1], (double)v[2]}, err);
}

static kiln_status put_accessor(kiln_buffer *b, const kiln_glb_scene *s, uint32_t a,
                                kiln_error *err)
{
    const bool is_colour = a == KILN_GLB_COLOUR;
    KILN_TRY(kiln_buffer_printf(
        b, err, "%s{\"bufferView\":%u,\"componentType\":%d,\"count\":%llu,\"type\":\"%s\"",
        a ? "," : "", a, is_colour ? KILN_GLTF_UNSIGNED_BYTE : KILN_GLTF_FLOAT,
        (unsigned long long)s->n_rows,
        kiln_gltf_type(is_colour ? 4 : kiln_glb_element_bytes(a) / 4)));
    if (is_colour) KILN_TRY(kiln_buffer_printf(b, err, ",\"normalized\":true"));
    if (a == KILN_GLB_POSITION) {
        KILN_TRY(put_three_floats(b, "min", s->least, err));
        KILN_TRY(put_three_floats(b, "max", s->most, err));
    }
    return kiln_buffer_printf(b, err, "}");
}

static kiln_status put_arrays(kiln_buffer *b, const kiln_glb_scene *s, kiln_error *err)
{
    const uint32_t n = kiln_glb_attributes(s->sh_degree);
    KILN_TRY(kiln_buffer_printf(b, err, "\"accessors\":["));
    for (uint32_t a = 0; a < n; a++) KILN_TRY(put_accessor(b, s, a, err));
    KILN_TRY(kiln_buffer_printf(b, err, "],\"bufferViews\":["));
    for (uint32_t a = 0; a < n; a++)
        KILN_TRY(kiln_buffer_printf(
            b, err, "%s{\"buffer\":0,\"byteOffset\":%llu,\"byteLength\":%llu,\"target\":%d}",
            a ? "," : "", (unsigned long long)kiln_glb_place(s->n_rows, a),
            (unsigned long long)(s->n_rows * kiln_glb_element_bytes(a)), KILN_GLTF_ARRAY_BUFFER));
    return kiln_buffer_printf(b, err, "],\"buffers\":[{\"byteLength\":%llu}]",
                              (unsigned long long)kiln_glb_place(s->n_rows, n));
}

static kiln_status put_primitive(kiln_buffer *b, const kiln_glb_scene *s, kiln_error *err)
{
    KILN_TRY(kiln_buffer_printf(b, err, "{\"attributes\":{"));
    for (uint32_t a = 0; a < kiln_glb_attributes(s->sh_degree); a++) {
        char name[64];
        name_attribute(a, name);
        KILN_TRY(kiln_buffer_printf(b, err, "%s\"%s\":%u", a ? "," : "", name, a));
    }
    KILN_TRY(kiln_buffer_printf(b, err,
                                "},\"mode\":%d,\"extensions\":{\"" KILN_GLTF_EXTENSION
                                "\":{" KILN_GLTF_WRITTEN "}}",
                                KILN_GLTF_POINTS));
    if (s->antialiased) KILN_TRY(kiln_buffer_printf(b, err, KILN_GLTF_WRITTEN_EXTRAS));
    return kiln_buffer_printf(b, err, "}");
}

static kiln_status put_document(kiln_buffer *b, const kiln_glb_scene *s, kiln_error *err)
{
    const double *t = s->translation;
    KILN_TRY(
        kiln_buffer_printf(b, err,
                           "{\"asset\":{\"version\":\"2.0\",\"generator\":\"SplatKiln "
                           "%s\"},\"extensionsUsed\":[\"" KILN_GLTF_EXTENSION
                           "\"],\"scene\":0,\"scenes\":[{\"nodes\":[0]}],\"nodes\":[{\"mesh\":0",
                           kiln_version));
    if (t[0] != 0 || t[1] != 0 || t[2] != 0) KILN_TRY(put_three(b, "translation", t, err));
    KILN_TRY(kiln_buffer_printf(b, err, "}],\"meshes\":[{\"primitives\":["));
    KILN_TRY(put_primitive(b, s, err));
    KILN_TRY(kiln_buffer_printf(b, err, "]}],"));
    KILN_TRY(put_arrays(b, s, err));
    return kiln_buffer_printf(b, err, "}");
}

/* ---- the head -------------------------------------------------------------------------------- */

/* The text has less than TEXT_MAX bytes, so what is said to fit does. */
static kiln_status check_glb_size(const kiln_glb_scene *s, kiln_error *err)
{
    const uint64_t row = kiln_glb_place(1, kiln_glb_attributes(s->sh_degree));
    const uint64_t most = (UINT32_MAX - TEXT_MAX) / row,
                   plain = (UINT32_MAX - TEXT_MAX) / kiln_glb_place(1, KILN_GLB_SH + 1);
    char lower[96] = "";
    if (s->n_rows <= most) return KILN_OK;
    if (s->sh_degree)
        (void)snprintf(lower, sizeof lower, ", or %llu with --sh-degree 0",
                       (unsigned long long)plain);
    return kiln_fail(err, KILN_E_INPUT,
                     "a GLB has at most 4 GiB, enough for %llu Gaussians of SH degree %u%s; the "
                     "scene has %llu, so write a part of them, or "
                     "another format",
                     (unsigned long long)most, s->sh_degree, lower, (unsigned long long)s->n_rows);
}

kiln_status kiln_glb_head(const kiln_glb_scene *s, kiln_buffer *head, kiln_error *err)
{
    unsigned char front[KILN_GLB_HEADER + KILN_GLB_CHUNK], chunk[KILN_GLB_CHUNK];
    kiln_status st = KILN_OK;
    kiln_buffer text = {0};
    KILN_TRY(check_glb_size(s, err));
    const uint64_t bin = kiln_glb_place(s->n_rows, kiln_glb_attributes(s->sh_degree));
    KILN_GO(put_document(&text, s, err));
    while (text.size % 4) KILN_GO(kiln_buffer_put(&text, " ", 1, err));
    if (text.size > TEXT_MAX - 64)
        st = kiln_fail(err, KILN_E_BUG, "the JSON of a GLB has %zu bytes", text.size);
    KILN_GO(st);
    kiln_glb_put_header(front, sizeof front + text.size + sizeof chunk + bin);
    kiln_glb_put_chunk(front + KILN_GLB_HEADER, text.size, KILN_GLB_JSON);
    kiln_glb_put_chunk(chunk, bin, KILN_GLB_BIN);
    KILN_GO(kiln_buffer_put(head, front, sizeof front, err));
    KILN_GO(kiln_buffer_put(head, text.data, text.size, err));
    KILN_GO(kiln_buffer_put(head, chunk, sizeof chunk, err));
done:
    kiln_buffer_release(&text);
    return st;
}
