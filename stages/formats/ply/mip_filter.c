/* mip_filter -- see the header. Only + - * / of doubles, and real64.h: the same bits everywhere. */
#include "stages/formats/ply/mip_filter.h"

#include <math.h>

/* ln sqrt(exp(2 s) + f^2) without overflow: the larger of the two stands in front */
static double fold_scale(double s, double log_f)
{
    double hi = s > log_f ? s : log_f, lo = s > log_f ? log_f : s;
    if (s != s || log_f != log_f) return s + log_f;
    if (hi == HUGE_VAL) return hi;
    return hi + 0.5 * kiln_log_f64(1.0 + kiln_exp_f64(2.0 * (lo - hi)));
}

/* logit(sigmoid(o) exp(d)), d <= 0: alpha' / (1 - alpha') with alpha' = e^d / (1 + e^-o) */
static double fold_opacity(double o, double d)
{
    if (o == -HUGE_VAL || d == -HUGE_VAL) return -HUGE_VAL;
    double rest = (1.0 - kiln_exp_f64(d)) + kiln_exp_f64(-o); /* (1 + e^-o) - e^d */
    return d - kiln_log_f64(rest);
}

void kiln_mip_filter_fold(uint64_t n, const float *filter, float *log_scales, float *opacity_logits)
{
    for (uint64_t i = 0; i < n; i++) {
        double f = filter[i] < 0 ? -(double)filter[i] : (double)filter[i], d = 0;
        if (f == 0) continue;
        double log_f = kiln_log_f64(f);
        for (uint64_t c = 0; c < 3; c++) {
            double s = (double)log_scales[c * n + i], t = fold_scale(s, log_f);
            log_scales[c * n + i] = (float)t;
            d += s == -HUGE_VAL ? s : s - t;
        }
        opacity_logits[i] = (float)fold_opacity((double)opacity_logits[i], d);
    }
}
