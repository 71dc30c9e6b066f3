#include "stages/knn/pages.h"

#include "base/file.h"
#include "base/memory.h"
#include "schema/hash.h"
#include "stages/knn/range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_ROWS = 65536, MEANS = 0, ROWS = 1 };

typedef struct {
    kiln_knn_box box;
    uint64_t sums[2];
} record;
_Static_assert(sizeof(record) == KILN_KNN_PAGE_BYTES, "a record has no gaps");

static void file_name(uint32_t page_rows, char name[32])
{
    (void)snprintf(name, 32, "pages-%u", page_rows);
}

static uint64_t short_of(kiln_hash h)
{
    uint64_t sum;
    memcpy(&sum, h.bytes, sizeof sum);
    return sum;
}

static uint64_t sum_of(const void *data, size_t bytes)
{
    return short_of(kiln_hash_of(data, bytes));
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- making ---------------------------------------------------------------------------------- */
static kiln_status write_records(const kiln_spatial_file *places, uint32_t page_rows,
                                 const kiln_scratch_file *out, kiln_error *err)
{
    /* whole pages */
    const uint64_t some = page_rows < READ_ROWS ? READ_ROWS - READ_ROWS % page_rows : page_rows;
    const uint64_t pages = some / page_rows;
    kiln_status st = KILN_OK;
    float *xyz = NULL;
    uint32_t *rows = NULL;
    record *records = NULL;
    KILN_GO(KILN_ALLOC_UNSET(&xyz, 3 * some, "the points of a page", err));
    KILN_GO(KILN_ALLOC_UNSET(&rows, some, "the rows of a page", err));
    KILN_GO(KILN_ALLOC_UNSET(&records, pages, "the records of pages", err));
    for (uint64_t first = 0; first < places->n; first += some) {
        const uint64_t n = least(places->n - first, some), n_pages = kiln_range_pages(n, page_rows);
        KILN_GO(kiln_spatial_means(places, first, n, xyz, err));
        KILN_GO(kiln_spatial_rows(places, first, n, rows, err));
        for (uint64_t p = 0, at = 0; p < n_pages; p++, at += page_rows) {
            const uint64_t k = least(n - at, page_rows);
            records[p] = (record){.box = kiln_knn_box_of(xyz + 3 * at, k),
                                  .sums = {sum_of(xyz + 3 * at, 3 * k * sizeof *xyz),
                                           sum_of(rows + at, k * sizeof *rows)}};
        }
        KILN_GO(kiln_scratch_write(out, first / page_rows * sizeof *records, records,
                                   n_pages * sizeof *records, err));
    }
done:
    free(records);
    free(rows);
    free(xyz);
    return st;
}

static kiln_status make_file(const char *folder, const char *name, uint64_t n, uint32_t page_rows,
                             kiln_error *err)
{
    kiln_spatial_file places;
    kiln_scratch_file out = {0};
    KILN_TRY(kiln_spatial_open(folder, n, true, &places, err));
    kiln_status st = kiln_scratch_create(
        folder, name, kiln_range_pages(n, page_rows) * sizeof(record), &out, err);
    if (st == KILN_OK) {
        st = write_records(&places, page_rows, &out, err);
        if (st == KILN_OK) st = kiln_scratch_finish(&out, err);
        kiln_scratch_drop(&out);
    }
    kiln_spatial_close(&places);
    return st;
}

/* Reads all records; out may be NULL. */
static kiln_status read_records(const char *folder, const char *name, uint64_t n_pages,
                                kiln_knn_pages *out, uint64_t *sum, kiln_error *err)
{
    enum { SOME = 4096 };
    kiln_scratch_file f;
    record *records;
    KILN_TRY(KILN_ALLOC_UNSET(&records, SOME, "the records of pages", err));
    kiln_status st = kiln_scratch_open(folder, name, n_pages * sizeof *records, &f, err);
    if (st != KILN_OK) {
        free(records);
        return st;
    }
    kiln_hasher *h = kiln_hasher_new();
    for (uint64_t first = 0; first < n_pages && st == KILN_OK; first += SOME) {
        const uint64_t n = least(n_pages - first, SOME);
        st = kiln_scratch_read(&f, first * sizeof *records, records, n * sizeof *records, err);
        kiln_hasher_update(h, records, st == KILN_OK ? n * sizeof *records : 0);
        for (uint64_t i = 0; out && st == KILN_OK && i < n; i++) {
            out->boxes[first + i] = records[i].box;
            memcpy(out->sums[first + i], records[i].sums, sizeof records[i].sums);
        }
    }
    const bool memory = h != NULL;
    *sum = short_of(kiln_hasher_end(h));
    kiln_scratch_drop(&f);
    free(records);
    return st != KILN_OK || memory
               ? st
               : kiln_fail(err, KILN_E_NOMEM, "out of memory while reading '%s'", name);
}

kiln_status kiln_knn_pages_make(const char *folder, uint64_t n, uint32_t page_rows, uint64_t *sum,
                                kiln_error *err)
{
    char name[32];
    const uint64_t n_pages = kiln_range_pages(n, page_rows);
    bool kept;
    file_name(page_rows, name);
    KILN_TRY(kiln_scratch_keep_sound(folder, name, n_pages * sizeof(record), &kept, err));
    if (!kept) KILN_TRY(make_file(folder, name, n, page_rows, err));
    return read_records(folder, name, n_pages, NULL, sum, err);
}

void kiln_knn_pages_remove(const char *folder, uint32_t page_rows)
{
    char pages[32], path[KILN_PATH_MAX];
    file_name(page_rows, pages);
    const char *const names[] = {pages, "means", "rows", "codes"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (kiln_path_join(path, sizeof path, folder, names[i], NULL) == KILN_OK)
            (void)unlink(path); /* one that stays is refused again */
}

/* ---- reading --------------------------------------------------------------------------------- */
void kiln_knn_pages_close(kiln_knn_pages *p)
{
    kiln_spatial_close(&p->places);
    free(p->boxes);
    free(p->sums);
    memset(p, 0, sizeof *p);
}

static kiln_status fail_damaged(kiln_knn_pages *p, const char *path, kiln_error *err)
{
    p->damaged = true;
    return kiln_fail(err, KILN_E_IO, "scratch '%s' is damaged", path);
}

static kiln_status open_records(const char *folder, uint64_t sum, kiln_knn_pages *p,
                                kiln_error *err)
{
    char name[32], path[KILN_PATH_MAX];
    uint64_t is;
    file_name(p->page_rows, name);
    KILN_TRY(KILN_ALLOC_UNSET(&p->boxes, p->n_pages, "the boxes of pages", err));
    KILN_TRY(KILN_ALLOC_UNSET(&p->sums, p->n_pages, "the sums of pages", err));
    KILN_TRY(read_records(folder, name, p->n_pages, p, &is, err));
    if (is == sum) return KILN_OK;
    KILN_TRY(kiln_path_join(path, sizeof path, folder, name, err));
    return fail_damaged(p, path, err);
}

kiln_status kiln_knn_pages_open(const char *folder, uint64_t n, uint32_t page_rows, uint64_t sum,
                                kiln_knn_pages *out, kiln_error *err)
{
    *out = (kiln_knn_pages){.page_rows = page_rows, .n_pages = kiln_range_pages(n, page_rows)};
    KILN_TRY(kiln_spatial_open(folder, n, true, &out->places, err));
    const kiln_status st = open_records(folder, sum, out, err);
    const bool damaged = out->damaged;
    if (st != KILN_OK) kiln_knn_pages_close(out);
    out->damaged = damaged;
    return st;
}

/* what: of the sums; data: of places [first, first + count), bytes for each. */
static bool is_sound(const kiln_knn_pages *p, int what, uint64_t first, uint64_t count,
                     const void *data, size_t bytes)
{
    const char *at = data;
    for (uint64_t done = 0, page = first / p->page_rows; done < count; page++) {
        const uint64_t n = least(count - done, p->page_rows);
        if (sum_of(at + done * bytes, n * bytes) != p->sums[page][what]) return false;
        done += n;
    }
    return true;
}

kiln_status kiln_knn_pages_means(kiln_knn_pages *p, uint64_t first, uint64_t count, float *xyz,
                                 kiln_error *err)
{
    KILN_TRY(kiln_spatial_means(&p->places, first, count, xyz, err));
    return is_sound(p, MEANS, first, count, xyz, 3 * sizeof *xyz)
               ? KILN_OK
               : fail_damaged(p, p->places.means.path, err);
}

kiln_status kiln_knn_pages_rows(kiln_knn_pages *p, uint64_t first, uint64_t count, uint32_t *rows,
                                kiln_error *err)
{
    KILN_TRY(kiln_spatial_rows(&p->places, first, count, rows, err));
    return is_sound(p, ROWS, first, count, rows, sizeof *rows)
               ? KILN_OK
               : fail_damaged(p, p->places.rows.path, err);
}
