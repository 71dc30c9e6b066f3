/* check_tables -- tile tables from the inside: codes that decode to increasing positions within the
 * visible list, slots and rows that exist (SCHEMA.md, "Tile tables"). Bands and sizes are asked
 * whenever a table is read (row_check_table.c). */
#include "schema/check.h"

#include "base/memory.h"
#include "schema/layers.h"
#include "schema/levels.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    kiln_check *check;
    const kiln_tile_table *table;
    const kiln_check_drawn *drawn;
    kiln_scratch a, b, code;
} place;

static void problem(const place *at, const char *fmt, ...) KILN_PRINTF(2, 3);
static void problem(const place *at, const char *fmt, ...)
{
    char what[600];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    kiln_check_problem(at->check, "tile table of camera '%.300s': %s", at->table->camera, what);
}

/* Reads an array of exactly n elements; *fits false if it has another size, which was reported when
 * the table was read. */
static kiln_status read_exact(place *at, const kiln_array *a, uint64_t n, uint32_t elem,
                              kiln_scratch *s, bool *fits, kiln_error *err)
{
    *fits = a->raw_bytes / elem == n && a->raw_bytes % elem == 0 && kiln_array_is_whole(a);
    at->check->unread += !*fits;
    if (!*fits) return KILN_OK;
    KILN_TRY(kiln_scratch_want(s, a->raw_bytes, err));
    return kiln_manifest_read_array(at->check->m, a, s->data, err);
}

/* ---- the visible list ------------------------------------------------------------------------ */
static const kiln_chunk *find_chunk(const kiln_layer *l, const char *name)
{
    for (uint32_t i = 0; l && i < l->n_chunks; i++)
        if (strcmp(l->chunks[i].name, name) == 0) return &l->chunks[i];
    return NULL;
}

/* The layer whose chunks are named like this; NULL when it is gone. */
static const kiln_layer *layer_of(const place *at, const char *name)
{
    return strchr(name, '@') ? at->drawn->levels : at->drawn->layer;
}

/* rows[slot] = rows of the chunk of that name; 65,536, what a u16 can say, where the layer of the
 * table is gone. */
static kiln_status read_slots(place *at, uint64_t **rows, uint32_t *n, kiln_error *err)
{
    char *names = NULL;
    uint64_t bytes = at->table->chunks.raw_bytes;
    kiln_status st = KILN_OK;
    *n = 0;
    if (!kiln_array_is_whole(&at->table->chunks))
        KILN_GO(kiln_fail(err, KILN_E_IO, "array 'chunks' lacks segments"));
    KILN_GO(KILN_ALLOC(&names, bytes + 1, "chunk names", err));
    KILN_GO(kiln_manifest_read_array(at->check->m, &at->table->chunks, names, err));
    if (bytes && names[bytes - 1] != '\0')
        problem(at, "its list of chunks does not end with a NUL");
    for (uint64_t i = 0; i < bytes; i++) *n += names[i] == '\0';
    KILN_GO(KILN_ALLOC(rows, *n, "rows of chunks", err));
    const char *name = names;
    for (uint32_t i = 0; i < *n; i++, name += strlen(name) + 1) {
        const kiln_layer *l = layer_of(at, name);
        const kiln_chunk *c = find_chunk(l, name);
        (*rows)[i] = c ? c->count : 65536;
        if (!c && l) problem(at, "chunk '%s' is not in the layer '%s'", name, l->kind);
        if (!l && at->drawn->layer)
            problem(at, "chunk '%s' belongs to levels of detail that do not exist", name);
    }
done:
    free(names);
    return st;
}

static kiln_status check_visible(place *at, kiln_error *err)
{
    const kiln_tile_table *t = at->table;
    uint64_t *rows = NULL;
    uint32_t n_slots = 0;
    bool slots_fit, rows_fit = false;
    kiln_status st = KILN_OK;
    KILN_GO(read_slots(at, &rows, &n_slots, err));
    KILN_GO(read_exact(at, &t->visible_slot, t->visible, 4, &at->a, &slots_fit, err));
    KILN_GO(read_exact(at, &t->visible_row, t->visible, 2, &at->b, &rows_fit, err));
    const uint32_t *slot = at->a.data;
    const uint16_t *row = at->b.data;
    for (uint64_t i = 0; slots_fit && rows_fit && i < t->visible; i++) {
        if (slot[i] < n_slots && row[i] < rows[slot[i]]) continue;
        problem(at,
                "visible Gaussian %" PRIu64 " is row %u of slot %" PRIu32 ", which does not exist",
                i, row[i], slot[i]);
        break;
    }
done:
    free(rows);
    return st;
}

