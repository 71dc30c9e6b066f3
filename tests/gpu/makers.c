#include "tests/gpu/makers.h"

#include "kernels/depth_order/depth_order_math.h"
#include "tests/gpu/call.h"
#include "tests/unit/prune_off.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void *own(made_call *c, uint64_t count, size_t elem)
{
    if (c->n_owned == MAKER_MEMORY_MAX) call_off("makers", "too many arrays");
    return c->owned[c->n_owned++] = call_memory(count, elem);
}

void made_release(made_call *c)
{
    while (c->n_owned > 0) free(c->owned[--c->n_owned]);
}

/* A scene that is there for its Gaussians, all of them numbers. */
static bool is_finite_cloud(const scene *s)
{
    return !s->spec.of_views && s->spec.kind != SCENE_HOSTILE && s->spec.kind != SCENE_OPACITIES;
}

/* ---- points ---------------------------------------------------------------------------------------------------------- */

/* The k of a call of knn and knn_join; 0: this scene has no such call. Under KILN_GPU_SMALL one for each search kernel, of scenes
 * that differ: their blocks sort samples in shared memory however few points there are, and racecheck takes three seconds a call.
 */
static uint32_t neighbours_asked(const scene *s, unsigned variant, const uint32_t ks[5])
{
    static const uint32_t of_kernels[] = {3, 7, 32};
    const scene_kind kind = s->spec.kind;
    if (!is_finite_cloud(s)) return 0;
    if (!scenes_are_small()) {
        if (variant > 1 && s->n > 5000 && kind > SCENE_EQUAL) return 0; /* the time it takes */
        return variant < 5 ? ks[variant] : 0;
    }
    if (kind == SCENE_RANDOM) return variant < 3 && s->n > 1 && s->n != 257 ? of_kernels[variant] : 0;
    if (kind == SCENE_EQUAL || kind == SCENE_LARGE) return variant == 0 && s->n == 257 ? ks[0] : 0;
    return variant == 0 && kind == SCENE_CLUSTERED && s->n > 257 ? ks[0] : 0;
}

/* Spread over many depths, over three and over one; rows ascending, descending and mixed, some of them equal, so that ties show. */
static bool make_depth_order(const scene *s, unsigned variant, kiln_depth_order_args *a, made_call *c)
{
    if (variant > 3 || !is_finite_cloud(s) || (scenes_are_small() && s->spec.kind > SCENE_EQUAL)) return false;
    float *depths = own(c, s->n, sizeof *depths);
    uint32_t *rows = own(c, s->n, sizeof *rows);
    for (uint64_t i = 0; i < s->n; i++) {
        const float d = fabsf(s->means[i]), one_of_three = (float)(1 + i % 3);
        depths[i] = variant == 2 ? one_of_three : variant == 3 ? 7.5f : d > 0.0f ? d : FLT_TRUE_MIN;
        rows[i] = (uint32_t)(variant == 0 ? i : variant == 3 ? i * 2654435761u % (s->n / 2 + 1) : UINT32_MAX - 1 - i);
    }
    *a = (kiln_depth_order_args){.n = s->n, .depths = depths, .source_rows = rows, .order = own(c, s->n, sizeof *a->order)};
    return true;
}

static bool make_initial(const scene *s, unsigned variant, kiln_initial_args *a, made_call *c)
{
    if (variant > 1 || s->spec.of_views) return false;
    *a = (kiln_initial_args){.n = s->n,
                             .spacing2 = s->spacing2,
                             .rgb = s->rgb,
                             .opacity = variant ? 0.9f : 0.1f,
                             .fallback_log_scale = -3.5f,
                             .log_scales = own(c, 3 * s->n, sizeof(float)),
                             .quats = own(c, 4 * s->n, sizeof(float)),
                             .opacity_logits = own(c, s->n, sizeof(float)),
                             .sh0 = own(c, 3 * s->n, sizeof(float)),
                             .n_fallback = own(c, 1, sizeof(uint64_t))};
    return true;
}

static bool make_knn(const scene *s, unsigned variant, kiln_knn_args *a, made_call *c)
{
    static const uint32_t ks[] = {3, 1, 7, 32, 3};
    const uint32_t k = neighbours_asked(s, variant, ks);
    if (k == 0) return false;
    *a = (kiln_knn_args){.n = s->n, .k = k, .means = s->means};
    if (variant != 4) a->spacing2 = own(c, s->n, sizeof(float));
    if (variant > 1) a->best = own(c, s->n * a->k, sizeof(float));
    return true;
}

/* Two fifths ask the others; some have found much, some little, every seventh nothing. */
static bool make_knn_join(const scene *s, unsigned variant, kiln_knn_join_args *a, made_call *c)
{
    static const uint32_t ks[] = {3, 3, 1, 7, 32};
    const uint64_t m = s->n * 2 / 5, n = s->n - m;
    const uint32_t k = neighbours_asked(s, variant, ks);
    if (k == 0) return false;
    float *queries = own(c, 3 * m, sizeof *queries), *means = own(c, 3 * n, sizeof *means), *best = own(c, k * m, sizeof *best);
    for (uint64_t axis = 0; axis < 3; axis++) {
        memcpy(queries + axis * m, s->means + axis * s->n, m * sizeof *queries);
        memcpy(means + axis * n, s->means + axis * s->n + m, n * sizeof *means);
    }
    for (uint64_t i = 0; i < m; i++)
        for (uint32_t j = 0; j < k; j++)
            best[j * m + i] = variant == 0 || i % 7 == 0 ? FLT_MAX : 1e-4f * (float)(i % 100) * (float)(j + 1);
    *a = (kiln_knn_join_args){.n = n, .n_queries = m, .k = k, .means = means, .queries = queries, .best = best};
    return true;
}

