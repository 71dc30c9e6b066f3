/* kiln-prune -- normalises scales and drops what breaks renderers: the cure for exploded Gaussians
 * whose tile lists take all memory. Statistics of the whole input first, then whether limits that
 * are `auto` act, then each block on its own, then pairs before and after by camera.
 *
 * The output has the blocks of the input with the same names and borders; a block that no rule
 * touches keeps its bytes. Why the defaults are what they are: kernels/prune/DESIGN.md. */
#include "base/log.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/engine/devices/devices.h"
#include "stages/engine/engine.h"
#include "stages/engine/hosts/decisions.h"
#include "stages/engine/parent/run_layers.h"
#include "stages/engine/devices/work.h"
#include "stages/prune/camera_looks.h"
#include "stages/prune/camera_scores.h"
#include "stages/prune/judgement.h"
#include "stages/prune/keep_curve.h"
#include "stages/prune/pairs_forecast.h"
#include "stages/prune/prune_report.h"
#include "stages/prune/pruned_blocks.h"
#include "stages/prune/pruning.h"
#include "stages/prune/stray_rows.h"
#include "stages/prune/voxel_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static kiln_prune_values o;

#define OPTION_F64(ID, OPTION, ARG, DEF, RANGE, HELP)                              \
    KILN_OPTION_NUMBER(OPTION, &o.rules.ID, ARG, HELP, .def = DEF, .range = RANGE, \
                       .flags = KILN_KEYED),
#define OPTION_TEXT(ID, OPTION, ARG, DEF, RANGE, HELP)                           \
    KILN_OPTION_TEXT(OPTION, &o.rules.ID, ARG, HELP, .def = DEF, .range = RANGE, \
                     .flags = KILN_KEYED),
#define OPTION_BOOL(ID, OPTION, ARG, DEF, RANGE, HELP) \
    KILN_OPTION_BOOL(OPTION, &o.rules.ID, HELP, .def = DEF, .flags = KILN_KEYED),
#define RULE(ID, KIND, OPTION, ARG, DEF, RANGE, LOOKS_AT, HELP, ...) \
    OPTION_##KIND(ID, OPTION, ARG, DEF, RANGE, HELP)
/* clang-format off */
#define CLAMP(ID, KIND, OPTION, ARG, DEF, RANGE, LOOKS_AT, HELP, KEY, POLICY, AUTOMATIC) \
    RULE(ID, KIND, OPTION, ARG, DEF, RANGE, LOOKS_AT, HELP) \
    KILN_OPTION_ENUM(OPTION "-policy", &o.rules.ID##_policy, "WHAT", "clamp|drop", \
                     "clamp the axis, or drop the Gaussian", .def = POLICY, .flags = KILN_KEYED),
