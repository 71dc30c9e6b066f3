/* spz_streams -- see the header. Streams are unpacked side by side, each in fixed memory: its
 * frame's window and two buffers. */
#include "stages/formats/spz/spz_streams.h"

#include "base/endian.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/files/packing.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { SINGLE_SEGMENT = 0x20, BLOCK_MAX = 128 << 10 }; /* of zstd */
enum {
    FRAME_HEAD = 18,
    IN_BYTES = 1 << 18,
    OUT_BYTES = 1 << 20,
    DECODER_BYTES = 1 << 20,
    WINDOW_LOG_MAX = 27
};
/* Gaussians a byte of the file: what nianticlabs/spz allows, by the plane of positions. */
enum { RATIO_MAX = 1024, POSITION_BYTES = 9 };

/* ---- what the file says ---------------------------------------------------------------------- */

static kiln_status check_header(const kiln_spz_header *h, uint64_t toc, uint64_t size,
                                bool head_only, const char *name, kiln_error *err)
{
    if (h->n_streams != kiln_spz_n_streams(h->sh_degree))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' has %u SPZ streams, but %d belong to harmonics of degree %u", name,
                         h->n_streams, kiln_spz_n_streams(h->sh_degree), h->sh_degree);
    if (toc < KILN_SPZ_STREAMS_HEADER)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' has its SPZ table of contents at byte %llu, inside the header", name,
                         (unsigned long long)toc);
    if (head_only) return KILN_OK;
    if (toc > size || size - toc < (uint64_t)KILN_SPZ_TOC_ROW * h->n_streams)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' ends at byte %llu, before the end of its SPZ table of contents at "
                         "byte %llu; is it complete?",
                         name, (unsigned long long)size,
                         (unsigned long long)(toc + (uint64_t)KILN_SPZ_TOC_ROW * h->n_streams));
    if (h->n > size * RATIO_MAX / POSITION_BYTES)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' claims %u Gaussians, which %llu bytes cannot hold", name, h->n,
                         (unsigned long long)size);
    return KILN_OK;
}

/* Row p of the table: streams lie back to back, so that each begins where the one before ends. */
static kiln_status take_row(const unsigned char *row, const kiln_spz_header *h, int p,
                            uint64_t size, const char *name, kiln_spz_streams *out, kiln_error *err)
{
    const uint64_t packed = kiln_get_u64(row), plain = kiln_get_u64(row + 8),
                   expected = (uint64_t)h->n * h->stride[p];
    if (packed > size - out->at[p])
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s': the %s stream has %llu bytes from byte %llu on, but the file has only %llu left",
            name, kiln_spz_plane_names[p], (unsigned long long)packed,
            (unsigned long long)out->at[p], (unsigned long long)(size - out->at[p]));
    if (plain != expected)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': the %s stream has %llu bytes unpacked, but %u Gaussians take %llu",
                         name, kiln_spz_plane_names[p], (unsigned long long)plain, h->n,
                         (unsigned long long)expected);
    out->bytes[p] = packed;
    out->at[p + 1] = out->at[p] + packed;
    return KILN_OK;
}

/* The window of the frame that begins with these bytes (RFC 8878, 3.1.1.1); a frame of a single
 * segment has its content for one. */
static uint64_t window_of(const unsigned char head[FRAME_HEAD], uint64_t content)
{
    if (head[4] & SINGLE_SEGMENT) return content;
    const uint64_t base = UINT64_C(1) << (10 + (head[5] >> 3));
    return base + base / 8 * (head[5] & 7);
}

/* The smallest power of two that holds content and a block. A window need not be larger, whatever a
 * frame without a size says. */
static int window_log_of(uint64_t plain)
{
    int log = 10;
    while (UINT64_C(1) << log < kiln_max_u64(plain, BLOCK_MAX)) log++;
    return log;
}

static void limit_window(unsigned char *head, uint64_t plain)
{
    const int log = window_log_of(plain);
    if (!(head[4] & SINGLE_SEGMENT) && window_of(head, 0) > UINT64_C(1) << log)
        head[5] = (unsigned char)((log - 10) << 3);
}

