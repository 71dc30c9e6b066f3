/* The outputs of the unit in work: shuffled, compressed, hashed and written into the memfd that
 * carries them to the parent.
 *
 * Threads. A unit has many planes of a megabyte rather than one large array, so each thread
 * compresses a plane of its own. Copies of outputs wait until the unit ends or until there are
 * wait_most bytes of them; lent arrays wait in place. An output larger than that, and every output
 * if there is one thread, is compressed directly from the caller's array.
 *
 * A thread keeps its packer from output to output and from unit to unit: what a packer takes would
 * else be faulted in anew for each output. It is counted with the thread (ram.c).
 *
 * Outputs whose bytes are in the manifest already are named by their hashes
 * (kiln_worker_put_stored). They take no part of the memfd.
 *
 * Memory. Compressed bytes exist once. Each output has a region of the memfd that is large enough
 * for the worst case and is written as a stream. The rest of the region stays a hole, which takes
 * no memory.
 *
 *   | output 0 | hole | output 1 | hole | ... | n_outputs kiln_wire_output | counters, NUL |
 */
#include "stages/engine/worker/outputs.h"

#include "base/checked.h"
#include "base/memory.h"
#include "stages/engine/engine.h"
#include "stages/engine/memory/memfd.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REGION = 4096 }; /* a page: no two outputs share one */

struct kiln_output {
    kiln_unit_output head;
    const void *raw; /* while it waits: the copy, or the lent array */
    void *copy;      /* owned */
    bool is_stored;  /* named, not packed */
    uint64_t at, packed;
};

void kiln_outputs_init(kiln_outputs *o, unsigned threads)
{
    *o = (kiln_outputs){.threads = threads, .memfd = -1};
}

void kiln_outputs_clear(kiln_outputs *o)
{
    for (uint32_t i = o->n_packed; i < o->n; i++) free(o->items[i].copy);
    if (o->memfd >= 0) (void)close(o->memfd);
    o->memfd = -1;
    o->n = o->n_packed = 0;
    o->waiting_bytes = o->end = 0;
}

/* Of threads that the unit does not have: their memory is not in its share. */
static void drop_packers(kiln_outputs *o, unsigned from)
{
    for (unsigned i = from; i < o->n_packers; i++) {
        kiln_packer_free(o->packers[i]);
        o->packers[i] = NULL;
    }
}

void kiln_outputs_release(kiln_outputs *o)
{
    kiln_outputs_clear(o);
    drop_packers(o, 0);
    free(o->packers);
    o->packers = NULL;
    o->n_packers = 0;
    free(o->items);
    o->items = NULL;
    o->capacity = 0;
}

/* ---- into the memfd -------------------------------------------------------------------------- */
/* Returns the largest size of a zstd stream of so many bytes: 3 for each block of at most 128 KiB,
 * header and checksum. */
static uint64_t worst_packed(uint64_t raw) { return raw + 3 * (raw >> 10) + REGION; }

static uint64_t take_region(kiln_outputs *o, uint64_t most)
{
    const uint64_t at = o->end;
    o->end += kiln_div_up(most, REGION) * REGION;
    return at;
}

typedef struct {
    int fd;
    uint64_t at, end;
} region;

static kiln_status write_region(void *context, const void *data, size_t bytes, kiln_error *err)
{
    region *r = context;
    if (bytes > r->end - r->at)
        return kiln_fail(err, KILN_E_BUG,
                         "an output needs more than its %zu bytes of shared memory", bytes);
    KILN_TRY(kiln_memfd_write(r->fd, r->at, data, bytes, err));
    r->at += bytes;
    return KILN_OK;
}

/* Makes room for a packer of each thread; the threads make their own. */
static kiln_status have_packers(kiln_outputs *o, kiln_error *err)
{
    const unsigned n = o->threads ? o->threads : 1;
    kiln_packer **more;
    if (n <= o->n_packers) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&more, n, "packers of outputs", err));
    if (o->n_packers) memcpy(more, o->packers, o->n_packers * sizeof *more);
    free(o->packers);
    o->packers = more;
    o->n_packers = n;
    return KILN_OK;
}

