/* scan -- fixed-size float32 rows are validated by their header and the file's size alone: the scan then reads only as
 * far as the first usable row. Everything else is read whole. */
#include "stages/import/scan.h"

#include "base/checked.h"
#include "base/file.h"
#include "stages/import/blocks.h"
#include "stages/import/origin.h"
#include "stages/import/import_rows.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    const kiln_reader *reader;
    kiln_source *source;
    kiln_scan *out;
    kiln_rows rows;
    kiln_clean clean;
    kiln_row_counts counts;
    kiln_origin origin;
    kiln_buffer *offsets;
} scanner;

static bool loses_bits(const void *column, kiln_type type, uint64_t n)
{
    bool lossy = false;
    for (uint64_t i = 0; i < n; i++) {
        double v = type == KILN_TYPE_F64   ? ((const double *)column)[i]
                   : type == KILN_TYPE_U32 ? (double)((const uint32_t *)column)[i]
                                           : (double)((const int32_t *)column)[i];
        lossy |= v == v && (double)(float)v != v;
    }
    return lossy;
}

static void find_lossy(scanner *s)
{
    const kiln_source_info *info = &s->out->info;
    for (uint32_t e = 0; e < info->n_extras; e++)
        if (!s->out->keep[e]) s->out->keep[e] = loses_bits(s->rows.extras[e], info->extras[e].type, s->rows.n);
}

static bool needs_all_rows(const kiln_source_info *info)
{
    bool all = info->needs_full_scan || info->wide;
    for (uint32_t e = 0; e < info->n_extras; e++) all |= info->extras[e].keep == KILN_KEEP_IF_LOSSY;
    return all;
}

static kiln_status read_block(scanner *s, uint64_t block, uint64_t offset, uint64_t *next, kiln_error *err)
{
    uint64_t first = block * KILN_BLOCK_ROWS, left = s->out->info.n_rows - first;
    return s->reader->read(s->source, first, left < KILN_BLOCK_ROWS ? left : KILN_BLOCK_ROWS, offset, &s->rows, next, err);
}

/* The pass that validates; stops early where nothing more can come to light. */
static kiln_status first_pass(scanner *s, kiln_error *err)
{
    const double zero[3] = {0, 0, 0};
    const uint64_t unknown = UINT64_MAX;
    bool all = needs_all_rows(&s->out->info);
    uint64_t next = unknown;
    for (uint64_t b = 0; b < s->out->n_blocks; b++) {
        uint64_t offset = s->out->info.needs_full_scan ? next : unknown;
        KILN_TRY(kiln_buffer_put(s->offsets, &offset, sizeof offset, err));
        if (!all && s->counts.kept) continue;
        KILN_TRY(read_block(s, b, unknown, &next, err));
        uint64_t n = s->rows.n;
        find_lossy(s);
        kiln_rows_clean(&s->rows, &s->out->info, zero, b * KILN_BLOCK_ROWS, &s->clean, &s->counts);
        if (s->out->info.wide) kiln_origin_add(&s->origin, s->rows.means, s->clean.reason, n);
    }
    return s->reader->finish(s->source, &s->out->info, err);
}

static kiln_status find_origin(scanner *s, kiln_error *err)
{
    const double zero[3] = {0, 0, 0};
    kiln_row_counts unused = {0};
    const uint64_t *offsets = (const uint64_t *)s->offsets->data;
    while (kiln_origin_next(&s->origin, s->out->origin))
        for (uint64_t b = 0; b < s->out->n_blocks; b++) {
            uint64_t next;
            KILN_TRY(read_block(s, b, offsets[b], &next, err));
            uint64_t n = s->rows.n;
            kiln_rows_clean(&s->rows, &s->out->info, zero, b * KILN_BLOCK_ROWS, &s->clean, &unused);
            kiln_origin_add(&s->origin, s->rows.means, s->clean.reason, n);
        }
    return KILN_OK;
}

