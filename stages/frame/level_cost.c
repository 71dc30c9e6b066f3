/* level_cost -- see level_cost.h. */
#include "stages/frame/level_cost.h"

#include "kernels/math/real64.h"
#include "schema/level_sites.h"

double kiln_level_footprint(const kiln_view *v, const float box_min[3], const float box_max[3])
{
    double middle = v->t[2], half = 0;
    for (int i = 0; i < 3; i++) {
        const double r = v->r[6 + i], lo = box_min[i], hi = box_max[i];
        middle += r * (0.5 * (lo + hi));
        half += (r < 0 ? -r : r) * (0.5 * (hi - lo));
    }
    const double nearest = middle - half > v->near_m ? middle - half : v->near_m;
    double farthest = middle + half > nearest ? middle + half : nearest;
    if (farthest > 2 * nearest) farthest = 2 * nearest;
    const double focal = v->fx > v->fy ? v->fx : v->fy;
    return sqrt(nearest) * sqrt(farthest) / focal;
}

kiln_level_eye kiln_level_eye_of(const kiln_view *v)
{
    const double fx = (double)v->fx, fy = (double)v->fy, cx = (double)v->cx, cy = (double)v->cy;
    kiln_level_eye e = {.left = -cx / fx,
                        .right = (v->width - cx) / fx,
                        .top = -cy / fy,
                        .bottom = (v->height - cy) / fy,
                        .near_m = (double)v->near_m};
    for (int i = 0; i < 9; i++) e.axes[i] = (double)v->r[i];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) e.at[i] -= e.axes[3 * j + i] * (double)v->t[j];
    return e;
}

double kiln_level_node_footprint(const kiln_view *v, const kiln_level_node *node, double *share)
{
    const kiln_level_eye eye = kiln_level_eye_of(v);
    const double focal = v->fx > v->fy ? v->fx : v->fy;
    *share = 1;
    if (!node->sites) return kiln_level_footprint(v, node->box_min, node->box_max);
    const kiln_level_sight seen = kiln_level_sites_seen(node->sites, &eye);
    *share = seen.share;
    return seen.distance / focal;
}

double kiln_level_error_at(const kiln_chunk *c, double footprint)
{
    const uint32_t last = c->n_errors - 1;
    double at = ldexp(1.0, c->error_step); /* of step i */
    const double falls =
        last > 0 && c->errors[0] > c->errors[1] ? (double)c->errors[0] - c->errors[1] : 0.0;
    if (footprint < at) return c->errors[0] + (1.0 - footprint / at) * falls;
    for (uint32_t i = 0; i < last; i++, at *= 2) {
        if (footprint >= 2 * at) continue;
        const double share = footprint / at - 1.0;
        return c->errors[i] + share * ((double)c->errors[i + 1] - c->errors[i]);
    }
    const double rises = last > 0 && c->errors[last] > c->errors[last - 1]
                             ? (double)c->errors[last] - c->errors[last - 1]
                             : 0.0;
    return c->errors[last] + 2.0 * (footprint / at - 1.0) * rises;
}

double kiln_level_cost(const kiln_view *v, const kiln_level_node *node, const kiln_chunk *c)
{
    double share;
    const double s = kiln_level_node_footprint(v, node, &share);
    if (c->n_errors == 0) {
        const double across = 2.0 * kiln_exp_f64(c->max_log_scale); /* 2 sigma */
        return across < s ? 0.0 : KILN_LEVEL_TOO_COSTLY;
    }
    const double cost = share * kiln_level_error_at(c, s) / s / s;
    /* colours are between 0 and 1: a pixel cannot differ by more */
    const double all = (double)v->width * v->height;
    return cost < all ? cost : all;
}
