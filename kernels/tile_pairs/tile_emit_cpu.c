/* tile_emit_cpu -- lists the pairs on the CPU. How the tiles are found: tile_walk.h.
 *
 * The depth order is cut into pieces. Each piece counts its pairs of every tile, a scan over tiles
 * and pieces gives each (piece, tile) its place, and each piece writes there. Within a tile, pieces
 * follow one another in depth order, so any cut gives the same lists.
 *
 * While counting, a piece keeps what it finds: runs of tiles, in a stream for each tile row. It
 * writes row by row. The lists of a row of tiles are few, so that the lines that are written to
 * stay in the first cache; all lists together have more lines, and more pages, than a processor
 * keeps at hand. Once there is no more room for runs the piece only counts. Having written what it
 * kept, it finds the rest again, as much as there is room for at a time.
 */
#include "kernels/tile_pairs/tile_emit.h"

#include "base/carve.h"
#include "base/checked.h"
#include "base/minmax.h"
#include "kernels/tile_pairs/tile_walk.h"

#include <string.h>

enum {
    PIECES_PER_THREAD = 4,
    /* there is room for a run (8 B) for so many pairs, and for two links more for each tile row */
    KEPT_PAIRS = 2,
    LINK = 32,             /* runs in a link; any 64 tiles of a row have no more */
    CURSORS_MAX = 1 << 22, /* of all pieces: 32 MiB, more only where one piece has more */
    UNROLLED = 3,          /* tiles of a run that are written without a branch */
    LINE = 16,             /* ranks in a line of a cache */
};
#define NO_LINK UINT32_MAX

/* The work space. cursor[piece][tile] is first a count, then the next place to write. The runs of a
 * tile row are a stream: in links, the first of which has the number of the row. A run: its
 * Gaussian (32 bits), first tile column (16), tiles less one (16).
 */
typedef struct {
    uint64_t pieces, rows, tiles, cursors, links; /* cursors, links: of a piece */
    uint64_t *cursor, *run;
    uint64_t *kept; /* for each piece the first Gaussian that is not kept */
    uint64_t *end;  /* of each stream, where the next run goes */
    uint32_t *next; /* behind each link */
} emit_plan;

static emit_plan plan_emit(const kiln_exec *x, const kiln_tile_pairs_emit_args *a, kiln_carve *c)
{
    const uint64_t tiles_x = kiln_view_tiles_x(a->view);
    emit_plan p = {.rows = a->row1 - a->row0};
    p.tiles = p.rows * tiles_x;
    p.cursors = p.tiles + UNROLLED;
    p.pieces = x->threads == 1 ? 1 : (uint64_t)x->threads * PIECES_PER_THREAD;
    while (p.pieces > 1 && p.pieces * (p.cursors + 2 * p.rows * LINK) > CURSORS_MAX) p.pieces /= 2;
    p.links = a->capacity / KEPT_PAIRS / p.pieces / LINK + 2 * p.rows;
    if (p.links >= NO_LINK) p.links = NO_LINK - 1;
    p.cursor = kiln_take(c, p.pieces * p.cursors, sizeof *p.cursor);
    p.kept = kiln_take(c, p.pieces, sizeof *p.kept);
    p.end = kiln_take(c, p.pieces * p.rows, sizeof *p.end);
    p.next = kiln_take(c, p.pieces * p.links, sizeof *p.next);
    p.run = kiln_take(c, p.pieces * p.links * LINK, sizeof *p.run);
    return p;
}

/* ---- a piece --------------------------------------------------------------------------------- */
typedef struct {
    kiln_tile_walk walk;
    uint64_t tiles_x, rows, links, used;
    uint64_t *cursor, *run, *end;
    uint32_t *next, *ranks;
    uint32_t id; /* of the Gaussian that is walked through */
    bool counts, keeps;
} piece;

static void clear_streams(piece *p)
{
    p->used = p->rows;
    for (uint64_t r = 0; r < p->rows; r++) {
        p->end[r] = r * LINK;
        p->next[r] = NO_LINK;
    }
}

/* Asks for the memory of a link. */
static void fetch_link(const piece *p, uint64_t link)
{
    for (uint32_t i = 0; i < LINK; i += 8) __builtin_prefetch(p->run + link * LINK + i, 1);
}

/* Behind a link that is full. Some row will soon begin the link after the next two: asked for now,
 * its lines are there by then. */
static void add_link(piece *p, uint64_t row)
{
    const uint32_t added = (uint32_t)p->used++;
    fetch_link(p, p->used + 2);
    p->next[added] = NO_LINK;
    p->next[p->end[row] / LINK - 1] = added;
    p->end[row] = (uint64_t)added * LINK;
}

/* Calls put(p, row of the piece, first column, tiles) for each run of bits; n may be 0. A branch on
 * a second run is foreseen, as there is hardly ever one; one on whether there is any is not, so
 * there is none. */
typedef void run_sink(piece *p, uint64_t row, uint32_t first, uint32_t n);

