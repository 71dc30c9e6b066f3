/* rad_read -- see the header. */
#include "stages/formats/rad/rad_read.h"

#include "base/endian.h"
#include "base/file.h"
#include "base/harmonics.h"
#include "base/memory.h"
#include "kernels/math/half_math.h"
#include "kernels/math/real.h"
#include "kernels/math/real64.h"
#include "stages/engine/json_text.h"
#include "stages/formats/rad/rad.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { HEAD = KILN_RAD_TEXT_AT, TEXT_MAX = 1 << 26, ROWS_MAX = KILN_RAD_CHUNK };

static kiln_status is_other(const kiln_rad_file *f, const char *what, kiln_error *err)
{
    return kiln_fail(err, KILN_E_INPUT, "'%s': %s is not as it was written", f->path, what);
}

/* Magic, length, JSON. *end: where the next thing begins. */
static kiln_status read_text(const kiln_rad_file *f, const char magic[5], uint64_t at, json_t **out,
                             uint64_t *end, kiln_error *err)
{
    unsigned char head[HEAD];
    char *text;
    KILN_TRY(kiln_file_read_at(f->fd, f->path, at, head, HEAD, err));
    const uint32_t bytes = kiln_get_u32(head + 4);
    if (memcmp(head, magic, 4) != 0 || bytes > TEXT_MAX) return is_other(f, magic, err);
    KILN_TRY(KILN_ALLOC_UNSET(&text, bytes, "a text", err));
    kiln_status st = kiln_file_read_at(f->fd, f->path, at + HEAD, text, bytes, err);
    if (st == KILN_OK) st = kiln_json_parse(text, bytes, 0, f->path, out, NULL, err);
    free(text);
    if (st == KILN_OK && !*out) st = is_other(f, magic, err);
    *end = at + kiln_rad_padded(HEAD + bytes);
    return st;
}

static uint64_t count_of(const json_t *object, const char *key)
{
    const json_int_t v = json_integer_value(json_object_get(object, key));
    return v > 0 ? (uint64_t)v : 0;
}

kiln_status kiln_rad_open(const char *path, kiln_rad_file *out, kiln_error *err)
{
    json_t *head = NULL, *chunk;
    uint64_t end;
    size_t i;
    kiln_status st;
    *out = (kiln_rad_file){.fd = -1};
    (void)snprintf(out->path, sizeof out->path, "%s", path);
    KILN_GO(kiln_file_open(path, &out->fd, err));
    KILN_GO(read_text(out, KILN_RAD_FILE, 0, &head, &end, err));
    const json_t *chunks = json_object_get(head, KILN_RAD_KEY_CHUNKS);
    out->n_chunks = (uint32_t)json_array_size(chunks);
    out->sh_degree = (uint32_t)count_of(head, KILN_RAD_KEY_DEGREE);
    if (out->sh_degree > KILN_RAD_DEGREE_MAX) KILN_GO(is_other(out, "its degree", err));
    KILN_GO(KILN_ALLOC(&out->at, (uint64_t)out->n_chunks + 1, "chunks", err));
    json_array_foreach(chunks, i, chunk)
    {
        out->at[i] = end + count_of(chunk, KILN_RAD_KEY_OFFSET);
        out->at[i + 1] = out->at[i] + count_of(chunk, KILN_RAD_KEY_BYTES);
    }
done:
    json_decref(head);
    if (st != KILN_OK) kiln_rad_close(out);
    return st;
}

void kiln_rad_close(kiln_rad_file *f)
{
    if (f->fd >= 0) (void)close(f->fd);
    f->fd = -1;
    free(f->at);
    f->at = NULL;
}

/* ---- planes ---------------------------------------------------------------------------------- */

typedef struct {
    const kiln_rad_file *file;
    json_t *text;
    unsigned char *payload;
    uint64_t payload_bytes, n;
} open_chunk;

