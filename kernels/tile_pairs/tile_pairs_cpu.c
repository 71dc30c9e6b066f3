/* tile_pairs_cpu -- counts and lists the pairs on the CPU: the definition.
 *
 * Most Gaussians have a proven box of tiles, each of which is asked
 * (tile_box.h). For boxes that are not proven, or wider than 64 tiles,
 * row_tiles() does the work on one tile row. It marks the
 * tiles that are reached in a bit map of at most 65,536 bits. First come the
 * proven intervals of all 16 pixel rows, in one loop that vectorises. Then the
 * few pixels that the proof leaves open are evaluated, only in tiles that are
 * not marked yet.
 *
 * count: threads take blocks of splats and add to their own row sums.
 * emit: the depth order is cut into pieces. Each piece counts its pairs of
 * every tile, a scan over tiles and pieces gives each (piece, tile) its place,
 * and each piece writes there. Within a tile, pieces follow one another in
 * depth order, so any cut gives the same lists.
 */
#include "kernels/tile_pairs/tile_pairs.h"

#include "base/carve.h"
#include "base/checked.h"
#include "kernels/tile_pairs/tile_box.h"
#include "kernels/tile_pairs/tile_miss_math.h"
#include "kernels/tile_pairs/tile_pairs_math.h"

#include <omp.h>
#include <string.h>

enum {
    WORDS = (1 << 20) / KILN_TILE / 64, /* bits for the widest view of kernels/view.h */
    COUNT_BLOCK = 4096,                 /* splats a thread takes at a time */
    PIECES_PER_THREAD = 4,
    KEPT_PAIRS = 2,        /* emit keeps one word (8 B) for so many pairs: of a splat
                              with few tiles, or of a tile row */
    CURSORS_MAX = 1 << 22, /* pieces x tiles: 32 MiB, more only where one piece
                              has more tiles */
};

/* The tile columns [first, first + n) of one Gaussian; bit i of `bits` is
 * column first + i. */
typedef struct {
    int32_t first, n;
    uint64_t bits[WORDS];
} tile_set;

typedef struct {
    kiln_tile_row at;
    float half_a, half_c;
    kiln_row_span span[KILN_TILE]; /* of the pixel rows at.begin to at.end */
} row_job;

static uint32_t count_bits(const tile_set *t)
{
    uint32_t sum = 0;
    for (int32_t w = 0; w <= (t->n - 1) >> 6; w++) sum += (uint32_t)__builtin_popcountll(t->bits[w]);
    return sum;
}

static bool is_marked(const tile_set *t, int32_t column)
{
    int32_t i = column - t->first;
    return t->bits[i >> 6] >> (i & 63) & 1;
}

static void mark(tile_set *t, int32_t first, int32_t last)
{
    int32_t i = first - t->first, j = last - t->first;
    uint64_t from = ~0ull << (i & 63), to = ~0ull >> (63 - (j & 63));
    if (i >> 6 == j >> 6) {
        t->bits[i >> 6] |= from & to;
        return;
    }
    t->bits[i >> 6] |= from;
    for (int32_t w = (i >> 6) + 1; w < j >> 6; w++) t->bits[w] = ~0ull;
    t->bits[j >> 6] |= to;
}

static bool pixel_reached(const kiln_splat2d *s, uint32_t px, uint32_t py)
{
    float dx = kiln_power_offset(s->x, px), dy = kiln_power_offset(s->y, py);
    return kiln_power(s->conic[0], s->conic[1], s->conic[2], dx, dy) >= s->power_min;
}

/* Evaluates the pixels [first, last] of a row, except those of marked tiles.
 */
static void mark_by_pixels(const kiln_splat2d *s, tile_set *t, int32_t first, int32_t last, uint32_t py)
{
    int32_t px = first;
    while (px <= last) {
        int32_t column = px / KILN_TILE;
        if (!is_marked(t, column)) {
            if (!pixel_reached(s, (uint32_t)px, py)) {
                px++;
                continue;
            }
            mark(t, column, column);
        }
        px = (column + 1) * KILN_TILE;
    }
}

