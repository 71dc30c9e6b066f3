/* stray_rows -- see the header. */
#include "stages/prune/stray_rows.h"

#include "stages/knn/range.h"
#include "stages/spatial/partition.h"

#include <stdlib.h>
#include <string.h>

enum { STRAY_RANGE_ROWS = 1 << 20, STRAY_RANGE_ROWS_LEAST = 1 << 14 };

static uint64_t strays_ram(const kiln_pruning *p, uint32_t neighbors, uint64_t range_rows)
{
    return kiln_prune_strays_ram(p->input, p->size.blocks.rows, neighbors, range_rows);
}

/* Rows of a range: whole pages; 0: the layer is in memory. */
static uint64_t choose_rows(kiln_run *r, const kiln_pruning *p, uint32_t neighbors)
{
    const uint64_t n = p->input->count, may = kiln_run_unit_ram(r);
    uint64_t rows = p->o->outlier_range;
    if (!rows && (n <= STRAY_RANGE_ROWS_LEAST || strays_ram(p, neighbors, 0) <= may)) return 0;
    if (!rows)
        for (rows = STRAY_RANGE_ROWS;
             rows > STRAY_RANGE_ROWS_LEAST && strays_ram(p, neighbors, rows) > may;)
            rows /= 2;
    const uint64_t page = kiln_range_page_rows(n, rows);
    return (rows + page - 1) / page * page;
}

kiln_status kiln_pruning_least_strays(const kiln_pruning *p, uint64_t *least, kiln_error *err)
{
    double sigmas;
    uint32_t neighbors;
    *least = 0;
    KILN_TRY(kiln_outlier_sor_parse(p->o->rules.outlier_sor, &neighbors, &sigmas, err));
    if (neighbors == 0) return KILN_OK;
    uint64_t rows = p->o->outlier_range;
    if (!rows && p->input->count > STRAY_RANGE_ROWS_LEAST) rows = STRAY_RANGE_ROWS_LEAST;
    *least = strays_ram(p, neighbors, rows);
    return KILN_OK;
}

static kiln_hash stray_key(kiln_run *r, const kiln_pruning *p, const kiln_prune_sor *sor)
{
    kiln_hasher *h = kiln_run_key_bare(r, "strays");
    kiln_key_u64(h, "neighbors", sor->neighbors);
    kiln_key_f64(h, "sigmas", sor->sigmas);
    for (uint32_t i = 0; i < p->input->n_chunks; i++)
        kiln_key_plane(h, &p->input->chunks[i], "means");
    return kiln_key_end(h);
}

static kiln_status prepare_ranges(kiln_run *r, const kiln_pruning *p, kiln_prune_sor *sor,
                                  uint64_t ram, kiln_error *err)
{
    enum { VALUE = 4 };
    char folder[KILN_PATH_MAX];
    sor->page_rows = kiln_range_page_rows(p->input->count, sor->range_rows);
    memcpy(sor->root_centre, p->scene.root_centre, sizeof sor->root_centre);
    sor->root_half = p->scene.has_root ? p->scene.root_half : 1;
    /* the unit empties it, so the run's end removes it */
    KILN_TRY(kiln_run_scratch(r, sor->scratch, folder, err));
    return kiln_run_check_scratch(
        r, kiln_spatial_scratch_bytes(p->input, true, ram) + p->input->count * VALUE, err);
}

static kiln_status is_stray_unit_stored(kiln_run *r, kiln_hash key, bool *stored, kiln_error *err)
{
    kiln_unit_result found = {0};
    KILN_TRY(kiln_unit_find(kiln_run_manifest(r), key, stored, &found, err));
    kiln_unit_result_release(&found);
    return KILN_OK;
}

kiln_status kiln_pruning_find_strays(kiln_run *r, kiln_pruning *p, kiln_error *err)
{
    kiln_unit u = {.name = "stray rows", .cost = p->input->count, .planning = true, .n_outputs = 1};
    kiln_prune_unit head = kiln_pruning_head(p, KILN_PRUNE_STRAYS);
    kiln_prune_sor sor;
    bool stored;
    kiln_status st;
    memset(&sor, 0, sizeof sor);
    KILN_TRY(kiln_outlier_sor_parse(p->o->rules.outlier_sor, &sor.neighbors, &sor.sigmas, err));
    if (sor.neighbors == 0) return KILN_OK;
    sor.range_rows = choose_rows(r, p, sor.neighbors);
    u.key = sor.scratch = stray_key(r, p, &sor);
    u.ram = head.ram = strays_ram(p, sor.neighbors, sor.range_rows);
    KILN_TRY(is_stray_unit_stored(r, u.key, &stored, err));
    if (sor.range_rows > 0 && (!stored || kiln_run_force(r)))
        KILN_GO(prepare_ranges(r, p, &sor, u.ram, err));
    head.text_bytes = sizeof sor;
    KILN_GO(kiln_pruning_set_payload(
        &u, &(kiln_prune_request){.head = &head, .text = (const char *)&sor}, true, err));
    KILN_GO(kiln_run_units(r, "looking for stray rows", &u, 1, err));
    KILN_GO(kiln_pruning_take_strays(r, p, KILN_STRAY_OUTLIER_SOR, &u, err));
done:
    kiln_units_release(&u, 1);
    free(u.payload);
    return st;
}
