/* blob -- the store of bulk data: put once, found by hash, checked whenever read; and arrays of
 * several blobs. */
#include "base/checked.h"
#include "base/memory.h"
#include "schema/manifest_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static kiln_status is_stored(kiln_manifest *m, kiln_hash hash, bool *stored, kiln_error *err)
{
    kiln_query q;
    *stored = false;
    KILN_TRY(kiln_query_open(m, &q, "SELECT 1 FROM blob WHERE hash = ?", err));
    kiln_bind_hash(&q, hash);
    const kiln_status st = kiln_query_step(&q, stored, err);
    kiln_query_close(&q);
    return st;
}

bool kiln_manifest_has_blob(kiln_manifest *m, kiln_hash hash)
{
    bool stored;
    return is_stored(m, hash, &stored, NULL) == KILN_OK && stored;
}

kiln_status kiln_manifest_put_blob(kiln_manifest *m, const kiln_blob *b, kiln_error *err)
{
    kiln_query q;
    bool stored;
    KILN_TRY(is_stored(m, b->hash, &stored, err)); /* before the packed bytes are touched */
    if (stored || (m->base && kiln_manifest_has_blob(m->base, b->hash))) return KILN_OK;
    KILN_TRY(kiln_query_open(
        m, &q, "INSERT INTO blob (hash, elem, raw_bytes, packed) VALUES (?, ?, ?, ?)", err));
    kiln_bind_hash(&q, b->hash);
    kiln_bind_i64(&q, b->elem);
    kiln_bind_u64(&q, b->raw_bytes);
    kiln_bind_bytes(&q, b->packed, b->packed_bytes);
    return kiln_query_run(&q, err);
}

/* Finds the row; b->packed is borrowed from the query, which stays open on success. */
static kiln_status find_blob(kiln_manifest *m, kiln_hash hash, kiln_query *q, kiln_blob *b,
                             kiln_error *err)
{
    char hex[33];
    bool row;
    KILN_TRY(kiln_query_open(m, q, "SELECT elem, raw_bytes, packed FROM blob WHERE hash = ?", err));
    kiln_bind_hash(q, hash);
    kiln_status st = kiln_query_step(q, &row, err);
    if (st == KILN_OK && !row)
        st = kiln_fail(err, KILN_E_IO, "blob %s is missing", kiln_hash_hex(hash, hex));
    if (st == KILN_OK) {
        b->hash = hash;
        b->elem = kiln_column_u32(q);
        b->raw_bytes = kiln_column_u64(q);
        /* read only: unpack takes it const */
        b->packed = (unsigned char *)kiln_column_bytes(q, &b->packed_bytes);
        st = kiln_query_check(q, err);
    }
    if (st != KILN_OK) kiln_query_close(q);
    return st;
}

static kiln_blob_unpacker *unpacker_of(kiln_manifest *m)
{
    if (!m->unpacker) m->unpacker = kiln_unpacker_new();
    return m->unpacker;
}

kiln_status kiln_manifest_get_blob(kiln_manifest *m, kiln_hash hash, void *dst, uint64_t raw_bytes,
                                   kiln_error *err)
{
    char hex[33];
    kiln_query q = {0};
    kiln_blob b = {0};
    kiln_status st = KILN_OK;
    KILN_GO(find_blob(m, hash, &q, &b, err));
    if (b.raw_bytes != raw_bytes) {
        st = kiln_fail(err, KILN_E_IO,
                       "blob %s is damaged: it has %" PRIu64 " bytes, but %" PRIu64 " are expected",
                       kiln_hash_hex(hash, hex), b.raw_bytes, raw_bytes);
        goto done;
    }
    KILN_GO(kiln_blob_unpack_by(unpacker_of(m), &b, dst, err));
done:
    kiln_query_close(&q);
    if (st != KILN_OK) kiln_note(err, "'%s'", m->path);
    return st;
}

kiln_status kiln_manifest_read_blob(kiln_manifest *m, kiln_hash hash, void **data,
                                    uint64_t *raw_bytes, kiln_error *err)
{
    kiln_query q = {0};
    kiln_blob b = {0};
    kiln_status st = KILN_OK;
    *data = NULL;
    *raw_bytes = 0;
    KILN_GO(find_blob(m, hash, &q, &b, err));
    KILN_GO(kiln_alloc(data, b.raw_bytes, 1, "a blob", err));
    KILN_GO(kiln_blob_unpack_by(unpacker_of(m), &b, *data, err));
    *raw_bytes = b.raw_bytes;
done:
    kiln_query_close(&q);
    if (st == KILN_OK) return st;
    free(*data);
    *data = NULL;
    kiln_note(err, "'%s'", m->path);
    return st;
}

/* ---- arrays ---------------------------------------------------------------------------------- */
uint32_t kiln_array_segments(uint64_t raw_bytes)
{
    return (uint32_t)kiln_div_up(raw_bytes, KILN_BLOB_MAX);
}

uint64_t kiln_array_segment_bytes(uint64_t raw_bytes, uint32_t segment)
{
    uint64_t left = raw_bytes - (uint64_t)segment * KILN_BLOB_MAX;
    return left < KILN_BLOB_MAX ? left : KILN_BLOB_MAX;
}

bool kiln_array_is_whole(const kiln_array *a)
{
    return a->raw_bytes == 0 || kiln_div_up(a->raw_bytes, KILN_BLOB_MAX) == a->n_segments;
}

kiln_status kiln_array_append(kiln_array *a, kiln_hash hash, uint64_t raw_bytes, kiln_error *err)
{
    kiln_hash *more = realloc(a->segments, (a->n_segments + (size_t)1) * sizeof *more);
    if (!more)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for %" PRIu32 " segments",
                         a->n_segments + 1);
    more[a->n_segments++] = hash;
    a->segments = more;
    a->raw_bytes += raw_bytes;
    return KILN_OK;
}

kiln_status kiln_manifest_read_array(kiln_manifest *m, const kiln_array *a, void *dst,
                                     kiln_error *err)
{
    if (a->raw_bytes == 0) return KILN_OK;
    if (!kiln_array_is_whole(a))
        return kiln_fail(err, KILN_E_IO,
                         "'%s': an array of %" PRIu64 " bytes has %" PRIu32
                         " segments, but it must have %" PRIu32,
                         m->path, a->raw_bytes, a->n_segments, kiln_array_segments(a->raw_bytes));
    unsigned char *at = dst;
    for (uint32_t i = 0; i < a->n_segments; i++) {
        uint64_t bytes = kiln_array_segment_bytes(a->raw_bytes, i);
        KILN_TRY(kiln_manifest_get_blob(m, a->segments[i], at, bytes, err));
        at += bytes;
    }
    return KILN_OK;
}