/* Fills j->span, eight rows at a time: two vectors of doubles. */
static void find_spans(const kiln_splat2d *s, row_job *j)
{
    const float x = s->x, y = s->y, b = s->conic[1], t = s->power_min, half_a = j->half_a, half_c = j->half_c;
    const int32_t px0 = j->at.column * KILN_TILE, px1 = j->at.px1;
    for (uint32_t row = j->at.begin & ~7u; row < j->at.end; row += 8) {
        const uint32_t py0 = j->at.py0 + row;
        int32_t spans[4][8];
#pragma omp simd
        for (uint32_t i = 0; i < 8; i++) {
            float dy = kiln_power_offset(y, py0 + i);
            kiln_row_span r = kiln_row_reach(x, half_a, kiln_power_slope(b, dy), kiln_power_base(half_c, dy), t, px0, px1);
            spans[0][i] = r.sure_first;
            spans[1][i] = r.sure_last;
            spans[2][i] = r.may_first;
            spans[3][i] = r.may_last;
        }
        for (uint32_t i = 0; i < 8; i++) j->span[row + i] = (kiln_row_span){spans[0][i], spans[1][i], spans[2][i], spans[3][i]};
    }
}

/* Marks tiles whose nearest pixel is reached. Returns true if every other tile
 * is proven to be missed, so that nothing is left open. */
static bool settle_tiles(const kiln_splat2d *s, const kiln_tile_row *at, tile_set *t)
{
    bool all = true;
    const kiln_miss_test miss = kiln_miss_test_of(s->conic[0], s->conic[1], s->conic[2], s->power_min);
    const double x = (double)s->x - 0.5, y = (double)s->y - 0.5 - (double)at->py0;
    const double dy0 = y - (double)(at->end - 1), dy1 = y - (double)at->begin;
    for (int32_t column = t->first; column < t->first + t->n; column++) {
        const int32_t first = column * KILN_TILE;
        const int32_t last = first + KILN_TILE - 1 < at->px1 ? first + KILN_TILE - 1 : at->px1;
        if (kiln_nearest_reached(s, at, column))
            mark(t, column, column);
        else
            all = all && kiln_tile_missed(&miss, x - (double)last, x - (double)first, dy0, dy1);
    }
    return all;
}

static void mark_intervals(const kiln_splat2d *s, row_job *j, tile_set *t)
{
    const uint32_t begin = j->at.begin, end = j->at.end, py0 = j->at.py0;
    if (t->n <= KILN_FEW_TILES && settle_tiles(s, &j->at, t)) return;
    find_spans(s, j);
    for (uint32_t i = begin; i < end; i++) {
        const kiln_row_span *r = &j->span[i];
        if (r->sure_first <= r->sure_last) mark(t, r->sure_first / KILN_TILE, r->sure_last / KILN_TILE);
    }
    for (uint32_t i = begin; i < end; i++) {
        const kiln_row_span *r = &j->span[i];
        if (r->sure_first > r->sure_last) {
            mark_by_pixels(s, t, r->may_first, r->may_last, py0 + i);
            continue;
        }
        mark_by_pixels(s, t, r->may_first, r->sure_first - 1, py0 + i);
        mark_by_pixels(s, t, r->sure_last + 1, r->may_last, py0 + i);
    }
}

/* For Gaussians without proven intervals: goes tile by tile and row by row. Rows
 * that their ends prove to be missed are skipped. */
