/* photos -- where a camera's photo is, and the intrinsics fitted to it.
 *
 * Bases are --photos, the camera file's folder, for a COLMAP model the folders above it, the data
 * set's folder, and where cfg_args says that the training data were. A photo is sought under each
 * base by its path as given, then in images, images_2, images_4, images_8, input of each base by
 * what follows the image folder in its path; each time under its own name, then with the extensions
 * that we read. --photos may be an image folder itself, and all of its ways come first. Only
 * folders that exist are tried, so that a camera without photo costs few looks.
 *
 * A photo that is nowhere by name is sought once more by what its name folds to (name_fold.h), in
 * the same order, where just one file is meant.
 *
 * Who gives --photos means that folder: if none of the photos is there, that is an error, and each
 * that is elsewhere is told.
 */
#include "base/count.h"
#include "stages/cameras/camera_file.h"
#include "stages/image/image.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const image_folders[] = {"images", "images_2", "images_4", "images_8",
                                            "input"}; /* the last: INRIA's convert.py */
static const char *const read_extensions[] = {"",      ".png",  ".jpg",  ".jpeg", ".PNG",
                                              ".JPG",  ".JPEG", ".webp", ".tif",  ".tiff",
                                              ".WEBP", ".TIF",  ".TIFF"};

bool kiln_may_look_into(const char *dir, const char *avoid)
{
    char inside[KILN_PATH_MAX], real[KILN_PATH_MAX];
    if (!kiln_is_dir(dir)) return false;
    if (avoid && realpath(dir, real) && strcmp(real, avoid) == 0) return false;
    const int n = snprintf(inside, sizeof inside, "%s/manifest.db", dir);
    return n > 0 && (size_t)n < sizeof inside && !kiln_is_file(inside);
}

static void add_dir(kiln_camera_file *f, const char *dir, bool is_image_folder)
{
    for (uint32_t i = 0; i < f->n_dirs; i++)
        if (f->is_image_folder[i] == is_image_folder && strcmp(f->dirs[i], dir) == 0) return;
    if (f->n_dirs == KILN_PHOTO_DIRS) return;
    f->is_image_folder[f->n_dirs] = is_image_folder;
    snprintf(f->dirs[f->n_dirs++], KILN_PATH_MAX, "%s", dir);
}

/* The folder above, where `dir` is a part of a COLMAP layout: DATA/sparse/0, DATA/colmap/sparse/0,
 * DATA/dense/0/sparse. */
static bool leave_model_folder(char *dir)
{
    static const char *const parts[] = {"sparse",    "colmap",      "dense",
                                        "distorted", "sparse_text", "colmap_text"};
    const char *base = kiln_path_base(dir);
    bool part = *base && base[strspn(base, "0123456789")] == 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) part |= strcmp(base, parts[i]) == 0;
    if (!part || base <= dir + 1) return false;
    dir[base - dir - 1] = 0;
    return true;
}

static void add_image_folder(kiln_camera_file *f, const char *base, const char *name)
{
    char dir[KILN_PATH_MAX];
    const int n = snprintf(dir, sizeof dir, "%s/%s", base, name);
    if (n > 0 && (size_t)n < sizeof dir && kiln_may_look_into(dir, f->avoid)) add_dir(f, dir, true);
}

static void add_image_folders(kiln_camera_file *f, const char *base)
{
    if (f->images[0]) add_image_folder(f, base, f->images);
    for (size_t k = 0; k < sizeof image_folders / sizeof *image_folders; k++)
        add_image_folder(f, base, image_folders[k]);
}

/* --photos: the folder that holds images, or images itself, whose masks then lie beside it. */
static void add_given(kiln_camera_file *f, const char *photos)
{
    char above[KILN_PATH_MAX];
    add_dir(f, photos, false);
    add_dir(f, photos, true);
    add_image_folders(f, photos);
    snprintf(above, sizeof above, "%s", photos);
    const char *base = kiln_path_base(above);
    const bool images = strncmp(base, "images", 6) == 0 && (!base[6] || base[6] == '_');
    if (!images || base <= above + 1) return;
    above[base - above - 1] = '\0';
    add_dir(f, above, false);
}