static bool make_ranks(const scene *s, unsigned variant, kiln_ranks_args *a, made_call *c)
{
    if (variant > 2 || !is_finite_cloud(s)) return false;
    uint64_t *counts = own(c, KILN_RANK_BINS, sizeof *counts);
    const float *values = variant == 2 ? s->log_scales : s->means;
    for (uint64_t i = 0; i < KILN_RANK_BINS; i++) counts[i] = i * 65537 % 1000 << (i % 3 * 20); /* they are added to */
    *a = (kiln_ranks_args){.n = 3 * s->n, .values = values, .pass = variant > 0, .counts = counts};
    if (variant > 0) a->high = s->n > 0 ? kiln_rank_key(values[s->n / 2]) >> 16 : 7;
    return true;
}

static bool make_spatial_order(const scene *s, unsigned variant, kiln_spatial_order_args *a, made_call *c)
{
    static const struct {
        double centre[3], half;
    } cubes[] = {{{0, 0, 0}, 8}, {{0.5, -0.25, 1.0 / 3.0}, 0.25}, {{1e6, 0, -3e-9}, 0x1p-20}, {{0, 0, 0}, 0x1p100}};
    if (variant >= sizeof cubes / sizeof *cubes || !is_finite_cloud(s)) return false;
    *a = (kiln_spatial_order_args){.n = s->n,
                                   .means = s->means,
                                   .half = cubes[variant].half,
                                   .order = own(c, s->n, sizeof *a->order),
                                   .codes = own(c, s->n, sizeof *a->codes)};
    memcpy(a->centre, cubes[variant].centre, sizeof a->centre);
    return true;
}

/* ---- palettes -------------------------------------------------------------------------------------------------------- */

/* What a variant of the three operations works on. distinct: values of the rows' seed, so at most as many rows differ; noise 0:
 * the rows of a group are equal. Few entries and very many, whole cells that are equal, more entries than rows that differ, one
 * value a row (means meet, and entries are left without rows), rows at the limit. */
typedef struct {
    uint32_t d, p;
    uint64_t groups;
    int spread, noise;
} palette_spec;

static bool palette_spec_of(const scene *s, unsigned variant, palette_spec *out)
{
    const uint32_t n = (uint32_t)s->n;
    const palette_spec specs[] = {{45, n / 4 + 1, n / 60 + 1, 700, 250},
                                  {24, n / 3 + 1, n / 5 + 1, 1800, 0},
                                  {9, n / 2 + 1, 40, 300, 60},
                                  {1, n / 3 + 1, n, 1000, 700},
                                  {48, 70, 7, 2047, 0},
                                  {7, 1, 5, 1500, 500},
                                  {2, 300, 90, 1000, 3}};
    if (variant >= sizeof specs / sizeof *specs || s->spec.kind > SCENE_CLUSTERED || s->spec.of_views || n == 0) return false;
    if (n > 5000 && (variant > 0 || s->spec.kind != SCENE_RANDOM)) return false; /* the time it takes */
    *out = specs[variant];
    if (s->spec.kind == SCENE_CLUSTERED) out->noise /= 4;
    return true;
}

static int16_t *make_palette_rows(const palette_spec *p, uint64_t n, made_call *c)
{
    int16_t *rows = own(c, n * p->d, sizeof *rows);
    uint64_t state = n;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t group = i * 2654435761u % p->groups + 1;
        for (uint32_t k = 0; k < p->d; k++) {
            group = group * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
            state = state * 6364136223846793005u + 1442695040888963407u;
            const int64_t middle = (int64_t)(group >> 33) % (2 * p->spread + 1) - p->spread;
            const int64_t v = middle + (p->noise > 0 ? (int64_t)(state >> 33) % (2 * p->noise + 1) - p->noise : 0);
            rows[i * p->d + k] = (int16_t)(v > KILN_PALETTE_LIMIT    ? KILN_PALETTE_LIMIT
                                           : v < -KILN_PALETTE_LIMIT ? -KILN_PALETTE_LIMIT
                                                                     : v);
        }
    }
    return rows;
}

static bool make_palette_train(const scene *s, unsigned variant, kiln_palette_train_args *a, made_call *c)
{
    palette_spec p;
    if (!palette_spec_of(s, variant, &p)) return false;
    *a = (kiln_palette_train_args){.n = s->n,
                                   .seed = variant,
                                   .d = p.d,
                                   .p = p.p,
                                   .rows = make_palette_rows(&p, s->n, c),
                                   .centroids = own(c, (uint64_t)p.p * p.d, sizeof *a->centroids),
                                   .n_entries = own(c, 1, sizeof *a->n_entries)};
    return true;
}

/* The rows themselves as entries. */
static bool make_palette_index(const scene *s, unsigned variant, kiln_palette_index_args *a, made_call *c)
{
    palette_spec p;
    if (!palette_spec_of(s, variant, &p)) return false;
    *a = (kiln_palette_index_args){.d = p.d,
                                   .p = (uint32_t)s->n,
                                   .centroids = make_palette_rows(&p, s->n, c),
                                   .index = own(c, kiln_palette_index_words((uint32_t)s->n, p.d), sizeof *a->index)};
    return true;
}

static bool make_palette_assign(const scene *s, unsigned variant, kiln_palette_assign_args *a, made_call *c)
{
    static const kiln_exec cpu = {.device = -1, .threads = 2};
    palette_spec p;
    if (!palette_spec_of(s, variant, &p)) return false;
    int16_t *centroids = make_palette_rows(&p, p.p, c);
    for (uint64_t i = 0; i < (uint64_t)p.p * p.d; i += 3) centroids[i] = (int16_t)(centroids[i] / 2);
    kiln_palette_index_args index = {
        .d = p.d, .p = p.p, .centroids = centroids, .index = own(c, kiln_palette_index_words(p.p, p.d), sizeof *index.index)};
    call_now(kiln_ops_cpu_baseline(), &cpu, KILN_OP_palette_index, &index);
    *a = (kiln_palette_assign_args){.n = s->n,
                                    .d = p.d,
                                    .p = p.p,
                                    .rows = make_palette_rows(&p, s->n, c),
                                    .centroids = centroids,
                                    .index = index.index,
                                    .labels = own(c, s->n, sizeof *a->labels),
                                    .distances = variant == 1 ? NULL : own(c, s->n, sizeof *a->distances)};
    return true;
}