static void mark_tile_by_tile(const kiln_splat2d *s, const row_job *j, tile_set *t)
{
    for (int32_t column = t->first; column < t->first + t->n; column++) {
        int32_t first = column * KILN_TILE, last = first + KILN_TILE - 1;
        if (last > j->at.px1) last = j->at.px1;
        for (uint32_t i = j->at.begin; i < j->at.end && !is_marked(t, column); i++) {
            float dy = kiln_power_offset(s->y, j->at.py0 + i);
            if (j->at.reach == KILN_REACH_ENDS &&
                kiln_ends_miss(j->half_a, kiln_power_slope(s->conic[1], dy), kiln_power_base(j->half_c, dy), s->power_min,
                               kiln_power_offset(s->x, (uint32_t)first), kiln_power_offset(s->x, (uint32_t)last)))
                continue;
            mark_by_pixels(s, t, last, last, j->at.py0 + i);
            mark_by_pixels(s, t, first, last, j->at.py0 + i);
        }
    }
}

/* Marks in *t the tiles of the tile row that the Gaussian reaches. */
static void row_tiles(const kiln_splat2d *s, const kiln_splat_extent *e, const kiln_view *v, uint32_t tile_row, tile_set *t)
{
    row_job j; /* most of it is filled only where it is needed */
    j.at = kiln_find_tile_row(s, e, v, tile_row);
    t->first = j.at.column;
    t->n = j.at.n;
    if (t->n == 0) return;
    memset(t->bits, 0, (size_t)((t->n + 63) / 64) * sizeof *t->bits);
    j.half_a = kiln_power_half(s->conic[0]);
    j.half_c = kiln_power_half(s->conic[2]);
    if (j.at.reach == KILN_REACH_INTERVAL)
        mark_intervals(s, &j, t);
    else
        mark_tile_by_tile(s, &j, t);
}

/* ---- boxes ------------------------------------------------------------------------------------------------------------- */
typedef enum {
    NO_TILES,
    FEW_TILES, /* a proven box, answered at once */
    BOX_ROWS,  /* a proven box, answered row by row in one word each */
    ANY_ROWS,  /* row_tiles() */
} splat_shape;

static splat_shape find_shape(const kiln_splat2d *s, const kiln_view *v, uint32_t row0, uint32_t row1, kiln_tile_box *box)
{
    const kiln_box_kind kind = kiln_find_box(s, v, row0, row1, box);
    if (kind == KILN_BOX_EMPTY) return NO_TILES;
    if (kind == KILN_BOX_ODD || box->w > 64) return ANY_ROWS;
    return box->w <= KILN_TILE_BOX_FEW && box->w * box->h <= KILN_TILE_BOX_FEW ? FEW_TILES : BOX_ROWS;
}

static void count_rows(const kiln_splat2d *s, const kiln_tile_pairs_count_args *a, uint64_t *row_pairs)
{
    kiln_splat_extent e;
    if (!kiln_find_extent(s, a->row0, a->row1, &e)) return;
    tile_set t;
    for (uint32_t row = e.row_first; row < e.row_end; row++) {
        row_tiles(s, &e, a->view, row, &t);
        row_pairs[row - a->row0] += count_bits(&t);
    }
}

static void count_splat(const kiln_splat2d *s, const kiln_tile_pairs_count_args *a, uint64_t *row_pairs)
{
    kiln_tile_box b;
    const splat_shape shape = find_shape(s, a->view, a->row0, a->row1, &b);
    if (shape == FEW_TILES) {
        uint32_t tiles = KILN_CPU(tile_box_few)(s, a->view, &b);
        for (int32_t row = b.row; tiles; row++, tiles >>= b.w)
            row_pairs[(uint32_t)row - a->row0] += (uint32_t)__builtin_popcount(tiles & ((1u << b.w) - 1));
    } else if (shape == BOX_ROWS) {
        const kiln_asked g = kiln_ask_of(s);
        for (int32_t row = b.row; row < b.row + b.h; row++)
            row_pairs[(uint32_t)row - a->row0] += (uint32_t)__builtin_popcountll(KILN_CPU(tile_box_row)(s, &g, a->view, &b, row));
    } else if (shape == ANY_ROWS) {
        count_rows(s, a, row_pairs);
    }
}