/* The training data of an INRIA model folder: where cfg_args says, or in a folder of that name
 * beside the model's. */
static void add_source_path(kiln_camera_file *f, const char *root)
{
    char beside[KILN_PATH_MAX];
    const char *path = f->set->source_path;
    if (!path[0] || !root) return;
    if (path[0] == '/' && kiln_may_look_into(path, f->avoid)) add_dir(f, path, false);
    const int n = snprintf(beside, sizeof beside, "%.*s%s", (int)(kiln_path_base(root) - root),
                           root, kiln_path_base(path));
    if (kiln_path_base(path)[0] && n > 0 && (size_t)n < sizeof beside &&
        kiln_may_look_into(beside, f->avoid))
        add_dir(f, beside, false);
}

static void find_dirs(kiln_camera_file *f, const char *root)
{
    char dir[KILN_PATH_MAX];
    if (f->set->photos[0]) add_given(f, f->set->photos);
    const uint32_t first = f->n_given = f->n_dirs;
    snprintf(dir, sizeof dir, "%s", f->path);
    /* absolute: there is a slash */
    if (!kiln_is_dir(f->path)) dir[kiln_path_base(dir) - dir - 1] = 0;
    if (!dir[0]) snprintf(dir, sizeof dir, "/");
    add_dir(f, dir, false);
    while (leave_model_folder(dir)) add_dir(f, dir, false);
    if (root) add_dir(f, root, false);
    add_source_path(f, root);
    const uint32_t end = f->n_dirs;
    for (uint32_t i = first; i < end; i++) add_image_folders(f, f->dirs[i]);
}

kiln_status kiln_camera_file_begin(kiln_camera_file *f, kiln_camera_set *set, const char *path,
                                   const char *root, const char *avoid, kiln_error *err)
{
    char images[sizeof f->images];
    *f = (kiln_camera_file){.set = set, .avoid = avoid, .split = "", .prefix = ""};
    snprintf(images, sizeof images, "%s", set->images);
    memcpy(f->images, images, sizeof images);
    if (!realpath(path, f->path))
        return kiln_fail(err, KILN_E_INPUT, "cannot find the camera file '%s'; check the path",
                         path);
    KILN_TRY(KILN_ALLOC(&f->dirs, KILN_PHOTO_DIRS, "photo folders", err));
    find_dirs(f, root);
    return KILN_OK;
}

static void note_orientation(const kiln_camera_file *f)
{
    if (f->n_turned == 1)
        kiln_camera_set_note(f->set, "1 photo is turned by its EXIF orientation, because only then "
                                     "does it have the shape of its camera");
    else if (f->n_turned)
        kiln_camera_set_note(f->set,
                             "%llu photos are turned by their EXIF orientation, because only then "
                             "do they have the shapes of their cameras",
                             (unsigned long long)f->n_turned);
    if (f->n_untilted)
        kiln_camera_set_note(
            f->set,
            "%llu photo%s an EXIF orientation and %s taken as stored, as COLMAP and nerfstudio do",
            (unsigned long long)f->n_untilted, f->n_untilted == 1 ? " has" : "s have",
            f->n_untilted == 1 ? "is" : "are");
}

static void note_unreadable(const kiln_camera_file *f)
{
    if (f->n_unreadable)
        kiln_camera_set_note(f->set, "%llu photo%s cannot be read and %s left out; the first: %s",
                             (unsigned long long)f->n_unreadable, f->n_unreadable == 1 ? "" : "s",
                             f->n_unreadable == 1 ? "is" : "are", f->unreadable);
    if (f->n_replaced)
        kiln_camera_set_note(f->set,
                             "for %llu photo%s one file cannot be read, and another one is used; "
                             "the first unreadable one: %s",
                             (unsigned long long)f->n_replaced, f->n_replaced == 1 ? "" : "s",
                             f->unreadable);
}

