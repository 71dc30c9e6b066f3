/* masks -- which mask belongs to a camera's photo: a picture that is black where the photo is to be
 * left out.
 *
 * Two conventions. COLMAP's (doc/faq.rst, ImageReader.mask_path): beside the image folder lies
 * masks, and the mask of IMG.jpg is masks/IMG.jpg.png; masks/IMG.png counts too, and RealityScan's
 * masks/IMG.jpg.mask.png and masks/IMG.mask.png. nerfstudio's: a frame names its mask_path; for one
 * that names none COLMAP's holds. Photos of a folder images_4 have their masks in masks_4 first. A
 * mask of the photo's size is preferred; one of the same shape is resampled when it is used, as
 * masks are often made for the full size only. Any other is left out with a note, because nobody
 * can say which pixels it means.
 */
#include "stages/cameras/camera_file.h"
#include "stages/image/image.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    kiln_camera_file *f;
    kiln_camera *c;
    const char *suffix;    /* of the photo's image folder: "_4"; "" */
    char other_shape[512]; /* how the first of those differs from the photo, "" none */
    char unreadable[512];  /* why the first of those cannot be read, "" none */
} search;

/* "_4" where the photo lies in images_4. `at` is the photo's name behind the image folder, without
 * extension. */
static const char *folder_suffix(const kiln_camera *c, size_t name, char out[24])
{
    char folder[KILN_PATH_MAX];
    const char *suffix = kiln_path_suffix(c->photo);
    const size_t stem = *suffix ? (size_t)(suffix - 1 - c->photo) : strlen(c->photo);
    out[0] = '\0';
    if (stem <= name + 1) return out;
    snprintf(folder, sizeof folder, "%.*s", (int)(stem - name - 1), c->photo);
    const char *number = strrchr(kiln_path_base(folder), '_');
    if (number && number[1] && number[1 + strspn(number + 1, "0123456789")] == '\0')
        snprintf(out, 24, "%.23s", number);
    return out;
}

/* As large as the photo, but for the rounding of whichever is the smaller copy. */
static bool same_shape(const kiln_camera *c, uint32_t width, uint32_t height)
{
    const int64_t across = (int64_t)width * c->photo_height,
                  down = (int64_t)height * c->photo_width;
    const int64_t photo = (int64_t)c->photo_width + c->photo_height, mask = (int64_t)width + height;
    return llabs(across - down) <= (photo > mask ? photo : mask);
}

/* True when `path` is a mask of the photo's own size: the search is over. One of another size is
 * kept unless there is one. */
static bool try_mask(search *s, const char *path)
{
    kiln_error why = {0};
    kiln_camera *c = s->c;
    uint32_t width, height;
    if (!kiln_is_file(path)) return false;
    if (kiln_picture_size(path, &width, &height, &why) != KILN_OK) {
        if (!s->unreadable[0]) snprintf(s->unreadable, sizeof s->unreadable, "%.500s", why.msg);
        return false;
    }
    const bool same = width == c->photo_width && height == c->photo_height;
    if (!same && !same_shape(c, width, height)) {
        if (!s->other_shape[0])
            snprintf(s->other_shape, sizeof s->other_shape,
                     "'%.300s' is %u x %u pixels, its photo %u x %u", path, width, height,
                     c->photo_width, c->photo_height);
        return false;
    }
    if (!same && c->mask[0]) return false;
    snprintf(s->f->mask, sizeof s->f->mask, "%s", path);
    c->mask = s->f->mask;
    c->mask_width = width;
    c->mask_height = height;
    return same;
}