/* Inflates a property (KILN_RAD_...), which has exactly the bytes of its rows. */
static kiln_status read_rad_property(const open_chunk *c, int which, unsigned char **out,
                                     double *limit, kiln_error *err)
{
    const kiln_rad_property *of = kiln_rad_property_of(which);
    const char *name = of->name;
    const uint64_t bytes = c->n * of->n * of->size;
    const json_t *found = NULL;
    json_t *p;
    size_t i;
    z_stream z = {0};
    json_array_foreach(json_object_get(c->text, KILN_RAD_KEY_PROPERTIES), i, p)
    {
        const char *is = json_string_value(json_object_get(p, KILN_RAD_KEY_PROPERTY));
        if (is && strcmp(is, name) == 0) found = p;
    }
    const uint64_t offset = count_of(found, KILN_RAD_KEY_OFFSET),
                   packed = count_of(found, KILN_RAD_KEY_BYTES);
    if (!found || offset > c->payload_bytes || packed > c->payload_bytes - offset)
        return is_other(c->file, name, err);
    *limit = json_number_value(json_object_get(found, KILN_RAD_KEY_MAX));
    KILN_TRY(KILN_ALLOC_UNSET(out, bytes + 1, "a plane", err));
    if (inflateInit2(&z, KILN_RAD_DEFLATE) != Z_OK)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory while unpacking");
    z.next_in = c->payload + offset;
    z.avail_in = (unsigned)packed;
    z.next_out = *out;
    z.avail_out = (unsigned)bytes + 1;
    const int end = inflate(&z, Z_FINISH);
    const bool whole = end == Z_STREAM_END && z.avail_out == 1;
    (void)inflateEnd(&z);
    return whole ? KILN_OK : is_other(c->file, name, err);
}

static kiln_status read_chunk(const kiln_rad_file *f, uint32_t chunk, open_chunk *c,
                              kiln_error *err)
{
    uint64_t at;
    *c = (open_chunk){.file = f};
    KILN_TRY(read_text(f, KILN_RAD_CHUNK_MARK, f->at[chunk], &c->text, &at, err));
    c->n = count_of(c->text, KILN_RAD_KEY_COUNT);
    c->payload_bytes = count_of(c->text, KILN_RAD_KEY_PAYLOAD);
    at += sizeof c->payload_bytes;
    if (c->n > ROWS_MAX || at > f->at[chunk + 1] || c->payload_bytes > f->at[chunk + 1] - at)
        return is_other(f, "a chunk", err);
    KILN_TRY(KILN_ALLOC_UNSET(&c->payload, c->payload_bytes, "a chunk", err));
    return kiln_file_read_at(f->fd, f->path, at, c->payload, c->payload_bytes, err);
}

static float half_at(const unsigned char *plane, uint64_t i)
{
    return kiln_half_value(kiln_get_u16(plane + 2 * i));
}

static void take_centres(const unsigned char *plane, uint64_t n, const kiln_rad_leaves *out,
                         const double origin[3])
{
    for (uint64_t c = 0; c < 3; c++)
        for (uint64_t k = 0; k < out->n; k++) {
            const uint64_t i = out->place[k] - out->first;
            unsigned char bytes[4];
            for (uint64_t b = 0; b < 4; b++) bytes[b] = plane[(b * 3 + c) * n + i];
            out->means[c * out->n + k] = (float)((double)kiln_get_f32(bytes) - origin[c]);
        }
}

/* Of components that are halves: factor * (value + before). */
static void take_halves(const unsigned char *plane, uint64_t n, uint64_t components, float before,
                        float factor, const kiln_rad_leaves *out, float *to)
{
    for (uint64_t c = 0; c < components; c++)
        for (uint64_t k = 0; k < out->n; k++)
            to[c * out->n + k] =
                factor * (half_at(plane, c * n + (out->place[k] - out->first)) + before);
}

static void decode_rotation(const unsigned char code[3], double wxyz[4])
{
    double u = code[0] / 127.5 - 1, v = code[1] / 127.5 - 1, sine, cosine;
    const double z = 1 - fabs(u) - fabs(v);
    if (z < 0) {
        const double folded = (1 - fabs(v)) * (u >= 0 ? 1 : -1);
        v = (1 - fabs(u)) * (v >= 0 ? 1 : -1);
        u = folded;
    }
    const double length = sqrt(u * u + v * v + z * z);
    kiln_sincos_degrees(code[2] / 255.0 * 90, &sine, &cosine);
    wxyz[0] = cosine;
    wxyz[1] = sine * u / length;
    wxyz[2] = sine * v / length;
    wxyz[3] = sine * z / length;
}

static void take_rotations(const unsigned char *plane, const kiln_rad_leaves *out)
{
    for (uint64_t k = 0; k < out->n; k++) {
        double q[4];
        decode_rotation(plane + 3 * (uint64_t)(out->place[k] - out->first), q);
        for (uint64_t c = 0; c < 4; c++) out->quats[c * out->n + k] = (float)q[c];
    }
}

