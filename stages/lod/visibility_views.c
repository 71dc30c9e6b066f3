/* Which cameras say what is seen. */
#include "stages/lod/visibility.h"

#include "base/memory.h"
#include "stages/frame/camera_path.h"

#include <stdlib.h>
#include <string.h>

enum { SIDE_MOST = 1600, SIDE_LEAST = 200 };

static bool is_chosen(const kiln_camera *c, bool train)
{
    return !train || strcmp(c->split, "train") == 0;
}

static uint32_t count_chosen(const kiln_camera *cameras, uint32_t n, bool train)
{
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < n; i++) chosen += is_chosen(&cameras[i], train);
    return chosen;
}

/* The same view at half the size, about the one at which levels stand in for the scene; not below
 * SIDE_LEAST nor above SIDE_MOST.
 */
static void reduce(kiln_camera *c)
{
    const uint32_t longest = c->width > c->height ? c->width : c->height;
    if (longest <= SIDE_LEAST) return;
    const double half = 0.5 * longest, least = half > SIDE_LEAST ? half : SIDE_LEAST;
    const double factor = (least < SIDE_MOST ? least : SIDE_MOST) / longest;
    kiln_camera_rescale(c, kiln_camera_scaled(c->width, factor),
                        kiln_camera_scaled(c->height, factor));
}

static kiln_status make_view(const kiln_scene *scene, const kiln_camera *camera,
                             const kiln_visibility_options *o, kiln_view_request *out,
                             kiln_error *err)
{
    kiln_camera *smaller;
    KILN_TRY(KILN_ALLOC(&smaller, 1, "a camera", err));
    *smaller = *camera;
    reduce(smaller);
    const kiln_status st = kiln_view_request_init(out, &o->view, scene, smaller, err);
    free(smaller);
    return st;
}

kiln_status kiln_visibility_views(const kiln_scene *scene, const kiln_camera *cameras,
                                  uint32_t n_cameras, const kiln_visibility_options *o,
                                  kiln_view_request **out, uint32_t *n, kiln_error *err)
{
    const bool train = count_chosen(cameras, n_cameras, true) > 0;
    const uint32_t chosen = count_chosen(cameras, n_cameras, train),
                   most = chosen < o->views ? chosen : o->views;
    *out = NULL;
    *n = 0;
    if (most == 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC(out, most, "cameras", err));
    /* the at-th of those that may be chosen */
    for (uint32_t i = 0, at = 0; i < n_cameras && *n < most; i++) {
        if (!is_chosen(&cameras[i], train)) continue;
        if (at++ != (uint64_t)*n * chosen / most) continue;
        KILN_TRY(make_view(scene, &cameras[i], o, &(*out)[*n], err));
        ++*n;
    }
    return KILN_OK;
}
