/* tree -- changes of layers of levels: which node is whose, which level it is, what is lost there,
 * what all of it stands for. */
#include "tests/mutate/mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OF_LEVELS "layer IN (SELECT id FROM layer WHERE kind = 'levels')"

/* id of some chunk of levels; 0: there is none */
static int64_t some_level(mutation *m)
{
    const int64_t n = number_of(m, "SELECT count(*) FROM chunk WHERE " OF_LEVELS);
    return number_of(m, "SELECT id FROM chunk WHERE " OF_LEVELS " LIMIT 1 OFFSET %d",
                     (int)below(m, (uint64_t)n));
}

static bool exchange(mutation *m, const char *column)
{
    const long long a = some_level(m), b = some_level(m);
    say("%s of levels %lld and %lld exchanged", column, a, b);
    return sql(
        m,
        "CREATE TEMP TABLE two AS SELECT id, %s AS v, %s AS w FROM chunk WHERE id IN (%lld, %lld);"
        " UPDATE chunk SET %s = CASE WHEN typeof(%s) = 'integer' THEN -1 - id ELSE 'moving ' || id "
        "END WHERE id IN (%lld, %lld);"
        " UPDATE chunk SET %s = (SELECT v FROM two WHERE id <> chunk.id) WHERE id IN (%lld, %lld) "
        "AND %lld <> %lld;"
        " UPDATE chunk SET %s = (SELECT v FROM two WHERE id = chunk.id) WHERE id = %lld AND %lld = "
        "%lld; DROP TABLE two",
        column, column, a, b, column, column, a, b, column, a, b, a, b, column, a, a, b);
}

static bool change_parent(mutation *m)
{
    const long long a = some_level(m), b = some_level(m);
    switch (below(m, 4)) {
    case 0:
        say("level %lld is a root", a);
        return sql(m, "UPDATE chunk SET parent = '' WHERE id = %lld", a);
    case 1:
        say("level %lld is its own parent", a);
        return sql(
            m, "UPDATE chunk SET parent = substr(name, 1, instr(name, '@') - 1) WHERE id = %lld",
            a);
    case 2:
        say("level %lld is below level %lld", a, b);
        return sql(m,
                   "UPDATE chunk SET parent = (SELECT substr(name, 1, instr(name, '@') - 1) FROM "
                   "chunk WHERE id = %lld) WHERE id = %lld",
                   b, a);
    default:
        say("level %lld is below a node that is not there", a);
        return sql(m, "UPDATE chunk SET parent = parent || '/0' WHERE id = %lld", a);
    }
}

static bool change_level(mutation *m)
{
    static const int levels[] = {0, 1, 2, 5, 31, 32, 33, 1000000, -1};
    const long long a = some_level(m);
    const int level = levels[below(m, sizeof levels / sizeof *levels)];
    say("level %lld says %d", a, level);
    if (chance(m, 60))
        return sql(m,
                   "UPDATE OR IGNORE chunk SET level = %d, name = substr(name, 1, instr(name, "
                   "'@')) || %d WHERE id = %lld",
                   level, level, a);
    return sql(m, "UPDATE chunk SET level = %d WHERE id = %lld", level, a);
}

/* All levels of a node, or one of them; the others are numbered anew. */
static bool drop_level(mutation *m)
{
    const long long a = some_level(m);
    const bool all = chance(m, 50);
    say("level %lld%s dropped", a, all ? " and all of its node" : "");
    return sql(m,
               all ? "DELETE FROM chunk WHERE " OF_LEVELS
                     " AND substr(name, 1, instr(name, '@')) = (SELECT substr(name, 1, instr(name, "
                     "'@'))"
                     " FROM chunk WHERE id = %lld)"
                   : "DELETE FROM chunk WHERE id = %lld",
               a) &&
           sql(m, "DELETE FROM level_error WHERE chunk NOT IN (SELECT id FROM chunk);"
                  "UPDATE chunk SET ordinal = -1 - (SELECT count(*) FROM chunk b WHERE b.layer = "
                  "chunk.layer AND b.ordinal >= 0"
                  " AND b.ordinal < chunk.ordinal) WHERE " OF_LEVELS
                  "; UPDATE chunk SET ordinal = -1 - ordinal WHERE " OF_LEVELS ";"
                  "UPDATE layer SET count = (SELECT sum(count) FROM chunk WHERE chunk.layer = "
                  "layer.id) WHERE kind = 'levels'");
}

/* Floats that are none, or in no order, or too few. */
static bool change_errors(mutation *m)
{
    static const uint32_t floats[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                      0x7fc00000, 1,          0x7f7fffff, 0x3a83126f};
    char hex[80] = "";
    const uint64_t n = 1 + below(m, 8), a = (uint64_t)some_level(m);
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t f = floats[below(m, sizeof floats / sizeof *floats)];
        (void)snprintf(hex + 8 * i, sizeof hex - 8 * i, "%02x%02x%02x%02x", f & 255, f >> 8 & 255,
                       f >> 16 & 255, f >> 24);
    }
    if (chance(m, 10)) hex[2 * below(m, 4 * n + 1)] = '\0';
    const int step = chance(m, 80) ? -(int)below(m, 12) : (int)below(m, 4000) - 2000;
    say("errors of level %llu: %s from %d", (unsigned long long)a, hex, step);
    if (chance(m, 30))
        return sql(m,
                   "DELETE FROM level_error; INSERT INTO level_error SELECT id, %d, x'%s' FROM "
                   "chunk WHERE " OF_LEVELS,
                   step, hex);
    return sql(m, "INSERT OR REPLACE INTO level_error VALUES (%llu, %d, x'%s')",
               (unsigned long long)a, step, hex);
}

static bool change_origin(mutation *m)
{
    say("what levels stand for: ");
    switch (below(m, 4)) {
    case 0:
        say("nothing");
        return sql(m, "DELETE FROM level_origin");
    case 1:
        say("another bake");
        return sql(m, "UPDATE level_origin SET baked = randomblob(16)");
    case 2:
        say("another profile");
        return sql(m,
                   "UPDATE level_origin SET profile = 'gsplat-1.6', antialiased = 1 - antialiased");
    default:
        say("another near plane");
        return sql(m, "UPDATE level_origin SET near_m = near_m * 100");
    }
}

bool change_tree(mutation *m)
{
    static const char *const columns[] = {"name", "parent", "ordinal", "count"};
    bool done;
    if (some_level(m) == 0) return false;
    switch (below(m, 6)) {
    case 0:
        done = exchange(m, columns[below(m, 4)]);
        break;
    case 1:
        done = change_parent(m);
        break;
    case 2:
        done = change_level(m);
        break;
    case 3:
        done = drop_level(m);
        break;
    case 4:
        done = change_errors(m);
        break;
    default:
        done = change_origin(m);
    }
    if (chance(m, 80)) recompute_digests(m);
    if (chance(m, 30)) make_stale(m);
    return done;
}
