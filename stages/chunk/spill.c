/* spill -- see spill.h. */
#include "stages/chunk/spill.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/chunk/chunk_gather.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    FEW_CHUNKS = 2,      /* for so few, reading the layer once each is cheaper than writing it and reading it again */
    CACHED_PLANE = 4096, /* upper bound of what a plane in the cache takes in addition to its bytes */
};

static uint64_t chunk_rows(const kiln_chunk_spill *y) { return kiln_min_u64(y->model->max, y->layer->count); }

static uint64_t largest_plane(const kiln_chunk_spill *y)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < y->layer->n_chunks; i++) rows = kiln_max_u64(rows, y->layer->chunks[i].count);
    return rows * kiln_row_parts_largest(&y->parts);
}

static uint64_t likely_chunks(const kiln_chunk_spill *y) { return 4 * (y->layer->count / y->model->max) + 1; }

static uint64_t all_planes(const kiln_chunk_spill *y)
{
    return y->layer->count * y->parts.row_bytes + (uint64_t)y->layer->n_chunks * y->parts.n * CACHED_PLANE;
}

kiln_status kiln_chunk_spill_make(kiln_run *r, const kiln_layer *layer, const kiln_layer *spacing, const kiln_chunk_unit *model,
                                  kiln_chunk_spill *y, kiln_error *err)
{
    *y = (kiln_chunk_spill){.layer = layer, .model = model, .unit_ram = kiln_run_unit_ram(r)};
    KILN_TRY(kiln_row_parts_make(layer, spacing, &y->parts, err));
    y->in_memory = kiln_chunk_gather_ram(&y->parts, chunk_rows(y), all_planes(y)) + kiln_list_ram(likely_chunks(y)) <= y->unit_ram;
    if (y->in_memory) y->cache_bytes = all_planes(y);
    y->order_ram = kiln_max_u64(kiln_spatial_least_ram(layer), kiln_min_u64(kiln_spatial_most_ram(layer), y->unit_ram));
    return KILN_OK;
}

void kiln_chunk_spill_release(kiln_chunk_spill *y) { kiln_row_parts_release(&y->parts); }

kiln_status kiln_chunk_due(kiln_run *r, const kiln_unit *units, uint64_t n, uint64_t *due, kiln_error *err)
{
    *due = 0;
    for (uint64_t i = 0; i < n; i++) {
        kiln_unit_result result;
        bool found;
        KILN_TRY(kiln_unit_find(kiln_run_manifest(r), units[i].key, &found, &result, err));
        kiln_unit_result_release(&result);
        *due += !found || kiln_run_force(r);
    }
    return KILN_OK;
}

/* ---- the order ---------------------------------------------------------------------------------------------------------- */
/* Rows of the groups: half of what a unit may take, so that more than one fits; one block at least, more is the engine's to
 * refuse. */
static uint64_t rows_of_groups(const kiln_chunk_spill *y, uint64_t n_chunks)
{
    const uint64_t rows = kiln_scatter_rows(y->layer, &y->parts, y->unit_ram / 2, n_chunks);
    return kiln_max_u64(rows, 1);
}

static kiln_status scratch_bytes(const kiln_chunk_spill *y, uint64_t *out, kiln_error *err)
{
    kiln_block_groups groups = {0};
    const uint64_t order = y->layer->count * 12, n_chunks = likely_chunks(y);
    *out = kiln_spatial_is_complete(y->folder, y->layer->count, false) ? order
                                                                       : kiln_spatial_scratch_bytes(y->layer, false, y->order_ram);
    if (y->in_memory) return KILN_OK;
    const kiln_status st = kiln_block_groups_cut(y->layer, &y->parts, rows_of_groups(y, n_chunks), &groups, err);
    if (st == KILN_OK) *out = kiln_max_u64(*out, order + kiln_groups_bytes(&groups, n_chunks, y->parts.row_bytes));
    kiln_block_groups_release(&groups);
    return st;
}

/* The order comes first, so it asks for what any unit behind it will take at least: with a cap that is too small the sentence
 * names one that does for the whole run. */
static uint64_t order_ram(const kiln_chunk_spill *y)
{
    uint64_t block = 0, ram = kiln_max_u64(y->order_ram, kiln_chunk_plan_ram(y->layer, y->model->max));
    if (y->in_memory) return ram;
    for (uint32_t i = 0; i < y->layer->n_chunks; i++) block = kiln_max_u64(block, y->layer->chunks[i].count);
    ram = kiln_max_u64(ram, kiln_scatter_ram(y->layer, &y->parts, block, likely_chunks(y)));
    return kiln_max_u64(
        ram, kiln_chunk_gather_ram(&y->parts, chunk_rows(y), kiln_max_u64(largest_plane(y), chunk_rows(y) * y->parts.row_bytes)));
}

