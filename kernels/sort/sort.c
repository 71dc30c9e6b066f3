/* sort -- least significant digit first, 8 bits a pass, and no pass for digits that all keys share.
 *
 * A pass cuts the pairs into one piece a thread and counts digits for each piece. It turns the
 * counts into the place where each piece writes each digit, and scatters. Pieces are in order and
 * each keeps its own order: the pass is stable.
 */
#include "kernels/sort/sort.h"

#include "base/carve.h"

#include <inttypes.h>
#include <string.h>

enum {
    DIGIT_BITS = 8,
    DIGITS = 1 << DIGIT_BITS,
    MAX_PIECES = 256,
    SMALL = 64,
    WORD_DIGIT_BITS = 11
};

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

static layout lay_out_sort(uint64_t n, unsigned threads, void *work)
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

size_t kiln_sort_bytes(uint64_t n, unsigned threads)
{
    return lay_out_sort(n, threads, NULL).bytes;
}

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
    uint32_t *values, *out_values; /* NULL: keys alone are sorted */
    uint64_t n;
    unsigned shift, bits; /* of the digit that is sorted by */
    unsigned pieces;
    uint64_t *counts; /* a row of 2^bits for each piece */
} pass;

static inline uint64_t piece_start(const pass *p, unsigned piece)
{
    const uint64_t each = p->n / p->pieces, rest = p->n % p->pieces;
    return each * piece + (piece < rest ? piece : rest);
}

static void count_piece(const pass *p, unsigned piece)
{
    uint64_t *const count = p->counts + ((size_t)piece << p->bits);
    const uint64_t end = piece_start(p, piece + 1), mask = (1u << p->bits) - 1;
    memset(count, 0, sizeof *count << p->bits);
    for (uint64_t i = piece_start(p, piece); i < end; i++) count[p->keys[i] >> p->shift & mask]++;
}

/* counts become the first place of each (digit, piece) */
static void place_digits(const pass *p)
{
    uint64_t at = 0;
    for (size_t d = 0; d < (size_t)1 << p->bits; d++) {
        for (size_t t = 0; t < p->pieces; t++) {
            uint64_t *const count = &p->counts[(t << p->bits) + d], n = *count;
            *count = at;
            at += n;
        }
    }
}

static void scatter_piece(const pass *p, unsigned piece)
{
    uint64_t *const next = p->counts + ((size_t)piece << p->bits);
    const uint64_t end = piece_start(p, piece + 1), mask = (1u << p->bits) - 1;
    if (!p->values) {
        for (uint64_t i = piece_start(p, piece); i < end; i++)
            p->out_keys[next[p->keys[i] >> p->shift & mask]++] = p->keys[i];
        return;
    }
    for (uint64_t i = piece_start(p, piece); i < end; i++) {
        const uint64_t key = p->keys[i];
        const uint64_t to = next[key >> p->shift & mask]++;
        p->out_keys[to] = key;
        p->out_values[to] = p->values[i];
    }
}

static void run_pass(const pass *p)
{
    const int pieces = (int)p->pieces;
#pragma omp parallel for num_threads(pieces) schedule(static, 1) if (pieces > 1)
    for (int t = 0; t < pieces; t++) count_piece(p, (unsigned)t);
    place_digits(p);
#pragma omp parallel for num_threads(pieces) schedule(static, 1) if (pieces > 1)
    for (int t = 0; t < pieces; t++) scatter_piece(p, (unsigned)t);
}

/* Sorts by all digits in which keys differ; `diff` has the bits that differ. p->keys, p->values get
 * the result. */
static void run_passes(pass *p, uint64_t diff)
{
    for (; p->shift < 64 && diff >> p->shift != 0; p->shift += p->bits) {
        if ((diff >> p->shift & ((1u << p->bits) - 1)) == 0) continue;
        run_pass(p);
        uint64_t *const k = p->keys;
        uint32_t *const v = p->values;
        p->keys = p->out_keys;
        p->values = p->out_values;
        p->out_keys = k;
        p->out_values = v;
    }
}

void kiln_sort_pairs(uint64_t n, uint64_t *keys, uint32_t *values, unsigned threads, void *work)
{
    if (n <= SMALL) {
        insertion_sort(n, keys, values);
        return;
    }
    const layout l = lay_out_sort(n, threads, work);
    const uint64_t diff = differing_bits(n, keys);
    pass p = {.keys = keys,
              .values = values,
              .out_keys = l.keys,
              .out_values = l.values,
              .n = n,
              .bits = DIGIT_BITS,
              .pieces = piece_count(n, threads),
              .counts = l.counts[0]};
    run_passes(&p, diff);
    if (p.keys != keys) {
        memcpy(keys, p.keys, n * sizeof *keys);
        memcpy(values, p.values, n * sizeof *values);
    }
}

size_t kiln_sort_words_bytes(uint64_t n, unsigned threads)
{
    return (size_t)piece_count(n, threads) * sizeof(uint64_t) << WORD_DIGIT_BITS;
}

uint64_t *kiln_sort_words(uint64_t n, uint64_t *words, uint64_t *spare, unsigned from,
                          unsigned threads, void *work)
{
    const uint64_t diff = differing_bits(n, words);
    if (diff >> from == 0) return words;
    const unsigned bits = 64 - from - (unsigned)__builtin_clzll(diff),
                   log2_n = 63 - (unsigned)__builtin_clzll(n);
    /* no more digits than words: they are counted */
    const unsigned most = log2_n < WORD_DIGIT_BITS ? log2_n : WORD_DIGIT_BITS;
    const unsigned passes = (bits + most - 1) / most;
    pass p = {.keys = words,
              .out_keys = spare,
              .n = n,
              .shift = from,
              .bits = (bits + passes - 1) / passes,
              .pieces = piece_count(n, threads),
              .counts = work};
    run_passes(&p, diff);
    return p.keys;
}
