/* blobs -- hostile content behind the right hash: raw bytes are changed, packed again, and every
 * reference follows, so that what reads them gets past the hash, and where digests are recomputed
 * past those, too. */
#include "tests/mutate/mutate.h"

#include "schema/codec.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RAW_MOST = 8 << 20 };

typedef struct {
    unsigned char *raw; /* room for RAW_MOST */
    size_t bytes;
    uint32_t elem;
    kiln_hash hash;
} content;

static bool load(mutation *m, const char *hash_hex, content *c)
{
    sqlite3_stmt *s =
        ask(m, "SELECT hash, elem, raw_bytes, packed FROM blob WHERE hash = x'%s'", hash_hex);
    bool done = s && sqlite3_step(s) == SQLITE_ROW && sqlite3_column_bytes(s, 0) == 16 &&
                sqlite3_column_int64(s, 2) <= RAW_MOST / 4;
    *c = (content){0};
    if (done) {
        kiln_blob b = {.elem = (uint32_t)sqlite3_column_int(s, 1),
                       .raw_bytes = (uint64_t)sqlite3_column_int64(s, 2)};
        memcpy(b.hash.bytes, sqlite3_column_blob(s, 0), 16);
        b.packed = (unsigned char *)sqlite3_column_blob(s, 3);
        b.packed_bytes = (size_t)sqlite3_column_bytes(s, 3);
        *c = (content){.raw = calloc(1, RAW_MOST),
                       .bytes = (size_t)b.raw_bytes,
                       .elem = b.elem,
                       .hash = b.hash};
        done = c->raw && kiln_blob_unpack(&b, c->raw, NULL) == KILN_OK;
    }
    (void)sqlite3_finalize(s);
    if (!done) free(c->raw);
    return done;
}

/* Packs what c holds now as a new blob; hex: its name. */
static bool store(mutation *m, const content *c, char hex[33])
{
    kiln_blob b;
    const uint32_t elem = c->elem && c->bytes % c->elem == 0 ? c->elem : 1;
    if (kiln_blob_pack(c->raw, c->bytes, elem, &b, NULL) != KILN_OK) return false;
    (void)kiln_hash_hex(b.hash, hex);
    sqlite3_stmt *s = ask(
        m,
        "INSERT OR IGNORE INTO blob (hash, elem, raw_bytes, packed) VALUES (x'%s', %d, %lld, ?1)",
        hex, (int)elem, (long long)c->bytes);
    bool done =
        s && sqlite3_bind_blob64(s, 1, b.packed, b.packed_bytes, SQLITE_TRANSIENT) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_DONE;
    (void)sqlite3_finalize(s);
    free(b.packed);
    return done;
}

/* ---- content --------------------------------------------------------------------------------- */
static void put_value(mutation *m, content *c, size_t at)
{
    const uint32_t width = c->bytes - at >= 8 && c->elem == 8   ? 8
                           : c->bytes - at >= 4 && c->elem >= 4 ? 4
                                                                : 1;
    static const float floats[] = {
        (float)NAN, (float)INFINITY, -(float)INFINITY, 3e38f, -3e38f, 1e-42f,
        88.5f,      89.5f,           -88.0f,           0.0f,  -0.0f,  1e10f,
        128.0f};
    const float f = floats[below(m, sizeof floats / sizeof *floats)];
    const double d = (double)f;
    const uint64_t n = hostile_number(m);
    const bool real = chance(m, 60);
    if (real && width == 4)
        memcpy(c->raw + at, &f, 4);
    else if (real && width == 8)
        memcpy(c->raw + at, &d, 8);
    else
        memcpy(c->raw + at, &n, width);
}

static void change_values(mutation *m, content *c)
{
    const size_t step = c->elem ? c->elem : 1, most[] = {1, 1, 3, 20, c->bytes / step};
    const size_t n = most[below(m, 5)];
    for (size_t i = 0; i < n && c->bytes >= step; i++)
        put_value(m, c, step * (size_t)below(m, c->bytes / step));
    say("%zu values", n);
}

