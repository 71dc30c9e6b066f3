/* gltf_splats -- one primitive: its attributes by name, each with the types that the extension
 * allows. */
#include "stages/formats/gltf/gltf.h"
#include "stages/formats/gltf/gltf_scene.h"

#include <string.h>
#include <unistd.h>

static const char extension[] = KILN_GLTF_EXTENSION;
/* In the order of age; the older ones stand at the primitive itself. */
static const char *const spz_extensions[] = {KILN_GLTF_EXTENSION_SPZ,
                                             KILN_GLTF_EXTENSION "_compression_spz",
                                             "KHR_spz_gaussian_splats_compression"};
/* What is needed for materials and pictures does not matter to splats. */
static const char *const harmless[] = {"KHR_materials_", "KHR_texture_", "EXT_texture_",
                                       "KHR_lights_", "KHR_mesh_quantization"};

/* ---- extensions ------------------------------------------------------------------------------ */

static bool is_known(const char *name)
{
    bool known = strcmp(name, extension) == 0;
    for (size_t i = 0; i < sizeof spz_extensions / sizeof *spz_extensions; i++)
        known |= strcmp(name, spz_extensions[i]) == 0;
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        known |= strncmp(name, harmless[i], strlen(harmless[i])) == 0;
    return known;
}

kiln_status kiln_gltf_extensions_check(const kiln_gltf_document *d, kiln_error *err)
{
    const json_t *needed = json_object_get(d->file.json, "extensionsRequired");
    for (size_t i = 0; i < json_array_size(needed); i++) {
        const char *name = json_string_value(json_array_get(needed, i));
        if (!name || !is_known(name))
            return kiln_fail(
                err, KILN_E_INPUT,
                "'%s' needs the extension %.80s, which is not supported; convert it without",
                d->name, name ? name : "(no name)");
    }
    return KILN_OK;
}

static const json_t *spz_of(const json_t *primitive)
{
    const json_t *outer = json_object_get(primitive, "extensions");
    const json_t *inner = json_object_get(json_object_get(outer, extension), "extensions");
    for (size_t i = 0; i < sizeof spz_extensions / sizeof *spz_extensions; i++) {
        const json_t *at = json_object_get(inner, spz_extensions[i]);
        if (!at) at = json_object_get(outer, spz_extensions[i]);
        if (at) return at;
    }
    return NULL;
}

bool kiln_gltf_is_splats(const json_t *primitive)
{
    return json_object_get(json_object_get(primitive, "extensions"), extension) ||
           spz_of(primitive);
}

static kiln_status check_extension(const kiln_gltf_document *d, const json_t *primitive,
                                   bool *is_linear, kiln_error *err)
{
    const json_t *e = json_object_get(json_object_get(primitive, "extensions"), extension);
    const char *kernel = json_string_value(json_object_get(e, KILN_GLTF_KEY_KERNEL));
    const char *space = json_string_value(json_object_get(e, KILN_GLTF_KEY_COLOURS));
    const json_t *mode = json_object_get(primitive, "mode");
    if (!json_is_number(mode) || json_number_value(mode) != KILN_GLTF_POINTS)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': a splat primitive does not have the mode POINTS (0)", d->name);
    if (kernel && strcmp(kernel, KILN_GLTF_ELLIPSE) != 0)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': the kernel \"%.60s\" is unknown; \"ellipse\" is read", d->name,
                         kernel);
    *is_linear = space && strcmp(space, KILN_GLTF_LINEAR) == 0;
    return KILN_OK;
}

/* ---- attributes ------------------------------------------------------------------------------ */

#define BIT(type) (1u << KILN_GLTF_##type)
#define NORM(type) (1u << (8 + KILN_GLTF_##type))

typedef struct {
    const char *name, *types; /* types: for the sentence */
    uint32_t components;
    unsigned allowed; /* BIT: as a number, NORM: normalised */
} rule;

