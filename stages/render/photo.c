/* photo -- see photo.h. */
#include "stages/render/photo.h"

#include "stages/files/hash_file.h"

#include <stdio.h>
#include <stdlib.h>

/* Turns a failure that comes from the file into damage. */
static kiln_status blame(kiln_photo *p, kiln_status st, const kiln_error *why, kiln_error *err)
{
    if (st == KILN_OK) return KILN_OK;
    if (st != KILN_E_INPUT && st != KILN_E_IO) return kiln_fail(err, st, "%s", why->msg);
    (void)snprintf(p->damage, sizeof p->damage, "%s", why->msg);
    return KILN_OK;
}

/* Reads the header first, because a photo of another size could need more memory than the unit
 * has. */
static kiln_status check_photo_size(const kiln_render_unit *u, kiln_photo *p, kiln_error *err)
{
    kiln_error why = {0};
    kiln_picture head = {0};
    KILN_TRY(blame(p,
                   kiln_picture_look(u->photo, &head.width, &head.height, &head.orientation, &why),
                   &why, err));
    const uint32_t width = head.width, height = head.height;
    if (kiln_picture_turns_to(&head, kiln_render_photo_width(u), kiln_render_photo_height(u)))
        return KILN_OK;
    if (!p->damage[0] &&
        (width != kiln_render_photo_width(u) || height != kiln_render_photo_height(u)))
        (void)snprintf(p->damage, sizeof p->damage,
                       "'%.700s' has %u x %u pixels, but the camera %u x %u; import again",
                       u->photo, width, height, kiln_render_photo_width(u),
                       kiln_render_photo_height(u));
    return KILN_OK;
}

static kiln_status read_pixels(const kiln_render_unit *u, kiln_photo *p, kiln_error *err)
{
    kiln_error why = {0};
    KILN_TRY(blame(p, kiln_picture_read(u->photo, &p->rgb, &why), &why, err));
    if (!p->damage[0] && p->rgb.warning[0])
        (void)snprintf(p->damage, sizeof p->damage, "'%.700s' is damaged: %s", u->photo,
                       p->rgb.warning);
    if (kiln_picture_turns_to(&p->rgb, kiln_render_photo_width(u), kiln_render_photo_height(u)))
        return KILN_OK;
    if (!p->damage[0] && (p->rgb.width != kiln_render_photo_width(u) ||
                          p->rgb.height != kiln_render_photo_height(u)))
        (void)snprintf(p->damage, sizeof p->damage, "'%.700s' changed while it was read", u->photo);
    return KILN_OK;
}

/* Checks that a file is the one that import hashed, because its hash is in the unit's key. If it is
 * not, the run ends: import must run first. A file with another time or inode is hashed. */
static kiln_status check_photo_content(const char *path, const kiln_file_info *then,
                                       kiln_hash as_imported, kiln_photo *p, kiln_error *err)
{
    kiln_error why = {0};
    kiln_file_info now = {0};
    kiln_hash hash;
    if (p->damage[0] || then->size == 0) return KILN_OK;
    KILN_TRY(blame(p, kiln_file_stat(path, &now, &why), &why, err));
    if (p->damage[0] ||
        (now.size == then->size && now.mtime_ns == then->mtime_ns && now.inode == then->inode))
        return KILN_OK;
    KILN_TRY(blame(p, kiln_hash_file(path, &hash, &why), &why, err));
    return p->damage[0] || kiln_hash_equal(hash, as_imported)
               ? KILN_OK
               : kiln_file_unchanged(path, then, err);
}

/* Of the size that the photo is compared in, whatever that of its file. One that leaves nothing to
 * compare is damage. */
