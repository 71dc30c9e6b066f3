/* colmap_points -- COLMAP's points3D.bin and points3D.txt as a point cloud (COLMAP's
 * doc/format.rst).
 *
 *   u64 count, then per point
 *   0   u64 id        8  f64 x y z      32  u8 r g b     35  f64 error
 *   43  u64 track_length                51  track_length times u32 image_id, u32 point2D_idx
 *
 * Text: ID X Y Z R G B ERROR IMAGE_ID POINT2D_IDX ..., comments begin with '#'. It becomes binary
 * records without tracks in scratch, which are read like a file without its count. Records vary in
 * length, so only a whole pass finds where a block begins. Tracks are skipped: they are advisory
 * here. Ids have to be unique; finish_reading_colmap() looks for doubles in memory that does not
 * grow with the file.
 */
#include "stages/formats/reader.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/file.h"
#include "base/memory.h"
#include "stages/files/text_numbers.h"
#include "stages/formats/text_rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORD = 51, TRACK_ELEMENT = 8, WINDOW = 1 << 20 };
/* 32 MiB of ids; more points are looked through in as many passes as it takes */
enum { IDS_AT_ONCE = 1 << 22 };

typedef struct {
    uint64_t id, track_length;
    double xyz[3], error;
    uint8_t rgb[3];
} point;

typedef struct {
    char *path;
    int fd;
    uint64_t first_at; /* where the first record lies */
    bool is_spool;     /* records have no tracks, so that their places are known */
    uint64_t file_bytes, n_points;
    uint64_t next;         /* number of the point that comes next */
    unsigned char *window; /* [WINDOW], or as long as a file that is shorter */
    uint64_t base;         /* file offset of window[0] */
    size_t at, have;
} points_source;

/* ---- binary ---------------------------------------------------------------------------------- */

static uint64_t bin_offset(const points_source *s) { return s->base + s->at; }

static void bin_seek(points_source *s, uint64_t offset)
{
    s->base = offset;
    s->at = s->have = 0;
}

/* n <= RECORD bytes at the present place; does not move. */
static kiln_status bin_peek(points_source *s, size_t n, const unsigned char **out, kiln_error *err)
{
    if (s->have - s->at < n) {
        uint64_t left = s->file_bytes - bin_offset(s);
        bin_seek(s, bin_offset(s));
        if (left < n)
            return kiln_fail(
                err, KILN_E_INPUT,
                "'%s' is truncated: it ends inside point %llu of %llu; is the download complete?",
                s->path, (unsigned long long)s->next, (unsigned long long)s->n_points);
        s->have = left < WINDOW ? (size_t)left : WINDOW;
        KILN_TRY(kiln_file_read_at(s->fd, s->path, s->base, s->window, s->have, err));
    }
    *out = s->window + s->at;
    return KILN_OK;
}

static kiln_status bin_next(points_source *s, point *p, kiln_error *err)
{
    const unsigned char *r = NULL;
    KILN_TRY(bin_peek(s, RECORD, &r, err));
    p->id = kiln_get_u64(r);
    for (int c = 0; c < 3; c++) p->xyz[c] = kiln_get_f64(r + 8 + 8 * c);
    memcpy(p->rgb, r + 32, 3);
    p->error = kiln_get_f64(r + 35);
    p->track_length = kiln_get_u64(r + 43);
    uint64_t left = s->file_bytes - bin_offset(s) - RECORD;
    if (p->track_length > left / TRACK_ELEMENT)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s', point %llu at offset %llu: the file is shorter than its track length %llu says",
            s->path, (unsigned long long)s->next, (unsigned long long)bin_offset(s),
            (unsigned long long)p->track_length);
    uint64_t skip = RECORD + p->track_length * TRACK_ELEMENT;
    if (skip <= s->have - s->at)
        s->at += (size_t)skip;
    else
        bin_seek(s, bin_offset(s) + skip);
    s->next++;
    return KILN_OK;
}

static kiln_status bin_count(points_source *s, kiln_error *err)
{
    if (s->file_bytes < 8)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is truncated: it has %llu bytes, out of memory for its count",
                         s->path, (unsigned long long)s->file_bytes);
    KILN_TRY(kiln_file_read_at(s->fd, s->path, 0, &s->n_points, 8, err));
    if (s->n_points > (s->file_bytes - 8) / RECORD)
        return kiln_fail(err, KILN_E_INPUT, "'%s' is shorter than its count of %llu points says",
                         s->path, (unsigned long long)s->n_points);
    return KILN_OK;
}

