/* tile_emit_cpu -- lists the pairs on the CPU. How the tiles are found: tile_walk.h.
 *
 * The depth order is cut into pieces, a tile row into groups of eight tiles. For each Gaussian and
 * group a piece keeps an entry: which Gaussian, and a bit for each tile. The entries of a group are
 * a stream, in depth order. Then each group is written for itself. Its streams, piece after piece,
 * are gathered into the first cache. For each tile the entries with its bit are moved together,
 * eight at a time and without a branch: they are its list. No place in a list is looked up, and any
 * cut gives the same lists.
 *
 * There is room for as many entries as there can be pairs. If more pairs are found than the caller
 * has room for, the rest is only counted.
 */
#include "kernels/tile_pairs/tile_emit.h"

#include "base/carve.h"
#include "base/checked.h"
#include "base/minmax.h"
#include "kernels/tile_pairs/tile_walk.h"

#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

enum {
    PIECES_PER_THREAD = 2,
    STREAMS_MAX = 1 << 16, /* of all pieces; more only where one piece has more */
    PIECE_BITS = 24,       /* a Gaussian's number in its piece, above the eight bits of an entry */
    GROUP = 8,             /* tiles */
    LANES = 8,
    LINK = 128,           /* entries */
    TAKEN = 16,           /* links that a piece takes at a time */
    WAITING = 2048,       /* entries that are found before they go to their streams */
    GATHERED = 2048,      /* entries of a group at a time */
    MORE = LANES * LANES, /* that eight Gaussians may have */
    BLOCK = 32,           /* of those, entries that are looked at together */
    AHEAD = 16,           /* the place of an entry is asked for so many before it is written */
};
#define NO_LINK UINT32_MAX

/* Of each set of eight bits. */
typedef struct {
    uint64_t spread[256];    /* byte i is bit i */
    uint8_t set[256][GROUP]; /* which bits are set, ascending */
} bit_tables;

/* The work space. A stream's entries are in links. */
typedef struct {
    uint64_t pieces, rows, tiles_x, groups, streams,
        links; /* groups: of a row; streams: of a piece */
    /* of each stream of each piece: where the next entry goes, 0 for none; its first link */
    uint64_t *end;
    uint32_t *head;
    uint32_t *count; /* of each piece, of each tile of each group */
    uint64_t *lost;  /* of each piece: pairs without room */
    uint64_t *start; /* of each row, its first pair */
    uint32_t *next;  /* behind each link */
    uint32_t *entry;
    uint64_t *used; /* links, of all pieces */
    bit_tables *bits;
} emit_plan;

static emit_plan plan_emit(const kiln_exec *x, const kiln_tile_pairs_emit_args *a, kiln_carve *c)
{
    emit_plan p = {.rows = a->row1 - a->row0, .tiles_x = kiln_view_tiles_x(a->view)};
    p.groups = kiln_div_up(p.tiles_x, GROUP);
    p.streams = p.rows * p.groups;
    p.pieces = x->threads == 1 ? 1 : (uint64_t)x->threads * PIECES_PER_THREAD;
    const uint64_t most = kiln_min_u64(STREAMS_MAX, a->capacity / LINK * 2);
    while (p.pieces > 1 && p.pieces * p.streams > most) p.pieces /= 2;
    p.pieces = kiln_max_u64(p.pieces, kiln_div_up(a->n, 1ull << PIECE_BITS));
    /* full ones, others, those that a piece has taken and does not need */
    p.links =
        a->capacity / LINK + kiln_min_u64(p.pieces * p.streams, a->capacity) + p.pieces * TAKEN;
    p.end = kiln_take(c, p.pieces * p.streams, sizeof *p.end);
    p.head = kiln_take(c, p.pieces * p.streams, sizeof *p.head);
    p.count = kiln_take(c, p.pieces * p.streams * GROUP, sizeof *p.count);
    p.lost = kiln_take(c, p.pieces, sizeof *p.lost);
    p.start = kiln_take(c, p.rows + 1, sizeof *p.start);
    p.next = kiln_take(c, p.links, sizeof *p.next);
    p.entry = kiln_take(c, p.links * LINK, sizeof *p.entry);
    p.used = kiln_take(c, 1, sizeof *p.used);
    p.bits = kiln_take(c, 1, sizeof *p.bits);
    return p;
}

