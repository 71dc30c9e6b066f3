/* product_mark -- see the header. */
#include "stages/products/product_mark.h"

#include "base/endian.h"
#include "base/file.h"
#include "base/option.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <zlib.h>

enum { END_BYTES = 1 << 16 };
#define GENERATOR "\"generator\":\"" KILN_PRODUCT_GENERATOR

/* A file, and its two ends, which may be the same bytes. */
typedef struct {
    const char *path;
    int fd;
    uint64_t size;
    unsigned char *head, *tail; /* [n] */
    size_t n;
    bool takes_note; /* its mark is one of a format whose files get a note (note_name) */
} ends;

static bool has_text(const unsigned char *bytes, size_t n, const char *text)
{
    return memmem(bytes, n, text, strlen(text)) != NULL;
}

static bool head_begins(const ends *e, const char *magic, size_t n)
{
    return e->n >= n && memcmp(e->head, magic, n) == 0;
}

/* ---- seals ----------------------------------------------------------------------------------- */
#define HTML_SEAL_BEGIN "<!-- SplatKiln seal "
#define HTML_SEAL_END " -->\n"
enum { HEX = 32, HTML_SEAL_BYTES = sizeof HTML_SEAL_BEGIN - 1 + HEX + sizeof HTML_SEAL_END - 1 };

/* Of the first `bytes` bytes. */
static bool hash_before(const ends *e, uint64_t bytes, kiln_hash *out)
{
    enum { STEP = 1 << 20 };
    unsigned char *step;
    kiln_hasher *h = kiln_hasher_new();
    bool whole = h && KILN_ALLOC_UNSET(&step, STEP, "a file", NULL) == KILN_OK;
    if (!whole) {
        if (h) (void)kiln_hasher_end(h);
        return false;
    }
    for (uint64_t at = 0; at < bytes && whole;) {
        const size_t n = bytes - at < STEP ? (size_t)(bytes - at) : STEP;
        whole = kiln_file_read_at(e->fd, e->path, at, step, n, NULL) == KILN_OK;
        if (whole) kiln_hasher_update(h, step, n);
        at += n;
    }
    free(step);
    *out = kiln_hasher_end(h);
    return whole;
}

/* hex: the text of the seal, in the tail; bytes: what it seals. */
static kiln_mark judge_seal(const ends *e, const unsigned char *hex, uint64_t bytes)
{
    char text[HEX + 1];
    kiln_hash said, is;
    memcpy(text, hex, HEX);
    text[HEX] = '\0';
    return kiln_hash_parse(text, &said) && hash_before(e, bytes, &is) && kiln_hash_equal(said, is)
               ? KILN_MARK_SEALED
               : KILN_MARK_BROKEN;
}

kiln_status kiln_product_seal_html(kiln_buffer *page, kiln_error *err)
{
    char hex[HEX + 1];
    return kiln_buffer_printf(page, err, HTML_SEAL_BEGIN "%s" HTML_SEAL_END,
                              kiln_hash_hex(kiln_hash_of(page->data, page->size), hex));
}

/* length | tEXt | keyword NUL 32 hex digits | sum */
#define PNG_SEAL_KEY "SplatKiln seal"
enum {
    PNG_SEAL_AT = 8 + sizeof PNG_SEAL_KEY,
    PNG_SEAL_DATA = sizeof PNG_SEAL_KEY + HEX,
    PNG_END_BYTES = 12
};
_Static_assert(KILN_PNG_SEAL_BYTES == 8 + PNG_SEAL_DATA + 4, "the chunk has this size");
enum { PNG_SEAL_TAIL = KILN_PNG_SEAL_BYTES + PNG_END_BYTES };

void kiln_product_seal_png(kiln_hash before, unsigned char out[KILN_PNG_SEAL_BYTES])
{
    char hex[HEX + 1];
    kiln_put_u32_be(out, PNG_SEAL_DATA);
    memcpy(out + 4, "tEXt" PNG_SEAL_KEY, 4 + sizeof PNG_SEAL_KEY);
    memcpy(out + PNG_SEAL_AT, kiln_hash_hex(before, hex), HEX);
    kiln_put_u32_be(out + 8 + PNG_SEAL_DATA, (uint32_t)crc32(0, out + 4, 4 + PNG_SEAL_DATA));
}