/* clang-format on */
static const kiln_opt options[] = {
#include "stages/prune/rules.def"
    KILN_FILTER_OPTIONS(&o.filter_boxes, &o.filter_spheres, &o.filter_values, "keep"),
    KILN_OPTION_NUMBER("merge-distance", &o.rules.merge_distance, "FACTOR",
                       "merge Gaussians that are at most this many median spacings apart",
                       .def = "0.1", .range = "0..10",
                       .brief = "merge within this many median spacings", .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("seed-pos", &o.rules.seed_pos, "X,Y,Z",
                       "where the cluster of --filter-cluster begins; the nearest solid voxel "
                       "stands for it, in the coordinates of the source",
                       .def = "0,0,0", .flags = KILN_KEYED),
    KILN_OPTION_BOOL("dry-run", &o.dry_run, "say what would happen, write nothing", .letter = 'n',
                     .flags = KILN_ONCE),
    KILN_OPTION_BOOL("all-cameras", &o.all_cameras,
                     "predict pairs for all cameras, not only for 32"),
    KILN_OPTION_TEXT("sizes", &o.sizes, "PIXELS",
                     "predict pairs at these sizes of the longer side, N[,N...]",
                     .brief = "predict pairs at these lengths of the longer side"),
    KILN_OPTION_NUMBER("outlier-range", &o.outlier_range, "N",
                       "rows of a range of --outlier-sor; 0: chosen by rows and memory", .def = "0",
                       .range = "0..4294967294", .flags = KILN_HIDDEN),
    KILN_OPTION_NUMBER("voxel-blocks", &o.voxel_blocks, "N",
                       "blocks of voxels in memory at a time; 0: chosen by rows and memory",
                       .def = "0", .range = "0..4194304", .flags = KILN_HIDDEN),
    KILN_OPTION_PATH("against", &o.against, "MANIFEST",
                     "also print the scales of this other bake, to compare"),
    KILN_OPTION_END,
};

static const kiln_opt_check checks[] = {KILN_FILTER_CHECKS,
                                        {"crop-box", kiln_crop_box_check},
                                        {"crop-sphere", kiln_crop_sphere_check},
                                        {"drop-row", kiln_drop_row_check},
                                        {"keep", kiln_keep_check},
                                        {"outlier-sor", kiln_outlier_sor_check},
                                        {"filter-floaters", kiln_filter_floaters_check},
                                        {"filter-cluster", kiln_filter_cluster_check},
                                        {"sizes", kiln_pruning_sizes_check},
                                        {NULL, NULL}};

static const kiln_cli cli = {.program = "kiln-prune",
                             .summary = "normalises scales and prunes what breaks renderers",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .options = options,
                             .common = kiln_common_options,
                             .checks = checks};

/* ---- input ----------------------------------------------------------------------------------- */
static kiln_status open_prune_input(kiln_run *r, kiln_pruning *p, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    KILN_TRY(kiln_run_need(r, "import", err));
    KILN_TRY(kiln_scene_get(m, &p->scene, err));
    if (p->scene.kind == KILN_SCENE_NONE)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' holds neither Gaussians nor points; import a scene that has some, "
                         "or with --random-points N",
                         kiln_manifest_path(m));
    KILN_TRY(kiln_run_need(r, "knn", err));
    if (p->scene.kind == KILN_SCENE_POINTS) {
        kiln_status st = kiln_layer_current(m, KILN_LAYER_initial, &p->input, err);
        if (st != KILN_E_STALE) return st;
        return kiln_fail(err, KILN_E_STALE,
                         "'%s' holds points that are not Gaussians yet; run kiln-knn '%s' first",
                         kiln_manifest_path(m), kiln_manifest_path(m));
    }
    KILN_TRY(kiln_layer_current(m, KILN_LAYER_source, &p->input, err));
    KILN_TRY(kiln_layer_current(m, KILN_LAYER_spacing, &p->spacing, err));
    KILN_TRY(KILN_ALLOC(&p->spacing_of, p->input->n_chunks, "the blocks", err));
    for (uint32_t i = 0; i < p->input->n_chunks; i++)
        p->spacing_of[i] = kiln_prune_find_block(p->spacing, p->input->chunks[i].name);
    return KILN_OK;
}

/* Filters look at the planes of the first block, which all others have too. */
static kiln_status bind_filters(kiln_pruning *p, kiln_error *err)
{
    memcpy(p->filters.origin, p->scene.origin, sizeof p->filters.origin);
    if (p->input->n_chunks == 0 || p->filters.filters.n == 0) return KILN_OK;
    return kiln_filters_bind(&p->filters.filters, &p->input->chunks[0], p->input->sh_degree, err);
}

/* Of the planes that are kept where no rows are merged (prune_units.h). */
static uint64_t kept_bytes(const kiln_layer *l)
{
    enum { CACHED = 4096 + 256 }; /* as kiln_layer_size_of counts */
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < l->n_chunks; i++)
        for (uint32_t k = 0; k < l->chunks[i].n_planes; k++)
            if (kiln_prune_keeps(l->chunks[i].planes[k].name))
                bytes += l->chunks[i].planes[k].data.raw_bytes + CACHED;
    return bytes;
}

