/* webp_write -- a picture as lossless WebP of 8 bits: the pixels of the PNG, in a smaller file. */
#include "stages/image/image_internal.h"
#include "stages/image/webp_encode.h"

#include <errno.h>
#include <stdlib.h>

static uint32_t code_of(float v)
{
    return v > 0 ? v < 1 ? (uint32_t)(v * 255 + 0.5f) : 255 : 0; /* 0 of NaN */
}

static void pack_pixels(const kiln_picture_job *job, uint32_t *argb)
{
    const uint64_t n = (uint64_t)job->width * job->height;
    for (uint64_t i = 0; i < n; i++) {
        const float *from = job->data + i * job->step;
        argb[i] = 0xff000000u | code_of(from[0]) << 16 | code_of(from[1]) << 8 | code_of(from[2]);
    }
}

kiln_status kiln_webp_write(const kiln_picture_job *job, FILE *f, kiln_error *err)
{
    uint32_t *argb;
    kiln_buffer file = {0};
    KILN_TRY(kiln_alloc_unset((void **)&argb, (uint64_t)job->width * job->height, sizeof *argb,
                              "the pixels of a WebP", err));
    pack_pixels(job, argb);
    kiln_status st = kiln_webp_encode(argb, job->width, job->height, &file, err);
    if (st == KILN_OK && fwrite(file.data, 1, file.size, f) != file.size)
        st = kiln_file_write_failed(job->path, errno, err);
    kiln_buffer_release(&file);
    free(argb);
    return st;
}

uint64_t kiln_webp_write_bytes(const kiln_picture_job *job)
{
    return kiln_webp_encode_ram(job->width, job->height) +
           sizeof(uint32_t) * (uint64_t)job->width * job->height;
}