/* ---- text ------------------------------------------------------------------------------------ */

static kiln_status text_bad(const char *path, uint64_t row, const char *what, kiln_error *err)
{
    return kiln_fail(err, KILN_E_INPUT, "'%s', point %llu: %s", path, (unsigned long long)row,
                     what);
}

/* X Y Z R G B ERROR behind the id, into the record. NULL, or what is wrong. */
static const char *text_numbers(kiln_token_line *words, unsigned char *record)
{
    const char *w;
    size_t n;
    double v[7];
    for (int i = 0; i < 7; i++) {
        if (!kiln_token_next(words, &w, &n))
            return "the line has too few fields; it takes ID X Y Z R G B ERROR";
        if (kiln_parse_f64(w, n, &v[i]) != KILN_NUMBER_OK) return "a value is not a number";
    }
    for (int i = 0; i < 3; i++) kiln_put_f64(record + 8 + 8 * i, v[i]);
    for (int i = 0; i < 3; i++) {
        if (!(v[3 + i] >= 0 && v[3 + i] <= 255 && v[3 + i] == floor(v[3 + i])))
            return "a colour is outside 0..255";
        record[32 + i] = (unsigned char)v[3 + i];
    }
    kiln_put_f64(record + 35, v[6]);
    return NULL;
}

/* Only looked at: the record has a track of length 0. */
static const char *text_track(kiln_token_line *words)
{
    const char *w;
    size_t n, length = 0;
    uint64_t id;
    for (; kiln_token_next(words, &w, &n); length++)
        if (kiln_parse_u64(w, n, &id) != KILN_NUMBER_OK)
            return "its track holds a value that is not a number";
    return length % 2 ? "its track is not a list of pairs" : NULL;
}

static kiln_status text_record(const void *path, uint64_t row, const char *line, size_t size,
                               unsigned char *record, kiln_error *err)
{
    kiln_token_line words = {line, line + size};
    const char *w, *wrong;
    size_t n;
    uint64_t id;
    memset(record, 0, RECORD);
    if (!kiln_token_next(&words, &w, &n) || kiln_parse_u64(w, n, &id) != KILN_NUMBER_OK)
        return text_bad(path, row, "its id is not a number", err);
    kiln_put_u64(record, id);
    wrong = text_numbers(&words, record);
    if (!wrong) wrong = text_track(&words);
    return wrong ? text_bad(path, row, wrong, err) : KILN_OK;
}

static kiln_text_rows text_rows(const points_source *s)
{
    return (kiln_text_rows){.fd = s->fd,
                            .path = s->path,
                            .n_rows = UINT64_MAX,
                            .comment = '#',
                            .record_bytes = RECORD,
                            .parse = text_record,
                            .context = s->path};
}

static kiln_status spool_colmap_txt(kiln_source *source, int fd, unsigned threads, kiln_error *err)
{
    const points_source *s = (const points_source *)source;
    const kiln_text_rows t = text_rows(s);
    uint64_t found;
    KILN_TRY(kiln_text_rows_spool(&t, fd, threads, &found, err));
    if (found != s->n_points)
        return kiln_fail(err, KILN_E_INPUT, "'%s' changed while it was read", s->path);
    return KILN_OK;
}

/* ---- both ------------------------------------------------------------------------------------ */

static void close_colmap(kiln_source *source)
{
    points_source *s = (points_source *)source;
    if (!s) return;
    free(s->window);
    if (s->fd >= 0) close(s->fd);
    free(s->path);
    free(s);
}

static void describe_points(const points_source *s, kiln_source_info *info)
{
    static const char *const names[] = {"x", "y", "z", "point_id", "error"};
    memset(info, 0, sizeof *info);
    info->kind = KILN_SCENE_POINTS;
    info->n_rows = s->n_points;
    info->wide = info->has_rgb = info->rgb_u8 = true;
    snprintf(info->writer, sizeof info->writer, "colmap");
    for (int i = 0; i < 5; i++) {
        kiln_extra *e = &info->extras[info->n_extras++];
        *e = (kiln_extra){.type = KILN_TYPE_F64,
                          .keep = i < 3 ? KILN_KEEP_IF_LOSSY : KILN_KEEP_ALWAYS,
                          .axis = i < 3 ? i : -1};
        snprintf(e->name, sizeof e->name, "%s", names[i]);
    }
}

static kiln_status check_count(const points_source *s, kiln_error *err)
{
    if (s->n_points <= UINT32_MAX - 1) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "'%s' has %llu points; ids have 32 bits, so at most 4294967294 can be read",
                     s->path, (unsigned long long)s->n_points);
}

