/* kiln-chunk -- cuts a layer of Gaussians into spatial chunks: the layer `baked` that tables,
 * renders and exports read.
 *
 * One unit plans (it needs the order of all rows), a unit for each block sums up what its rows give
 * to each chunk, then each chunk is a unit of its own, keyed by the rows that it takes and what
 * they hold. So a chunk of which nothing has changed is not made again, and neither is anything
 * made from it. */
#include "base/count.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "base/quote.h"
#include "stages/chunk/chunk_units.h"
#include "stages/chunk/contents.h"
#include "stages/chunk/spill.h"
#include "stages/engine/engine.h"
#include "stages/engine/hosts/decisions.h"
#include "stages/engine/parent/run_layers.h"
#include "stages/engine/parent/run_memory.h"
#include "stages/engine/devices/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    uint32_t layer, max, min;
} o;

static const kiln_opt options[] = {
    KILN_OPTION_ENUM("layer", &o.layer, "LAYER", kiln_block_layer_names + 1, "what to cut",
                     .def = "pruned", .brief = "what to cut: source, initial or pruned",
                     .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("max", &o.max, "N", "split a cell with more Gaussians than this",
                       .def = "65536", .range = "1..65536", .flags = KILN_KEYED),
    KILN_OPTION_NUMBER(
        "min", &o.min, "N",
        "join cells with fewer Gaussians than this; 0: a quarter of --max, 1: join none",
        .def = "0", .range = "0..65536", .flags = KILN_KEYED),
    KILN_OPTION_END,
};

static const kiln_cli cli = {.program = "kiln-chunk",
                             .summary = "cuts the scene into spatial chunks",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .options = options,
                             .common = kiln_common_options};

typedef struct {
    kiln_scene scene;
    kiln_layer *input, *spacing; /* spacing: only where the input has no such plane itself */
    kiln_chunk_unit plan_payload;
    kiln_chunk_spill spill;
    kiln_unit plan;
    kiln_planned_chunk *chunks;                 /* of the plan */
    uint64_t n_chunks, n_missing, rows_missing; /* missing: quarantined */
    kiln_hash *block_keys;                      /* [input->n_chunks] of all planes of a block */
    kiln_chunk_unit *payloads;                  /* [n_chunks] */
    kiln_unit *units;
} cutting;

static void cutting_release(cutting *k)
{
    if (k->units) kiln_units_release(k->units, k->n_chunks);
    free(k->units);
    free(k->payloads);
    free(k->block_keys);
    free(k->chunks);
    kiln_units_release(&k->plan, 1);
    kiln_chunk_spill_release(&k->spill);
    kiln_layer_free(k->spacing);
    kiln_layer_free(k->input);
}

/* ---- what is cut ----------------------------------------------------------------------------- */
static kiln_layer_kind chosen_kind(void)
{
    return kiln_layer_kind_chosen(kiln_block_layer_names, o.layer);
}

static kiln_status need_input(kiln_run *r, kiln_error *err)
{
    kiln_stage_row prune;
    kiln_manifest *m = kiln_run_manifest(r);
    KILN_TRY(kiln_run_need(r, "import", err));
    /* for the spacing */
    if (chosen_kind() == KILN_LAYER_source) return kiln_run_need(r, "knn", err);
    if (chosen_kind() != KILN_LAYER_pruned)
        return kiln_run_need(r, kiln_layer_kinds[chosen_kind()].stage, err);
    KILN_TRY(kiln_stage_get(m, "prune", &prune, err));
    if (prune.state == KILN_STAGE_MISSING && !kiln_opt_given(&cli, "layer"))
        return kiln_fail(err, KILN_E_STALE,
                         "prune has not run for '%s'; run kiln-prune '%s' first, or choose the "
                         "layer to cut with --layer",
                         kiln_manifest_path(m), kiln_manifest_path(m));
    return kiln_run_need(r, "prune", err);
}

/* Has a scene of this kind the layer that --layer names? */
static kiln_status check_kind(const kiln_manifest *m, const kiln_scene *scene, kiln_error *err)
{
    if (chosen_kind() == KILN_LAYER_initial && scene->kind == KILN_SCENE_SPLATS)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' was imported with Gaussians, so it has no layer 'initial'; use --layer source",
            kiln_manifest_path(m));
    if (chosen_kind() == KILN_LAYER_source && scene->kind != KILN_SCENE_SPLATS)
        return kiln_fail(err, KILN_E_INPUT,
                         "the source of '%s' has no Gaussians; use --layer initial",
                         kiln_manifest_path(m));
    return KILN_OK;
}

