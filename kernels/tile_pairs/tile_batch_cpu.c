/* tile_batch_cpu -- see tile_batch.h. Loops over eight lanes have no branch, so that gcc makes
 * vectors of them. The few tile rows that stay open are asked tile by tile. No answer is a guess,
 * so it does not matter which way it was found. */
#include "kernels/tile_pairs/tile_batch.h"

#include "base/minmax.h"

#include <stddef.h>
#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

enum { LANES = KILN_TILE_LANES };

/* ---- one tile -------------------------------------------------------------------------------- */
/* Is a pixel of this tile reached? By definition: by looking at all of them. */
static bool is_reached(const kiln_splat2d *s, const kiln_view *v, uint32_t px0, uint32_t py0)
{
    const float half_a = kiln_power_half(s->conic[0]), half_c = kiln_power_half(s->conic[2]),
                x = s->x, t = s->power_min;
    const uint32_t columns = v->width - px0 < KILN_TILE ? v->width - px0 : KILN_TILE;
    for (uint32_t py = py0; py < py0 + KILN_TILE && py < v->height; py++) {
        const float dy = kiln_power_offset(s->y, py);
        const float slope = kiln_power_slope(s->conic[1], dy), base = kiln_power_base(half_c, dy);
        uint32_t any = 0;
#pragma omp simd reduction(| : any)
        for (uint32_t i = 0; i < KILN_TILE; i++) {
            const float power = kiln_power_at(half_a, slope, base, kiln_power_offset(x, px0 + i));
            any |= (uint32_t)(power >= t) & (uint32_t)(i < columns);
        }
        if (any) return true;
    }
    return false;
}

/* kiln_tile_asked_cpu, kiln_tile_asked_cpu_avx2 */
bool KILN_CPU(tile_asked)(const kiln_asked *g, const kiln_splat2d *s, const kiln_view *v,
                          uint32_t column, uint32_t row)
{
    const uint32_t px0 = column * KILN_TILE, py0 = row * KILN_TILE;
    const uint32_t px1 = px0 + KILN_TILE < v->width ? px0 + KILN_TILE - 1 : v->width - 1,
                   py1 = py0 + KILN_TILE < v->height ? py0 + KILN_TILE - 1 : v->height - 1;
    const kiln_tile_answer answer =
        kiln_ask_tile(g, (float)px0, (float)px1, (float)py0, (float)py1);
    return answer == KILN_TILE_UNSURE ? is_reached(s, v, px0, py0) : answer == KILN_TILE_REACHED;
}

/* ---- eight Gaussians ------------------------------------------------------------------------- */
/* What their splats have. */
typedef struct {
    _Alignas(32) kiln_tile_floats x, y, a, b, c, t;
    kiln_tile_ints x0, y0, x1, y1;
} loaded;

#ifdef __AVX2__
static inline __m256 two_fours(const float *low, const float *high)
{
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}

static inline __m256 low_halves(__m256 a, __m256 b)
{
    return _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
}

static inline __m256 high_halves(__m256 a, __m256 b)
{
    return _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
}

/* Four words at `offset` of each splat, as four vectors. */
static inline void transpose(const kiln_splat2d *const s[LANES], size_t offset, __m256 out[4])
{
    __m256 of[4];
    for (int i = 0; i < 4; i++)
        of[i] = two_fours((const float *)s[i] + offset, (const float *)s[i + 4] + offset);
    const __m256 a = _mm256_unpacklo_ps(of[0], of[1]), b = _mm256_unpacklo_ps(of[2], of[3]),
                 c = _mm256_unpackhi_ps(of[0], of[1]), d = _mm256_unpackhi_ps(of[2], of[3]);
    out[0] = low_halves(a, b);
    out[1] = high_halves(a, b);
    out[2] = low_halves(c, d);
    out[3] = high_halves(c, d);
}

static inline void put_ints(int32_t *to, __m256 v)
{
    _mm256_store_si256((__m256i *)to, _mm256_castps_si256(v));
}