/* Compresses an output into its region. Threads may do so at the same time, as regions do not
 * overlap. */
static kiln_status pack(const kiln_outputs *o, int thread, kiln_output *item, const void *raw,
                        kiln_error *err)
{
    kiln_packer **packer = &o->packers[thread];
    if (!*packer) KILN_TRY(kiln_packer_new(packer, err));
    region r = {o->memfd, item->at, item->at + worst_packed(item->head.raw_bytes)};
    const kiln_blob_sink sink = {write_region, &r};
    kiln_blob blob;
    KILN_TRY(
        kiln_blob_stream(*packer, raw, item->head.raw_bytes, item->head.elem, &sink, &blob, err));
    item->head.hash = blob.hash;
    item->packed = blob.packed_bytes;
    return KILN_OK;
}

static kiln_status pack_waiting(kiln_outputs *o, kiln_error *err)
{
    uint32_t first = o->n_packed, failed = UINT32_MAX;
    kiln_error first_error = {0};
    if (first == o->n) return KILN_OK;
    KILN_TRY(have_packers(o, err));
#pragma omp parallel for schedule(dynamic, 1) num_threads(o->threads) if (o->n - first > 1)
    for (uint32_t i = first; i < o->n; i++) {
        kiln_output *item = &o->items[i];
        kiln_error e = {0};
        const kiln_status st =
            item->is_stored ? KILN_OK : pack(o, omp_get_thread_num(), item, item->raw, &e);
        free(item->copy);
        item->raw = item->copy = NULL;
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
    return kiln_fail(err, first_error.status, "output '%s': %s", o->items[failed].head.name,
                     first_error.msg);
}

/* ---- what the unit puts ---------------------------------------------------------------------- */
static kiln_status grow(kiln_outputs *o, kiln_error *err)
{
    if (o->memfd < 0) {
        drop_packers(o, o->threads);
        KILN_TRY(kiln_memfd_new(&o->memfd, err));
    }
    if (o->n < o->capacity) return KILN_OK;
    uint32_t capacity = o->capacity ? 2 * o->capacity : 32;
    kiln_output *items;
    KILN_TRY(KILN_ALLOC(&items, capacity, "the outputs of a unit", err));
    if (o->n) memcpy(items, o->items, o->n * sizeof *items);
    free(o->items);
    o->items = items;
    o->capacity = capacity;
    return KILN_OK;
}

static kiln_status put_raw(kiln_outputs *o, kiln_output *item, const void *raw, kiln_error *err)
{
    item->at = take_region(o, item->head.raw_bytes);
    item->packed = item->head.raw_bytes;
    item->head.hash = kiln_hash_of(raw, item->head.raw_bytes);
    return kiln_memfd_write(o->memfd, item->at, raw, item->head.raw_bytes, err);
}

/* Adds an output that waits to be compressed. */
static kiln_status let_wait(kiln_outputs *o, kiln_output *item, const void *raw, kiln_put put,
                            kiln_error *err)
{
    const uint64_t bytes = item->head.raw_bytes;
    item->raw = raw;
    if (put == KILN_PUT_COPY) {
        KILN_TRY(kiln_alloc_unset(&item->copy, bytes, 1, item->head.name, err));
        if (bytes) memcpy(item->copy, raw, bytes);
        item->raw = item->copy;
        o->waiting_bytes += bytes;
    }
    o->n++;
    return KILN_OK;
}

/* head: of the segment, without its hash. */
static kiln_status put_segment(kiln_outputs *o, const kiln_unit_output *head, const void *raw,
                               kiln_put put, kiln_error *err)
{
    const uint64_t bytes = head->raw_bytes;
    if (put == KILN_PUT_COPY && o->n > o->n_packed && o->waiting_bytes + bytes > o->wait_most)
        KILN_TRY(pack_waiting(o, err));
    KILN_TRY(grow(o, err));
    kiln_output *item = &o->items[o->n];
    *item = (kiln_output){.head = *head};
    if (o->keep_raw) {
        KILN_TRY(put_raw(o, item, raw, err));
        o->n_packed = ++o->n;
        return KILN_OK;
    }
    item->at = take_region(o, worst_packed(bytes));
    /* nothing waits: it was packed above, or never does */
    if (o->threads == 1 || (put == KILN_PUT_COPY && bytes > o->wait_most)) {
        KILN_TRY(have_packers(o, err));
        KILN_TRY(pack(o, 0, item, raw, err));
        o->n_packed = ++o->n;
        return KILN_OK;
    }
    return let_wait(o, item, raw, put, err);
}

static kiln_status check(const char *name, uint64_t bytes, uint32_t elem, kiln_error *err)
{
    if (!*name || strlen(name) >= sizeof(((kiln_unit_output *)0)->name))
        return kiln_fail(err, KILN_E_BUG, "a unit's output cannot be called '%s'", name);
    if ((elem != 1 && elem != 2 && elem != 4 && elem != 8) || bytes % elem)
        return kiln_fail(err, KILN_E_BUG,
                         "output '%s' has %llu bytes, which is not a multiple of %u", name,
                         (unsigned long long)bytes, elem);
    return KILN_OK;
}

kiln_status kiln_outputs_put(kiln_outputs *o, const char *name, const void *raw, size_t bytes,
                             uint32_t elem, kiln_put put, kiln_error *err)
{
    KILN_TRY(check(name, bytes, elem, err));
    size_t at = 0;
    kiln_unit_output head = {.elem = elem};
    memcpy(head.name, name, strlen(name) + 1);
    do { /* an empty output has one empty segment */
        head.raw_bytes = bytes - at;
        if (!o->keep_raw && head.raw_bytes > KILN_BLOB_MAX) head.raw_bytes = KILN_BLOB_MAX;
        KILN_TRY(put_segment(o, &head, bytes ? (const char *)raw + at : NULL, put, err));
        at += head.raw_bytes;
        head.segment++;
    } while (at < bytes);
    return KILN_OK;
}

kiln_status kiln_outputs_name(kiln_outputs *o, const char *name, kiln_hash hash, uint64_t bytes,
                              uint32_t elem, kiln_error *err)
{
    const bool waits = o->n > o->n_packed;
    KILN_TRY(check(name, bytes, elem, err));
    KILN_TRY(grow(o, err));
    kiln_output *item = &o->items[o->n++];
    *item = (kiln_output){.head = {.hash = hash, .raw_bytes = bytes, .elem = elem},
                          .is_stored = true,
                          .at = KILN_WIRE_STORED};
    memcpy(item->head.name, name, strlen(name) + 1);
    if (!waits) o->n_packed = o->n;
    return KILN_OK;
}

uint64_t kiln_outputs_ram(uint64_t raw_bytes)
{
    return kiln_outputs_lent_ram(raw_bytes) +
           (raw_bytes < KILN_OUTPUTS_WAIT ? raw_bytes : KILN_OUTPUTS_WAIT);
}

uint64_t kiln_outputs_lent_ram(uint64_t raw_bytes) { return worst_packed(raw_bytes); }

/* ---- the result ------------------------------------------------------------------------------ */
static int by_name_and_segment(const void *a, const void *b)
{
    const kiln_unit_output *x = &((const kiln_output *)a)->head,
                           *y = &((const kiln_output *)b)->head;
    int c = strcmp(x->name, y->name);
    return c ? c : (x->segment > y->segment) - (x->segment < y->segment);
}

static kiln_status sort_outputs(kiln_outputs *o, kiln_error *err)
{
    if (o->n) qsort(o->items, o->n, sizeof *o->items, by_name_and_segment);
    for (uint32_t i = 1; i < o->n; i++)
        if (by_name_and_segment(&o->items[i - 1], &o->items[i]) == 0)
            return kiln_fail(err, KILN_E_BUG, "two outputs of one unit are called '%s'",
                             o->items[i].head.name);
    return KILN_OK;
}

static kiln_status write_table(kiln_outputs *o, const char *counters, kiln_message *m,
                               kiln_error *err)
{
    uint64_t at = o->end;
    for (uint32_t i = 0; i < o->n; i++, at += sizeof(kiln_wire_output)) {
        const kiln_output *item = &o->items[i];
        const kiln_wire_output wire = {.head = item->head, .at = item->at, .packed = item->packed};
        KILN_TRY(kiln_memfd_write(o->memfd, at, &wire, sizeof wire, err));
    }
    m->n_outputs = o->n;
    m->counters_bytes = (uint32_t)strlen(counters) + 1;
    KILN_TRY(kiln_memfd_write(o->memfd, at, counters, m->counters_bytes, err));
    KILN_TRY(kiln_memfd_seal(o->memfd, err));
    /* last: a message that reports a failure announces no bytes */
    m->bytes = at + m->counters_bytes;
    return KILN_OK;
}

kiln_status kiln_outputs_finish(kiln_outputs *o, const char *counters, kiln_message *m, int *memfd,
                                kiln_error *err)
{
    *memfd = -1;
    KILN_TRY(pack_waiting(o, err));
    KILN_TRY(sort_outputs(o, err));
    if (o->memfd < 0) KILN_TRY(kiln_memfd_new(&o->memfd, err)); /* a unit without outputs */
    KILN_TRY(write_table(o, counters, m, err));
    *memfd = o->memfd;
    o->memfd = -1;
    return KILN_OK;
}

/* Offsets and sizes are checked against the size of the memfd. */
kiln_status kiln_outputs_read(const kiln_message *m, const void *map, kiln_unit_result *out,
                              kiln_blob *blobs, kiln_error *err)
{
    const uint64_t table_bytes = (uint64_t)m->n_outputs * sizeof(kiln_wire_output);
    if (m->counters_bytes == 0 || table_bytes + m->counters_bytes > m->bytes)
        return kiln_fail(err, KILN_E_BUG, "a result of %llu bytes cannot hold %u outputs",
                         (unsigned long long)m->bytes, m->n_outputs);
    const uint64_t end = m->bytes - table_bytes - m->counters_bytes;
    const kiln_wire_output *wire = (const void *)((const char *)map + end);
    /* Not kiln_alloc, whose alignment takes up to 190 bytes of each of them: a list has millions,
     * and they stay until its end. */
    out->outputs = m->n_outputs ? malloc(m->n_outputs * sizeof *out->outputs) : NULL;
    out->counters = calloc(m->counters_bytes, 1);
    if ((m->n_outputs && !out->outputs) || !out->counters)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for what a unit with %u outputs gave",
                         m->n_outputs);
    out->n = m->n_outputs;
    memcpy(out->counters, (const char *)wire + table_bytes, m->counters_bytes - 1);
    for (uint32_t i = 0; i < m->n_outputs; i++) {
        const bool is_stored = wire[i].at == KILN_WIRE_STORED && wire[i].packed == 0;
        if (!is_stored && (wire[i].at > end || wire[i].packed > end - wire[i].at))
            return kiln_fail(err, KILN_E_BUG, "output '%.95s' lies outside its result",
                             wire[i].head.name);
        out->outputs[i] = wire[i].head;
        blobs[i] =
            (kiln_blob){.hash = wire[i].head.hash,
                        .raw_bytes = wire[i].head.raw_bytes,
                        .elem = wire[i].head.elem,
                        .packed_bytes = wire[i].packed,
                        .packed = is_stored ? NULL : (unsigned char *)(uintptr_t)map + wire[i].at};
    }
    return KILN_OK;
}