/* An opacity of 1 has no logit: the largest that import makes of one. */
static void take_opacities(const unsigned char *plane, const kiln_rad_leaves *out)
{
    const float most = 254.75f / 255;
    for (uint64_t k = 0; k < out->n; k++) {
        const float alpha = half_at(plane, out->place[k] - out->first);
        out->opacity_logits[k] = kiln_logitf(alpha > most ? most : alpha < 1e-7f ? 1e-7f : alpha);
    }
}

static void take_harmonics(const unsigned char *plane, uint64_t n, uint64_t components,
                           double limit, const kiln_rad_leaves *out, float *to)
{
    for (uint64_t c = 0; c < components; c++)
        for (uint64_t k = 0; k < out->n; k++) {
            const int code = plane[c * n + (out->place[k] - out->first)];
            to[c * out->n + k] =
                (float)((code > KILN_RAD_SH_MOST ? code - 256 : code) * limit / KILN_RAD_SH_MOST);
        }
}

/* Numbers of the rows that have none below. */
static kiln_status find_leaves(const open_chunk *c, kiln_rad_leaves *out, kiln_error *err)
{
    unsigned char *below = NULL;
    double none;
    KILN_TRY(read_rad_property(c, KILN_RAD_BELOW, &below, &none, err));
    for (uint64_t i = 0; i < c->n; i++)
        if (!below[2 * i] && !below[2 * i + 1]) out->place[out->n++] = (uint32_t)(out->first + i);
    free(below);
    return KILN_OK;
}

/* to: where coefficients go. */
static kiln_status take_plane(const open_chunk *c, int which, kiln_rad_leaves *out, float *to,
                              const double origin[3], kiln_error *err)
{
    unsigned char *plane = NULL;
    double limit;
    const kiln_status st = read_rad_property(c, which, &plane, &limit, err);
    if (st != KILN_OK)
        ;
    else if (which == KILN_RAD_CENTRE)
        take_centres(plane, c->n, out, origin);
    else if (which == KILN_RAD_ROTATION)
        take_rotations(plane, out);
    else if (which == KILN_RAD_ALPHA)
        take_opacities(plane, out);
    else if (which == KILN_RAD_RGB)
        /* 1/(2 sqrt pi), Y_0^0 */
        take_halves(plane, c->n, 3, -0.5f, 1 / 0.28209479f, out, out->sh0);
    else if (which == KILN_RAD_SCALES)
        take_halves(plane, c->n, 3, 0, 1, out, out->log_scales);
    else
        take_harmonics(plane, c->n, kiln_rad_property_of(which)->n, limit, out, to);
    free(plane);
    return st;
}

static kiln_status take_planes(const open_chunk *c, const double origin[3], kiln_rad_leaves *out,
                               kiln_error *err)
{
    for (int which = KILN_RAD_CENTRE; which < KILN_RAD_SH1; which++)
        KILN_TRY(take_plane(c, which, out, NULL, origin, err));
    for (uint32_t d = 0; d < c->file->sh_degree; d++)
        KILN_TRY(take_plane(c, KILN_RAD_SH1 + (int)d, out,
                            out->shN + kiln_sh_components(d) * out->n, origin, err));
    return KILN_OK;
}

kiln_status kiln_rad_read_leaves(const kiln_rad_file *f, uint32_t chunk, const double origin[3],
                                 kiln_rad_leaves *out, kiln_error *err)
{
    open_chunk c = {0};
    kiln_status st;
    *out = (kiln_rad_leaves){0};
    KILN_GO(read_chunk(f, chunk, &c, err));
    const uint64_t floats = 3 + 3 + 4 + 1 + 3 + kiln_sh_components(f->sh_degree);
    KILN_GO(KILN_ALLOC(&out->store, (floats + 1) * c.n, "rows of a chunk", err));
    out->first = count_of(c.text, KILN_RAD_KEY_BASE);
    out->place = (uint32_t *)(void *)(out->store + floats * c.n);
    KILN_GO(find_leaves(&c, out, err));
    out->means = out->store;
    out->log_scales = out->means + 3 * out->n;
    out->quats = out->log_scales + 3 * out->n;
    out->opacity_logits = out->quats + 4 * out->n;
    out->sh0 = out->opacity_logits + out->n;
    out->shN = f->sh_degree ? out->sh0 + 3 * out->n : NULL;
    KILN_GO(take_planes(&c, origin, out, err));
done:
    json_decref(c.text);
    free(c.payload);
    if (st != KILN_OK) {
        free(out->store);
        out->store = NULL;
    }
    return st;
}
