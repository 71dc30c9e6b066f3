/* sort -- least significant digit first, 8 bits a pass, and no pass for digits that all keys share.
 *
 * A pass cuts the pairs into one piece a thread, counts digits for each piece, turns the counts into the place where
 * each piece writes each digit, and scatters. Pieces are in order and each keeps its own order: the pass is stable.
 */
#include "kernels/sort/sort.h"

#include "base/carve.h"

#include <inttypes.h>
#include <string.h>

enum { DIGIT_BITS = 8, DIGITS = 1 << DIGIT_BITS, MAX_PIECES = 256, SMALL = 64 };

typedef struct {
    uint64_t *keys;
    uint32_t *values;
    uint64_t (*counts)[DIGITS];
    size_t bytes;
} layout;

static unsigned piece_count(uint64_t n, unsigned threads)
{
    const uint64_t useful = n / 16384 + 1; /* below that a piece costs more than it saves */
    unsigned pieces = threads < 1 ? 1 : threads > MAX_PIECES ? MAX_PIECES : threads;
    return useful < pieces ? (unsigned)useful : pieces;
}

static layout lay_out(uint64_t n, unsigned threads, void *work)
{
    kiln_carve c = {work, 0};
    layout l;
    l.keys = kiln_take(&c, n, sizeof *l.keys);
    l.values = kiln_take(&c, n, sizeof *l.values);
    l.counts = kiln_take(&c, piece_count(n, threads), sizeof *l.counts);
    l.bytes = c.used;
    return l;
}

kiln_status kiln_sort_check(const char *op, uint64_t n, kiln_error *err)
{
    if (n <= UINT32_MAX - 1) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "%s: %" PRIu64 " rows; the most is 4294967294", op, n);
}

size_t kiln_sort_bytes(uint64_t n, unsigned threads) { return lay_out(n, threads, NULL).bytes; }

static uint64_t differing_bits(uint64_t n, const uint64_t *keys)
{
    uint64_t diff = 0;
    for (uint64_t i = 1; i < n; i++) diff |= keys[i] ^ keys[0];
    return diff;
}

static void insertion_sort(uint64_t n, uint64_t *keys, uint32_t *values)
{
    for (uint64_t i = 1; i < n; i++) {
        const uint64_t key = keys[i];
        const uint32_t value = values[i];
        uint64_t j = i;
        for (; j > 0 && keys[j - 1] > key; j--) {
            keys[j] = keys[j - 1];
            values[j] = values[j - 1];
        }
        keys[j] = key;
        values[j] = value;
    }
}

typedef struct {
    uint64_t *keys, *out_keys;
    uint32_t *values, *out_values;
    uint64_t n;
    unsigned shift, pieces;
    uint64_t (*counts)[DIGITS];
} pass;

static inline uint64_t piece_start(const pass *p, unsigned piece)
{
    const uint64_t each = p->n / p->pieces, rest = p->n % p->pieces;
    return each * piece + (piece < rest ? piece : rest);
}

static void count_piece(const pass *p, unsigned piece)
{
    uint64_t *count = p->counts[piece];
    const uint64_t end = piece_start(p, piece + 1);
    memset(count, 0, sizeof p->counts[piece]);
    for (uint64_t i = piece_start(p, piece); i < end; i++) count[p->keys[i] >> p->shift & (DIGITS - 1)]++;
}

/* counts become the first place of each (digit, piece) */
static void place(const pass *p)
{
    uint64_t at = 0;
    for (unsigned d = 0; d < DIGITS; d++) {
        for (unsigned t = 0; t < p->pieces; t++) {
            const uint64_t count = p->counts[t][d];
            p->counts[t][d] = at;
            at += count;
        }
    }
}

static void scatter_piece(const pass *p, unsigned piece)
{
    uint64_t *next = p->counts[piece];
    const uint64_t end = piece_start(p, piece + 1);
    for (uint64_t i = piece_start(p, piece); i < end; i++) {
        const uint64_t key = p->keys[i];
        const uint64_t to = next[key >> p->shift & (DIGITS - 1)]++;
        p->out_keys[to] = key;
        p->out_values[to] = p->values[i];
    }
}

static void run_pass(const pass *p)
{
    const int pieces = (int)p->pieces;
#pragma omp parallel for num_threads(pieces) schedule(static, 1) if (pieces > 1)
    for (int t = 0; t < pieces; t++) count_piece(p, (unsigned)t);
    place(p);
#pragma omp parallel for num_threads(pieces) schedule(static, 1) if (pieces > 1)
    for (int t = 0; t < pieces; t++) scatter_piece(p, (unsigned)t);
}

void kiln_sort_pairs(uint64_t n, uint64_t *keys, uint32_t *values, unsigned threads, void *work)
{
    if (n <= SMALL) {
        insertion_sort(n, keys, values);
        return;
    }
    const layout l = lay_out(n, threads, work);
    const uint64_t diff = differing_bits(n, keys);
    pass p = {.keys = keys,
              .values = values,
              .out_keys = l.keys,
              .out_values = l.values,
              .n = n,
              .pieces = piece_count(n, threads),
              .counts = l.counts};
    for (p.shift = 0; p.shift < 64; p.shift += DIGIT_BITS) {
        if ((diff >> p.shift & (DIGITS - 1)) == 0) continue;
        run_pass(&p);
        uint64_t *k = p.keys;
        uint32_t *v = p.values;
        p.keys = p.out_keys;
        p.values = p.out_values;
        p.out_keys = k;
        p.out_values = v;
    }
    if (p.keys != keys) {
        memcpy(keys, p.keys, n * sizeof *keys);
        memcpy(values, p.values, n * sizeof *values);
    }
}
