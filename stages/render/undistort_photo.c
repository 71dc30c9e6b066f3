/* undistort_photo -- warps the photo of a camera with a lens to the pinhole as which the camera is
 * drawn. */
#include "stages/render/photo.h"

#include <stdio.h>
#include <stdlib.h>

kiln_undistort_args kiln_photo_undistortion(const kiln_render_unit *u)
{
    return (kiln_undistort_args){
        .lens = u->lens, .target = u->pinhole, .channels = 3, .filter = u->undistort_filter};
}

/* A mask without a hole is none: what does not know masks works then, too. */
static void drop_full(kiln_photo *p, uint64_t pixels, const char *photo)
{
    uint64_t counting = 0;
    for (uint64_t i = 0; i < pixels; i++) counting += p->mask[i] != 0;
    if (counting == 0)
        (void)snprintf(p->damage, sizeof p->damage,
                       "'%.700s' shows no part of what its pinhole camera sees", photo);
    if (counting < pixels) return;
    free(p->mask);
    p->mask = NULL;
}

kiln_status kiln_photo_undistort(kiln_worker *w, const kiln_render_unit *u, kiln_photo *p,
                                 kiln_error *err)
{
    kiln_status st;
    kiln_undistort_args a = kiln_photo_undistortion(u);
    const uint64_t pixels = (uint64_t)a.target.width * a.target.height;
    a.photo = p->rgb.data;
    a.photo_mask = p->mask;
    KILN_GO(KILN_ALLOC_UNSET(&a.out, 3 * pixels, "undistorted photo", err));
    KILN_GO(KILN_ALLOC_UNSET(&a.mask, pixels, "mask of a photo", err));
    KILN_GO(KILN_WORK(w, undistort, &a, err));
    kiln_runner_trim(kiln_worker_runner(w)); /* two pictures of the photo's size */
    free(p->rgb.data);
    free(p->mask);
    p->rgb.data = a.out;
    p->rgb.width = a.target.width;
    p->rgb.height = a.target.height;
    p->mask = a.mask;
    drop_full(p, pixels, u->photo);
    return KILN_OK;
done:
    free(a.out);
    free(a.mask);
    return st;
}