/* ---- lenses ---------------------------------------------------------------------------------------------------------- */

/* Each variant a model of another kind, with its own channels, filter and target: of the photo's size, smaller, wider and flatter,
 * one axis alone. Every other photo has a mask. */
static bool make_undistort(const scene *s, unsigned variant, kiln_undistort_args *a, made_call *c)
{
    static const struct {
        int model;
        uint32_t channels, filter, levels, width, height; /* of the target */
        double params[16];
    } calls[] = {
        {4, 3, KILN_UNDISTORT_BILINEAR, 255, 61, 45, {60, 61, 32.5, 23.5, -0.2, 0.05, 0.01, -0.02}},
        {5, 4, KILN_UNDISTORT_LANCZOS, 0, 90, 70, {40, 41, 32, 24, 0.02, -0.01, 0.003, -0.0005}},
        {6, 1, KILN_UNDISTORT_BILINEAR, 0, 64, 48, {60, 61, 32.5, 23.5, 0.1, 0.02, 0.001, -0.002, 0.005, 0.12, 0.01, 0.002}},
        {7, 3, KILN_UNDISTORT_LANCZOS, 255, 64, 30, {45, 46, 32, 24, 0.9}},
        {10, 2, KILN_UNDISTORT_BILINEAR, 0, 130, 31, {40, 41, 32, 24, 0.02, -0.01, 0.001, -0.002, 0.003, -0.0005, 0.0007, -0.0009}},
        {11,
         3,
         KILN_UNDISTORT_BILINEAR,
         65535,
         64,
         77,
         {40, 41, 32, 24, .02, -.01, .003, -5e-4, 2e-4, -1e-4, .001, -.002, 7e-4, -9e-4, 3e-4, 4e-4}},
        {13, 3, KILN_UNDISTORT_LANCZOS, 0, 50, 50, {60, 61, 32, 24, -0.2}},
        {16, 4, KILN_UNDISTORT_BILINEAR, 0, 63, 49, {45, 46, 32, 24, 0.55, 1.1}},
        {17, 3, KILN_UNDISTORT_BILINEAR, 0, 20, 20, {64, 48}},
        {2, 3, KILN_UNDISTORT_BILINEAR, 255, 64, 48, {40, 32, 24, -0.9}}, /* folds the picture back within it */
    };
    enum { WIDTH = 64, HEIGHT = 48 };
    kiln_error err;
    if (variant >= sizeof calls / sizeof *calls || s->spec.kind != SCENE_RANDOM || s->n == 0 || s->spec.of_views) return false;
    *a = (kiln_undistort_args){
        .channels = calls[variant].channels, .filter = calls[variant].filter, .levels = calls[variant].levels};
    if (kiln_lens_init(&a->lens, calls[variant].model, calls[variant].params, WIDTH, HEIGHT, &err) != KILN_OK)
        call_off("makers", err.msg);
    a->target = kiln_lens_target(&a->lens, 0.5);
    a->target.width = calls[variant].width;
    a->target.height = calls[variant].height;
    float *photo = own(c, (uint64_t)WIDTH * HEIGHT * a->channels, sizeof *photo);
    uint8_t *mask = own(c, (uint64_t)WIDTH * HEIGHT, 1);
    for (uint64_t i = 0; i < (uint64_t)WIDTH * HEIGHT * a->channels; i++) photo[i] = (float)(i * 2654435761u % 256) / 255.0f;
    for (uint64_t i = 0; i < (uint64_t)WIDTH * HEIGHT; i++) mask[i] = i / 7 % 11 ? 255 : 0;
    const uint64_t pixels = (uint64_t)a->target.width * a->target.height;
    a->photo = photo;
    a->photo_mask = variant % 2 ? mask : NULL;
    a->out = own(c, pixels * a->channels, sizeof *a->out);
    a->mask = own(c, pixels, 1);
    return true;
}

/* ---- prune ----------------------------------------------------------------------------------------------------------- */

static void set_rules(kiln_prune_rules *r, unsigned variant)
{
    const bool drops = variant == 2;
    *r = (kiln_prune_rules){.min_opacity = -5.5f,
                            .crop_box = {-4, -4, -4, 4, 4, 8},
                            .crop_sphere = {0, 0, 1, 6},
                            .outlier = 0.09f,
                            .min_scale = -8,
                            .max_scale = 1,
                            .max_extent = 0.5f,
                            .max_spacing = {4, variant ? 1e-4f : 0.0f},
                            .max_needle = 10};
    r->min_scale_policy = r->max_scale_policy = r->max_extent_policy = r->max_spacing_policy = r->max_needle_policy =
        drops ? KILN_PRUNE_DROP : KILN_PRUNE_CLAMP;
    if (variant == 3) /* every rule off */
        *r = prune_rules_off();
}