/* ---- bands ----------------------------------------------------------------------------------- */
/* One LEB128 number from code[*used..end); false when it is cut, longer than five bytes or above
 * 2^32 - 1. */
static bool leb128(const unsigned char *code, uint64_t end, uint64_t *used, uint32_t *out)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 35; shift += 7) {
        if (*used == end) return false;
        unsigned char byte = code[(*used)++];
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80) continue;
        *out = (uint32_t)v;
        return v <= UINT32_MAX;
    }
    return false;
}

static bool tile_is_sound(const unsigned char *code, uint64_t bytes, uint32_t count,
                          uint64_t visible)
{
    uint64_t used = 0, rank = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t delta;
        if (!leb128(code, bytes, &used, &delta) || (i > 0 && delta == 0)) return false;
        rank += delta;
        if (rank >= visible) return false;
    }
    return used == bytes;
}

static kiln_status check_band(place *at, const kiln_tile_band *b, kiln_error *err)
{
    const kiln_tile_table *t = at->table;
    bool counts_fit, bytes_fit;
    uint64_t tiles = (uint64_t)(b->row1 - b->row0) * t->tiles_x, pairs = 0, used = 0,
             code_bytes = b->rank_delta.raw_bytes;
    KILN_TRY(read_exact(at, &b->tile_count, tiles, 4, &at->a, &counts_fit, err));
    KILN_TRY(read_exact(at, &b->tile_bytes, tiles, 4, &at->b, &bytes_fit, err));
    if (!counts_fit || !bytes_fit) return KILN_OK;
    if (!kiln_array_is_whole(&b->rank_delta))
        return kiln_fail(err, KILN_E_IO, "array 'rank_delta' lacks segments");
    KILN_TRY(kiln_scratch_want(&at->code, code_bytes, err));
    KILN_TRY(kiln_manifest_read_array(at->check->m, &b->rank_delta, at->code.data, err));
    const uint32_t *count = at->a.data, *bytes = at->b.data;
    for (uint64_t i = 0; i < tiles; i++) {
        if (bytes[i] > code_bytes - used ||
            !tile_is_sound((const unsigned char *)at->code.data + used, bytes[i], count[i],
                           t->visible)) {
            problem(at, "the code of tile %" PRIu64 " of rows %" PRIu32 "..%" PRIu32 " is damaged",
                    i, b->row0, b->row1);
            return KILN_OK;
        }
        used += bytes[i];
        pairs += count[i];
    }
    if (used != code_bytes)
        problem(at, "rows %" PRIu32 "..%" PRIu32 " have %" PRIu64 " bytes too many", b->row0,
                b->row1, code_bytes - used);
    if (pairs != b->pairs)
        problem(at, "rows %" PRIu32 "..%" PRIu32 " claim %" PRIu64 " pairs, but have %" PRIu64,
                b->row0, b->row1, b->pairs, pairs);
    return KILN_OK;
}

static kiln_status check_table(place *at, kiln_error *err)
{
    const kiln_tile_table *t = at->table;
    uint32_t row = 0;
    if (!kiln_hash_equal(kiln_tile_table_digest(t), t->digest))
        problem(at, "its content does not have the digest that it claims");
    if (at->check->quick) return KILN_OK;
    KILN_TRY(kiln_check_take(at->check, check_visible(at, err), err));
    for (uint32_t i = 0; i < t->n_bands; i++) {
        const kiln_tile_band *b = &t->bands[i];
        if (b->row0 != row || b->row1 <= b->row0) { /* was reported */
            at->check->unread++;
            return KILN_OK;
        }
        row = b->row1;
        KILN_TRY(kiln_check_take(at->check, check_band(at, b, err), err));
    }
    return KILN_OK;
}

static void place_release(place *at)
{
    free(at->a.data);
    free(at->b.data);
    free(at->code.data);
}

