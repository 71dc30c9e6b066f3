/* spz_scene -- see the header. */
#include "stages/formats/spz/spz_scene.h"
#include "stages/formats/float_places.h"

#include "base/endian.h"
#include "base/log.h"
#include "base/minmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RANGE_ROWS = 8192, OLD_READERS_MAX = 10000000, READERS_MAX = 2147483647, OLDEST_DEGREE = 3 };
enum { COUNT_SCALES, COUNT_COLOURS, COUNT_SH };

const kiln_export_count kiln_spz_counts[] = {KILN_SPZ_COUNTS, {NULL, NULL}};

/* ---- the plan -------------------------------------------------------------------------------- */

static double farthest_of(const kiln_export *e)
{
    double most = 0;
    for (int c = 0; c < 3; c++) {
        most = fmax(most, fabs((double)e->survey.means[c].lo));
        most = fmax(most, fabs((double)e->survey.means[c].hi));
    }
    return most;
}

/* Of the cube in which the scene's bulk lies. Where rows are moved, the box of all of them stands
 * for it. */
static double half_edge_of(const kiln_export *e)
{
    double most = 0;
    for (uint32_t i = 0; i < e->n_bakes && !e->edited; i++)
        if (e->bakes[i].scene.has_root) most = fmax(most, e->bakes[i].scene.root_half);
    for (int c = 0; c < 3 && (e->edited || most == 0); c++)
        most = fmax(most, ((double)e->survey.means[c].hi - (double)e->survey.means[c].lo) / 2);
    return most;
}

static kiln_status take_fraction(kiln_export_parent *p, kiln_spz_coding *c, kiln_error *err)
{
    if (c->fraction >= KILN_SPZ_FRACTION) return KILN_OK;
    return kiln_export_note(
        p, err, "its positions have steps of 1/%u instead of 1/4096, because they reach up to %.6g",
        1u << c->fraction, farthest_of(p->e));
}

/* Not above the median of all scales, and more than half of it. */
static double median_scale(const kiln_spz_plan *plan)
{
    uint64_t n = 0, below = 0;
    int i = 0;
    for (int k = 0; k < KILN_SPZ_OCTAVES; k++) n += plan->scales[k];
    while (i + 1 < KILN_SPZ_OCTAVES && 2 * (below + plan->scales[i]) <= n)
        below += plan->scales[i++];
    return ldexp(1, i - KILN_SPZ_OCTAVES / 2);
}

static kiln_status check_steps(const kiln_export *e, const kiln_spz_plan *plan, kiln_error *err)
{
    const double step = ldexp(1, -(int)plan->coding.fraction), scale = median_scale(plan);
    const bool fits = kiln_spz_fits(farthest_of(e), plan->coding.fraction);
    if (step <= scale / 10 && fits) return KILN_OK;
    if (step <= scale / 10)
        return kiln_fail(err, KILN_E_INPUT,
                         "SPZ holds coordinates of up to 8388607 units, but one is %.6g; leave out "
                         "what lies that far away "
                         "(--filter-box, --filter-sphere), or make the scene smaller (--scale)",
                         farthest_of(e));
    if (plan->coding.fraction == KILN_SPZ_FRACTION_MAX)
        return kiln_fail(
            err, KILN_E_INPUT,
            "the finest position steps of SPZ, 2^-%d, are too coarse for a scene of %.3g units and "
            "Gaussians of about %.3g; make it larger (--scale)",
            KILN_SPZ_FRACTION_MAX, 2 * half_edge_of(e), scale);
    return kiln_fail(err, KILN_E_INPUT,
                     "SPZ has 24 bits for a coordinate: with one of %.6g its steps are %g units, "
                     "too coarse for a scene of %.3g "
                     "units and Gaussians of about %.3g; leave out what lies that far away "
                     "(--filter-box, --filter-sphere), or "
                     "move the scene to the origin (--translate)",
                     farthest_of(e), step, 2 * half_edge_of(e), scale);
}

static bool is_of_spz(const kiln_export *e)
{
    bool all = !e->edited;
    for (uint32_t i = 0; i < e->n_bakes; i++)
        all = all && strcmp(e->bakes[i].scene.source_format, "spz") == 0;
    return all;
}

static kiln_status note_spz_frame(kiln_export_parent *p, bool to_rub, kiln_error *err)
{
    const kiln_export *e = p->e;
    const double *origin = e->origin;
    if (origin[0] != 0 || origin[1] != 0 || origin[2] != 0)
        KILN_TRY(kiln_export_note(
            p, err,
            "its positions are relative to %.17g %.17g %.17g, as SPZ has 24 bits for a coordinate",
            origin[0], origin[1], origin[2]));
    KILN_TRY(kiln_origin_note(p, err));
    if (e->n_rows > OLD_READERS_MAX)
        KILN_TRY(kiln_export_note(p, err, "older readers of SPZ refuse more than %d Gaussians",
                                  OLD_READERS_MAX));
    if (to_rub)
        return kiln_export_remark(
            p, err,
            "the axes are RUB (right, up, back), as SPZ defines them; %s as-is keeps those of PLY",
            kiln_log_is_stage() ? "--frame" : "--export-frame");
    return kiln_export_remark(p, err, "the axes are those of PLY, unchanged (as-is)");
}