static void change_content(mutation *m, content *c)
{
    const size_t was = c->bytes, elem = c->elem ? c->elem : 1;
    switch (below(m, 12)) {
    case 0: /* random bytes */
        for (size_t i = 0; i < c->bytes; i++) c->raw[i] = (unsigned char)any(m);
        say("random bytes");
        break;
    case 1:
        memset(c->raw, 0, c->bytes);
        say("zeros");
        break;
    case 2:
        memset(c->raw, 0xff, c->bytes);
        say("ones");
        break;
    case 3:
        if (c->bytes) c->raw[below(m, c->bytes)] ^= (unsigned char)(1u << below(m, 8));
        say("one bit");
        break;
    case 4: {
        const size_t sizes[] = {0,
                                1,
                                c->bytes / 2,
                                c->bytes > elem ? c->bytes - elem : 0,
                                c->bytes ? c->bytes - 1 : 0,
                                elem};
        c->bytes = sizes[below(m, 6)];
        if (c->bytes > was) c->bytes = was;
        say("%zu bytes, were %zu", c->bytes, was);
        break;
    }
    case 5: {
        const size_t sizes[] = {c->bytes + elem, c->bytes + 1, 2 * c->bytes,
                                c->bytes + 65536 * elem};
        c->bytes = sizes[below(m, 4)];
        if (c->bytes > RAW_MOST) c->bytes = RAW_MOST;
        if (was) /* more of the same */
            for (size_t i = was; i < c->bytes; i++) c->raw[i] = c->raw[i - was];
        say("%zu bytes, were %zu", c->bytes, was);
        break;
    }
    case 6: /* another order */
        for (size_t i = 0; i + elem <= c->bytes / 2; i += elem)
            for (size_t k = 0; k < elem; k++) {
                const unsigned char t = c->raw[i + k];
                c->raw[i + k] = c->raw[c->bytes - elem - i + k];
                c->raw[c->bytes - elem - i + k] = t;
            }
        say("reversed");
        break;
    case 7: { /* the head: counts and offsets stand there */
        const uint64_t n = hostile_number(m);
        const size_t width = chance(m, 50) ? 8 : 4, at = 4 * (size_t)below(m, 8);
        if (at + width <= c->bytes) memcpy(c->raw + at, &n, width);
        say("%llu at byte %zu", (unsigned long long)n, at);
        break;
    }
    default:
        change_values(m, c);
    }
}

/* ---- references ------------------------------------------------------------------------------ */
static void point_to(mutation *m, const char *table, const char *where, const char *hex,
                     size_t bytes, bool sizes)
{
    (void)sql(m, "UPDATE OR IGNORE %s SET hash = x'%s' WHERE %s", table, hex, where);
    if (sizes && strcmp(table, "plane_segment") == 0)
        (void)sql(m,
                  "UPDATE plane SET raw_bytes = %lld WHERE id IN (SELECT plane FROM plane_segment "
                  "WHERE hash = x'%s')",
                  (long long)bytes, hex);
    else if (sizes)
        (void)sql(m, "UPDATE %s SET raw_bytes = %lld WHERE hash = x'%s'", table, (long long)bytes,
                  hex);
}

static bool change_blob_of(mutation *m, const char *table, const char *extra)
{
    content c;
    char hex[33], where[128];
    const int64_t n = number_of(m, "SELECT count(*) FROM %s WHERE %s", table, extra);
    char *hash = text_of(m, "SELECT hex(hash) FROM %s WHERE %s LIMIT 1 OFFSET %d", table, extra,
                         (int)below(m, (uint64_t)n));
    char *what = hash && strcmp(table, "plane_segment") == 0
                     ? text_of(m,
                               "SELECT kind || ' ' || chunk.name || ' ' || plane.name FROM "
                               "plane_segment JOIN plane ON plane.id = plane "
                               "JOIN chunk ON chunk.id = chunk JOIN layer ON layer.id = layer "
                               "WHERE hash = x'%s'",
                               hash)
                 : hash && strcmp(table, "unit_output") == 0
                     ? text_of(m,
                               "SELECT stage || ' ' || unit.name || ' ' || unit_output.name FROM "
                               "unit_output JOIN unit ON unit.id = unit WHERE hash = x'%s'",
                               hash)
                 : hash ? text_of(m,
                                  "SELECT camera || ' ' || name FROM tile_segment JOIN tile_table "
                                  "ON id = tile_table WHERE hash = x'%s'",
                                  hash)
                        : NULL;
    bool done = hash && load(m, hash, &c);
    if (done) {
        say("content of %s (%s): ", table, what ? what : "?");
        change_content(m, &c);
        done = store(m, &c, hex);
        (void)snprintf(where, sizeof where, "hash = x'%s'", hash);
        const bool sizes = chance(m, 70), everywhere = chance(m, 60);
        if (done && everywhere) {
            static const char *const all[] = {"plane_segment", "unit_output", "tile_segment"};
            for (size_t i = 0; i < 3; i++) point_to(m, all[i], where, hex, c.bytes, sizes);
        } else if (done) {
            point_to(m, table, where, hex, c.bytes, sizes);
        }
        say(", hashed again, %s, sizes %s", everywhere ? "wherever it is used" : "here alone",
            sizes ? "follow" : "stay");
        free(c.raw);
    }
    free(what);
    free(hash);
    if (done && chance(m, 75)) recompute_digests(m);
    if (done && chance(m, 60)) make_stale(m);
    return done;
}

