/* mip_filter -- see the header. Only + - * / of doubles, ldexp and frexp (exact): the same bits everywhere. */
#include "stages/import/ply/mip_filter.h"

#include <math.h>

/* ln 2 in two parts: the first has 21 trailing zero bits, so that k * LN2_HI is exact for |k| < 2^20 (fdlibm's split) */
#define LN2_HI 6.93147180369123816490e-01
#define LN2_LO 1.90821492927058770002e-10

/* exp(x) = 2^k exp(r), |r| <= ln2/2, exp(r) by its Taylor series to r^17 / 17!: below 1 ulp of 1 */
double kiln_exp_f64(double x)
{
    if (x != x) return x;
    if (x > 709.78) return HUGE_VAL;
    if (x < -745.2) return 0.0;
    int k = (int)(x * 1.4426950408889634 + (x < 0 ? -0.5 : 0.5)); /* 1 / ln 2 */
    double r = (x - k * LN2_HI) - k * LN2_LO, sum = 1.0;
    for (int i = 17; i > 0; i--) sum = 1.0 + r * sum / i;
    return ldexp(sum, k);
}

/* log(m 2^k), m in [sqrt 1/2, sqrt 2): 2 artanh(t) with t = (m - 1) / (m + 1), |t| < 0.172, by its series to t^21 */
double kiln_log_f64(double x)
{
    if (x != x || x < 0) return (x - x) / 0.0;
    if (x == 0) return -HUGE_VAL;
    if (x > 1.7976931348623157e308) return x;
    int k;
    double m = frexp(x, &k);
    if (m < 0.70710678118654752) {
        m *= 2;
        k--;
    }
    double t = (m - 1) / (m + 1), t2 = t * t, sum = 0;
    for (int i = 21; i > 0; i -= 2) sum = sum * t2 + 1.0 / i;
    return k * LN2_HI + (2 * t * sum + k * LN2_LO);
}

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