static const rule position_rule = {"POSITION", "VEC3 of float", 3, BIT(F32)};
static const rule quantized_rule = {"POSITION", "VEC3 of float or integers of 8 or 16 bits", 3,
                                    BIT(F32) | BIT(I8) | BIT(U8) | BIT(I16) | BIT(U16) | NORM(I8) |
                                        NORM(U8) | NORM(I16) | NORM(U16)};
static const rule rotation_rule = {"ROTATION",
                                   "VEC4 of float or normalised signed integers of 8 or 16 bits", 4,
                                   BIT(F32) | NORM(I8) | NORM(I16)};
static const rule scale_rule = {"SCALE", "VEC3 of float or unsigned integers of 8 or 16 bits", 3,
                                BIT(F32) | BIT(U8) | BIT(U16) | NORM(U8) | NORM(U16)};
static const rule opacity_rule = {"OPACITY",
                                  "SCALAR of float or normalised unsigned integers of 8 or 16 bits",
                                  1, BIT(F32) | NORM(U8) | NORM(U16)};
static const rule colour_rule = {"COLOR_0",
                                 "VEC4 of float or normalised unsigned integers of 8 or 16 bits", 4,
                                 BIT(F32) | NORM(U8) | NORM(U16)};
static const rule sh_rule = {"SH", "VEC3 of float", 3, BIT(F32)};

typedef struct {
    kiln_gltf_document *d;
    const json_t *attributes;
    kiln_gltf_splats *out;
} finder;

static kiln_status find_attribute(finder *f, const char *name, const rule *r, kiln_gltf_accessor *a,
                                  kiln_error *err)
{
    const kiln_gltf_document *d = f->d;
    const json_t *index = json_object_get(f->attributes, name);
    if (!index)
        return kiln_fail(err, KILN_E_INPUT, "'%s': a splat primitive lacks the attribute %s",
                         d->name, name);
    KILN_TRY(kiln_gltf_accessor_find(f->d, index, name, a, err));
    if (a->components != r->components || !(r->allowed >> a->type & (a->normalised ? 1u << 8 : 1u)))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': %s has a type that the extension does not allow; it must be %s",
                         d->name, name, r->types);
    if (a->is_empty)
        return kiln_fail(err, KILN_E_INPUT, "'%s': %s has no buffer view", d->name, name);
    if (f->out->n == 0) f->out->n = a->count;
    if (a->count == f->out->n) return KILN_OK;
    return kiln_fail(
        err, KILN_E_INPUT,
        "'%s': the attributes of a splat primitive have different counts: %s %llu, POSITION %llu",
        d->name, name, (unsigned long long)a->count, (unsigned long long)f->out->n);
}

/* Coefficients of one degree that are there. */
static uint32_t count_degree(const finder *f, const char *prefix, uint32_t degree)
{
    char name[64];
    uint32_t n = 0;
    for (uint32_t c = 0; c < 2 * degree + 1; c++) {
        kiln_gltf_sh_name(prefix, degree, c, name);
        n += json_object_get(f->attributes, name) != NULL;
    }
    return n;
}

static kiln_status find_degrees(finder *f, const char *prefix, uint32_t first, kiln_error *err)
{
    char name[64];
    uint32_t k = first * first, degree = first;
    while ((degree + 1) * (degree + 1) <= KILN_GLTF_SH_MAX &&
           (degree == 0 || count_degree(f, prefix, degree))) {
        for (uint32_t c = 0; c < 2 * degree + 1; c++, k++) {
            kiln_gltf_sh_name(prefix, degree, c, name);
            if (degree && !json_object_get(f->attributes, name))
                return kiln_fail(err, KILN_E_INPUT,
                                 "'%s': SH degree %u is incomplete: %s is missing", f->d->name,
                                 degree, name);
            KILN_TRY(find_attribute(f, name, &sh_rule, &f->out->sh[k], err));
        }
        f->out->sh_degree = degree++;
    }
    for (; degree <= 4; degree++)
        if (count_degree(f, prefix, degree))
            return kiln_fail(err, KILN_E_INPUT, "'%s': it has SH degree %u, but not degree %u",
                             f->d->name, degree, f->out->sh_degree + 1);
    return KILN_OK;
}

