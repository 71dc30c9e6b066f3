/* Places of rows: as many rows as memory holds are a window. The whole order is read for each
 * window, and what falls into it is noted. Threads take pieces of the order; a row has one place,
 * so no two of them write the same one. */
#include "stages/spatial/row_places.h"

#include "base/memory.h"

#include <omp.h>
#include <stdlib.h>

enum { PIECE = 1 << 16 }; /* places that a thread reads at a time */
static const char name[] = "places";

typedef struct {
    const kiln_spatial_file *order;
    uint32_t *window; /* [n_rows] places of rows [first_row, first_row + n_rows) */
    uint32_t *pieces; /* [threads][PIECE] rows of the order */
    uint64_t first_row, n_rows;
    unsigned threads;
} inversion;

uint64_t kiln_row_places_least_ram(unsigned threads)
{
    return (threads + (uint64_t)1) * PIECE * sizeof(uint32_t);
}

bool kiln_row_places_are_complete(const char *folder, uint64_t n)
{
    return kiln_scratch_is_whole(folder, name, n * sizeof(uint32_t));
}

static kiln_status note_piece(const inversion *v, uint64_t first, uint32_t *rows, kiln_error *err)
{
    const uint64_t n = v->order->n, count = n - first < PIECE ? n - first : PIECE;
    KILN_TRY(kiln_spatial_rows(v->order, first, count, rows, err));
    for (uint64_t i = 0; i < count; i++) {
        if (rows[i] >= n)
            return kiln_fail(err, KILN_E_IO,
                             "scratch '%s' names row %u of %llu; run the same command again",
                             v->order->rows.path, rows[i], (unsigned long long)n);
        const uint64_t at = rows[i] - v->first_row; /* wraps where the row lies before the window */
        if (at < v->n_rows) v->window[at] = (uint32_t)(first + i);
    }
    return KILN_OK;
}

static kiln_status fill_window(const inversion *v, kiln_error *err)
{
    const int64_t n = (int64_t)v->order->n;
    kiln_status st = KILN_OK;
#pragma omp parallel for num_threads(v->threads) schedule(static) if (n > PIECE)
    for (int64_t first = 0; first < n; first += PIECE) {
        kiln_error why = {0};
        const kiln_status one =
            note_piece(v, (uint64_t)first, v->pieces + (size_t)omp_get_thread_num() * PIECE, &why);
        if (one == KILN_OK) continue;
#pragma omp critical(kiln_row_places)
        {
            st = one;
            if (err) *err = why;
        }
    }
    return st;
}

static kiln_status write_windows(inversion *v, uint64_t rows, const kiln_scratch_file *to,
                                 kiln_error *err)
{
    const uint64_t n = v->order->n;
    for (v->first_row = 0; v->first_row < n; v->first_row += rows) {
        v->n_rows = n - v->first_row < rows ? n - v->first_row : rows;
        KILN_TRY(fill_window(v, err));
        KILN_TRY(kiln_scratch_write(to, v->first_row * sizeof *v->window, v->window,
                                    v->n_rows * sizeof *v->window, err));
    }
    return KILN_OK;
}

static kiln_status make_row_places(const char *folder, const kiln_spatial_file *order, uint64_t ram,
                                   unsigned threads, kiln_error *err)
{
    inversion v = {.order = order, .threads = threads};
    kiln_scratch_file to = {0};
    const uint64_t pieces = (uint64_t)threads * PIECE * sizeof *v.pieces;
    const uint64_t fit = ram > pieces ? (ram - pieces) / sizeof *v.window : 0,
                   least = fit < PIECE ? PIECE : fit;
    const uint64_t rows = least < order->n ? least : order->n;
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC_UNSET(&v.window, rows, "the places of the rows", err));
    KILN_GO(KILN_ALLOC_UNSET(&v.pieces, (uint64_t)threads * PIECE, "the order of the rows", err));
    KILN_GO(kiln_scratch_create(folder, name, order->n * sizeof *v.window, &to, err));
    KILN_GO(write_windows(&v, rows, &to, err));
    KILN_GO(kiln_scratch_finish(&to, err));
done:
    kiln_scratch_drop(&to);
    free(v.pieces);
    free(v.window);
    return st;
}

kiln_status kiln_row_places_make(const char *folder, uint64_t n, uint64_t ram, unsigned threads,
                                 kiln_error *err)
{
    kiln_spatial_file order;
    bool kept;
    KILN_TRY(kiln_scratch_keep_sound(folder, name, n * sizeof(uint32_t), &kept, err));
    if (kept) return KILN_OK;
    KILN_TRY(kiln_spatial_open(folder, n, false, &order, err));
    const kiln_status st = make_row_places(folder, &order, ram, threads ? threads : 1, err);
    kiln_spatial_close(&order);
    return st;
}

kiln_status kiln_row_places_open(const char *folder, uint64_t n, kiln_scratch_file *out,
                                 kiln_error *err)
{
    return kiln_scratch_open(folder, name, n * sizeof(uint32_t), out, err);
}

kiln_status kiln_row_places_read(const kiln_scratch_file *f, uint64_t first, uint64_t count,
                                 uint32_t *out, kiln_error *err)
{
    return count ? kiln_scratch_read(f, first * sizeof *out, out, count * sizeof *out, err)
                 : KILN_OK;
}
