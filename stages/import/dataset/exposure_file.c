/* exposure_file -- see the header. The file is a by-product of a training, so that a bad one costs
 * its use, and not the scene. */
#include "stages/import/dataset/exposure_file.h"

#include "base/count.h"
#include "base/file.h"
#include "base/memory.h"
#include "stages/cameras/exposures.h"

#include <stdio.h>
#include <stdlib.h>

static kiln_status report_exposures(kiln_dataset *d, const char *path, const kiln_exposures *e,
                                    kiln_error *err)
{
    const kiln_exposure **of = NULL;
    char what[160];
    uint32_t n = 0, n_changing = 0;
    KILN_TRY(KILN_ALLOC(&of, d->set.n_cameras, "exposures", err));
    kiln_status st = kiln_exposures_match(e, d->set.cameras, d->set.n_cameras, of, err);
    for (uint32_t i = 0; i < d->set.n_cameras && st == KILN_OK; i++) {
        n += of[i] != NULL;
        n_changing += of[i] && !kiln_exposure_is_identity(of[i]->m);
    }
    free(of);
    KILN_TRY(st);
    snprintf(what, sizeof what,
             "of %u of %s; %u change the picture before it is compared with its photo", n,
             KILN_COUNT(d->set.n_cameras, "camera"), n_changing);
    return kiln_camera_set_add_finding(&d->set, path, "exposure", n > 0, what,
                                       n ? "" : "none of its images has the name of a camera", err);
}

static bool exposure_file_beside(const char *cameras, char path[KILN_PATH_MAX])
{
    char real[KILN_PATH_MAX];
    if (!cameras || !realpath(cameras, real)) return false;
    const int n = snprintf(path, KILN_PATH_MAX, "%.*s%s", (int)(kiln_path_base(real) - real), real,
                           KILN_EXPOSURE_FILE);
    return n > 0 && n < KILN_PATH_MAX && kiln_is_file(path);
}

kiln_status kiln_exposures_find(kiln_dataset *d, const char *cameras, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    kiln_exposures e;
    kiln_error why = {0};
    if (!d->reader || d->rows_kind != KILN_SCENE_SPLATS || d->set.n_cameras == 0) return KILN_OK;
    KILN_TRY(kiln_path_join(path, sizeof path, d->set.root, KILN_EXPOSURE_FILE, err));
    if (!kiln_is_file(path) && !exposure_file_beside(cameras, path)) return KILN_OK;
    kiln_status st = kiln_exposures_read(path, &e, &why);
    if (st == KILN_OK) {
        st = report_exposures(d, path, &e, err);
        if (st == KILN_OK) st = kiln_camera_set_add_source(&d->set, path, KILN_EXPOSURE_ROLE, err);
    } else if (st == KILN_E_INPUT) {
        kiln_camera_set_note_meaning(&d->set, "exposures are not used: %s", why.msg);
        st = kiln_camera_set_add_finding(&d->set, path, "exposure", false, "unreadable", why.msg,
                                         err);
    } else {
        st = kiln_fail(err, st, "%s", why.msg);
    }
    kiln_exposures_release(&e);
    return st;
}
