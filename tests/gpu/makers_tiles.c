/* makers_tiles -- Tile pairs and lists of a band of tile rows. */
#include "tests/gpu/makers_internal.h"

#include <float.h>

typedef struct {
    uint32_t row0, row1;
    uint64_t pairs;
} band;

/* Variant 0: the whole picture, 1: its last tile row, 2: without its borders, 3: nothing of it; as
 * far as that is not more than a test can take. */
static bool pick_band(scene *s, unsigned variant, band *b)
{
    enum { PIXELS = 640 * 368, PAIRS = 200000 };
    const uint32_t rows = kiln_view_tiles_y(&s->view);
    if (variant > 3 || (variant > 0 && rows < 3)) return false;
    if (!scene_look_quickly(s)) return false;
    *b = (band){.row0 = variant == 1   ? rows - 1
                        : variant == 2 ? 1
                                       : 0,
                .row1 = variant == 2   ? rows - 1
                        : variant == 3 ? 0
                                       : rows};
    if (variant == 0 && rows * KILN_TILE * (uint64_t)s->view.width > PIXELS) b->row0 = rows / 2;
    for (uint32_t r = b->row0; r < b->row1; r++) {
        const uint64_t pixels = (uint64_t)(r + 1 - b->row0) * KILN_TILE * s->view.width;
        if (r > b->row0 && (pixels > PIXELS || b->pairs + s->row_pairs[r] > PAIRS)) {
            b->row1 = r;
            break;
        }
        b->pairs += s->row_pairs[r];
    }
    return true;
}

bool make_tile_pairs_count(scene *s, unsigned variant, kiln_tile_pairs_count_args *a, made_call *c)
{
    band b;
    if (!pick_band(s, variant, &b)) return false;
    if (variant == 0) b = (band){.row1 = kiln_view_tiles_y(&s->view)};
    *a = (kiln_tile_pairs_count_args){.n = s->visible,
                                      .splats = s->splats,
                                      .view = &s->view,
                                      .row0 = b.row0,
                                      .row1 = b.row1,
                                      .row_pairs =
                                          made_own(c, b.row1 - b.row0, sizeof *a->row_pairs)};
    return true;
}

/* Variants 4 and 5: the first one's band with a bound instead of a count, too large and too
 * small. */
bool make_tile_pairs_emit(scene *s, unsigned variant, kiln_tile_pairs_emit_args *a, made_call *c)
{
    band b;
    const bool bound = variant == 4 || variant == 5;
    if (!pick_band(s, bound ? 0 : variant, &b)) return false;
    if (bound) b.pairs = variant == 4 ? b.pairs + 1000 : b.pairs / 2;
    *a = (kiln_tile_pairs_emit_args){
        .n = s->visible,
        .splats = s->splats,
        .view = &s->view,
        .row0 = b.row0,
        .row1 = b.row1,
        .capacity = b.pairs,
        .tile_counts = made_own(c, (uint64_t)(b.row1 - b.row0) * kiln_view_tiles_x(&s->view),
                                sizeof *a->tile_counts),
        .ranks = made_own(c, b.pairs, sizeof *a->ranks),
        .n_pairs = bound ? made_own(c, 2, sizeof *a->n_pairs) : NULL};
    return true;
}

/* What a camera sees, in no order, with room for `spare` more, which would be listed everywhere if
 * anybody looked at them. Some share their depths, or half of them do, and of those some their
 * source rows. */
static void scatter(const scene *s, uint64_t spare, bool equal, kiln_tile_lists_args *a,
                    made_call *c)
{
    const uint64_t n = s->visible, step = n % 7919 ? 7919 : 1; /* a prime */
    kiln_splat2d *splats = made_own(c, n + spare, sizeof *splats);
    float *depths = made_own(c, n + spare, sizeof *depths);
    uint32_t *rows = made_own(c, n + spare, sizeof *rows);
    uint64_t *visible = made_own(c, 1, sizeof *visible);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t from = i * step % n;
        splats[i] = s->splats[from];
        depths[i] = equal && i % 2 ? 3.0f : splats[i].depth;
        rows[i] = (uint32_t)(equal ? from * 31 % 17 : UINT32_MAX - from);
    }
    for (uint64_t i = n; i < n + spare; i++) {
        splats[i] = (kiln_splat2d){
            .conic = {1e-12f, 0, 1e-12f}, .power_min = -5, .tile_x1 = 1 << 16, .tile_y1 = 1 << 16};
        depths[i] = FLT_TRUE_MIN;
    }
    *visible = n;
    *a = (kiln_tile_lists_args){.n = n + spare,
                                .n_visible = visible,
                                .splats = splats,
                                .depths = depths,
                                .source_rows = rows,
                                .view = &s->view};
}

/* Variant 0: room to spare for both, 1: none, and many of one depth, 2: no room for the last
 * Gaussian, 3: for half of the pairs, 4: nothing is visible; 5 to 7: the other bands. */
bool make_tile_lists(scene *s, unsigned variant, kiln_tile_lists_args *a, made_call *c)
{
    band b;
    if (variant > 7 || !pick_band(s, variant < 5 ? 0 : variant - 4, &b)) return false;
    scatter(s, variant == 1 ? 0 : 37, variant % 3 == 1, a, c);
    if (variant == 2) *(uint64_t *)a->n_visible = a->n + 1; /* ours to write */
    if (variant == 4) *(uint64_t *)a->n_visible = 0;
    a->row0 = b.row0;
    a->row1 = b.row1;
    a->capacity = variant == 0 ? b.pairs + 1000 : variant == 3 ? b.pairs / 2 : b.pairs;
    a->tile_counts = made_own(c, (uint64_t)(b.row1 - b.row0) * kiln_view_tiles_x(&s->view),
                              sizeof *a->tile_counts);
    a->ids = made_own(c, a->capacity, sizeof *a->ids);
    a->stats = made_own(c, 3, sizeof *a->stats);
    return true;
}