static void take_prune_size(kiln_pruning *p)
{
    p->size = (kiln_prune_size){.rows = p->input->count, .blocks = kiln_layer_size_of(p->input)};
    p->cache = o.rules.merge ? p->size.blocks.all : kept_bytes(p->input);
    if (!p->spacing) return;
    p->size.blocks.planes += p->size.blocks.rows * sizeof(float);
    p->cache += kiln_layer_size_of(p->spacing).all;
}

/* What the parent holds of cameras: where a limit is `auto` of all, which are weighed first; then
 * of those that pairs are counted for, and their report as JSON. unit_ram: of a unit that looks
 * through a camera; its list is counted beside it, as a plan does: *least. */
static kiln_status foresee_views(kiln_run *r, const kiln_pruning *p, uint64_t unit_ram,
                                 uint64_t *least, kiln_error *err)
{
    enum { PAYLOAD = 1024, REPORTED = 2048 };
    uint32_t sizes[KILN_PRUNE_SIZES_MAX], n_sizes;
    kiln_scene_size size;
    KILN_TRY(kiln_pruning_sizes(p->o->sizes, sizes, &n_sizes, err));
    KILN_TRY(kiln_scene_size_get(kiln_run_manifest(r), &size, err));
    const bool judged = kiln_prune_auto_rules(&o.rules) != 0;
    const uint64_t held = kiln_pruning_held_cameras(&o, (uint32_t)size.cameras),
                   views = (uint64_t)n_sizes *
                           kiln_pruning_forecast_cameras(&o, (uint32_t)size.cameras),
                   listed = judged ? kiln_max_u64(held, views) : views;
    const uint64_t of_held =
        sizeof(kiln_camera) +
        (judged ? sizeof(kiln_prune_weight) + sizeof(bool) + sizeof(uint32_t) : 0);
    const uint64_t of_view = sizeof(kiln_prune_view) + sizeof(kiln_view_request) + REPORTED;
    kiln_run_foresee_parent(r, held * of_held + views * of_view);
    *least = listed ? unit_ram + kiln_small_list_ram(listed, 1, PAYLOAD) : 0;
    return KILN_OK;
}

/* Before the first unit, so that a cap which is refused later costs no work: first all that the
 * parent will hold, then each kind of unit. A camera's unit gets lists besides, which come from the
 * search for near-duplicates and take less than that does. */
static kiln_status need_ram(kiln_run *r, const kiln_pruning *p, kiln_error *err)
{
    enum { TILE_ROWS = 1024 };
    uint64_t views, looks, stray, voxels;
    const uint64_t stats = kiln_prune_stats_ram(&p->size) + kiln_list_ram(1);
    const uint64_t block =
        kiln_prune_block_ram(&p->size, o.rules.merge) + kiln_pruning_filters_ram(p);
    /* what a camera is weighed with */
    const uint64_t of_block = sizeof(uint32_t) + kiln_prune_marks_bytes(p->size.blocks.rows);
    const uint64_t marks = kiln_prune_auto_rules(&o.rules) ? p->input->n_chunks * of_block : 0;
    const uint64_t strays = kiln_pruning_strays_bytes(p);
    const uint64_t view = kiln_prune_pairs_ram(&p->size, TILE_ROWS) + kiln_pruning_filters_ram(p) +
                          kiln_shared_payload_ram(kiln_max_u64(p->n_rows * sizeof *p->rows, marks) +
                                                  kiln_pruning_asked_bytes(p) + strays);
    const uint64_t merges = kiln_prune_merges_ram(&p->size) + kiln_list_ram(1);
    KILN_TRY(foresee_views(r, p, view, &views, err));
    kiln_pruning_foresee_looks(r, p, &looks);
    KILN_TRY(kiln_pruning_least_strays(p, &stray, err));
    KILN_TRY(kiln_pruning_least_voxels(p, &voxels, err));
    if (strays) kiln_run_foresee_parent(r, kiln_pruning_stray_bytes(p) + 2 * strays);
    const struct {
        uint64_t ram;
        const char *what;
    } units[] = {{block + kiln_list_ram(p->input->n_chunks), "a block"},
                 {stats, "the statistics"},
                 {o.rules.merge ? merges : 0, "near-duplicates"},
                 {stray, "stray rows"},
                 {voxels, "the voxels"},
                 {views, "the pairs of a camera"},
                 {looks, "what cameras see"}};
    enum { N_UNITS = sizeof units / sizeof *units };
    for (int i = 0; i < N_UNITS; i++) kiln_run_foresee_ram(r, units[i].ram, 0);
    for (int i = 0; i < N_UNITS; i++)
        KILN_TRY(kiln_run_need_ram(r, units[i].ram, units[i].what, err));
    return KILN_OK;
}

