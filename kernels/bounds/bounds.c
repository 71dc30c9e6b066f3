/* bounds -- see the header. Scalar on purpose: compiled once, so that there is nothing that could
 * differ. */
#include "kernels/bounds/bounds.h"

#include "kernels/math/real.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static float reach_gaussian(float log_scale, float opacity_logit)
{
    const float peak = 255.0f * kiln_sigmoidf(opacity_logit);
    if (!(peak > 1.0f)) return 0.0f;
    /* 1 + 2^-20 */
    const float r = kiln_expf(log_scale) * sqrtf(2.0f * kiln_logf(peak)) * 1.00000095f;
    return r < FLT_MAX ? r : FLT_MAX;
}

static float clamp_to_finite(float v)
{
    return v < -FLT_MAX ? -FLT_MAX : v > FLT_MAX ? FLT_MAX : v;
}

/* Returns at least reach_gaussian any opacity, without an exponential: exp(x) = 2^(1.442695 x), the
 * root is at most sqrt(2 ln 255) < 2^1.736, and 2^k, which is convex, lies below its chords: those
 * are what a float's bits say when k is their exponent and its fraction their mantissa. NAN if the
 * scale is huge or no number. Most rows lie inside a box that others have made, whatever their
 * opacity is; without this, reach_gaussian was a tenth of all that kiln-chunk computes. */
static float reach_most(float log_scale)
{
    /* 0.03 more than the root, for what is rounded on the way */
    const float k = log_scale * 1.4427f + 1.77f;
    if (!(k < 126)) return NAN;
    const uint32_t bits = k < -125 ? 2u << 23 : (uint32_t)((k + 127) * 8388608.0f);
    float most;
    memcpy(&most, &bits, sizeof most);
    return most;
}

/* Does a row that reaches so far leave the box as it is? */
static bool is_inside(const kiln_bounds *b, const float mean[3], float most)
{
    bool inside = true;
    for (int a = 0; a < 3; a++)
        inside = inside && mean[a] - most >= b->reach_min[a] && mean[a] + most <= b->reach_max[a];
    return inside;
}

static void widen_box(kiln_bounds *b, const float mean[3])
{
    for (int a = 0; a < 3; a++) {
        if (mean[a] < b->box_min[a]) b->box_min[a] = mean[a];
        if (mean[a] > b->box_max[a]) b->box_max[a] = mean[a];
    }
}

static void widen_reach(kiln_bounds *b, const float mean[3], float reach)
{
    for (int a = 0; a < 3; a++) {
        const float from = clamp_to_finite(mean[a] - reach), to = clamp_to_finite(mean[a] + reach);
        if (from < b->reach_min[a]) b->reach_min[a] = from;
        if (to > b->reach_max[a]) b->reach_max[a] = to;
    }
}

static void begin_bounds(kiln_bounds *b)
{
    for (int a = 0; a < 3; a++) {
        b->box_min[a] = b->reach_min[a] = FLT_MAX;
        b->box_max[a] = b->reach_max[a] = -FLT_MAX;
    }
    b->max_log_scale = b->max_opacity_logit = -FLT_MAX;
}

static void bound_rows(uint64_t n, const float *means, const float *log_scales,
                       const float *opacity_logits, uint64_t first, uint64_t end, kiln_bounds *b)
{
    for (uint64_t i = first; i < end; i++) {
        const float mean[3] = {means[i], means[n + i], means[2 * n + i]};
        float longest = log_scales[i];
        for (int a = 1; a < 3; a++)
            longest = log_scales[(uint64_t)a * n + i] > longest ? log_scales[(uint64_t)a * n + i]
                                                                : longest;
        if (longest > b->max_log_scale) b->max_log_scale = longest;
        if (opacity_logits[i] > b->max_opacity_logit) b->max_opacity_logit = opacity_logits[i];
        widen_box(b, mean);
        if (!is_inside(b, mean, reach_most(longest)))
            widen_reach(b, mean, reach_gaussian(longest, opacity_logits[i]));
    }
}

/* By the comparisons of bound_rows: of 0 and -0 the one that came first stays. */
static void add_bounds(kiln_bounds *b, const kiln_bounds *more)
{
    for (int a = 0; a < 3; a++) {
        if (more->box_min[a] < b->box_min[a]) b->box_min[a] = more->box_min[a];
        if (more->box_max[a] > b->box_max[a]) b->box_max[a] = more->box_max[a];
        if (more->reach_min[a] < b->reach_min[a]) b->reach_min[a] = more->reach_min[a];
        if (more->reach_max[a] > b->reach_max[a]) b->reach_max[a] = more->reach_max[a];
    }
    if (more->max_log_scale > b->max_log_scale) b->max_log_scale = more->max_log_scale;
    if (more->max_opacity_logit > b->max_opacity_logit)
        b->max_opacity_logit = more->max_opacity_logit;
}

void kiln_chunk_bounds(unsigned threads, uint64_t n, const float *means, const float *log_scales,
                       const float *opacity_logits, kiln_bounds *out)
{
    enum { PARTS_MOST = 64, ROWS_LEAST = 4096 };
    kiln_bounds part[PARTS_MOST];
    const uint64_t worth = n / ROWS_LEAST + 1, may = threads < PARTS_MOST ? threads : PARTS_MOST;
    const unsigned parts = (unsigned)(worth < may ? worth : may > 0 ? may : 1);
    memset(out, 0, sizeof *out);
    if (n == 0) return;
#pragma omp parallel for num_threads(parts) if (parts > 1)
    for (unsigned p = 0; p < parts; p++) {
        begin_bounds(&part[p]);
        bound_rows(n, means, log_scales, opacity_logits, n * p / parts, n * (p + 1) / parts,
                   &part[p]);
    }
    *out = part[0];
    for (unsigned p = 1; p < parts; p++) add_bounds(out, &part[p]);
}