static bool try_name(search *s, const char *folder, const char *name, size_t length,
                     const char *end)
{
    char path[KILN_PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/%.*s%s", folder, (int)length, name, end);
    return n > 0 && (size_t)n < sizeof path && try_mask(s, path);
}

/* COLMAP's: by the photo's name as given, by that of the file that was found for it, and without
 * its extension. */
static bool try_folder(search *s, const char *base, const char *suffix, const kiln_photo_path *p)
{
    char folder[KILN_PATH_MAX], end[32];
    const char *name = p->path + p->after_folder, *extension = kiln_path_suffix(s->c->photo),
               *file = kiln_path_base(s->c->photo);
    const size_t stem = p->stem - p->after_folder, above = (size_t)(kiln_path_base(name) - name);
    char found[KILN_PATH_MAX]; /* as the photo's file is called, which may differ in case */
    const int n = snprintf(folder, sizeof folder, "%s/masks%s", base, suffix);
    if (n < 0 || (size_t)n >= sizeof folder || !kiln_may_look_into(folder, s->f->avoid))
        return false;
    snprintf(s->f->unfit_masks, sizeof s->f->unfit_masks, "%s", folder);
    snprintf(end, sizeof end, ".%.16s.png", extension);
    if (try_name(s, folder, name, strlen(name), ".png") || try_name(s, folder, name, stem, end) ||
        try_name(s, folder, name, stem, ".png"))
        return true;
    const int length = snprintf(found, sizeof found, "%.*s%s", (int)above, name, file);
    if (length < 0 || (size_t)length >= sizeof found) return false;
    const size_t found_stem = kiln_photo_stem(found);
    return try_name(s, folder, found, (size_t)length, ".png") ||
           try_name(s, folder, found, found_stem, ".png") ||
           try_name(s, folder, found, (size_t)length, ".mask.png") ||
           try_name(s, folder, name, strlen(name), ".mask.png") ||
           try_name(s, folder, found, found_stem, ".mask.png") ||
           try_name(s, folder, name, stem, ".mask.png");
}

/* nerfstudio's: masks/IMG.png is masks_4/IMG.png for a photo of images_4. */
static bool try_given(search *s, const char *base, const char *given)
{
    char scaled[KILN_PATH_MAX];
    const size_t first = strcspn(given, "/");
    const int n =
        snprintf(scaled, sizeof scaled, "%.*s%s%s", (int)first, given, s->suffix, given + first);
    if (s->suffix[0] && given[first] && n > 0 && (size_t)n < sizeof scaled &&
        try_name(s, base, scaled, strlen(scaled), ""))
        return true;
    return try_name(s, base, given, strlen(given), "");
}

/* A photo counts once, however many files could have been its mask. */
static void count_left(const search *s)
{
    kiln_camera_file *f = s->f;
    if (s->unreadable[0] && f->n_masks_unreadable++ == 0)
        snprintf(f->first_mask_unreadable, sizeof f->first_mask_unreadable, "%s", s->unreadable);
    if (!s->c->mask[0] && s->other_shape[0] && f->n_masks_left++ == 0)
        snprintf(f->first_mask_left, sizeof f->first_mask_left, "%s", s->other_shape);
}

kiln_status kiln_mask_find(kiln_camera_file *f, kiln_camera *c, const kiln_photo_path *p,
                           const char *given, kiln_error *err)
{
    char suffix[24];
    search s = {.f = f, .c = c, .suffix = folder_suffix(c, p->stem - p->after_folder, suffix)};
    bool done = !c->photo[0];
    while (given && given[0] == '.' && given[1] == '/') given += 2;
    for (uint32_t i = 0; i < f->n_dirs && !done; i++) {
        const char *base = f->dirs[i];
        if (f->is_image_folder[i]) continue;
        done = given
                   ? try_given(&s, base, given)
                   : (suffix[0] && try_folder(&s, base, suffix, p)) || try_folder(&s, base, "", p);
    }
    count_left(&s);
    if (c->mask[0]) {
        f->n_masks_resampled +=
            c->mask_width != c->photo_width || c->mask_height != c->photo_height;
        f->set->n_masks++;
        return kiln_camera_set_add_source(f->set, c->mask, "mask", err);
    }
    if (given && c->photo[0] && !s.unreadable[0] && !s.other_shape[0] && f->n_masks_missing++ == 0)
        snprintf(f->first_mask_missing, sizeof f->first_mask_missing, "%.400s", given);
    return KILN_OK;
}

/* Pictures in a folder masks of which none is a mask of a photo: their names follow another
 * rule. */
static void note_unfit(const kiln_camera_file *f)
{
    char first[256] = "";
    uint64_t n = 0;
    if (!f->unfit_masks[0] || f->set->n_masks || f->n_masks_left || f->n_masks_unreadable) return;
    DIR *d = opendir(f->unfit_masks);
    for (const struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.' || kiln_photo_stem(e->d_name) == strlen(e->d_name)) continue;
        if (n++ == 0 || strcmp(e->d_name, first) < 0)
            snprintf(first, sizeof first, "%s", e->d_name);
    }
    if (d) closedir(d); /* opened for reading: nothing to lose */
    if (n)
        kiln_camera_set_note_meaning(
            f->set,
            "'%s' holds %llu picture%s, but none is the mask of a photo; the first is '%s'. The "
            "mask of IMG.jpg is "
            "called IMG.jpg.png, IMG.png, IMG.jpg.mask.png or IMG.mask.png",
            f->unfit_masks, (unsigned long long)n, n == 1 ? "" : "s", first);
}

void kiln_masks_note(const kiln_camera_file *f)
{
    note_unfit(f);
    const char *one = "mask has another size than its photo, but the same shape";
    const char *more = "masks have other sizes than their photos, but the same shapes";
    if (f->n_masks_resampled)
        kiln_camera_set_note(f->set, "%llu %s: the nearest pixel of the mask decides",
                             (unsigned long long)f->n_masks_resampled,
                             f->n_masks_resampled == 1 ? one : more);
    if (f->n_masks_unreadable)
        kiln_camera_set_note(f->set, "%llu mask%s cannot be read and %s left out; the first: %s",
                             (unsigned long long)f->n_masks_unreadable,
                             f->n_masks_unreadable == 1 ? "" : "s",
                             f->n_masks_unreadable == 1 ? "is" : "are", f->first_mask_unreadable);
    if (f->n_masks_left)
        kiln_camera_set_note(f->set, "%llu mask%s and %s left out; the first: %s",
                             (unsigned long long)f->n_masks_left,
                             f->n_masks_left == 1 ? " does not fit its photo"
                                                  : "s do not fit their photos",
                             f->n_masks_left == 1 ? "is" : "are", f->first_mask_left);
    if (f->n_masks_missing)
        kiln_camera_set_note(f->set, "%llu mask%s named, but missing; the first is '%s'",
                             (unsigned long long)f->n_masks_missing,
                             f->n_masks_missing == 1 ? " is" : "s are", f->first_mask_missing);
}