static kiln_status open_chunk_input(kiln_run *r, cutting *k, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    KILN_TRY(kiln_scene_get(m, &k->scene, err));
    KILN_TRY(check_kind(m, &k->scene, err));
    KILN_TRY(kiln_layer_current(m, chosen_kind(), &k->input, err));
    if (chosen_kind() == KILN_LAYER_source)
        KILN_TRY(kiln_layer_current(m, KILN_LAYER_spacing, &k->spacing, err));
    if (k->input->count && !k->scene.has_root)
        return kiln_fail(err, KILN_E_IO, "'%s' has no root cube; import the scene again",
                         kiln_manifest_path(m));
    return KILN_OK;
}

static kiln_hash key_chunk_input(kiln_run *r, const cutting *k)
{
    kiln_hasher *h = kiln_run_key(r);
    kiln_key_hash(h, "input", k->input->digest);
    if (k->spacing) kiln_key_hash(h, "spacing", k->spacing->digest);
    kiln_key_bytes(h, "root_centre", k->scene.root_centre, sizeof k->scene.root_centre);
    kiln_key_f64(h, "root_half", k->scene.root_half);
    return kiln_key_end(h);
}

/* ---- the plan -------------------------------------------------------------------------------- */
/* The plan is read from the manifest, which may say anything: its chunks must follow each other and
 * cover all rows. */
static kiln_status check_plan(const cutting *k, uint64_t bytes, kiln_error *err)
{
    uint64_t row = 0;
    if (bytes % sizeof *k->chunks || k->n_chunks > UINT32_MAX)
        return kiln_fail(err, KILN_E_IO, "it has %llu bytes of chunks", (unsigned long long)bytes);
    for (uint64_t i = 0; i < k->n_chunks; i++) {
        const kiln_planned_chunk *c = &k->chunks[i];
        if (!kiln_planned_chunk_is_sound(c, row, o.max))
            return kiln_fail(err, KILN_E_IO,
                             "chunk %llu of the plan does not begin at row %llu, or has no name",
                             (unsigned long long)i, (unsigned long long)row);
        row = c->cells.end;
    }
    return row == k->input->count
               ? KILN_OK
               : kiln_fail(err, KILN_E_IO, "the plan ends at row %llu of %llu",
                           (unsigned long long)row, (unsigned long long)k->input->count);
}

static kiln_status read_plan(kiln_run *r, cutting *k, kiln_error *err)
{
    uint64_t bytes = 0;
    KILN_TRY(kiln_unit_data(r, &k->plan, "chunks", (void **)&k->chunks, &bytes, err));
    k->n_chunks = bytes / sizeof *k->chunks;
    return kiln_unit_refuse(r, &k->plan, check_plan(k, bytes, err), err);
}

static kiln_status plan_chunk_cells(kiln_run *r, cutting *k, kiln_error *err)
{
    kiln_chunk_unit *u = &k->plan_payload;
    uint64_t due;
    *u = (kiln_chunk_unit){.unit = KILN_CHUNK_PLAN,
                           .max = o.max,
                           .min = o.min ? o.min : o.max / 4,
                           .use = kiln_run_scratch_use(r),
                           .root_half = k->scene.root_half,
                           .layer = k->input->digest};
    memcpy(u->root_centre, k->scene.root_centre, sizeof u->root_centre);
    memcpy(u->kind, k->input->kind, sizeof u->kind);
    if (k->spacing) u->spacing = k->spacing->digest;
    KILN_KEY_LISTS(kiln_chunk_unit, 320);
    kiln_hasher *h = kiln_run_key_bare(r, "plan of cells");
    /* plans of earlier versions say which blocks a chunk reads, and have another key */
    kiln_key_text(h, "blocks", "none");
    kiln_key_u64(h, "max", u->max);
    kiln_key_u64(h, "min", u->min);
    kiln_key_bytes(h, "root_centre", u->root_centre, sizeof u->root_centre);
    kiln_key_f64(h, "root_half", u->root_half);
    for (uint32_t i = 0; i < k->input->n_chunks; i++)
        kiln_key_plane(h, &k->input->chunks[i], "means");
    u->plan = kiln_key_end(h);
    k->plan = (kiln_unit){.name = "plan",
                          .key = u->plan,
                          .payload = u,
                          .payload_bytes = sizeof *u,
                          .cost = k->input->count,
                          .ram = kiln_chunk_plan_ram(k->input, o.max),
                          .ram_thread = kiln_chunk_plan_ram_thread()};
    KILN_TRY(kiln_chunk_spill_make(r, k->input, k->spacing, u, &k->spill, err));
    KILN_TRY(kiln_chunk_due(r, &k->plan, 1, &due, err));
    /* else a plan that is due is refused below */
    const bool plans = u->use == KILN_SCRATCH_OWN || u->use == KILN_SCRATCH_PLAN;
    if (due && plans) KILN_TRY(kiln_chunk_spill_order(r, &k->spill, err));
    KILN_TRY(kiln_run_units(r, "planning chunks", &k->plan, 1, err));
    return read_plan(r, k, err);
}

