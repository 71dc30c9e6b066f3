/* zip_archive -- see the header. libzip is not used: it keeps the offsets of entries to itself, so
 * nobody outside of it can tell whether two entries overlap, and a second reading of the same
 * directory beside its own could disagree with it. */
#include "stages/formats/sog/zip_archive.h"

#include "base/endian.h"
#include "base/file.h"
#include "base/memory.h"
#include "stages/formats/sog/zip.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { COMMENT_MAX = 65535 };
enum { ENTRIES_MAX = 1024, DIRECTORY_MAX = 1 << 20, DEFLATE_MAX = 1032 /* : 1, RFC 1951 */ };

void kiln_zip_close(kiln_zip *z)
{
    for (uint32_t i = 0; i < z->n; i++) free(z->entries[i].name);
    free(z->entries);
    free(z->path);
    if (z->fd >= 0) close(z->fd);
    *z = (kiln_zip){.fd = -1};
}

/* ---- the directory --------------------------------------------------------------------------- */

typedef struct {
    uint64_t at, bytes;
    uint32_t n;
} directory;

/* Where the end record stands in the last bytes of the file: its comment reaches to the end. */
static const unsigned char *find_end(const unsigned char *tail, size_t n)
{
    for (size_t at = n < KILN_ZIP_END_BYTES ? 0 : n - KILN_ZIP_END_BYTES + 1; at-- > 0;)
        if (kiln_get_u32(tail + at) == KILN_ZIP_END &&
            at + KILN_ZIP_END_BYTES + kiln_get_u16(tail + at + 20) == n)
            return tail + at;
    return NULL;
}

static kiln_status check_end(const kiln_zip *z, const unsigned char *end, uint64_t end_at,
                             directory *d, kiln_error *err)
{
    const uint32_t disks = kiln_get_u16(end + 4) | kiln_get_u16(end + 6),
                   here = kiln_get_u16(end + 8), n = kiln_get_u16(end + 10);
    *d = (directory){.at = kiln_get_u32(end + 16), .bytes = kiln_get_u32(end + 12), .n = n};
    if (here == 0xffff || n == 0xffff || d->at == UINT32_MAX || d->bytes == UINT32_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is a ZIP64 archive, which is not read; pack it again without ZIP64",
                         z->path);
    if (disks != 0 || here != n)
        return kiln_fail(err, KILN_E_INPUT, "'%s' is a part of a ZIP archive of several disks",
                         z->path);
    if (n > ENTRIES_MAX || d->bytes > DIRECTORY_MAX)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' has %u entries in %llu bytes of directory; at most %d in a MiB are read", z->path,
            n, (unsigned long long)d->bytes, ENTRIES_MAX);
    if (d->at + d->bytes != end_at)
        return kiln_fail(err, KILN_E_INPUT,
                         "the directory of '%s' is said to be bytes %llu to %llu, but it ends at "
                         "%llu: something is missing or was "
                         "added; is the download complete?",
                         z->path, (unsigned long long)d->at, (unsigned long long)(d->at + d->bytes),
                         (unsigned long long)end_at);
    return KILN_OK;
}

static kiln_status find_directory(const kiln_zip *z, uint64_t size, directory *out, kiln_error *err)
{
    unsigned char *tail = NULL;
    const size_t n =
        size < KILN_ZIP_END_BYTES + COMMENT_MAX ? (size_t)size : KILN_ZIP_END_BYTES + COMMENT_MAX;
    kiln_status st = KILN_OK;
    KILN_GO(kiln_alloc_unset((void **)&tail, n, 1, "the end of an archive", err));
    KILN_GO(kiln_file_read_at(z->fd, z->path, size - n, tail, n, err));
    const unsigned char *end = find_end(tail, n);
    if (!end)
        st = kiln_fail(err, KILN_E_INPUT,
                       "'%s' is no ZIP archive, or its end is missing; is the download complete?",
                       z->path);
    else
        st = check_end(z, end, size - n + (uint64_t)(end - tail), out, err);
done:
    free(tail);
    return st;
}

static kiln_status check_entry(const kiln_zip *z, const kiln_zip_entry *e, uint32_t bits,
                               uint64_t limit, kiln_error *err)
{
    const char *why;
    if (!kiln_name_is_safe(e->name, &why))
        return kiln_fail(err, KILN_E_INPUT, "'%s' has an entry whose name is refused: %s", z->path,
                         why);
    if (e->packed == UINT32_MAX || e->size == UINT32_MAX || e->header == UINT32_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "the entry '%s' of '%s' needs ZIP64, which is not read; pack it again",
                         e->name, z->path);
    if (bits & 1)
        return kiln_fail(err, KILN_E_INPUT, "the entry '%s' of '%s' is encrypted; unpack it first",
                         e->name, z->path);
    if (e->method != KILN_ZIP_STORED && e->method != KILN_ZIP_DEFLATE)
        return kiln_fail(err, KILN_E_INPUT,
                         "the entry '%s' of '%s' is packed by method %u; only 0 (stored) and 8 "
                         "(DEFLATE) are read",
                         e->name, z->path, e->method);
    if (e->header + KILN_ZIP_LOCAL_BYTES + strlen(e->name) + e->packed > limit)
        return kiln_fail(err, KILN_E_INPUT,
                         "the entry '%s' lies outside of '%s': %llu bytes at %llu", e->name,
                         z->path, (unsigned long long)e->packed, (unsigned long long)e->header);
    if (e->method == KILN_ZIP_STORED ? e->packed != e->size : e->size / DEFLATE_MAX > e->packed)
        return kiln_fail(err, KILN_E_INPUT, "the entry '%s' of '%s' cannot hold %llu bytes in %llu",
                         e->name, z->path, (unsigned long long)e->size,
                         (unsigned long long)e->packed);
    return KILN_OK;
}