static kiln_status check_usable(const scanner *s, const char *path, kiln_error *err)
{
    int worst = 1;
    for (int d = 2; d < KILN_N_DROPS; d++)
        if (s->counts.dropped[d] > s->counts.dropped[worst]) worst = d;
    if (s->counts.kept || s->out->info.n_rows == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "'%s' has no usable row: %llu of %llu have a %s", path,
                     (unsigned long long)s->counts.dropped[worst], (unsigned long long)s->counts.read,
                     kiln_drop_text((kiln_drop)worst));
}

static void decide_extras(kiln_scan *out)
{
    bool moved = out->origin[0] != 0 || out->origin[1] != 0 || out->origin[2] != 0;
    for (uint32_t e = 0; e < out->info.n_extras; e++)
        if (out->info.extras[e].axis >= 0 && moved) out->keep[e] = 1;
}

uint64_t kiln_scan_ram(const kiln_reader *reader, const kiln_source_info *info)
{
    enum { ORIGIN = 4 << 20 };
    return kiln_rows_ram(info) + reader->ram(info, KILN_PASS_SCAN) + (info->wide ? ORIGIN : 0);
}

/* Here and now, so that no scan is in vain. */
static kiln_status check_ram(const kiln_worker *w, const kiln_reader *reader, const kiln_scan *s, kiln_error *err)
{
    const uint64_t scan = kiln_scan_ram(reader, &s->info), block = kiln_block_ram(reader, &s->info, s->keep);
    return kiln_worker_need_ram(w, scan, block + kiln_list_ram(s->n_blocks), "a block of rows", err);
}

kiln_status kiln_scan_source(const kiln_worker *w, const kiln_reader *reader, const kiln_source_at *at, kiln_scan *out,
                             kiln_buffer *offsets, kiln_error *err)
{
    kiln_status st = KILN_OK;
    scanner s = {.reader = reader, .out = out, .offsets = offsets};
    memset(out, 0, sizeof *out);
    KILN_TRY(reader->open(at, &s.source, &out->info, err));
    out->n_blocks = kiln_div_up(out->info.n_rows, KILN_BLOCK_ROWS);
    for (uint32_t e = 0; e < out->info.n_extras; e++) out->keep[e] = out->info.extras[e].keep == KILN_KEEP_ALWAYS;
    if (w) KILN_GO(check_ram(w, reader, out, err));
    KILN_GO(kiln_rows_alloc(&s.rows, &out->info, err));
    KILN_GO(kiln_clean_alloc(&s.clean, err));
    KILN_GO(kiln_origin_init(&s.origin, err));
    KILN_GO(first_pass(&s, err));
    KILN_GO(check_usable(&s, at->name, err));
    if (out->info.wide) KILN_GO(find_origin(&s, err));
    decide_extras(out);
done:
    kiln_origin_release(&s.origin);
    kiln_clean_release(&s.clean);
    kiln_rows_release(&s.rows);
    reader->close(s.source);
    return st;
}

kiln_status kiln_hash_file(const char *path, kiln_hash *out, kiln_error *err)
{
    enum { STEP = 1 << 20 };
    kiln_status st = KILN_OK;
    unsigned char *buffer = NULL;
    kiln_hasher *h = NULL;
    kiln_file_info info;
    int fd = -1;
    KILN_TRY(kiln_file_open(path, &fd, err));
    KILN_GO(kiln_file_stat(path, &info, err));
    KILN_GO(KILN_ALLOC(&buffer, STEP, "file content", err));
    h = kiln_hasher_new();
    if (!h) st = kiln_fail(err, KILN_E_NOMEM, "out of memory while reading '%s'", path);
    for (uint64_t at = 0; st == KILN_OK && at < info.size; at += STEP) {
        size_t n = info.size - at < STEP ? (size_t)(info.size - at) : STEP;
        st = kiln_file_read_at(fd, path, at, buffer, n, err);
        if (st == KILN_OK) kiln_hasher_update(h, buffer, n);
    }
done:
    if (h) *out = kiln_hasher_end(h);
    free(buffer);
    close(fd);
    return st;
}
