#include "stages/render/distance.h"

#include <string.h>

kiln_status kiln_distance(kiln_worker *w, const kiln_render_unit *u, const float *rgba, const float *other, uint32_t step,
                          const uint8_t *mask, kiln_metrics *out, kiln_error *err)
{
    const uint32_t width = u->request.view.width;
    const kiln_metrics_args a = {.width = width,
                                 .height = u->request.view.height,
                                 .a = rgba,
                                 .b = other,
                                 .a_step = 4,
                                 .b_step = step,
                                 .a_row = width,
                                 .b_row = width,
                                 .mask = mask,
                                 .out = out};
    return KILN_WORK(w, metrics, &a, err);
}

kiln_status kiln_distance_photo(kiln_worker *w, const kiln_render_unit *u, const float *rgba, kiln_metrics *out,
                                kiln_outside *outside, char damage[KILN_PHOTO_DAMAGE], kiln_error *err)
{
    kiln_status st;
    kiln_photo photo = {0};
    KILN_GO(kiln_photo_read(u, &photo, err));
    memcpy(damage, photo.damage, sizeof photo.damage);
    if (photo.damage[0]) goto done;
    if (u->lens.width > 0) KILN_GO(kiln_photo_undistort(w, u, &photo, err));
    memcpy(damage, photo.damage, sizeof photo.damage);
    if (photo.damage[0]) goto done;
    KILN_GO(kiln_distance(w, u, rgba, photo.rgb.data, 3, photo.mask, out, err));
    if (!photo.cut_out)
        *outside = kiln_outside_look(rgba, photo.rgb.data, photo.mask, u->request.view.width, u->request.view.height);
done:
    kiln_photo_release(&photo);
    return st;
}