static inline void load(const kiln_splat2d *splats, const uint32_t id[LANES], loaded *l)
{
    const kiln_splat2d *s[LANES];
    __m256 v[4];
    _Static_assert(offsetof(kiln_splat2d, x) == 0 && offsetof(kiln_splat2d, conic) == 8 &&
                       offsetof(kiln_splat2d, power_min) == 24 &&
                       offsetof(kiln_splat2d, tile_x0) == 48,
                   "where the words of a splat are");
    for (int i = 0; i < LANES; i++) s[i] = &splats[id[i]];
    transpose(s, 0, v);
    _mm256_store_ps(l->x, v[0]);
    _mm256_store_ps(l->y, v[1]);
    _mm256_store_ps(l->a, v[2]);
    _mm256_store_ps(l->b, v[3]);
    transpose(s, 4, v);
    _mm256_store_ps(l->c, v[0]);
    _mm256_store_ps(l->t, v[2]);
    transpose(s, 12, v);
    put_ints(l->x0, v[0]);
    put_ints(l->y0, v[1]);
    put_ints(l->x1, v[2]);
    put_ints(l->y1, v[3]);
}
#else
static inline void load(const kiln_splat2d *splats, const uint32_t id[LANES], loaded *l)
{
    for (int i = 0; i < LANES; i++) {
        const kiln_splat2d *s = &splats[id[i]];
        l->x[i] = s->x;
        l->y[i] = s->y;
        l->a[i] = s->conic[0];
        l->b[i] = s->conic[1];
        l->c[i] = s->conic[2];
        l->t[i] = s->power_min;
        l->x0[i] = s->tile_x0;
        l->y0[i] = s->tile_y0;
        l->x1[i] = s->tile_x1;
        l->y1[i] = s->tile_y1;
    }
}
#endif

static inline int32_t clamp_tile(int32_t v, int32_t lo, int32_t hi)
{
    v = v > lo ? v : lo;
    return v < hi ? v : hi;
}

/* Boxes, ways and forms of the first n lanes; the others have nothing. */
static inline void prepare(const kiln_view *v, uint32_t row0, uint32_t row1,
                           const loaded *restrict l, uint32_t n, kiln_tile_eight *restrict k)
{
    const int32_t tiles_x = (int32_t)kiln_view_tiles_x(v), y_first = (int32_t)row0,
                  y_end = (int32_t)row1, width = (int32_t)v->width;
#pragma omp simd
    for (uint32_t i = 0; i < LANES; i++) {
        kiln_span_form f;
        float half_y;
        const int proven =
            kiln_span_prepare(l->x[i], l->y[i], l->a[i], l->b[i], l->c[i], l->t[i], &f, &half_y);
        const int32_t x0 = clamp_tile(l->x0[i], 0, tiles_x), x1 = clamp_tile(l->x1[i], 0, tiles_x);
        const int32_t y0 = clamp_tile(l->y0[i], y_first, y_end),
                      y1 = clamp_tile(l->y1[i], y_first, y_end);
        const int32_t right = x1 * KILN_TILE < width ? x1 * KILN_TILE : width;
        const float px0 = (float)(x0 * KILN_TILE), px_end = (float)right;
        const float py0 = (float)(y0 * KILN_TILE), py_end = (float)(y1 * KILN_TILE);
        const float reach = half_y * 1.00390625f + 1e-3f + 4.76837158203125e-7f * fabsf(l->y[i]);
        const float mid = l->y[i] + 0.5f;
        const int32_t top = (int32_t)kiln_clamp_f32(mid - reach, py0, py_end),
                      bottom = (int32_t)kiln_clamp_f32(mid + reach, py0, py_end);
        const int32_t from = (int32_t)kiln_clamp_f32(f.left, px0, px_end),
                      to = (int32_t)kiln_clamp_f32(f.right, px0, px_end);
        const int outside = (x0 >= x1) | (y0 >= y1),
                  nothing = proven & ((top >= bottom) | (from >= to));
        const int32_t h = ((bottom - 1) >> 4) - (top >> 4) + 1;
        const int few = proven & (h <= KILN_TILE_FEW_ROWS);
        const int empty = outside | nothing | (i >= n);
        const int32_t way = empty    ? KILN_TILES_NONE
                            : few    ? KILN_TILES_FEW
                            : proven ? KILN_TILES_ROWS
                                     : KILN_TILES_ODD;
        const int32_t row = way == KILN_TILES_NONE ? y_first : top >> 4;
        k->row[i] = row;
        k->h[i] = h;
        k->first_py[i] = (float)(row * KILN_TILE) + 0.5f;
        k->few[i] = way == KILN_TILES_FEW ? h : 0;
        k->way[i] = way;
        k->column[i] = from >> 4;
        k->end[i] = ((to - 1) >> 4) + 1;
        k->y[i] = f.y;
        k->centre[i] = f.centre;
        k->left[i] = f.left;
        k->right[i] = f.right;
        k->eps[i] = f.eps;
        k->widest[i] = f.widest;
        k->minus_ratio[i] = f.minus_ratio;
        k->minus_q[i] = f.minus_q;
        k->x2[i] = f.x2;
        k->minus_margin[i] = f.minus_margin;
        k->least[i] = f.least;
        k->px0[i] = px0;
        k->px_end[i] = px_end;
    }
}

