/* error_views -- the parent's part of errors.h: which cameras measure a node, and how fine. */
#include "stages/lod/errors.h"

#include "base/memory.h"
#include "base/vec3.h"
#include "stages/lod/in_picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

kiln_status kiln_lod_error_source_cameras(kiln_lod_error_source *s, const kiln_camera *all,
                                          uint32_t n_all, kiln_error *err)
{
    s->n_cameras = 0;
    KILN_TRY(KILN_ALLOC(&s->cameras, n_all, "the cameras that measure", err));
    for (uint32_t i = 0; i < n_all; i++)
        if (strcmp(all[i].split, "train") == 0) s->cameras[s->n_cameras++] = &all[i];
    if (s->n_cameras > 0) return KILN_OK;
    for (uint32_t i = 0; i < n_all; i++) s->cameras[s->n_cameras++] = &all[i];
    return KILN_OK;
}

/* The smallest footprint that the camera has on the box (world coordinates). */
static double finest_of(const kiln_camera *c, double near_m, const double lo[3], const double hi[3])
{
    double at[3], sum = 0;
    kiln_pose_centre(c->r, c->t, at);
    for (int i = 0; i < 3; i++) {
        const double off = at[i] < lo[i] ? lo[i] - at[i] : at[i] > hi[i] ? at[i] - hi[i] : 0;
        sum += off * off;
    }
    const double distance = sqrt(sum) > near_m ? sqrt(sum) : near_m;
    return distance / (c->fx > c->fy ? c->fx : c->fy);
}

static void set_view(const kiln_camera *c, const double origin[3], kiln_lod_error_view *v)
{
    kiln_pose_centre(c->r, c->t, v->centre);
    for (int i = 0; i < 3; i++) {
        v->centre[i] -= origin[i];
        v->right[i] = c->r[i];
        v->forward[i] = c->r[6 + i];
    }
    v->tan_x = 0.5 * c->width / c->fx;
    v->tan_y = 0.5 * c->height / c->fy;
    v->focal = c->fx > c->fy ? c->fx : c->fy;
}

void kiln_lod_error_request_init(kiln_lod_error_request *q, const kiln_lod_error_source *s,
                                 const kiln_level_node *node)
{
    double lo[3], hi[3], middle[3];
    uint32_t seeing = 0, next = 0, met = 0;
    *q = (kiln_lod_error_request){
        .profile = s->profile, .antialiased = s->antialiased, .near_m = s->near_m};
    for (int i = 0; i < 3; i++) {
        lo[i] = node->box_min[i] + s->origin[i];
        hi[i] = node->box_max[i] + s->origin[i];
        middle[i] = 0.5 * (lo[i] + hi[i]);
    }
    bool among = false; /* does any stand in the box? */
    for (uint32_t i = 0; i < s->n_cameras; i++) {
        seeing += kiln_lod_in_picture(s->cameras[i], 0, middle);
        among = among || finest_of(s->cameras[i], 0, lo, hi) <= 0;
    }
    /* a box around cameras has no middle that says who sees it */
    const bool all = seeing == 0 || among;
    const uint32_t n = all ? s->n_cameras : seeing;
    q->n_views = n < KILN_LOD_CANDIDATES ? n : KILN_LOD_CANDIDATES;
    for (uint32_t i = 0; i < s->n_cameras; i++) {
        const kiln_camera *c = s->cameras[i];
        if (!all && !kiln_lod_in_picture(c, 0, middle)) continue;
        const double finest = finest_of(c, s->near_m, lo, hi);
        if (met == 0 || finest < q->finest) q->finest = finest;
        /* the k-th view is in the middle of the k-th part of the list */
        if (next < q->n_views && met == (2 * (uint64_t)next + 1) * n / (2 * (uint64_t)q->n_views))
            set_view(c, s->origin, &q->views[next++]);
        met++;
    }
}