static kiln_status key_prune_input(kiln_run *r, kiln_pruning *p, kiln_hash *out, kiln_error *err)
{
    kiln_hasher *h = kiln_run_key(r);
    kiln_key_hash(h, "input", p->input->digest);
    if (p->spacing) kiln_key_hash(h, "spacing", p->spacing->digest);
    /* crops are in the source's coordinates */
    kiln_key_bytes(h, "origin", p->scene.origin, sizeof p->scene.origin);
    kiln_pruning_key_looks(p, h);
    const kiln_status st = kiln_pruning_key_judges(r, p, h, err);
    *out = kiln_key_end(h);
    return st;
}

/* The only output of a unit. data: the caller's to free. */
typedef struct {
    const char *name;
    uint64_t bytes; /* as many as there have to be; 0 becomes as many as there are */
    void *data;
} only_output;

static kiln_status run_one(kiln_run *r, const char *what, kiln_unit *u, only_output *out,
                           kiln_error *err)
{
    uint64_t bytes;
    KILN_TRY(kiln_run_units(r, what, u, 1, err));
    KILN_TRY(kiln_unit_data(r, u, out->name, &out->data, &bytes, err));
    if (!out->bytes) out->bytes = bytes;
    if (bytes == out->bytes) return KILN_OK;
    return kiln_unit_refuse(r, u,
                            kiln_fail(err, KILN_E_IO, "its '%s' has %llu bytes instead of %llu",
                                      out->name, (unsigned long long)bytes,
                                      (unsigned long long)out->bytes),
                            err);
}

/* ---- statistics, rules, merges --------------------------------------------------------------- */
/* Order statistics of finite numbers. */
static kiln_status check_statistics(const kiln_prune_stats *s, uint64_t n, kiln_error *err)
{
    bool sound = s->n <= n && isfinite(s->median_log_scale) && isfinite(s->median_spacing2) &&
                 s->median_spacing2 >= 0;
    for (int a = 0; a < 3; a++)
        sound = sound && isfinite(s->lo[a]) && isfinite(s->hi[a]) && s->lo[a] <= s->hi[a];
    return sound ? KILN_OK
                 : kiln_fail(err, KILN_E_IO, "its statistics do not belong to this layer");
}

static kiln_status take_statistics(kiln_run *r, kiln_pruning *p, kiln_error *err)
{
    static const char *const names[] = {"means", "log_scales", "spacing2"};
    kiln_unit u = {.name = "statistics", .cost = p->input->count};
    kiln_prune_unit head = kiln_pruning_head(p, KILN_PRUNE_STATS);
    only_output out = {.name = "statistics", .bytes = sizeof p->stats};
    kiln_status st;
    kiln_hasher *h = kiln_run_key_bare(r, "statistics");
    for (uint32_t i = 0; i < p->input->n_chunks; i++) kiln_pruning_key_planes(h, p, i, names, 3);
    u.key = kiln_key_end(h);
    u.ram = head.ram = kiln_prune_stats_ram(&p->size);
    u.ram_thread = head.ram_thread = kiln_prune_stats_ram_thread(&p->size);
    u.ram_cache = p->cache + kiln_prune_ahead_ram(p->input);
    KILN_GO(kiln_pruning_set_payload(&u, &(kiln_prune_request){.head = &head}, true, err));
    KILN_GO(run_one(r, "measuring scales", &u, &out, err));
    memcpy(&p->stats, out.data, sizeof p->stats);
    KILN_GO(kiln_unit_refuse(r, &u, check_statistics(&p->stats, p->input->count, err), err));
done:
    free(out.data);
    kiln_units_release(&u, 1);
    free(u.payload);
    return st;
}