/* ---- tile rows ------------------------------------------------------------------------------- */
static inline __attribute__((always_inline)) kiln_span_form form_of(const kiln_tile_eight *k,
                                                                    uint32_t i)
{
    return (kiln_span_form){k->y[i],     k->centre[i],       k->left[i],        k->right[i],
                            k->eps[i],   k->widest[i],       k->minus_ratio[i], k->minus_q[i],
                            k->x2[i],    k->minus_margin[i], k->least[i],       k->px0[i],
                            k->px_end[i]};
}

/* A bit for each mask that is set. */
static inline uint32_t bits_of(const uint32_t masks[LANES])
{
#ifdef __AVX2__
    return (uint32_t)_mm256_movemask_ps(_mm256_load_ps((const float *)masks));
#else
    uint32_t bits = 0;
    for (uint32_t i = 0; i < LANES; i++) bits |= (masks[i] & 1) << i;
    return bits;
#endif
}

/* Has one of FEW more than r tile rows? */
static inline bool has_more(const kiln_tile_eight *k, int32_t r)
{
    _Alignas(32) uint32_t more[LANES];
#pragma omp simd
    for (uint32_t i = 0; i < LANES; i++) more[i] = kiln_span_mask(k->few[i] > r);
    return bits_of(more) != 0;
}

/* Tile row r of FEW. Returns which of them are open. */
static inline uint32_t find_spans(const kiln_view *v, const kiln_tile_eight *restrict k, int32_t r,
                                  int32_t *restrict first, int32_t *restrict tiles)
{
    const float end = (float)v->height - 0.5f;
    _Alignas(32) uint32_t open[LANES];
#pragma omp simd
    for (uint32_t i = 0; i < LANES; i++) {
        const kiln_span_form f = form_of(k, i);
        const kiln_tile_span s = kiln_span_of(&f, k->first_py[i] + (float)(r * KILN_TILE), end);
        const uint32_t has = kiln_span_mask(r < k->few[i]);
        first[i] = s.first;
        tiles[i] = (int32_t)((uint32_t)s.n & has);
        open[i] = s.open & has;
    }
    return bits_of(open);
}

/* Asks the tiles of a row that is open. Returns whether they are an interval. */
static bool settle_row(const kiln_splat2d *s, const kiln_view *v, kiln_tile_eight *k, uint32_t i,
                       int32_t r)
{
    const kiln_asked g = kiln_ask_of(s);
    bool before = false;
    int32_t n = 0;
    for (int32_t column = k->column[i]; column < k->end[i]; column++) {
        const bool reached =
            KILN_CPU(tile_asked)(&g, s, v, (uint32_t)column, (uint32_t)(k->row[i] + r));
        if (reached && !before && n > 0) return false;
        if (reached && n == 0) k->first[r][i] = column;
        n += reached;
        before = reached;
    }
    k->tiles[r][i] = n;
    return true;
}

