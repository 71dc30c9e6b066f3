/* packing -- gzip and zstd as streams, and unpacking in fixed memory. */
#include "stages/files/packing.h"

#include "base/checked.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "base/option.h"
#include "base/quote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

/* ---- gzip ------------------------------------------------------------------------------------ */

enum { GZIP_WINDOW = 15 + 16 }; /* of zlib: 32 KiB, with gzip's header and checksum */

static kiln_unpacker *open_gzip(void)
{
    z_stream *z = calloc(1, sizeof *z);
    if (z && inflateInit2(z, GZIP_WINDOW) == Z_OK) return (kiln_unpacker *)z;
    free(z);
    return NULL;
}

static const char *step_gzip(kiln_unpacker *u, kiln_unpack_step *s)
{
    z_stream *z = (z_stream *)u;
    z->next_in = (unsigned char *)(uintptr_t)s->in; /* zlib's type; it only reads */
    z->avail_in = (unsigned)s->n;
    z->next_out = s->out;
    z->avail_out = (unsigned)s->capacity;
    const int rc = inflate(z, Z_NO_FLUSH);
    s->taken = s->n - z->avail_in;
    s->given = s->capacity - z->avail_out;
    s->at_end = rc == Z_STREAM_END;
    if (s->at_end) (void)inflateReset(z); /* fails for a stream that is none */
    if (rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR) return NULL;
    return rc == Z_MEM_ERROR ? "out of memory" : z->msg ? z->msg : "no gzip data";
}

static void close_gzip(kiln_unpacker *u)
{
    (void)inflateEnd((z_stream *)u);
    free(u);
}

/* ---- zstd ------------------------------------------------------------------------------------ */

static kiln_unpacker *open_zstd(void)
{
    ZSTD_DCtx *d = ZSTD_createDCtx();
    if (d && !ZSTD_isError(ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, KILN_ZSTD_WINDOW_LOG)))
        return (kiln_unpacker *)d;
    ZSTD_freeDCtx(d);
    return NULL;
}

static const char *step_zstd(kiln_unpacker *u, kiln_unpack_step *s)
{
    ZSTD_inBuffer from = {s->in, s->n, 0};
    ZSTD_outBuffer to = {s->out, s->capacity, 0};
    const size_t rc = ZSTD_decompressStream((ZSTD_DCtx *)u, &to, &from);
    s->taken = from.pos;
    s->given = to.pos;
    s->at_end = rc == 0;
    if (!ZSTD_isError(rc)) return NULL;
    if (ZSTD_getErrorCode(rc) == ZSTD_error_frameParameter_windowTooLarge)
        return "its window is larger than the 8 MiB that are read; pack it with less than --ultra "
               "or --long";
    return ZSTD_getErrorName(rc);
}

static void close_zstd(kiln_unpacker *u) { ZSTD_freeDCtx((ZSTD_DCtx *)u); }

/* ---- the table ------------------------------------------------------------------------------- */

enum { PACKING_GZIP, PACKING_ZSTD };
static const kiln_packing packings[] = {
    [PACKING_GZIP] = {"gzip", "gz", {0x1f, 0x8b, 8}, 3, open_gzip, step_gzip, close_gzip},
    [PACKING_ZSTD] = {"zstd", "zst", {0x28, 0xb5, 0x2f, 0xfd}, 4, open_zstd, step_zstd, close_zstd},
};
enum { N_PACKINGS = sizeof packings / sizeof *packings };

/* A frame that decoders skip (RFC 8878, 3.1.2): some packers write one before the first frame. */
static bool is_skippable_frame(const unsigned char head[4])
{
    return (head[0] & 0xf0) == 0x50 && head[1] == 0x2a && head[2] == 0x4d && head[3] == 0x18;
}

