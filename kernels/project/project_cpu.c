/* project_cpu -- blocks of rows, each in structure-of-arrays form so that the compiler turns its
 * loops into vector code: cull by depth, gather what is left, outline it as the profile says,
 * gather what is visible, colour that. Where most rows of a block are visible all are coloured:
 * planes are then read as they lie, in vectors, and the others' lines are fetched anyway.
 *
 * The rows are cut into pieces, one for one thread. A piece writes its visible splats one after the
 * other from the place of its first row on (room >= n), then the pieces are moved together: the
 * output is in row order whatever the number of threads. work holds one count for each piece.
 */
#include "base/carve.h"
#include "base/checked.h"
#include "base/harmonics.h"
#include "base/minmax.h"
#include "kernels/project/project.h"
#include "kernels/project/project_math.h"
#include "kernels/math/half_math.h"
#include "kernels/project/sh_math.h"

#include <string.h>

enum {
    BLOCK = 256,
    LANES = 8 /* rows that are outlined at once */,
    LINE = 16 /* floats of a cache line */,
    PIECES_PER_THREAD = 8
};
_Static_assert(BLOCK % LANES == 0, "whole vectors");

/* One block while it is worked on: about 60 KiB, of the thread's stack. */
typedef struct {
    uint64_t first;           /* its rows */
    uint32_t rows, rows_next; /* and how many the next one has */
    uint32_t n;               /* rows that are still in */
    uint32_t row[BLOCK];
    uint32_t place[BLOCK]; /* of the visible ones, among those that are coloured */
    bool dense;            /* row[i] is first + i */
    float depth[BLOCK];
    float mean[3][BLOCK], log_scale[3][BLOCK], quat[4][BLOCK], opacity_logit[BLOCK];
    float x[BLOCK], y[BLOCK], a[BLOCK], b[BLOCK], c[BLOCK], opacity[BLOCK], power_min[BLOCK];
    int32_t tile_x0[BLOCK], tile_y0[BLOCK], tile_x1[BLOCK], tile_y1[BLOCK];
    int32_t box_x[BLOCK], box_y[BLOCK];
    int32_t visible[BLOCK];
    float basis[KILN_SH_COEFFICIENTS_MAX][BLOCK];
    float rgb[3][BLOCK];
} block;

static void cull_depth(const kiln_project_args *a, const kiln_projection *lens, uint64_t first,
                       uint32_t n, block *k)
{
    /* a copy, which no store below can change: the loop vectorises */
    const kiln_projection l = *lens;
    const float *x = a->means + first, *y = x + a->n, *z = y + a->n;
    float depth[BLOCK];
    for (uint32_t i = 0; i < n; i++) depth[i] = kiln_project_depth(&l, x[i], y[i], z[i]);
    k->first = first;
    k->rows = n;
    k->rows_next = (uint32_t)(a->n - first - n < BLOCK ? a->n - first - n : BLOCK);
    k->dense = false;
    k->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        k->row[k->n] = (uint32_t)(first + i);
        k->depth[k->n] = depth[i];
        k->n += (uint32_t)kiln_project_in_depth(&l, depth[i]);
    }
    /* outlined with the others, not looked at */
    for (uint32_t i = k->n; i % LANES != 0; i++) k->row[i] = (uint32_t)first;
}

static uint32_t whole_vectors(uint32_t n) { return (n + LANES - 1) / LANES * LANES; }

/* Asks for the rows of the next block: a plane is left after 1 KiB, too soon for the processor to
 * see that it is being read on. */
static void fetch_next(const float *plane, const block *k)
{
    const float *const next = plane + k->first + k->rows;
    for (uint32_t i = 0; i < k->rows_next; i += LINE) __builtin_prefetch(next + i);
}

static void gather_block_plane(const float *plane, const block *k, float *restrict out)
{
    fetch_next(plane, k);
    if (k->dense) {
        memcpy(out, plane + k->first, k->n * sizeof *out);
        return;
    }
    const uint32_t n = whole_vectors(k->n);
    for (uint32_t i = 0; i < n; i++) out[i] = plane[k->row[i]];
}