/* Settles what is open of tile row r. */
static void settle(const kiln_splat2d *splats, const uint32_t *id, const kiln_view *v,
                   kiln_tile_eight *k, int32_t r, uint32_t open)
{
    for (; open; open &= open - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(open);
        if (k->way[i] != KILN_TILES_FEW || settle_row(&splats[id[i]], v, k, i, r)) continue;
        k->way[i] = KILN_TILES_ROWS;
        k->few[i] = 0;
        for (int32_t all = 0; all < KILN_TILE_FEW_ROWS; all++) k->tiles[all][i] = 0;
        k->others |= 1u << i;
    }
}

static inline uint32_t others_of(const kiln_tile_eight *k)
{
    _Alignas(32) uint32_t is[LANES];
#pragma omp simd
    for (uint32_t i = 0; i < LANES; i++) is[i] = kiln_span_mask(k->way[i] >= KILN_TILES_ROWS);
    return bits_of(is);
}

/* kiln_tile_batch_find_cpu, kiln_tile_batch_find_cpu_avx2 */
void KILN_CPU(tile_batch_find)(const kiln_splat2d *splats, const kiln_view *v, uint32_t row0,
                               uint32_t row1, kiln_tile_batch *k)
{
    enum { ROWS = KILN_TILE_FEW_ROWS };
    /* which tile rows of which eight: listed first, because a branch on what has just been computed
     * would wait for it */
    uint16_t job[KILN_TILE_BATCH / LANES * ROWS + 1];
    uint8_t open[KILN_TILE_BATCH / LANES * ROWS];
    uint32_t jobs = 0;
    for (uint32_t i = 0; i < k->n; i += LANES) {
        kiln_tile_eight *const e = &k->of[i / LANES];
        loaded l;
        for (uint32_t j = 0; k->anywhere && j < LANES; j++)
            __builtin_prefetch(&splats[k->id[i + KILN_TILE_AHEAD + j]]);
        load(splats, k->id + i, &l);
        prepare(v, row0, row1, &l, k->n - i, e);
        e->others = others_of(e);
        memset(e->tiles, 0, sizeof e->tiles);
        for (int32_t r = 0; r < ROWS; r++) {
            job[jobs] = (uint16_t)(i / LANES * ROWS + (uint32_t)r);
            jobs += has_more(e, r);
        }
    }
    for (uint32_t i = 0; i < jobs; i++) {
        kiln_tile_eight *const e = &k->of[job[i] / ROWS];
        const int32_t r = job[i] % ROWS;
        open[i] = (uint8_t)find_spans(v, e, r, e->first[r], e->tiles[r]);
    }
    for (uint32_t i = 0; i < jobs; i++)
        if (open[i])
            settle(splats, k->id + job[i] / ROWS * LANES, v, &k->of[job[i] / ROWS], job[i] % ROWS,
                   open[i]);
}

/* kiln_tile_batch_rows_cpu, kiln_tile_batch_rows_cpu_avx2 */
void KILN_CPU(tile_batch_rows)(const kiln_view *v, const kiln_tile_batch *k, uint32_t i, int32_t r,
                               kiln_tile_spans *restrict s)
{
    const kiln_tile_eight *const e = kiln_tile_eight_of(k, i);
    const int32_t h = e->h[i % LANES] - r;
    const float end = (float)v->height - 0.5f,
                first = (float)((e->row[i % LANES] + r) * KILN_TILE) + 0.5f;
    const kiln_span_form f = form_of(e, i % LANES);
    _Alignas(32) uint32_t open[LANES];
#pragma omp simd
    for (int32_t j = 0; j < LANES; j++) {
        const kiln_tile_span span = kiln_span_of(&f, first + (float)(j * KILN_TILE), end);
        const uint32_t has = kiln_span_mask(j < h);
        s->first[j] = span.first;
        s->n[j] = (int32_t)((uint32_t)span.n & has);
        open[j] = span.open & has;
    }
    s->open = bits_of(open);
}