static kiln_status open_window(points_source *s, kiln_error *err)
{
    return kiln_alloc_unset((void **)&s->window, s->file_bytes < WINDOW ? s->file_bytes : WINDOW, 1,
                            "COLMAP reader", err);
}

static kiln_status open_points_file(points_source **out, const char *path, const char *name,
                                    kiln_error *err)
{
    kiln_file_info file;
    points_source *s = NULL;
    KILN_TRY(KILN_ALLOC(&s, 1, "COLMAP reader", err));
    *out = s;
    s->fd = -1;
    KILN_TRY(KILN_ALLOC(&s->path, strlen(name) + 1, "path", err));
    strcpy(s->path, name);
    KILN_TRY(kiln_file_open(path, &s->fd, err));
    KILN_TRY(kiln_file_stat(path, &file, err));
    s->file_bytes = file.size;
    return KILN_OK;
}

static kiln_status open_colmap_bin(const kiln_source_at *at, kiln_source **out,
                                   kiln_source_info *info, kiln_error *err)
{
    points_source *s = NULL;
    kiln_status st = open_points_file(&s, at->path, at->name, err);
    if (st == KILN_OK) st = open_window(s, err);
    if (st == KILN_OK) st = bin_count(s, err);
    if (st == KILN_OK) st = check_count(s, err);
    if (st == KILN_OK) {
        s->first_at = 8;
        describe_points(s, info);
        info->needs_full_scan = true;
    } else {
        close_colmap((kiln_source *)s);
        s = NULL;
    }
    *out = (kiln_source *)s;
    return st;
}

/* The count is not in the file: before there are records, one pass over the lines. */
static kiln_status open_colmap_txt(const kiln_source_at *at, kiln_source **out,
                                   kiln_source_info *info, kiln_error *err)
{
    points_source *s = NULL;
    kiln_status st = open_points_file(&s, at->spool ? at->spool : at->path, at->name, err);
    if (st == KILN_OK && at->spool) {
        s->n_points = s->file_bytes / RECORD;
        s->is_spool = true;
        st = open_window(s, err);
    } else if (st == KILN_OK) {
        const kiln_text_rows t = text_rows(s);
        st = kiln_text_rows_count(&t, &s->n_points, err);
    }
    if (st == KILN_OK) st = check_count(s, err);
    if (st == KILN_OK) {
        describe_points(s, info);
        info->spool_bytes = s->n_points * RECORD;
    } else {
        close_colmap((kiln_source *)s);
        s = NULL;
    }
    *out = (kiln_source *)s;
    return st;
}

static void go_to(points_source *s, uint64_t point_number, uint64_t offset)
{
    s->next = point_number;
    bin_seek(s, offset);
}

static kiln_status read_colmap_rows(kiln_source *source, uint64_t first, uint64_t n,
                                    uint64_t offset, kiln_rows *rows, uint64_t *next_offset,
                                    kiln_error *err)
{
    points_source *s = (points_source *)source;
    rows->n = n;
    if (s->is_spool)
        go_to(s, first, first * RECORD);
    else if (offset != UINT64_MAX)
        go_to(s, first, offset);
    else if (first == 0)
        go_to(s, 0, s->first_at);
    else if (s->next != first)
        return kiln_fail(err, KILN_E_BUG, "'%s': points asked for out of order", s->path);
    for (uint64_t i = 0; i < n; i++) {
        point p;
        KILN_TRY(bin_next(s, &p, err));
        for (uint32_t c = 0; c < 3; c++) {
            rows->means[c * n + i] = p.xyz[c];
            rows->rgb[c * n + i] = (float)p.rgb[c] / 255.0f;
            ((double *)rows->extras[c])[i] = p.xyz[c];
        }
        ((double *)rows->extras[3])[i] = (double)p.id; /* exact below 2^53 */
        ((double *)rows->extras[4])[i] = p.error;
    }
    *next_offset = bin_offset(s);
    return KILN_OK;
}

/* ---- unique ids ------------------------------------------------------------------------------ */

static int point_ids_by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Ids of one part, chosen by a multiplicative hash (2^64 / golden ratio), are gathered and
 * sorted. */