/* One entry of the directory at p[left]; *step: its bytes. */
static kiln_status take_entry(kiln_zip *z, const unsigned char *p, size_t left, uint64_t limit,
                              size_t *step, kiln_error *err)
{
    const size_t name = left < KILN_ZIP_ENTRY_BYTES ? 0 : kiln_get_u16(p + 28);
    *step = left < KILN_ZIP_ENTRY_BYTES
                ? 0
                : KILN_ZIP_ENTRY_BYTES + name + kiln_get_u16(p + 30) + kiln_get_u16(p + 32);
    if (left < KILN_ZIP_ENTRY_BYTES || kiln_get_u32(p) != KILN_ZIP_ENTRY || *step > left)
        return kiln_fail(err, KILN_E_INPUT, "the directory of '%s' is damaged at its entry %u",
                         z->path, z->n);
    kiln_zip_entry *e = &z->entries[z->n];
    KILN_TRY(KILN_ALLOC(&e->name, name + 1, "the name of an entry", err));
    z->n++;
    memcpy(e->name, p + KILN_ZIP_ENTRY_BYTES, name);
    e->method = kiln_get_u16(p + 10);
    e->crc = kiln_get_u32(p + 16);
    e->packed = kiln_get_u32(p + 20);
    e->size = kiln_get_u32(p + 24);
    e->header = kiln_get_u32(p + 42);
    if (strlen(e->name) != name)
        return kiln_fail(err, KILN_E_INPUT, "'%s' has an entry with a NUL in its name", z->path);
    return check_entry(z, e, kiln_get_u16(p + 8), limit, err);
}

static kiln_status take_directory(kiln_zip *z, const directory *d, kiln_error *err)
{
    unsigned char *bytes = NULL;
    size_t at = 0, step;
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC(&z->entries, d->n, "the entries of an archive", err));
    KILN_GO(kiln_alloc_unset((void **)&bytes, d->bytes, 1, "the directory of an archive", err));
    KILN_GO(kiln_file_read_at(z->fd, z->path, d->at, bytes, d->bytes, err));
    for (uint32_t i = 0; i < d->n; i++, at += step)
        KILN_GO(take_entry(z, bytes + at, d->bytes - at, d->at, &step, err));
    if (at != d->bytes)
        st = kiln_fail(err, KILN_E_INPUT,
                       "the directory of '%s' has %llu bytes more than its %u entries", z->path,
                       (unsigned long long)(d->bytes - at), d->n);
done:
    free(bytes);
    return st;
}

/* ---- what the directory cannot say alone ----------------------------------------------------- */

/* Data begin behind a local header whose extra field may be another than the directory's. */
static kiln_status find_data(const kiln_zip *z, kiln_zip_entry *e, uint64_t limit, kiln_error *err)
{
    unsigned char local[KILN_ZIP_LOCAL_BYTES];
    KILN_TRY(kiln_file_read_at(z->fd, z->path, e->header, local, sizeof local, err));
    if (kiln_get_u32(local) != KILN_ZIP_LOCAL || kiln_get_u16(local + 26) != strlen(e->name))
        return kiln_fail(err, KILN_E_INPUT,
                         "the entry '%s' of '%s' is not at byte %llu, where the directory has it",
                         e->name, z->path, (unsigned long long)e->header);
    e->at = e->header + KILN_ZIP_LOCAL_BYTES + kiln_get_u16(local + 26) + kiln_get_u16(local + 28);
    return e->at + e->packed <= limit
               ? KILN_OK
               : kiln_fail(err, KILN_E_INPUT,
                           "the entry '%s' lies outside of '%s': %llu bytes at %llu", e->name,
                           z->path, (unsigned long long)e->packed, (unsigned long long)e->at);
}

static int by_place(const void *a, const void *b)
{
    const kiln_zip_entry *x = a, *y = b;
    return (x->header > y->header) - (x->header < y->header);
}

static int zip_entries_by_name(const void *a, const void *b)
{
    return strcmp(((const kiln_zip_entry *)a)->name, ((const kiln_zip_entry *)b)->name);
}

