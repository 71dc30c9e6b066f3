/* --shard and --units: a run computes some of a stage's optional units and does not commit, so that
 * several runs, also on other hosts, make one stage. Planning units are always made, because every
 * run needs them. Units of one group go to one shard. */
#include "stages/engine/parent/selection.h"

#include "base/memory.h"
#include "stages/engine/parent/run.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_TEXT = 256 };

/* ---- reading --------------------------------------------------------------------------------- */
static bool read_shard(const char *text, kiln_selection *s)
{
    int used = 0;
    unsigned long i, n;
    if (strspn(text, "0123456789/") != strlen(text)) return false;
    if (sscanf(text, "%9lu/%9lu%n", &i, &n, &used) != 2 || text[used] || i < 1 || i > n)
        return false;
    s->shard = (uint32_t)(i - 1);
    s->n_shards = (uint32_t)n;
    return true;
}

/* Copies the next entry. Returns false after the last. */
static bool next_entry(const char **at, char *out, size_t size)
{
    if (!*at) return false;
    const size_t length = strcspn(*at, ",");
    /* too long to be anything: empty, so refused */
    (void)snprintf(out, size, "%.*s", length < size ? (int)length : 0, *at);
    *at = (*at)[length] ? *at + length + 1 : NULL;
    return true;
}

/* Reads "7" or "5-9". Returns false for anything else, which is a name. */
static bool read_range(const char *entry, uint64_t *first, uint64_t *last)
{
    char *end;
    if (!*entry || strspn(entry, "0123456789-") != strlen(entry) || *entry == '-') return false;
    *first = *last = strtoull(entry, &end, 10);
    if (!*end) return true;
    if (!end[1] || strchr(end + 1, '-')) return false;
    *last = strtoull(end + 1, &end, 10);
    return !*end;
}

/* Says whether the entry is a range or a name. "0-" and "-3" are neither. */
static bool is_entry(const char *entry)
{
    uint64_t first, last;
    if (read_range(entry, &first, &last)) return first <= last;
    return *entry && strspn(entry, "0123456789-") != strlen(entry);
}

kiln_status kiln_units_check(const char *text, kiln_error *err)
{
    char entry[ENTRY_TEXT];
    for (const char *at = text; next_entry(&at, entry, sizeof entry);)
        if (!is_entry(entry))
            return kiln_fail(
                err, KILN_E_USAGE,
                "--units takes positions from 0 and names, such as 3,5-9 or 'camera a*', not '%s'",
                text);
    return KILN_OK;
}

kiln_status kiln_shard_check(const char *text, kiln_error *err)
{
    kiln_selection s;
    if (read_shard(text, &s)) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE,
                     "--shard takes I/N with I from 1 to N, such as 2/8, not '%s'", text);
}

kiln_status kiln_selection_read(kiln_run *r, kiln_error *err)
{
    const char *shard = r->options->shard, *units = r->options->units;
    if (!shard && !units) return KILN_OK;
    if (shard && units)
        return kiln_fail(err, KILN_E_USAGE,
                         "give either --shard or --units: each says which units to compute");
    if (kiln_run_is_once(r))
        return kiln_fail(err, KILN_E_USAGE,
                         "--%s stores units that a later run finishes, so it cannot be used in a "
                         "run that stores nothing",
                         shard ? "shard" : "units");
    if (shard && !read_shard(shard, &r->selection)) return kiln_shard_check(shard, err);
    if (units) KILN_TRY(kiln_units_check(units, err));
    r->selection.given = true;
    r->selection.units = units;
    return KILN_OK;
}

/* ---- choosing -------------------------------------------------------------------------------- */
static bool is_listed(const kiln_selection *s, const kiln_unit *u, uint64_t position)
{
    char entry[ENTRY_TEXT];
    uint64_t first, last;
    for (const char *at = s->units; next_entry(&at, entry, sizeof entry);) {
        if (read_range(entry, &first, &last) ? position >= first && position <= last
                                             : fnmatch(entry, u->name, 0) == 0)
            return true;
    }
    return false;
}

bool kiln_selection_has(kiln_selection *s, const kiln_unit *u, bool first_of_list)
{
    if (!s->given || !u->optional || u->planning) return true;
    const bool joins = s->position && !first_of_list && u->group && u->group == s->group;
    const uint64_t position = s->position++;
    if (position && !joins) s->bundle++;
    s->group = u->group;
    const bool chosen =
        s->n_shards ? s->bundle % s->n_shards == s->shard : is_listed(s, u, position);
    s->chosen += chosen;
    return chosen;
}

bool *kiln_run_chosen(const kiln_run *r, const kiln_unit *units, uint64_t n, kiln_error *err)
{
    kiln_selection s = r->selection; /* a copy: the list itself is asked later */
    bool *chosen = NULL;
    if (KILN_ALLOC(&chosen, n, "the choice of units", err) != KILN_OK) return NULL;
    for (uint64_t i = 0; i < n; i++) chosen[i] = kiln_selection_has(&s, &units[i], i == 0);
    return chosen;
}