kiln_status kiln_packing_find(const char *path, const kiln_packing **out, kiln_error *err)
{
    unsigned char head[sizeof packings->magic];
    kiln_file_info info;
    int fd;
    *out = NULL;
    KILN_TRY(kiln_file_open(path, &fd, err));
    kiln_status st = kiln_file_stat(path, &info, err);
    const size_t n = st == KILN_OK && info.size < sizeof head ? (size_t)info.size : sizeof head;
    if (st == KILN_OK) st = kiln_file_read_at(fd, path, 0, head, n, err);
    close(fd);
    for (int i = 0; i < N_PACKINGS && st == KILN_OK; i++)
        if (n >= packings[i].magic_bytes &&
            memcmp(head, packings[i].magic, packings[i].magic_bytes) == 0)
            *out = &packings[i];
    if (st == KILN_OK && n == sizeof head && is_skippable_frame(head))
        *out = &packings[PACKING_ZSTD];
    return st;
}

const kiln_packing *kiln_packing_named(const char *name)
{
    for (int i = 0; i < N_PACKINGS; i++)
        if (strcmp(packings[i].name, name) == 0) return &packings[i];
    return NULL;
}

size_t kiln_packing_stem(const char *name)
{
    const char *suffix = kiln_path_suffix(name);
    for (int i = 0; i < N_PACKINGS && *suffix; i++)
        if (strcasecmp(suffix, packings[i].suffix) == 0 && suffix - 1 > kiln_path_base(name))
            return (size_t)(suffix - 1 - name);
    return strlen(name);
}

size_t kiln_scene_stem(const char *scene, char name[KILN_PATH_MAX])
{
    static const char compressed[] = ".compressed";
    const size_t more = sizeof compressed - 1;
    (void)snprintf(name, KILN_PATH_MAX, "%.*s", (int)kiln_packing_stem(scene), scene);
    const char *suffix = kiln_path_suffix(name);
    size_t n = strlen(name) - (*suffix ? strlen(suffix) + 1 : 0);
    const size_t base = (size_t)(kiln_path_base(name) - name);
    if (!strcasecmp(suffix, "ply") && n > base + more &&
        !strncasecmp(name + n - more, compressed, more))
        n -= more;
    return n > base ? n : strlen(name);
}

void kiln_packings_list(const char *formats)
{
    for (int i = 0; i < N_PACKINGS; i++)
        kiln_print("  (packed)     .%-11s one %s stream of: %s", packings[i].suffix,
                   packings[i].name, formats);
}

/* ---- unpacking ------------------------------------------------------------------------------- */

enum { IN_BYTES = 1 << 18, OUT_BYTES = 1 << 20, LOOK_BYTES = 64 << 20, PEEK_BYTES = 1 << 20 };

typedef struct {
    const kiln_packing *packing;
    const kiln_unpacking *q;
    unsigned char *in, *out;
    size_t have, at; /* in[at, have) is not taken yet */
    uint64_t base;   /* offset of in[0] in the packed file */
    uint64_t given;  /* unpacked bytes */
    uint64_t looked; /* at the disk, when so many were given */
    bool at_end;     /* a stream has ended at in[at] */
} unpacking;

static kiln_status fail_write(int fd, const char *name, uint64_t bytes, int error, kiln_error *err)
{
    struct statvfs fs;
    char given[32], free_text[64] = "", place[KILN_PATH_MAX];
    kiln_fd_place_text(fd, place, sizeof place);
    if (fstatvfs(fd, &fs) == 0) {
        char amount[32];
        snprintf(free_text, sizeof free_text, "; %s are free there",
                 kiln_size_text((uint64_t)fs.f_bavail * fs.f_frsize, amount));
    }
    return kiln_fail(err, KILN_E_IO,
                     "cannot unpack '%s' to scratch%s after %s: %s%s; make room (or raise ulimit "
                     "-f), or name another folder with "
                     "--scratch-dir",
                     name, place, kiln_size_text(bytes, given), strerror(error), free_text);
}

kiln_status kiln_unpacked_write(int fd, const char *name, uint64_t at, const void *data, size_t n,
                                kiln_error *err)
{
    size_t done;
    const int why = kiln_file_pwrite(fd, at, data, n, &done);
    return why ? fail_write(fd, name, at + done, why, err) : KILN_OK;
}

/* A small file can unpack to more than any disk holds: it must not take the last byte from
 * everybody else. */