static kiln_status plan_spz(kiln_export_parent *p, bool oldest, kiln_error *err)
{
    const kiln_export *e = p->e;
    kiln_spz_plan plan;
    memset(&plan, 0, sizeof plan); /* workers compare none of it, but it travels as bytes */
    if (e->n_rows > READERS_MAX)
        return kiln_fail(err, KILN_E_INPUT, "SPZ holds up to %d Gaussians, but the scene has %llu",
                         READERS_MAX, (unsigned long long)e->n_rows);
    plan.coding.first_three = oldest;
    plan.coding.sh_degree = kiln_export_degree(e, oldest ? OLDEST_DEGREE : UINT32_MAX);
    if (plan.coding.sh_degree < e->sh_degree)
        KILN_TRY(kiln_export_note(
            p, err,
            "version %d holds spherical harmonics up to degree %d; higher degrees are left out",
            KILN_SPZ_OLDEST, OLDEST_DEGREE));
    plan.coding.first_bits = KILN_SPZ_FIRST_BITS;
    plan.coding.other_bits = KILN_SPZ_OTHER_BITS;
    plan.coding.to_rub = e->frame == KILN_FRAME_RUB;
    plan.is_of_spz = plan.coding.signed_zeros = is_of_spz(e);
    plan.is_small =
        !kiln_spz_choose_fraction(farthest_of(e), half_edge_of(e), &plan.coding.fraction);
    if (!plan.is_of_spz && !plan.is_small) KILN_TRY(take_fraction(p, &plan.coding, err));
    kiln_spz_strides(oldest ? KILN_SPZ_OLDEST : 3, plan.coding.sh_degree, plan.stride);
    for (int k = 0; k < KILN_SPZ_PLANES; k++)
        plan.at[k + 1] = plan.at[k] + e->n_rows * plan.stride[k];
    KILN_TRY(note_spz_frame(p, plan.coding.to_rub, err));
    return kiln_buffer_put(p->plan, &plan, sizeof plan, err);
}

kiln_status kiln_spz_plan_make(kiln_export_parent *p, kiln_error *err)
{
    return plan_spz(p, false, err);
}
kiln_status kiln_spz_plan_oldest(kiln_export_parent *p, kiln_error *err)
{
    return plan_spz(p, true, err);
}

/* ---- rows that are measured ------------------------------------------------------------------ */

typedef struct {
    uint32_t needed, scales[KILN_SPZ_OCTAVES];
} measured;

static const kiln_spz_plan *scene_plan_of(const kiln_export *e) { return e->plan; }

uint64_t kiln_spz_measure_units(const kiln_export *e)
{
    return scene_plan_of(e)->is_of_spz || scene_plan_of(e)->is_small ? e->n_chunks : 0;
}

static unsigned measured_planes(const kiln_export *e)
{
    return (scene_plan_of(e)->is_of_spz ? KILN_ROWS_MEANS : 0u) |
           (scene_plan_of(e)->is_small ? KILN_ROWS_LOG_SCALES : 0u);
}

uint64_t kiln_spz_measure_ram(const kiln_export *e, uint64_t unit)
{
    return kiln_export_rows_ram(e, unit, measured_planes(e)) + kiln_outputs_ram(sizeof(measured));
}

static void count_scales(const float *log_scales, uint64_t n, uint32_t octaves[KILN_SPZ_OCTAVES])
{
    const double per_octave = 1.4426950408889634; /* 1 / ln 2 */
    for (uint64_t i = 0; i < n; i++) {
        const double at = (double)log_scales[i] * per_octave + KILN_SPZ_OCTAVES / 2;
        octaves[at < 0 ? 0 : at < KILN_SPZ_OCTAVES ? (int)at : KILN_SPZ_OCTAVES - 1]++;
    }
}

kiln_status kiln_spz_measure(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_export_rows rows;
    measured m = {0};
    KILN_TRY(kiln_export_rows_read(x, unit, measured_planes(x->e), &rows, err));
    if (scene_plan_of(x->e)->is_of_spz) m.needed = kiln_spz_needed_fraction(rows.means, 3 * rows.n);
    if (scene_plan_of(x->e)->is_small) count_scales(rows.log_scales, 3 * rows.n, m.scales);
    kiln_export_rows_release(&rows);
    return kiln_export_result(x, &m, sizeof m, err);
}

kiln_status kiln_spz_measure_gather(kiln_export_parent *p, uint64_t unit, const void *result,
                                    size_t bytes, kiln_error *err)
{
    kiln_spz_plan *plan = (void *)p->plan->data;
    measured m;
    if (bytes != sizeof m)
        return kiln_fail(err, KILN_E_BUG, "chunk %llu measures %zu bytes", (unsigned long long)unit,
                         bytes);
    memcpy(&m, result, sizeof m);
    if (m.needed > plan->needed) plan->needed = m.needed;
    for (int i = 0; i < KILN_SPZ_OCTAVES; i++) plan->scales[i] += m.scales[i];
    return KILN_OK;
}