/* ---- the chunks ------------------------------------------------------------------------------ */
static kiln_status key_blocks(cutting *k, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&k->block_keys, k->input->n_chunks, "the keys of the blocks", err));
    for (uint32_t i = 0; i < k->input->n_chunks; i++) {
        const kiln_chunk *block = &k->input->chunks[i];
        kiln_hasher *h = kiln_hasher_new();
        for (uint32_t p = 0; p < block->n_planes; p++) {
            kiln_key_text(h, "type", kiln_type_name(block->planes[p].type));
            kiln_key_plane(h, block, block->planes[p].name);
        }
        if (k->spacing && i < k->spacing->n_chunks)
            kiln_key_plane(h, &k->spacing->chunks[i], "spacing2");
        k->block_keys[i] = kiln_hasher_end(h);
    }
    return KILN_OK;
}

/* Names and types of the planes: the contents are of bytes. */
static kiln_hash key_planes(const cutting *k)
{
    const kiln_chunk *model = kiln_layer_model(k->input);
    kiln_hasher *h = kiln_hasher_new();
    for (uint32_t p = 0; model && p < model->n_planes; p++) {
        kiln_key_text(h, "plane", model->planes[p].name);
        kiln_key_text(h, "type", kiln_type_name(model->planes[p].type));
        kiln_key_u64(h, "components", model->planes[p].components);
    }
    kiln_key_text(h, "spacing", k->spacing ? "apart" : "of the layer");
    return kiln_hasher_end(h);
}

static kiln_hash chunk_key(kiln_run *r, kiln_hash planes, const kiln_planned_chunk *c,
                           const kiln_row_sum *content)
{
    kiln_hasher *h = kiln_run_key_bare(r, "chunk");
    kiln_key_hash(h, "rows", c->rows);
    kiln_key_hash(h, "planes", planes);
    kiln_key_u64(h, "content", content->low);
    kiln_key_u64(h, "high", content->high);
    return kiln_key_end(h);
}

static kiln_status key_chunks(kiln_run *r, cutting *k, kiln_error *err)
{
    const kiln_hash planes = key_planes(k);
    kiln_row_sum *content;
    KILN_TRY(KILN_ALLOC(&content, k->n_chunks, "the contents of the chunks", err));
    const kiln_status st =
        kiln_chunk_contents(r, &k->spill, k->block_keys, k->n_chunks, content, err);
    for (uint64_t i = 0; st == KILN_OK && i < k->n_chunks; i++)
        k->units[i].key = chunk_key(r, planes, &k->chunks[i], &content[i]);
    free(content);
    return st;
}

/* Keys first: what is due decides how the others are made. */
static kiln_status list_chunks(kiln_run *r, cutting *k, kiln_error *err)
{
    KILN_TRY(key_blocks(k, err));
    KILN_TRY(KILN_ALLOC(&k->payloads, k->n_chunks, "the chunks", err));
    KILN_TRY(KILN_ALLOC(&k->units, k->n_chunks, "the chunks", err));
    for (uint64_t i = 0; i < k->n_chunks; i++) {
        const kiln_planned_chunk *c = &k->chunks[i];
        k->payloads[i] = k->plan_payload;
        k->payloads[i].unit = KILN_CHUNK_GATHER;
        k->payloads[i].index = i;
        k->payloads[i].begin = c->cells.begin;
        k->payloads[i].end = c->cells.end;
        k->payloads[i].rows = c->rows;
        k->units[i] = (kiln_unit){.payload = &k->payloads[i],
                                  .payload_bytes = sizeof k->payloads[i],
                                  .cost = c->cells.end - c->cells.begin,
                                  .optional = true};
        (void)snprintf(k->units[i].name, sizeof k->units[i].name, "chunk %s", c->cells.name);
    }
    return key_chunks(r, k, err);
}

