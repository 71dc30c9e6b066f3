/* scan -- fixed-size float32 rows are validated by their header and the file's size alone: the scan
 * then reads only as far as the first usable row, and on while the values look activated
 * (activation.h). Everything else is read whole. */
#include "stages/import/scan.h"

#include "base/checked.h"
#include "stages/formats/clean_rows.h"
#include "stages/import/activation.h"
#include "stages/import/blocks.h"
#include "stages/import/origin.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    kiln_source *source; /* NULL: closed */
    bool moved;
    uint64_t first; /* among all offsets: of its first block */
} scanned;

typedef struct {
    const kiln_scan_part *part; /* the one that is read, and what is known of it: */
    scanned *now;
    kiln_scan *out;
    kiln_rows rows;
    kiln_clean clean;
    kiln_row_counts counts;
    kiln_activation values;
    bool wide; /* coordinates of some file need more than float32 */
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
        if (!s->out->keep[e])
            s->out->keep[e] = loses_bits(s->rows.extras[e], info->extras[e].type, s->rows.n);
}

static bool needs_all_rows(const scanner *s)
{
    const kiln_source_info *info = &s->out->info;
    bool all = info->needs_full_scan || s->wide;
    for (uint32_t e = 0; e < info->n_extras; e++) all |= info->extras[e].keep == KILN_KEEP_IF_LOSSY;
    return all;
}

static kiln_status read_scan_block(scanner *s, uint64_t block, uint64_t offset, uint64_t *next,
                                   kiln_error *err)
{
    uint64_t first = block * KILN_BLOCK_ROWS, left = s->out->info.n_rows - first;
    return s->part->reader->read(s->now->source, first,
                                 left < KILN_BLOCK_ROWS ? left : KILN_BLOCK_ROWS, offset, &s->rows,
                                 next, err);
}

static void clean_block(scanner *s, uint64_t block, kiln_row_counts *counts)
{
    const double zero[3] = {0, 0, 0};
    const uint64_t n = s->rows.n;
    if (s->now->moved) kiln_rows_move(&s->rows, &s->out->info, &s->part->move, 1);
    kiln_rows_clean(&s->rows, &s->out->info, zero, block * KILN_BLOCK_ROWS, &s->clean, counts);
    if (s->wide) kiln_origin_add(&s->origin, s->rows.means, s->clean.reason, n);
}

/* The pass that validates; stops early where nothing more can come to light. */
static kiln_status first_pass(scanner *s, kiln_error *err)
{
    const uint64_t unknown = UINT64_MAX;
    bool all = needs_all_rows(s);
    uint64_t next = unknown;
    for (uint64_t b = 0; b < s->out->n_blocks; b++) {
        uint64_t offset = s->out->info.needs_full_scan ? next : unknown;
        KILN_TRY(kiln_buffer_put(s->offsets, &offset, sizeof offset, err));
        if (!all && s->counts.kept && !kiln_activation_is_likely(&s->values)) continue;
        KILN_TRY(read_scan_block(s, b, unknown, &next, err));
        if (s->out->info.logs_as_read)
            kiln_activation_add(&s->rows, s->out->info.dialect, &s->values);
        find_lossy(s);
        clean_block(s, b, &s->counts);
    }
    KILN_TRY(kiln_reader_finish(s->part->reader, s->now->source, &s->out->info, err));
    kiln_activation_note(&s->values, &s->out->info);
    return KILN_OK;
}

static kiln_status later_pass(scanner *s, kiln_error *err)
{
    kiln_row_counts unused = {0};
    const uint64_t *offsets = (const uint64_t *)s->offsets->data + s->now->first;
    for (uint64_t b = 0; b < s->out->n_blocks; b++) {
        uint64_t next;
        KILN_TRY(read_scan_block(s, b, offsets[b], &next, err));
        clean_block(s, b, &unused);
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
                     (unsigned long long)s->counts.dropped[worst],
                     (unsigned long long)s->counts.read, kiln_drop_text((kiln_drop)worst));
}

static void decide_extras(kiln_scan *out)
{
    bool moved = out->origin[0] != 0 || out->origin[1] != 0 || out->origin[2] != 0;
    for (uint32_t e = 0; e < out->info.n_extras; e++)
        if (out->info.extras[e].axis >= 0 && moved) out->keep[e] = 1;
}

enum { ORIGIN = 4 << 20 };

uint64_t kiln_scan_ram(const kiln_reader *reader, const kiln_source_info *info)
{
    return kiln_rows_ram(info) + kiln_reader_ram(reader, info, KILN_PASS_SCAN) +
           (info->wide ? ORIGIN : 0);
}

