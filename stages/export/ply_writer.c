/* ply_writer -- a layer as one binary PLY.
 *
 * Every row has its place: header + rank * row size. A chunk is encoded in the order of its ranks and written in runs of
 * neighbouring rows, so that chunks can be written in any order, in fixed memory, by anyone. */
#include "stages/export/ply_table.h"
#include "stages/export/row_ranks.h"
#include "stages/export/writer.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "stages/engine/engine.h"
#include "stages/engine/run_layers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    uint64_t rank;
    uint32_t row; /* in the chunk */
} place;

typedef struct {
    const kiln_export *e;
    kiln_manifest *m;
    kiln_ply_table table;
    kiln_row_ranks ranks;
    int fd;
} ply_state;

static kiln_status write_at(int fd, const char *path, const void *data, size_t bytes, uint64_t offset, kiln_error *err)
{
    const char *at = data;
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pwrite(fd, at + done, bytes - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return kiln_file_write_failed(path, errno, err);
        done += (size_t)n;
    }
    return KILN_OK;
}

enum { STEP = 16384 }; /* rows encoded at once */

/* A chunk's planes, its rows' places, the rows of a step (a column takes at most twice what its plane does), the ranks of all. */
static uint64_t ram(const kiln_export *e)
{
    const kiln_layer_size size = kiln_layer_size_of(e->layer);
    const uint64_t step = size.rows ? 2 * size.planes / size.rows * STEP : 0;
    return size.planes + kiln_read_ram(size.plane) + size.rows * (sizeof(place) + sizeof(uint32_t)) + STEP * sizeof(uint32_t) +
           step + (e->source_order ? kiln_row_ranks_ram(e->n_source_rows) : 0);
}

/* ---- parent ------------------------------------------------------------------------------------------------------------------ */

static kiln_status begin(const kiln_export *e, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_ply_table table;
    kiln_buffer notes = {0};
    int fd = -1;
    KILN_GO(kiln_ply_table_plan(e, &table, &notes, err));
    if (notes.size) kiln_warn("%s", (const char *)notes.data);
    KILN_GO(kiln_make_parents(e->target, err));
    kiln_leftovers_drop(e->target);
    KILN_GO(kiln_file_create(e->temporary, &fd, err));
    KILN_GO(write_at(fd, e->temporary, table.header.data, table.header.size, 0, err));
    if (ftruncate(fd, (off_t)(table.header.size + e->n_rows * table.row_bytes)) != 0)
        st = kiln_file_write_failed(e->temporary, errno, err);
done:
    if (fd >= 0 && close(fd) != 0 && st == KILN_OK)
        st = kiln_fail(err, KILN_E_IO, "cannot write '%s': %s", e->temporary, strerror(errno));
    kiln_buffer_release(&notes);
    kiln_ply_table_release(&table);
    return st;
}