static kiln_status check_part(points_source *s, uint64_t part, uint64_t parts, uint64_t *ids,
                              uint64_t capacity, kiln_error *err)
{
    uint64_t n = 0;
    go_to(s, 0, s->first_at);
    for (uint64_t i = 0; i < s->n_points; i++) {
        point p;
        KILN_TRY(bin_next(s, &p, err));
        if (parts > 1 && (p.id * 0x9e3779b97f4a7c15u >> 32) % parts != part) continue;
        if (n == capacity)
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s': its point ids are not spread as unique ids are", s->path);
        ids[n++] = p.id;
    }
    if (n) qsort(ids, n, sizeof *ids, point_ids_by_value);
    for (uint64_t i = 1; i < n; i++)
        if (ids[i] == ids[i - 1])
            return kiln_fail(err, KILN_E_INPUT, "'%s': point id %llu occurs twice", s->path,
                             (unsigned long long)ids[i]);
    return KILN_OK;
}

static kiln_status check_ids(points_source *s, kiln_error *err)
{
    kiln_status st = KILN_OK;
    uint64_t *ids = NULL, parts = kiln_div_up(s->n_points, IDS_AT_ONCE / 2);
    /* a part is half of it on average */
    uint64_t capacity = s->n_points < IDS_AT_ONCE ? s->n_points : IDS_AT_ONCE;
    KILN_TRY(KILN_ALLOC(&ids, capacity, "point ids", err));
    for (uint64_t part = 0; part < parts; part++)
        KILN_GO(check_part(s, part, parts, ids, capacity, err));
done:
    free(ids);
    return st;
}

static kiln_status finish_reading_colmap(kiln_source *source, kiln_source_info *info,
                                         kiln_error *err)
{
    points_source *s = (points_source *)source;
    KILN_TRY(check_ids(s, err));
    if (s->n_points == 0) go_to(s, 0, s->first_at);
    if (s->window && bin_offset(s) < s->file_bytes)
        snprintf(info->notes, sizeof info->notes, "bytes after the last point are ignored");
    return KILN_OK;
}

/* ---- probes ---------------------------------------------------------------------------------- */

/* A count, and a first point that can be one: the format has no magic number. The usual name lets a
 * damaged file come here too and get a sentence about what is wrong with it. */
static int probe_colmap_bin(const unsigned char *head, size_t len, const char *path)
{
    if (strcmp(kiln_path_base(path), "points3D.bin") == 0) return 60;
    if (len < 8 + RECORD) return 0;
    const uint64_t count = kiln_get_u64(head), track = kiln_get_u64(head + 8 + 43);
    bool plausible = count > 0 && count <= UINT32_MAX && track > 1 && track < 65536;
    for (int i = 0; i < 3; i++) {
        const double v = kiln_get_f64(head + 16 + 8 * i);
        plausible &= isfinite(v) && fabs(v) < 1e9 && (v == 0 || fabs(v) > 1e-30);
    }
    return plausible ? 20 : 0;
}

static int probe_colmap_txt(const unsigned char *head, size_t len, const char *path)
{
    static const char title[] = "# 3D point list";
    if (len >= sizeof title - 1 && memcmp(head, title, sizeof title - 1) == 0) return 70;
    return strcmp(kiln_path_base(path), "points3D.txt") == 0 ? 50 : 0;
}

/* The window and, for the scan, ids; pieces of text. */
static uint64_t colmap_reader_ram(const kiln_source_info *info, kiln_read_pass pass)
{
    const uint64_t ids = info->n_rows < IDS_AT_ONCE ? info->n_rows : IDS_AT_ONCE;
    if (pass == KILN_PASS_SPOOL_THREAD) return KILN_TEXT_ROWS_THREAD_RAM;
    return sizeof(points_source) + KILN_TEXT_ROWS_RAM +
           (pass == KILN_PASS_SCAN ? ids * sizeof(uint64_t) : 0);
}

const kiln_reader kiln_reader_colmap_bin = {
    .name = "colmap-bin",
    .suffixes = "bin",
    .summary = "COLMAP points3D.bin: a sparse point cloud",
    .ram = colmap_reader_ram,
    .packed = KILN_PACKED_NEVER,
    .probe = probe_colmap_bin,
    .open = open_colmap_bin,
    .read = read_colmap_rows,
    .finish = finish_reading_colmap,
    .close = close_colmap,
};

const kiln_reader kiln_reader_colmap_txt = {
    .name = "colmap-txt",
    .suffixes = "txt",
    .summary = "COLMAP points3D.txt: a sparse point cloud",
    .ram = colmap_reader_ram,
    .packed = KILN_PACKED_NEVER,
    .probe = probe_colmap_txt,
    .open = open_colmap_txt,
    .spool = spool_colmap_txt,
    .read = read_colmap_rows,
    .finish = finish_reading_colmap,
    .close = close_colmap,
};