static void fill_tables(bit_tables *t)
{
    memset(t, 0, sizeof *t);
    for (uint32_t bits = 0; bits < 256; bits++)
        for (uint32_t i = 0, n = 0; i < GROUP; i++) {
            if (!(bits >> i & 1)) continue;
            t->spread[bits] |= 1ull << 8 * i;
            t->set[bits][n++] = (uint8_t)i;
        }
}

/* ---- a piece: finding ------------------------------------------------------------------------ */
typedef struct {
    const emit_plan *plan;
    uint64_t *end, lost;
    uint32_t *head, *count;
    uint64_t free, free_end; /* links that it has taken */
    uint32_t row0;
    uint32_t id;                        /* in the piece, of the Gaussian that is walked through */
    _Alignas(32) uint32_t where[LANES]; /* streams of two groups in four rows, from the first one */
    uint32_t waiting, stream[WAITING + MORE], entry[WAITING + MORE];
} piece;

/* Ask for the memory of a link, to be written or to be read. */
static void fetch_to_write(const emit_plan *p, uint64_t link)
{
    for (uint32_t i = 0; i < LINK; i += 16) __builtin_prefetch(p->entry + link * LINK + i, 1);
}

static void fetch_to_read(const emit_plan *p, uint64_t link)
{
    for (uint32_t i = 0; i < LINK; i += 16) __builtin_prefetch(p->entry + link * LINK + i);
}

/* Adds the first n entries of a link to the counts of the tiles of its stream. */
static void count_some(const piece *p, uint32_t stream, uint64_t link, uint32_t n)
{
    const uint32_t *const entry = p->plan->entry + link * LINK;
    uint32_t *const count = p->count + (uint64_t)stream * GROUP;
    uint64_t sums = 0; /* a byte each: LINK is below 256 */
    for (uint32_t i = 0; i < n; i++) sums += p->plan->bits->spread[entry[i] & 0xff];
    for (uint32_t i = 0; i < GROUP; i++) count[i] += (uint32_t)(sums >> 8 * i & 0xff);
}

/* The same of a whole link: four entries at a time, a byte for each bit. */
static void count_link(const piece *p, uint32_t stream, uint64_t link)
{
#ifdef __AVX2__
    const uint32_t *const entry = p->plan->entry + link * LINK;
    __m256i *const count = (__m256i *)(p->count + (uint64_t)stream * GROUP);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201ull);
    const __m256i of =
        _mm256_setr_epi64x(0, 0x0404040404040404, 0x0808080808080808, 0x0c0c0c0c0c0c0c0c);
    __m256i sums = _mm256_setzero_si256();
    for (uint32_t i = 0; i < LINK; i += 4) {
        const __m256i four =
            _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(entry + i)));
        const __m256i has = _mm256_and_si256(_mm256_shuffle_epi8(four, of), bit);
        sums = _mm256_sub_epi8(sums, _mm256_cmpeq_epi8(has, bit));
    }
    const __m128i two =
        _mm_add_epi8(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    const __m256i added = _mm256_cvtepu8_epi32(_mm_add_epi8(two, _mm_unpackhi_epi64(two, two)));
    _mm256_storeu_si256(count, _mm256_add_epi32(_mm256_loadu_si256(count), added));
#else
    count_some(p, stream, link, LINK);
#endif
}

/* Begins a link behind the one that ends at `end`, which is counted. Returns false if there is none
 * left. A link that is begun soon is asked for. */
