/* The outputs of the unit in hand: copied, then shuffled, compressed and hashed on all threads at once, because a unit
 * has many planes of a megabyte rather than one big array. Packing waits until the unit ends or PACK_BYTES lie raw. */
#include "stages/engine/engine_internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PACK_BYTES = 64 << 20 };

struct kiln_output {
    kiln_unit_output head;
    void *raw; /* owned; NULL once packed */
    kiln_blob blob;
};

void kiln_outputs_clear(kiln_outputs *o)
{
    for (uint32_t i = 0; i < o->n; i++) {
        free(o->items[i].raw);
        free(o->items[i].blob.packed);
    }
    o->n = o->n_packed = 0;
    o->waiting_bytes = 0;
}

void kiln_outputs_release(kiln_outputs *o)
{
    kiln_outputs_clear(o);
    free(o->items);
    o->items = NULL;
    o->room = 0;
}

static kiln_status pack_waiting(kiln_outputs *o, kiln_error *err)
{
    uint32_t first = o->n_packed, failed = UINT32_MAX;
    kiln_error first_error = {0};
#pragma omp parallel for schedule(dynamic, 1) num_threads(o->threads) if (o->n - first > 1)
    for (uint32_t i = first; i < o->n; i++) {
        kiln_output *item = &o->items[i];
        kiln_error e = {0};
        kiln_status st = kiln_blob_pack(item->raw, item->head.raw_bytes, item->head.elem, &item->blob, &e);
        free(item->raw);
        item->raw = NULL;
        item->head.hash = item->blob.hash;
        if (st == KILN_OK) continue;
#pragma omp critical(kiln_outputs_error)
        if (i < failed) {
            failed = i;
            first_error = e;
        }
    }
    o->n_packed = o->n;
    o->waiting_bytes = 0;
    if (failed == UINT32_MAX) return KILN_OK;
    return kiln_fail(err, first_error.status, "output '%s': %s", o->items[failed].head.name, first_error.msg);
}

static kiln_status grow(kiln_outputs *o, kiln_error *err)
{
    if (o->n < o->room) return KILN_OK;
    uint32_t room = o->room ? 2 * o->room : 32;
    kiln_output *items;
    KILN_TRY(KILN_ALLOC(&items, room, "the outputs of a unit", err));
    if (o->n) memcpy(items, o->items, o->n * sizeof *items);
    free(o->items);
    o->items = items;
    o->room = room;
    return KILN_OK;
}

static kiln_status put_segment(kiln_outputs *o, const char *name, uint32_t segment, const void *raw, size_t bytes, uint32_t elem,
                               kiln_error *err)
{
    KILN_TRY(grow(o, err));
    void *copy;
    KILN_TRY(kiln_alloc(&copy, bytes, 1, name, err));
    if (bytes) memcpy(copy, raw, bytes);
    kiln_output *item = &o->items[o->n++];
    *item = (kiln_output){.head = {.segment = segment, .raw_bytes = bytes, .elem = elem}, .raw = copy};
    memcpy(item->head.name, name, strlen(name) + 1);
    o->waiting_bytes += bytes;
    if (o->waiting_bytes >= PACK_BYTES && !o->keep_raw) return pack_waiting(o, err);
    return KILN_OK;
}

kiln_status kiln_outputs_put(kiln_outputs *o, const char *name, const void *raw, size_t bytes, uint32_t elem, kiln_error *err)
{
    if (!*name || strlen(name) >= sizeof(((kiln_unit_output *)0)->name))
        return kiln_fail(err, KILN_E_BUG, "a unit's output cannot be called '%s'", name);
    if ((elem != 1 && elem != 2 && elem != 4 && elem != 8) || bytes % elem)
        return kiln_fail(err, KILN_E_BUG, "output '%s' has %zu bytes, no multiple of %u", name, bytes, elem);
    size_t at = 0;
    uint32_t segment = 0;
    do { /* an empty output has one empty segment */
        size_t size = bytes - at;
        if (!o->keep_raw && size > KILN_BLOB_MAX) size = KILN_BLOB_MAX;
        KILN_TRY(put_segment(o, name, segment++, bytes ? (const char *)raw + at : NULL, size, elem, err));
        at += size;
    } while (at < bytes);
    return KILN_OK;
}

/* ---- the result ------------------------------------------------------------------------------------------------------ */
static int by_name_and_segment(const void *a, const void *b)
{
    const kiln_unit_output *x = &((const kiln_output *)a)->head, *y = &((const kiln_output *)b)->head;
    int c = strcmp(x->name, y->name);
    return c ? c : (x->segment > y->segment) - (x->segment < y->segment);
}

static kiln_status sort_outputs(kiln_outputs *o, kiln_error *err)
{
    if (o->n) qsort(o->items, o->n, sizeof *o->items, by_name_and_segment);
    for (uint32_t i = 1; i < o->n; i++)
        if (by_name_and_segment(&o->items[i - 1], &o->items[i]) == 0)
            return kiln_fail(err, KILN_E_BUG, "two outputs of one unit are called '%s'", o->items[i].head.name);
    return KILN_OK;
}

static kiln_status write_result(const kiln_outputs *o, const char *counters, kiln_message *m, int fd, kiln_error *err)
{
    uint64_t at = o->n * sizeof(kiln_wire_output) + m->counters_bytes;
    for (uint32_t i = 0; i < o->n; i++) {
        const kiln_output *item = &o->items[i];
        kiln_wire_output wire = {
            .head = item->head, .at = at, .packed = o->keep_raw ? item->head.raw_bytes : item->blob.packed_bytes};
        at += wire.packed;
        KILN_TRY(kiln_memfd_append(fd, &wire, sizeof wire, err));
    }
    KILN_TRY(kiln_memfd_append(fd, counters, m->counters_bytes, err));
    for (uint32_t i = 0; i < o->n; i++) {
        const kiln_output *item = &o->items[i];
        KILN_TRY(o->keep_raw ? kiln_memfd_append(fd, item->raw, item->head.raw_bytes, err)
                             : kiln_memfd_append(fd, item->blob.packed, item->blob.packed_bytes, err));
    }
    m->bytes = at;
    return kiln_memfd_seal(fd, err);
}

kiln_status kiln_outputs_finish(kiln_outputs *o, const char *counters, kiln_message *m, int *memfd, kiln_error *err)
{
    *memfd = -1;
    if (o->keep_raw)
        for (uint32_t i = 0; i < o->n; i++) o->items[i].head.hash = kiln_hash_of(o->items[i].raw, o->items[i].head.raw_bytes);
    else
        KILN_TRY(pack_waiting(o, err));
    KILN_TRY(sort_outputs(o, err));
    m->n_outputs = o->n;
    m->counters_bytes = (uint32_t)strlen(counters) + 1;
    KILN_TRY(kiln_memfd_new(memfd, err));
    kiln_status st = write_result(o, counters, m, *memfd, err);
    if (st != KILN_OK) { /* the message that reports this announces no bytes */
        (void)close(*memfd);
        *memfd = -1;
        m->bytes = 0;
    }
    return st;
}