static bool make_prune(const scene *s, unsigned variant, kiln_prune_args *a, made_call *c)
{
    if (variant > 3 || s->spec.of_views) return false;
    uint8_t *drop = own(c, s->n, 1);
    uint64_t(*counts)[2] = own(c, KILN_PRUNE_RULES, sizeof *counts);
    for (uint64_t i = 0; i < s->n; i++)
        drop[i] = i % 13 == 5 ? KILN_PRUNE_NAMED : i % 17 == 3 ? KILN_PRUNE_MERGED : KILN_PRUNE_STAY;
    for (uint64_t r = 0; r < KILN_PRUNE_RULES; r++) counts[r][0] = 1000 + r, counts[r][1] = r << 40;
    set_rules(&c->rules, variant);
    *a = (kiln_prune_args){.n = s->n,
                           .means = s->means,
                           .log_scales = s->log_scales,
                           .opacity_logits = s->opacity_logits,
                           .spacing2 = variant == 1 ? NULL : s->spacing2,
                           .drop = variant == 0 ? NULL : drop,
                           .rules = &c->rules,
                           .keep = own(c, s->n, 1),
                           .log_scales_out = own(c, 3 * s->n, sizeof(float)),
                           .counts = counts};
    return true;
}

/* ---- pictures -------------------------------------------------------------------------------------------------------- */

/* Variant 0: full colour; 1: of a lower degree; 2: none at all; 1 and 2 tell what depth_order asks for. */
/* All columns of all rows, of some, an odd number of columns, and none. */
static bool make_sh_halves(const scene *s, unsigned variant, kiln_sh_halves_args *a, made_call *c)
{
    static const uint32_t columns[] = {72, 72, 45, 0};
    if (variant >= sizeof columns / sizeof *columns || s->spec.of_views) return false;
    const uint64_t first = variant == 1 ? s->n / 3 : 0, words = kiln_sh_words(columns[variant]) * s->n;
    *a = (kiln_sh_halves_args){.rows = s->n,
                               .first = first,
                               .n = variant == 1 ? s->n / 2 : s->n,
                               .columns = columns[variant],
                               .shN = s->shN,
                               .halves = own(c, words, sizeof *a->halves)};
    for (uint64_t i = 0; i < words; i++) a->halves[i] = (uint32_t)(i * 2654435761u); /* other rows stay as they are */
    return true;
}

/* Variants 3 and 4 with colours in half precision, from floats and from halves. */
static bool make_project(const scene *s, unsigned variant, kiln_project_args *a, made_call *c)
{
    static const kiln_exec cpu = {.device = -1, .threads = 2};
    kiln_sh_halves_args halves;
    if (variant > 4 || (variant == 4 && !make_sh_halves(s, 0, &halves, c))) return false;
    if (variant == 4) call_now(kiln_ops_cpu_baseline(), &cpu, KILN_OP_sh_halves, &halves);
    uint32_t *source_rows = own(c, s->n, sizeof *source_rows);
    for (uint64_t i = 0; i < s->n; i++) source_rows[i] = (uint32_t)(3 * (s->n - i));
    *a = (kiln_project_args){.n = s->n,
                             KILN_PROJECT_PLANES(s),
                             .sh0 = variant != 2 ? s->sh0 : NULL,
                             .shN = variant != 2 && variant != 4 ? s->shN : NULL,
                             .sh_halves = variant == 4 ? halves.halves : NULL,
                             .half_sh = variant > 2,
                             .sh_degree = variant == 1   ? (uint32_t)(s->spec.kind % 4)
                                          : variant == 2 ? 0
                                                         : SCENE_SH_DEGREE,
                             .view = &s->view,
                             .profile = s->spec.profile,
                             .antialiased = s->spec.antialiased,
                             .splats = own(c, s->n, sizeof *a->splats),
                             .n_visible = own(c, 1, sizeof(uint64_t)),
                             .box_pairs = variant != 1 ? own(c, 1, sizeof(uint64_t)) : NULL,
                             .source_rows = variant > 0 ? source_rows : NULL,
                             .depths = variant > 0 ? own(c, s->n, sizeof *a->depths) : NULL,
                             .rows = variant > 0 ? own(c, s->n, sizeof *a->rows) : NULL};
    return true;
}

/* What the camera sees; false where that takes too long. */
static bool look_quickly(scene *s)
{
    if (s->n > 5000 && s->spec.kind != SCENE_RANDOM && s->spec.kind != SCENE_EXPLODED) return false;
    if (!s->row_pairs) scene_look(s);
    return true;
}

typedef struct {
    uint32_t row0, row1;
    uint64_t pairs;
} band;

/* Variant 0: the whole picture, 1: its last tile row, 2: without its borders, 3: nothing of it; as far as that is not
 * more than a test can take. */
