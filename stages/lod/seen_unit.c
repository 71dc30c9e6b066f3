/* The unit that gives a chunk its visibility: what cameras saw of each row, by what they would see
 * if nothing stood in front. */
#include "base/memory.h"
#include "kernels/math/ellipsoid_math.h"
#include "kernels/math/real.h"
#include "stages/engine/parent/run_layers.h"
#include "stages/lod/lod_state.h"
#include "stages/lod/visibility_math.h"
#include "stages/lod/visibility_units.h"

#include <stdlib.h>
#include <string.h>

/* Arrays of a chunk's rows. */
typedef struct {
    float *planes;                       /* means, log_scales, quats, opacity_logits: 11 a row */
    double *areas, *bare_areas, *shares; /* sums over views */
    float *some;                         /* shares of some views; then the result */
    kiln_splat2d *splats;
} rows;

static void rows_release(rows *r)
{
    free(r->planes);
    free(r->areas);
    free(r->bare_areas);
    free(r->shares);
    free(r->some);
    free(r->splats);
}

static kiln_status rows_make(rows *r, uint64_t n, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC_UNSET(&r->planes, 11 * n, "a chunk", err));
    KILN_TRY(KILN_ALLOC(&r->areas, n, "areas of a chunk", err));
    KILN_TRY(KILN_ALLOC(&r->bare_areas, n, "areas of a chunk", err));
    KILN_TRY(KILN_ALLOC(&r->shares, n, "shares of a chunk", err));
    KILN_TRY(KILN_ALLOC_UNSET(&r->some, n, "shares of a chunk", err));
    return KILN_ALLOC_UNSET(&r->splats, n, "a projected chunk", err);
}

static kiln_status read_planes(kiln_manifest *m, const kiln_chunk *c, const rows *r,
                               kiln_error *err)
{
    const uint64_t n = c->count;
    KILN_TRY(kiln_plane_read(m, c, "means", r->planes, 3 * n * sizeof(float), err));
    KILN_TRY(kiln_plane_read(m, c, "log_scales", r->planes + 3 * n, 3 * n * sizeof(float), err));
    KILN_TRY(kiln_plane_read(m, c, "quats", r->planes + 6 * n, 4 * n * sizeof(float), err));
    return kiln_plane_read(m, c, "opacity_logits", r->planes + 10 * n, n * sizeof(float), err);
}

kiln_status kiln_shares_check(const float *shares, uint64_t n, kiln_error *err)
{
    for (uint64_t i = 0; i < n; i++)
        if (!(shares[i] >= 0 && shares[i] < 0x1p60f))
            return kiln_fail(err, KILN_E_IO,
                             "row %llu of a chunk has an impossible share of a picture",
                             (unsigned long long)i);
    return KILN_OK;
}

/* Sums over groups of views in their order, in double. */
static kiln_status sum_shares(kiln_manifest *m, const kiln_seen_unit *u, const kiln_hash *blobs,
                              const rows *r, kiln_error *err)
{
    for (uint32_t g = 0; g < u->n_groups; g++) {
        kiln_hash blob = blobs[g];
        const kiln_array a = {
            .raw_bytes = u->rows * sizeof *r->some, .n_segments = 1, .segments = &blob};
        if (kiln_hash_is_zero(blob)) continue;
        KILN_TRY(kiln_manifest_read_array(m, &a, r->some, err));
        KILN_TRY(kiln_shares_check(r->some, u->rows, err));
        for (uint64_t i = 0; i < u->rows; i++) r->shares[i] += (double)r->some[i];
    }
    return KILN_OK;
}

static kiln_status sum_areas(kiln_worker *w, const kiln_view_request *v, const rows *r, uint64_t n,
                             kiln_error *err)
{
    uint64_t visible = 0;
    const kiln_project_args a = {.n = n,
                                 .means = r->planes,
                                 .log_scales = r->planes + 3 * n,
                                 .quats = r->planes + 6 * n,
                                 .opacity_logits = r->planes + 10 * n,
                                 .view = &v->view,
                                 .profile = v->profile,
                                 .antialiased = v->antialiased,
                                 .splats = r->splats,
                                 .n_visible = &visible};
    KILN_TRY(KILN_WORK(w, project, &a, err));
    for (uint64_t i = 0; i < visible; i++) {
        const kiln_splat2d *s = &r->splats[i];
        r->areas[s->row] += kiln_seen_area(s) * kiln_seen_inside(s, v->view.width, v->view.height);
        /* of all of it: another camera sees what this one's border cuts off */
        r->bare_areas[s->row] += kiln_seen_bare_area(s);
    }
    return KILN_OK;
}

/* Where a view stands, and the square of its focal length in pixels. */
typedef struct {
    double centre[3], focal2, near2;
} standpoint;

static standpoint standpoint_of(const kiln_view *v)
{
    standpoint s = {.focal2 = (double)v->fx * (double)v->fy,
                    .near2 = (double)v->near_m * (double)v->near_m};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) s.centre[i] -= (double)v->r[3 * j + i] * (double)v->t[j];
    return s;
}

/* Pixels that a Gaussian of surface 1 would cover in all views together if each were turned towards
 * it, about: half of f^2 / d^2.
 */