/* ---- formats --------------------------------------------------------------------------------- */
static bool has_bytes(const unsigned char *head, size_t n, const char *bytes, size_t length)
{
    return memmem(head, n, bytes, length) != NULL;
}

/* Of a format whose files get a note. */
static kiln_mark mark_by_text(ends *e, const unsigned char *bytes, size_t n, const char *text)
{
    e->takes_note = has_text(bytes, n, text);
    return e->takes_note ? KILN_MARK_OURS : KILN_MARK_NONE;
}

/* A PNG of a version before, without a seal: it has the bare number there, beside the profile of
 * the picture. */
static bool is_of_before(const unsigned char *head, size_t n)
{
    static const char number[] = "tEXtSoftware\0000.1.0", profile[] = "tEXtProfile";
    return has_bytes(head, n, number, sizeof number - 1) &&
           has_bytes(head, n, profile, sizeof profile);
}

/* A seal that is not the last chunk but one, as where bytes were appended, fits nothing. */
static kiln_mark mark_of_png(ends *e)
{
    static const char ours[] = "tEXtSoftware\0" KILN_PRODUCT_GENERATOR;
    const unsigned char *const pixels = memmem(e->head, e->n, "IDAT", 4), *const seal =
                                                                              e->tail + e->n -
                                                                              PNG_SEAL_TAIL;
    const size_t n = pixels ? (size_t)(pixels - e->head) : e->n;
    if (!has_bytes(e->head, n, ours, sizeof ours - 1))
        return is_of_before(e->head, n) ? KILN_MARK_OURS : KILN_MARK_NONE;
    if (e->n < PNG_SEAL_TAIL || memcmp(seal + 4, "tEXt" PNG_SEAL_KEY, 4 + sizeof PNG_SEAL_KEY) != 0)
        return KILN_MARK_BROKEN;
    return judge_seal(e, seal + PNG_SEAL_AT, e->size - PNG_SEAL_TAIL);
}

static kiln_mark mark_of_ply(ends *e)
{
    static const char line[] = "\ncomment Generated by " KILN_PRODUCT_GENERATOR,
                      end[] = "\nend_header";
    const unsigned char *const stop = memmem(e->head, e->n, end, sizeof end - 1);
    return mark_by_text(e, e->head, stop ? (size_t)(stop - e->head) : e->n, line);
}

/* JSON behind a head of some bytes. Whoever writes it names the generator first; what texts of the
 * scene hold comes later. */
static size_t near_head(const ends *e)
{
    enum { NEAR = 256 };
    return e->n < NEAR ? e->n : NEAR;
}

static kiln_mark mark_of_glb(ends *e) { return mark_by_text(e, e->head, near_head(e), GENERATOR); }

/* It lies in a folder of files, and has no note. */
static kiln_mark mark_of_json(ends *e)
{
    const size_t n = near_head(e);
    return has_text(e->head, n, GENERATOR) || has_text(e->head, n, "\"splatkiln-chunks\"")
               ? KILN_MARK_OURS
               : KILN_MARK_NONE;
}

/* Its chunks' sizes come first. */
static kiln_mark mark_of_rad(ends *e)
{
    return mark_by_text(e, e->head, e->n, ",\"comment\":\"" KILN_PRODUCT_GENERATOR);
}

/* meta.json is stored as it is, first or last. */
static kiln_mark mark_of_zip(ends *e)
{
    const kiln_mark first = mark_by_text(e, e->head, e->n, GENERATOR);
    return first != KILN_MARK_NONE ? first : mark_by_text(e, e->tail, e->n, GENERATOR);
}

static kiln_mark mark_of_html(ends *e)
{
    static const char mark[] = KILN_PRODUCT_META_BEGIN;
    static const char report_before[] = "<p class=\"eyebrow\">SplatKiln bake report</p>";
    if (!has_text(e->head, e->n, mark))
        return has_text(e->head, e->n, report_before) ? KILN_MARK_OURS : KILN_MARK_NONE;
    const unsigned char *const seal =
        e->n >= HTML_SEAL_BYTES ? e->tail + e->n - HTML_SEAL_BYTES : NULL;
    if (!has_text(e->tail, e->n, HTML_SEAL_BEGIN)) /* an exported scene */
        return mark_by_text(e, e->head, e->n, mark);
    if (!seal || memcmp(seal, HTML_SEAL_BEGIN, sizeof HTML_SEAL_BEGIN - 1) != 0)
        return KILN_MARK_BROKEN;
    return judge_seal(e, seal + sizeof HTML_SEAL_BEGIN - 1, e->size - HTML_SEAL_BYTES);
}

