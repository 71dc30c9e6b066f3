/* thumbnail -- see the header. */
#include "stages/report/thumbnail.h"

#include <math.h>
#include <stdlib.h>

void kiln_thumbnail_size(uint32_t width, uint32_t height, uint32_t *out_width, uint32_t *out_height)
{
    const uint32_t longer = width > height ? width : height;
    const double scale = longer > KILN_THUMBNAIL_SIDE ? (double)KILN_THUMBNAIL_SIDE / longer : 1;
    *out_width = (uint32_t)fmax(1, floor(width * scale + 0.5));
    *out_height = (uint32_t)fmax(1, floor(height * scale + 0.5));
}

void kiln_heat_colour(float share, float rgb[3])
{
    static const float stops[][3] = {
        {0.02f, 0.02f, 0.05f}, {0.34f, 0.06f, 0.43f}, {0.78f, 0.23f, 0.29f}, {0.98f, 0.58f, 0.15f}, {1, 0.98f, 0.80f}};
    enum { LAST = sizeof stops / sizeof *stops - 1 };
    const float at = share > 0 ? share < 1 ? share * LAST : LAST : 0; /* 0 of NaN */
    const int i = at >= LAST ? LAST - 1 : (int)at;
    for (int c = 0; c < 3; c++) rgb[c] = stops[i][c] + (at - (float)i) * (stops[i + 1][c] - stops[i][c]);
}

static void add_pixel(const kiln_picture *p, uint64_t pixel, const double background[3], float sum[3])
{
    const float *v = p->data + pixel * p->channels;
    const float alpha = p->channels == 2 || p->channels == 4 ? v[p->channels - 1] : 1;
    for (int c = 0; c < 3; c++) sum[c] += v[p->channels < 3 ? 0 : c] * alpha + (float)background[c] * (1 - alpha);
}

/* Whole pixels of the picture: those whose place falls into the pixel of the thumbnail, at least one. */
static void take_mean(const kiln_picture *p, const double background[3], const kiln_thumbnail *t, uint32_t x, uint32_t y)
{
    const uint64_t x0 = (uint64_t)x * p->width / t->width, y0 = (uint64_t)y * p->height / t->height;
    uint64_t x1 = (uint64_t)(x + 1) * p->width / t->width, y1 = (uint64_t)(y + 1) * p->height / t->height;
    float sum[3] = {0}, *to = t->rgb + 3 * ((uint64_t)y * t->width + x);
    x1 = x1 > x0 ? x1 : x0 + 1;
    y1 = y1 > y0 ? y1 : y0 + 1;
    for (uint64_t j = y0; j < y1; j++)
        for (uint64_t i = x0; i < x1; i++) add_pixel(p, j * p->width + i, background, sum);
    for (int c = 0; c < 3; c++) to[c] = sum[c] / (float)((x1 - x0) * (y1 - y0));
}

kiln_status kiln_thumbnail_make(const kiln_picture *p, const double background[3], kiln_thumbnail *out, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC_UNSET(&out->rgb, 3 * (uint64_t)out->width * out->height, "a small picture", err));
    for (uint32_t y = 0; y < out->height; y++)
        for (uint32_t x = 0; x < out->width; x++) take_mean(p, background, out, x, y);
    return KILN_OK;
}

kiln_status kiln_thumbnail_difference(const kiln_thumbnail *a, const kiln_thumbnail *b, kiln_thumbnail *out, kiln_error *err)
{
    const uint64_t n = (uint64_t)a->width * a->height;
    *out = (kiln_thumbnail){.width = a->width, .height = a->height};
    KILN_TRY(KILN_ALLOC_UNSET(&out->rgb, 3 * n, "a difference", err));
    for (uint64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int c = 0; c < 3; c++) sum += fabsf(fminf(fmaxf(a->rgb[3 * i + c], 0), 1) - fminf(fmaxf(b->rgb[3 * i + c], 0), 1));
        kiln_heat_colour(sum / 3 * KILN_DIFFERENCE_GAIN, out->rgb + 3 * i);
    }
    return KILN_OK;
}

void kiln_thumbnail_release(kiln_thumbnail *t)
{
    free(t->rgb);
    t->rgb = NULL;
}
