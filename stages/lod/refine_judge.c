/* What is kept is drawn for other cameras than those that judge. Of views like these, one in so
 * many is worse than all of them: how far, their own spread says. */
#include "stages/lod/refine_judge.h"

#define WORSE 1.05         /* so much of its merged error may have a sight left out */
#define WORSE_UNSEEN 1.122 /* .. and a view that is in none: half a decibel */
/* it is so far beyond the worst sight, as a share of the way from the mean to the worst */
#define BEYOND 0.5
/* squared error of a pixel: a tenth of what rounding to 8 bits makes of it */
#define INVISIBLE 4e-7

/* Sights that are not left out have 0. */
static bool is_invisible(double after, double before)
{
    return after <= INVISIBLE && before <= INVISIBLE;
}

/* The share of the merged level's error that is left. */
static double left_of(double after, double before)
{
    return after / (before > INVISIBLE ? before : INVISIBLE);
}

static bool gains(const kiln_refine_off_by *after, const kiln_refine_off_by *before, int around)
{
    return after->sum[around] < (1 - KILN_REFINE_LEAST_GAIN) * before->sum[around];
}

/* NaN is not below anything. */
static bool no_view_loses(const double *after, const double *before)
{
    double sum = 0, worst = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < KILN_REFINE_SIGHTS; i++) {
        if (is_invisible(after[i], before[i])) continue;
        const double left = left_of(after[i], before[i]);
        if (!(left <= WORSE)) return false;
        if (left > worst) worst = left;
        sum += left;
        n++;
    }
    return n == 0 || worst + BEYOND * (worst - sum / n) <= WORSE_UNSEEN;
}

bool kiln_refine_is_better(const kiln_refine_off_by *after, const kiln_refine_off_by *before)
{
    for (int around = 0; around < 2; around++) {
        if (!gains(after, before, around)) return false;
        if (!no_view_loses(after->of[around], before->of[around])) return false;
    }
    return true;
}

bool kiln_refine_is_lost(const kiln_refine_off_by *after, const kiln_refine_off_by *before,
                         int around, uint32_t sight)
{
    const double now = after->of[around][sight], then = before->of[around][sight];
    return !gains(after, before, around) ||
           !(is_invisible(now, then) || left_of(now, then) <= WORSE);
}
