/* tables -- tile tables of a stranger: the rank code as kiln-render decodes it, and whole tables as
 * kiln-verify checks them. Both have to say the same of a band. The last eight bytes are its sizes;
 * before them come counts and code lengths of the tiles, then the code. */
#include "tests/fuzz/fuzz.h"

#include "schema/check.h"
#include "schema/manifest.h"
#include "stages/tiles/rank_code.h"
#include "tests/unit/manifest_fixture.h"

#include <stdlib.h>
#include <string.h>

enum { SIZES = 8, TILES_MAX = 12 };

typedef struct {
    uint32_t tiles_x, tiles_y, n_tiles;
    uint64_t visible, pairs, sum; /* sum: what the counts add up to; pairs: what the row says */
    uint32_t *counts, *lengths;   /* owned */
    unsigned char *code;          /* owned */
    size_t code_bytes;
} band;

/* Copies, aligned and of exact size. Half of the bands get numbers of a byte, because four random
 * ones are hardly ever small. */
static void take_numbers(const uint8_t **at, size_t *left, uint32_t n, bool narrow, uint32_t **out)
{
    *out = calloc(n + 1, sizeof **out);
    HOLDS(*out);
    for (uint32_t i = 0; i < n; i++) {
        const size_t want = narrow ? 1 : 4, have = *left < want ? *left : want;
        memcpy(&(*out)[i], *at, have);
        *at += have;
        *left -= have;
    }
}

static band take_band(const uint8_t *data, size_t size)
{
    const uint64_t flags = kiln_fuzz_tail(data, size, 0, 1);
    band b = {.tiles_x = 1 + (uint32_t)kiln_fuzz_tail(data, size, 1, 1) % TILES_MAX,
              .tiles_y = 1 + (uint32_t)kiln_fuzz_tail(data, size, 2, 1) % TILES_MAX,
              .visible = flags & 2 ? kiln_fuzz_tail(data, size, 3, 4) << (flags & 4 ? 8 : 0)
                                   : kiln_fuzz_tail(data, size, 3, 1)};
    const uint8_t *at = data;
    size_t left = size > SIZES ? size - SIZES : 0;
    b.n_tiles = b.tiles_x * b.tiles_y;
    take_numbers(&at, &left, b.n_tiles, flags & 1, &b.counts);
    take_numbers(&at, &left, b.n_tiles, flags & 1, &b.lengths);
    for (uint32_t i = 0; i < b.n_tiles; i++) b.sum += b.counts[i];
    b.pairs = flags & 8 ? kiln_fuzz_tail(data, size, 7, 1) : b.sum;
    b.code_bytes = left;
    b.code = malloc(left + !left);
    HOLDS(b.code);
    if (left) memcpy(b.code, at, left);
    return b;
}

static void release(band *b)
{
    free(b->counts);
    free(b->lengths);
    free(b->code);
}

/* Encoded again it is no longer than it was (a number can be written with more bytes than it needs)
 * and decodes to the same ranks.
 */
static void encode_again(const band *b, const uint32_t *ranks)
{
    const uint64_t most = kiln_ranks_code_most(b->sum, b->n_tiles, b->visible);
    unsigned char *code = malloc(most + !most);
    uint32_t *lengths = calloc(b->n_tiles, sizeof *lengths),
             *again = calloc(b->sum + 1, sizeof *again);
    kiln_error err = {0};
    HOLDS(code && lengths && again);
    const size_t bytes = kiln_ranks_encode(b->n_tiles, b->counts, ranks, code, lengths);
    HOLDS(bytes <= most && bytes <= b->code_bytes);
    HOLDS(bytes < b->code_bytes || memcmp(code, b->code, bytes) == 0);
    const kiln_ranks_code coded = {b->n_tiles, b->counts, lengths, code, bytes};
    HOLDS(kiln_ranks_decode(&coded, b->visible, again, &err) == KILN_OK);
    HOLDS(memcmp(ranks, again, b->sum * sizeof *ranks) == 0);
    free(code);
    free(lengths);
    free(again);
}

/* Ranks have room for as many as the code can hold, a byte each: whatever the counts say, no more
 * may be written. */
static bool decodes(const band *b)
{
    const uint64_t capacity = b->sum < b->code_bytes ? b->sum : b->code_bytes;
    uint32_t *ranks = malloc((capacity + !capacity) * sizeof *ranks);
    kiln_error err = {0};
    HOLDS(ranks);
    const kiln_ranks_code coded = {b->n_tiles, b->counts, b->lengths, b->code, b->code_bytes};
    const kiln_status st = kiln_ranks_decode(&coded, b->visible, ranks, &err);
    if (st == KILN_OK)
        encode_again(b, ranks);
    else
        kiln_fuzz_refusal(st, &err);
    free(ranks);
    return st == KILN_OK;
}