static bool pick_band(scene *s, unsigned variant, band *b)
{
    enum { PIXELS = 640 * 368, PAIRS = 200000 };
    const uint32_t rows = kiln_view_tiles_y(&s->view);
    if (variant > 3 || (variant > 0 && rows < 3)) return false;
    if (!look_quickly(s)) return false;
    *b = (band){.row0 = variant == 1 ? rows - 1 : variant == 2 ? 1 : 0, .row1 = variant == 2 ? rows - 1 : variant == 3 ? 0 : rows};
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

static bool make_tile_pairs_count(scene *s, unsigned variant, kiln_tile_pairs_count_args *a, made_call *c)
{
    band b;
    if (!pick_band(s, variant, &b)) return false;
    if (variant == 0) b = (band){.row1 = kiln_view_tiles_y(&s->view)};
    *a = (kiln_tile_pairs_count_args){.n = s->visible,
                                      .splats = s->splats,
                                      .view = &s->view,
                                      .row0 = b.row0,
                                      .row1 = b.row1,
                                      .row_pairs = own(c, b.row1 - b.row0, sizeof *a->row_pairs)};
    return true;
}

/* Variants 4 and 5: the first one's band with a bound instead of a count, too large and too small. */
static bool make_tile_pairs_emit(scene *s, unsigned variant, kiln_tile_pairs_emit_args *a, made_call *c)
{
    band b;
    const bool bound = variant == 4 || variant == 5;
    if (!pick_band(s, bound ? 0 : variant, &b)) return false;
    if (bound) b.pairs = variant == 4 ? b.pairs + 1000 : b.pairs / 2;
    *a = (kiln_tile_pairs_emit_args){.n = s->visible,
                                     .splats = s->splats,
                                     .view = &s->view,
                                     .row0 = b.row0,
                                     .row1 = b.row1,
                                     .capacity = b.pairs,
                                     .tile_counts =
                                         own(c, (uint64_t)(b.row1 - b.row0) * kiln_view_tiles_x(&s->view), sizeof *a->tile_counts),
                                     .ranks = own(c, b.pairs, sizeof *a->ranks),
                                     .n_pairs = bound ? own(c, 2, sizeof *a->n_pairs) : NULL};
    return true;
}

/* What a camera sees, in no order, with room for `spare` more, which would be listed everywhere if anybody looked at them. Some
 * share their depths, or half of them do, and of those some their source rows. */
static void scatter(const scene *s, uint64_t spare, bool equal, kiln_tile_lists_args *a, made_call *c)
{
    const uint64_t n = s->visible, step = n % 7919 ? 7919 : 1; /* a prime */
    kiln_splat2d *splats = own(c, n + spare, sizeof *splats);
    float *depths = own(c, n + spare, sizeof *depths);
    uint32_t *rows = own(c, n + spare, sizeof *rows);
    uint64_t *visible = own(c, 1, sizeof *visible);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t from = i * step % n;
        splats[i] = s->splats[from];
        depths[i] = equal && i % 2 ? 3.0f : splats[i].depth;
        rows[i] = (uint32_t)(equal ? from * 31 % 17 : UINT32_MAX - from);
    }
    for (uint64_t i = n; i < n + spare; i++) {
        splats[i] = (kiln_splat2d){.conic = {1e-12f, 0, 1e-12f}, .power_min = -5, .tile_x1 = 1 << 16, .tile_y1 = 1 << 16};
        depths[i] = FLT_TRUE_MIN;
    }
    *visible = n;
    *a = (kiln_tile_lists_args){
        .n = n + spare, .n_visible = visible, .splats = splats, .depths = depths, .source_rows = rows, .view = &s->view};
}

/* Variant 0: room to spare for both, 1: none, and many of one depth, 2: no room for the last Gaussian, 3: for half of the pairs,
 * 4: nothing is visible; 5 to 7: the other bands. */
static bool make_tile_lists(scene *s, unsigned variant, kiln_tile_lists_args *a, made_call *c)
{
    band b;
    if (variant > 7 || !pick_band(s, variant < 5 ? 0 : variant - 4, &b)) return false;
    scatter(s, variant == 1 ? 0 : 37, variant % 3 == 1, a, c);
    if (variant == 2) *(uint64_t *)a->n_visible = a->n + 1; /* ours to write */
    if (variant == 4) *(uint64_t *)a->n_visible = 0;
    a->row0 = b.row0;
    a->row1 = b.row1;
    a->capacity = variant == 0 ? b.pairs + 1000 : variant == 3 ? b.pairs / 2 : b.pairs;
    a->tile_counts = own(c, (uint64_t)(b.row1 - b.row0) * kiln_view_tiles_x(&s->view), sizeof *a->tile_counts);
    a->ids = own(c, a->capacity, sizeof *a->ids);
    a->stats = own(c, 3, sizeof *a->stats);
    return true;
}

/* Pixels behind a slab: of three kinds, in runs that end anywhere: drawn on, stopped, and as they are before the first one. */
static kiln_raster_state *make_state(made_call *c, uint64_t pixels)
{
    kiln_raster_state *state = own(c, pixels, sizeof *state);
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
static bool make_whole_raster(scene *s, unsigned variant, kiln_raster_args *a, made_call *c)
{
    static const kiln_exec cpu = {.device = -1, .threads = 2};
    kiln_tile_pairs_emit_args lists;
    if (variant > 4 || !make_tile_pairs_emit(s, variant, &lists, c)) return false;
    call_now(kiln_ops_cpu_baseline(), &cpu, KILN_OP_tile_pairs_emit, &lists);
    if (lists.n_pairs)
        for (uint64_t i = lists.n_pairs[0]; i < lists.capacity; i++) lists.ranks[i] = UINT32_MAX; /* names nothing */
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
    a->rgba = own(c, 4 * kiln_raster_pixels(a), sizeof *a->rgba);
    if (variant != 1) a->depth = own(c, kiln_raster_pixels(a), sizeof *a->depth);
    return true;
}

/* From variant WHOLE on a part of the rows that have lists: in the middle, the first, of a slab the last. */
static bool make_raster(scene *s, unsigned variant, kiln_raster_args *a, made_call *c)
{
    enum { WHOLE = 5, PARTS = 3 };
    if (variant >= WHOLE + PARTS || !make_whole_raster(s, variant < WHOLE ? variant : variant - WHOLE, a, c)) return false;
    const uint32_t rows = a->row1 - a->row0, part = variant - WHOLE;
    if (variant < WHOLE || rows == 0) return true;
    a->part0 = part == 0 ? a->row0 + rows / 3 : part == 1 ? a->row0 : a->row1 - (rows + 1) / 2;
    a->part1 = part == 1 ? a->row0 + (rows + 1) / 2 : part == 0 ? a->row1 - rows / 4 : a->row1;
    return true;
}

/* Variants as those of raster; sums go on from what is there. */
static bool make_blend_weights(scene *s, unsigned variant, kiln_blend_weights_args *a, made_call *c)
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
                                   .weights = own(c, lists.n, sizeof *a->weights),
                                   .state = lists.state};
    for (uint64_t i = 0; i < lists.n; i++) a->weights[i] = i % 3 * UINT32_MAX;
    return true;
}

