/* rad_chunk -- see rad_chunk.h. */
#include "stages/formats/rad/rad_chunk.h"

#include "base/harmonics.h"
#include "base/minmax.h"
#include "base/option.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { RAW_DEFLATE = -15, MEMORY_LEVEL = 9, LEVEL = 6, TEXT_MAX = 4096, PROPERTIES = 10 };

/* A property: values of `size` bytes, `n` of them a row, from `at` of a record. */
typedef struct {
    const char *name, *encoding;
    uint32_t at, n, size;
    bool bytes_apart;   /* plane by byte first: all lowest bytes, then the next */
    bool rows_together; /* a row's values stay together */
    float limit;        /* min and max of the codes; 0: none */
} property;

static uint32_t properties_of(const kiln_export *e, const kiln_rad_head *h, property out[PROPERTIES])
{
    static const char *const names[KILN_RAD_DEGREE_MAX] = {"sh1", "sh2", "sh3"};
    uint32_t n = 0;
    out[n++] = (property){"center", "f32_lebytes", 0, 3, 4, true, false, 0};
    out[n++] = (property){"alpha", "f16", 12, 1, 2, false, false, 0};
    out[n++] = (property){"rgb", "f16", 14, 3, 2, false, false, 0};
    out[n++] = (property){"scales", "ln_f16", 20, 3, 2, false, false, 0};
    out[n++] = (property){"orientation", "oct88r8", 26, 3, 1, false, true, 0};
    for (uint32_t d = 1, at = KILN_RAD_RECORD; d <= kiln_rad_degree(e); d++) {
        const uint32_t values = kiln_sh_components(d) - kiln_sh_components(d - 1);
        out[n++] = (property){names[d - 1], "s8", at, values, 1, false, false, h->coding.sh_max[d - 1]};
        at += values;
    }
    out[n++] = (property){"child_count", "u16", KILN_RAD_CHILDREN_AT, 1, 2, false, false, 0};
    out[n++] = (property){"child_start", "u32", KILN_RAD_CHILDREN_AT + 2, 1, 4, false, false, 0};
    return n;
}

static uint64_t plain_bytes(const property *p, uint64_t n) { return n * p->n * p->size; }
static uint64_t packed_max(uint64_t plain) { return plain + plain / 512 + 256; }

/* ---- planes ----------------------------------------------------------------------------------------------------------------- */

static void gather(const property *p, uint64_t n, const unsigned char *records, uint64_t stride, unsigned char *out)
{
    if (p->rows_together) {
        for (uint64_t i = 0; i < n; i++) memcpy(out + i * p->n * p->size, records + i * stride + p->at, p->n * p->size);
        return;
    }
    for (uint64_t v = 0; v < p->n; v++)
        for (uint64_t i = 0; i < n; i++)
            for (uint64_t b = 0; b < p->size; b++)
                out[p->bytes_apart ? (b * p->n + v) * n + i : (v * n + i) * p->size + b] =
                    records[i * stride + p->at + v * p->size + b];
}