void kiln_fuzz_ranks(const void *argument, const uint8_t *data, size_t size)
{
    band b = take_band(data, size);
    (void)argument;
    (void)decodes(&b);
    release(&b);
}

/* ---- whole tables ---------------------------------------------------------------------------- */

typedef struct {
    uint64_t problems;
} seen;

static void count_problem(void *context, const char *sentence)
{
    HOLDS(sentence[0]);
    ((seen *)context)->problems++;
}

static kiln_manifest *open_once(void)
{
    static kiln_manifest *m;
    char path[400];
    if (m) return m;
    snprintf(path, sizeof path, "%s/table.db", kiln_fuzz_folder());
    m = open_manifest(path, KILN_OPEN_CREATE);
    run_sql(m, "PRAGMA synchronous = OFF");
    return m;
}

/* Stored as a zstd frame of one raw block (RFC 8878), because making a compressor for each array
 * takes most of the time:
 *     u32 magic, u8 0xa0 (content size of 4 bytes, one segment, no checksum), u32 size, u24 block (1: the last; type 0; size << 3),
 * bytes */
static kiln_hash put_plain(kiln_manifest *m, const void *data, size_t bytes)
{
    enum { HEAD = 12 };
    kiln_error err = {0};
    const uint64_t size = bytes, block = bytes << 3 | 1;
    kiln_blob b = {.hash = kiln_hash_of(data, bytes),
                   .raw_bytes = bytes,
                   .elem = 1,
                   .packed_bytes = HEAD + bytes};
    b.packed = malloc(b.packed_bytes);
    HOLDS(b.packed && bytes < 1 << 17);
    memcpy(b.packed, "\x28\xb5\x2f\xfd\xa0", 5);
    memcpy(b.packed + 5, &size, 4);
    memcpy(b.packed + 9, &block, 3);
    if (bytes) memcpy(b.packed + HEAD, data, bytes);
    HOLDS(kiln_manifest_put_blob(m, &b, &err) == KILN_OK);
    free(b.packed);
    return b.hash;
}

/* The table of one band, with visible Gaussians that are all row 0 of the only chunk: of them the
 * check has nothing to say. */
static kiln_status put_table(kiln_manifest *m, const band *b, kiln_error *err)
{
    kiln_hash h[6];
    const uint64_t shown = b->visible < 4096 ? b->visible : 0;
    void *zeros = calloc(shown + 1, sizeof(uint32_t));
    HOLDS(zeros);
    h[0] = put_plain(m, "/", 2);
    h[1] = put_plain(m, zeros, shown * 4);
    h[2] = put_plain(m, zeros, shown * 2);
    h[3] = put_plain(m, b->counts, b->n_tiles * 4);
    h[4] = put_plain(m, b->lengths, b->n_tiles * 4);
    h[5] = put_plain(m, b->code, b->code_bytes);
    free(zeros);
    kiln_tile_band row = {.row1 = b->tiles_y,
                          .pairs = b->pairs,
                          .tile_count = array_of(&h[3], b->n_tiles * 4),
                          .tile_bytes = array_of(&h[4], b->n_tiles * 4),
                          .rank_delta = array_of(&h[5], b->code_bytes)};
    kiln_tile_table t = {.camera = "a",
                         .profile = "inria",
                         .near_m = 0.2,
                         .width = 16 * b->tiles_x,
                         .height = 16 * b->tiles_y,
                         .tiles_x = b->tiles_x,
                         .tiles_y = b->tiles_y,
                         .visible = b->visible,
                         .pairs = b->pairs,
                         .chunks = array_of(&h[0], 2),
                         .visible_slot = array_of(&h[1], shown * 4),
                         .visible_row = array_of(&h[2], shown * 2),
                         .n_bands = 1,
                         .bands = &row};
    return kiln_tile_table_put(m, &t, err);
}

void kiln_fuzz_table(const void *argument, const uint8_t *data, size_t size)
{
    band b = take_band(data, size);
    kiln_manifest *m = open_once();
    kiln_error err = {0};
    seen s = {0};
    kiln_check check = {.m = m, .report = count_problem, .context = &s};
    (void)argument;
    const bool whole = b.visible < 4096; /* else the list of visible Gaussians lacks its rows */
    HOLDS(kiln_manifest_begin(m, &err) == KILN_OK);
    const kiln_status st = put_table(m, &b, &err);
    if (st == KILN_OK) {
        /* a row that cannot be is refused where it is read */
        const kiln_status read = kiln_check_tables(&check, &err);
        if (read != KILN_OK) kiln_fuzz_refusal(read, &err);
        HOLDS((read == KILN_OK && check.problems == 0) ==
              (decodes(&b) && b.pairs == b.sum && whole));
    } else {
        kiln_fuzz_refusal(st, &err);
    }
    kiln_manifest_rollback(m);
    release(&b);
}