void kiln_camera_file_end(kiln_camera_file *f)
{
    note_unreadable(f);
    if (f->n_dropped)
        kiln_camera_set_note(f->set,
                             "'%s': %llu of %llu frame%s dropped, as the file has no size of them "
                             "(w and h): %llu without a photo, %llu "
                             "with a photo that cannot be read; the first: %s",
                             f->path, (unsigned long long)f->n_dropped,
                             (unsigned long long)f->n_frames, f->n_frames == 1 ? " is" : "s are",
                             (unsigned long long)(f->n_dropped - f->n_dropped_unreadable),
                             (unsigned long long)f->n_dropped_unreadable, f->first_dropped);
    if (f->n_scaled)
        kiln_camera_set_note(
            f->set, "'%s': the intrinsics of %llu camera%s scaled to the true size of %s", f->path,
            (unsigned long long)f->n_scaled, f->n_scaled == 1 ? " were" : "s were",
            f->n_scaled == 1 ? "its photo" : "their photos");
    if (f->n_normalised)
        kiln_camera_set_note(
            f->set, "'%s': %llu rotation%s had columns that are not of length 1 and %s normalised",
            f->path, (unsigned long long)f->n_normalised, f->n_normalised == 1 ? "" : "s",
            f->n_normalised == 1 ? "was" : "were");
    if (f->n_absolute)
        kiln_camera_set_note(f->set,
                             "'%s' has absolute paths of another machine: %llu of them were sought "
                             "by their last parts",
                             f->path, (unsigned long long)f->n_absolute);
    if (f->n_folded)
        kiln_camera_set_note(f->set,
                             "%llu photo%s found by %s that differ in case or in Unicode "
                             "normalisation; the first is %s",
                             (unsigned long long)f->n_folded, f->n_folded == 1 ? " is" : "s are",
                             f->n_folded == 1 ? "a name" : "names", f->first_folded);
    if (f->n_stretched)
        kiln_camera_set_note_meaning(
            f->set,
            "%llu photo%s cropped or stretched since its camera was made, because width and height "
            "differ in scale; pictures are "
            "drawn as if it was stretched, so a cropped photo does not fit them; the first: %s",
            (unsigned long long)f->n_stretched, f->n_stretched == 1 ? " was" : "s were",
            f->first_stretched);
    note_orientation(f);
    kiln_masks_note(f);
    kiln_folded_names_release(&f->folded);
    free(f->dirs);
    f->dirs = NULL;
}

/* One file: true when it is a photo that can be read. */
static bool try_photo(kiln_camera_file *f, kiln_camera *c, const char *path)
{
    kiln_error why = {0};
    if (!kiln_is_file(path)) return false;
    if (kiln_picture_look(path, &c->photo_width, &c->photo_height, &f->orientation, &why) ==
        KILN_OK) {
        snprintf(f->photo, sizeof f->photo, "%s", path);
        c->photo = f->photo;
        return true;
    }
    if (!f->unreadable[0]) snprintf(f->unreadable, sizeof f->unreadable, "%.500s", why.msg);
    f->last_unreadable = true;
    return false;
}

/* A camera whose photo is nowhere costs 13 looks at files in each folder; 20,000 of them took 0.3
 * s. Behind the first miss the list of the folder is asked instead. One that cannot be made for
 * want of memory says nothing. */
static bool may_be_there(kiln_camera_file *f, const char *dir, const char *name, size_t stem)
{
    bool may = true;
    if (!f->lists_folders) return true;
    return kiln_folded_may_hold(&f->folded, dir, name, stem, &may, NULL) != KILN_OK || may;
}