kiln_status kiln_chunk_spill_order(kiln_run *r, kiln_chunk_spill *y, kiln_error *err)
{
    uint64_t need;
    char text[32];
    if (*y->folder) return KILN_OK;
    KILN_TRY(kiln_run_scratch(r, y->model->plan, y->folder, err));
    KILN_TRY(scratch_bytes(y, &need, err));
    KILN_TRY(kiln_run_scratch_room(r, need, err));
    if (y->in_memory)
        kiln_chat("takes %s of scratch in '%s'", kiln_size_text(need, text), y->folder);
    else
        kiln_say("--ram has no room for the layer's planes: takes %s of scratch in '%s'", kiln_size_text(need, text), y->folder);
    if (kiln_spatial_is_complete(y->folder, y->layer->count, false)) return KILN_OK;
    kiln_chunk_unit payload = *y->model;
    payload.unit = KILN_CHUNK_ORDER;
    payload.ram = y->order_ram;
    kiln_unit u = {.name = "order",
                   .key = payload.plan,
                   .payload = &payload,
                   .payload_bytes = sizeof payload,
                   .cost = y->layer->count,
                   .ram = order_ram(y),
                   .volatile_result = true};
    kiln_run_foresee_ram(r, u.ram, likely_chunks(y));
    const kiln_status st = kiln_run_units(r, "sorting rows along the curve", &u, 1, err);
    kiln_units_release(&u, 1);
    return st;
}

/* ---- scattering --------------------------------------------------------------------------------------------------------- */
typedef struct {
    kiln_block_groups groups;
    kiln_chunk_unit *payloads;
    kiln_unit *units;
    uint64_t n;
} scattering;

static kiln_status list_groups(const kiln_chunk_spill *y, uint64_t n_chunks, scattering *s, kiln_error *err)
{
    KILN_TRY(kiln_block_groups_cut(y->layer, &y->parts, y->group_rows, &s->groups, err));
    KILN_TRY(KILN_ALLOC(&s->payloads, s->groups.n, "the groups of blocks", err));
    KILN_TRY(KILN_ALLOC(&s->units, s->groups.n, "the groups of blocks", err));
    for (uint32_t i = 0; i < s->groups.n; i++) {
        const kiln_block_group *g = &s->groups.items[i];
        if (kiln_group_is_whole(y->folder, g, n_chunks, y->parts.row_bytes)) continue; /* of a run that was ended */
        kiln_chunk_unit *payload = &s->payloads[s->n];
        kiln_unit *u = &s->units[s->n++];
        *payload = *y->model;
        payload->unit = KILN_CHUNK_SCATTER;
        payload->group_rows = y->group_rows;
        payload->index = i;
        kiln_hasher *h = kiln_hasher_new();
        kiln_key_hash(h, "plan", payload->plan);
        kiln_key_u64(h, "first", g->first_block);
        kiln_key_u64(h, "end", g->end_block);
        *u = (kiln_unit){.key = kiln_hasher_end(h),
                         .payload = payload,
                         .payload_bytes = sizeof *payload,
                         .cost = g->n_rows,
                         .ram = kiln_scatter_ram(y->layer, &y->parts, g->n_rows, n_chunks),
                         .volatile_result = true};
        (void)snprintf(u->name, sizeof u->name, "blocks %u to %u", g->first_block, g->end_block - 1);
    }
    return KILN_OK;
}

kiln_status kiln_chunk_spill_scatter(kiln_run *r, kiln_chunk_spill *y, uint64_t n_chunks, uint64_t due, kiln_error *err)
{
    scattering s = {0};
    if (y->in_memory || due <= FEW_CHUNKS) return KILN_OK;
    y->group_rows = rows_of_groups(y, n_chunks);
    kiln_status st = list_groups(y, n_chunks, &s, err);
    if (st == KILN_OK) kiln_groups_drop_others(y->folder, &s.groups);
    if (st == KILN_OK) st = kiln_run_units(r, "scattering blocks", s.units, s.n, err);
    if (s.units) kiln_units_release(s.units, s.n);
    free(s.units);
    free(s.payloads);
    kiln_block_groups_release(&s.groups);
    return st;
}

uint64_t kiln_chunk_spill_ram(const kiln_chunk_spill *y, uint64_t rows)
{
    const uint64_t slices = y->group_rows ? rows * y->parts.row_bytes : 0;
    return kiln_chunk_gather_ram(&y->parts, rows, y->in_memory ? all_planes(y) : slices ? slices : largest_plane(y));
}
