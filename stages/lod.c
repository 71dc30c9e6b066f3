/* kiln-lod -- makes levels of detail: fewer Gaussians that look like many, for each chunk and for
 * the cells above, up to one node that stands for the whole scene (stages/lod/DESIGN.md).
 *
 * A node is a unit. Leaves are chunks of the layer `baked`; the levels of a node above are merged
 * from the coarsest levels of its children. So all leaves are one list, then the nodes of each
 * height are one. A node is keyed by the rows that go into it: a change in a chunk leads to its
 * ancestors alone. Level 0 is the baked layer, which stays as it is. */
#include "base/count.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "stages/engine/devices/devices.h"
#include "stages/engine/engine.h"
#include "stages/engine/parent/run_layers.h"
#include "stages/engine/devices/work.h"
#include "stages/lod/lod_layers.h"
#include "stages/lod/lod_rows.h"
#include "stages/lod/refine.h"
#include "stages/lod/visibility.h"

#include <stdlib.h>
#include <string.h>

static struct {
    uint32_t levels, coarsest, visibility, views, refine;
    bool dry_run;
    kiln_view_options request;
} o;

static const kiln_opt options[] = {
    KILN_OPTION_NUMBER("levels", &o.levels, "N",
                       "levels of each chunk, each with half of the Gaussians of the one before",
                       .def = "4", .range = "1..8",
                       .brief = "levels of each chunk, each with half the Gaussians",
                       .flags = KILN_KEYED),
    KILN_OPTION_NUMBER(
        "coarsest", &o.coarsest, "N",
        "most Gaussians of the coarsest level of a cell above chunks, and so of the whole scene",
        .def = "4096", .range = "1..65536", .brief = "most Gaussians of the coarsest level",
        .flags = KILN_KEYED),
    KILN_OPTION_ENUM(
        "visibility", &o.visibility, "WHEN", "auto|off",
        "weigh Gaussians by how much of them cameras see; auto: if the bake has cameras",
        .def = "auto", .brief = "weigh Gaussians by how much of them cameras see",
        .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("views", &o.views, "N",
                       "greatest number of cameras that visibility is measured with", .def = "32",
                       .range = "1..4096", .brief = "most cameras that visibility is measured with",
                       .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("refine", &o.refine, "STEPS",
                       "fit the levels of each chunk to pictures of the full scene, with N steps "
                       "of Adam for each level; try 100",
                       .def = "0", .range = "0..10000",
                       .brief = "fit levels to pictures, with N steps of Adam",
                       .flags = KILN_KEYED),
    KILN_VIEW_OPTION_ROWS(o.request),
    KILN_OPTION_BOOL("dry-run", &o.dry_run, "print the levels that would be made; make none",
                     .letter = 'n', .flags = KILN_ONCE),
    KILN_OPTION_END,
};

static const kiln_opt_check checks[] = {KILN_VIEW_OPTION_CHECKS, {NULL, NULL}};

static const kiln_cli cli = {
    .program = "kiln-lod",
    .summary = "makes levels of detail: coarser Gaussians for each chunk and for the cells above",
    .positionals = "MANIFEST",
    .n_positionals = 1,
    .options = options,
    .common = kiln_common_options,
    .checks = checks};

typedef struct {
    kiln_scene scene;
    /* seen: NULL without visibility; levels: until they are made */
    kiln_layer *baked, *seen, *levels;
    kiln_camera *cameras;
    uint32_t n_cameras;
    kiln_view_request *views; /* that visibility is asked of */
    uint32_t n_views;
    uint64_t hidden;           /* rows of `baked` of which they see next to nothing */
    kiln_view_request request; /* its view is not used */
    kiln_distance_prior prior; /* radius 0: the cameras, if there are any, say what rows weigh */
    kiln_lod_error_source measuring;
    kiln_lod_plan plan;
} making;

static void making_release(making *k)
{
    kiln_lod_plan_release(&k->plan);
    free(k->views);
    free(k->measuring.cameras);
    free(k->cameras);
    kiln_layer_free(k->seen);
    kiln_layer_free(k->levels);
    kiln_layer_free(k->baked);
}

/* ---- input ----------------------------------------------------------------------------------- */
static kiln_status open_lod_input(kiln_run *r, making *k, kiln_error *err)
{
    const kiln_camera nowhere = {.name = "",
                                 .photo = "",
                                 .mask = "",
                                 .r = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                                 .width = 1,
                                 .height = 1,
                                 .fx = 1,
                                 .fy = 1};
    kiln_manifest *m = kiln_run_manifest(r);
    KILN_TRY(kiln_run_need(r, "import", err));
    KILN_TRY(kiln_run_need(r, "chunk", err));
    KILN_TRY(kiln_scene_get(m, &k->scene, err));
    KILN_TRY(kiln_view_request_init(&k->request, &o.request, &k->scene, &nowhere, err));
    KILN_TRY(kiln_cameras_get(m, &k->cameras, &k->n_cameras, err));
    const kiln_visibility_options seen = {.view = o.request, .views = o.views};
    if (o.visibility == 0)
        KILN_TRY(kiln_visibility_views(&k->scene, k->cameras, k->n_cameras, &seen, &k->views,
                                       &k->n_views, err));
    k->measuring = (kiln_lod_error_source){.profile = k->request.profile,
                                           .antialiased = k->request.antialiased,
                                           .near_m = k->request.near_m};
    memcpy(k->measuring.origin, k->scene.origin, sizeof k->measuring.origin);
    KILN_TRY(kiln_lod_error_source_cameras(&k->measuring, k->cameras, k->n_cameras, err));
    KILN_TRY(kiln_layer_current(m, KILN_LAYER_baked, &k->baked, err));
    if (o.visibility == 0)
        KILN_TRY(kiln_distance_prior_find(m, &k->scene, k->baked, k->cameras, k->n_cameras,
                                          &k->prior, err));
    if (k->prior.radius > 0) k->n_views = 0;
    return KILN_OK;
}

static kiln_hash key_lod_input(kiln_run *r, const making *k)
{
    kiln_hasher *h = kiln_run_key(r);
    kiln_key_hash(h, "baked", k->baked->digest);
    /* cameras are in the source's coordinates */
    kiln_key_bytes(h, "origin", k->scene.origin, sizeof k->scene.origin);
    kiln_key_u64(h, "antialiased", k->request.antialiased);
    for (uint32_t i = 0; i < k->n_cameras; i++) {
        kiln_key_hash(h, "camera", kiln_camera_hash(&k->cameras[i]));
        kiln_key_text(h, "split", k->cameras[i].split);
    }
    return kiln_key_end(h);
}

/* ---- levels ---------------------------------------------------------------------------------- */
/* Leaves, then the nodes above, height by height. Merging is a heap's work: nothing in it is for a
 * GPU. A unit has one thread, or several where a list has fewer units than there are threads. */
static kiln_status merge_levels(kiln_run *r, making *k, kiln_error *err)
{
    kiln_lod_plan *p = &k->plan;
    kiln_status st = KILN_OK;
    kiln_run_on_cpu(r, true);
    kiln_run_serial(r, true);
    for (uint32_t h = 0; h < p->n_heights && st == KILN_OK; h++) {
        kiln_lod_plan_threads(p, h, kiln_devices_threads(kiln_common_values.threads));
        st = h == 0 ? kiln_lod_plan_leaves(r, p, k->seen, err) : kiln_lod_plan_height(r, p, h, err);
        if (st == KILN_OK)
            st = kiln_run_units(r, h == 0 ? "merging chunks" : "merging cells",
                                &p->units[p->first[h]], p->first[h + 1] - p->first[h], err);
    }
    kiln_run_serial(r, false);
    return st;
}

static kiln_status put_layers(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err)
{
    making *k = context;
    KILN_TRY(kiln_stage_outputs_clear(m, "lod", err));
    if (k->seen) KILN_TRY(kiln_run_put_layer(r, k->seen, err));
    return kiln_run_put_layer(r, k->levels, err);
}

/* ---- report ---------------------------------------------------------------------------------- */
typedef struct {
    uint32_t nodes;
    uint64_t rows;
} level_sum;

static uint32_t sum_levels(const kiln_lod_plan *p, level_sum sums[KILN_LEVELS_MAX])
{
    uint32_t n = 0;
    memset(sums, 0, KILN_LEVELS_MAX * sizeof *sums);
    for (uint32_t node = 0; node < p->tree.n_nodes; node++) {
        const kiln_lod_unit *u = kiln_lod_payload(p, node);
        for (uint32_t i = 0; i < u->n_levels; i++) {
            level_sum *s = &sums[u->first_level + i];
            s->nodes++;
            s->rows += u->counts[i];
            if (u->first_level + i >= n) n = u->first_level + i + 1;
        }
    }
    return n;
}

static kiln_status report_json(kiln_run *r, const making *k, const level_sum *sums, uint32_t n,
                               kiln_error *err)
{
    json_t *levels = json_array();
    int bad = 0;
    for (uint32_t i = 1; i < n; i++)
        bad |= json_array_append_new(levels, json_pack("{s:i, s:i, s:I}", "level", (int)i, "nodes",
                                                       (int)sums[i].nodes, "gaussians",
                                                       (json_int_t)sums[i].rows));
    json_t *all =
        json_pack("{s:I, s:i, s:i, s:o}", "gaussians", (json_int_t)k->baked->count, "chunks",
                  (int)k->baked->n_chunks, "nodes", (int)k->plan.tree.n_nodes, "levels", levels);
    bad |= !all || json_object_update(kiln_run_report(r), all);
    if (k->prior.radius > 0)
        bad |= json_object_set_new(kiln_run_report(r), "weighed", json_string("distance"));
    if (k->seen)
        bad |= json_object_set_new(
            kiln_run_report(r), "visibility",
            json_pack("{s:i, s:I}", "views", (int)k->n_views, "hidden", (json_int_t)k->hidden));
    json_decref(all);
    return bad ? kiln_fail(err, KILN_E_NOMEM, "cannot write the report") : KILN_OK;
}

/* Refinement that changes little is worth a look: views may be few, or levels good as they are. */
static kiln_status report_refined(kiln_run *r, const making *k, kiln_error *err)
{
    const uint64_t levels = k->plan.tried, kept = k->plan.better;
    if (o.refine == 0 || kiln_run_is_once(r)) return KILN_OK;
    json_t *refined =
        json_pack("{s:I, s:I}", "levels", (json_int_t)levels, "kept", (json_int_t)kept);
    if (!refined || json_object_set_new(kiln_run_report(r), "refined", refined))
        return kiln_fail(err, KILN_E_NOMEM, "cannot write the report");
    if (kiln_run_prints(r))
        kiln_print("refined with %s: %llu of %s better", KILN_COUNT(o.refine, "step"),
                   (unsigned long long)kept,
                   KILN_COUNT(levels, "level of chunks is|levels of chunks are"));
    return KILN_OK;
}

static kiln_status report_levels(kiln_run *r, const making *k, kiln_error *err)
{
    level_sum sums[KILN_LEVELS_MAX];
    const uint32_t n = sum_levels(&k->plan, sums), nodes = k->plan.tree.n_nodes;
    const bool looks = kiln_run_is_once(r);
    uint64_t rows = 0;
    KILN_TRY(report_json(r, k, sums, n, err));
    for (uint32_t i = 1; i < n; i++) rows += sums[i].rows;
    if (kiln_run_prints(r)) {
        kiln_print_part("%s in %s: %llu in the levels of %s",
                        KILN_COUNT(k->baked->count, "Gaussian"),
                        KILN_COUNT(k->baked->n_chunks, "chunk"), (unsigned long long)rows,
                        KILN_COUNT(nodes, "node"));
        if (nodes) {
            const kiln_lod_unit *root = kiln_lod_payload(&k->plan, nodes - 1);
            kiln_print_part("; %s for the scene at level %u",
                            KILN_COUNT(root->counts[root->n_levels - 1], "stands|stand"),
                            root->first_level + root->n_levels - 1);
        }
        kiln_print_gap();
        if (k->prior.radius > 0)
            kiln_print("the cameras are our own orbit, which is no judge of such a scene, so "
                       "Gaussians are weighed by their distance from the middle");
        if (k->seen)
            kiln_print("%s next to invisible to %s%s",
                       KILN_COUNT(k->hidden, "Gaussian is|Gaussians are"),
                       k->n_views == 1 ? "the " : "all ",
                       KILN_COUNT(k->n_views, k->cameras[0].synthetic ? "camera of our orbit|"
                                                                        "cameras of our orbit"
                                                                      : "training camera"));
    }
    KILN_TRY(report_refined(r, k, err));
    for (uint32_t i = 1; i < n && kiln_run_prints_all(r, looks); i++)
        kiln_print("level %2u: %s of %s", i, KILN_COUNT(sums[i].rows, "Gaussian"),
                   KILN_COUNT(sums[i].nodes, "node"));
    return KILN_OK;
}

static kiln_status bake_levels(kiln_run *r, making *k, kiln_error *err)
{
    bool fresh;
    KILN_TRY(open_lod_input(r, k, err));
    const kiln_lod_rule rule = {.levels = o.levels,
                                .coarsest = o.coarsest,
                                .weighted = k->n_views > 0 || k->prior.radius > 0,
                                .prior = k->prior,
                                .errors = &k->measuring};
    const kiln_hash key = key_lod_input(r, k);
    KILN_TRY(kiln_run_is_fresh(r, key, &fresh, err));
    if (fresh) return kiln_run_nothing_to_do(r, err);
    KILN_TRY(kiln_lod_plan_make(k->baked, &rule, &k->plan, err));
    if (kiln_run_is_once(r)) return report_levels(r, k, err);
    kiln_lod_plan_foresee(r, &k->plan);
    KILN_TRY(kiln_lod_refine_prepare(r, &k->plan, &k->request, o.refine, err));
    KILN_TRY(kiln_lod_visibility(r, k->baked, k->views, k->n_views, &k->seen, &k->hidden, err));
    KILN_TRY(merge_levels(r, k, err));
    KILN_TRY(
        kiln_lod_refine(r, &k->plan, k->cameras, k->n_cameras, &k->request, k->scene.origin, err));
    KILN_TRY(kiln_lod_layer_make(r, &k->plan, &k->request, &k->levels, err));
    KILN_TRY(report_levels(r, k, err));
    return kiln_run_commit(r, key, put_layers, k, err);
}

static kiln_status run_lod(kiln_run *r, kiln_error *err)
{
    making *k;
    KILN_TRY(KILN_ALLOC(&k, 1, "the state of lod", err));
    const kiln_status st = bake_levels(r, k, err);
    making_release(k);
    free(k);
    return st;
}

const kiln_stage_program kiln_stage_lod = {.name = "lod",
                                           .cli = &cli,
                                           .open = KILN_OPEN_WRITE,
                                           .flags = KILN_PROGRAM_ROUNDS | KILN_PROGRAM_UNDIVIDED,
                                           .run = run_lod,
                                           .unit = kiln_lod_compute};