static bool add_link(piece *p, uint32_t stream, uint64_t *end)
{
    const emit_plan *const all = p->plan;
    if (p->free == p->free_end) {
        p->free = __atomic_fetch_add(all->used, TAKEN, __ATOMIC_RELAXED);
        p->free_end = p->free + TAKEN;
        if (p->free_end > all->links) {
            p->free = p->free_end;
            return false;
        }
    }
    const uint64_t link = p->free++;
    if (link + 2 < p->free_end) fetch_to_write(all, link + 2);
    all->next[link] = NO_LINK;
    if (*end == 0) {
        p->head[stream] = (uint32_t)link;
    } else {
        all->next[*end / LINK - 1] = (uint32_t)link;
        count_link(p, stream, *end / LINK - 1);
    }
    *end = link * LINK;
    return true;
}

/* Appends what is waiting to its streams. */
static void append(piece *p)
{
    uint32_t *const entry = p->plan->entry;
    uint64_t *const restrict ends = p->end;
    const uint32_t n = p->waiting;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t stream = p->stream[i], e = p->entry[i];
        __builtin_prefetch(entry + ends[p->stream[i + AHEAD < n ? i + AHEAD : i]], 1);
        uint64_t end = ends[stream];
        if (end % LINK == 0 && !add_link(p, stream, &end)) {
            p->lost += (uint32_t)__builtin_popcount(e & 0xff);
            continue;
        }
        entry[end] = e;
        ends[stream] = end + 1;
    }
    p->waiting = 0;
}

/* The entries of a run of tiles. */
static void list_run(void *to, uint32_t row, uint32_t column, uint32_t n)
{
    piece *const p = to;
    const uint32_t first = (uint32_t)((row - p->row0) * p->plan->groups);
    while (n > 0) {
        const uint32_t at = column % GROUP, left = GROUP - at, some = n < left ? n : left;
        if (p->waiting >= WAITING) append(p);
        p->stream[p->waiting] = first + column / GROUP;
        p->entry[p->waiting++] = p->id << 8 | ((1u << some) - 1) << at;
        column += some;
        n -= some;
    }
}

/* Bits of FEW: of four tile rows two groups each, the first of which is box column / GROUP. */
typedef struct {
    _Alignas(32) uint32_t rows01[LANES], rows23[LANES], stream[LANES];
    uint32_t other[LANES]; /* not 0: list_other has it */
} few_bits;

/* Of n tiles, the first of which is `at` of the two groups. n may be 0, with any `at`. */
static inline uint32_t bits_of_run(uint32_t n, uint32_t at)
{
    return (((1u << (n & 31)) - 1) << (at & 15)) & 0xffff;
}

/* Without tiles `first` is any number, so the difference is unsigned: it cannot overflow. */
static inline uint32_t bits_of_row(const kiln_tile_eight *e, uint32_t r, uint32_t i, int32_t from)
{
    return bits_of_run((uint32_t)e->tiles[r][i], (uint32_t)e->first[r][i] - (uint32_t)from);
}

static inline void find_bits(const kiln_tile_eight *restrict e, const piece *p,
                             few_bits *restrict b)
{
    const uint32_t row0 = p->row0, groups = (uint32_t)p->plan->groups;
#pragma omp simd
    for (uint32_t i = 0; i < LANES; i++) {
        const int32_t from = e->column[i] & -GROUP;
        b->rows01[i] = bits_of_row(e, 0, i, from) | bits_of_row(e, 1, i, from) << 16;
        b->rows23[i] = bits_of_row(e, 2, i, from) | bits_of_row(e, 3, i, from) << 16;
        b->stream[i] = ((uint32_t)e->row[i] - row0) * groups + (uint32_t)from / GROUP;
        b->other[i] =
            kiln_span_mask(e->way[i] >= KILN_TILES_ROWS) |
            (kiln_span_mask(e->few[i] > 0) & kiln_span_mask(e->end[i] - from > 2 * GROUP));
    }
}

/* Puts the entries of eight sets of bits behind the first `at` that wait; those without a bit are
 * none. Returns how many wait then. */