static bool has_row(const kiln_pruning *p, uint32_t block, uint32_t row)
{
    return block < p->input->n_chunks && kiln_pruning_has_block(p, block) &&
           row < p->input->chunks[block].count;
}

static kiln_status check_merges(const kiln_pruning *p, uint64_t bytes, kiln_error *err)
{
    bool sound = bytes % sizeof *p->merges == 0;
    for (uint64_t i = 0; i < p->n_merges && sound; i++) {
        const kiln_merged_row *m = &p->merges[i];
        sound = has_row(p, m->block, m->row) && has_row(p, m->into_block, m->into_row);
    }
    return sound ? KILN_OK
                 : kiln_fail(err, KILN_E_IO, "it merges rows that the layer does not have");
}

static kiln_status find_merges(kiln_run *r, kiln_pruning *p, kiln_error *err)
{
    static const char *const names[] = {"means", "log_scales", "quats", "sh0", "source_row"};
    kiln_unit u = {.name = "near-duplicates", .cost = p->input->count};
    kiln_prune_unit head = kiln_pruning_head(p, KILN_PRUNE_MERGES);
    only_output out = {.name = "merges"};
    kiln_status st;
    if (!o.rules.merge) return KILN_OK;
    head.stats = p->stats;
    head.merge_distance = (float)(o.rules.merge_distance * sqrt((double)p->stats.median_spacing2));
    head.n_rows = p->n_rows;
    head.stray_bytes = p->stray_bytes;
    kiln_hasher *h = kiln_run_key_bare(r, "merges");
    kiln_key_f64(h, "distance", (double)head.merge_distance);
    kiln_key_bytes(h, "rows", p->rows, p->n_rows * sizeof *p->rows);
    if (p->strays) kiln_key_bytes(h, "strays", p->strays, p->stray_bytes);
    for (uint32_t i = 0; i < p->input->n_chunks; i++) kiln_pruning_key_planes(h, p, i, names, 5);
    u.key = kiln_key_end(h);
    u.ram = head.ram = kiln_prune_merges_ram(&p->size);
    u.ram_cache = p->cache;
    KILN_GO(kiln_pruning_set_payload(
        &u, &(kiln_prune_request){.head = &head, .rows = p->rows, .strays = p->strays}, true, err));
    KILN_GO(run_one(r, "looking for near-duplicates", &u, &out, err));
    p->merges = out.data;
    p->n_merges = out.bytes / sizeof *p->merges;
    KILN_GO(kiln_unit_refuse(r, &u, check_merges(p, out.bytes, err), err));
done:
    kiln_units_release(&u, 1);
    free(u.payload);
    return st;
}

static kiln_status look_at_other(kiln_run *r, kiln_pruning *p, kiln_error *err)
{
    kiln_unit u = {.name = "the other bake", .volatile_result = true, .cost = 1};
    kiln_prune_unit head = kiln_pruning_head(p, KILN_PRUNE_SCALES);
    only_output out = {.name = "tally", .bytes = sizeof p->other};
    float largest;
    kiln_status st;
    if (!o.against) return KILN_OK;
    head.text_bytes = strlen(o.against) + 1;
    u.ram = head.ram = kiln_prune_scales_ram(&p->size);
    KILN_GO(kiln_pruning_set_payload(&u, &(kiln_prune_request){.head = &head, .text = o.against},
                                     true, err));
    KILN_GO(run_one(r, "reading the other bake", &u, &out, err));
    memcpy(&p->other, out.data, sizeof p->other);
    KILN_GO(kiln_unit_struct(r, &u, "largest", &largest, sizeof largest, err));
    p->largest[2] = kiln_pruning_larger(0, (double)largest);
done:
    free(out.data);
    kiln_units_release(&u, 1);
    free(u.payload);
    return st;
}