static const char list_name[] = "cutting chunks";

/* Order and scatter, if a chunk needs them. */
static kiln_status prepare_chunks(kiln_run *r, cutting *k, kiln_error *err)
{
    uint64_t due;
    KILN_TRY(kiln_chunk_due(r, k->units, k->n_chunks, &due, err));
    KILN_TRY(kiln_chunk_spill_decide(&k->spill, k->n_chunks, due, err));
    if (!due) return KILN_OK;
    if (k->plan_payload.use == KILN_SCRATCH_MEND &&
        !kiln_run_is_planned(r, list_name, k->units, k->n_chunks))
        return KILN_OK; /* the list is refused */
    KILN_TRY(kiln_chunk_spill_order(r, &k->spill, err));
    return kiln_chunk_spill_scatter(&k->spill, k->n_chunks, err);
}

static kiln_status make_chunks(kiln_run *r, cutting *k, kiln_error *err)
{
    KILN_TRY(list_chunks(r, k, err));
    KILN_TRY(prepare_chunks(r, k, err));
    for (uint64_t i = 0; i < k->n_chunks; i++) {
        k->payloads[i].group_rows = k->spill.group_rows;
        k->payloads[i].memory = k->spill.memory;
        k->units[i].ram = kiln_chunk_spill_ram(&k->spill, k->units[i].cost);
    }
    KILN_TRY(kiln_run_units(r, list_name, k->units, k->n_chunks, err));
    for (uint64_t i = 0; i < k->n_chunks; i++) {
        if (!k->units[i].quarantined) continue;
        k->n_missing++;
        k->rows_missing += k->units[i].cost;
    }
    return KILN_OK;
}

/* ---- the layer ------------------------------------------------------------------------------- */
static kiln_status fill_chunk(kiln_run *r, const cutting *k, uint64_t i, const kiln_chunk *model,
                              kiln_chunk *c, kiln_error *err)
{
    const kiln_planned_chunk *plan = &k->chunks[i];
    const kiln_unit *u = &k->units[i];
    memcpy(c->name, plan->cells.name, sizeof c->name);
    memcpy(c->parent, plan->cells.parent, sizeof c->parent);
    c->count = plan->cells.end - plan->cells.begin;
    c->hilbert_lo = plan->hilbert_lo;
    c->hilbert_hi = plan->hilbert_hi;
    for (uint32_t p = 0; p < model->n_planes; p++) {
        const kiln_plane *plane = &model->planes[p];
        KILN_TRY(kiln_chunk_add_output(c, &u->result, plane->name, plane->name, plane->type,
                                       plane->components, err));
    }
    if (k->spacing)
        KILN_TRY(
            kiln_chunk_add_output(c, &u->result, "spacing2", "spacing2", KILN_TYPE_F32, 1, err));
    return kiln_chunk_read_bounds(r, u, c, err);
}

static kiln_status put_layer(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err)
{
    const cutting *k = context;
    kiln_layer *l = NULL;
    kiln_status st = KILN_OK;
    kiln_chunk *next;
    KILN_GO(kiln_layer_new(KILN_LAYER_baked, k->input->sh_degree,
                           (uint32_t)(k->n_chunks - k->n_missing), &l, err));
    l->count = k->input->count - k->rows_missing;
    next = l->chunks;
    for (uint64_t i = 0; i < k->n_chunks; i++) {
        if (k->units[i].quarantined) continue;
        st = kiln_unit_refuse(r, &k->units[i],
                              fill_chunk(r, k, i, kiln_layer_model(k->input), next++, err), err);
        KILN_GO(kiln_unit_pass(r, &k->units[i], st));
        kiln_unit_result_release(&k->units[i].result); /* its row of the layer takes as much */
    }
    KILN_GO(kiln_run_refused(r, err));
    kiln_run_look_at_ram(r); /* the parent has most now: units and layer */
    KILN_GO(kiln_stage_outputs_clear(m, "chunk", err));
    KILN_GO(kiln_run_put_layer(r, l, err));
done:
    kiln_layer_free(l);
    return st;
}