/* Numbers of both signs, from 2^-20 to 2^20 and some of them zero, each made from its place. */
static float *make_signed(made_call *c, uint64_t n)
{
    float *to = own(c, n, sizeof *to);
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t mixed = (uint32_t)(i * 2654435761u) >> 8;
        to[i] = mixed % 11 ? ldexpf((float)(mixed % 2001) - 1000.0f, (int)(mixed / 2001 % 41) - 30) : 0.0f;
    }
    return to;
}

/* Of the pictures and lists of make_raster. Variant 1: two thirds of the Gaussians are frozen; hostile residuals in the last. */
static bool make_raster_backward(scene *s, unsigned variant, kiln_raster_backward_args *a, made_call *c)
{
    static const kiln_exec cpu = {.device = -1, .threads = 2};
    kiln_raster_args r;
    if (variant == 2 || !make_whole_raster(s, variant, &r, c)) return false;
    for (int k = 0; k < 3; k++) r.background[k] = 0;
    call_now(kiln_ops_cpu_baseline(), &cpu, KILN_OP_raster, &r);
    const uint64_t floats = 4 * kiln_raster_pixels(&r), n_rows = variant == 1 ? s->n / 3 : s->n;
    float *target = own(c, floats, sizeof *target);
    for (uint64_t i = 0; i < floats; i++) target[i] = (float)(i * 2654435761u % 1009) / 1009;
    if (variant == 4)
        for (uint64_t i = 0; i < floats; i += 101) target[i] = i % 3 ? 1e30f : -3e-20f;
    *a = (kiln_raster_backward_args){.n = r.n,
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
                                     .gradients = own(c, KILN_BACKWARD_PLANES * n_rows, sizeof *a->gradients)};
    return true;
}

static bool make_project_backward(scene *s, unsigned variant, kiln_project_backward_args *a, made_call *c)
{
    if (variant > 1 || s->n == 0 || !look_quickly(s)) return false;
    const uint32_t degree = variant ? 1 : SCENE_SH_DEGREE;
    *a = (kiln_project_backward_args){.n = s->n,
                                      .n_splats = s->visible,
                                      KILN_PROJECT_PLANES(s),
                                      .sh_degree = degree,
                                      .view = &s->view,
                                      .profile = s->spec.profile,
                                      .antialiased = s->spec.antialiased,
                                      .splats = s->splats,
                                      .drawn = make_signed(c, KILN_BACKWARD_PLANES * s->n),
                                      .gradients = own(c, kiln_gradient_planes(degree) * s->n, sizeof *a->gradients)};
    return true;
}

static float *make_copy(made_call *c, const float *from, uint64_t n)
{
    float *to = own(c, n, sizeof *to);
    memcpy(to, from, n * sizeof *to);
    return to;
}

/* The first step and one in the middle. */
static bool make_adam(const scene *s, unsigned variant, kiln_adam_args *a, made_call *c)
{
    static const kiln_adam_steps steps = {.03f, .02f, .01f, .05f, .02f, .004f};
    if (variant > 1 || s->spec.of_views) return false;
    const uint32_t degree = variant ? 0 : SCENE_SH_DEGREE;
    const uint64_t n = s->n, values = kiln_gradient_planes(degree) * n;
    *a = (kiln_adam_args){.n = n,
                          .sh_degree = degree,
                          .means = make_copy(c, s->means, 3 * n),
                          .log_scales = make_copy(c, s->log_scales, 3 * n),
                          .quats = make_copy(c, s->quats, 4 * n),
                          .opacity_logits = make_copy(c, s->opacity_logits, n),
                          .sh0 = make_copy(c, s->sh0, 3 * n),
                          .shN = make_copy(c, s->shN, 3 * (((uint64_t)degree + 1) * (degree + 1) - 1) * n),
                          .gradients = make_signed(c, values),
                          .m = own(c, values, sizeof *a->m),
                          .v = own(c, values, sizeof *a->v),
                          .weight = variant ? 0.3f : 1.0f,
                          .least = variant ? 0.03f : 1e-15f};
    for (uint64_t i = 0; variant && i < values; i++) {
        a->m[i] = a->gradients[values - 1 - i] / 3;
        a->v[i] = a->gradients[i] * a->gradients[i] / 7;
    }
    kiln_adam_at(a, &steps, variant ? 37 : 0, 100);
    return true;
}

/* What a scene's camera sees, as it comes from project: room for all rows, the visible ones first. Variant 0: the first chunk, with
 * room to spare; 1: behind five others, with room for half; 2: no room is left. */
static bool make_visible_gather(scene *s, unsigned variant, kiln_visible_gather_args *a, made_call *c)
{
    if (variant > 2 || s->n == 0 || !look_quickly(s)) return false;
    const uint64_t room[] = {s->visible + 3, 5 + s->visible / 2, 4};
    kiln_splat2d *splats = own(c, s->n, sizeof *splats);
    uint64_t *visible = own(c, 1, sizeof *visible), *total = own(c, 1, sizeof *total);
    uint32_t *source_rows = own(c, s->n, sizeof *source_rows);
    memcpy(splats, s->splats, s->visible * sizeof *splats);
    *visible = s->visible;
    *total = variant ? 5 : 0;
    for (uint64_t i = 0; i < s->n; i++) source_rows[i] = (uint32_t)(7 * i + 1);
    *a = (kiln_visible_gather_args){.n = s->n,
                                    .splats = splats,
                                    .n_visible = visible,
                                    .source_rows = source_rows,
                                    .chunk = 3 + variant,
                                    .capacity = room[variant],
                                    .total = total,
                                    .all = own(c, room[variant], sizeof *a->all),
                                    .depths = own(c, room[variant], sizeof *a->depths),
                                    .rows = own(c, room[variant], sizeof *a->rows),
                                    .chunks = own(c, room[variant], sizeof *a->chunks)};
    return true;
}