static double pixels_of_surface(const standpoint *from, uint32_t n_views, const rows *r, uint64_t n,
                                uint64_t row)
{
    double sum = 0;
    for (uint32_t v = 0; v < n_views; v++) {
        double away = 0;
        for (uint64_t a = 0; a < 3; a++) {
            const double d = (double)r->planes[a * n + row] - from[v].centre[a];
            away += d * d;
        }
        sum += from[v].focal2 / (away > from[v].near2 ? away : from[v].near2);
    }
    return 0.5 * sum;
}

static double surface_of(const rows *r, uint64_t n, uint64_t row)
{
    const float *s = r->planes + 3 * n + row;
    const double log_scales[3] = {(double)s[0], (double)s[n], (double)s[2 * n]};
    return kiln_ellipsoid_area(log_scales);
}

static kiln_status put_prominence(kiln_worker *w, const rows *r, const kiln_view_request *views,
                                  uint32_t n_views, uint64_t n, kiln_error *err)
{
    standpoint *from;
    KILN_TRY(KILN_ALLOC(&from, n_views, "standpoints of views", err));
    for (uint32_t v = 0; v < n_views; v++) from[v] = standpoint_of(&views[v].view);
    for (uint64_t i = 0; i < n; i++) {
        const double opacity = (double)kiln_sigmoidf(r->planes[10 * n + i]);
        const double alone =
            opacity * surface_of(r, n, i) * pixels_of_surface(from, n_views, r, n, i);
        r->some[i] = kiln_prominence_value(
            kiln_prominence_step(kiln_prominence(r->shares[i], r->bare_areas[i], alone)));
    }
    free(from);
    return kiln_worker_put(w, "prominence", r->some, n * sizeof *r->some, sizeof *r->some, err);
}

/* Divides, and counts the rows that have the last step. */
static kiln_status put_visibility(kiln_worker *w, const rows *r, uint64_t n, kiln_error *err)
{
    json_int_t hidden = 0;
    for (uint64_t i = 0; i < n; i++) {
        const unsigned step = kiln_seen_step(r->shares[i], r->areas[i]);
        hidden += step == KILN_SEEN_STEPS - 1;
        r->some[i] = kiln_seen_value(step);
    }
    KILN_TRY(kiln_worker_put(w, "visibility", r->some, n * sizeof *r->some, sizeof *r->some, err));
    json_t *c = json_pack("{s:I}", "hidden", hidden);
    if (!c) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the counters");
    const kiln_status st = kiln_worker_counters(w, c, err);
    json_decref(c);
    return st;
}

kiln_status kiln_seen_compute(kiln_worker *w, const kiln_seen_unit *u, const kiln_hash *shares,
                              const kiln_view_request *views, kiln_error *err)
{
    kiln_lod_state *state;
    kiln_manifest *m;
    rows r = {0};
    kiln_status st;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(kiln_lod_state_get(w, u->baked, &state, err));
    if (u->chunk >= state->baked->n_chunks || state->baked->chunks[u->chunk].count != u->rows)
        return kiln_fail(err, KILN_E_BUG, "the layer 'baked' has no chunk %u of %llu rows",
                         u->chunk, (unsigned long long)u->rows);
    const kiln_chunk *c = &state->baked->chunks[u->chunk];
    KILN_GO(rows_make(&r, u->rows, err));
    KILN_GO(read_planes(m, c, &r, err));
    KILN_GO(sum_shares(m, u, shares, &r, err));
    for (uint32_t v = 0; v < u->n_views; v++)
        if (kiln_view_request_may_see(&views[v], c))
            KILN_GO(sum_areas(w, &views[v], &r, u->rows, err));
    KILN_GO(put_prominence(w, &r, views, u->n_views, u->rows, err));
    KILN_GO(put_visibility(w, &r, u->rows, err));
done:
    rows_release(&r);
    return st;
}

/* ---- payloads -------------------------------------------------------------------------------- */
static kiln_status seen_unit(kiln_worker *w, const char *name, const char *payload, size_t bytes,
                             kiln_error *err)
{
    kiln_seen_unit u;
    if (bytes < sizeof u)
        return kiln_fail(err, KILN_E_BUG, "unit '%s' came with a payload of %zu bytes", name,
                         bytes);
    memcpy(&u, payload, sizeof u);
    const kiln_hash *shares = (const kiln_hash *)(const void *)(payload + sizeof u);
    const size_t views = u.n_views * sizeof(kiln_view_request);
    if (bytes != sizeof u + u.n_groups * sizeof *shares + views)
        return kiln_fail(err, KILN_E_BUG, "unit '%s' came with a payload of %zu bytes", name,
                         bytes);
    return kiln_seen_compute(w, &u, shares,
                             (const kiln_view_request *)(const void *)(shares + u.n_groups), err);
}

kiln_status kiln_lod_visibility_unit(kiln_worker *w, const char *name, const void *payload,
                                     size_t payload_bytes, kiln_error *err)
{
    kiln_lod_unit_kind kind;
    kiln_shares_unit u;
    memcpy(&kind, payload, sizeof kind);
    if (kind == KILN_LOD_SEEN) return seen_unit(w, name, payload, payload_bytes, err);
    if (payload_bytes != sizeof u)
        return kiln_fail(err, KILN_E_BUG, "unit '%s' came with a payload of %zu bytes", name,
                         payload_bytes);
    memcpy(&u, payload, sizeof u);
    return kiln_shares_compute(w, &u, err);
}