static inline uint32_t list_bits(piece *p, uint32_t id, uint64_t bits, uint32_t stream, uint32_t at)
{
#ifdef __AVX2__
    const __m256i sets = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)bits));
    const uint32_t some = (uint32_t)_mm256_movemask_ps(
        _mm256_castsi256_ps(_mm256_cmpgt_epi32(sets, _mm256_setzero_si256())));
    const __m256i order =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)p->plan->bits->set[some]));
    const __m256i entries = _mm256_or_si256(sets, _mm256_set1_epi32((int)(id << GROUP))),
                  streams = _mm256_add_epi32(_mm256_load_si256((const __m256i *)p->where),
                                             _mm256_set1_epi32((int)stream));
    _mm256_storeu_si256((__m256i *)(p->entry + at), _mm256_permutevar8x32_epi32(entries, order));
    _mm256_storeu_si256((__m256i *)(p->stream + at), _mm256_permutevar8x32_epi32(streams, order));
    return at + (uint32_t)__builtin_popcount(some);
#else
    for (uint32_t i = 0; i < LANES; i++) {
        const uint32_t set = (uint32_t)(bits >> GROUP * i) & 0xff;
        p->entry[at] = id << GROUP | set;
        p->stream[at] = stream + p->where[i];
        at += set != 0;
    }
    return at;
#endif
}

/* A Gaussian of ROWS with two groups: four rows at a time. */
static void list_rows(piece *p, const kiln_tile_walk *w, const kiln_tile_batch *k, uint32_t i)
{
    const kiln_tile_eight *const e = kiln_tile_eight_of(k, i);
    const uint32_t lane = i % LANES;
    const int32_t from = e->column[lane] & -GROUP, h = e->h[lane];
    const uint32_t first =
        ((uint32_t)e->row[lane] - p->row0) * (uint32_t)p->plan->groups + (uint32_t)from / GROUP;
    for (int32_t r = 0; r < h; r += LANES) {
        kiln_tile_spans s;
        _Alignas(32) uint32_t bits[LANES];
        KILN_CPU(tile_batch_rows)(w->view, k, i, r, &s);
#pragma omp simd
        for (uint32_t j = 0; j < LANES; j++)
            bits[j] = bits_of_run((uint32_t)s.n[j], (uint32_t)(s.first[j] - from)) &
                      ~kiln_span_mask(s.open >> j & 1);
        for (uint32_t j = 0; j < LANES; j += 4) {
            const uint32_t stream = first + ((uint32_t)r + j) * (uint32_t)p->plan->groups;
            if (p->waiting >= WAITING) append(p);
            p->waiting = list_bits(p, p->id,
                                   bits[j] | bits[j + 1] << 16 |
                                       (uint64_t)(bits[j + 2] | bits[j + 3] << 16) << 32,
                                   stream, p->waiting);
        }
        for (uint32_t open = s.open; open; open &= open - 1)
            kiln_tile_walk_asked(w, k, i, e->row[lane] + r + __builtin_ctz(open), list_run, p);
    }
}

/* What needs more than two groups of four rows. */
static void list_other(piece *p, const kiln_tile_walk *w, const kiln_tile_batch *k, uint32_t i)
{
    const kiln_tile_eight *const e = kiln_tile_eight_of(k, i);
    const uint32_t lane = i % LANES;
    if (e->way[lane] == KILN_TILES_ROWS && e->end[lane] - (e->column[lane] & -GROUP) <= 2 * GROUP) {
        list_rows(p, w, k, i);
        return;
    }
    if (e->few[lane] == 0) kiln_tile_walk_other(w, k, i, list_run, p);
    for (int32_t r = 0; r < e->few[lane]; r++)
        list_run(p, (uint32_t)(e->row[lane] + r), (uint32_t)e->first[r][lane],
                 (uint32_t)e->tiles[r][lane]);
}

