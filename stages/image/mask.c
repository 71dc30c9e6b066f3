/* mask -- which pixels of a photo count, by a picture that is black where they do not. Trainers
 * agree on black (COLMAP: 0, nerfstudio: not true), so that every other value counts, also the grey
 * of a scaled mask's edges. */
#include "stages/image/image.h"

#include "base/memory.h"

#include <stdlib.h>

static uint8_t mask_value(const kiln_picture *p, uint64_t pixel)
{
    const uint32_t colours = p->channels < 3 ? 1 : 3;
    const float *v = p->data + pixel * p->channels;
    bool any = false;
    for (uint32_t c = 0; c < colours; c++) any |= v[c] > 0.0f;
    return any ? 255 : 0;
}

kiln_status kiln_mask_read(const char *path, uint32_t width, uint32_t height, uint8_t **out,
                           kiln_error *err)
{
    kiln_picture p = {0};
    *out = NULL;
    KILN_TRY(kiln_picture_read(path, &p, err));
    kiln_status st = KILN_ALLOC_UNSET(out, (uint64_t)width * height, "mask", err);
    for (uint64_t y = 0; st == KILN_OK && y < height; y++)
        for (uint64_t x = 0; x < width; x++) {
            const uint64_t from_x = (2 * x + 1) * p.width / (2 * (uint64_t)width);
            const uint64_t from_y = (2 * y + 1) * p.height / (2 * (uint64_t)height);
            (*out)[y * width + x] = mask_value(&p, from_y * p.width + from_x);
        }
    kiln_picture_release(&p);
    return st;
}
