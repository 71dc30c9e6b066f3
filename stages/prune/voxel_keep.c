/* voxel_keep -- the third pass: which rows stay.
 *
 * Of floaters a row stays for what it hits in one part, so each part keeps rows. Of a cluster the
 * solid voxels of all parts must be there first. They go to a scratch file, part by part. Then they
 * are in memory at a time, 8 bytes of bits a block instead of 256 of sums; those that are not of
 * the cluster are cleared, and one pass over the whole grid keeps rows. */
#include "stages/prune/voxel_search.h"

#include "base/file.h"
#include "base/minmax.h"
#include "stages/prune/voxel_cluster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ------------------------------------------------------------------------------------ */
static bool hits_voxels(const kiln_voxel_search *s, const kiln_voxel_row *row,
                        const kiln_voxel_box *part)
{
    const double limit2 = kiln_voxel_limit2(row->alpha, s->o.min);
    const uint32_t needed = s->o.cluster ? kiln_voxel_hits_needed(s->o.size, row) : 1;
    const kiln_voxel_box box = kiln_voxel_box_common(&row->meets, part);
    uint32_t hits = 0;
    int32_t at[3];
    if (limit2 < 0) return false;
    for (at[2] = box.lo[2]; at[2] <= box.hi[2]; at[2]++)
        for (at[1] = box.lo[1]; at[1] <= box.hi[1]; at[1]++)
            for (at[0] = box.lo[0]; at[0] <= box.hi[0]; at[0]++) {
                const uint32_t place = kiln_voxel_table_find(&s->table, kiln_voxel_key(at));
                if (place == KILN_VOXEL_NONE) continue;
                hits += (uint32_t)__builtin_popcountll(
                    kiln_voxel_hits(&s->grid, row, at, s->table.solid[place], limit2));
                if (hits >= needed) return true;
            }
    return false;
}

static bool centre_is_solid(const kiln_voxel_search *s, const kiln_voxel_row *row)
{
    int32_t block[3];
    const int at = kiln_voxel_centre(&s->grid, row, block);
    const uint32_t place = kiln_voxel_table_find(&s->table, kiln_voxel_key(block));
    return place != KILN_VOXEL_NONE && (s->table.solid[place] >> at & 1);
}

static bool row_stays(kiln_voxel_search *s, const kiln_voxel_row *row, const kiln_voxel_box *part)
{
    return centre_is_solid(s, row) || hits_voxels(s, row, part);
}

kiln_status kiln_voxel_search_keep(kiln_voxel_search *s, const kiln_voxel_box *part,
                                   kiln_error *err)
{
    const kiln_voxel_pass keep = {row_stays, s->meets, s->strays};
    return kiln_voxel_search_pass(s, part, &keep, err);
}

/* ---- the scratch file of solid blocks -------------------------------------------------------- */
typedef struct {
    uint64_t key, solid;
} solid_block;

enum { PIECE = 4096 }; /* blocks that are written and read at once */

kiln_status kiln_voxel_search_store(kiln_voxel_search *s, kiln_error *err)
{
    solid_block piece[PIECE];
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->table.n; i++) {
        if (s->table.solid[i])
            piece[n++] = (solid_block){.key = s->table.blocks[i], .solid = s->table.solid[i]};
        if (n < PIECE && (i + 1 < s->table.n || n == 0)) continue;
        KILN_TRY(kiln_file_write_at(s->fd, s->path, s->n_solid_blocks * sizeof *piece, piece,
                                    n * sizeof *piece, err));
        s->n_solid_blocks += n;
        n = 0;
    }
    return KILN_OK;
}