/* Do the tables belong to the layer that is drawn now? A stage before tiles that ran again leaves
 * them stale, not damaged. */
static kiln_status tables_are_current(kiln_check *c, bool *current, kiln_error *err)
{
    kiln_stage_row row;
    bool stale = false, made = false;
    for (int k = 0; k < KILN_LAYER_KINDS; k++) {
        if (kiln_layer_kinds[k].form < KILN_FORM_CHUNKS) continue;
        KILN_TRY(kiln_stage_get(c->m, kiln_layer_kinds[k].stage, &row, err));
        made |= row.state == KILN_STAGE_FRESH;
        stale |= row.state != KILN_STAGE_FRESH && row.state != KILN_STAGE_MISSING;
    }
    KILN_TRY(kiln_stage_get(c->m, "tiles", &row, err));
    *current = made && !stale && row.state == KILN_STAGE_FRESH;
    return KILN_OK;
}

kiln_status kiln_check_drawn_get(kiln_check *c, kiln_check_drawn *out, kiln_error *err)
{
    bool current;
    *out = (kiln_check_drawn){0};
    KILN_TRY(tables_are_current(c, &current, err));
    if (current) KILN_TRY(kiln_check_take(c, kiln_layer_get_drawn(c->m, &out->layer, err), err));
    if (!out->layer) return KILN_OK;
    const kiln_status st = kiln_levels_get(c->m, out->layer, &out->levels, err);
    return st == KILN_E_STALE ? KILN_OK : kiln_check_take(c, st, err);
}

void kiln_check_drawn_release(kiln_check_drawn *d)
{
    kiln_layer_free(d->layer);
    kiln_layer_free(d->levels);
    *d = (kiln_check_drawn){0};
}

kiln_status kiln_check_tables(kiln_check *c, kiln_error *err)
{
    kiln_tile_table *tables = NULL;
    kiln_check_drawn drawn = {0};
    uint32_t n = 0;
    place at = {.check = c};
    kiln_status st = KILN_OK;
    KILN_GO(kiln_check_drawn_get(c, &drawn, err));
    at.drawn = &drawn;
    KILN_GO(kiln_tile_tables_get(c->m, true, &tables, &n, err));
    for (uint32_t i = 0; i < n; i++) {
        at.table = &tables[i];
        if (c->sound && i < c->sound->n_tables && c->sound->tables[i]) continue;
        KILN_GO(kiln_check_take(c, check_table(&at, err), err));
    }
done:
    place_release(&at);
    kiln_tile_tables_free(tables, n);
    kiln_check_drawn_release(&drawn);
    return st;
}

/* ---- for the sweep --------------------------------------------------------------------------- */
kiln_status kiln_check_table(kiln_check *c, const kiln_tile_table *t, const kiln_check_drawn *drawn,
                             kiln_error *err)
{
    place at = {.check = c, .table = t, .drawn = drawn};
    const kiln_status st = check_table(&at, err);
    place_release(&at);
    return st;
}

void kiln_check_table_arrays(const kiln_tile_table *t, kiln_array_fn *fn, void *context)
{
    fn(context, &t->chunks);
    fn(context, &t->visible_slot);
    fn(context, &t->visible_row);
    for (uint32_t i = 0; i < t->n_bands; i++) {
        fn(context, &t->bands[i].tile_count);
        fn(context, &t->bands[i].tile_bytes);
        fn(context, &t->bands[i].rank_delta);
    }
}

/* What is read of the table itself stays while bands are read, one after the other. Names take a
 * row count each; a blob that is read takes itself twice more. */
uint64_t kiln_check_table_ram(const kiln_tile_table *t)
{
    const uint64_t own = t->visible_slot.raw_bytes + t->visible_row.raw_bytes,
                   names = 9 * t->chunks.raw_bytes;
    uint64_t largest = 0;
    for (uint32_t i = 0; i < t->n_bands; i++) {
        const kiln_tile_band *b = &t->bands[i];
        const uint64_t band =
            b->tile_count.raw_bytes + b->tile_bytes.raw_bytes + b->rank_delta.raw_bytes;
        if (band > largest) largest = band;
    }
    const uint64_t all = own + names + largest, blob = all < KILN_BLOB_MAX ? all : KILN_BLOB_MAX;
    return all + 2 * blob;
}
