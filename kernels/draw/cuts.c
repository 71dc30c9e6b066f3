/* cuts -- see cuts.h. A range of keys that holds too many is open. The next pass counts its equal
 * parts; all open ranges together have 65,536 counters. The first pass divides by the upper 16 of
 * the key's 63 bits: sign, exponent and 7 bits of the depth, so each doubling of depth has 128
 * parts. */
#include "kernels/draw/cuts.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    KEY_BITS = 63, /* depths are above 0, so the sign bit is 0 */
    COUNTER_BITS = 16,
    OPEN_MOST = 256, /* so that each has at least 256 parts */
};

kiln_status kiln_cuts_begin(kiln_cuts *c, uint64_t capacity, kiln_error *err)
{
    *c = (kiln_cuts){
        .capacity = capacity > 0 ? capacity : 1, .n = 1, .n_open = 1, .part_bits = COUNTER_BITS};
    KILN_TRY(KILN_ALLOC(&c->ranges, 1, "slabs", err));
    KILN_TRY(KILN_ALLOC(&c->open, OPEN_MOST, "slabs", err));
    c->ranges[0] = (kiln_cuts_range){.bits = KEY_BITS, .open = true};
    return KILN_ALLOC(&c->counts, (uint64_t)1 << COUNTER_BITS, "slabs", err);
}

void kiln_cuts_release(kiln_cuts *c)
{
    free(c->ranges);
    free(c->open);
    free(c->counts);
    memset(c, 0, sizeof *c);
}

static const kiln_cuts_range *open_range(const kiln_cuts *c, uint32_t i)
{
    return &c->ranges[c->open[i]];
}
static bool is_behind(const kiln_cuts_range *r, uint64_t key)
{
    return key >= r->from && key - r->from >= (uint64_t)1 << r->bits;
}

/* Bits of a key within its part. A range with fewer bits than part_bits is counted key by key. */
static uint32_t part_shift(const kiln_cuts *c, const kiln_cuts_range *r)
{
    return r->bits > c->part_bits ? r->bits - c->part_bits : 0;
}

/* Returns the first open range that does not end before this key; n_open if there is none. */
static uint32_t find_open(const kiln_cuts *c, uint64_t key)
{
    uint32_t low = 0, high = c->n_open;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (is_behind(open_range(c, middle), key))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void kiln_cuts_add(kiln_cuts *c, uint64_t key)
{
    const uint32_t i = find_open(c, key);
    if (i == c->n_open || key < open_range(c, i)->from) return;
    const kiln_cuts_range *r = open_range(c, i);
    uint64_t *const count =
        &c->counts[((uint64_t)i << c->part_bits) + ((key - r->from) >> part_shift(c, r))];
#pragma omp atomic
    *count += 1;
}

bool kiln_cuts_asks_for(const kiln_cuts *c, uint64_t first, uint64_t last)
{
    const uint32_t i = find_open(c, first);
    return i < c->n_open && last >= open_range(c, i)->from;
}

/* Appends a range. If one slab can hold both, it is joined to the last one. */
static void append_range(kiln_cuts *c, kiln_cuts_range r)
{
    kiln_cuts_range *const last = c->n > 0 ? &c->ranges[c->n - 1] : NULL;
    if (r.count == 0) return;
    r.open = r.count > c->capacity && r.bits > 0;
    if (last && !last->open && !r.open && last->count <= c->capacity &&
        r.count <= c->capacity - last->count)
        last->count += r.count;
    else
        c->ranges[c->n++] = r;
}

static void append_parts(kiln_cuts *c, kiln_cuts_range r, uint32_t i)
{
    const uint32_t shift = part_shift(c, &r);
    const uint64_t n = (uint64_t)1 << (r.bits - shift),
                   *counts = &c->counts[(uint64_t)i << c->part_bits];
    for (uint64_t p = 0; p < n; p++)
        append_range(
            c, (kiln_cuts_range){.from = r.from + (p << shift), .count = counts[p], .bits = shift});
}

/* Picks the open ranges that the next pass counts: the first OPEN_MOST. */
static void pick_open(kiln_cuts *c)
{
    c->n_open = 0;
    for (uint64_t i = 0; i < c->n && c->n_open < OPEN_MOST; i++)
        if (c->ranges[i].open) c->open[c->n_open++] = i;
    c->part_bits = COUNTER_BITS;
    while ((uint64_t)c->n_open << c->part_bits > (uint64_t)1 << COUNTER_BITS) c->part_bits--;
    memset(c->counts, 0, ((uint64_t)1 << COUNTER_BITS) * sizeof *c->counts);
}

kiln_status kiln_cuts_settle(kiln_cuts *c, bool *more, kiln_error *err)
{
    kiln_cuts_range *const before = c->ranges;
    const uint64_t n_before = c->n;
    uint64_t parts = 0;
    kiln_cuts_range *after;
    for (uint64_t k = 0; k < (uint64_t)c->n_open << c->part_bits; k++) parts += c->counts[k] > 0;
    KILN_TRY(KILN_ALLOC(&after, n_before + parts, "slabs", err));
    c->ranges = after;
    c->n = 0;
    uint32_t next_open = 0;
    for (uint64_t i = 0; i < n_before; i++) {
        if (next_open < c->n_open && c->open[next_open] == i)
            append_parts(c, before[i], next_open++);
        else
            append_range(c, before[i]);
    }
    free(before);
    pick_open(c);
    *more = c->n_open > 0;
    return KILN_OK;
}

bool kiln_cuts_next(const kiln_cuts *c, uint64_t *at, kiln_slab *out)
{
    uint64_t end = *at;
    if (*at >= c->n) return false;
    *out = (kiln_slab){.from = c->ranges[*at].from, .to = UINT64_MAX};
    do out->count += c->ranges[end++].count;
    while (end < c->n && out->count <= c->capacity &&
           c->ranges[end].count <= c->capacity - out->count);
    if (end < c->n) out->to = c->ranges[end].from;
    *at = end;
    return true;
}