static kiln_mark mark_of(ends *e)
{
    static const struct {
        const char *magic;
        size_t n;
        kiln_mark (*mark)(ends *e);
    } formats[] = {{"\x89PNG\r\n\x1a\n", 8, mark_of_png},
                   {"ply\n", 4, mark_of_ply},
                   {"glTF", 4, mark_of_glb},
                   {"{", 1, mark_of_json},
                   {"PK\3\4", 4, mark_of_zip},
                   {"RAD0", 4, mark_of_rad},
                   {"<!doctype html>", 15, mark_of_html},
                   {"<!DOCTYPE html>", 15, mark_of_html}};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (head_begins(e, formats[i].magic, formats[i].n)) return formats[i].mark(e);
    return KILN_MARK_NONE;
}

static bool read_ends(ends *e)
{
    e->n = e->size < END_BYTES ? (size_t)e->size : END_BYTES;
    return KILN_ALLOC_UNSET(&e->head, e->n, "a file", NULL) == KILN_OK &&
           KILN_ALLOC_UNSET(&e->tail, e->n, "a file", NULL) == KILN_OK &&
           kiln_file_read_at(e->fd, e->path, 0, e->head, e->n, NULL) == KILN_OK &&
           kiln_file_read_at(e->fd, e->path, e->size - e->n, e->tail, e->n, NULL) == KILN_OK;
}

/* ---- the note in an extended attribute ------------------------------------------------------- */
static const char note_name[] = "user.splatkiln.written";
static const char made_name[] = "user.splatkiln.made";         /* of a format without a mark */
static const char exported_name[] = "user.splatkiln.exported"; /* from which bake, to which place */
enum { NOTE_BYTES = 48 };

static bool write_note(int fd, char out[NOTE_BYTES])
{
    struct stat s;
    if (fstat(fd, &s) != 0) return false;
    (void)snprintf(out, NOTE_BYTES, "%lld %lld.%09ld", (long long)s.st_size,
                   (long long)s.st_mtim.tv_sec, s.st_mtim.tv_nsec);
    return true;
}

static bool has_suffix_of(const char *path, const char *const *suffixes)
{
    while (*suffixes && strcasecmp(kiln_path_suffix(path), *suffixes) != 0) suffixes++;
    return *suffixes != NULL;
}

static int open_entry(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
}