static void gather_raw(const kiln_project_args *a, block *k)
{
    for (uint32_t c = 0; c < 3; c++) {
        gather_block_plane(a->means + c * a->n, k, k->mean[c]);
        gather_block_plane(a->log_scales + c * a->n, k, k->log_scale[c]);
    }
    for (uint32_t c = 0; c < 4; c++) gather_block_plane(a->quats + c * a->n, k, k->quat[c]);
    gather_block_plane(a->opacity_logits, k, k->opacity_logit);
}

/* Lines that are wanted later, asked for some at a time: a processor waits for the first ones once
 * it has asked for some dozens, and while it calculates it need not wait. */
typedef struct {
    const float *rows;    /* of the plane that is next */
    uint64_t step;        /* floats from plane to plane */
    uint32_t line, lines; /* that is next, and how many a plane has */
    uint32_t left;        /* lines of all planes */
} wish;

/* The block's rows of shN. None unless they will be read as they lie; a guess. */
static wish want_colours(const kiln_project_args *a, const block *k, bool dense)
{
    const uint32_t lines = (k->rows + LINE - 1) / LINE, planes = kiln_sh_components(a->sh_degree);
    if (!dense) return (wish){0};
    return (wish){.rows = a->shN + k->first, .step = a->n, .lines = lines, .left = lines * planes};
}

static inline void fetch(wish *w, uint32_t n)
{
    wish now = *w;
    for (n = n < now.left ? n : now.left; n > 0; n--, now.left--) {
        __builtin_prefetch(now.rows + now.line * LINE);
        if (++now.line < now.lines) continue;
        now.line = 0;
        now.rows += now.step;
    }
    *w = now;
}

typedef int outline_fn(const kiln_projection *l, const kiln_splat3d *g, kiln_outline *o);

/* Always inlined with constants `outline` and `plain`, so that each profile gets loops of its own.
 * plain: not antialiased, and nobody wants the renderer's boxes. */
static inline __attribute__((always_inline)) void outline_with(outline_fn *outline,
                                                               const kiln_projection *lens,
                                                               bool plain, wish *w,
                                                               block *restrict k)
{
    kiln_projection l = *lens;
    const uint32_t n = whole_vectors(k->n), lines = (w->left * LANES + n - 1) / n;
    if (plain) l.antialiased = 0;
    for (uint32_t first = 0; first < n; first += LANES) {
        fetch(w, lines);
        /* a loop of a known length gcc writes out instead */
        const uint32_t end = first + LANES < n ? first + LANES : n;
        for (uint32_t i = first; i < end; i++) {
            const kiln_raw raw = {
                .mean = {k->mean[0][i], k->mean[1][i], k->mean[2][i]},
                .log_scale = {k->log_scale[0][i], k->log_scale[1][i], k->log_scale[2][i]},
                .quat = {k->quat[0][i], k->quat[1][i], k->quat[2][i], k->quat[3][i]},
                .opacity_logit = k->opacity_logit[i]};
            kiln_splat3d splat;
            kiln_outline o;
            kiln_project_splat3d(&l, &raw, &splat);
            k->visible[i] = outline(&l, &splat, &o);
            k->x[i] = o.x;
            k->y[i] = o.y;
            k->a[i] = o.a;
            k->b[i] = o.b;
            k->c[i] = o.c;
            k->opacity[i] = o.opacity;
            k->power_min[i] = o.power_min;
            k->tile_x0[i] = o.tile_x0;
            k->tile_y0[i] = o.tile_y0;
            k->tile_x1[i] = o.tile_x1;
            k->tile_y1[i] = o.tile_y1;
            if (plain) continue;
            k->box_x[i] = o.box_x;
            k->box_y[i] = o.box_y;
        }
    }
}

/* outline_inria, outline_inria_plain call kiln_inria_outline; outline_gsplat, outline_gsplat_plain
 * kiln_gsplat_outline: two for each family of profiles. */