/* kiln_tile_pairs_count_cpu, kiln_tile_pairs_count_cpu_avx2 */
kiln_status KILN_CPU(tile_pairs_count)(const kiln_exec *x, const kiln_tile_pairs_count_args *a, void *work, size_t *work_bytes,
                                       kiln_error *err)
{
    KILN_TRY(kiln_tile_pairs_check(a->n, a->view, a->row0, a->row1, err));
    const uint64_t rows = a->row1 - a->row0;
    kiln_carve c = {.base = work};
    uint64_t *mine = kiln_take(&c, x->threads * rows, sizeof *mine);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    if (*work_bytes < c.used)
        return kiln_fail(err, KILN_E_CAP, "tile_pairs_count needs %zu bytes, was given %zu", c.used, *work_bytes);

    memset(mine, 0, (size_t)(x->threads * rows) * sizeof *mine);
    const int64_t blocks = (int64_t)kiln_div_up(a->n, COUNT_BLOCK);
#pragma omp parallel for num_threads(x->threads) schedule(dynamic)
    for (int64_t b = 0; b < blocks; b++) {
        uint64_t *row_pairs = mine + (uint64_t)omp_get_thread_num() * rows;
        uint64_t first = (uint64_t)b * COUNT_BLOCK, end = first + COUNT_BLOCK < a->n ? first + COUNT_BLOCK : a->n;
        for (uint64_t i = first; i < end; i++) count_splat(&a->splats[i], a, row_pairs);
    }
    for (uint64_t r = 0; r < rows; r++) {
        a->row_pairs[r] = 0;
        for (unsigned k = 0; k < x->threads; k++) a->row_pairs[r] += mine[k * rows + r];
    }
    return KILN_OK;
}

/* The work space of emit. cursor[piece][tile] is first a count, then the next
 * place to write. While counting, a piece keeps what it has found in
 * kept[piece] until that is full; the rest is found again for writing. A splat
 * with few tiles takes a word; any other takes ROWS_FOLLOW and a word for each
 * tile row of at most 64 tiles. */
#define ROWS_FOLLOW UINT64_MAX

typedef struct {
    uint64_t pieces, tiles, capacity; /* marks of a piece */
    uint64_t *cursor, *kept;
} emit_plan;

static emit_plan plan_emit(const kiln_exec *x, const kiln_tile_pairs_emit_args *a, kiln_carve *c)
{
    emit_plan p = {.tiles = (uint64_t)(a->row1 - a->row0) * kiln_view_tiles_x(a->view)};
    p.pieces = x->threads == 1 ? 1 : (uint64_t)x->threads * PIECES_PER_THREAD;
    while (p.pieces > 1 && p.pieces * p.tiles > CURSORS_MAX) p.pieces /= 2;
    p.capacity = a->capacity / KEPT_PAIRS / p.pieces;
    p.cursor = kiln_take(c, p.pieces * p.tiles, sizeof *p.cursor);
    p.kept = kiln_take(c, p.pieces * p.capacity, sizeof *p.kept);
    return p;
}

/* One piece in one of its two passes over the splats: it counts if ranks is
 * NULL, else it writes. */
typedef struct {
    const kiln_tile_pairs_emit_args *a;
    uint64_t *cursor, *kept, *kept_end;
    uint32_t *ranks;
} piece_pass;

static void put_pairs(const piece_pass *p, uint64_t rank, uint64_t *at, uint64_t bits)
{
    for (; bits; bits &= bits - 1) {
        uint64_t *next = &at[__builtin_ctzll(bits)];
        if (p->ranks) p->ranks[*next] = (uint32_t)rank;
        ++*next;
    }
}