/* Lists the first n lanes of eight Gaussians, of which the first is Gaussian i of the batch. */
static inline void list_eight(piece *p, const kiln_tile_walk *w, const kiln_tile_batch *k,
                              uint32_t i, uint32_t n)
{
    few_bits b;
    find_bits(kiln_tile_eight_of(k, i), p, &b);
    uint32_t id = p->id, waiting = p->waiting;
    for (uint32_t lane = 0; lane < n; lane++, id++) {
        if (!b.other[lane]) {
            waiting = list_bits(p, id, b.rows01[lane] | (uint64_t)b.rows23[lane] << 32,
                                b.stream[lane], waiting);
            continue;
        }
        p->id = id;
        p->waiting = waiting;
        list_other(p, w, k, i + lane);
        waiting = p->waiting;
    }
    p->id = id;
    p->waiting = waiting;
}

/* Finds the tiles of the Gaussians [first, end). */
static void find_piece(piece *p, const kiln_tile_walk *w, uint64_t first, uint64_t end)
{
    kiln_tile_batch k;
    for (; first < end; first += k.n) {
        kiln_tile_walk_find(w, first, end, &k);
        for (uint32_t i = 0; i < k.n; i += LANES) {
            const uint32_t left = k.n - i;
            if (p->waiting >= WAITING) append(p);
            list_eight(p, w, &k, i, left < LANES ? left : LANES);
        }
    }
    append(p);
    for (uint32_t stream = 0; stream < p->plan->streams; stream++) {
        const uint64_t last = p->end[stream];
        if (last > 0) count_some(p, stream, (last - 1) / LINK, (uint32_t)((last - 1) % LINK + 1));
    }
}

/* ---- a group: writing ------------------------------------------------------------------------ */
/* Entries of a group, taken apart. */
typedef struct {
    uint32_t n;
    _Alignas(32) uint8_t set[GATHERED + BLOCK];
    uint32_t id[GATHERED + BLOCK], list[GATHERED + BLOCK + LANES];
} gathered;

/* Adds the first n entries of a link; the piece begins with Gaussian `first`. */
static void gather_link(gathered *g, const uint32_t *restrict entry, uint32_t n, uint32_t first,
                        const uint32_t *order)
{
    uint32_t *const id = g->id + g->n;
    uint8_t *const set = g->set + g->n;
    for (uint32_t i = 0; i < n; i++) {
        id[i] = first + (entry[i] >> GROUP);
        set[i] = (uint8_t)entry[i];
    }
    if (order)
        for (uint32_t i = 0; i < n; i++) id[i] = order[id[i]];
    g->n += n;
}

/* Moves those entries of [at, at + 32) together that have the bit. Returns how many; up to eight
 * words more are written. */
static inline uint32_t select_block(const gathered *g, uint32_t at, uint32_t bit,
                                    const bit_tables *t, uint32_t *to)
{
    uint32_t n = 0;
#ifdef __AVX2__
    const __m256i sets = _mm256_load_si256((const __m256i *)(g->set + at));
    uint32_t has =
        (uint32_t)_mm256_movemask_epi8(_mm256_sll_epi16(sets, _mm_cvtsi32_si128(7 - (int)bit)));
    for (uint32_t i = 0; i < BLOCK; i += LANES, has >>= LANES) {
        const __m256i which =
            _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)t->set[has & 0xff]));
        const __m256i ids = _mm256_loadu_si256((const __m256i *)(g->id + at + i));
        _mm256_storeu_si256((__m256i *)(to + n), _mm256_permutevar8x32_epi32(ids, which));
        n += (uint32_t)__builtin_popcount(has & 0xff);
    }
#else
    (void)t;
    for (uint32_t i = at; i < at + BLOCK; i++) {
        to[n] = g->id[i];
        n += g->set[i] >> bit & 1;
    }
#endif
    return n;
}

/* Writes what is gathered to the list of a tile, which has room for `left` words more: near its end
 * not directly, as words are written that are not its own. Returns how many it was. */