bool change_blob(mutation *m)
{
    static const char *const tables[] = {"plane_segment", "unit_output", "tile_segment"};
    return change_blob_of(m, tables[below(m, 3)], "1");
}

/* The results that stages plan by, read again because all are due. */
bool change_unit(mutation *m)
{
    static const char *const stages[] = {"knn",   "prune",  "chunk",  "lod",
                                         "tiles", "render", "export", "import"};
    char extra[160];
    (void)snprintf(extra, sizeof extra, "unit IN (SELECT id FROM unit WHERE stage = '%s')",
                   stages[below(m, 8)]);
    if (!change_blob_of(m, "unit_output", extra)) return false;
    make_stale(m);
    return true;
}

bool change_table_array(mutation *m)
{
    static const char *const names[] = {"chunks",     "visible_slot", "visible_row",
                                        "tile_count", "tile_bytes",   "rank_delta"};
    char extra[64];
    (void)snprintf(extra, sizeof extra, "name = '%s'", names[below(m, 6)]);
    if (!change_blob_of(m, "tile_segment", extra)) return false;
    (void)sql(m, "DELETE FROM unit WHERE stage = 'render'; DELETE FROM image; DELETE FROM stage "
                 "WHERE name = 'render'");
    say(", pictures due");
    return true;
}

/* Packed bytes that are not what they should be: torn, random, or a frame that unpacks to more. */
bool change_packed(mutation *m)
{
    const int64_t n = number_of(m, "SELECT count(*) FROM blob");
    char *hash =
        text_of(m, "SELECT hex(hash) FROM blob LIMIT 1 OFFSET %d", (int)below(m, (uint64_t)n));
    if (!hash) return false;
    say("packed bytes of blob %s: ", hash);
    bool done;
    switch (below(m, 4)) {
    case 0:
        say("cut");
        done = sql(
            m, "UPDATE blob SET packed = substr(packed, 1, length(packed) / 2) WHERE hash = x'%s'",
            hash);
        break;
    case 1:
        say("random");
        done =
            sql(m, "UPDATE blob SET packed = randomblob(length(packed)) WHERE hash = x'%s'", hash);
        break;
    case 2:
        say("empty");
        done = sql(m, "UPDATE blob SET packed = x'' WHERE hash = x'%s'", hash);
        break;
    default:
        say("of another blob");
        done = sql(m,
                   "UPDATE blob SET packed = (SELECT packed FROM blob ORDER BY id DESC LIMIT 1) "
                   "WHERE hash = x'%s'",
                   hash);
    }
    free(hash);
    if (chance(m, 50)) make_stale(m);
    return done;
}

/* ---- shapes ---------------------------------------------------------------------------------- */
static uint32_t size_of_type(const char *type)
{
    return strcmp(type, "f64") == 0 ? 8 : type[1] == '8' ? 1 : type[1] == '1' ? 2 : 4;
}

/* Gives a plane so many bytes, of the old ones again and again. */
static bool refill(mutation *m, int64_t plane, size_t bytes, uint32_t elem)
{
    content c;
    char hex[33], *hash = text_of(m, "SELECT hex(hash) FROM plane_segment WHERE plane = %lld",
                                  (long long)plane);
    bool done = hash && bytes <= RAW_MOST && load(m, hash, &c);
    if (done) {
        for (size_t i = c.bytes; i < bytes && c.bytes; i++) c.raw[i] = c.raw[i - c.bytes];
        c.bytes = bytes;
        c.elem = elem;
        done = store(m, &c, hex) && sql(m,
                                        "UPDATE plane_segment SET hash = x'%s' WHERE plane = %lld; "
                                        "UPDATE plane SET raw_bytes = %lld WHERE id = %lld",
                                        hex, (long long)plane, (long long)bytes, (long long)plane);
        free(c.raw);
    }
    free(hash);
    return done;
}