static kiln_status read_mask(const kiln_render_unit *u, kiln_photo *p, kiln_error *err)
{
    kiln_error why = {0};
    const uint64_t pixels = (uint64_t)kiln_render_photo_width(u) * kiln_render_photo_height(u);
    uint64_t i = 0;
    uint32_t width = 0, height = 0;
    if (!u->mask[0] || p->damage[0]) return KILN_OK;
    KILN_TRY(blame(p, kiln_picture_size(u->mask, &width, &height, &why), &why, err));
    if (!p->damage[0] && (width != u->mask_width || height != u->mask_height))
        (void)snprintf(p->damage, sizeof p->damage,
                       "the mask '%.700s' has %u x %u pixels, but it had %u x %u; import again",
                       u->mask, width, height, u->mask_width, u->mask_height);
    if (p->damage[0]) return KILN_OK;
    KILN_TRY(blame(p,
                   kiln_mask_read(u->mask, kiln_render_photo_width(u), kiln_render_photo_height(u),
                                  &p->mask, &why),
                   &why, err));
    KILN_TRY(check_photo_content(u->mask, &u->mask_file, u->mask_hash, p, err));
    if (p->damage[0]) return KILN_OK;
    while (i < pixels && p->mask[i] == 0) i++;
    if (i == pixels)
        (void)snprintf(p->damage, sizeof p->damage,
                       "the mask '%.700s' is black, so nothing is left to compare", u->mask);
    return KILN_OK;
}

/* Puts a photo with alpha over the background, like the picture. */
static kiln_status compose(kiln_photo *p, const double background[3], kiln_error *err)
{
    kiln_picture *photo = &p->rgb;
    const uint64_t pixels = (uint64_t)photo->width * photo->height;
    const uint32_t n = photo->channels;
    const bool grey = n < 3, has_alpha = n == 2 || n == 4;
    float *rgb;
    KILN_TRY(KILN_ALLOC_UNSET(&rgb, 3 * pixels, "photo", err));
    for (uint64_t i = 0; i < pixels; i++) {
        const float *v = photo->data + i * n;
        const float alpha = has_alpha ? v[n - 1] : 1.0f;
        p->cut_out |= alpha < 1.0f;
        for (int c = 0; c < 3; c++) {
            const float colour = grey ? v[0] : v[c];
            rgb[3 * i + (uint64_t)c] = colour * alpha + (float)background[c] * (1.0f - alpha);
        }
    }
    free(photo->data);
    photo->data = rgb;
    photo->channels = 3;
    return KILN_OK;
}

kiln_status kiln_photo_read(const kiln_render_unit *u, kiln_photo *out, kiln_error *err)
{
    *out = (kiln_photo){0};
    KILN_TRY(check_photo_size(u, out, err));
    /* first: it takes less memory beside a photo than a photo beside it */
    KILN_TRY(read_mask(u, out, err));
    if (!out->damage[0]) KILN_TRY(read_pixels(u, out, err));
    KILN_TRY(check_photo_content(u->photo, &u->photo_file, u->photo_hash, out, err));
    if (out->damage[0]) {
        kiln_photo_release(out);
        return KILN_OK;
    }
    KILN_TRY(compose(out, u->background, err));
    /* Turned last, when it has three channels and takes least memory. */
    return kiln_picture_turn_to(&out->rgb, kiln_render_photo_width(u), kiln_render_photo_height(u),
                                err);
}

void kiln_photo_release(kiln_photo *p)
{
    kiln_picture_release(&p->rgb);
    free(p->mask);
    p->mask = NULL;
}

/* ---- its state ------------------------------------------------------------------------------- */
json_t *kiln_photo_state(const char *path)
{
    kiln_error none;
    kiln_file_info now;
    if (kiln_file_stat(path, &now, &none) != KILN_OK) return json_null();
    return json_pack("{s:I, s:I, s:I}", "size", (json_int_t)now.size, "mtime_ns",
                     (json_int_t)now.mtime_ns, "inode", (json_int_t)now.inode);
}

bool kiln_photo_state_is(const json_t *state, const char *path)
{
    json_t *now = kiln_photo_state(path);
    const bool same = now && json_equal(state, now);
    json_decref(now);
    return same;
}
