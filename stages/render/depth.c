/* depth -- see depth.h. */
#include "stages/render/depth.h"

#include "base/memory.h"
#include "stages/image/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKED = 1 << 16 }; /* pixels that say the range, more or less */

uint64_t kiln_depth_bytes(uint64_t pixels, bool colours)
{
    return (colours ? 3 : 1) * sizeof(float) * pixels + 2 * LOOKED * sizeof(float);
}

static int by_size(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

kiln_status kiln_depth_range(const float *depth, uint64_t n, float *near_m, float *far_m,
                             kiln_error *err)
{
    enum { OUTSIDE = 100 }; /* one of so many is nearer, and one farther */
    float *seen;
    uint64_t used = 0, step = 1;
    while (n / step > LOOKED) step++;
    *near_m = *far_m = 0;
    KILN_TRY(KILN_ALLOC_UNSET(&seen, n / step + 1, "depths", err));
    for (uint64_t i = 0; i < n; i += step)
        if (depth[i] > 0) seen[used++] = depth[i];
    if (used > 0) {
        qsort(seen, used, sizeof *seen, by_size);
        *near_m = seen[used / OUTSIDE];
        *far_m = seen[used - 1 - used / OUTSIDE];
    }
    free(seen);
    return KILN_OK;
}

void kiln_depth_colour(float depth, float near_m, float far_m, float rgb[3])
{
    static const float turbo[3][6] = {
        {0.13572138f, 4.61539260f, -42.66032258f, 132.13108234f, -152.94239396f, 59.28637943f},
        {0.09140261f, 2.19418839f, 4.84296658f, -14.18503333f, 4.27729857f, 2.82956604f},
        {0.10667330f, 12.64194608f, -60.58204836f, 110.36276771f, -89.90310912f, 27.34824973f}};
    memset(rgb, 0, 3 * sizeof *rgb);
    if (!(depth > 0) || !(near_m > 0)) return;
    const float low = 1 / far_m, high = 1 / near_m,
                at = high > low ? (1 / depth - low) / (high - low) : 0.5f;
    const float first = 0.07f; /* below it Turbo is nearly black, which is nothing's colour */
    const float x = first + (1 - first) * (at > 0 ? (at < 1 ? at : 1) : 0);
    for (int c = 0; c < 3; c++) {
        float v = turbo[c][5];
        for (int k = 4; k >= 0; k--) v = v * x + turbo[c][k];
        rgb[c] = v > 0 ? (v < 1 ? v : 1) : 0;
    }
}

static kiln_status write_png(const kiln_depth_job *j, kiln_picture_format format, uint32_t channels,
                             const float *data, const char *text, kiln_error *err)
{
    const kiln_picture_text texts[] = {KILN_PICTURE_SOFTWARE, {"Unit", text}};
    const kiln_picture_job job = {.path = j->path,
                                  .format = format,
                                  .width = j->width,
                                  .height = j->height,
                                  .step = channels,
                                  .channels = channels,
                                  .data = data,
                                  .text = texts,
                                  .n_text = text ? 2 : 1,
                                  .threads = j->threads,
                                  .seen = j->seen};
    return kiln_picture_write(&job, err);
}

static kiln_status write_colours(const kiln_depth_job *j, kiln_error *err)
{
    const uint64_t pixels = (uint64_t)j->width * j->height;
    float *rgb, near_m, far_m;
    char text[160];
    KILN_TRY(kiln_depth_range(j->depth, pixels, &near_m, &far_m, err));
    KILN_TRY(KILN_ALLOC_UNSET(&rgb, 3 * pixels, "colours of depth", err));
    for (uint64_t i = 0; i < pixels; i++)
        kiln_depth_colour(j->depth[i], near_m, far_m, rgb + 3 * i);
    (void)snprintf(
        text, sizeof text,
        "turbo, even in 1 / expected depth: red %.9g, blue %.9g scene units, black: nothing",
        (double)near_m, (double)far_m);
    const kiln_status st = write_png(j, KILN_PNG8, 3, rgb, text, err);
    free(rgb);
    return st;
}

static kiln_status write_numbers(const kiln_depth_job *j, double *step, kiln_error *err)
{
    const uint64_t pixels = (uint64_t)j->width * j->height;
    float far_m = 0, *scaled;
    char text[96];
    KILN_TRY(KILN_ALLOC_UNSET(&scaled, pixels, "depth", err));
    for (uint64_t i = 0; i < pixels; i++)
        if (j->depth[i] > far_m) far_m = j->depth[i];
    for (uint64_t i = 0; i < pixels; i++) scaled[i] = far_m > 0 ? j->depth[i] / far_m : 0.0f;
    *step = (double)far_m / 65535;
    (void)snprintf(text, sizeof text, "expected depth in scene units = value * %.9g", *step);
    const kiln_status st = write_png(j, KILN_PNG16, 1, scaled, text, err);
    free(scaled);
    return st;
}

kiln_status kiln_depth_write(const kiln_depth_job *job, double *step, kiln_error *err)
{
    *step = 0;
    if (job->colours) return write_colours(job, err);
    if (kiln_picture_format_of(job->path) == KILN_NPY)
        return write_png(job, KILN_NPY, 1, job->depth, NULL, err);
    return write_numbers(job, step, err);
}