static kiln_status look_at_frame(int fd, const char *name, int p, uint64_t plain,
                                 kiln_spz_streams *s, kiln_error *err)
{
    unsigned char head[FRAME_HEAD] = {0};
    const size_t n = (size_t)kiln_min_u64(s->bytes[p], sizeof head);
    KILN_TRY(kiln_file_read_at(fd, name, s->at[p], head, n, err));
    const bool is_frame = n > 5 && memcmp(head, "\x28\xb5\x2f\xfd", 4) == 0;
    if (is_frame && window_of(head, plain) > KILN_SPZ_WINDOW_MAX)
        return kiln_fail(
            err, KILN_E_INPUT,
            "the %s stream of '%s' has a zstd window of %llu bytes; at most 128 MiB are allowed",
            kiln_spz_plane_names[p], name, (unsigned long long)window_of(head, plain));
    const unsigned long long content = ZSTD_getFrameContentSize(head, n);
    if (!is_frame || content == ZSTD_CONTENTSIZE_ERROR)
        return kiln_fail(err, KILN_E_INPUT, "the %s stream of '%s' at byte %llu is no zstd frame",
                         kiln_spz_plane_names[p], name, (unsigned long long)s->at[p]);
    if (content != ZSTD_CONTENTSIZE_UNKNOWN && content != plain)
        return kiln_fail(err, KILN_E_INPUT,
                         "the zstd frame of the %s stream of '%s' claims %llu bytes, but the table "
                         "of contents %llu",
                         kiln_spz_plane_names[p], name, content, (unsigned long long)plain);
    const uint64_t window = window_of(head, plain);
    s->window = kiln_max_u64(s->window, kiln_min_u64(window, UINT64_C(1) << window_log_of(plain)));
    return KILN_OK;
}

kiln_status kiln_spz_streams_read(int fd, const char *name, uint64_t size, bool head_only,
                                  const kiln_spz_header *h, kiln_spz_streams *out, kiln_error *err)
{
    unsigned char head[KILN_SPZ_STREAMS_HEADER], table[KILN_SPZ_PLANES][KILN_SPZ_TOC_ROW];
    memset(out, 0, sizeof *out);
    if (size < sizeof head)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' ends at byte %llu, inside its SPZ header of %zu bytes; is it complete?", name,
            (unsigned long long)size, sizeof head);
    KILN_TRY(kiln_file_read_at(fd, name, 0, head, sizeof head, err));
    const uint32_t toc = kiln_get_u32(head + KILN_SPZ_TOC_AT);
    out->extensions_end = toc;
    KILN_TRY(check_header(h, toc, size, head_only, name, err));
    if (head_only) return KILN_OK;
    const int n = kiln_spz_n_streams(h->sh_degree);
    KILN_TRY(kiln_file_read_at(fd, name, toc, table, (size_t)n * KILN_SPZ_TOC_ROW, err));
    out->at[0] = toc + (uint64_t)n * KILN_SPZ_TOC_ROW;
    for (int p = 0; p < n; p++) KILN_TRY(take_row(table[p], h, p, size, name, out, err));
    if (out->at[n] != size)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' has %llu bytes after its last SPZ stream, from byte %llu on", name,
                         (unsigned long long)(size - out->at[n]), (unsigned long long)out->at[n]);
    for (int p = 0; p < n; p++)
        KILN_TRY(look_at_frame(fd, name, p, (uint64_t)h->n * h->stride[p], out, err));
    return KILN_OK;
}

/* ---- unpacking ------------------------------------------------------------------------------- */

typedef struct {
    const char *name, *plane;
    int fd, to;
    uint64_t at, left; /* in the file */
    /* in the scratch file: where the next byte goes, and how many still do */
    uint64_t place, plain;
    unsigned char *in, *out;
    /* no more than the stream needs, and a byte more to see that it has one too many */
    size_t in_capacity, out_capacity;
    ZSTD_DCtx *zstd;
} unpacking;

static kiln_status fail_frame(const unpacking *u, const char *why, kiln_error *err)
{
    return kiln_fail(err, KILN_E_INPUT, "the %s stream of '%s' is damaged before byte %llu: %s",
                     u->plane, u->name, (unsigned long long)u->at, why);
}

/* Gives what the decoder has to give for these bytes of the frame. *at_end: the frame ended with
 * the last of them. */