static kiln_status find_attributes(finder *f, kiln_error *err)
{
    const json_t *used = json_object_get(f->d->file.json, "extensionsUsed");
    const rule *position = &position_rule;
    for (size_t i = 0; i < json_array_size(used); i++) {
        const char *name = json_string_value(json_array_get(used, i));
        if (name && strcmp(name, "KHR_mesh_quantization") == 0) position = &quantized_rule;
    }
    KILN_TRY(find_attribute(f, KILN_GLTF_POSITION, position, &f->out->position, err));
    f->out->is_draft = !json_object_get(f->attributes, KILN_GLTF_PREFIX KILN_GLTF_ROTATION) &&
                       json_object_get(f->attributes, KILN_GLTF_DRAFT_PREFIX KILN_GLTF_ROTATION);
    if (f->out->is_draft) {
        KILN_TRY(find_attribute(f, KILN_GLTF_DRAFT_PREFIX KILN_GLTF_ROTATION, &rotation_rule,
                                &f->out->rotation, err));
        KILN_TRY(find_attribute(f, KILN_GLTF_DRAFT_PREFIX KILN_GLTF_SCALE, &scale_rule,
                                &f->out->scale, err));
        KILN_TRY(find_attribute(f, KILN_GLTF_COLOUR, &colour_rule, &f->out->opacity, err));
        return find_degrees(f, KILN_GLTF_DRAFT_PREFIX, 1, err);
    }
    KILN_TRY(find_attribute(f, KILN_GLTF_PREFIX KILN_GLTF_ROTATION, &rotation_rule,
                            &f->out->rotation, err));
    KILN_TRY(find_attribute(f, KILN_GLTF_PREFIX KILN_GLTF_SCALE, &scale_rule, &f->out->scale, err));
    KILN_TRY(find_attribute(f, KILN_GLTF_PREFIX KILN_GLTF_OPACITY, &opacity_rule, &f->out->opacity,
                            err));
    return find_degrees(f, KILN_GLTF_PREFIX, 0, err);
}

/* ---- SPZ ------------------------------------------------------------------------------------- */

static kiln_status look_into_spz(const kiln_gltf_document *d, kiln_gltf_splats *out,
                                 kiln_error *err)
{
    /* of the stream: its header, which may hold a file name, and the first bytes */
    enum { HEAD = 1 << 16 };
    uint64_t from, have;
    int fd;
    KILN_TRY(kiln_gltf_document_peek(d, &out->packed, HEAD, &fd, &from, &have, err));
    const kiln_status st =
        kiln_spz_range_header(&(kiln_spz_range){fd, d->name, from, have}, &out->spz, err);
    close(fd);
    return st;
}

static kiln_status find_spz(finder *f, const json_t *spz, kiln_error *err)
{
    kiln_gltf_accessor position;
    kiln_gltf_splats *out = f->out;
    uint32_t stride;
    out->is_spz = true;
    KILN_TRY(kiln_gltf_accessor_find(f->d, json_object_get(f->attributes, KILN_GLTF_POSITION),
                                     KILN_GLTF_POSITION, &position, err));
    KILN_TRY(
        kiln_gltf_view_find(f->d, json_object_get(spz, "bufferView"), &out->packed, &stride, err));
    KILN_TRY(look_into_spz(f->d, out, err));
    out->n = out->spz.n;
    out->sh_degree = out->spz.sh_degree;
    if (position.count == out->n) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "'%s': POSITION has %llu elements, but its SPZ has %llu",
                     f->d->name, (unsigned long long)position.count, (unsigned long long)out->n);
}

kiln_status kiln_gltf_splats_find(kiln_gltf_document *d, const json_t *primitive,
                                  kiln_gltf_splats *out, bool *is_linear, kiln_error *err)
{
    finder f = {.d = d, .attributes = json_object_get(primitive, "attributes"), .out = out};
    const json_t *spz = spz_of(primitive);
    memset(out, 0, sizeof *out);
    KILN_TRY(check_extension(d, primitive, is_linear, err));
    return spz ? find_spz(&f, spz, err) : find_attributes(&f, err);
}