static bool read_mark(ends *e, kiln_mark *mark)
{
    struct stat s;
    *mark = KILN_MARK_NONE;
    e->takes_note = false;
    if (fstat(e->fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_size == 0) return false;
    e->size = (uint64_t)s.st_size;
    const bool whole = read_ends(e);
    if (whole) *mark = mark_of(e);
    free(e->head);
    free(e->tail);
    e->head = e->tail = NULL;
    return whole;
}

/* By its content: names without a suffix are written, too. */
static bool takes_note(const char *file, int fd)
{
    kiln_mark mark;
    ends e = {.path = file, .fd = fd};
    return read_mark(&e, &mark) && e.takes_note;
}

void kiln_product_note(const char *file, const char *path)
{
    static const char *const marked[] = {"ply", "glb", "sog", "rad", "html", "htm", NULL};
    static const char *const unmarked[] = {"spz", "splat", "ksplat", "csv", NULL};
    char note[NOTE_BYTES];
    const int fd = open_entry(file);
    if (fd < 0) return;
    const char *const name = has_suffix_of(path, unmarked)                         ? made_name
                             : has_suffix_of(path, marked) || takes_note(file, fd) ? note_name
                                                                                   : NULL;
    if (name && write_note(fd, note)) (void)fsetxattr(fd, name, note, strlen(note), 0);
    (void)close(fd);
}

/* KILN_MARK_NONE: there is no note. *kept: the file system keeps notes. */
static kiln_mark mark_by_note(int fd, const char *name, bool *kept)
{
    char note[NOTE_BYTES], now[NOTE_BYTES];
    const ssize_t n = fgetxattr(fd, name, note, sizeof note - 1);
    *kept = n >= 0 || errno != ENOTSUP;
    if (n <= 0 || !write_note(fd, now)) return KILN_MARK_NONE;
    note[n] = '\0';
    return strcmp(note, now) == 0 ? KILN_MARK_SEALED : KILN_MARK_BROKEN;
}

/* A copy and what an editor saved keep the mark and lose the note. A seal tells more than both. */
static kiln_mark judge_note(const ends *e, kiln_mark mark)
{
    bool kept;
    const kiln_mark note = mark_by_note(e->fd, note_name, &kept);
    if (mark == KILN_MARK_SEALED || note == KILN_MARK_SEALED) return KILN_MARK_SEALED;
    if (note == KILN_MARK_BROKEN) return KILN_MARK_BROKEN;
    return mark == KILN_MARK_OURS && e->takes_note && kept ? KILN_MARK_COPIED : mark;
}

kiln_mark kiln_product_mark(const char *path)
{
    kiln_mark mark;
    ends e = {.path = path, .fd = open_entry(path)};
    if (e.fd < 0) return KILN_MARK_NONE;
    if (read_mark(&e, &mark)) mark = judge_note(&e, mark);
    (void)close(e.fd);
    return mark;
}

bool kiln_product_was_written(const char *path)
{
    const kiln_mark mark = kiln_product_mark(path);
    const int fd = open_entry(path);
    bool kept;
    const bool made = fd >= 0 && mark_by_note(fd, made_name, &kept) == KILN_MARK_SEALED;
    if (fd >= 0) (void)close(fd);
    return made || mark == KILN_MARK_OURS || mark == KILN_MARK_SEALED;
}

/* ---- the note of an export ------------------------------------------------------------------- */

/* Of the place without links. False: its folder is not there. */
static bool write_export(const char *path, kiln_hash bake, char out[HEX + 1])
{
    char folder[KILN_PATH_MAX];
    const char *const name = kiln_path_base(path);
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(name - path), path);
    char *const real = realpath(folder[0] ? folder : ".", NULL);
    if (!real) return false;
    kiln_hasher *const h = kiln_key_begin("exported", 1);
    kiln_key_hash(h, "bake", bake);
    kiln_key_text(h, "folder", real);
    kiln_key_text(h, "name", name);
    free(real);
    (void)kiln_hash_hex(kiln_key_end(h), out);
    return true;
}

void kiln_product_note_export(const char *file, const char *path, kiln_hash bake)
{
    char note[HEX + 1];
    const int fd = open_entry(file);
    if (fd < 0) return;
    if (write_export(path, bake, note)) (void)fsetxattr(fd, exported_name, note, HEX, 0);
    (void)close(fd);
}

static bool was_exported(const char *file, const char *path, kiln_hash bake)
{
    char note[HEX + 1] = "", now[HEX + 1];
    const int fd = open_entry(file);
    if (fd < 0) return false;
    const ssize_t n = fgetxattr(fd, exported_name, note, HEX);
    const bool kept = n >= 0 || errno != ENOTSUP;
    (void)close(fd);
    return !kept || (n == HEX && write_export(path, bake, now) && strcmp(note, now) == 0);
}

kiln_mark kiln_product_mark_of(const char *path, kiln_hash bake)
{
    const kiln_mark mark = kiln_product_mark(path);
    const bool is_ours = mark == KILN_MARK_OURS || mark == KILN_MARK_SEALED;
    return is_ours && !kiln_hash_is_zero(bake) && !was_exported(path, path, bake) ? KILN_MARK_OTHERS
                                                                                  : mark;
}

kiln_mark kiln_product_folder_mark_of(const char *folder, kiln_hash bake)
{
    static const char *const first[] = {"index.json", "tileset.json", "lod-meta.json", "meta.json"};
    char path[KILN_PATH_MAX];
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (kiln_path_join(path, sizeof path, folder, first[i], NULL) == KILN_OK &&
            kiln_product_mark(path) != KILN_MARK_NONE)
            return kiln_hash_is_zero(bake) || was_exported(path, folder, bake) ? KILN_MARK_OURS
                                                                               : KILN_MARK_OTHERS;
    return KILN_MARK_NONE;
}

kiln_mark kiln_product_folder_mark(const char *folder)
{
    return kiln_product_folder_mark_of(folder, (kiln_hash){0});
}

bool kiln_product_name_has_mark(const char *path)
{
    static const char *const suffixes[] = {"png", "glb", "sog", "rad", "html", "json"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (strcasecmp(kiln_path_suffix(path), suffixes[i]) == 0) return true;
    return false;
}