/* Frees the table of sums and the cells, and has room for n solid blocks and their cluster. */
static kiln_status give_way_to_solid(kiln_voxel_search *s, uint64_t n, kiln_error *err)
{
    const uint64_t bytes = kiln_voxel_table_bytes(n, false) + kiln_voxel_cluster_bytes(n),
                   had = kiln_prune_voxels_table_bytes(s->o.capacity),
                   unit = kiln_prune_voxels_ram(s->in->layer, s->in->largest, s->o.capacity);
    const char *what = "the cluster of --filter-cluster (with a larger RES less)";
    kiln_voxel_table_release(&s->table);
    free(s->order);
    free(s->cells);
    s->order = NULL;
    s->cells = NULL;
    if (bytes <= had) return KILN_OK;
    const uint64_t needs = unit - had + bytes;
    KILN_TRY(kiln_worker_need_ram(s->w, needs, 0, what, err));
    const uint64_t share = kiln_worker_ram(s->w);
    kiln_plane_cache_set_budget(s->in->planes, share > needs ? share - needs : 0);
    return KILN_OK;
}

static kiln_status load_solid(kiln_voxel_search *s, kiln_error *err)
{
    solid_block piece[PIECE];
    const uint64_t n = s->n_solid_blocks, most = 1u << 30;
    if (n > most)
        return kiln_fail(err, KILN_E_CAP,
                         "--filter-cluster: %llu blocks of voxels; take a larger RES",
                         (unsigned long long)n);
    KILN_TRY(give_way_to_solid(s, n, err));
    KILN_TRY(kiln_voxel_table_make((uint32_t)kiln_max_u64(n, 1), false, &s->table, err));
    for (uint64_t at = 0; at < n; at += PIECE) {
        const uint64_t some = kiln_min_u64(PIECE, n - at);
        KILN_TRY(kiln_file_read_at(s->reads, s->path, at * sizeof *piece, piece,
                                   some * sizeof *piece, err));
        for (uint64_t i = 0; i < some; i++) {
            const uint32_t place = kiln_voxel_table_take(&s->table, piece[i].key);
            s->table.solid[place] = piece[i].solid;
        }
    }
    return KILN_OK;
}

/* ---- the cluster ----------------------------------------------------------------------------- */
static uint64_t count_solid(const kiln_voxel_table *t)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < t->n; i++) n += (uint64_t)__builtin_popcountll(t->solid[i]);
    return n;
}

/* The seed's voxel, or the nearest to it in the grid of the scene. Returns whether it is its
 * own. */
static bool find_seed(const kiln_voxel_search *s, int32_t out[3])
{
    bool own = true;
    for (int a = 0; a < 3; a++) {
        const double at = floor((s->o.seed[a] - s->o.origin[a] + s->grid.shift[a]) / s->o.size) -
                          s->grid.first[a];
        const int32_t lo = KILN_VOXEL_SIDE * s->all_touch.lo[a],
                      hi = KILN_VOXEL_SIDE * s->all_touch.hi[a] + KILN_VOXEL_SIDE - 1;
        own = own && at >= lo && at <= hi;
        out[a] = at < lo ? lo : at > hi ? hi : (int32_t)at;
    }
    return own;
}

kiln_status kiln_voxel_search_keep_cluster(kiln_voxel_search *s, kiln_error *err)
{
    int32_t seed[3], from[3];
    bool whole;
    KILN_TRY(load_solid(s, err));
    s->found.solid = count_solid(&s->table);
    if (s->found.solid == 0) return KILN_OK;
    const bool own = find_seed(s, from);
    (void)kiln_voxel_nearest(&s->table, from, seed);
    s->found.moved = !own || memcmp(seed, from, sizeof seed) != 0;
    for (int a = 0; a < 3; a++)
        s->found.seed[a] =
            (s->grid.first[a] + seed[a] + 0.5) * s->o.size - s->grid.shift[a] + s->o.origin[a];
    KILN_TRY(kiln_voxel_cluster(&s->table, seed, &whole, err));
    s->found.kept = count_solid(&s->table);
    if (!whole) return kiln_voxel_search_keep(s, &s->all_meet, err);
    memset(s->strays, 0, s->in->layer->n_chunks * kiln_prune_stray_bytes(s->in->largest));
    return KILN_OK;
}