/* dir/name, then dir/name without its extension and with each that we read. */
static bool try_names(kiln_camera_file *f, kiln_camera *c, const char *dir, const char *name,
                      size_t stem)
{
    char path[KILN_PATH_MAX];
    if (!may_be_there(f, dir, name, stem)) return false;
    for (size_t i = 0; i < sizeof read_extensions / sizeof *read_extensions; i++) {
        const int length = i == 0 ? (int)strlen(name) : (int)stem;
        const int n =
            snprintf(path, sizeof path, "%s/%.*s%s", dir, length, name, read_extensions[i]);
        if (i && strcmp(name + stem, read_extensions[i]) == 0) continue; /* that was the first */
        if (n > 0 && (size_t)n < sizeof path && try_photo(f, c, path)) return true;
    }
    f->lists_folders = true;
    return false;
}

/* The first n folders where photos are sought, those inside the data set relative to it; as many as
 * there is room for. */
static void name_dirs(const kiln_camera_file *f, uint32_t n_dirs, char *out, size_t capacity)
{
    const size_t root = strlen(f->set->root);
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < n_dirs; i++) {
        const char *dir = f->dirs[i];
        if (i > 0 && strcmp(f->dirs[i - 1], dir) == 0) continue; /* in two ways */
        if (root && strncmp(dir, f->set->root, root) == 0 && (dir[root] == '/' || !dir[root]))
            dir += dir[root] ? root + 1 : root;
        const int n =
            snprintf(out + used, capacity - used, "%s'%s'", used ? ", " : "", *dir ? dir : ".");
        if (n < 0 || (size_t)n >= capacity - used) {
            out[used] = '\0';
            return;
        }
        used += (size_t)n;
    }
}

static kiln_status count_missing(kiln_camera_file *f, const kiln_photo_path *p, kiln_error *err)
{
    f->n_missing++;
    if (f->may_lack_photos || f->last_unreadable) return KILN_OK;
    if (f->set->photos_missing++ == 0)
        name_dirs(f, f->n_dirs, f->set->sought, sizeof f->set->sought);
    return kiln_buffer_put(&f->set->missing, p->path, strlen(p->path) + 1, err);
}

/* What --photos was good for. found: the photo's path, "" for none. */
static void count_given(kiln_camera_file *f, const kiln_photo_path *p, bool in_given,
                        const char *found)
{
    kiln_camera_set *set = f->set;
    if (!set->photos[0] || (f->may_lack_photos && !found[0])) return;
    if (set->photos_sought++ == 0) {
        snprintf(set->first_sought, sizeof set->first_sought, "%.*s",
                 (int)sizeof set->first_sought - 1, p->path);
        name_dirs(f, f->n_given, set->sought_in_given, sizeof set->sought_in_given);
    }
    set->photos_in_given += in_given;
    if (in_given || !found[0] || set->photos_elsewhere++ > 0) return;
    snprintf(set->first_elsewhere, sizeof set->first_elsewhere, "%.*s",
             (int)sizeof set->first_elsewhere - 1, found);
}

kiln_status kiln_photos_check_given(kiln_camera_set *set, kiln_error *err)
{
    if (set->photos_sought && !set->photos_in_given)
        return kiln_fail(err, KILN_E_INPUT,
                         "--photos '%s' has none of the %s that the cameras name; the first is "
                         "'%s', looked for in %s: name the "
                         "folder that holds them, or take --photos back with --reset",
                         set->photos, KILN_COUNT(set->photos_sought, "photo"), set->first_sought,
                         set->sought_in_given);
    if (set->photos_elsewhere)
        kiln_camera_set_note(
            set, "of %s %llu %s not in --photos '%s' and taken from elsewhere; the first is '%s'",
            KILN_COUNT(set->photos_sought, "photo"), (unsigned long long)set->photos_elsewhere,
            set->photos_elsewhere == 1 ? "is" : "are", set->photos, set->first_elsewhere);
    return KILN_OK;
}

/* By an absolute path: its longest end that is there first, down to the one that names the
 * camera. */
static bool try_ends(kiln_camera_file *f, kiln_camera *c, const char *dir, const kiln_photo_path *p)
{
    const char *why;
    const size_t full = strlen(p->full), least = strlen(p->path);
    for (const char *at = strchr(p->full, '/'); at && full - (size_t)(++at - p->full) > least;
         at = strchr(at, '/')) {
        if (!kiln_name_is_safe(at, &why)) continue;
        if (try_names(f, c, dir, at, full - (size_t)(at - p->full) - (least - p->stem)))
            return true;
    }
    return false;
}

