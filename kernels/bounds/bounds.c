/* bounds -- see the header. Scalar on purpose: compiled once, so that there is nothing that could differ. */
#include "kernels/bounds/bounds.h"

#include "kernels/math/real.h"

#include <float.h>
#include <math.h>
#include <string.h>

static float reach_of(float log_scale, float opacity_logit)
{
    const float peak = 255.0f * kiln_sigmoidf(opacity_logit);
    if (!(peak > 1.0f)) return 0.0f;
    const float r = kiln_expf(log_scale) * sqrtf(2.0f * kiln_logf(peak)) * 1.00000095f; /* 1 + 2^-20 */
    return r < FLT_MAX ? r : FLT_MAX;
}

static float cut(float v) { return v < -FLT_MAX ? -FLT_MAX : v > FLT_MAX ? FLT_MAX : v; }

static void widen(kiln_bounds *b, const float mean[3], float reach)
{
    for (int a = 0; a < 3; a++) {
        const float from = cut(mean[a] - reach), to = cut(mean[a] + reach);
        if (mean[a] < b->box_min[a]) b->box_min[a] = mean[a];
        if (mean[a] > b->box_max[a]) b->box_max[a] = mean[a];
        if (from < b->reach_min[a]) b->reach_min[a] = from;
        if (to > b->reach_max[a]) b->reach_max[a] = to;
    }
}

void kiln_chunk_bounds(uint64_t n, const float *means, const float *log_scales, const float *opacity_logits, kiln_bounds *out)
{
    memset(out, 0, sizeof *out);
    if (n == 0) return;
    for (int a = 0; a < 3; a++) {
        out->box_min[a] = out->reach_min[a] = FLT_MAX;
        out->box_max[a] = out->reach_max[a] = -FLT_MAX;
    }
    out->max_log_scale = out->max_opacity_logit = -FLT_MAX;
    for (uint64_t i = 0; i < n; i++) {
        const float mean[3] = {means[i], means[n + i], means[2 * n + i]};
        float longest = log_scales[i];
        for (int a = 1; a < 3; a++) longest = log_scales[(uint64_t)a * n + i] > longest ? log_scales[(uint64_t)a * n + i] : longest;
        if (longest > out->max_log_scale) out->max_log_scale = longest;
        if (opacity_logits[i] > out->max_opacity_logit) out->max_opacity_logit = opacity_logits[i];
        widen(out, mean, reach_of(longest, opacity_logits[i]));
    }
}
