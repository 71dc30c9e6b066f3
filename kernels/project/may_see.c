/* may_see -- can a profile's cull let anything of a box through? In double, once for each chunk and
 * camera.
 *
 * A Gaussian off the left border is culled when p + radius < 0 (pixels), p = f x/z + c. With radius
 * <= k s F / z + m (s the largest scale, F a bound of the Jacobian's norm times z, m the dilation's
 * and the rounding's share) and z > 0 this follows from
 *
 *     f x + (c + m) z + k s F < 0
 *
 * which is linear in the mean, so over a box it is decided at one corner; the other borders are
 * alike. Where a box reaches behind the camera the same inequality over the whole box only asks for
 * more. All bounds are widened well beyond the float32 rounding of the projection itself; whatever
 * is not a number is splat. */
#include "kernels/math/real64.h"
#include "kernels/project/project.h"
#include "kernels/project/project_math.h"

#include <math.h>

/* Relative allowance for float32 sums of a few terms, whose own error is under 4e-7. */
static const double slack = 1e-5;

/* value = weight . mean + constant over the box: its largest value, and the sum of magnitudes for
 * the allowance. */
static double most(const double weight[3], double constant, const kiln_project_bound *b)
{
    double value = constant, size = fabs(constant);
    for (int i = 0; i < 3; i++) {
        const double lo = weight[i] * b->box_min[i], hi = weight[i] * b->box_max[i];
        /* the larger of them, and NaN where one is */
        value += 0.5 * (lo + hi) + 0.5 * fabs(hi - lo);
        size += fabs(lo) + fabs(hi);
    }
    return value + slack * size;
}

/* a * (row i of the camera) + c * (its row z), at its largest over the box. */
static double most_of_rows(const kiln_projection *l, int i, double a, double c,
                           const kiln_project_bound *b)
{
    double weight[3];
    for (int k = 0; k < 3; k++) weight[k] = a * l->r[3 * i + k] + c * l->r[6 + k];
    double value = most(weight, a * l->t[i] + c * l->t[2], b);
    /* the two rows may cancel where the projection's own roundings do not */
    for (int k = 0; k < 3; k++) {
        const double far_out = fabs((double)b->box_min[k]) + fabs((double)b->box_max[k]);
        value += slack * far_out * (fabs(a * l->r[3 * i + k]) + fabs(c * l->r[6 + k]));
    }
    return value + slack * (fabs(a * l->t[i]) + fabs(c * l->t[2]));
}

/* How far the profile's Gaussians of at most this scale and opacity reach; false where none of them
 * is visible. */
static bool profile_reach(const kiln_projection *l, kiln_profile_id profile, double scale,
                          double opacity, kiln_chunk_reach *r)
{
    const bool visible = kiln_families[kiln_profiles[profile].family].reach(l, scale, opacity, r);
    for (int i = 0; i < 2; i++) r->reach[i] *= 1.0 + 1e-3;
    r->flat = r->flat * (1.0 + 1e-3) + 3.0; /* ceil, and up to two pixels for rounding */
    return visible;
}

/* All of the box beyond one of the two borders of axis i? */
static bool off_axis(const kiln_projection *l, int i, double focal, double centre, double tiles,
                     const kiln_chunk_reach *r, const kiln_project_bound *b)
{
    const double below = most_of_rows(l, i, focal, centre + r->flat, b) + r->reach[i];
    const double above =
        most_of_rows(l, i, -focal, tiles * KILN_TILE - centre + r->flat, b) + r->reach[i];
    return below < 0.0 || above < 0.0;
}

bool kiln_project_may_see(const kiln_view *view, kiln_profile_id profile, bool antialiased,
                          const kiln_project_bound *b)
{
    static const kiln_view_cut whole = {0};
    kiln_projection l;
    kiln_project_projection(&l, view, &whole, profile, antialiased);
    if (most_of_rows(&l, 2, 1.0, 0.0, b) < l.z_min) return false;
    if (-most_of_rows(&l, 2, -1.0, 0.0, b) > l.z_max) return false;

    kiln_chunk_reach r;
    const double opacity =
        /* the antialias factor is at most 1 */
        (1.0 + slack) / (1.0 + kiln_exp_f64(-(double)b->max_opacity_logit));
    if (!profile_reach(&l, profile, kiln_exp_f64((double)b->max_log_scale), opacity, &r))
        return false;

    /* inria divides by w + 1e-7, which pulls towards the centre of the image: not bounded this
     * close to the camera. */
    if (l.z_min < 1e-3f) return true;
    return !off_axis(&l, 0, l.fx, r.centre[0], l.tiles_x, &r, b) &&
           !off_axis(&l, 1, l.fy, r.centre[1], l.tiles_y, &r, b);
}