/* Where names differ in case or normalisation. *dir: of f->dirs. */
static kiln_status find_folded(kiln_camera_file *f, kiln_camera *c, const kiln_photo_path *p,
                               uint32_t *dir, kiln_error *err)
{
    static const char *const small[] = {".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", NULL};
    char path[KILN_PATH_MAX];
    for (uint32_t i = 0; i < f->n_dirs; i++) {
        const size_t from = f->is_image_folder[i] ? p->after_folder : 0;
        KILN_TRY(kiln_folded_find(&f->folded, f->dirs[i], p->path + from, p->stem - from, small,
                                  path, err));
        if (!path[0] || !try_photo(f, c, path)) continue;
        if (f->n_folded++ == 0)
            snprintf(f->first_folded, sizeof f->first_folded, "'%.200s' is '%.200s'", p->path,
                     path + strlen(f->dirs[i]) + 1);
        *dir = i;
        break;
    }
    return KILN_OK;
}

kiln_status kiln_photo_find(kiln_camera_file *f, kiln_camera *c, const kiln_photo_path *p,
                            kiln_error *err)
{
    bool in_given = false;
    f->last_unreadable = false;
    for (uint32_t i = 0; i < f->n_dirs; i++) {
        const size_t from = f->is_image_folder[i] ? p->after_folder : 0;
        const bool found =
            (!f->is_image_folder[i] && p->full[0] && try_ends(f, c, f->dirs[i], p)) ||
            try_names(f, c, f->dirs[i], p->path + from, p->stem - from);
        if (i < f->n_given) in_given = found || f->last_unreadable;
        if (!found) continue;
        count_given(f, p, in_given, c->photo);
        f->n_photos++;
        f->n_replaced += f->last_unreadable;
        return kiln_camera_set_add_source(f->set, c->photo, "photo", err);
    }
    uint32_t dir = 0;
    if (!f->last_unreadable) KILN_TRY(find_folded(f, c, p, &dir, err));
    if (c->photo[0]) {
        count_given(f, p, dir < f->n_given, c->photo);
        f->n_photos++;
        return kiln_camera_set_add_source(f->set, c->photo, "photo", err);
    }
    count_given(f, p, in_given, "");
    f->n_unreadable += f->last_unreadable;
    return count_missing(f, p, err);
}

/* Of the same shape but for rounding: copies at a half or a quarter are. */
static bool same_shape(double width, double height, double photo_width, double photo_height)
{
    return fabs(width * photo_height - height * photo_width) <=
           fmax(width + height, photo_width + photo_height);
}

void kiln_photo_orient(kiln_camera_file *f, kiln_camera *c, double width, double height)
{
    const uint32_t across = c->photo_width, down = c->photo_height;
    if (!c->photo[0] || f->orientation <= 1) return;
    if (f->orientation >= 5 && across != down && same_shape(width, height, down, across) &&
        !same_shape(width, height, across, down)) {
        c->photo_width = down;
        c->photo_height = across;
        f->n_turned++;
    } else
        f->n_untilted++;
    f->orientation = 1; /* counted once */
}

void kiln_photo_fit(kiln_camera_file *f, kiln_camera *c, double width, double height)
{
    kiln_photo_orient(f, c, width, height);
    if (!c->photo[0] || (c->photo_width == width && c->photo_height == height)) return;
    if (!same_shape(width, height, c->photo_width, c->photo_height) && f->n_stretched++ == 0)
        snprintf(f->first_stretched, sizeof f->first_stretched,
                 "'%.300s' is %u x %u pixels, its camera %.0f x %.0f", c->photo, c->photo_width,
                 c->photo_height, width, height);
    kiln_camera_scale(c, c->photo_width / width, c->photo_height / height, c->photo_width,
                      c->photo_height);
    f->n_scaled++;
}
