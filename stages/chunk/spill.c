/* spill -- see spill.h. */
#include "stages/chunk/spill.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/chunk/chunk_gather.h"
#include "stages/engine/devices/devices.h"
#include "stages/engine/hosts/decisions.h"
#include "stages/engine/memory/ram_free.h"
#include "stages/spatial/row_places.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    /* for so few, reading the layer once each is cheaper than writing it and reading it again */
    FEW_CHUNKS = 2,
    /* of a group in memory and a chunk: enough that a loop over them is worth its start */
    SLICE_ROWS = 64,
    /* on the disk: enough that reading them in any order costs no more than reading them in
     * theirs */
    SLICE_BYTES = 64 << 10,
    /* where the page cache has room for all groups: enough to be worth the system calls */
    CACHED_SLICE_BYTES = 16 << 10,
    BLOCKS_MOST = 8, /* of a group in memory: what a worker holds of it */
};

static uint64_t chunk_rows(const kiln_chunk_spill *y)
{
    return kiln_min_u64(y->model->max, y->layer->count);
}

static uint64_t likely_chunks(const kiln_chunk_spill *y)
{
    return 4 * (y->layer->count / y->model->max) + 1;
}

static uint64_t largest_spilled_block(const kiln_chunk_spill *y)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < y->layer->n_chunks; i++)
        rows = kiln_max_u64(rows, y->layer->chunks[i].count);
    return rows;
}

/* Rows of the groups in memory. A block each, unless slices would be too short or too many. */
static uint64_t rows_in_memory(const kiln_chunk_spill *y, uint64_t n_chunks)
{
    const uint64_t block = kiln_max_u64(largest_spilled_block(y), 1);
    return kiln_min_u64(kiln_max_u64(block, SLICE_ROWS * n_chunks), BLOCKS_MOST * block);
}

/* Upper bound of what the groups take in memory. Two that follow each other have more rows than one
 * may have. */
static uint64_t bytes_in_memory(const kiln_chunk_spill *y, uint64_t n_chunks)
{
    const uint64_t n_groups =
        kiln_min_u64(y->layer->n_chunks, 2 * (y->layer->count / rows_in_memory(y, n_chunks)) + 2);
    return y->layer->count * y->parts.row_bytes + n_groups * n_chunks * sizeof(kiln_slice) +
           y->layer->n_chunks * kiln_block_sums_bytes(n_chunks);
}

/* What a chunk that reads the blocks itself has of them in memory. */
static uint64_t read_plane_ram(const kiln_chunk_spill *y)
{
    const uint64_t largest = largest_spilled_block(y) * kiln_row_parts_largest(&y->parts);
    return largest + kiln_read_ram(largest);
}

/* Is there room for the layer beside one worker? */
static bool fits_into_memory(const kiln_chunk_spill *y)
{
    const uint64_t n_chunks = likely_chunks(y), groups = bytes_in_memory(y, n_chunks);
    const uint64_t slices =
        kiln_chunk_gather_ram(&y->parts, chunk_rows(y), chunk_rows(y) * y->parts.row_bytes);
    const uint64_t scatter =
        kiln_scatter_ram(y->layer, &y->parts, rows_in_memory(y, n_chunks), n_chunks);
    return groups + kiln_max_u64(slices, scatter) + kiln_list_ram(n_chunks) <= y->unit_ram &&
           kiln_shared_memory_fits(groups);
}

/* What it can use, and what there is beside the connections of all threads; half of it if that is
 * less. */
static uint64_t choose_order_ram(const kiln_chunk_spill *y)
{
    const uint64_t readers =
        kiln_spatial_reader_ram(y->layer) * (kiln_devices_threads(kiln_common_values.threads) - 1);
    const uint64_t rest = y->unit_ram > 2 * readers ? y->unit_ram - readers : y->unit_ram / 2;
    const uint64_t least =
        kiln_max_u64(kiln_spatial_least_ram(y->layer), kiln_row_places_least_ram(1));
    return kiln_max_u64(least, kiln_min_u64(kiln_spatial_most_ram(y->layer), rest));
}