static inline __attribute__((always_inline)) void for_runs(piece *p, uint32_t row, uint32_t column,
                                                           uint64_t bits, run_sink *put)
{
    do {
        const uint32_t from =
            (uint32_t)__builtin_ctzll(bits | 1ull << 63) & (0 - (uint32_t)(bits != 0));
        const uint64_t ended = ~(bits >> from); /* 0: all of a word */
        const uint32_t n = ended ? (uint32_t)__builtin_ctzll(ended) : 64;
        put(p, row - p->walk.row0, column + from, n);
        bits &= bits + (1ull << from); /* the run's bits become 0, and carry into a 0 */
    } while (bits);
}

/* Counts are the running sum: one more from the first tile on, one less behind the last. */
static inline __attribute__((always_inline)) void keep_run(piece *p, uint64_t row, uint32_t first,
                                                           uint32_t n)
{
    const uint64_t some = n > 0;
    if (p->counts) {
        uint64_t *const count = p->cursor + row * p->tiles_x + first;
        count[0] += some;
        count[n] -= some;
    }
    if (!p->keeps) return;
    uint64_t *const end = &p->end[row];
    p->run[*end] = p->id | (uint64_t)first << 32 | (uint64_t)(n - 1) << 48;
    *end += some;
    if (*end % LINK + 1 - some == 0) add_link(p, row); /* the last place was taken */
}

static inline __attribute__((always_inline)) void keep_tiles(void *to, uint32_t row,
                                                             uint32_t column, uint64_t bits)
{
    for_runs(to, row, column, bits, keep_run);
}

/* How many tiles a run has cannot be foreseen, so that a branch on it would cost more than some
 * writes: in place of those of the first three that it does not have, the first one is written
 * again. The line that a list goes on with is asked for early: a store to a line that is not there
 * yet holds up all that follow. */
static inline __attribute__((always_inline)) void write_run(uint64_t *cursor, uint32_t *ranks,
                                                            uint32_t id, uint32_t first, uint32_t n)
{
    uint64_t *const at = cursor + first;
    const uint64_t place = at[0]++;
    ranks[place] = id;
    __builtin_prefetch(ranks + place + LINE, 1);
    for (uint32_t i = 1; i < UNROLLED; i++) {
        const uint64_t has = i < n, other = at[i];
        __builtin_prefetch(ranks + other + LINE, 1);
        ranks[place + ((other - place) & (0 - has))] = id;
        at[i] = other + has;
    }
    for (uint32_t i = UNROLLED; i < n; i++) ranks[at[i]++] = id;
}

static void put_run(piece *p, uint64_t row, uint32_t first, uint32_t n)
{
    if (n > 0) write_run(p->cursor + row * p->tiles_x, p->ranks, p->id, first, n);
}

static void put_tiles(void *to, uint32_t row, uint32_t column, uint64_t bits)
{
    for_runs(to, row, column, bits, put_run);
}

/* How many links the runs of a Gaussian can take at most. */
static uint64_t links_of(const piece *p, const kiln_tile_batch *k, uint32_t i)
{
    if (k->way[i] != KILN_TILES_ODD) return k->way[i] == KILN_TILES_NONE ? 0 : (uint64_t)k->h[i];
    return p->rows * (p->tiles_x / 64 + 1);
}

/* Finds the tiles of the Gaussians [first, end), keeps their runs while there is room, and counts
 * if it shall. Returns the first that is not kept. Stops there unless it counts. */
static uint64_t find_tiles(piece *p, uint64_t first, uint64_t end)
{
    kiln_tile_batch k;
    uint64_t kept = end;
    p->keeps = true;
    for (; first < end; first += k.n) {
        kiln_tile_walk_find(&p->walk, first, end, &k);
        for (uint32_t i = 0; i < k.n; i++) {
            if (p->keeps && links_of(p, &k, i) > p->links - p->used) {
                kept = first + i;
                p->keeps = false;
                if (!p->counts) return kept;
            }
            p->id = k.id[i];
            kiln_tile_walk_one(&p->walk, &k, i, keep_tiles, p);
        }
    }
    return kept;
}

/* Writes the runs that are kept. */
static void write_kept(piece *p)
{
    for (uint64_t row = 0; row < p->rows; row++) {
        uint64_t *const cursor = p->cursor + row * p->tiles_x;
        for (uint32_t link = (uint32_t)row; link != NO_LINK; link = p->next[link]) {
            const uint64_t *const run = p->run + (uint64_t)link * LINK;
            if (p->next[link] != NO_LINK) fetch_link(p, p->next[link]);
            const uint32_t n =
                p->next[link] == NO_LINK ? (uint32_t)(p->end[row] - (uint64_t)link * LINK) : LINK;
            for (uint32_t i = 0; i < n; i++)
                write_run(cursor, p->ranks, (uint32_t)run[i], (uint32_t)(run[i] >> 32 & 0xffff),
                          (uint32_t)(run[i] >> 48) + 1);
        }
    }
    clear_streams(p);
}

/* Writes the tiles of one Gaussian, for which all the room is not enough. */
static void write_one(piece *p, uint64_t which)
{
    kiln_tile_batch k;
    kiln_tile_walk_find(&p->walk, which, which + 1, &k);
    p->id = k.id[0];
    kiln_tile_walk_one(&p->walk, &k, 0, put_tiles, p);
}

