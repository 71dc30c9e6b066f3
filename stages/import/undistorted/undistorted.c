#include "stages/import/undistorted/undistorted.h"

#include "base/count.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/cameras/pinholes.h"
#include "stages/image/image.h"
#include "stages/import/dataset/findings.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- the folder ------------------------------------------------------------------------------ */
/* Nothing is there, or an empty folder, in whose place a rename puts another one. */
static bool is_free(const char *dir)
{
    DIR *d = opendir(dir);
    bool empty = true;
    if (!d) return errno == ENOENT;
    for (const struct dirent *e = readdir(d); e && empty; e = readdir(d))
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    (void)closedir(d);
    return empty;
}

/* DIR without slashes at its end, and the folder beside it that is written. */
static kiln_status name_folders(const char *given, char dir[KILN_PATH_MAX],
                                char temporary[KILN_PATH_MAX], kiln_error *err)
{
    int n = (int)strlen(given);
    while (n > 1 && given[n - 1] == '/') n--;
    if (n < 1 || snprintf(dir, KILN_PATH_MAX, "%.*s", n, given) >= KILN_PATH_MAX)
        return kiln_fail(err, KILN_E_USAGE,
                         "--write-undistorted needs the name of a folder, not '%.200s'", given);
    if (!is_free(dir))
        return kiln_fail(
            err, KILN_E_INPUT,
            "--write-undistorted: '%s' exists already and is not empty; name another folder", dir);
    return kiln_temporary_path(dir, temporary, err);
}

static kiln_status make_folder(const char *in, const char *name, char out[KILN_PATH_MAX],
                               kiln_error *err)
{
    KILN_TRY(kiln_path_join(out, KILN_PATH_MAX, in, name, err));
    if (mkdir(out, 0777) == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "cannot make the folder '%s': %s", out, strerror(errno));
}

/* ---- photos ---------------------------------------------------------------------------------- */
static kiln_status fill_undistorted_request(const kiln_camera *c, const char *images,
                                            uint32_t filter, kiln_undistorted_request *q,
                                            kiln_error *err)
{
    char name[KILN_CAMERA_NAME + 8];
    snprintf(name, sizeof name, "%s.png", c->name);
    snprintf(q->photo, sizeof q->photo, "%s", c->photo);
    KILN_TRY(kiln_path_join(q->out, sizeof q->out, images, name, err));
    if (c->distorted) KILN_TRY(kiln_pinhole_lens(c, &q->lens, err));
    q->pinhole = (kiln_pinhole){c->fx, c->fy, c->cx, c->cy, c->width, c->height};
    q->width = c->photo_width;
    q->height = c->photo_height;
    q->filter = filter;
    return KILN_OK;
}

/* The photo as read and spread, or warped from the one array to the other, or written. */
static uint64_t ram_of(const kiln_undistorted_request *q)
{
    enum { RGBA = 16, MASK = 1, BESIDE = 8 << 20 };
    const uint64_t photo = RGBA * (uint64_t)q->width * q->height;
    const kiln_undistort_args warp = {
        .lens = q->lens, .target = q->pinhole, .channels = 4, .filter = q->filter};
    const uint64_t warping =
        q->lens.width ? kiln_undistort_bytes(&warp) +
                            (RGBA + MASK) * (uint64_t)q->pinhole.width * q->pinhole.height
                      : 0;
    const kiln_picture_job job = {.format = KILN_PNG16,
                                  .width = q->lens.width ? q->pinhole.width : q->width,
                                  .height = q->lens.width ? q->pinhole.height : q->height,
                                  .step = 4,
                                  .channels = 4};
    return photo + kiln_max_u64(kiln_max_u64(photo, warping), kiln_picture_write_bytes(&job)) +
           BESIDE;
}

static kiln_status write_photos(kiln_run *r, const kiln_dataset *d, const char *images,
                                uint32_t filter, kiln_error *err)
{
    kiln_status st;
    kiln_unit *units = NULL;
    kiln_undistorted_request *requests = NULL;
    uint32_t n = 0;
    KILN_GO(KILN_ALLOC(&units, d->set.n_cameras, "units", err));
    KILN_GO(KILN_ALLOC(&requests, d->set.n_cameras, "units", err));
    for (uint32_t i = 0; i < d->set.n_cameras; i++, n++) {
        KILN_GO(fill_undistorted_request(&d->set.cameras[i], images, filter, &requests[n], err));
        snprintf(units[n].name, sizeof units[n].name, "photo %.140s", d->set.cameras[i].name);
        units[n].payload = &requests[n];
        units[n].payload_bytes = sizeof requests[n];
        units[n].cost = (uint64_t)requests[n].width * requests[n].height;
        units[n].ram = ram_of(&requests[n]);
        units[n].ram_thread = 1 << 20;
        units[n].volatile_result = true;
    }
    KILN_GO(kiln_run_units(r, "undistorting", units, n, err));
done:
    if (units) kiln_units_release(units, n);
    free(requests);
    free(units);
    return st;
}

/* ---- all of it ------------------------------------------------------------------------------- */
static kiln_status write_undistorted_files(kiln_run *r, const kiln_dataset *d,
                                           const char *temporary, uint32_t filter, kiln_error *err)
{
    char images[KILN_PATH_MAX], sparse[KILN_PATH_MAX];
    KILN_TRY(make_folder("", temporary, images, err));
    KILN_TRY(make_folder(temporary, "images", images, err));
    KILN_TRY(make_folder(temporary, "sparse", sparse, err));
    KILN_TRY(kiln_undistorted_model(d, sparse, err));
    return write_photos(r, d, images, filter, err);
}

/* Every camera has a photo, or the model would name pictures that are not there. */
static kiln_status check_photos(const kiln_dataset *d, kiln_error *err)
{
    if (d->set.n_cameras == 0)
        return kiln_fail(err, KILN_E_INPUT, "--write-undistorted: '%s' holds no cameras",
                         d->set.root);
    for (uint32_t i = 0; i < d->set.n_cameras; i++)
        if (!d->set.cameras[i].photo[0])
            return kiln_fail(err, KILN_E_INPUT, "--write-undistorted: camera '%.300s' has no photo",
                             d->set.cameras[i].name);
    return KILN_OK;
}

kiln_status kiln_undistorted_write(kiln_run *r, const kiln_dataset *d, const char *given,
                                   kiln_undistort_filter filter, kiln_error *err)
{
    char dir[KILN_PATH_MAX], temporary[KILN_PATH_MAX];
    KILN_TRY(check_photos(d, err));
    KILN_TRY(name_folders(given, dir, temporary, err));
    KILN_TRY(kiln_make_parents(temporary, err));
    kiln_leftover_folders_drop(dir);
    kiln_lenses_warn(d);
    kiln_status st = write_undistorted_files(r, d, temporary, filter, err);
    if (st == KILN_OK && rename(temporary, dir) != 0)
        st = kiln_fail(err, KILN_E_IO, "cannot rename '%s' to '%s': %s", temporary, dir,
                       strerror(errno));
    if (kiln_status_is_signal(st)) /* no unit of it is kept */
        st = kiln_fail(err, st, "%s; nothing of '%.1000s' was written", kiln_status_text(st), dir);
    if (st != KILN_OK)
        kiln_folder_drop(temporary);
    else
        kiln_say("%s (%u undistorted) and a COLMAP model of pinholes: %s",
                 KILN_COUNT(d->set.n_cameras, "photo"), d->set.as_is ? 0 : d->set.n_distorted, dir);
    return st;
}
