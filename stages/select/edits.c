/* edits -- see the header. */
#include "stages/select/edits.h"

#include "base/harmonics.h"
#include "schema/row_check.h"

#include <float.h>
#include <math.h>
#include <string.h>

void kiln_edits_of(const double translate[3], const double rotate[3], double scale,
                   uint32_t sh_degree, kiln_edits *out)
{
    memset(out, 0, sizeof *out); /* it travels with its padding */
    kiln_similarity_of_degrees(translate, rotate, scale, &out->move);
    out->moves = !kiln_similarity_is_identity(&out->move);
    out->sh_degree = sh_degree;
}

/* ---- the origin ------------------------------------------------------------------------------ */

static bool is_zero(const double v[3]) { return v[0] == 0 && v[1] == 0 && v[2] == 0; }

static void move_point(const kiln_edits *e, const double x[3], double out[3])
{
    memcpy(out, x, 3 * sizeof *out);
    kiln_similarity_rows(&e->move, 1, &(kiln_similarity_planes){.n = 1, .means = out});
}

static void widen_span(kiln_edits_span *span, const kiln_edits *e, const kiln_chunk *c,
                       const double origin[3])
{
    for (unsigned corner = 0; corner < 8; corner++) {
        double x[3];
        for (int a = 0; a < 3; a++)
            x[a] = (double)(corner >> a & 1 ? c->box_max[a] : c->box_min[a]) + origin[a];
        move_point(e, x, x);
        for (int a = 0; a < 3; a++) {
            span->lo[a] = x[a] < span->lo[a] ? x[a] : span->lo[a];
            span->hi[a] = x[a] > span->hi[a] ? x[a] : span->hi[a];
        }
    }
}

void kiln_edits_span_add(kiln_edits_span *span, const kiln_edits *e, const kiln_layer *layer,
                         const uint8_t *chosen, const double origin[3])
{
    if (span->n == 0) {
        span->same = true;
        memcpy(span->first, origin, sizeof span->first);
        for (int a = 0; a < 3; a++) {
            span->lo[a] = HUGE_VAL;
            span->hi[a] = -HUGE_VAL;
        }
    }
    for (int a = 0; a < 3; a++) span->same &= origin[a] == span->first[a];
    if (!span->has_far && !is_zero(origin)) {
        span->has_far = true;
        move_point(e, origin, span->far);
    }
    for (uint32_t c = 0; c < layer->n_chunks; c++)
        if (layer->chunks[c].count && (!chosen || chosen[c]))
            widen_span(span, e, &layer->chunks[c], origin);
    span->n++;
}

static double round_to_whole(double v) { return floor(v + 0.5); }

void kiln_edits_origin(const kiln_edits_span *span, const kiln_edits *e, double origin[3])
{
    double farthest = 0, diagonal2 = 0;
    if (span->same && !e->moves) {
        memcpy(origin, span->first, 3 * sizeof *origin);
        return;
    }
    for (int a = 0; a < 3; a++) {
        const double lo = fabs(span->lo[a]), hi = fabs(span->hi[a]),
                     side = span->hi[a] - span->lo[a];
        origin[a] = span->has_far ? round_to_whole(span->far[a]) : 0;
        farthest = lo > farthest ? lo : farthest;
        farthest = hi > farthest ? hi : farthest;
        diagonal2 += side * side;
    }
    /* not finite: no chunk has rows */
    if (span->has_far || !(farthest < HUGE_VAL) || farthest <= 256 * sqrt(diagonal2)) return;
    for (int a = 0; a < 3; a++) origin[a] = round_to_whole((span->lo[a] + span->hi[a]) / 2);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* v[i] is not a float of the scene: the least such i below `bad`. */
static uint64_t first_bad(const float *v, uint64_t n, uint32_t components, float most, uint64_t bad)
{
    for (uint32_t c = 0; c < components && v; c++)
        for (uint64_t i = 0; i < bad; i++)
            if (!(fabsf(v[c * n + i]) <= FLT_MAX && v[c * n + i] <= most)) bad = i;
    return bad;
}

/* Where nothing moves and the origin stays, bits stay. */
static void move_means(const kiln_edits *e, const double from[3], const double to[3],
                       const kiln_edit_rows *r, double *work)
{
    const uint64_t n = r->n;
    if (!e->moves && from[0] == to[0] && from[1] == to[1] && from[2] == to[2]) return;
    for (uint64_t a = 0; a < 3; a++)
        for (uint64_t i = 0; i < n; i++) work[a * n + i] = (double)r->means[a * n + i] + from[a];
    if (e->moves)
        kiln_similarity_rows(&e->move, 1, &(kiln_similarity_planes){.n = n, .means = work});
    for (uint64_t a = 0; a < 3; a++)
        for (uint64_t i = 0; i < n; i++) r->means[a * n + i] = (float)(work[a * n + i] - to[a]);
}

void kiln_edits_rows(const kiln_edits *e, const double from[3], const double to[3],
                     const kiln_edit_rows *r, double *work, uint64_t *bad)
{
    const uint64_t n = r->n;
    *bad = n;
    if (r->means) move_means(e, from, to, r, work);
    *bad = first_bad(r->means, n, 3, FLT_MAX, *bad);
    if (!e->moves) return;
    const kiln_similarity_planes planes = {.n = n,
                                           .log_scales = r->log_scales,
                                           .quats = r->quats,
                                           .shN = r->shN,
                                           .sh_degree = r->sh_degree};
    kiln_similarity_rows(&e->move, 1, &planes);
    if (r->normals[0] && r->normals[1] && r->normals[2])
        kiln_similarity_normals(&e->move, n, r->normals[0], r->normals[1], r->normals[2]);
    for (uint64_t i = 0; i < 3 * n && r->log_scales; i++)
        r->log_scales[i] =
            r->log_scales[i] < KILN_LOG_SCALE_MIN ? KILN_LOG_SCALE_MIN : r->log_scales[i];
    *bad = first_bad(r->log_scales, n, 3, KILN_LOG_SCALE_MAX, *bad);
    *bad = first_bad(r->quats, n, 4, FLT_MAX, *bad);
    *bad = first_bad(r->shN, n, kiln_sh_components(r->sh_degree), FLT_MAX, *bad);
}