static kiln_status take_input(unpacking *u, size_t n, bool *at_end, kiln_error *err)
{
    ZSTD_inBuffer from = {u->in, n, 0};
    ZSTD_outBuffer to = {u->out, u->out_capacity, u->out_capacity};
    *at_end = false;
    while (from.pos < n || to.pos == to.size) { /* a full buffer: more may be held back */
        if (*at_end) return from.pos < n ? fail_frame(u, "bytes after its frame", err) : KILN_OK;
        to.pos = 0;
        const size_t rc = ZSTD_decompressStream(u->zstd, &to, &from);
        if (ZSTD_isError(rc)) return fail_frame(u, ZSTD_getErrorName(rc), err);
        if (to.pos > u->plain) return fail_frame(u, "it unpacks to more than its header says", err);
        KILN_TRY(kiln_unpacked_write(u->to, u->name, u->place, u->out, to.pos, err));
        u->place += to.pos;
        u->plain -= to.pos;
        *at_end = rc == 0;
    }
    return KILN_OK;
}

static kiln_status unpack_stream(unpacking *u, kiln_error *err)
{
    bool at_end = false;
    for (bool first = true; u->left; first = false) {
        const size_t n = (size_t)kiln_min_u64(u->left, u->in_capacity);
        if (at_end) return fail_frame(u, "bytes after its frame", err);
        KILN_TRY(kiln_file_read_at(u->fd, u->name, u->at, u->in, n, err));
        u->at += n;
        u->left -= n;
        if (first && n > 5) limit_window(u->in, u->plain);
        KILN_TRY(take_input(u, n, &at_end, err));
    }
    if (!at_end) return fail_frame(u, "its frame does not end there", err);
    return u->plain ? fail_frame(u, "it unpacks to less than its header says", err) : KILN_OK;
}

static kiln_status run_stream(unpacking *u, kiln_error *err)
{
    kiln_status st = KILN_OK;
    u->in_capacity = (size_t)kiln_min_u64(IN_BYTES, u->left);
    u->out_capacity = (size_t)kiln_min_u64(OUT_BYTES, u->plain + 1);
    u->zstd = ZSTD_createDCtx();
    if (!u->zstd ||
        ZSTD_isError(ZSTD_DCtx_setParameter(u->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
        st = kiln_fail(err, KILN_E_NOMEM, "out of memory for unpacking '%s'", u->name);
    if (st == KILN_OK)
        st = kiln_alloc_unset((void **)&u->in, u->in_capacity, 1, "packed bytes", err);
    if (st == KILN_OK)
        st = kiln_alloc_unset((void **)&u->out, u->out_capacity, 1, "unpacked bytes", err);
    if (st == KILN_OK) st = unpack_stream(u, err);
    free(u->out);
    free(u->in);
    ZSTD_freeDCtx(u->zstd);
    return st;
}

uint64_t kiln_spz_streams_ram(uint64_t window)
{
    return window + IN_BYTES + OUT_BYTES + DECODER_BYTES;
}

kiln_status kiln_spz_streams_spool(const kiln_spz_streams *s, const kiln_spz_header *h, int fd,
                                   const char *name, int to, unsigned threads, kiln_error *err)
{
    const int n = kiln_spz_n_streams(h->sh_degree), team = threads > 1 ? (int)threads : 1;
    kiln_status st[KILN_SPZ_PLANES];
    kiln_error errors[KILN_SPZ_PLANES];
#pragma omp parallel for num_threads(team) schedule(dynamic, 1)
    for (int k = 0; k < n; k++) {
        const int p = n - 1 - k; /* the harmonics, most of the file, first */
        unpacking u = {.name = name,
                       .plane = kiln_spz_plane_names[p],
                       .fd = fd,
                       .to = to,
                       .at = s->at[p],
                       .left = s->bytes[p],
                       .place = h->at[p],
                       .plain = (uint64_t)h->n * h->stride[p]};
        st[p] = run_stream(&u, &errors[p]);
    }
    for (int p = 0; p < n; p++) {
        if (st[p] == KILN_OK) continue;
        if (err) *err = errors[p];
        return st[p];
    }
    return KILN_OK;
}
