/* rad_chunk -- see rad_chunk.h. */
#include "stages/formats/rad/rad_chunk.h"

#include "base/endian.h"
#include "base/minmax.h"
#include "base/option.h"
#include "stages/formats/rad/rad.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MEMORY_LEVEL = 9, LEVEL = 6, TEXT_MAX = 4096 };

typedef struct {
    const kiln_rad_property *is;
    uint32_t at;        /* in a record */
    bool bytes_apart;   /* plane by byte first: all lowest bytes, then the next */
    bool rows_together; /* a row's values stay together */
    float limit;        /* min and max of the codes; 0: none */
} property;

/* In the order of the file. Returns their number. */
static uint32_t properties_of(const kiln_export *e, const kiln_rad_head *h,
                              property out[KILN_RAD_PROPERTIES])
{
    static const uint32_t at[KILN_RAD_PROPERTIES] = {
        [KILN_RAD_CENTRE] = KILN_RAD_CENTRE_AT,
        [KILN_RAD_ALPHA] = KILN_RAD_ALPHA_AT,
        [KILN_RAD_RGB] = KILN_RAD_RGB_AT,
        [KILN_RAD_SCALES] = KILN_RAD_SCALES_AT,
        [KILN_RAD_ROTATION] = KILN_RAD_ROTATION_AT,
        [KILN_RAD_BELOW] = KILN_RAD_BELOW_AT,
        [KILN_RAD_FIRST_BELOW] = KILN_RAD_FIRST_BELOW_AT,
    };
    uint32_t n = 0, sh_at = KILN_RAD_RECORD;
    for (int which = 0; which < KILN_RAD_PROPERTIES; which++) {
        property *p = &out[n];
        const bool is_sh = which >= KILN_RAD_SH1 && which < KILN_RAD_BELOW;
        if (is_sh && which - KILN_RAD_SH1 >= (int)kiln_rad_degree(e)) continue;
        *p = (property){.is = kiln_rad_property_of(which), .at = is_sh ? sh_at : at[which]};
        p->bytes_apart = which == KILN_RAD_CENTRE;
        p->rows_together = which == KILN_RAD_ROTATION;
        if (is_sh) p->limit = h->coding.sh_max[which - KILN_RAD_SH1];
        if (is_sh) sh_at += p->is->n;
        n++;
    }
    return n;
}

static uint64_t plain_bytes(const property *p, uint64_t n) { return n * p->is->n * p->is->size; }
static uint64_t packed_max(uint64_t plain) { return plain + plain / 512 + 256; }

/* ---- planes ---------------------------------------------------------------------------------- */

static void gather_property(const property *p, uint64_t n, const unsigned char *records,
                            uint64_t stride, unsigned char *out)
{
    const uint64_t values = p->is->n, size = p->is->size;
    if (p->rows_together) {
        for (uint64_t i = 0; i < n; i++)
            memcpy(out + i * values * size, records + i * stride + p->at, values * size);
        return;
    }
    for (uint64_t v = 0; v < values; v++)
        for (uint64_t i = 0; i < n; i++)
            for (uint64_t b = 0; b < size; b++)
                out[p->bytes_apart ? (b * values + v) * n + i : (v * n + i) * size + b] =
                    records[i * stride + p->at + v * size + b];
}