/* For `auto`. Nothing is said where near-duplicates are looked for, or another bake is read: how
 * long that takes depends on more.
 */
static kiln_status expect_work(kiln_run *r, const kiln_pruning *p, uint32_t n_sizes,
                               kiln_error *err)
{
    kiln_scene_size size;
    if (o.rules.merge || o.against) return KILN_OK;
    KILN_TRY(kiln_scene_size_get(kiln_run_manifest(r), &size, err));
    const double views = kiln_pruning_forecast_cameras(&o, (uint32_t)size.cameras);
    double asked =
        strcmp(o.rules.outlier_sor, "off") != 0 ? kiln_work_knn((double)p->input->count) : 0;
    for (uint32_t i = 0; i < p->n_looks; i++)
        asked += kiln_pruning_looks_s(p, &(kiln_looks_of_unit){.first = i, .n = 1});
    kiln_run_expect_work(r, kiln_work_prune((double)p->input->count, views * n_sizes) + asked);
    return KILN_OK;
}

/* ---- run ------------------------------------------------------------------------------------- */
/* Options that change no result but ask for numbers: worth a look at a pruned scene too. */
static bool asks_for_numbers(void) { return o.all_cameras || o.sizes || o.against; }

/* They are not stored, but a plan is made for them. */
static kiln_hash hash_of_numbers(void)
{
    kiln_hasher *h = kiln_hasher_new();
    kiln_key_u64(h, "all-cameras", o.all_cameras);
    kiln_key_text(h, "sizes", o.sizes ? o.sizes : "");
    kiln_key_text(h, "against", o.against ? o.against : "");
    return kiln_key_end(h);
}

/* With --all-cameras there may be many. */
static kiln_status bound_views(kiln_run *r, kiln_error *err)
{
    json_t *views = json_incref(json_object_get(kiln_run_report(r), "cameras"));
    kiln_status st = kiln_run_report_rows(r, "cameras", err);
    for (size_t i = 0; i < json_array_size(views) && st == KILN_OK; i++)
        st = kiln_run_report_row(r, json_incref(json_array_get(views, i)), err);
    json_decref(views);
    return st;
}

static kiln_status report_pruning(kiln_run *r, const kiln_pruning *p, kiln_error *err)
{
    const bool synthetic = p->n_cameras > 0 && p->cameras[0].synthetic;
    const bool cluster = strcmp(o.rules.filter_cluster, "off") != 0;
    const kiln_prune_report what = {.given = &o.rules,
                                    .options = &p->chosen,
                                    .judgement = &p->judgement,
                                    .of_points = p->scene.kind == KILN_SCENE_POINTS,
                                    .synthetic = synthetic ? p->n_cameras : 0,
                                    .stats = &p->stats,
                                    .tally = &p->tally,
                                    .filtered = p->filters.filters.n ? p->filtered : NULL,
                                    .other = o.against ? &p->other : NULL,
                                    .against = o.against,
                                    .largest = {p->largest[0], p->largest[1], p->largest[2]},
                                    .views = p->views,
                                    .n_views = p->n_views,
                                    .looks = p->n_looks,
                                    .masks = p->n_masks,
                                    .curve = p->n_looks > 0 && o.dry_run ? &p->curve : NULL,
                                    .cluster = cluster ? &p->cluster : NULL,
                                    .dry_run = o.dry_run,
                                    .all = kiln_run_prints_all(r, o.dry_run) || asks_for_numbers()};
    KILN_TRY(kiln_prune_report_json(&what, kiln_run_report(r), err));
    KILN_TRY(bound_views(r, err));
    if (kiln_run_prints(r)) kiln_prune_report_print(&what);
    return kiln_prune_report_warn(&what, p->n_rows, kiln_run_report(r), err);
}

