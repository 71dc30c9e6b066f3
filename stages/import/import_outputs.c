/* What import gives to later stages besides its layer: cameras with their photos (read by stages
 * that make tables or images), their views alone (read by prune, which asks what cameras see of
 * Gaussians; with splits and masks only where its rules ask for them, so that a mask makes no other
 * bake stale), the scene row (read by all), its words (read by those that write files) and tracks,
 * the way from COLMAP's points to photos (read by knn, which colours points). Each has a digest of
 * its own, so that a new photo does not make stages stale that never look at one.
 */
#include "stages/import/import_outputs.h"

#include "base/memory.h"
#include "stages/prune/rules.h"

#include <stdlib.h>
#include <string.h>

/* Each field of the scene that a later stage reads is in one of the digests below. */
KILN_KEY_LISTS(kiln_scene, 14904);
KILN_KEY_LISTS(kiln_camera, 368);
KILN_KEY_LISTS(kiln_source_file, 80);

static kiln_status digest_scene(kiln_manifest *m, kiln_hash *out, kiln_error *err)
{
    kiln_scene *s;
    KILN_TRY(KILN_ALLOC(&s, 1, "the scene", err));
    kiln_status st = kiln_scene_get(m, s, err);
    if (st == KILN_OK) {
        kiln_hasher *h = kiln_hasher_new();
        kiln_key_u64(h, "kind", s->kind);
        kiln_key_u64(h, "sh_degree", s->sh_degree);
        kiln_key_bytes(h, "origin", s->origin, sizeof s->origin);
        kiln_key_bytes(h, "root_centre", s->root_centre, sizeof s->root_centre);
        kiln_key_f64(h, "root_half", s->root_half);
        *out = kiln_hasher_end(h);
    }
    free(s);
    return st;
}

/* What a file for other renderers says of the scene besides its Gaussians. */
static kiln_status digest_words(kiln_manifest *m, kiln_hash *out, kiln_error *err)
{
    kiln_scene *s;
    KILN_TRY(KILN_ALLOC(&s, 1, "the scene", err));
    kiln_status st = kiln_scene_get(m, s, err);
    if (st == KILN_OK) {
        kiln_hasher *h = kiln_hasher_new();
        kiln_key_text(h, "name", s->name);
        kiln_key_text(h, "notes", s->notes);
        kiln_key_text(h, "up_axis", s->up_axis);
        kiln_key_u64(h, "antialiased", s->antialiased);
        *out = kiln_hasher_end(h);
    }
    free(s);
    return st;
}

/* The masks of photos, and with `photos` these. */
static kiln_status key_photos(kiln_manifest *m, kiln_hasher *h, bool photos, kiln_error *err)
{
    kiln_source_file *files = NULL;
    uint32_t n = 0;
    KILN_TRY(kiln_sources_get(m, &files, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        if (!(photos && strcmp(files[i].role, "photo") == 0) && strcmp(files[i].role, "mask") != 0)
            continue;
        kiln_key_text(h, "path", files[i].path);
        kiln_key_hash(h, "content", files[i].hash);
    }
    free(files);
    return KILN_OK;
}

static kiln_status key_camera(void *hasher, const kiln_camera *c, kiln_error *err)
{
    kiln_hasher *h = hasher;
    (void)err;
    kiln_key_text(h, "name", c->name);
    kiln_key_hash(h, "camera", kiln_camera_hash(c));
    if (c->distorted) kiln_key_u64(h, "undistorted", 1);
    kiln_key_text(h, "split", c->split);
    kiln_key_text(h, "photo", c->photo);
    if (c->mask[0]) kiln_key_text(h, "mask", c->mask); /* without masks the digest of before */
    return KILN_OK;
}

static kiln_status digest_cameras(kiln_manifest *m, kiln_hash *out, kiln_error *err)
{
    kiln_scene *s = NULL;
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC(&s, 1, "the scene", err));
    KILN_GO(kiln_scene_get(m, s, err));
    kiln_hasher *h = kiln_hasher_new();
    kiln_key_u64(h, "antialiased", s->antialiased);
    kiln_key_u64(h, "has_background", s->has_background);
    kiln_key_bytes(h, "background", s->background, sizeof s->background);
    st = kiln_cameras_each(m, key_camera, h, err);
    if (st == KILN_OK) st = key_photos(m, h, true, err);
    *out = kiln_hasher_end(h);
done:
    free(s);
    return st;
}

static kiln_status prune_asks_cameras(kiln_manifest *m, bool *asks, kiln_error *err)
{
    kiln_parameter *stored = NULL;
    uint32_t n = 0;
    *asks = false;
    KILN_TRY(kiln_parameters_get(m, "prune", &stored, &n, err));
    for (uint32_t i = 0; i < n; i++)
        *asks = *asks || kiln_prune_option_asks_cameras(stored[i].name, stored[i].value);
    kiln_parameters_free(stored, n);
    return KILN_OK;
}

static kiln_status digest_views(kiln_manifest *m, kiln_hash *out, kiln_error *err)
{
    kiln_camera *cameras = NULL;
    uint32_t n = 0;
    bool asks;
    KILN_TRY(prune_asks_cameras(m, &asks, err));
    KILN_TRY(kiln_cameras_get(m, &cameras, &n, err));
    kiln_hasher *h = kiln_hasher_new();
    for (uint32_t i = 0; i < n; i++) {
        const kiln_camera *c = &cameras[i];
        const double numbers[] = {c->fx, c->fy, c->cx, c->cy, c->width, c->height};
        kiln_key_bytes(h, "rotation", c->r, sizeof c->r);
        kiln_key_bytes(h, "translation", c->t, sizeof c->t);
        kiln_key_bytes(h, "pinhole", numbers, sizeof numbers);
        if (asks) kiln_key_text(h, "split", c->split);
        if (asks) kiln_key_text(h, "mask", c->mask);
    }
    const kiln_status st = asks ? key_photos(m, h, false, err) : KILN_OK;
    *out = kiln_hasher_end(h);
    free(cameras);
    return st;
}

/* Camera files and photos, where the points are of a COLMAP model; else nothing, zero. */
static kiln_status digest_tracks(kiln_manifest *m, kiln_hash *out, kiln_error *err)
{
    kiln_source_file *files = NULL;
    kiln_scene *s = NULL;
    uint32_t n = 0;
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC(&s, 1, "the scene", err));
    KILN_GO(kiln_scene_get(m, s, err));
    if (strncmp(s->source_format, "colmap-", 7) != 0) goto done;
    KILN_GO(kiln_sources_get(m, &files, &n, err));
    kiln_hasher *h = kiln_hasher_new();
    for (uint32_t i = 0; i < n; i++) kiln_key_hash(h, files[i].role, files[i].hash);
    *out = kiln_hasher_end(h);
done:
    free(files);
    free(s);
    return st;
}

const kiln_stage_output kiln_import_outputs[] = {
    {"cameras", digest_cameras}, {"views", digest_views},   {"scene", digest_scene},
    {"words", digest_words},     {"tracks", digest_tracks}, {NULL, NULL}};