/* In the order of places each entry ends before the next begins. */
static kiln_status check_places(kiln_zip *z, uint64_t limit, kiln_error *err)
{
    if (z->n) qsort(z->entries, z->n, sizeof *z->entries, by_place);
    for (uint32_t i = 1; i < z->n; i++)
        if (z->entries[i].header == z->entries[i - 1].header)
            return kiln_fail(err, KILN_E_INPUT, "the entries '%s' and '%s' of '%s' overlap",
                             z->entries[i - 1].name, z->entries[i].name, z->path);
    for (uint32_t i = 0; i < z->n; i++) KILN_TRY(find_data(z, &z->entries[i], limit, err));
    for (uint32_t i = 1; i < z->n; i++)
        if (z->entries[i - 1].at + z->entries[i - 1].packed > z->entries[i].header)
            return kiln_fail(err, KILN_E_INPUT, "the entries '%s' and '%s' of '%s' overlap",
                             z->entries[i - 1].name, z->entries[i].name, z->path);
    return KILN_OK;
}

static kiln_status check_entry_names(kiln_zip *z, kiln_error *err)
{
    if (z->n) qsort(z->entries, z->n, sizeof *z->entries, zip_entries_by_name);
    for (uint32_t i = 1; i < z->n; i++)
        if (zip_entries_by_name(&z->entries[i - 1], &z->entries[i]) == 0)
            return kiln_fail(err, KILN_E_INPUT, "'%s' has the entry '%s' twice", z->path,
                             z->entries[i].name);
    return KILN_OK;
}

kiln_status kiln_zip_open(const char *path, const char *name, kiln_zip *out, kiln_error *err)
{
    kiln_file_info info;
    directory d = {0};
    *out = (kiln_zip){.fd = -1};
    KILN_TRY(KILN_ALLOC(&out->path, strlen(name) + 1, "path", err));
    memcpy(out->path, name, strlen(name));
    KILN_TRY(kiln_file_open(path, &out->fd, err));
    KILN_TRY(kiln_file_stat(path, &info, err));
    KILN_TRY(find_directory(out, info.size, &d, err));
    KILN_TRY(take_directory(out, &d, err));
    KILN_TRY(check_places(out, d.at, err));
    return check_entry_names(out, err);
}

const kiln_zip_entry *kiln_zip_find(const kiln_zip *z, const char *name)
{
    for (uint32_t i = 0; i < z->n; i++)
        if (strcmp(z->entries[i].name, name) == 0) return &z->entries[i];
    return NULL;
}

/* ---- data ------------------------------------------------------------------------------------ */

/* Into a buffer of exactly the size that is due: what unpacks to more or less is damaged. */
static kiln_status inflate_into(const kiln_zip *z, const kiln_zip_entry *e, z_stream *s,
                                unsigned char *in, size_t capacity, kiln_error *err)
{
    int rc = Z_OK;
    for (uint64_t done = 0; rc == Z_OK && s->avail_out > 0 && done < e->packed;) {
        const size_t n = e->packed - done < capacity ? (size_t)(e->packed - done) : capacity;
        KILN_TRY(kiln_file_read_at(z->fd, z->path, e->at + done, in, n, err));
        s->next_in = in;
        s->avail_in = (unsigned)n;
        rc = inflate(s, Z_NO_FLUSH);
        done += n;
    }
    if (s->avail_out == 0 && (rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR))
        return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "the entry '%s' of '%s' is damaged: %s", e->name, z->path,
                     s->msg ? s->msg : "it unpacks to less than it says");
}

static kiln_status read_deflated(const kiln_zip *z, const kiln_zip_entry *e, void *dst,
                                 uint64_t bytes, kiln_error *err)
{
    enum { IN_BYTES = 64 << 10 };
    kiln_status st = KILN_OK;
    unsigned char *in = NULL;
    z_stream s = {.next_out = dst, .avail_out = (unsigned)bytes};
    if (inflateInit2(&s, -MAX_WBITS) != Z_OK)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for unpacking '%s'", z->path);
    KILN_GO(kiln_alloc_unset((void **)&in, IN_BYTES, 1, "packed bytes", err));
    KILN_GO(inflate_into(z, e, &s, in, IN_BYTES, err));
done:
    free(in);
    (void)inflateEnd(&s);
    return st;
}

kiln_status kiln_zip_read(const kiln_zip *z, const kiln_zip_entry *e, void *dst, uint64_t bytes,
                          kiln_error *err)
{
    if (bytes == 0) return KILN_OK;
    if (e->method == KILN_ZIP_STORED)
        KILN_TRY(kiln_file_read_at(z->fd, z->path, e->at, dst, bytes, err));
    else
        KILN_TRY(read_deflated(z, e, dst, bytes, err));
    if (bytes == e->size && (uint32_t)crc32_z(0, dst, bytes) != e->crc)
        return kiln_fail(err, KILN_E_INPUT,
                         "the checksum of the entry '%s' of '%s' is wrong: it is damaged", e->name,
                         z->path);
    return KILN_OK;
}
