#include "stages/render/distance.h"

#include <stdio.h>
#include <stdlib.h>

kiln_status kiln_distance(kiln_worker *w, const kiln_render_unit *u, const float *rgba, const float *other, uint32_t step,
                          kiln_metrics *out, kiln_error *err)
{
    const uint32_t width = u->shot.view.width;
    const kiln_metrics_args a = {.width = width,
                                 .height = u->shot.view.height,
                                 .a = rgba,
                                 .b = other,
                                 .a_step = 4,
                                 .b_step = step,
                                 .a_row = width,
                                 .b_row = width,
                                 .out = out};
    return KILN_WORK(w, metrics, &a, err);
}

/* A photo with alpha is put over the background, as the picture is. */
static kiln_status compose_photo(kiln_picture *photo, const double background[3], kiln_error *err)
{
    uint64_t pixels = (uint64_t)photo->width * photo->height;
    uint32_t n = photo->channels;
    bool grey = n < 3, has_alpha = n == 2 || n == 4;
    float *rgb;
    KILN_TRY(KILN_ALLOC_UNSET(&rgb, 3 * pixels, "photo", err));
    for (uint64_t i = 0; i < pixels; i++) {
        const float *v = photo->data + i * n;
        float alpha = has_alpha ? v[n - 1] : 1.0f;
        for (int c = 0; c < 3; c++) {
            float colour = grey ? v[0] : v[c];
            rgb[3 * i + c] = colour * alpha + (float)background[c] * (1.0f - alpha);
        }
    }
    free(photo->data);
    photo->data = rgb;
    photo->channels = 3;
    return KILN_OK;
}

kiln_status kiln_distance_photo(kiln_worker *w, const kiln_render_unit *u, const float *rgba, kiln_metrics *out, char *note,
                                size_t note_size, kiln_error *err)
{
    kiln_status st;
    kiln_picture photo = {0};
    const kiln_view *v = &u->shot.view;
    KILN_GO(kiln_picture_read(u->photo, &photo, err));
    if (u->photo_file.size) KILN_GO(kiln_file_unchanged(u->photo, &u->photo_file, err));
    if (photo.width != v->width || photo.height != v->height) {
        snprintf(note, note_size, "its photo is %u x %u pixels, the camera %u x %u: not measured", photo.width, photo.height,
                 v->width, v->height);
        goto done;
    }
    KILN_GO(compose_photo(&photo, u->background, err));
    KILN_GO(kiln_distance(w, u, rgba, photo.data, 3, out, err));
done:
    kiln_picture_release(&photo);
    return st;
}