static kiln_status finish(const kiln_export *e, kiln_error *err)
{
    kiln_status st = KILN_OK;
    int fd = open(e->temporary, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return kiln_fail(err, KILN_E_IO, "cannot open '%s': %s", e->temporary, strerror(errno));
    if (fsync(fd) != 0) st = kiln_file_write_failed(e->temporary, errno, err);
    if (close(fd) != 0 && st == KILN_OK) st = kiln_fail(err, KILN_E_IO, "cannot write '%s': %s", e->temporary, strerror(errno));
    if (st == KILN_OK && rename(e->temporary, e->target) != 0)
        st = kiln_fail(err, KILN_E_IO, "cannot rename '%s' to '%s': %s", e->temporary, e->target, strerror(errno));
    return st;
}

static void abandon(const kiln_export *e) { (void)unlink(e->temporary); /* perhaps never made */ }

/* ---- worker ------------------------------------------------------------------------------------------------------------------ */

static void close_state(void *state)
{
    ply_state *s = state;
    if (!s) return;
    if (s->fd >= 0) close(s->fd); /* every write was checked; the parent syncs */
    kiln_row_ranks_release(&s->ranks);
    kiln_ply_table_release(&s->table);
    free(s);
}

static kiln_status open_state(const kiln_export *e, kiln_manifest *m, void **state, kiln_error *err)
{
    kiln_status st = KILN_OK;
    ply_state *s = NULL;
    *state = NULL;
    KILN_TRY(KILN_ALLOC(&s, 1, "PLY writer", err));
    s->e = e;
    s->m = m;
    s->fd = open(e->temporary, O_WRONLY | O_CLOEXEC);
    if (s->fd < 0) st = kiln_fail(err, KILN_E_IO, "cannot write '%s': %s", e->temporary, strerror(errno));
    if (st == KILN_OK) st = kiln_ply_table_plan(e, &s->table, NULL, err);
    if (st == KILN_OK && e->source_order) st = kiln_row_ranks_init(&s->ranks, e, m, err);
    if (st != KILN_OK)
        close_state(s);
    else
        *state = s;
    return st;
}

static int by_rank(const void *a, const void *b)
{
    uint64_t x = ((const place *)a)->rank, y = ((const place *)b)->rank;
    return (x > y) - (x < y);
}

static kiln_status find_places(const ply_state *s, const kiln_chunk *chunk, uint64_t first_row, place *places, kiln_error *err)
{
    kiln_status st = KILN_OK;
    uint32_t *rows = NULL;
    for (uint64_t i = 0; i < chunk->count; i++) places[i] = (place){first_row + i, (uint32_t)i};
    if (!s->e->source_order) return KILN_OK;
    KILN_GO(KILN_ALLOC(&rows, chunk->count, "source rows", err));
    KILN_GO(kiln_plane_read(s->m, chunk, "source_row", rows, chunk->count * sizeof *rows, err));
    for (uint64_t i = 0; i < chunk->count; i++) places[i].rank = kiln_row_rank(&s->ranks, rows[i]);
    qsort(places, chunk->count, sizeof *places, by_rank);
done:
    free(rows);
    return st;
}

static kiln_status write_runs(const ply_state *s, const place *places, uint64_t n, const unsigned char *rows, kiln_error *err)
{
    const uint64_t size = s->table.row_bytes, base = s->table.header.size;
    for (uint64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && places[end].rank == places[end - 1].rank + 1;) end++;
        KILN_TRY(write_at(s->fd, s->e->temporary, rows + i * size, (end - i) * size, base + places[i].rank * size, err));
    }
    return KILN_OK;
}

static kiln_status write_chunk(void *state, uint32_t number, uint64_t first_row, kiln_error *err)
{
    kiln_status st = KILN_OK;
    const ply_state *s = state;
    const kiln_chunk *chunk = &s->e->layer->chunks[number];
    kiln_ply_planes planes = {0};
    place *places = NULL;
    uint32_t *order = NULL;
    unsigned char *rows = NULL;
    if (chunk->count == 0) return KILN_OK;
    KILN_GO(KILN_ALLOC(&places, chunk->count, "rows of a chunk", err));
    KILN_GO(KILN_ALLOC(&order, STEP, "rows of a chunk", err));
    KILN_GO(kiln_alloc((void **)&rows, STEP, s->table.row_bytes, "rows of a chunk", err));
    KILN_GO(find_places(s, chunk, first_row, places, err));
    KILN_GO(kiln_ply_planes_read(&planes, &s->table, s->m, chunk, err));
    for (uint64_t at = 0; at < chunk->count; at += STEP) {
        uint64_t n = chunk->count - at < STEP ? chunk->count - at : STEP;
        for (uint64_t i = 0; i < n; i++) order[i] = places[at + i].row;
        kiln_ply_encode(&s->table, &planes, order, n, rows);
        KILN_GO(write_runs(s, places + at, n, rows, err));
    }
done:
    kiln_ply_planes_release(&planes);
    free(rows);
    free(order);
    free(places);
    return st;
}

const kiln_writer_functions kiln_writer_ply = {
    .ram = ram,
    .begin = begin,
    .open = open_state,
    .write = write_chunk,
    .close = close_state,
    .finish = finish,
    .abandon = abandon,
};
