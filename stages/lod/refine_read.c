/* Reading a neighbourhood. */
#include "stages/lod/refine_read.h"

#include "base/minmax.h"
#include "stages/lod/lod_state.h"

#include <omp.h>
#include <string.h>

uint64_t kiln_refine_row_count(uint64_t rows, uint32_t level)
{
    return level == 0 ? rows : kiln_max_u64(1, rows >> level);
}

uint64_t kiln_refine_row_count_around(const kiln_refine_unit *u, uint32_t level)
{
    uint64_t n = 0;
    for (uint32_t i = 1; i < u->n_chunks; i++) n += kiln_refine_row_count(u->chunks[i].rows, level);
    return n;
}

void kiln_refine_append(const kiln_coarsen_rows *from, uint64_t first, kiln_coarsen_rows *to)
{
    for (int p = 0; p < KILN_LOD_PLANES; p++) {
        const uint32_t components =
            kiln_lod_components(&kiln_lod_planes[p], from->sh_degree, from->visibility != NULL);
        const char *source = kiln_lod_rows_plane(from, &kiln_lod_planes[p]);
        char *target = kiln_lod_rows_plane(to, &kiln_lod_planes[p]);
        for (uint32_t c = 0; c < components; c++)
            memcpy(target + (c * to->n + first) * sizeof(float),
                   source + c * from->n * sizeof(float), from->n * sizeof(float));
    }
}

/* ---- connections ----------------------------------------------------------------------------- */
kiln_status kiln_refine_reader_open(kiln_refine_reader *r, kiln_worker *w,
                                    const kiln_refine_unit *u, kiln_error *err)
{
    kiln_error why;
    const unsigned most = (unsigned)kiln_min_u64(u->n_chunks, kiln_worker_threads(w));
    *r = (kiln_refine_reader){.w = w, .u = u};
    KILN_TRY(kiln_worker_manifest(w, &r->readers[0], err));
    r->n = 1;
    while (r->n < most && kiln_worker_reader(w, &r->readers[r->n], &why) == KILN_OK) r->n++;
    return kiln_lod_state_baked(w, u->baked, &r->baked, err);
}

void kiln_refine_reader_close(kiln_refine_reader *r)
{
    while (r->n > 1) kiln_manifest_close(r->readers[--r->n]);
}

uint64_t kiln_refine_reader_ram_thread(const kiln_refine_unit *u)
{
    uint64_t most = 0; /* rows of a neighbour */
    for (uint32_t i = 1; i < u->n_chunks; i++) most = kiln_max_u64(most, u->chunks[i].rows);
    const uint64_t rows = kiln_lod_rows_bytes(most, u->sh_degree, u->weighted);
    return KILN_CONNECTION_RAM + rows + kiln_read_ram(rows);
}

/* ---- chunks ---------------------------------------------------------------------------------- */
/* Reads a chunk of the neighbourhood into rows from `first` on. */
typedef kiln_status read_fn(const kiln_refine_reader *r, kiln_manifest *m, uint32_t chunk,
                            uint32_t level, uint64_t first, kiln_lod_rows *to, kiln_error *err);

static kiln_status read_full(const kiln_refine_reader *r, kiln_manifest *m, uint32_t chunk,
                             kiln_lod_rows *rows, kiln_error *err)
{
    const kiln_refine_chunk *c = &r->u->chunks[chunk];
    kiln_hash segment = r->u->visibility;
    const kiln_array seen = {
        .raw_bytes = c->rows * sizeof(float), .n_segments = 1, .segments = &segment};
    const bool counts = chunk == 0 && !kiln_hash_is_zero(segment);
    return kiln_lod_rows_read(m, &r->baked->chunks[c->chunk], counts ? &seen : NULL, NULL, rows,
                              err);
}

static kiln_status read_full_to(const kiln_refine_reader *r, kiln_manifest *m, uint32_t chunk,
                                uint32_t level, uint64_t first, kiln_lod_rows *to, kiln_error *err)
{
    const kiln_refine_chunk *c = &r->u->chunks[chunk];
    kiln_lod_rows one = {.store = NULL};
    (void)level;
    if (c->chunk >= r->baked->n_chunks || r->baked->chunks[c->chunk].count != c->rows)
        return kiln_fail(err, KILN_E_BUG, "the layer 'baked' has no chunk %u of %llu rows",
                         c->chunk, (unsigned long long)c->rows);
    if (chunk == 0) return read_full(r, m, chunk, to, err);
    KILN_TRY(kiln_lod_rows_make(c->rows, r->u->sh_degree, r->u->weighted, &one, err));
    const kiln_status st = read_full(r, m, chunk, &one, err);
    if (st == KILN_OK) kiln_refine_append(&one.rows, first, &to->rows);
    kiln_lod_rows_release(&one);
    return st;
}

static kiln_status read_level_to(const kiln_refine_reader *r, kiln_manifest *m, uint32_t chunk,
                                 uint32_t level, uint64_t first, kiln_lod_rows *to, kiln_error *err)
{
    const kiln_refine_chunk *c = &r->u->chunks[chunk];
    kiln_unit_result result = {0};
    bool found;
    KILN_TRY(kiln_unit_find(m, c->unit, &found, &result, err));
    const kiln_status st =
        found ? kiln_lod_rows_read_level(m, &result, level, first,
                                         kiln_refine_row_count(c->rows, level), to, err)
              : kiln_fail(err, KILN_E_BUG, "the merged levels of a chunk are not stored");
    kiln_unit_result_release(&result);
    return st;
}

/* All chunks at a level. Of several failures, that of the first chunk is told. */
static kiln_status read_chunks_at_level(const kiln_refine_reader *r, read_fn *read, uint32_t level,
                                        kiln_lod_rows *own, kiln_lod_rows *others, kiln_error *err)
{
    const kiln_refine_unit *u = r->u;
    uint64_t first[1 + KILN_REFINE_NEIGHBOURS] = {0};
    uint32_t failed = u->n_chunks;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_lod_rows_make(kiln_refine_row_count(u->chunks[0].rows, level), u->sh_degree,
                                u->weighted, own, err));
    KILN_TRY(kiln_lod_rows_make(kiln_refine_row_count_around(u, level), u->sh_degree, u->weighted,
                                others, err));
    for (uint32_t i = 2; i < u->n_chunks; i++)
        first[i] = first[i - 1] + kiln_refine_row_count(u->chunks[i - 1].rows, level);
#pragma omp parallel for num_threads(r->n) schedule(dynamic, 1) if (r->n > 1)
    for (uint32_t i = 0; i < u->n_chunks; i++) {
        kiln_error why;
        const kiln_status one = read(r, r->readers[omp_get_thread_num()], i, level, first[i],
                                     i == 0 ? own : others, &why);
        if (one == KILN_OK) continue;
#pragma omp critical(kiln_refine_read)
        if (i < failed) {
            failed = i;
            st = one;
            *err = why;
        }
    }
    return st;
}

kiln_status kiln_refine_read_full(const kiln_refine_reader *r, kiln_lod_rows *own,
                                  kiln_lod_rows *others, kiln_error *err)
{
    return read_chunks_at_level(r, read_full_to, 0, own, others, err);
}

kiln_status kiln_refine_read_level(const kiln_refine_reader *r, uint32_t level, kiln_lod_rows *own,
                                   kiln_lod_rows *others, kiln_error *err)
{
    return read_chunks_at_level(r, read_level_to, level, own, others, err);
}