kiln_status kiln_chunk_spill_make(kiln_run *r, const kiln_layer *layer, const kiln_layer *spacing,
                                  const kiln_chunk_unit *model, kiln_chunk_spill *y,
                                  kiln_error *err)
{
    *y = (kiln_chunk_spill){
        .layer = layer, .model = model, .unit_ram = kiln_run_unit_ram(r), .run = r};
    KILN_TRY(kiln_row_parts_make(layer, spacing, &y->parts, err));
    y->fits = fits_into_memory(y);
    y->in_memory = y->fits && model->use == KILN_SCRATCH_OWN;
    y->is_cached = layer->count * y->parts.row_bytes <= kiln_ram_free("") / 2;
    y->order_ram = choose_order_ram(y);
    return KILN_OK;
}

void kiln_chunk_spill_release(kiln_chunk_spill *y)
{
    if (y->run) kiln_run_unshare_memory(y->run, &y->memory);
    kiln_row_parts_release(&y->parts);
}

kiln_status kiln_chunk_due(kiln_run *r, const kiln_unit *units, uint64_t n, uint64_t *due,
                           kiln_error *err)
{
    bool *const chosen = kiln_run_chosen(r, units, n, err);
    kiln_status st = chosen ? KILN_OK : KILN_E_NOMEM;
    *due = 0;
    for (uint64_t i = 0; i < n && st == KILN_OK; i++) {
        kiln_unit_result result = {0};
        bool found = false;
        if (!chosen[i]) continue;
        st = kiln_unit_find(kiln_run_manifest(r), units[i].key, &found, &result, err);
        kiln_unit_result_release(&result);
        *due += !found || kiln_run_force(r);
    }
    free(chosen);
    return st;
}

/* ---- the order ------------------------------------------------------------------------------- */
/* Rows of the groups that tasks read, perhaps over a network: slices are as long as on a disk, and
 * the page cache of this host is no reason for shorter ones. Nor are they longer, for --ram may
 * have room for the whole layer, and a group is one worker's. */
static uint64_t rows_for_tasks(const kiln_chunk_spill *y, uint64_t n_chunks)
{
    const uint64_t slices = SLICE_BYTES / kiln_max_u64(y->parts.row_bytes, 1) * n_chunks;
    return kiln_max_u64(
        kiln_min_u64(kiln_scatter_rows(y->layer, &y->parts, y->unit_ram / 2, n_chunks), slices), 1);
}

/* Rows of the groups on the disk. Where every thread is a worker, each has a group at a time: so
 * they are as large as its share. But slices have a length, which need not be that of a disk if all
 * of them stay in the page cache (half of what is free), and half of what a single worker may take
 * is the most, so that more than one fits. One block at least, more is the engine's to refuse. */
static uint64_t rows_on_disk(const kiln_chunk_spill *y, uint64_t n_chunks)
{
    if (y->model->use != KILN_SCRATCH_OWN) return rows_for_tasks(y, n_chunks);
    const uint64_t slice_bytes = y->is_cached ? CACHED_SLICE_BYTES : SLICE_BYTES;
    const unsigned threads = kiln_devices_threads(kiln_common_values.threads);
    const uint64_t most = kiln_scatter_rows(y->layer, &y->parts, y->unit_ram / 2, n_chunks);
    const uint64_t share = kiln_scatter_rows(y->layer, &y->parts, y->unit_ram / threads, n_chunks);
    const uint64_t slices = slice_bytes / kiln_max_u64(y->parts.row_bytes, 1) * n_chunks;
    return kiln_max_u64(kiln_min_u64(most, kiln_max_u64(share, slices)), 1);
}

static kiln_status scratch_bytes(const kiln_chunk_spill *y, uint64_t *out, kiln_error *err)
{
    kiln_block_groups groups = {0};
    const uint64_t order = y->layer->count * 16, n_chunks = likely_chunks(y);
    *out = order;
    if (!kiln_spatial_is_complete(y->folder, y->layer->count, false))
        *out = kiln_max_u64(order, kiln_spatial_scratch_bytes(y->layer, false, y->order_ram));
    if (y->in_memory) return KILN_OK;
    const kiln_status st =
        kiln_block_groups_cut(y->layer, &y->parts, rows_on_disk(y, n_chunks), "", &groups, err);
    if (st == KILN_OK)
        *out = kiln_max_u64(*out, order + kiln_groups_bytes(&groups, n_chunks, y->parts.row_bytes));
    kiln_block_groups_release(&groups);
    return st;
}