/* Tiles of a FEW_TILES box, packed: bits of the tiles, width, height, column, row. Never ROWS_FOLLOW. */
static uint64_t pack_few(const kiln_tile_box *b, uint32_t tiles)
{
    return tiles | (uint64_t)(b->w - 1) << 16 | (uint64_t)(b->h - 1) << 20 | (uint64_t)b->column << 24 | (uint64_t)b->row << 40;
}

static void put_few(const piece_pass *p, uint64_t rank, uint64_t word)
{
    const uint32_t w = (uint32_t)(word >> 16 & 15) + 1, tiles_x = kiln_view_tiles_x(p->a->view);
    const uint32_t column = (uint32_t)(word >> 24 & 0xffff);
    uint32_t row = (uint32_t)(word >> 40 & 0xffff) - p->a->row0;
    for (uint32_t tiles = word & 0xffff; tiles; tiles >>= w, row++)
        put_pairs(p, rank, p->cursor + (uint64_t)row * tiles_x + column, tiles & ((1u << w) - 1));
}

static void pass_box_row(piece_pass *p, uint64_t rank, const kiln_asked *g, const kiln_tile_box *b, int32_t row)
{
    const kiln_tile_pairs_emit_args *a = p->a;
    const bool keeps = p->kept < p->kept_end;
    const uint64_t bits = keeps && p->ranks ? *p->kept : KILN_CPU(tile_box_row)(&a->splats[rank], g, a->view, b, row);
    if (keeps) *p->kept++ = bits;
    put_pairs(p, rank, p->cursor + (uint64_t)((uint32_t)row - a->row0) * kiln_view_tiles_x(a->view) + (uint32_t)b->column, bits);
}

static void pass_row(piece_pass *p, uint64_t rank, const kiln_splat_extent *e, uint32_t row)
{
    const kiln_splat2d *s = &p->a->splats[rank];
    uint64_t *at = p->cursor + (uint64_t)(row - p->a->row0) * kiln_view_tiles_x(p->a->view);
    const bool keeps = (int64_t)s->tile_x1 - s->tile_x0 <= 64 && p->kept < p->kept_end;
    if (keeps && p->ranks) {
        put_pairs(p, rank, at + (s->tile_x0 > 0 ? s->tile_x0 : 0), *p->kept++);
        return;
    }
    tile_set t;
    row_tiles(s, e, p->a->view, row, &t);
    at += (uint32_t)t.first;
    if (keeps) *p->kept++ = t.n > 0 ? t.bits[0] : 0;
    for (int32_t w = 0; w < (t.n + 63) / 64; w++) put_pairs(p, rank, at + w * 64, t.bits[w]);
}

static void pass_rows(piece_pass *p, uint64_t rank, splat_shape shape, const kiln_tile_box *b)
{
    const kiln_splat2d *s = &p->a->splats[rank];
    if (shape == BOX_ROWS) {
        const kiln_asked g = kiln_ask_of(s);
        for (int32_t row = b->row; row < b->row + b->h; row++) pass_box_row(p, rank, &g, b, row);
    } else {
        kiln_splat_extent e;
        if (!kiln_find_extent(s, p->a->row0, p->a->row1, &e)) return;
        for (uint32_t row = e.row_first; row < e.row_end; row++) pass_row(p, rank, &e, row);
    }
}

static void pass_splat(piece_pass *p, uint64_t rank)
{
    const kiln_tile_pairs_emit_args *a = p->a;
    const kiln_splat2d *s = &a->splats[rank];
    kiln_tile_box b;
    if (s->tile_y0 >= (int64_t)a->row1 || s->tile_y1 <= (int64_t)a->row0) return; /* keeps no word: a band sees few */
    const bool keeps = p->kept < p->kept_end;
    if (keeps && p->ranks && *p->kept != ROWS_FOLLOW) {
        put_few(p, rank, *p->kept++);
        return;
    }
    const splat_shape shape = find_shape(s, a->view, a->row0, a->row1, &b);
    uint64_t word = ROWS_FOLLOW;
    if (shape <= FEW_TILES) word = shape == NO_TILES ? 0 : pack_few(&b, KILN_CPU(tile_box_few)(s, a->view, &b));
    if (keeps) *p->kept++ = word;
    if (shape == FEW_TILES) put_few(p, rank, word);
    if (shape > FEW_TILES) pass_rows(p, rank, shape, &b);
}