/* Here and now, so that no scan is in vain. */
static kiln_status check_ram(const kiln_worker *w, const kiln_reader *reader, const kiln_scan *s,
                             bool moved, kiln_error *err)
{
    const uint64_t scan = kiln_scan_ram(reader, &s->info) + (moved ? ORIGIN : 0),
                   block = kiln_block_ram(reader, &s->info, s->keep);
    return kiln_worker_need_ram(w, scan, block + kiln_list_ram(s->n_blocks), "a block of rows",
                                err);
}

static void stop_part(scanner *s)
{
    kiln_clean_release(&s->clean);
    kiln_rows_release(&s->rows);
    if (s->now->source) s->part->reader->close(s->now->source);
    s->now->source = NULL;
}

static kiln_status open_part(scanner *s, kiln_error *err)
{
    kiln_source_info *info = NULL; /* what it says is known but for the first time */
    if (s->now->source) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&info, 1, "what a file says of itself", err));
    const kiln_status st = s->part->reader->open(&s->part->at, &s->now->source, info, err);
    free(info);
    return st;
}

static void choose_part(scanner *s, const kiln_scan_part *parts, scanned *each, kiln_scan *out,
                        uint32_t k)
{
    s->part = &parts[k];
    s->now = &each[k];
    s->out = &out[k];
}

/* What the header says, before any row is read. */
static kiln_status look_at_header(scanner *s, const kiln_worker *w, kiln_error *err)
{
    kiln_scan *out = s->out;
    memset(out, 0, sizeof *out);
    KILN_TRY(s->part->reader->open(&s->part->at, &s->now->source, &out->info, err));
    out->n_blocks = kiln_div_up(out->info.n_rows, KILN_BLOCK_ROWS);
    for (uint32_t e = 0; e < out->info.n_extras; e++)
        out->keep[e] = out->info.extras[e].keep == KILN_KEEP_ALWAYS;
    s->now->moved = !kiln_similarity_is_identity(&s->part->move);
    s->wide |= out->info.wide || s->now->moved;
    return w ? check_ram(w, s->part->reader, out, s->now->moved, err) : KILN_OK;
}

static kiln_status pass_over(scanner *s, bool first, kiln_error *err)
{
    KILN_TRY(open_part(s, err));
    KILN_TRY(kiln_rows_alloc(&s->rows, &s->out->info, err));
    KILN_TRY(kiln_clean_alloc(&s->clean, err));
    if (!first) return later_pass(s, err);
    s->now->first = s->offsets->size / sizeof(uint64_t);
    s->counts = (kiln_row_counts){0};
    kiln_activation_begin(&s->values);
    KILN_TRY(first_pass(s, err));
    return check_usable(s, s->part->at.name, err);
}

kiln_status kiln_scan_sources(const kiln_worker *w, const kiln_scan_part *parts, uint32_t n,
                              kiln_scan *out, kiln_buffer *offsets, kiln_error *err)
{
    kiln_status st = KILN_OK;
    scanner s = {.offsets = offsets};
    scanned *each = NULL;
    double origin[3] = {0, 0, 0};
    bool again = false;
    KILN_TRY(KILN_ALLOC(&each, n, "files of rows", err));
    for (uint32_t k = 0; k < n; k++) {
        choose_part(&s, parts, each, out, k);
        KILN_GO(look_at_header(&s, w, err));
        if (n > 1) stop_part(&s); /* of many, one is open at a time */
    }
    KILN_GO(kiln_origin_init(&s.origin, err));
    do {
        for (uint32_t k = 0; k < n; k++) {
            choose_part(&s, parts, each, out, k);
            KILN_GO(pass_over(&s, !again, err));
            stop_part(&s);
        }
        again = s.wide && kiln_origin_next(&s.origin, origin);
    } while (again);
    for (uint32_t k = 0; k < n; k++) {
        memcpy(out[k].origin, origin, sizeof origin);
        decide_extras(&out[k]);
    }
done:
    if (s.now) stop_part(&s);
    kiln_origin_release(&s.origin);
    free(each);
    return st;
}

kiln_status kiln_scan_source(const kiln_worker *w, const kiln_reader *reader,
                             const kiln_source_at *at, kiln_scan *out, kiln_buffer *offsets,
                             kiln_error *err)
{
    kiln_scan_part part = {.reader = reader, .at = *at};
    kiln_similarity_identity(&part.move);
    return kiln_scan_sources(w, &part, 1, out, offsets, err);
}