static uint32_t write_tile(gathered *g, uint32_t bit, const bit_tables *t, uint32_t *to,
                           uint64_t left)
{
    uint32_t i = 0, n = 0, m = 0;
    for (; i < g->n && n + BLOCK + LANES <= left; i += BLOCK)
        n += select_block(g, i, bit, t, to + n);
    for (; i < g->n; i += BLOCK) m += select_block(g, i, bit, t, g->list + m);
    memcpy(to + n, g->list, m * sizeof *to);
    return n + m;
}

/* Writes what is gathered to the lists of its tiles, and forgets it. */
static void write_gathered(gathered *g, const bit_tables *t, uint64_t place[][2], uint32_t tiles,
                           uint32_t *ranks)
{
    if (g->n == 0) return;
    memset(g->set + g->n, 0, BLOCK);
    for (uint32_t i = 0; i < tiles; i++)
        place[i][0] += write_tile(g, i, t, ranks + place[i][0], place[i][1] - place[i][0]);
    g->n = 0;
}

/* Where a stream goes on. */
typedef struct {
    uint64_t stream, which; /* of the row's groups; piece */
    uint32_t link;
} stream_place;

/* The next links of a stream, as many as are gathered at a time, are asked for. */
typedef struct {
    uint32_t n, link[GATHERED / LINK], entries[GATHERED / LINK], first[GATHERED / LINK];
} asked_links;

static void ask_links(const emit_plan *p, stream_place *at, uint64_t size, asked_links *a)
{
    for (a->n = 0; a->n < GATHERED / LINK;) {
        while (at->link == NO_LINK) {
            if (++at->which >= p->pieces) return;
            const uint64_t stream = at->which * p->streams + at->stream;
            if (p->end[stream] > 0) at->link = p->head[stream];
        }
        const uint32_t link = at->link, behind = p->next[link];
        const uint64_t last = p->end[at->which * p->streams + at->stream] - 1;
        fetch_to_read(p, link);
        a->link[a->n] = link;
        a->entries[a->n] = behind == NO_LINK ? (uint32_t)(last % LINK + 1) : LINK;
        a->first[a->n++] = (uint32_t)(at->which * size);
        at->link = behind;
    }
}

static stream_place start_stream(uint64_t stream)
{
    return (stream_place){.stream = stream, .which = UINT64_MAX, .link = NO_LINK};
}

/* Writes the lists of a tile row. size: Gaussians of a piece. What comes next is asked for before
 * what is here is written. */
static void write_row(const emit_plan *p, const kiln_tile_pairs_emit_args *a, uint64_t row,
                      uint64_t size, const uint32_t *order)
{
    gathered g;
    asked_links asked;
    uint64_t next = p->start[row];
    stream_place at = start_stream(row * p->groups);
    g.n = 0;
    ask_links(p, &at, size, &asked);
    for (uint64_t group = 0; group < p->groups; group++) {
        const uint64_t left = p->tiles_x - group * GROUP;
        const uint32_t tiles = left < GROUP ? (uint32_t)left : GROUP;
        uint64_t place[GROUP][2]; /* of each tile: the next word, the end */
        for (uint32_t i = 0; i < tiles; i++) {
            place[i][0] = next;
            next += a->tile_counts[row * p->tiles_x + group * GROUP + i];
            place[i][1] = next;
        }
        for (bool more = true; more;) {
            for (uint32_t i = 0; i < asked.n; i++)
                gather_link(&g, p->entry + (uint64_t)asked.link[i] * LINK, asked.entries[i],
                            asked.first[i], order);
            more = asked.n == GATHERED / LINK;
            if (!more) at = start_stream(row * p->groups + group + 1);
            if (more || group + 1 < p->groups) ask_links(p, &at, size, &asked);
            write_gathered(&g, p->bits, place, tiles, a->ranks);
        }
    }
}