/* The tiles that ask for more: a checkerboard, or all; summed as visible.h says. */
static const uint32_t *make_live(made_call *c, const kiln_view *view, bool all)
{
    const uint64_t wide = (uint64_t)kiln_view_tiles_x(view) + 1, high = (uint64_t)kiln_view_tiles_y(view) + 1;
    uint32_t *live = own(c, wide * high, sizeof *live);
    for (uint64_t y = 1; y < high; y++)
        for (uint64_t x = 1; x < wide; x++)
            live[y * wide + x] = live[(y - 1) * wide + x] + live[y * wide + x - 1] - live[(y - 1) * wide + x - 1] +
                                 (all || (x / 3 + y / 2) % 2 == 0);
    return live;
}

/* Variant 0: the middle half in depth, some tiles; 1: of the depth in the middle those with higher rows, all tiles; 2: none, as the
 * slab is empty. */
static bool make_visible_window(scene *s, unsigned variant, kiln_visible_window_args *a, made_call *c)
{
    kiln_visible_gather_args g;
    if (variant > 2 || !make_visible_gather(s, 0, &g, c) || s->visible < 4) return false;
    const kiln_splat2d *from = &s->splats[s->visible / 4], *middle = &s->splats[s->visible / 2],
                       *to = &s->splats[s->visible / 4 * 3];
    const uint64_t keys[][2] = {
        {kiln_depth_key(from->depth, 0), kiln_depth_key(to->depth, 0)},
        {kiln_depth_key(middle->depth, g.source_rows[middle->row]), kiln_depth_key(middle->depth, UINT32_MAX)},
        {1, 2}};
    *a = (kiln_visible_window_args){.n = g.n,
                                    .splats = g.splats,
                                    .n_visible = g.n_visible,
                                    .source_rows = g.source_rows,
                                    .window = {.from = keys[variant][0],
                                               .to = keys[variant][1],
                                               .tiles_x = kiln_view_tiles_x(&s->view),
                                               .tiles_y = kiln_view_tiles_y(&s->view),
                                               .live = make_live(c, &s->view, variant == 1)},
                                    .kept = own(c, g.n, sizeof *a->kept),
                                    .n_kept = own(c, 1, sizeof *a->n_kept)};
    return true;
}

/* Backwards, and all of them the same one; backwards without chunks. */
static bool make_visible_order(scene *s, unsigned variant, kiln_visible_order_args *a, made_call *c)
{
    if (variant > 2 || !look_quickly(s)) return false;
    const uint64_t n = s->visible;
    uint32_t *chunks = own(c, n, sizeof *chunks), *order = own(c, n, sizeof *order);
    for (uint64_t i = 0; i < n; i++) {
        chunks[i] = (uint32_t)(i / 3);
        order[i] = (uint32_t)(variant == 1 ? n / 2 : n - 1 - i);
    }
    *a = (kiln_visible_order_args){.n = n,
                                   .splats = s->splats,
                                   .chunks = variant < 2 ? chunks : NULL,
                                   .order = order,
                                   .ordered = own(c, n, sizeof *a->ordered),
                                   .ordered_chunks = variant < 2 ? own(c, n, sizeof *a->ordered_chunks) : NULL,
                                   .ordered_rows = own(c, n, sizeof *a->ordered_rows)};
    return true;
}

/* A wave with some noise on it: cheap, and neither flat nor random. */
static void fill_picture(float *out, uint64_t floats, float noise, float level)
{
    uint64_t state = floats;
    for (uint64_t i = 0; i < floats; i++) {
        state = state * 6364136223846793005ull + 1442695040888963407ull; /* Knuth, MMIX */
        const float wave = (float)(i % 301) / 301.0f;
        out[i] = level + wave + noise * ((float)(state >> 40) * 0x1p-24f - 0.5f);
    }
}

static uint8_t *make_mask(made_call *c, uint32_t width, uint32_t height, bool some)
{
    uint8_t *mask = own(c, (uint64_t)width * height, 1);
    for (uint32_t y = 0; some && y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            mask[(uint64_t)y * width + x] = (x / 23 + y / 9) % 3 != 0 && (x + y) % 11 != 0 ? 255 : 0;
    return mask;
}

/* Variant 0: two pictures that differ; 1: the same one twice; 2: out of range, rows with margins, some values no numbers; 3: a
 * mask of squares and single pixels; 4: an empty one. */
static bool make_metrics(const scene *s, unsigned variant, kiln_metrics_args *a, made_call *c)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, FLT_TRUE_MIN, 1.0f};
    if (variant > 4 || !s->spec.of_views || s->spec.kind != SCENE_RANDOM || s->spec.antialiased) return false;
    const uint32_t width = s->view.width, height = s->view.height, margin = variant == 2 ? 5 : 0;
    *a = (kiln_metrics_args){.width = width, .height = height, .a_row = width + margin, .b_row = width};
    a->a_step = variant == 2 ? 3 : 4;
    a->b_step = variant == 0 ? 3 : a->a_step;
    const uint64_t a_floats = kiln_metrics_floats(a->a_row, a->a_step, width, height);
    const uint64_t b_floats = kiln_metrics_floats(a->b_row, a->b_step, width, height);
    float *left = own(c, a_floats, sizeof *left), *right = own(c, b_floats, sizeof *right);
    fill_picture(left, a_floats, 0.1f * (float)s->spec.profile, variant == 2 ? -0.4f : 0.0f);
    fill_picture(right, b_floats, 0.05f * (float)s->spec.profile, 0.1f);
    if (variant == 1) memcpy(right, left, b_floats * sizeof *left);
    for (uint64_t i = 0; variant == 2 && i < a_floats; i += 37) left[i] = odd[i % 6];
    if (variant > 2) a->mask = make_mask(c, width, height, variant == 3);
    a->a = left;
    a->b = right;
    a->out = own(c, 1, sizeof *a->out);
    return true;
}