static kiln_status pack(const unsigned char *plain, uint64_t bytes, unsigned char *out, uint64_t *packed, kiln_error *err)
{
    z_stream z = {0};
    if (deflateInit2(&z, LEVEL, Z_DEFLATED, RAW_DEFLATE, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory while packing");
    z.next_in = (unsigned char *)(uintptr_t)plain; /* zlib's type; it only reads */
    z.avail_in = (unsigned)bytes;
    z.next_out = out;
    z.avail_out = (unsigned)packed_max(bytes);
    const bool done = deflate(&z, Z_FINISH) == Z_STREAM_END;
    *packed = packed_max(bytes) - z.avail_out;
    (void)deflateEnd(&z);
    return done ? KILN_OK : kiln_fail(err, KILN_E_BUG, "%llu bytes do not fit when packed", (unsigned long long)bytes);
}

uint64_t kiln_rad_chunk_max(const kiln_export *e, uint64_t n)
{
    const uint64_t plain = n * kiln_rad_record_bytes(e);
    return 16 + TEXT_MAX + plain + plain / 512 + PROPERTIES * 264;
}

/* zlib takes 256 KiB + 512 KiB at this level. The buffer of a chunk grows by doubling. */
uint64_t kiln_rad_chunk_ram(const kiln_export *e, uint64_t n)
{
    return 3 * kiln_rad_chunk_max(e, n) + n * 36 + packed_max(n * 36) + (1 << 20);
}

/* ---- text ------------------------------------------------------------------------------------------------------------------- */

static kiln_status put_coding(const kiln_rad_coding *c, kiln_buffer *out, kiln_error *err)
{
    return kiln_buffer_printf(out, err,
                              "\"splatEncoding\":{\"rgbMin\":%.9g,\"rgbMax\":%.9g,\"lnScaleMin\":%.9g,\"lnScaleMax\":%.9g,"
                              "\"sh1Max\":%.9g,\"sh2Max\":%.9g,\"sh3Max\":%.9g,\"lodOpacity\":true}",
                              (double)c->rgb_lo, (double)c->rgb_hi, (double)c->scale_lo, (double)c->scale_hi, (double)c->sh_max[0],
                              (double)c->sh_max[1], (double)c->sh_max[2]);
}

static kiln_status put_u32(kiln_buffer *out, uint32_t v, kiln_error *err) { return kiln_buffer_put(out, &v, sizeof v, err); }

static kiln_status pad(kiln_buffer *out, kiln_error *err)
{
    return kiln_buffer_put(out, "\0\0\0\0\0\0\0", (8 - out->size % 8) % 8, err);
}

/* Magic, length, text; the next thing begins at a multiple of 8. */
static kiln_status put_text(const char magic[5], const kiln_buffer *text, kiln_buffer *out, kiln_error *err)
{
    KILN_TRY(kiln_buffer_put(out, magic, 4, err));
    KILN_TRY(put_u32(out, (uint32_t)text->size, err));
    KILN_TRY(kiln_buffer_put(out, text->data, text->size, err));
    return pad(out, err);
}

static kiln_status put_property(const property *p, uint64_t offset, uint64_t bytes, bool first, kiln_buffer *text, kiln_error *err)
{
    KILN_TRY(kiln_buffer_printf(text, err,
                                "%s{\"offset\":%llu,\"bytes\":%llu,\"property\":\"%s\",\"encoding\":\"%s\",\"compression\":\"gz\"",
                                first ? "" : ",", (unsigned long long)offset, (unsigned long long)bytes, p->name, p->encoding));
    if (p->limit > 0) KILN_TRY(kiln_buffer_printf(text, err, ",\"min\":%.9g,\"max\":%.9g", -(double)p->limit, (double)p->limit));
    return kiln_buffer_printf(text, err, "}");
}

/* ---- a chunk ---------------------------------------------------------------------------------------------------------------- */

typedef struct {
    kiln_buffer text, payload;
    unsigned char *plain, *packed;
} parts;

static kiln_status put_planes(const kiln_export *e, const kiln_rad_head *h, uint64_t n, const unsigned char *records, parts *k,
                              kiln_error *err)
{
    property list[PROPERTIES];
    const uint32_t properties = properties_of(e, h, list);
    uint64_t largest = 0;
    for (uint32_t i = 0; i < properties; i++) largest = kiln_max_u64(largest, plain_bytes(&list[i], n));
    KILN_TRY(KILN_ALLOC_UNSET(&k->plain, largest, "a plane", err));
    KILN_TRY(KILN_ALLOC_UNSET(&k->packed, packed_max(largest), "a plane", err));
    for (uint32_t i = 0; i < properties; i++) {
        uint64_t bytes = 0;
        gather(&list[i], n, records, kiln_rad_record_bytes(e), k->plain);
        KILN_TRY(pack(k->plain, plain_bytes(&list[i], n), k->packed, &bytes, err));
        KILN_TRY(put_property(&list[i], k->payload.size, bytes, i == 0, &k->text, err));
        KILN_TRY(kiln_buffer_put(&k->payload, k->packed, bytes, err));
        KILN_TRY(pad(&k->payload, err));
    }
    return KILN_OK;
}

/* payloadBytes stands before the list in the text, so the text is made of two. */
static kiln_status put_chunk(const kiln_export *e, const kiln_rad_head *h, uint64_t base, uint64_t n, const parts *k,
                             kiln_buffer *out, kiln_error *err)
{
    kiln_buffer text = {0};
    kiln_status st = KILN_OK;
    const uint64_t payload = k->payload.size;
    KILN_GO(kiln_buffer_printf(&text, err,
                               "{\"version\":1,\"base\":%llu,\"count\":%llu,\"payloadBytes\":%llu,\"maxSh\":%u,\"lodTree\":true,",
                               (unsigned long long)base, (unsigned long long)n, (unsigned long long)payload, kiln_rad_degree(e)));
    KILN_GO(put_coding(&h->coding, &text, err));
    KILN_GO(kiln_buffer_printf(&text, err, ",\"properties\":["));
    KILN_GO(kiln_buffer_put(&text, k->text.data, k->text.size, err));
    KILN_GO(kiln_buffer_printf(&text, err, "]}"));
    if (text.size > TEXT_MAX) KILN_GO(kiln_fail(err, KILN_E_BUG, "the text of a chunk has %zu bytes", text.size));
    KILN_GO(put_text("RADC", &text, out, err));
    KILN_GO(kiln_buffer_put(out, &payload, sizeof payload, err));
    KILN_GO(kiln_buffer_put(out, k->payload.data, payload, err));
done:
    kiln_buffer_release(&text);
    return st;
}

kiln_status kiln_rad_chunk_put(const kiln_export *e, const kiln_rad_head *h, uint64_t base, uint64_t n,
                               const unsigned char *records, kiln_buffer *out, kiln_error *err)
{
    parts k = {0};
    kiln_status st = put_planes(e, h, n, records, &k, err);
    if (st == KILN_OK) st = put_chunk(e, h, base, n, &k, out, err);
    kiln_buffer_release(&k.text);
    kiln_buffer_release(&k.payload);
    free(k.plain);
    free(k.packed);
    return st;
}

/* ---- the head --------------------------------------------------------------------------------------------------------------- */

static kiln_status put_ranges(const kiln_rad_head *h, const uint64_t *sizes, kiln_buffer *text, uint64_t *all, kiln_error *err)
{
    *all = 0;
    for (uint64_t i = 0; i < kiln_rad_chunks(h); i++) {
        KILN_TRY(kiln_buffer_printf(text, err, "%s{\"offset\":%llu,\"bytes\":%llu}", i ? "," : "", (unsigned long long)*all,
                                    (unsigned long long)sizes[i]));
        *all += sizes[i];
    }
    return KILN_OK;
}

kiln_status kiln_rad_head_put(const kiln_export *e, const kiln_rad_head *h, const uint64_t *sizes, kiln_buffer *out,
                              kiln_error *err)
{
    kiln_buffer ranges = {0}, text = {0};
    uint64_t all = 0;
    kiln_status st = KILN_OK;
    KILN_GO(put_ranges(h, sizes, &ranges, &all, err));
    KILN_GO(kiln_buffer_printf(&text, err,
                               "{\"version\":1,\"type\":\"gsplat\",\"count\":%llu,\"maxSh\":%u,\"lodTree\":true,\"chunkSize\":%u,"
                               "\"allChunkBytes\":%llu,\"chunks\":[",
                               (unsigned long long)h->rows, kiln_rad_degree(e), (unsigned)KILN_RAD_CHUNK, (unsigned long long)all));
    KILN_GO(kiln_buffer_put(&text, ranges.data, ranges.size, err));
    KILN_GO(kiln_buffer_printf(&text, err, "],"));
    KILN_GO(put_coding(&h->coding, &text, err));
    KILN_GO(kiln_buffer_printf(&text, err, ",\"comment\":\"SplatKiln %s\"}", kiln_version));
    KILN_GO(put_text("RAD0", &text, out, err));
done:
    kiln_buffer_release(&ranges);
    kiln_buffer_release(&text);
    return st;
}
