/* cpu_codec -- blobs (shuffle, zstd, hash) beside zstd alone on bytes that are shuffled already:
 * what the rest costs. Both take their input in the same pieces and give their output to nobody; a
 * blob is one of a block of kiln-import. */
#include "tests/bench/cpu_bench.h"
#include "tests/bench/cpu_scene.h"

#include "base/memory.h"
#include "schema/codec.h"
#include "schema/shuffle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { LEVEL = 1, ELEM = sizeof(float), PIECE = 64 << 10 }; /* as schema/codec.c */
enum { BLOCK = 65536 };                                     /* Gaussians */

typedef struct {
    const float *raw;
    size_t bytes;
    unsigned char *shuffled, *packed, *back;
    size_t capacity; /* of packed: what zstd alone gives out at a time */
    ZSTD_CCtx *ctx;
    kiln_blob blob; /* one frame, the same as zstd alone would make */
} input;

static void input_release(input *in)
{
    free(in->shuffled);
    free(in->packed);
    free(in->back);
    free(in->blob.packed);
    (void)ZSTD_freeCCtx(in->ctx); /* accepts NULL, cannot fail */
}

static kiln_status input_init(input *in, const float *raw, uint64_t n, kiln_error *err)
{
    *in = (input){
        .raw = raw, .bytes = n * ELEM, .capacity = ZSTD_CStreamOutSize(), .ctx = ZSTD_createCCtx()};
    KILN_TRY(KILN_ALLOC(&in->shuffled, in->bytes, "shuffled bytes", err));
    KILN_TRY(KILN_ALLOC(&in->packed, in->capacity, "compressed bytes", err));
    KILN_TRY(KILN_ALLOC(&in->back, in->bytes, "unpacked bytes", err));
    if (!in->ctx || ZSTD_isError(ZSTD_CCtx_setParameter(in->ctx, ZSTD_c_compressionLevel, LEVEL)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(in->ctx, ZSTD_c_checksumFlag, 1)))
        return kiln_fail(err, KILN_E_NOMEM, "cannot make a zstd compressor");
    for (size_t b = 0; b < ELEM; b++)
        kiln_shuffle_best()->gather((const unsigned char *)raw, n, ELEM, b, in->shuffled + b * n);
    return KILN_OK;
}

static kiln_status to_nobody(void *context, const void *data, size_t bytes, kiln_error *err)
{
    (void)context;
    (void)data;
    (void)bytes;
    (void)err;
    return KILN_OK;
}

static kiln_status pack(void *context, kiln_error *err)
{
    const input *in = context;
    kiln_blob out;
    kiln_packer *packer;
    KILN_TRY(kiln_packer_new(&packer, err));
    const kiln_status st = kiln_blob_stream(packer, in->raw, in->bytes, ELEM,
                                            &(kiln_blob_sink){.put = to_nobody}, &out, err);
    kiln_packer_free(packer);
    return st;
}

static kiln_status unpack(void *context, kiln_error *err)
{
    input *in = context;
    return kiln_blob_unpack(&in->blob, in->back, err);
}

static kiln_status zstd_pack(void *context, kiln_error *err)
{
    const input *in = context;
    size_t z = ZSTD_CCtx_setPledgedSrcSize(in->ctx, in->bytes);
    for (size_t at = 0; at < in->bytes && !ZSTD_isError(z); at += PIECE) {
        const size_t rest = in->bytes - at;
        ZSTD_inBuffer piece = {in->shuffled + at, rest < PIECE ? rest : PIECE, 0};
        const ZSTD_EndDirective end = rest <= PIECE ? ZSTD_e_end : ZSTD_e_continue;
        do {
            ZSTD_outBuffer out = {in->packed, in->capacity, 0};
            z = ZSTD_compressStream2(in->ctx, &out, &piece, end);
        } while (!ZSTD_isError(z) && (piece.pos < piece.size || (end == ZSTD_e_end && z > 0)));
    }
    if (!ZSTD_isError(z)) return KILN_OK;
    return kiln_fail(err, KILN_E_NOMEM, "zstd cannot compress: %s", ZSTD_getErrorName(z));
}

static kiln_status zstd_unpack(void *context, kiln_error *err)
{
    input *in = context;
    const size_t z = ZSTD_decompress(in->back, in->bytes, in->blob.packed, in->blob.packed_bytes);
    if (!ZSTD_isError(z)) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "zstd cannot decompress: %s", ZSTD_getErrorName(z));
}

static kiln_status bench_way(cpu_bench *b, const char *what, input *in, cpu_work_fn *ours,
                             cpu_work_fn *theirs, kiln_error *err)
{
    cpu_row r = {.threads = 1,
                 .items = in->bytes,
                 .peer = "zstd alone",
                 .least.bytes = (double)(in->bytes + in->blob.packed_bytes)};
    snprintf(r.what, sizeof r.what, "%s, bytes", what);
    KILN_TRY(cpu_compare(b, &r, (cpu_work){ours, in}, (cpu_work){theirs, in}, err));
    cpu_figure rate = {.value = 1e-6 * (double)in->bytes / r.ours.cpu_s, .unit = "MB/s"};
    cpu_figure part = {.value = 100 * r.cpu_ratio, .unit = "%"};
    snprintf(rate.what, sizeof rate.what, "%s: rate", what);
    snprintf(part.what, sizeof part.what, "%s: part of zstd's own rate", what);
    cpu_keep_figure(b, &rate);
    cpu_keep_figure(b, &part);
    return KILN_OK;
}

kiln_status cpu_bench_codec(cpu_bench *b, kiln_error *err)
{
    kiln_status st;
    cpu_scene s = {0};
    input in = {0};
    KILN_GO(cpu_scene_init(&s, BLOCK, err));
    KILN_GO(input_init(&in, s.shN, CPU_SCENE_SH_REST * s.n, err));
    cpu_print_section("planes of colour as blobs");
    KILN_GO(kiln_blob_pack(in.raw, in.bytes, ELEM, &in.blob, err));
    KILN_GO(bench_way(b, "pack", &in, pack, zstd_pack, err));
    KILN_GO(bench_way(b, "unpack", &in, unpack, zstd_unpack, err));
    KILN_GO(unpack(&in, err));
    cpu_finding f = {
        .what = "pack, unpack", .complaint = "bytes come back otherwise", .checked = in.bytes};
    for (size_t i = 0; i < in.bytes; i++)
        f.wrong += in.back[i] != ((const unsigned char *)in.raw)[i];
    cpu_keep_finding(b, &f);
done:
    input_release(&in);
    cpu_scene_release(&s);
    return st;
}