static kiln_status deflate_property(const unsigned char *plain, uint64_t bytes, unsigned char *out,
                                    uint64_t *packed, kiln_error *err)
{
    z_stream z = {0};
    if (deflateInit2(&z, LEVEL, Z_DEFLATED, KILN_RAD_DEFLATE, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory while packing");
    z.next_in = (unsigned char *)(uintptr_t)plain; /* zlib's type; it only reads */
    z.avail_in = (unsigned)bytes;
    z.next_out = out;
    z.avail_out = (unsigned)packed_max(bytes);
    const bool done = deflate(&z, Z_FINISH) == Z_STREAM_END;
    *packed = packed_max(bytes) - z.avail_out;
    (void)deflateEnd(&z);
    return done ? KILN_OK
                : kiln_fail(err, KILN_E_BUG, "%llu bytes do not fit when packed",
                            (unsigned long long)bytes);
}

uint64_t kiln_rad_chunk_max(const kiln_export *e, uint64_t n)
{
    const uint64_t plain = n * kiln_rad_record_bytes(e);
    return 16 + TEXT_MAX + plain + plain / 512 + KILN_RAD_PROPERTIES * 264;
}

/* zlib takes 256 KiB + 512 KiB at this level. The buffer of a chunk grows by doubling. */
uint64_t kiln_rad_chunk_ram(const kiln_export *e, uint64_t n)
{
    return 3 * kiln_rad_chunk_max(e, n) + n * 36 + packed_max(n * 36) + (1 << 20);
}

/* The key and a colon. */
#define KEY(name) "\"" KILN_RAD_KEY_##name "\":"

/* ---- text ------------------------------------------------------------------------------------ */

static kiln_status put_coding(const kiln_rad_coding *c, kiln_buffer *out, kiln_error *err)
{
    return kiln_buffer_printf(
        out, err,
        "\"splatEncoding\":{\"rgbMin\":%.9g,\"rgbMax\":%.9g,\"lnScaleMin\":%.9g,\"lnScaleMax\":%."
        "9g,"
        "\"sh1Max\":%.9g,\"sh2Max\":%.9g,\"sh3Max\":%.9g,\"lodOpacity\":true}",
        (double)c->rgb_lo, (double)c->rgb_hi, (double)c->scale_lo, (double)c->scale_hi,
        (double)c->sh_max[0], (double)c->sh_max[1], (double)c->sh_max[2]);
}

static kiln_status pad_payload(kiln_buffer *out, kiln_error *err)
{
    static const char zeros[KILN_RAD_ALIGN];
    return kiln_buffer_put(out, zeros, kiln_rad_padded(out->size) - out->size, err);
}

/* Magic, length, text; the next thing begins at a multiple of 8. */
static kiln_status put_rad_text(const char magic[5], const kiln_buffer *text, kiln_buffer *out,
                                kiln_error *err)
{
    unsigned char head[KILN_RAD_TEXT_AT];
    memcpy(head, magic, 4);
    kiln_put_u32(head + 4, text->size);
    KILN_TRY(kiln_buffer_put(out, head, sizeof head, err));
    KILN_TRY(kiln_buffer_put(out, text->data, text->size, err));
    return pad_payload(out, err);
}

static kiln_status put_property(const property *p, uint64_t offset, uint64_t bytes, bool first,
                                kiln_buffer *text, kiln_error *err)
{
    KILN_TRY(kiln_buffer_printf(text, err,
                                "%s{" KEY(OFFSET) "%llu," KEY(BYTES) "%llu," KEY(
                                    PROPERTY) "\"%s\",\"encoding\":\"%s\",\"compression\":\"gz\"",
                                first ? "" : ",", (unsigned long long)offset,
                                (unsigned long long)bytes, p->is->name, p->is->encoding));
    if (p->limit > 0)
        KILN_TRY(kiln_buffer_printf(text, err, "," KEY(MIN) "%.9g," KEY(MAX) "%.9g",
                                    -(double)p->limit, (double)p->limit));
    return kiln_buffer_printf(text, err, "}");
}

/* ---- a chunk --------------------------------------------------------------------------------- */

typedef struct {
    kiln_buffer text, payload;
    unsigned char *plain, *packed;
} parts;

static kiln_status put_property_planes(const kiln_export *e, const kiln_rad_head *h, uint64_t n,
                                       const unsigned char *records, parts *k, kiln_error *err)
{
    property list[KILN_RAD_PROPERTIES];
    const uint32_t properties = properties_of(e, h, list);
    uint64_t largest = 0;
    for (uint32_t i = 0; i < properties; i++)
        largest = kiln_max_u64(largest, plain_bytes(&list[i], n));
    KILN_TRY(KILN_ALLOC_UNSET(&k->plain, largest, "a plane", err));
    KILN_TRY(KILN_ALLOC_UNSET(&k->packed, packed_max(largest), "a plane", err));
    for (uint32_t i = 0; i < properties; i++) {
        uint64_t bytes = 0;
        gather_property(&list[i], n, records, kiln_rad_record_bytes(e), k->plain);
        KILN_TRY(deflate_property(k->plain, plain_bytes(&list[i], n), k->packed, &bytes, err));
        KILN_TRY(put_property(&list[i], k->payload.size, bytes, i == 0, &k->text, err));
        KILN_TRY(kiln_buffer_put(&k->payload, k->packed, bytes, err));
        KILN_TRY(pad_payload(&k->payload, err));
    }
    return KILN_OK;
}

/* payloadBytes stands before the list in the text, so the text is made of two. */
static kiln_status put_chunk(const kiln_export *e, const kiln_rad_head *h, uint64_t base,
                             uint64_t n, const parts *k, kiln_buffer *out, kiln_error *err)
{
    kiln_buffer text = {0};
    kiln_status st = KILN_OK;
    const uint64_t payload = k->payload.size;
    KILN_GO(kiln_buffer_printf(&text, err,
                               "{\"version\":1," KEY(BASE) "%llu," KEY(COUNT) "%llu," KEY(
                                   PAYLOAD) "%llu," KEY(DEGREE) "%u,\"lodTree\":true,",
                               (unsigned long long)base, (unsigned long long)n,
                               (unsigned long long)payload, kiln_rad_degree(e)));
    KILN_GO(put_coding(&h->coding, &text, err));
    KILN_GO(kiln_buffer_printf(&text, err, "," KEY(PROPERTIES) "["));
    KILN_GO(kiln_buffer_put(&text, k->text.data, k->text.size, err));
    KILN_GO(kiln_buffer_printf(&text, err, "]}"));
    if (text.size > TEXT_MAX)
        KILN_GO(kiln_fail(err, KILN_E_BUG, "the text of a chunk has %zu bytes", text.size));
    KILN_GO(put_rad_text(KILN_RAD_CHUNK_MARK, &text, out, err));
    KILN_GO(kiln_buffer_put(out, &payload, sizeof payload, err));
    KILN_GO(kiln_buffer_put(out, k->payload.data, payload, err));
done:
    kiln_buffer_release(&text);
    return st;
}

kiln_status kiln_rad_chunk_put(const kiln_export *e, const kiln_rad_head *h, uint64_t base,
                               uint64_t n, const unsigned char *records, kiln_buffer *out,
                               kiln_error *err)
{
    parts k = {0};
    kiln_status st = put_property_planes(e, h, n, records, &k, err);
    if (st == KILN_OK) st = put_chunk(e, h, base, n, &k, out, err);
    kiln_buffer_release(&k.text);
    kiln_buffer_release(&k.payload);
    free(k.plain);
    free(k.packed);
    return st;
}

/* ---- the head -------------------------------------------------------------------------------- */

static kiln_status put_ranges(const kiln_rad_head *h, const uint64_t *sizes, kiln_buffer *text,
                              uint64_t *all, kiln_error *err)
{
    *all = 0;
    for (uint64_t i = 0; i < kiln_rad_chunks(h); i++) {
        KILN_TRY(kiln_buffer_printf(text, err, "%s{" KEY(OFFSET) "%llu," KEY(BYTES) "%llu}",
                                    i ? "," : "", (unsigned long long)*all,
                                    (unsigned long long)sizes[i]));
        *all += sizes[i];
    }
    return KILN_OK;
}

kiln_status kiln_rad_head_put(const kiln_export *e, const kiln_rad_head *h, const uint64_t *sizes,
                              kiln_buffer *out, kiln_error *err)
{
    kiln_buffer ranges = {0}, text = {0};
    uint64_t all = 0;
    kiln_status st = KILN_OK;
    KILN_GO(put_ranges(h, sizes, &ranges, &all, err));
    KILN_GO(kiln_buffer_printf(&text, err,
                               "{\"version\":1,\"type\":\"gsplat\"," KEY(COUNT) "%llu," KEY(
                                   DEGREE) "%u,\"lodTree\":true,\"chunkSize\":%u,"
                                           "\"allChunkBytes\":%llu," KEY(CHUNKS) "[",
                               (unsigned long long)h->rows, kiln_rad_degree(e),
                               (unsigned)KILN_RAD_CHUNK, (unsigned long long)all));
    KILN_GO(kiln_buffer_put(&text, ranges.data, ranges.size, err));
    KILN_GO(kiln_buffer_printf(&text, err, "],"));
    KILN_GO(put_coding(&h->coding, &text, err));
    KILN_GO(kiln_buffer_printf(&text, err, ",\"comment\":\"SplatKiln %s\"}", kiln_version));
    KILN_GO(put_rad_text(KILN_RAD_FILE, &text, out, err));
done:
    kiln_buffer_release(&ranges);
    kiln_buffer_release(&text);
    return st;
}
