/* reader -- a reader of rows, alone: open, read in ranges, finish; then read again from the ranges'
 * own offsets, last first, as blocks are read in workers. The last byte says how many rows a range
 * has, the one before it options. Arrays are as long as the rows need, not as a block's are, so
 * that a sanitiser sees what is written behind them. */
#include "tests/fuzz/fuzz.h"

#include "stages/formats/clean_rows.h"
#include "stages/formats/reader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { RANGES_MAX = 4096 };

static void *array(uint64_t n, size_t bytes)
{
    void *p = calloc(n ? n : 1, bytes);
    HOLDS(p);
    return p;
}

static void make_rows(kiln_rows *r, const kiln_source_info *info, uint64_t n)
{
    const uint64_t m = (info->sh_degree + 1) * (info->sh_degree + 1) - 1;
    memset(r, 0, sizeof *r);
    r->means = array(3 * n, sizeof *r->means);
    if (info->kind == KILN_SCENE_SPLATS) {
        r->log_scales = array(3 * n, sizeof(float));
        r->quats = array(4 * n, sizeof(float));
        r->opacity_logits = array(n, sizeof(float));
        r->sh0 = array(3 * n, sizeof(float));
        r->shN = array(3 * m * n, sizeof(float));
    } else {
        r->rgb = array(3 * n, sizeof(float));
    }
    for (uint32_t i = 0; i < info->n_extras; i++)
        r->extras[i] = array(n, kiln_type_size(info->extras[i].type));
}

static uint64_t hash_of(uint64_t seed, const void *data, uint64_t bytes)
{
    return XXH3_64bits_withSeed(data ? data : "", bytes, seed);
}

static uint64_t hash_rows(const kiln_rows *r, const kiln_source_info *info)
{
    const uint64_t m = (info->sh_degree + 1) * (info->sh_degree + 1) - 1, n = r->n;
    uint64_t h = hash_of(n, r->means, r->means ? 3 * n * sizeof(double) : 0);
    if (info->kind == KILN_SCENE_SPLATS) {
        h = hash_of(h, r->log_scales, 3 * n * sizeof(float));
        h = hash_of(h, r->quats, 4 * n * sizeof(float));
        h = hash_of(h, r->opacity_logits, n * sizeof(float));
        h = hash_of(h, r->sh0, 3 * n * sizeof(float));
        h = hash_of(h, r->shN, 3 * m * n * sizeof(float));
    } else {
        h = hash_of(h, r->rgb, 3 * n * sizeof(float));
    }
    for (uint32_t i = 0; i < info->n_extras; i++)
        h = hash_of(h, r->extras[i], n * kiln_type_size(info->extras[i].type));
    return h;
}

static void all_finite(const float *v, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) HOLDS(isfinite(v[i]));
}

/* What the sanitiser of rows lets through is finite and in range, and every row is kept or
 * counted. */
static void clean_rows(kiln_rows *r, const kiln_source_info *info, uint64_t first)
{
    const double origin[3] = {0, 0, 0};
    const uint64_t m = (info->sh_degree + 1) * (info->sh_degree + 1) - 1, n = r->n;
    kiln_row_counts counts = {0};
    kiln_clean c = {.means = array(3 * n, sizeof(float)),
                    .source_row = array(n, sizeof(uint32_t)),
                    .reason = array(n, 1)};
    kiln_rows_clean(r, info, origin, first, &c, &counts);
    uint64_t dropped = 0;
    for (int i = 0; i < KILN_N_DROPS; i++) dropped += counts.dropped[i];
    HOLDS(c.n == counts.kept && c.n + dropped == n && counts.read == n);
    all_finite(c.means, 3 * c.n);
    if (info->kind == KILN_SCENE_SPLATS) {
        all_finite(r->log_scales, 3 * c.n);
        all_finite(r->quats, 4 * c.n);
        all_finite(r->opacity_logits, c.n);
        all_finite(r->sh0, 3 * c.n);
        all_finite(r->shN, 3 * m * c.n);
    } else {
        all_finite(r->rgb, 3 * c.n);
    }
    free(c.means);
    free(c.source_row);
    free(c.reason);
}

typedef struct {
    uint64_t n; /* ranges */
    uint64_t offset[RANGES_MAX], hash[RANGES_MAX];
} ranges;

/* Some rows; offset: as the reader takes it. */
typedef struct {
    uint64_t first, n, offset;
} range;

/* What comes of a range is its hash. */
static kiln_status read_range(const kiln_reader *reader, kiln_source *s,
                              const kiln_source_info *info, range r, uint64_t *next, uint64_t *hash,
                              kiln_error *err)
{
    kiln_rows rows;
    make_rows(&rows, info, r.n);
    const kiln_status st = reader->read(s, r.first, r.n, r.offset, &rows, next, err);
    if (st == KILN_OK) {
        HOLDS(rows.n == r.n);
        *hash = hash_rows(&rows, info);
        clean_rows(&rows, info, r.first);
    }
    kiln_rows_release(&rows);
    return st;
}

static uint64_t rows_of(const kiln_source_info *info, uint64_t first, uint64_t step)
{
    return info->n_rows - first < step ? info->n_rows - first : step;
}