static void emit_piece(const kiln_tile_pairs_emit_args *a, const emit_plan *p, uint64_t piece, uint32_t *ranks)
{
    uint64_t size = kiln_div_up(a->n, p->pieces), first = piece * size;
    uint64_t end = first + size < a->n ? first + size : a->n;
    uint64_t *const kept = p->kept + piece * p->capacity;
    piece_pass pass = {
        .a = a, .cursor = p->cursor + piece * p->tiles, .kept = kept, .kept_end = kept + p->capacity, .ranks = ranks};
    for (uint64_t rank = first; rank < end; rank++) pass_splat(&pass, rank);
}

/* Turns counts into places: tile after tile, within a tile piece after piece.
 * Returns the number of pairs. */
static uint64_t scan(const kiln_tile_pairs_emit_args *a, const emit_plan *p)
{
    uint64_t next = 0;
    for (uint64_t tile = 0; tile < p->tiles; tile++) {
        uint64_t start = next;
        for (uint64_t piece = 0; piece < p->pieces; piece++) {
            uint64_t *c = &p->cursor[piece * p->tiles + tile], count = *c;
            *c = next;
            next += count;
        }
        a->tile_counts[tile] = (uint32_t)(next - start); /* at most n */
    }
    return next;
}

/* For a capacity that is an upper bound. Returns false if it is too small; then
 * nothing is listed. */
static bool list_within_capacity(const kiln_tile_pairs_emit_args *a, const emit_plan *p, uint64_t pairs)
{
    const bool fits = pairs <= a->capacity;
    a->n_pairs[0] = fits ? pairs : 0;
    a->n_pairs[1] = pairs;
    if (!fits) memset(a->tile_counts, 0, (size_t)p->tiles * sizeof *a->tile_counts);
    return fits;
}

/* kiln_tile_pairs_emit_cpu, kiln_tile_pairs_emit_cpu_avx2 */
kiln_status KILN_CPU(tile_pairs_emit)(const kiln_exec *x, const kiln_tile_pairs_emit_args *a, void *work, size_t *work_bytes,
                                      kiln_error *err)
{
    KILN_TRY(kiln_tile_pairs_emit_check(a, err));
    kiln_carve c = {.base = work};
    const emit_plan p = plan_emit(x, a, &c);
    if (!work) {
        *work_bytes = c.used;
        return KILN_OK;
    }
    if (*work_bytes < c.used)
        return kiln_fail(err, KILN_E_CAP, "tile_pairs_emit needs %zu bytes, was given %zu", c.used, *work_bytes);

    memset(p.cursor, 0, (size_t)(p.pieces * p.tiles) * sizeof *p.cursor);
#pragma omp parallel for num_threads(x->threads) schedule(dynamic)
    for (int64_t i = 0; i < (int64_t)p.pieces; i++) emit_piece(a, &p, (uint64_t)i, NULL);
    const uint64_t pairs = scan(a, &p);
    if (a->n_pairs && !list_within_capacity(a, &p, pairs)) return KILN_OK;
    if (!a->n_pairs && pairs != a->capacity)
        return kiln_fail(err, KILN_E_BUG,
                         "tile_pairs_emit: tile rows %u to %u hold %llu pairs, "
                         "%llu were counted",
                         a->row0, a->row1, (unsigned long long)pairs, (unsigned long long)a->capacity);
#pragma omp parallel for num_threads(x->threads) schedule(dynamic)
    for (int64_t i = 0; i < (int64_t)p.pieces; i++) emit_piece(a, &p, (uint64_t)i, a->ranks);
    return KILN_OK;
}
