#include "stages/render/distance.h"

#include "base/memory.h"
#include "stages/render/exposure.h"

#include <stdlib.h>
#include <string.h>

kiln_status kiln_distance(kiln_worker *w, const kiln_render_unit *u, kiln_compared a,
                          kiln_compared b, const uint8_t *mask, kiln_metrics *out, kiln_error *err)
{
    const uint32_t width = u->request.view.width;
    const kiln_metrics_args args = {.width = width,
                                    .height = u->request.view.height,
                                    .a = a.data,
                                    .b = b.data,
                                    .a_step = a.step,
                                    .b_step = b.step,
                                    .a_row = width,
                                    .b_row = width,
                                    .mask = mask,
                                    .out = out};
    return KILN_WORK(w, metrics, &args, err);
}

/* The columns of a mask from x0 on; NULL: there is none. */
static kiln_status right_of(const uint8_t *mask, uint32_t width, uint32_t height, uint32_t x0,
                            uint8_t **out, kiln_error *err)
{
    const uint32_t n = width - x0;
    *out = NULL;
    if (!mask) return KILN_OK;
    KILN_TRY(KILN_ALLOC_UNSET(out, (uint64_t)n * height, "mask", err));
    for (uint32_t y = 0; y < height; y++)
        memcpy(*out + (size_t)y * n, mask + (size_t)y * width + x0, n);
    return KILN_OK;
}

/* Cut out, and not masked: INRIA's render.py cuts, and SSIM has its border there. */
static kiln_status compare_right_half(kiln_worker *w, const kiln_render_unit *u,
                                      kiln_compared picture, const kiln_photo *photo,
                                      kiln_metrics *out, kiln_error *err)
{
    const uint32_t width = u->request.view.width, height = u->request.view.height, x0 = width / 2;
    uint8_t *mask;
    KILN_TRY(right_of(photo->mask, width, height, x0, &mask, err));
    const kiln_metrics_args a = {.width = width - x0,
                                 .height = height,
                                 .a = picture.data + (size_t)picture.step * x0,
                                 .b = photo->rgb.data + (size_t)3 * x0,
                                 .a_step = picture.step,
                                 .b_step = 3,
                                 .a_row = width,
                                 .b_row = width,
                                 .mask = mask,
                                 .out = out};
    const kiln_status st = KILN_WORK(w, metrics, &a, err);
    free(mask);
    return st;
}

/* As the photo was exposed. */
static kiln_status compare_exposed(kiln_worker *w, const kiln_render_unit *u, const float *rgba,
                                   const kiln_photo *photo, kiln_metrics *out, kiln_error *err)
{
    const uint64_t pixels = (uint64_t)u->request.view.width * u->request.view.height;
    float *exposed = NULL;
    const float *picture = rgba;
    if (u->exposure == KILN_EXPOSURE_COMPARE) {
        KILN_TRY(
            KILN_ALLOC_UNSET(&exposed, 3 * pixels, "the picture as its photo was exposed", err));
        kiln_exposure_apply(u->exposure_matrix, rgba, pixels, exposed, 3);
        picture = exposed;
    }
    const kiln_compared a = {picture, exposed ? 3 : 4}, b = {photo->rgb.data, 3};
    const kiln_status st = u->right_half ? compare_right_half(w, u, a, photo, out, err)
                                         : kiln_distance(w, u, a, b, photo->mask, out, err);
    free(exposed);
    return st;
}

kiln_status kiln_distance_photo(kiln_worker *w, const kiln_render_unit *u, const float *rgba,
                                kiln_metrics *out, kiln_outside *outside,
                                char damage[KILN_PHOTO_DAMAGE], kiln_error *err)
{
    kiln_status st;
    kiln_photo photo = {0};
    if (u->exposure_lost) {
        (void)snprintf(damage, KILN_PHOTO_DAMAGE, "its exposure is not known");
        return KILN_OK;
    }
    KILN_GO(kiln_photo_read(u, &photo, err));
    memcpy(damage, photo.damage, sizeof photo.damage);
    if (photo.damage[0]) goto done;
    if (u->lens.width > 0) KILN_GO(kiln_photo_undistort(w, u, &photo, err));
    memcpy(damage, photo.damage, sizeof photo.damage);
    if (photo.damage[0]) goto done;
    KILN_GO(compare_exposed(w, u, rgba, &photo, out, err));
    if (!photo.cut_out && u->exposure == KILN_EXPOSURE_OFF)
        *outside = kiln_outside_look(rgba, photo.rgb.data, photo.mask, u->request.view.width,
                                     u->request.view.height);
done:
    kiln_photo_release(&photo);
    return st;
}
