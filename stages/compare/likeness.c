/* Reads two pictures and measures how alike they are.
 *
 * Colours are clamped to [0,1] for PSNR and SSIM, as kiln-render's own metrics are; the means are
 * of the values as they stand, so that an unclamped .npy can be held against a renderer's figures.
 * Alpha enters psnr_rgba and the means alone. */
#include "stages/compare/compare.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/image/image.h"

#include <math.h>
#include <stdlib.h>

/* A part of a picture of 3 or 4 channels. */
typedef struct {
    const float *data; /* first pixel of the part */
    uint32_t step, row;
} view;

/* Grey becomes red, green and blue; alpha stays behind them. */
static kiln_status spread_grey(kiln_picture *p, kiln_error *err)
{
    const uint32_t from = p->channels, to = from + 2;
    const size_t n = (size_t)p->width * p->height;
    float *data;
    if (from > 2) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&data, n * to, "a grey picture in colour", err));
    for (size_t i = 0; i < n; i++) {
        data[i * to] = data[i * to + 1] = data[i * to + 2] = p->data[i * from];
        if (from == 2) data[i * to + 3] = p->data[i * from + 1];
    }
    free(p->data);
    p->data = data;
    p->channels = to;
    return KILN_OK;
}

static kiln_status read_picture(const char *path, kiln_picture *p, kiln_error *err)
{
    KILN_TRY(kiln_picture_read(path, p, err));
    if (p->warning[0])
        kiln_warn("'%s' is damaged, and the decoder made up some of its pixels: %s", path,
                  p->warning);
    for (size_t i = 0; i < (size_t)p->width * p->height * p->channels; i++)
        if (!isfinite(p->data[i]))
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s' holds a value that is not finite at pixel %zu,%zu", path,
                             i / p->channels % p->width, i / p->channels / p->width);
    return spread_grey(p, err);
}

/* The part of B that lies against the part of A: all of it, or the same part when B is as large as
 * A. */
static kiln_status place_rect_in_b(const kiln_compare_rect *part, const char *path,
                                   const kiln_picture *a, const kiln_picture *b,
                                   kiln_compare_rect *in_b, kiln_error *err)
{
    if ((uint64_t)part->x + part->width > a->width ||
        (uint64_t)part->y + part->height > a->height || !part->width || !part->height)
        return kiln_fail(
            err, KILN_E_USAGE,
            "the rectangle %u,%u,%u,%u does not lie inside A, which has %u x %u pixels", part->x,
            part->y, part->width, part->height, a->width, a->height);
    *in_b = *part;
    if (b->width == a->width && b->height == a->height) return KILN_OK;
    in_b->x = in_b->y = 0;
    if (b->width == part->width && b->height == part->height) return KILN_OK;
    return kiln_fail(
        err, KILN_E_INPUT,
        "'%s' has %u x %u pixels, but it is compared with %u x %u; choose a part of A with --rect",
        path, b->width, b->height, part->width, part->height);
}

static view view_of(const kiln_picture *p, const kiln_compare_rect *part)
{
    return (view){p->data + ((size_t)part->y * p->width + part->x) * p->channels, p->channels,
                  p->width};
}

static void add_means(const view *v, const kiln_compare_rect *part, double mean[4])
{
    const double n = (double)part->width * part->height;
    for (uint32_t c = 0; c < v->step; c++) {
        double sum = 0;
        for (uint32_t y = 0; y < part->height; y++)
            for (uint32_t x = 0; x < part->width; x++)
                sum += (double)v->data[((size_t)y * v->row + x) * v->step + c];
        mean[c] = sum / n;
    }
}

static double alpha_mse(const view *a, const view *b, const kiln_compare_rect *part)
{
    double sum = 0;
    for (uint32_t y = 0; y < part->height; y++)
        for (uint32_t x = 0; x < part->width; x++) {
            const double d =
                kiln_clamp_f64((double)a->data[((size_t)y * a->row + x) * 4 + 3], 0, 1) -
                kiln_clamp_f64((double)b->data[((size_t)y * b->row + x) * 4 + 3], 0, 1);
            sum += d * d;
        }
    return sum / ((double)part->width * part->height);
}

static kiln_status measure_likeness(const view *a, const view *b, const kiln_compare_rect *part,
                                    unsigned threads, kiln_comparison *out, kiln_error *err)
{
    const kiln_exec x = {.device = -1, .threads = threads};
    const kiln_metrics_args args = {.width = part->width,
                                    .height = part->height,
                                    .a = a->data,
                                    .b = b->data,
                                    .a_step = a->step,
                                    .b_step = b->step,
                                    .a_row = a->row,
                                    .b_row = b->row,
                                    .out = &out->colour};
    size_t bytes = 0;
    unsigned char *work = NULL;
    KILN_TRY(kiln_ops_cpu()->metrics(&x, &args, NULL, &bytes, err));
    KILN_TRY(KILN_ALLOC(&work, bytes, "workspace of the metrics", err));
    const kiln_status st = kiln_ops_cpu()->metrics(&x, &args, work, &bytes, err);
    free(work);
    if (st != KILN_OK) return st;
    out->width = part->width;
    out->height = part->height;
    out->n_a = a->step;
    out->n_b = b->step;
    add_means(a, part, out->mean_a);
    add_means(b, part, out->mean_b);
    out->has_alpha = a->step == 4 && b->step == 4;
    if (out->has_alpha)
        out->psnr_rgba = -10 * log10((3 * out->colour.mse + alpha_mse(a, b, part)) / 4);
    return KILN_OK;
}

kiln_status kiln_compare_pictures(const char *path_a, const char *path_b,
                                  const kiln_compare_rect *rect, unsigned threads,
                                  kiln_comparison *out, kiln_error *err)
{
    kiln_picture a = {0}, b = {0};
    kiln_compare_rect part, in_b;
    kiln_status st = KILN_OK;
    *out = (kiln_comparison){0};
    KILN_GO(read_picture(path_a, &a, err));
    KILN_GO(read_picture(path_b, &b, err));
    part = rect ? *rect : (kiln_compare_rect){0, 0, a.width, a.height};
    KILN_GO(place_rect_in_b(&part, path_b, &a, &b, &in_b, err));
    const view of_a = view_of(&a, &part), of_b = view_of(&b, &in_b);
    KILN_GO(measure_likeness(&of_a, &of_b, &part, threads, out, err));
done:
    kiln_picture_release(&a);
    kiln_picture_release(&b);
    return st;
}