/* ---- all pieces ------------------------------------------------------------------------------ */
static piece piece_of(const kiln_tile_walk *w, const emit_plan *p, uint64_t i, uint32_t *ranks)
{
    return (piece){.walk = *w,
                   .tiles_x = kiln_view_tiles_x(w->view),
                   .rows = p->rows,
                   .links = p->links,
                   .cursor = p->cursor + i * p->cursors,
                   .run = p->run + i * p->links * LINK,
                   .next = p->next + i * p->links,
                   .end = p->end + i * p->rows,
                   .ranks = ranks,
                   .counts = !ranks};
}

/* Counts the Gaussians [first, end) by tile and keeps what there is room for. Returns the first
 * that is not kept. */
static uint64_t count_piece(piece *p, uint64_t first, uint64_t end)
{
    clear_streams(p);
    const uint64_t kept = find_tiles(p, first, end);
    uint64_t sum = 0;
    for (uint64_t tile = 0; tile < p->rows * p->tiles_x; tile++)
        p->cursor[tile] = sum += p->cursor[tile];
    return kept;
}

/* Writes what is kept, and the Gaussians [first, end), which are not. */
static void write_piece(piece *p, uint64_t first, uint64_t end)
{
    write_kept(p);
    while (first < end) {
        const uint64_t kept = find_tiles(p, first, end);
        if (kept == first) write_one(p, first++);
        if (kept > first) first = kept;
        write_kept(p);
    }
}

/* Turns counts into places: tile after tile, within a tile piece after piece. Returns the number of
 * pairs. */
static uint64_t scan(const kiln_tile_pairs_emit_args *a, const emit_plan *p)
{
    uint64_t next = 0;
    for (uint64_t tile = 0; tile < p->tiles; tile++) {
        const uint64_t start = next;
        for (uint64_t i = 0; i < p->pieces; i++) {
            uint64_t *c = &p->cursor[i * p->cursors + tile], count = *c;
            *c = next;
            next += count;
        }
        a->tile_counts[tile] = (uint32_t)(next - start); /* at most n */
    }
    return next;
}

/* For a capacity that is an upper bound. Returns false if it is too small; then nothing is
 * listed. */
static bool list_within_capacity(const kiln_tile_pairs_emit_args *a, const emit_plan *p,
                                 uint64_t pairs)
{
    const bool fits = pairs <= a->capacity;
    a->n_pairs[0] = fits ? pairs : 0;
    a->n_pairs[1] = pairs;
    if (!fits) memset(a->tile_counts, 0, (size_t)p->tiles * sizeof *a->tile_counts);
    return fits;
}

/* kiln_tile_emit_cpu, kiln_tile_emit_cpu_avx2 */
kiln_status KILN_CPU(tile_emit)(const kiln_exec *x, const kiln_tile_pairs_emit_args *a,
                                const uint32_t *order, void *work, size_t *work_bytes,
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
        return kiln_fail(err, KILN_E_CAP,
                         "tile_pairs_emit needs %zu bytes of work space, but was given %zu", c.used,
                         *work_bytes);

    const kiln_tile_walk w = {
        .splats = a->splats, .order = order, .view = a->view, .row0 = a->row0, .row1 = a->row1};
    const uint64_t size = kiln_div_up(a->n, p.pieces);
    memset(p.cursor, 0, (size_t)(p.pieces * p.cursors) * sizeof *p.cursor);
#pragma omp parallel for num_threads(x->threads) schedule(dynamic)
    for (int64_t i = 0; i < (int64_t)p.pieces; i++) {
        piece one = piece_of(&w, &p, (uint64_t)i, NULL);
        p.kept[i] = count_piece(&one, kiln_min_u64((uint64_t)i * size, a->n),
                                kiln_min_u64((uint64_t)(i + 1) * size, a->n));
    }
    const uint64_t pairs = scan(a, &p);
    if (a->n_pairs && !list_within_capacity(a, &p, pairs)) return KILN_OK;
    if (!a->n_pairs && pairs != a->capacity)
        return kiln_fail(
            err, KILN_E_BUG,
            "tile_pairs_emit: tile rows %u to %u hold %llu pairs, but %llu were counted", a->row0,
            a->row1, (unsigned long long)pairs, (unsigned long long)a->capacity);
#pragma omp parallel for num_threads(x->threads) schedule(dynamic)
    for (int64_t i = 0; i < (int64_t)p.pieces; i++) {
        piece one = piece_of(&w, &p, (uint64_t)i, a->ranks);
        write_piece(&one, p.kept[i], kiln_min_u64((uint64_t)(i + 1) * size, a->n));
    }
    return KILN_OK;
}

/* kiln_tile_pairs_emit_cpu, kiln_tile_pairs_emit_cpu_avx2 */
kiln_status KILN_CPU(tile_pairs_emit)(const kiln_exec *x, const kiln_tile_pairs_emit_args *a,
                                      void *work, size_t *work_bytes, kiln_error *err)
{
    return KILN_CPU(tile_emit)(x, a, NULL, work, work_bytes, err);
}
