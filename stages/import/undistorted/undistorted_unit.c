/* One photo: read, warped with the rounding of image_undistorter, written. */
#include "stages/import/undistorted/undistorted.h"

#include "base/memory.h"
#include "stages/image/image.h"

#include <stdlib.h>
#include <string.h>

/* Grey with alpha becomes RGBA, as no writer has the former. */
static kiln_status spread(kiln_picture *p, kiln_error *err)
{
    const uint64_t n = (uint64_t)p->width * p->height;
    float *rgba;
    if (p->channels != 2) return KILN_OK;
    KILN_TRY(KILN_ALLOC_UNSET(&rgba, 4 * n, "photo", err));
    for (uint64_t i = 0; i < n; i++) {
        for (uint64_t c = 0; c < 3; c++) rgba[4 * i + c] = p->data[2 * i];
        rgba[4 * i + 3] = p->data[2 * i + 1];
    }
    free(p->data);
    p->data = rgba;
    p->channels = 4;
    return KILN_OK;
}

static kiln_status read_photo(const kiln_undistorted_request *q, kiln_picture *p, kiln_error *err)
{
    KILN_TRY(kiln_picture_read(q->photo, p, err));
    if (p->warning[0])
        return kiln_fail(err, KILN_E_INPUT, "'%s' is damaged: %s", q->photo, p->warning);
    if (kiln_picture_turns_to(p, q->width, q->height))
        KILN_TRY(kiln_picture_turn_to(p, q->width, q->height, err));
    else if (p->width != q->width || p->height != q->height)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' changed while it was read: it is %u x %u pixels, it was %u x %u",
                         q->photo, p->width, p->height, q->width, q->height);
    return spread(p, err);
}

static kiln_status warp(kiln_worker *w, const kiln_undistorted_request *q, kiln_picture *p,
                        kiln_error *err)
{
    kiln_status st;
    kiln_undistort_args a = {.lens = q->lens,
                             .target = q->pinhole,
                             .channels = p->channels,
                             .filter = q->filter,
                             .levels = p->depth_bits > 8 ? 65535 : 255,
                             .photo = p->data};
    const uint64_t pixels = (uint64_t)q->pinhole.width * q->pinhole.height;
    if (q->lens.width == 0) return KILN_OK;
    KILN_GO(KILN_ALLOC_UNSET(&a.out, pixels * p->channels, "undistorted photo", err));
    KILN_GO(KILN_ALLOC_UNSET(&a.mask, pixels, "mask of a photo", err));
    KILN_GO(KILN_WORK(w, undistort, &a, err));
    kiln_runner_trim(kiln_worker_runner(w));
    free(p->data);
    p->data = a.out;
    p->width = q->pinhole.width;
    p->height = q->pinhole.height;
    a.out = NULL;
done:
    free(a.out);
    free(a.mask);
    return st;
}

kiln_status kiln_undistorted_unit(kiln_worker *w, const kiln_undistorted_request *q,
                                  kiln_error *err)
{
    kiln_status st;
    kiln_picture p = {0};
    KILN_GO(read_photo(q, &p, err));
    KILN_GO(warp(w, q, &p, err));
    const kiln_picture_job job = {.path = q->out,
                                  .format = p.depth_bits > 8 ? KILN_PNG16 : KILN_PNG8,
                                  .width = p.width,
                                  .height = p.height,
                                  .step = p.channels,
                                  .channels = p.channels,
                                  .data = p.data,
                                  .threads = kiln_worker_threads(w)};
    KILN_GO(kiln_picture_write(&job, err));
done:
    kiln_picture_release(&p);
    return st;
}