/* ---- report ---------------------------------------------------------------------------------- */
static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static kiln_status report_chunks(kiln_run *r, const cutting *k, kiln_error *err)
{
    uint64_t *sizes, n = k->n_chunks;
    uint64_t deepest = 0;
    KILN_TRY(KILN_ALLOC(&sizes, n, "the sizes of the chunks", err));
    for (uint64_t i = 0; i < n; i++) {
        sizes[i] = k->chunks[i].cells.end - k->chunks[i].cells.begin;
        if (k->chunks[i].cells.depth > deepest) deepest = k->chunks[i].cells.depth;
    }
    if (n) qsort(sizes, n, sizeof *sizes, by_size);
    uint64_t least = n ? sizes[0] : 0, median = n ? sizes[(n - 1) / 2] : 0,
             most = n ? sizes[n - 1] : 0;
    free(sizes);
    json_t *out = kiln_run_report(r);
    json_t *all = json_pack("{s:s, s:I, s:I, s:i, s:{s:I, s:I, s:I}}", "layer", k->input->kind,
                            "gaussians", (json_int_t)k->input->count, "chunks", (json_int_t)n,
                            "levels", (int)deepest, "rows_per_chunk", "min", (json_int_t)least,
                            "median", (json_int_t)median, "max", (json_int_t)most);
    if (all && k->n_missing &&
        (json_object_set_new(all, "missing_chunks", json_integer((json_int_t)k->n_missing)) != 0 ||
         json_object_set_new(all, "missing_gaussians", json_integer((json_int_t)k->rows_missing)) !=
             0)) {
        json_decref(all);
        all = NULL;
    }
    int bad = !all || json_object_update(out, all);
    json_decref(all);
    if (bad) return kiln_fail(err, KILN_E_NOMEM, "cannot write the report");
    if (kiln_run_prints(r)) {
        kiln_print_part("%s in %s", KILN_COUNT(k->input->count, "Gaussian"),
                        KILN_COUNT(n, "chunk"));
        if (n > 1)
            kiln_print_part(" of %llu to %llu (median %llu)", (unsigned long long)least,
                            (unsigned long long)most, (unsigned long long)median);
        kiln_print_gap();
    }
    if (kiln_run_prints_all(r, false))
        kiln_print("layer '%s', %s", k->input->kind, KILN_COUNT(deepest, "octree level"));
    if (k->n_missing)
        kiln_warn("%llu of the chunks, %s, could not be made and are missing from the layer",
                  (unsigned long long)k->n_missing, KILN_COUNT(k->rows_missing, "Gaussian"));
    return KILN_OK;
}

static kiln_status check_chunk(kiln_run *r, kiln_error *err)
{
    kiln_scene *scene;
    kiln_error none; /* a bake without a scene: import has not run */
    kiln_manifest *m = kiln_run_manifest(r);
    if (o.min > o.max)
        return kiln_fail(err, KILN_E_USAGE, "--min %u is above --max %u", o.min, o.max);
    if (!m || chosen_kind() == KILN_LAYER_pruned) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&scene, 1, "a scene", err));
    const kiln_status st =
        kiln_scene_get(m, scene, &none) == KILN_OK ? check_kind(m, scene, err) : KILN_OK;
    free(scene);
    return st;
}

static kiln_status bake_chunks(kiln_run *r, cutting *k, kiln_error *err)
{
    bool fresh;
    KILN_TRY(need_input(r, err));
    KILN_TRY(open_chunk_input(r, k, err));
    kiln_hash key = key_chunk_input(r, k);
    KILN_TRY(kiln_run_is_fresh(r, key, &fresh, err));
    if (fresh) return kiln_run_nothing_to_do(r, err);
    kiln_run_expect_work(r, kiln_work_chunk((double)k->input->count));
    KILN_TRY(plan_chunk_cells(r, k, err));
    KILN_TRY(make_chunks(r, k, err));
    KILN_TRY(report_chunks(r, k, err));
    return kiln_run_commit(r, key, put_layer, k, err);
}

static kiln_status run_chunk(kiln_run *r, kiln_error *err)
{
    cutting *k;
    KILN_TRY(KILN_ALLOC(&k, 1, "the state of chunk", err));
    kiln_status st = bake_chunks(r, k, err);
    cutting_release(k);
    free(k);
    return st;
}

const kiln_stage_program kiln_stage_chunk = {.name = "chunk",
                                             .cli = &cli,
                                             .open = KILN_OPEN_WRITE,
                                             .flags = KILN_PROGRAM_SERIAL | KILN_PROGRAM_PACKS |
                                                      KILN_PROGRAM_ROUNDS,
                                             .check = check_chunk,
                                             .run = run_chunk,
                                             .unit = kiln_chunk_compute};