/* The whole file, as the scan reads it. */
static kiln_status read_forwards(const kiln_reader *reader, kiln_source *s, kiln_source_info *info,
                                 uint64_t step, ranges *all, kiln_error *err)
{
    uint64_t next = UINT64_MAX;
    for (uint64_t first = 0; first < info->n_rows; first += step) {
        HOLDS(all->n < RANGES_MAX);
        all->offset[all->n] = info->needs_full_scan ? next : UINT64_MAX;
        const range r = {first, rows_of(info, first, step), UINT64_MAX};
        KILN_TRY(read_range(reader, s, info, r, &next, &all->hash[all->n], err));
        all->n++;
    }
    return kiln_reader_finish(reader, s, info, err);
}

static void read_backwards(const kiln_reader *reader, const kiln_source_at *at,
                           const kiln_source_info *then, uint64_t step, const ranges *all)
{
    kiln_source *s = NULL;
    kiln_error err = {0};
    kiln_source_info *info = array(1, sizeof *info);
    HOLDS(reader->open(at, &s, info, &err) == KILN_OK);
    HOLDS(info->n_rows == then->n_rows && info->sh_degree == then->sh_degree &&
          info->n_extras == then->n_extras);
    HOLDS(strcmp(info->layout, then->layout) == 0);
    for (uint64_t i = all->n; i-- > 0;) {
        uint64_t next, hash = 0;
        const range r = {i * step, rows_of(info, i * step, step), all->offset[i]};
        HOLDS(read_range(reader, s, info, r, &next, &hash, &err) == KILN_OK);
        HOLDS(hash == all->hash[i]);
    }
    reader->close(s);
    free(info);
}

/* A file in memory for the reader's own form of the rows. */
typedef struct {
    int fd;
    char path[64];
} scratch_file;

/* Opens *s anew, as workers do once the spool is there. */
static kiln_status fill_spool(const kiln_reader *reader, kiln_source **s, kiln_source_at *at,
                              kiln_source_info *info, scratch_file *scratch, kiln_error *err)
{
    struct stat file;
    const uint64_t most = info->spool_bytes;
    scratch->fd = memfd_create("spool", MFD_CLOEXEC);
    HOLDS(scratch->fd >= 0);
    (void)snprintf(scratch->path, sizeof scratch->path, "/proc/self/fd/%d", scratch->fd);
    const kiln_status st = reader->spool(*s, scratch->fd, 1, err);
    reader->close(*s);
    *s = NULL;
    if (st != KILN_OK) return st;
    HOLDS(fstat(scratch->fd, &file) == 0 && (uint64_t)file.st_size <= most);
    at->spool = scratch->path;
    HOLDS(reader->open(at, s, info, err) == KILN_OK);
    return KILN_OK;
}

/* A row takes a byte at least, if not in the file then in the spool, which is checked against it.
 * Nodes of a glTF show their rows again, and a node takes a byte too. */
static void check_info(const kiln_reader *reader, const kiln_source_info *info, size_t size)
{
    HOLDS(info->kind == KILN_SCENE_POINTS || info->kind == KILN_SCENE_SPLATS);
    const uint64_t times = strcmp(reader->name, "gltf") == 0 ? size : 1;
    HOLDS(info->n_rows <= size * times ||
          (reader->spool && info->n_rows <= info->spool_bytes * times));
    HOLDS(info->sh_degree <= 4 && info->n_extras <= KILN_EXTRAS_MAX);
}

/* Rows of a range. Pictures hold more rows than there can be ranges. */
static uint64_t choose_step(uint64_t tail, uint64_t n_rows)
{
    const uint64_t step = tail < 16 ? tail + 1 : 8 * tail;
    return n_rows / step < RANGES_MAX ? step : n_rows / RANGES_MAX + 1;
}

void kiln_fuzz_reader(const void *argument, const uint8_t *data, size_t size)
{
    kiln_fuzz_source(argument, kiln_fuzz_path(data, size), data, size);
}

void kiln_fuzz_source(const kiln_reader *reader, const char *path, const uint8_t *data, size_t size)
{
    uint64_t step = 1;
    kiln_source *s = NULL;
    kiln_error err = {0};
    kiln_source_info *info = array(1, sizeof *info);
    ranges *all = array(1, sizeof *all);
    const uint64_t wish = kiln_fuzz_tail(data, size, 1, 1);
    const kiln_read_options options = {.frame = wish & 1 ? KILN_FRAME_AS_IS : KILN_FRAME_RUB,
                                       .lod = wish >> 1 & 3,
                                       .is_static = wish & 8,
                                       .activated = wish & 16,
                                       .no_extras = wish & 32};
    kiln_source_at at = {
        .path = path, .name = path, .packing = wish & 0x80 ? "gzip" : NULL, .options = &options};
    scratch_file scratch = {.fd = -1};
    const int score = reader->probe(data, size < KILN_PROBE_BYTES ? size : KILN_PROBE_BYTES, path);
    HOLDS(score >= 0 && score <= 100);
    kiln_status st = reader->open(&at, &s, info, &err);
    if (st == KILN_OK && info->spool_bytes) st = fill_spool(reader, &s, &at, info, &scratch, &err);
    if (st == KILN_OK) {
        check_info(reader, info, size);
        step = choose_step(kiln_fuzz_tail(data, size, 0, 1), info->n_rows);
        st = read_forwards(reader, s, info, step, all, &err);
        reader->close(s);
    }
    if (st == KILN_OK)
        read_backwards(reader, &at, info, step, all);
    else
        kiln_fuzz_refusal(st, &err);
    if (scratch.fd >= 0) close(scratch.fd);
    free(all);
    free(info);
}