/* The order comes first, so it asks for what any unit behind it will take at least: with a cap that
 * is too small the sentence names one that does for the whole run. */
static uint64_t order_ram(const kiln_chunk_spill *y)
{
    uint64_t block = 0,
             ram = kiln_max_u64(y->order_ram, kiln_chunk_plan_ram(y->layer, y->model->max));
    if (y->in_memory) return ram;
    for (uint32_t i = 0; i < y->layer->n_chunks; i++)
        block = kiln_max_u64(block, y->layer->chunks[i].count);
    ram = kiln_max_u64(ram, kiln_scatter_ram(y->layer, &y->parts, block, likely_chunks(y)));
    return kiln_max_u64(
        ram,
        kiln_chunk_gather_ram(&y->parts, chunk_rows(y),
                              kiln_max_u64(read_plane_ram(y), chunk_rows(y) * y->parts.row_bytes)));
}

kiln_status kiln_chunk_spill_order(kiln_run *r, kiln_chunk_spill *y, kiln_error *err)
{
    uint64_t need;
    char text[32];
    if (*y->folder) return KILN_OK;
    KILN_TRY(kiln_run_scratch(r, y->model->plan, y->folder, err));
    /* what is not there is missed by the unit that opens it */
    if (y->model->use == KILN_SCRATCH_READ) return KILN_OK;
    KILN_TRY(scratch_bytes(y, &need, err));
    KILN_TRY(kiln_run_check_scratch(r, need, err));
    if (y->fits)
        kiln_chat("the scatter takes %s of scratch in '%s'", kiln_size_text(need, text), y->folder);
    else
        kiln_say("the layer's planes do not fit into --ram, so they take %s of scratch in '%s'",
                 kiln_size_text(need, text), y->folder);
    kiln_chunk_unit payload = *y->model;
    payload.unit = KILN_CHUNK_ORDER;
    payload.ram = y->order_ram;
    kiln_unit u = {.name = "order",
                   .key = payload.plan,
                   .payload = &payload,
                   .payload_bytes = sizeof payload,
                   .cost = y->layer->count,
                   .ram = order_ram(y),
                   .ram_thread = kiln_spatial_reader_ram(y->layer),
                   .volatile_result = true};
    kiln_run_foresee_ram(r, u.ram, likely_chunks(y));
    const kiln_status st = kiln_run_units(r, "sorting rows along the curve", &u, 1, err);
    kiln_units_release(&u, 1);
    return st;
}

/* ---- scattering ------------------------------------------------------------------------------ */
typedef struct {
    kiln_block_groups groups;
    kiln_chunk_unit *payloads;
    kiln_unit *units;
    uint64_t n;
} scattering;

/* Is the group to be checked, or to be scattered? */
static bool is_due(const kiln_chunk_spill *y, const kiln_block_group *g, uint64_t n_chunks,
                   kiln_chunk_unit_kind kind)
{
    if (kind == KILN_CHUNK_CHECK) return kiln_group_is_there(y->folder, g);
    return y->in_memory || !kiln_group_is_whole(y->folder, g, n_chunks, y->parts.row_bytes);
}

/* A unit for each group that has a file, or for each that has no whole one. */
static kiln_status list_groups(const kiln_chunk_spill *y, uint64_t n_chunks,
                               kiln_chunk_unit_kind kind, scattering *s, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&s->payloads, s->groups.n, "the groups of blocks", err));
    KILN_TRY(KILN_ALLOC(&s->units, s->groups.n, "the groups of blocks", err));
    const char *prefix = kind == KILN_CHUNK_CHECK ? "scratch of "
                         : y->in_memory           ? "planes of "
                                                  : "";
    for (uint32_t i = 0; i < s->groups.n; i++) {
        const kiln_block_group *g = &s->groups.items[i];
        if (!is_due(y, g, n_chunks, kind)) continue;
        kiln_chunk_unit *payload = &s->payloads[s->n];
        kiln_unit *u = &s->units[s->n++];
        *payload = *y->model;
        payload->unit = kind;
        payload->group_rows = y->group_rows;
        payload->memory = y->memory;
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
                         .ram_thread = kiln_scatter_ram_thread(y->layer, &y->parts),
                         .volatile_result = true};
        (void)snprintf(u->name, sizeof u->name, "%sblocks %u to %u", prefix, g->first_block,
                       g->end_block - 1);
    }
    return KILN_OK;
}

