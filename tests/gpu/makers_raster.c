/* makers_raster -- Pictures of tile lists, and what they come from. */
#include "tests/gpu/makers_internal.h"

/* Pixels behind a slab: of three kinds, in runs that end anywhere: drawn on, stopped, and as they
 * are before the first one. */
static kiln_raster_state *make_state(made_call *c, uint64_t pixels)
{
    kiln_raster_state *state = made_own(c, pixels, sizeof *state);
    for (uint64_t i = 0; i < pixels; i++) {
        const float some = (float)(i % 97 + 1) / 97;
        if (i / 41 % 3 == 2) continue;
        state[i] = (kiln_raster_state){.red = some,
                                       .green = some * some,
                                       .blue = 3.0f * some,
                                       .left = i / 41 % 3 == 0 ? some : -2e-4f * some,
                                       .weight = 1.0f - some,
                                       .depth = 7.0f * some};
    }
    return state;
}

/* Variants as those of tile_pairs_emit; the last one's lists end before their room does. */
bool make_whole_raster(scene *s, unsigned variant, kiln_raster_args *a, made_call *c)
{
    static const kiln_exec cpu = {.device = -1, .threads = 2};
    kiln_tile_pairs_emit_args lists;
    if (variant > 4 || !make_tile_pairs_emit(s, variant, &lists, c)) return false;
    call_now(kiln_ops_cpu_baseline(), &cpu, KILN_OP_tile_pairs_emit, &lists);
    if (lists.n_pairs) /* names nothing */
        for (uint64_t i = lists.n_pairs[0]; i < lists.capacity; i++) lists.ranks[i] = UINT32_MAX;
    *a = (kiln_raster_args){.n = s->visible,
                            .splats = s->splats,
                            .view = &s->view,
                            .profile = s->spec.profile,
                            .row0 = lists.row0,
                            .row1 = lists.row1,
                            .tile_counts = lists.tile_counts,
                            .ranks = lists.ranks,
                            .n_pairs = lists.capacity,
                            .background = {variant ? 1.0f : 0.0f, 0.25f, 0.0f}};
    if (variant == 2) {
        a->state = make_state(c, kiln_raster_pixels(a));
        return true;
    }
    a->rgba = made_own(c, 4 * kiln_raster_pixels(a), sizeof *a->rgba);
    if (variant != 1) a->depth = made_own(c, kiln_raster_pixels(a), sizeof *a->depth);
    return true;
}

/* From variant WHOLE on a part of the rows that have lists: in the middle, the first, of a slab the
 * last. */
bool make_raster(scene *s, unsigned variant, kiln_raster_args *a, made_call *c)
{
    enum { WHOLE = 5, PARTS = 3 };
    if (variant >= WHOLE + PARTS ||
        !make_whole_raster(s, variant < WHOLE ? variant : variant - WHOLE, a, c))
        return false;
    const uint32_t rows = a->row1 - a->row0, part = variant - WHOLE;
    if (variant < WHOLE || rows == 0) return true;
    a->part0 = part == 0 ? a->row0 + rows / 3 : part == 1 ? a->row0 : a->row1 - (rows + 1) / 2;
    a->part1 = part == 1 ? a->row0 + (rows + 1) / 2 : part == 0 ? a->row1 - rows / 4 : a->row1;
    return true;
}

/* Variants as those of raster, each with other things that can be asked for; sums go on from what
 * is there. */
bool make_blend_weights(scene *s, unsigned variant, kiln_blend_weights_args *a, made_call *c)
{
    kiln_raster_args lists;
    if (!make_whole_raster(s, variant, &lists, c)) return false;
    *a = (kiln_blend_weights_args){.n = lists.n,
                                   .splats = lists.splats,
                                   .view = lists.view,
                                   .profile = lists.profile,
                                   .row0 = lists.row0,
                                   .row1 = lists.row1,
                                   .tile_counts = lists.tile_counts,
                                   .ranks = lists.ranks,
                                   .n_pairs = lists.n_pairs,
                                   .weights = made_own(c, lists.n, sizeof *a->weights),
                                   .state = lists.state};
    for (uint64_t i = 0; i < lists.n; i++) a->weights[i] = i % 3 * UINT32_MAX;
    if (variant == 1 || variant == 2) a->peaks = made_own(c, lists.n, sizeof *a->peaks);
    for (uint64_t i = 0; i < lists.n && a->peaks; i++)
        a->peaks[i] = i % 5 == 0 ? KILN_BLEND_UNIT / 2 : 0;
    if (variant == 2 || variant == 3) a->alphas = made_own(c, lists.n, sizeof *a->alphas);
    for (uint64_t i = 0; i < lists.n && a->alphas; i++) a->alphas[i] = i % 2 * UINT32_MAX;
    if (variant == 0 || variant == 3) return true;
    uint8_t *mask = made_own(c, kiln_raster_pixels(&lists), 1);
    for (uint64_t i = 0; i < kiln_raster_pixels(&lists); i++) mask[i] = i / 23 % 3 != 0;
    a->mask = mask;
    return true;
}

/* Of the pictures and lists of make_raster. Variant 1: two thirds of the Gaussians are frozen;
 * hostile residuals in the last. */
bool make_raster_backward(scene *s, unsigned variant, kiln_raster_backward_args *a, made_call *c)
{
    static const kiln_exec cpu = {.device = -1, .threads = 2};
    kiln_raster_args r;
    if (variant == 2 || !make_whole_raster(s, variant, &r, c)) return false;
    for (int k = 0; k < 3; k++) r.background[k] = 0;
    call_now(kiln_ops_cpu_baseline(), &cpu, KILN_OP_raster, &r);
    const uint64_t floats = 4 * kiln_raster_pixels(&r), n_rows = variant == 1 ? s->n / 3 : s->n;
    float *target = made_own(c, floats, sizeof *target);
    for (uint64_t i = 0; i < floats; i++) target[i] = (float)(i * 2654435761u % 1009) / 1009;
    if (variant == 4)
        for (uint64_t i = 0; i < floats; i += 101) target[i] = i % 3 ? 1e30f : -3e-20f;
    *a = (kiln_raster_backward_args){
        .n = r.n,
        .splats = r.splats,
        .view = r.view,
        .profile = r.profile,
        .row0 = r.row0,
        .row1 = r.row1,
        .tile_counts = r.tile_counts,
        .ranks = r.ranks,
        .n_pairs = r.n_pairs,
        .rgba = r.rgba,
        .target = target,
        .background = {0.9f, variant ? 0.1f : 0.0f, 0.3f},
        .n_rows = n_rows,
        .gradients = made_own(c, KILN_BACKWARD_PLANES * n_rows, sizeof *a->gradients)};
    return true;
}