#define FAMILY(id)                                                                                 \
    static __attribute__((flatten)) void outline_##id(const kiln_projection *l, wish *w, block *k) \
    {                                                                                              \
        outline_with(kiln_##id##_outline, l, false, w, k);                                         \
    }                                                                                              \
    static __attribute__((flatten)) void outline_##id##_plain(const kiln_projection *l, wish *w,   \
                                                              block *k)                            \
    {                                                                                              \
        outline_with(kiln_##id##_outline, l, true, w, k);                                          \
    }
#include "kernels/profiles/profiles.def"

static void (*const outlines[KILN_FAMILY_COUNT][2])(const kiln_projection *l, wish *w, block *k) = {
#define FAMILY(id) [KILN_FAMILY_##id] = {outline_##id, outline_##id##_plain},
#include "kernels/profiles/profiles.def"
};

static uint64_t box_pairs_of(const block *k)
{
    uint64_t pairs = 0;
    for (uint32_t i = 0; i < k->n; i++)
        if (k->visible[i]) pairs += (uint64_t)k->box_x[i] * (uint64_t)k->box_y[i];
    return pairs;
}

/* Visible ones to `out`; k keeps their rows and means for the colour. First a list of them: which
 * rows are visible cannot be foreseen, so that a branch on it would cost more than what it leaves
 * out. */
static void keep_visible(block *k, kiln_splat2d *restrict out)
{
    uint32_t list[BLOCK], kept = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        list[kept] = i;
        kept += (uint32_t)(k->visible[i] != 0);
    }
    for (uint32_t j = 0; j < kept; j++) {
        const uint32_t i = list[j];
        out[j] = (kiln_splat2d){.x = k->x[i],
                                .y = k->y[i],
                                .conic = {k->a[i], k->b[i], k->c[i]},
                                .opacity = k->opacity[i],
                                .power_min = k->power_min[i],
                                .depth = k->depth[i],
                                .row = k->row[i],
                                .tile_x0 = k->tile_x0[i],
                                .tile_y0 = k->tile_y0[i],
                                .tile_x1 = k->tile_x1[i],
                                .tile_y1 = k->tile_y1[i]};
        k->row[j] = k->row[i];
        for (int c = 0; c < 3; c++) k->mean[c][j] = k->mean[c][i];
    }
    k->n = kept;
}

/* Basis functions at the direction from the camera's centre to the mean. */
static void directions(const kiln_projection *lens, uint32_t degree, block *restrict k)
{
    const float cx = lens->centre[0], cy = lens->centre[1], cz = lens->centre[2];
    const uint32_t n = k->n;
    for (uint32_t i = 0; i < n; i++) {
        const float x = k->mean[0][i] - cx, y = k->mean[1][i] - cy, z = k->mean[2][i] - cz;
        const float scale = 1.0f / sqrtf(kiln_dot3(x, y, z, x, y, z));
        k->mean[0][i] = x * scale;
        k->mean[1][i] = y * scale;
        k->mean[2][i] = z * scale;
    }
    /* kiln_sh_basis1, kiln_sh_basis2, kiln_sh_basis3, kiln_sh_basis4 */
#define DEGREE(l)                                                                    \
    if (degree >= (l))                                                               \
        for (uint32_t i = 0; i < n; i++) {                                           \
            float f[2 * (l) + 1];                                                    \
            kiln_sh_basis##l(k->mean[0][i], k->mean[1][i], k->mean[2][i], f);        \
            for (int m = 0; m < 2 * (l) + 1; m++) k->basis[(l) * (l) + m][i] = f[m]; \
        }
    DEGREE(1)
    DEGREE(2)
    DEGREE(3)
    DEGREE(4)
#undef DEGREE
}

static void add_plane(const float *plane, const uint32_t *restrict row, const float *restrict basis,
                      uint32_t n, float *restrict sum)
{
#pragma omp simd
    for (uint32_t i = 0; i < n; i++) sum[i] = kiln_fmaf(basis[i], plane[row[i]], sum[i]);
}

/* The same for n rows that lie one after the other. */
static void add_basis_rows(const float *plane, const float *restrict basis, uint32_t n,
                           float *restrict sum)
{
#pragma omp simd
    for (uint32_t i = 0; i < n; i++) sum[i] = kiln_fmaf(basis[i], plane[i], sum[i]);
}

/* The same with three planes, each `step` floats behind the one before. Sums are then read and
 * written a third as often. */
static void add_rows_of_three(const float *plane, uint64_t step,
                              const float (*restrict basis)[BLOCK], uint32_t n, float *restrict sum)
{
    const float *const second = plane + step, *const third = second + step;
#pragma omp simd
    for (uint32_t i = 0; i < n; i++)
        sum[i] =
            kiln_fmaf(basis[2][i], third[i],
                      kiln_fmaf(basis[1][i], second[i], kiln_fmaf(basis[0][i], plane[i], sum[i])));
}