/* Whole blocks and pieces, and what ends in the first, the second and the last stripe of a block. */
static bool make_pixel_hashes(const scene *s, unsigned variant, kiln_pixel_hashes_args *a, made_call *c)
{
    enum { PIECE = KILN_PIXEL_PIECE };
    static const uint64_t pixels[] = {333, 16, 64, 65, 127, 4 * 64 * 17 + 3, PIECE - 1, PIECE, 2 * PIECE + 16, 9 * PIECE + 4099};
    const unsigned n = sizeof pixels / sizeof *pixels;
    if (!s->spec.of_views || s->spec.kind != SCENE_RANDOM) return false;
    if (variant >= (scenes_are_small() ? n - 2 : n)) return false;
    float *rgba = own(c, 4 * pixels[variant], sizeof *rgba);
    fill_picture(rgba, 4 * pixels[variant], 0.5f, 0.1f * (float)s->spec.profile);
    *a = (kiln_pixel_hashes_args){
        .pixels = pixels[variant], .rgba = rgba, .hashes = own(c, kiln_pixel_pieces(pixels[variant]), KILN_PIXEL_HASH_BYTES)};
    return true;
}

/* Channels, bits and alpha as pictures are written; some rows alone, and values that are no numbers. Four floats a pixel, and as
 * many as channels. */
static bool make_png_rows(const scene *s, unsigned variant, kiln_png_rows_args *a, made_call *c)
{
    static const struct {
        uint32_t channels, bits, step;
        bool straight, some;
    } kinds[] = {{3, 8, 4, false, false},  {4, 8, 4, true, false}, {3, 16, 4, false, true}, {4, 16, 4, true, true},
                 {1, 16, 1, false, false}, {3, 8, 3, false, true}, {4, 8, 4, false, false}, {1, 8, 4, false, true}};
    static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, FLT_TRUE_MIN, 1.0f};
    if (variant >= sizeof kinds / sizeof *kinds || !s->spec.of_views || s->spec.kind != SCENE_RANDOM) return false;
    const uint32_t width = s->view.width, height = s->view.height;
    const uint64_t floats = (uint64_t)width * height * kinds[variant].step;
    float *pixels = own(c, floats, sizeof *pixels);
    fill_picture(pixels, floats, 0.3f, -0.1f);
    for (uint64_t i = 0; i < floats; i += 13) pixels[i] = odd[i / 13 % 6];
    *a = (kiln_png_rows_args){.width = width,
                              .height = height,
                              .step = kinds[variant].step,
                              .channels = kinds[variant].channels,
                              .bits = kinds[variant].bits,
                              .straight = kinds[variant].straight,
                              .over = {0.25f, 1.0f, 0.1f},
                              .first = kinds[variant].some ? height / 3 : 0,
                              .pixels = pixels};
    a->n = kinds[variant].some ? height / 2 : height;
    a->rows = own(c, a->n * kiln_png_row_bytes(a), 1);
    return true;
}

/* All layouts; of the whole picture, and of a part of it that has odd sides. Values that are no numbers, too. */
static bool make_pixel_bytes(const scene *s, unsigned variant, kiln_pixel_bytes_args *a, made_call *c)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, FLT_TRUE_MIN, 1.0f};
    if (variant >= 2 * KILN_N_PIXEL_LAYOUTS || !s->spec.of_views || s->spec.kind != SCENE_RANDOM) return false;
    const uint32_t width = s->view.width, height = s->view.height, less = variant / KILN_N_PIXEL_LAYOUTS;
    const uint64_t floats = (uint64_t)4 * width * height;
    float *pixels = own(c, floats, sizeof *pixels);
    fill_picture(pixels, floats, 0.3f, -0.1f);
    for (uint64_t i = 0; i < floats; i += 13) pixels[i] = odd[i / 13 % 6];
    *a = (kiln_pixel_bytes_args){.width = less ? (width - 1) | 1 : width,
                                 .height = less ? (height - 1) | 1 : height,
                                 .stride = width,
                                 .layout = (kiln_pixel_layout)(variant % KILN_N_PIXEL_LAYOUTS),
                                 .pixels = pixels};
    if (less && width > 2) a->width -= 2;
    a->bytes = own(c, kiln_pixel_bytes_size(a->layout, a->width, a->height), 1);
    return true;
}

/* ---- by number --------------------------------------------------------------------------------------------------------- */

#define OP(op)                                                                                     \
    static bool make_args_of_##op(scene *s, unsigned variant, void *args, made_call *c)            \
    {                                                                                              \
        _Static_assert(sizeof(kiln_##op##_args) <= OP_ARGS_MAX, "arguments fit into a made_call"); \
        return make_##op(s, variant, args, c);                                                     \
    }
KILN_OP_MAP(OP)
#undef OP

static bool (*const makers[KILN_OP_COUNT])(scene *s, unsigned variant, void *args, made_call *c) = {
#define OP(op) make_args_of_##op,
    KILN_OP_MAP(OP)
#undef OP
};

bool make_call(kiln_op_id op, scene *s, unsigned variant, made_call *out)
{
    out->n_owned = 0;
    return makers[op](s, variant, out->args, out);
}

void make_plain(kiln_op_id op, uint64_t n, unsigned view, scene *s, made_call *out)
{
    for (int of_views = 0; of_views < 2; of_views++) {
        const scene_spec spec = {.kind = SCENE_RANDOM, .n = n, .view = view, .of_views = of_views};
        scene_make(s, &spec);
        if (make_call(op, s, 0, out)) return;
        made_release(out);
        scene_free(s);
    }
    call_off(kiln_op_name(op), "no maker makes a plain call of it");
}
