/* blend_weights_cpu -- walks the tiles on the CPU: the definition.
 *
 * As raster_cpu.c, without colours, with the same groups of pixels and the same powers (raster_group_cpu.h). A tile adds up a
 * Gaussian's share in 32 bits, as 256 pixels of less than 2^24 each stay below 2^32, and then adds it to the Gaussian's 64 bits,
 * which other tiles add to at the same time.
 */
#include "kernels/blend_weights/blend_weights.h"

#include "base/carve.h"
#include "kernels/blend_weights/blend_weights_math.h"
#include "kernels/raster/raster_group_cpu.h"
#include "kernels/raster/raster_math.h"
#include "kernels/violation.h"

enum {
    TILES_AT_A_TIME = 4,
    AHEAD = 16, /* pairs whose Gaussians are fetched before they are asked for */
};

typedef struct {
    const kiln_blend_weights_args *a;
    const uint64_t *starts; /* of each tile's list */
    kiln_blend_rule rule;
    uint64_t bad; /* lowest pair with a rank at or above n; UINT64_MAX: none */
} job;

/* Blends eight pixels and adds their shares; pixels that stop leave a sign in `stopped`. As in raster_cpu.c. */
static inline void blend_shares(kiln_blend_rule rule, const float *restrict alphas, float *restrict left_of,
                                int32_t *restrict units, uint32_t *restrict stopped)
{
#pragma omp simd
    for (int i = 0; i < KILN_LANES; i++) {
        const float alpha = alphas[i], t = left_of[i], left = t * (1.0f - alpha);
        const uint32_t ends = kiln_mask_of(left < rule.stop_below);
        units[i] += kiln_blend_units(kiln_float_of(kiln_bits_of(alpha * t) & ~ends));
        left_of[i] = ends ? -fabsf(t) : left;
        stopped[i] |= ends & ~kiln_bits_of(t);
    }
}

/* Blends a Gaussian into its tile. Returns its share: a lane has at most 32 pixels, less than 2^29. */
static uint32_t draw_form(const kiln_group_form *f, kiln_blend_rule rule, kiln_group_tile *t)
{
    kiln_group_hits hits;
    int32_t units[KILN_LANES] = {0};
    uint32_t stopped[KILN_LANES] = {0}, any = 0, sum = 0;
    hits.n = 0;
    kiln_group_find(f, t, 0, &hits);
    kiln_group_alphas(rule.max_alpha, &hits);
    for (uint32_t h = 0; h < hits.n; h++) blend_shares(rule, hits.power[h], t->groups[hits.group[h]].t, units, stopped);
    for (int i = 0; i < KILN_LANES; i++) any |= stopped[i], sum += (uint32_t)units[i];
    if (any & 0x80000000u) kiln_group_end(t);
    return sum;
}

/* The transmittance of a pixel, which is never 0, in its group. It is negative when the pixel has stopped. */
static float *left_of(kiln_group_tile *t, uint32_t px, uint32_t py)
{
    return &t->groups[kiln_group_at(px - t->px0, py - t->py0)].t[(px - t->px0) % KILN_LANES];
}

/* The state of the first pixel of this row of the picture. */
static kiln_raster_state *state_row(const kiln_blend_weights_args *a, uint32_t py)
{
    return &a->state[(size_t)(py - a->row0 * KILN_TILE) * a->view->width];
}

static void resume_tile(const kiln_blend_weights_args *a, kiln_group_tile *t)
{
    for (uint32_t py = t->py0; py < t->py0 + KILN_TILE && py < a->view->height; py++)
        for (uint32_t px = t->px0; px < t->px0 + KILN_TILE && px < a->view->width; px++) {
            const float left = state_row(a, py)[px].left;
            *left_of(t, px, py) = kiln_state_stopped(left) ? left : kiln_state_left(left);
        }
    kiln_group_end(t);
}

static void leave_tile(const kiln_blend_weights_args *a, kiln_group_tile *t)
{
    for (uint32_t py = t->py0; py < t->py0 + KILN_TILE && py < a->view->height; py++)
        for (uint32_t px = t->px0; px < t->px0 + KILN_TILE && px < a->view->width; px++)
            state_row(a, py)[px].left = *left_of(t, px, py); /* as kiln_state_of */
}

static void note_bad_rank(job *j, uint64_t pair)
{
#pragma omp critical(kiln_blend_weights_bad)
    if (pair < j->bad) j->bad = pair;
}

static void add_weight_units(uint64_t *to, uint32_t units)
{
#pragma omp atomic
    *to += units;
}

static void draw_tile(job *j, uint64_t index)
{
    const kiln_blend_weights_args *a = j->a;
    const uint32_t tiles_x = kiln_view_tiles_x(a->view);
    const uint32_t px0 = (uint32_t)(index % tiles_x) * KILN_TILE, py0 = (a->row0 + (uint32_t)(index / tiles_x)) * KILN_TILE;
    const uint64_t end = j->starts[index] + a->tile_counts[index];
    uint64_t i = j->starts[index];
    kiln_group_tile t;
    kiln_group_start(&t, a->view, px0, py0);
    if (a->state) resume_tile(a, &t);
    for (; i < end && a->ranks[i] < a->n && kiln_group_live(&t); i++) {
        kiln_group_form f;
        const kiln_splat2d *s = &a->splats[a->ranks[i]];
        if (i + AHEAD < end && a->ranks[i + AHEAD] < a->n) __builtin_prefetch(&a->splats[a->ranks[i + AHEAD]]);
        if (!kiln_group_form_of(s, (int32_t)px0, (int32_t)py0, &f)) continue;
        const uint32_t units = draw_form(&f, j->rule, &t);
        if (units) add_weight_units(&a->weights[a->ranks[i]], units);
    }
    if (a->state) leave_tile(a, &t);
    while (i < end && a->ranks[i] < a->n) i++; /* what no pixel asked for */
    if (i < end) note_bad_rank(j, i);
}

/* kiln_blend_weights_cpu, kiln_blend_weights_cpu_avx2 */
kiln_status KILN_CPU(blend_weights)(const kiln_exec *x, const kiln_blend_weights_args *a, void *work, size_t *work_bytes,
                                    kiln_error *err)
{
    const kiln_raster_args as_raster = kiln_blend_weights_raster(a);
    KILN_TRY(kiln_raster_check(&as_raster, err));
    const uint64_t tiles = (uint64_t)(a->row1 - a->row0) * kiln_view_tiles_x(a->view);
    kiln_carve c = {.base = work};
    uint64_t *starts = kiln_take(&c, tiles, sizeof *starts);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    if (*work_bytes < c.used)
        return kiln_fail(err, KILN_E_CAP, "blend_weights needs %zu bytes, was given %zu", c.used, *work_bytes);

    uint64_t pairs = 0;
    for (uint64_t i = 0; i < tiles; i++) {
        starts[i] = pairs;
        pairs += a->tile_counts[i];
    }
    if (pairs > a->n_pairs) return kiln_violation_fail(KILN_VIOLATION(KILN_VIOLATION_RASTER_PAIRS, pairs), err);
    job j = {.a = a, .starts = starts, .bad = UINT64_MAX};
    j.rule = kiln_blend_rule_of(a->profile);
#pragma omp parallel for num_threads(x->threads) schedule(dynamic, TILES_AT_A_TIME)
    for (int64_t i = 0; i < (int64_t)tiles; i++) draw_tile(&j, (uint64_t)i);
    return j.bad == UINT64_MAX ? KILN_OK : kiln_violation_fail(KILN_VIOLATION(KILN_VIOLATION_RASTER_RANK, j.bad), err);
}