static kiln_status bake_pruned(kiln_run *r, kiln_pruning *p, kiln_error *err)
{
    uint32_t sizes[KILN_PRUNE_SIZES_MAX], n_sizes;
    kiln_hash key;
    bool fresh;
    KILN_TRY(kiln_filters_parse(o.filter_boxes, o.filter_spheres, o.filter_values,
                                &p->filters.filters, err));
    KILN_TRY(kiln_pruning_sizes(o.sizes, sizes, &n_sizes, err));
    KILN_TRY(kiln_prune_rows_parse("--drop-row", o.rules.drop_row, &p->rows, &p->n_rows, err));
    KILN_TRY(open_prune_input(r, p, err));
    KILN_TRY(bind_filters(p, err));
    take_prune_size(p);
    KILN_TRY(kiln_pruning_take_looks(r, p, err));
    KILN_TRY(key_prune_input(r, p, &key, err));
    KILN_TRY(kiln_run_is_fresh(r, key, &fresh, err));
    KILN_TRY(kiln_run_agree(r, "numbers", hash_of_numbers(), err));
    if (fresh && !asks_for_numbers()) return kiln_run_nothing_to_do(r, err);
    KILN_TRY(need_ram(r, p, err));
    KILN_TRY(expect_work(r, p, n_sizes, err));
    KILN_TRY(kiln_pruning_find_strays(r, p, err));
    KILN_TRY(kiln_pruning_search_voxels(r, p, err));
    KILN_TRY(take_statistics(r, p, err));
    KILN_TRY(find_merges(r, p, err));
    KILN_TRY(kiln_pruning_judge(r, p, err));
    KILN_TRY(kiln_pruning_score(r, p, err));
    KILN_TRY(kiln_pruning_blocks(r, p, err));
    KILN_TRY(kiln_pruning_predict(r, p, err));
    KILN_TRY(kiln_pruning_draw_curve(r, p, err));
    KILN_TRY(look_at_other(r, p, err));
    KILN_TRY(report_pruning(r, p, err));
    return fresh || kiln_run_is_once(r) ? KILN_OK
                                        : kiln_run_commit(r, key, kiln_pruning_put_layer, p, err);
}

/* The other bake is read last, so it is opened once in front of all work. */
static kiln_status check_against(const kiln_run *r, kiln_error *err)
{
    kiln_manifest *m;
    if (!o.against) return KILN_OK;
    const kiln_status st =
        kiln_manifest_open(o.against, KILN_OPEN_READ, "prune", kiln_run_allow_network(r), &m, err);
    if (st == KILN_OK)
        kiln_manifest_close(m);
    else
        kiln_note(err, "--against");
    return st;
}

static kiln_status check_prune(kiln_run *r, kiln_error *err)
{
    kiln_filters filters;
    /* not too many of them */
    KILN_TRY(kiln_filters_parse(o.filter_boxes, o.filter_spheres, o.filter_values, &filters, err));
    return check_against(r, err);
}

static kiln_status run_prune(kiln_run *r, kiln_error *err)
{
    kiln_pruning *p;
    KILN_TRY(KILN_ALLOC(&p, 1, "the state of prune", err));
    p->o = &o;
    kiln_status st = bake_pruned(r, p, err);
    kiln_pruning_release(p);
    free(p);
    return st;
}

const kiln_stage_program kiln_stage_prune = {.name = "prune",
                                             .cli = &cli,
                                             .open = KILN_OPEN_WRITE,
                                             .flags = KILN_PROGRAM_PACKS | KILN_PROGRAM_ROUNDS,
                                             .check = check_prune,
                                             .run = run_prune,
                                             .unit = kiln_prune_compute};