/* Rows of version 1, or that were moved on import, may need more bits than there are: they are like
 * those of any format. */
kiln_status kiln_spz_measure_end(kiln_export_parent *p, kiln_error *err)
{
    kiln_spz_plan *plan = (void *)p->plan->data;
    if (plan->is_of_spz && plan->needed <= KILN_SPZ_FRACTION_MAX &&
        kiln_spz_fits(farthest_of(p->e), plan->needed)) {
        plan->coding.fraction = plan->needed;
        return KILN_OK;
    }
    if (plan->is_small) KILN_TRY(check_steps(p->e, plan, err));
    return take_fraction(p, &plan->coding, err);
}

void kiln_spz_header_make(uint64_t n_rows, const kiln_spz_coding *coding, bool antialiased,
                          uint32_t version, unsigned char n_streams,
                          unsigned char out[KILN_SPZ_HEADER])
{
    memcpy(out, KILN_SPZ_MAGIC, 4);
    kiln_put_u32(out + KILN_SPZ_VERSION_AT, version);
    kiln_put_u32(out + KILN_SPZ_COUNT_AT, n_rows); /* the writers have checked it */
    out[KILN_SPZ_DEGREE_AT] = (unsigned char)coding->sh_degree;
    out[KILN_SPZ_FRACTION_AT] = (unsigned char)coding->fraction;
    out[KILN_SPZ_FLAGS_AT] = antialiased ? KILN_SPZ_ANTIALIASED : 0;
    out[KILN_SPZ_N_STREAMS_AT] = n_streams;
}

/* ---- a chunk --------------------------------------------------------------------------------- */

static kiln_spz_clamped encode_range(const kiln_spz_plan *plan, const kiln_export_rows *rows,
                                     uint64_t at, const kiln_spz_chunk *out)
{
    unsigned char *planes[KILN_SPZ_PLANES];
    kiln_spz_clamped clamped = {0};
    const kiln_spz_values values = {.n = kiln_min_u64(rows->n - at, RANGE_ROWS),
                                    .stride = rows->n,
                                    .means = rows->means + at,
                                    .log_scales = rows->log_scales + at,
                                    .quats = rows->quats + at,
                                    .opacity_logits = rows->opacity_logits + at,
                                    .sh0 = rows->sh0 + at,
                                    .shN = rows->shN ? rows->shN + at : NULL};
    for (int p = 0; p < KILN_SPZ_PLANES; p++) planes[p] = out->planes[p] + at * plan->stride[p];
    kiln_spz_encode(&plan->coding, &values, planes, &clamped);
    return clamped;
}

kiln_status kiln_spz_chunk_encode(kiln_export_worker *x, const kiln_spz_plan *plan, uint64_t unit,
                                  kiln_spz_chunk *out, kiln_error *err)
{
    kiln_export_rows rows;
    const int threads = (int)kiln_worker_threads(x->w);
    uint64_t scales = 0, colours = 0, sh = 0;
    *out = (kiln_spz_chunk){0};
    KILN_TRY(kiln_export_rows_read(x, unit, KILN_ROWS_SPLAT, &rows, err));
    out->n = rows.n;
    out->first = rows.first;
    const kiln_status st =
        kiln_alloc_unset((void **)&out->planes[0], rows.n, kiln_spz_row_bytes(plan->stride),
                         "the codes of a chunk", err);
    for (int p = 0; p < KILN_SPZ_PLANES && st == KILN_OK; p++) {
        out->bytes[p] = rows.n * plan->stride[p];
        if (p) out->planes[p] = out->planes[p - 1] + out->bytes[p - 1];
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1) reduction(+ : scales, colours, sh) if (threads > 1)
    for (uint64_t at = 0; at < (st == KILN_OK ? rows.n : 0); at += RANGE_ROWS) {
        const kiln_spz_clamped clamped = encode_range(plan, &rows, at, out);
        scales += clamped.scales;
        colours += clamped.colours;
        sh += clamped.sh;
    }
    x->counts[COUNT_SCALES] += scales;
    x->counts[COUNT_COLOURS] += colours;
    x->counts[COUNT_SH] += sh;
    kiln_export_rows_release(&rows);
    return st;
}

void kiln_spz_chunk_release(kiln_spz_chunk *c)
{
    free(c->planes[0]);
    *c = (kiln_spz_chunk){0};
}

uint64_t kiln_spz_chunk_ram(const kiln_export *e, const kiln_spz_plan *plan, uint64_t unit)
{
    return kiln_export_rows_ram(e, unit, KILN_ROWS_SPLAT) +
           e->chunks[unit].n * kiln_spz_row_bytes(plan->stride);
}