/* The same of a plane rounded to halves. */
static void add_rounded(const float *plane, const uint32_t *restrict row,
                        const float *restrict basis, uint32_t n, float *restrict sum)
{
    for (uint32_t i = 0; i < n; i++)
        sum[i] = kiln_fmaf(basis[i], kiln_half_round(plane[row[i]]), sum[i]);
}

/* Of records of so many words, of which `halves` is the first record's. */
static void add_halves(const uint32_t *halves, uint64_t words, uint32_t which,
                       const uint32_t *restrict row, const float *restrict basis, uint32_t n,
                       float *restrict sum)
{
    for (uint32_t i = 0; i < n; i++)
        sum[i] = kiln_fmaf(basis[i], kiln_halves_value(halves[row[i] * words], which), sum[i]);
}

/* One coefficient of one colour, which is column `column` of shN. */
static void add_coefficient(const kiln_project_args *a, const block *k, uint64_t column,
                            const float *restrict basis, float *restrict sum)
{
    const uint32_t words = kiln_sh_words(kiln_sh_components(a->sh_degree));
    if (a->sh_halves)
        add_halves(a->sh_halves + column / 2, words, column % 2, k->row, basis, k->n, sum);
    else if (a->half_sh)
        add_rounded(a->shN + column * a->n, k->row, basis, k->n, sum);
    else
        add_plane(a->shN + column * a->n, k->row, basis, k->n, sum);
}

/* All coefficients of one colour, of rows that are one after the other. */
static void add_dense(const kiln_project_args *a, block *k, uint32_t coefficients, uint32_t c)
{
    const float *plane = a->shN + c * a->n + k->first;
    uint32_t j = 1;
    for (; j + 3 <= coefficients; j += 3, plane += 9 * a->n)
        add_rows_of_three(plane, 3 * a->n, k->basis + j, k->n, k->rgb[c]);
    for (; j < coefficients; j++, plane += 3 * a->n)
        add_basis_rows(plane, k->basis[j], k->n, k->rgb[c]);
}

/* Colours all rows of the block where at least half of them are visible. */
static void choose_coloured(const kiln_project_args *a, block *k)
{
    k->dense = !a->half_sh && 2 * k->n >= k->rows;
    for (uint32_t i = 0; i < k->n; i++)
        k->place[i] = k->dense ? (uint32_t)(k->row[i] - k->first) : i;
    if (!k->dense) return;
    k->n = k->rows;
    for (uint32_t i = 0; i < k->n; i++) k->row[i] = (uint32_t)k->first + i;
    for (uint32_t c = 0; c < 3; c++) gather_block_plane(a->means + c * a->n, k, k->mean[c]);
}

/* The sum over coefficients in their order, one fused multiply-add each; the first is a product. */
static void colour(const kiln_project_args *a, const kiln_projection *l, block *k,
                   kiln_splat2d *out)
{
    const uint32_t degree = a->shN || a->sh_halves ? a->sh_degree : 0;
    const uint32_t coefficients = (degree + 1) * (degree + 1), visible = k->n;
    choose_coloured(a, k);
    if (degree > 0) directions(l, degree, k);
    for (uint32_t c = 0; c < 3; c++) {
        gather_block_plane(a->sh0 + c * a->n, k, k->rgb[c]);
        for (uint32_t i = 0; i < k->n; i++) k->rgb[c][i] *= KILN_SH_C0;
    }
    for (uint32_t c = 0; k->dense && c < 3; c++) add_dense(a, k, coefficients, c);
    for (uint32_t j = 1; !k->dense && j < coefficients; j++)
        for (uint32_t c = 0; c < 3; c++)
            add_coefficient(a, k, 3 * (uint64_t)(j - 1) + c, k->basis[j], k->rgb[c]);
    for (uint32_t i = 0; i < visible; i++)
        for (int c = 0; c < 3; c++) out[i].rgb[c] = kiln_sh_colour(k->rgb[c][k->place[i]]);
}

/* Writes the block's visible splats to out. Returns how many. *dense: in: a guess whether all will
 * be coloured; out: whether they were. */