static void drop_list(scattering *s)
{
    if (s->units) kiln_units_release(s->units, s->n);
    free(s->units);
    free(s->payloads);
    s->units = NULL;
    s->payloads = NULL;
    s->n = 0;
}

/* Of a run that was ended: what is not sound is gone afterwards. */
static kiln_status check_groups(const kiln_chunk_spill *y, uint64_t n_chunks, scattering *s,
                                kiln_error *err)
{
    if (y->in_memory) return KILN_OK;
    kiln_status st = list_groups(y, n_chunks, KILN_CHUNK_CHECK, s, err);
    if (st == KILN_OK && s->n) st = kiln_run_units(y->run, "checking scratch", s->units, s->n, err);
    drop_list(s);
    return st;
}

static kiln_status scatter_groups(kiln_chunk_spill *y, uint64_t n_chunks, scattering *s,
                                  kiln_error *err)
{
    char boot[KILN_SCRATCH_BOOT_MAX] = "";
    if (y->model->use == KILN_SCRATCH_OWN) kiln_scratch_boot(boot);
    KILN_TRY(kiln_block_groups_cut(y->layer, &y->parts, y->group_rows, boot, &s->groups, err));
    if (y->in_memory)
        KILN_TRY(kiln_run_share_memory(
            y->run, kiln_groups_bytes(&s->groups, n_chunks, y->parts.row_bytes),
            (uint32_t)kiln_min_u64(s->groups.n, KILN_SHARED_FILES), &y->memory, err));
    else
        kiln_groups_drop_others(y->folder, &s->groups);
    KILN_TRY(check_groups(y, n_chunks, s, err));
    KILN_TRY(list_groups(y, n_chunks, KILN_CHUNK_SCATTER, s, err));
    return kiln_run_units(y->run, "scattering blocks", s->units, s->n, err);
}

kiln_status kiln_chunk_spill_decide(kiln_chunk_spill *y, uint64_t n_chunks, uint64_t due,
                                    kiln_error *err)
{
    if (y->is_decided) return KILN_OK;
    y->is_decided = true;
    if (due > FEW_CHUNKS)
        y->group_rows = y->in_memory ? rows_in_memory(y, n_chunks) : rows_on_disk(y, n_chunks);
    return kiln_run_decide(y->run, "group-rows", &y->group_rows, err);
}

kiln_status kiln_chunk_spill_scatter(kiln_chunk_spill *y, uint64_t n_chunks, kiln_error *err)
{
    scattering s = {0};
    if (!y->group_rows || y->is_scattered || y->model->use == KILN_SCRATCH_READ) return KILN_OK;
    const kiln_status st = scatter_groups(y, n_chunks, &s, err);
    drop_list(&s);
    kiln_block_groups_release(&s.groups);
    y->is_scattered = st == KILN_OK;
    return st;
}

uint64_t kiln_chunk_spill_sums_ram(const kiln_chunk_spill *y, uint64_t rows, uint64_t n_chunks)
{
    const uint64_t sums = kiln_block_sums_bytes(n_chunks), out = sums + kiln_outputs_ram(sums);
    const uint64_t plan = n_chunks * sizeof(kiln_planned_chunk);
    return out + (y->group_rows ? plan : kiln_scatter_ram(y->layer, &y->parts, rows, n_chunks));
}

uint64_t kiln_chunk_spill_ram(const kiln_chunk_spill *y, uint64_t rows)
{
    const uint64_t slices = y->group_rows ? rows * y->parts.row_bytes : 0;
    return kiln_chunk_gather_ram(&y->parts, rows, slices ? slices : read_plane_ram(y));
}