static kiln_status look_at_disk(unpacking *u, kiln_error *err)
{
    struct statvfs fs;
    if (u->given < u->looked) return KILN_OK;
    u->looked = u->given + LOOK_BYTES;
    if (fstatvfs(u->q->to, &fs) != 0) return KILN_OK; /* the write tells */
    const uint64_t whole = (uint64_t)fs.f_blocks * fs.f_frsize,
                   keep = kiln_min_u64(whole / 16, KILN_SCRATCH_KEPT_FREE);
    return (uint64_t)fs.f_bavail * fs.f_frsize >= keep
               ? KILN_OK
               : fail_write(u->q->to, u->q->name, u->given, ENOSPC, err);
}

static kiln_status write_out(unpacking *u, size_t n, kiln_error *err)
{
    const kiln_unpacking *q = u->q;
    n = (size_t)kiln_min_u64(n, q->limit - u->given);
    if (n > q->most - u->given)
        return kiln_fail(err, KILN_E_INPUT, "'%s' unpacks to more than %llu bytes: %s", q->name,
                         (unsigned long long)q->most, q->why);
    KILN_TRY(look_at_disk(u, err));
    if (u->given < q->keep)
        KILN_TRY(kiln_unpacked_write(q->to, q->name, q->at + u->given, u->out,
                                     (size_t)kiln_min_u64(n, q->keep - u->given), err));
    u->given += n;
    return KILN_OK;
}

static kiln_status fill_packed_input(unpacking *u, kiln_error *err)
{
    ssize_t n;
    u->base += u->have;
    u->at = u->have = 0;
    do
        n = pread(u->q->from, u->in, (size_t)kiln_min_u64(IN_BYTES, u->q->end - u->base),
                  (off_t)u->base);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return kiln_fail(err, KILN_E_IO, "cannot read '%s': %s", u->q->name, strerror(errno));
    u->have = (size_t)n;
    return KILN_OK;
}

/* Further streams begin like the first. */
static bool begins_stream(const unpacking *u)
{
    const size_t n =
        u->have - u->at < u->packing->magic_bytes ? u->have - u->at : u->packing->magic_bytes;
    const unsigned char *at = u->in + u->at;
    /* zstd: a frame of somebody's own */
    const bool skippable = u->packing->magic[0] == 0x28 && (*at & 0xf0) == 0x50;
    return skippable || memcmp(at, u->packing->magic, n) == 0;
}

static kiln_status unpack_streams(unpacking *u, kiln_unpacker *state, kiln_error *err)
{
    const char *name = u->packing->name, *path = u->q->name;
    while (u->given < u->q->limit) {
        if (u->at == u->have) KILN_TRY(fill_packed_input(u, err));
        if (u->have == 0 && u->at_end) return KILN_OK;
        if (u->have == 0)
            return kiln_fail(
                err, KILN_E_INPUT,
                "'%s' ends at byte %llu, inside its %s stream; is the download complete?", path,
                (unsigned long long)u->base, name);
        if (u->at_end && !begins_stream(u))
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s' has other bytes after its %s stream, from byte %llu on", path,
                             name, (unsigned long long)(u->base + u->at));
        kiln_unpack_step s = {
            .in = u->in + u->at, .n = u->have - u->at, .out = u->out, .capacity = OUT_BYTES};
        const char *wrong = u->packing->step(state, &s);
        u->at += s.taken;
        u->at_end = s.at_end;
        KILN_TRY(write_out(u, s.given, err));
        if (wrong && u->given < u->q->limit)
            return kiln_fail(err, KILN_E_INPUT, "the %s stream of '%s' is damaged at byte %llu: %s",
                             name, path, (unsigned long long)(u->base + u->at), wrong);
    }
    return KILN_OK;
}

kiln_status kiln_unpack_range(const kiln_packing *p, const kiln_unpacking *q, uint64_t *bytes,
                              kiln_error *err)
{
    kiln_status st = KILN_OK;
    unpacking u = {.packing = p, .q = q, .base = q->begin};
    kiln_unpacker *state = p->open();
    if (!state) return kiln_fail(err, KILN_E_NOMEM, "out of memory for unpacking '%s'", q->name);
    KILN_GO(kiln_alloc_unset((void **)&u.in, IN_BYTES, 1, "packed bytes", err));
    KILN_GO(kiln_alloc_unset((void **)&u.out, OUT_BYTES, 1, "unpacked bytes", err));
    KILN_GO(unpack_streams(&u, state, err));
    *bytes = u.given;
done:
    free(u.in);
    free(u.out);
    p->close(state);
    return st;
}