static uint32_t project_block(const kiln_project_args *a, const kiln_projection *l, uint64_t first,
                              uint32_t n, kiln_splat2d *out, bool *dense, uint64_t *box_pairs)
{
    block k;
    cull_depth(a, l, first, n, &k);
    if (k.n == 0) return 0;
    gather_raw(a, &k);
    wish w = want_colours(a, &k, *dense);
    outlines[kiln_profiles[a->profile].family][!a->box_pairs && !a->antialiased](l, &w, &k);
    if (a->box_pairs) *box_pairs += box_pairs_of(&k);
    keep_visible(&k, out);
    const uint32_t visible = k.n;
    if (a->sh0 && visible > 0) colour(a, l, &k, out);
    *dense = k.dense && a->shN;
    return visible;
}

/* Pieces have whole blocks, all but the last as many. */
typedef struct {
    /* pieces, rows of each; most: not below n, and never less for more rows, as work space must
     * be */
    uint64_t n, rows, most;
} pieces;

static pieces cut_project_pieces(const kiln_exec *x, const kiln_project_args *a)
{
    const uint64_t blocks = kiln_div_up(a->n, BLOCK),
                   wanted = x->threads == 1 ? 1 : (uint64_t)x->threads * PIECES_PER_THREAD;
    const uint64_t most = kiln_min_u64(blocks, wanted);
    if (most == 0) return (pieces){0};
    const uint64_t each = kiln_div_up(blocks, most);
    return (pieces){.n = kiln_div_up(blocks, each), .rows = each * BLOCK, .most = most};
}

static uint64_t project_piece(const kiln_project_args *a, const kiln_projection *l, uint64_t first,
                              uint64_t n, uint64_t *box_pairs)
{
    kiln_splat2d *const out = a->splats + first;
    uint64_t kept = 0;
    bool dense = false;
    for (uint64_t done = 0; done < n; done += BLOCK)
        kept += project_block(a, l, first + done, (uint32_t)(n - done < BLOCK ? n - done : BLOCK),
                              out + kept, &dense, box_pairs);
    return kept;
}

static uint64_t close_gaps(kiln_splat2d *splats, const uint64_t *counts, const pieces *p)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < p->n; i++) {
        if (n != i * p->rows && counts[i] > 0)
            memmove(splats + n, splats + i * p->rows, counts[i] * sizeof *splats);
        n += counts[i];
    }
    return n;
}

static void tell_order(const kiln_exec *x, const kiln_project_args *a)
{
#pragma omp parallel for num_threads(x->threads)
    for (uint64_t i = 0; i < *a->n_visible; i++) {
        a->depths[i] = a->splats[i].depth;
        a->rows[i] = a->source_rows[a->splats[i].row];
    }
}

kiln_project_fn KILN_CPU(project);

/* kiln_project_cpu, kiln_project_cpu_avx2 */
kiln_status KILN_CPU(project)(const kiln_exec *x, const kiln_project_args *a, void *work,
                              size_t *work_bytes, kiln_error *err)
{
    const pieces p = cut_project_pieces(x, a);
    kiln_carve carve = {.base = work};
    uint64_t *counts = kiln_take(&carve, p.most, sizeof *counts);
    KILN_TRY(kiln_project_check(a, err));
    if (!work) {
        *work_bytes = carve.used;
        return KILN_OK;
    }
    if (*work_bytes < carve.used)
        return kiln_fail(err, KILN_E_CAP,
                         "project needs %zu bytes of work space, but was given %zu", carve.used,
                         *work_bytes);

    kiln_projection lens;
    kiln_project_projection(&lens, a->view, &a->cut, a->profile, a->antialiased);
    uint64_t box_pairs = 0;
#pragma omp parallel for schedule(dynamic) num_threads(x->threads) reduction(+ : box_pairs)
    for (uint64_t i = 0; i < p.n; i++) {
        const uint64_t first = i * p.rows, left = a->n - first;
        counts[i] = project_piece(a, &lens, first, left < p.rows ? left : p.rows, &box_pairs);
    }
    if (a->box_pairs) *a->box_pairs = box_pairs;
    *a->n_visible = close_gaps(a->splats, counts, &p);
    if (a->depths) tell_order(x, a);
    return KILN_OK;
}