/* ---- all pieces ------------------------------------------------------------------------------ */
static void find_pairs(const emit_plan *p, const kiln_tile_walk *w, uint64_t i, uint64_t size)
{
    piece one;
    one.plan = p;
    one.end = p->end + i * p->streams;
    one.head = p->head + i * p->streams;
    one.count = p->count + i * p->streams * GROUP;
    one.lost = one.free = one.free_end = 0;
    one.row0 = w->row0;
    one.id = one.waiting = 0;
    for (uint32_t k = 0; k < LANES; k++) one.where[k] = k / 2 * (uint32_t)p->groups + k % 2;
    find_piece(&one, w, kiln_min_u64(i * size, w->n), kiln_min_u64((i + 1) * size, w->n));
    p->lost[i] = one.lost;
}

/* Fills tile_counts of a row. Returns its pairs. */
static uint64_t add_counts(const emit_plan *p, uint64_t row, uint32_t *tile_counts)
{
    uint64_t pairs = 0;
    for (uint64_t tile = 0; tile < p->tiles_x; tile++) {
        uint32_t n = 0; /* at most as many as Gaussians */
        for (uint64_t i = 0; i < p->pieces; i++)
            n += p->count[(i * p->streams + row * p->groups) * GROUP + tile];
        tile_counts[row * p->tiles_x + tile] = n;
        pairs += n;
    }
    return pairs;
}

/* Turns pairs of rows into places. Returns the number of pairs found. */
static uint64_t scan(const emit_plan *p)
{
    uint64_t next = 0;
    for (uint64_t row = 0; row <= p->rows; row++) {
        const uint64_t pairs = p->start[row];
        p->start[row] = next;
        next += pairs;
    }
    for (uint64_t i = 0; i < p->pieces; i++) next += p->lost[i];
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
    if (!fits) memset(a->tile_counts, 0, (size_t)(p->rows * p->tiles_x) * sizeof *a->tile_counts);
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
    if (*work_bytes < c.used || p.links >= NO_LINK)
        return kiln_fail(err, KILN_E_CAP,
                         "tile_pairs_emit needs %zu bytes of work space, but was given %zu", c.used,
                         *work_bytes);

    const kiln_tile_walk w = {.splats = a->splats,
                              .order = order,
                              .n = a->n,
                              .view = a->view,
                              .row0 = a->row0,
                              .row1 = a->row1};
    const uint64_t size = kiln_div_up(a->n, p.pieces);
    memset(p.end, 0, (size_t)(p.pieces * p.streams) * sizeof *p.end);
    memset(p.count, 0, (size_t)(p.pieces * p.streams * GROUP) * sizeof *p.count);
    *p.used = 0;
    p.start[p.rows] = 0;
    fill_tables(p.bits);
#pragma omp parallel for num_threads(x->threads) schedule(dynamic)
    for (int64_t i = 0; i < (int64_t)p.pieces; i++) find_pairs(&p, &w, (uint64_t)i, size);
#pragma omp parallel for num_threads(x->threads)
    for (int64_t row = 0; row < (int64_t)p.rows; row++)
        p.start[row] = add_counts(&p, (uint64_t)row, a->tile_counts);
    const uint64_t pairs = scan(&p);
    if (a->n_pairs && !list_within_capacity(a, &p, pairs)) return KILN_OK;
    if (!a->n_pairs && pairs != a->capacity)
        return kiln_fail(
            err, KILN_E_BUG,
            "tile_pairs_emit: tile rows %u to %u hold %llu pairs, but %llu were counted", a->row0,
            a->row1, (unsigned long long)pairs, (unsigned long long)a->capacity);
#pragma omp parallel for num_threads(x->threads) schedule(dynamic)
    for (int64_t row = 0; row < (int64_t)p.rows; row++)
        write_row(&p, a, (uint64_t)row, size, order);
    return KILN_OK;
}

/* kiln_tile_pairs_emit_cpu, kiln_tile_pairs_emit_cpu_avx2 */
kiln_status KILN_CPU(tile_pairs_emit)(const kiln_exec *x, const kiln_tile_pairs_emit_args *a,
                                      void *work, size_t *work_bytes, kiln_error *err)
{
    return KILN_CPU(tile_emit)(x, a, NULL, work, work_bytes, err);
}
