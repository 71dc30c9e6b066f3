/* level_margin -- see level_margin.h. */
#include "stages/frame/level_margin.h"

#include "base/vec3.h"
#include "kernels/math/real64.h"
#include "schema/level_sites.h"
#include "stages/frame/level_cost.h"

#define RISES 4.0    /* for each spread */
#define LEAST 0.0625 /* of the node's distance: of the spread */

static const double *nearest_eye(const kiln_level_tree *t, const double at[3])
{
    const double *nearest = t->eyes[0];
    for (uint32_t i = 1; i < t->n_eyes; i++)
        if (kiln_vec3_distance_squared(t->eyes[i], at) < kiln_vec3_distance_squared(nearest, at))
            nearest = t->eyes[i];
    return nearest;
}

void kiln_level_margin(const kiln_level_tree *t, const kiln_view *v, double *counts)
{
    if (t->n_eyes == 0 || t->n_nodes == 0) return;
    const kiln_level_eye eye = kiln_level_eye_of(v);
    const double *const nearest = nearest_eye(t, eye.at);
    const double beyond = sqrt(kiln_vec3_distance_squared(nearest, eye.at)) - t->gap,
                 rows = (double)t->nodes[t->n_nodes - 1].rows;
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const kiln_level_node *n = &t->nodes[i];
        if (!n->among || !n->sites) continue;
        const double least = LEAST * kiln_level_sites_distance(n->sites, nearest, eye.near_m);
        const double margin = 1 + RISES * beyond / (t->spread > least ? t->spread : least);
        const double most =
            KILN_MARGIN_PART + (KILN_MARGIN_WHOLE - KILN_MARGIN_PART) * (double)n->rows / rows;
        counts[i] *= margin > 1 ? margin < most ? margin : most : 1; /* no number is none */
    }
}