static kiln_status unpack_file(const kiln_packing *p, const char *path, kiln_unpacking *q,
                               uint64_t *bytes, kiln_error *err)
{
    q->name = path;
    q->end = q->keep = UINT64_MAX;
    KILN_TRY(kiln_file_open(path, &q->from, err));
    const kiln_status st = kiln_unpack_range(p, q, bytes, err);
    close(q->from);
    return st;
}

kiln_status kiln_unpack(const kiln_packing *p, const char *path, int fd, uint64_t limit,
                        uint64_t *bytes, kiln_error *err)
{
    return unpack_file(p, path, &(kiln_unpacking){.to = fd, .limit = limit, .most = UINT64_MAX},
                       bytes, err);
}

kiln_status kiln_unpack_whole(const kiln_packing *p, const char *path, int fd, uint64_t file_bytes,
                              uint64_t max_inflated, kiln_error *err)
{
    char why[160], packed[32];
    kiln_file_info file;
    uint64_t bytes;
    kiln_unpacking q = {.to = fd, .limit = UINT64_MAX, .most = UINT64_MAX, .why = why};
    KILN_TRY(kiln_file_stat(path, &file, err));
    if (file_bytes) {
        if (!kiln_add(file_bytes, KILN_UNPACK_MORE, &q.most)) q.most = UINT64_MAX;
        snprintf(why, sizeof why, "its header states %llu; the file is damaged",
                 (unsigned long long)file_bytes);
    } else {
        if (!kiln_mul(file.size, max_inflated, &q.most)) q.most = UINT64_MAX;
        q.most = kiln_max_u64(q.most, KILN_UNPACK_MORE);
        snprintf(why, sizeof why,
                 "that is more than %llu times its packed size of %s; if you trust it, raise "
                 "--max-inflated",
                 (unsigned long long)max_inflated, kiln_size_text(file.size, packed));
    }
    return unpack_file(p, path, &q, &bytes, err);
}

/* ---- a look at the beginning ----------------------------------------------------------------- */

kiln_status kiln_peek_open(const char *path, kiln_peek *out, kiln_error *err)
{
    const uint64_t unknown_size = UINT64_C(1) << 60;
    /* of a file's size: what is larger could not be unpacked either */
    struct rlimit most = {.rlim_cur = RLIM_INFINITY};
    char free_text[160];
    uint64_t bytes = 0;
    *out = (kiln_peek){.fd = -1};
    KILN_TRY(kiln_packing_find(path, &out->packing, err));
    snprintf(out->path, sizeof out->path, "%s", path);
    if (!out->packing) return KILN_OK;
    out->fd = memfd_create("peek", MFD_CLOEXEC);
    if (out->fd < 0)
        return kiln_fail(err, KILN_E_NOMEM, "cannot read '%s': %s", path, strerror(errno));
    kiln_status st = kiln_unpack(out->packing, path, out->fd, PEEK_BYTES, &bytes, err);
    (void)getrlimit(RLIMIT_FSIZE, &most); /* cannot fail for this resource */
    out->is_limited = bytes == PEEK_BYTES && most.rlim_cur < unknown_size;
    if (st == KILN_OK && bytes == PEEK_BYTES &&
        ftruncate(out->fd, (off_t)kiln_min_u64(unknown_size, most.rlim_cur)) != 0) {
        const int why = errno;
        kiln_file_free_text(path, why, free_text, sizeof free_text);
        st = kiln_fail(err, KILN_E_IO, "cannot look into '%s' before it is unpacked: %s%s", path,
                       strerror(why), free_text);
    }
    snprintf(out->path, sizeof out->path, "/proc/self/fd/%d", out->fd);
    if (st != KILN_OK) kiln_peek_close(out);
    return st;
}

void kiln_peek_close(kiln_peek *p)
{
    if (p->fd >= 0) close(p->fd);
    p->fd = -1;
}