/* Another type or number of components, and bytes that fit them: only a reader who knows what a
 * plane must be can tell. */
bool reshape_plane(mutation *m)
{
    static const char *const types[] = {"u8", "i8", "u16", "i16", "u32", "i32", "f32", "f64"};
    static const int components[] = {1, 2, 3, 4, 9, 24, 45, 48, 72, 1000};
    const int64_t n = number_of(m, "SELECT count(*) FROM plane"),
                  plane = number_of(m, "SELECT id FROM plane LIMIT 1 OFFSET %d",
                                    (int)below(m, (uint64_t)n));
    char *name = text_of(m,
                         "SELECT kind || ' ' || plane.name FROM plane JOIN chunk ON chunk.id = "
                         "chunk JOIN layer ON layer.id = "
                         "layer WHERE plane.id = %lld",
                         (long long)plane);
    const int64_t count = number_of(
        m, "SELECT count FROM chunk JOIN plane ON plane.chunk = chunk.id WHERE plane.id = %lld",
        (long long)plane);
    char *type = text_of(m, "SELECT type FROM plane WHERE id = %lld", (long long)plane);
    int k = (int)number_of(m, "SELECT components FROM plane WHERE id = %lld", (long long)plane);
    if (!name || !type) return false;
    const char *t = chance(m, 40) ? types[below(m, 8)] : type;
    if (t == type || chance(m, 50)) k = components[below(m, 10)];
    say("plane %s: %d components of %s, bytes follow", name, k, t);
    bool done = sql(m, "UPDATE plane SET type = '%s', components = %d WHERE id = %lld", t, k,
                    (long long)plane) &&
                refill(m, plane, (size_t)count * (size_t)k * size_of_type(t), size_of_type(t));
    if (done && chance(m, 50)) { /* in all chunks */
        (void)sql(m,
                  "UPDATE plane SET type = '%s', components = %d WHERE name = (SELECT name FROM "
                  "plane WHERE id = %lld)",
                  t, k, (long long)plane);
        say(", in all chunks, bytes not");
    }
    free(name);
    free(type);
    if (chance(m, 85)) recompute_digests(m);
    if (chance(m, 60)) make_stale(m);
    return done;
}

/* A chunk of more or fewer rows, and planes that fit. */
bool recount_chunk(mutation *m)
{
    const int64_t n = number_of(m, "SELECT count(*) FROM chunk"),
                  chunk = number_of(m, "SELECT id FROM chunk LIMIT 1 OFFSET %d",
                                    (int)below(m, (uint64_t)n));
    const int64_t was = number_of(m, "SELECT count FROM chunk WHERE id = %lld", (long long)chunk);
    const int64_t counts[] = {0, 1, was - 1, was + 1, 2 * was, 65536, 65537};
    const int64_t now = counts[below(m, 7)];
    say("chunk %lld: %lld rows, were %lld", (long long)chunk, (long long)now, (long long)was);
    if (now < 0 ||
        !sql(m, "UPDATE chunk SET count = %lld WHERE id = %lld", (long long)now, (long long)chunk))
        return false;
    int64_t skip = chance(m, 40) ? (int64_t)below(m, 5) : -1;
    sqlite3_stmt *s =
        ask(m, "SELECT id, type, components, name FROM plane WHERE chunk = %lld ORDER BY name",
            (long long)chunk);
    while (s && sqlite3_step(s) == SQLITE_ROW) {
        const char *type = (const char *)sqlite3_column_text(s, 1);
        if (skip-- == 0)
            say(", all planes but %s", (const char *)sqlite3_column_text(s, 3));
        else
            (void)refill(m, sqlite3_column_int64(s, 0),
                         (size_t)now * (size_t)sqlite3_column_int64(s, 2) * size_of_type(type),
                         size_of_type(type));
    }
    (void)sqlite3_finalize(s);
    if (chance(m, 70))
        (void)sql(m,
                  "UPDATE layer SET count = (SELECT sum(count) FROM chunk WHERE layer = layer.id)");
    if (chance(m, 85)) recompute_digests(m);
    if (chance(m, 60)) make_stale(m);
    return true;
}
