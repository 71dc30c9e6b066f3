/* units_find -- see units_find.h. */
#include "schema/units_find.h"

#include "base/memory.h"
#include "schema/manifest_internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    kiln_hash key;
    uint64_t i;
    bool found;
} wanted_unit;

typedef struct {
    kiln_manifest *m;
    wanted_unit *units; /* [n] in the order of their keys */
    uint64_t n;
    kiln_units_found_fn *found;
    void *context;
    bool refused; /* `found` ended it */
} search;

static int by_key(const void *a, const void *b)
{
    return memcmp(((const wanted_unit *)a)->key.bytes, ((const wanted_unit *)b)->key.bytes,
                  sizeof(kiln_hash));
}

/* The first of those with this key; NULL: none is wanted. */
static wanted_unit *first_of(const search *s, const void *key)
{
    uint64_t lo = 0, hi = s->n;
    while (lo < hi) {
        const uint64_t mid = lo + (hi - lo) / 2;
        if (memcmp(s->units[mid].key.bytes, key, sizeof(kiln_hash)) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < s->n && memcmp(s->units[lo].key.bytes, key, sizeof(kiln_hash)) == 0 ? &s->units[lo]
                                                                                    : NULL;
}

/* Gives a row to each of those with this key. */
static kiln_status give_row(search *s, wanted_unit *first, int64_t unit, const char *counters,
                            kiln_error *err)
{
    const kiln_hash key = first->key;
    for (wanted_unit *w = first; w < s->units + s->n && kiln_hash_equal(w->key, key); w++) {
        const kiln_status st = s->found(s->context, w->i, unit, counters, err);
        w->found = true;
        s->refused = st != KILN_OK;
        KILN_TRY(st);
    }
    return KILN_OK;
}

static kiln_status take_row(search *s, kiln_query *q, wanted_unit *first, kiln_error *err)
{
    const int64_t unit = kiln_column_i64(q);
    char *counters = kiln_column_text_dup(q);
    kiln_status st = kiln_row_take(s->m, q, kiln_query_check(q, err), err);
    if (st == KILN_OK && counters) st = give_row(s, first, unit, counters, err);
    free(counters);
    return st;
}

/* A row whose key is none is nobody's here, as for a lookup by the index. */
static kiln_status read_through(search *s, kiln_error *err)
{
    kiln_query q;
    bool row;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(s->m, &q, "SELECT key, id, counters FROM unit", err));
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        size_t bytes;
        const void *key = kiln_column_bytes(&q, &bytes);
        wanted_unit *const first = bytes == sizeof(kiln_hash) ? first_of(s, key) : NULL;
        if (first && !first->found)
            KILN_GO(take_row(s, &q, first, err));
        else if (q.status == KILN_E_IO)
            q.status = KILN_OK;
    }
done:
    kiln_query_close(&q);
    return st;
}

static kiln_status look_for(search *s, wanted_unit *first, kiln_error *err)
{
    kiln_query q;
    bool row;
    KILN_TRY(kiln_query_open(s->m, &q, "SELECT id, counters FROM unit WHERE key = ?", err));
    kiln_bind_hash(&q, first->key);
    kiln_status st = kiln_query_step(&q, &row, err);
    if (st == KILN_OK && row) st = take_row(s, &q, first, err);
    kiln_query_close(&q);
    return st;
}

static kiln_status look_for_each(search *s, kiln_error *err)
{
    for (uint64_t at = 0; at < s->n; at++) {
        if (s->units[at].found ||
            (at > 0 && kiln_hash_equal(s->units[at - 1].key, s->units[at].key)))
            continue;
        KILN_TRY(look_for(s, &s->units[at], err));
    }
    return KILN_OK;
}

/* Says whether the wanted units are a good part of all; a number of the rows that have been stored
 * is enough for that. */
static kiln_status are_many(kiln_manifest *m, uint64_t n, bool *many, kiln_error *err)
{
    enum { ROWS_OF_A_LOOKUP = 6 };
    int64_t last;
    KILN_TRY(kiln_query_number(m, "SELECT coalesce(max(id), 0) FROM unit", &last, err));
    *many = last >= 0 && (uint64_t)last / ROWS_OF_A_LOOKUP <= n;
    return KILN_OK;
}

static kiln_status find_units(search *s, kiln_error *err)
{
    bool many;
    kiln_error why = {0};
    KILN_TRY(are_many(s->m, s->n, &many, err));
    if (!many) return look_for_each(s, err);
    const kiln_status st = read_through(s, &why);
    /* a damaged page may be of units that nobody asks for */
    if (st == KILN_E_IO && !s->refused) return look_for_each(s, err);
    if (st != KILN_OK && err) *err = why;
    return st;
}

kiln_status kiln_units_find(kiln_manifest *m, const kiln_hash *keys, uint64_t n,
                            kiln_units_found_fn *found, void *context, kiln_error *err)
{
    _Static_assert(sizeof(wanted_unit) == KILN_UNITS_FIND_RAM,
                   "this is what is said of the memory for a key");
    search s = {.m = m, .n = n, .found = found, .context = context};
    if (n == 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&s.units, n, "keys of units", err));
    for (uint64_t i = 0; i < n; i++) s.units[i] = (wanted_unit){.key = keys[i], .i = i};
    qsort(s.units, n, sizeof *s.units, by_key);
    const kiln_status st = find_units(&s, err);
    free(s.units);
    return st;
}

kiln_status kiln_unit_outputs_of(kiln_manifest *m, int64_t unit, const char *counters,
                                 kiln_unit_result *out, kiln_error *err)
{
    *out = (kiln_unit_result){0};
    const size_t bytes = strlen(counters) + 1;
    KILN_TRY(KILN_ALLOC_UNSET(&out->counters, bytes, "counters of a unit", err));
    memcpy(out->counters, counters, bytes);
    const kiln_status st = kiln_unit_read_outputs(m, unit, out, err);
    if (st != KILN_OK) kiln_unit_result_release(out);
    return st;
}
