/* kiln-info -- what a manifest holds: stages with their state, a plan that stands, what is in quarantine, counts, the scene,
 * cameras with their metrics.
 *
 * With --cameras it writes the cameras alone. Else everything is first gathered as the JSON document that --json prints; the table
 * for people is printed from it, so that the two cannot disagree. Cameras carry the numbers of one profile, which is named: the one
 * that most images have. */
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "schema/claim.h"
#include "schema/layers.h"
#include "stages/engine/engine.h"
#include "stages/engine/json_text.h"
#include "stages/engine/stage_graph.h"
#include "stages/import/cameras/cameras_list_text.h"
#include "stages/import/join.h"
#include "stages/lod/levels_info.h"
#include "stages/survey/bake_views.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool with_levels, cameras_alone;
static const char *output;

static const kiln_opt options[] = {
    {"lod", 0, KILN_OPT_BOOL, &with_levels, NULL, NULL, NULL,
     "say how many Gaussians and bytes each level of detail has, and its measured error", 0},
    {"cameras", 0, KILN_OPT_BOOL, &cameras_alone, NULL, NULL, NULL,
     "write the cameras alone, as the JSON list that kiln-render --cameras takes, to be changed and drawn", 0},
    {"output", 'o', KILN_OPT_PATH, &output, "FILE", "-", NULL, "with --cameras: the file to write; -: to stdout", 0},
    {NULL, 0, KILN_OPT_END, NULL, NULL, NULL, NULL, NULL, 0}};

static const kiln_cli cli = {.program = "kiln-info",
                             .summary = "says what a manifest holds and which stages are fresh",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .options = options,
                             .common = kiln_common_options};

static const char *const stage_names[] = {
#define STAGE(name, ...) #name,
#include "pipelines/stages.def"
#undef STAGE
};
enum { N_STAGES = sizeof stage_names / sizeof *stage_names };

/* ---- JSON helpers ------------------------------------------------------------------------------------------------ */
/* Takes `value`; a NULL one, or one that cannot be added, is out of memory. */
static kiln_status set(json_t *object, const char *key, json_t *value, kiln_error *err)
{
    if (json_object_set_new(object, key, value) == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_NOMEM, "out of memory for '%s'", key);
}

static json_t *count(uint64_t v) { return json_integer((json_int_t)v); }

/* Text that is JSON itself, as an object; as it stands where it is damaged. */
static json_t *parsed(const char *text)
{
    json_t *v;
    if (kiln_json_parse(text, strlen(text), JSON_DECODE_ANY, "a report", &v, NULL, NULL) != KILN_OK) return NULL;
    return v ? v : kiln_json_string(text);
}

static json_t *vector(const double v[3])
{
    return json_pack("[o, o, o]", kiln_json_real(v[0]), kiln_json_real(v[1]), kiln_json_real(v[2]));
}

static json_t *utc(int64_t ns)
{
    char text[32];
    time_t s = (time_t)(ns / 1000000000);
    struct tm t;
    if (ns == 0 || !gmtime_r(&s, &t)) return json_null();
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &t);
    return json_string(text);
}

/* ---- stages, scene, counts --------------------------------------------------------------------------------------- */
static kiln_status add_stage(kiln_manifest *m, const char *name, json_t *list, kiln_error *err)
{
    kiln_stage_row row;
    kiln_run_row last = {0};
    bool ran;
    KILN_TRY(kiln_stage_get(m, name, &row, err));
    KILN_TRY(kiln_run_row_last(m, name, &ran, &last, err));
    double seconds = ran ? ((double)last.stop_ns - (double)last.start_ns) * 1e-9 : NAN; /* a stranger's times may be any */
    json_t *s = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "name", name, "state", kiln_stage_state_name(row.state), "version",
                          row.state == KILN_STAGE_MISSING ? json_null() : count(row.version), "finished", utc(row.finished_ns),
                          "seconds", kiln_json_real(seconds), "device", ran ? kiln_json_string(last.device) : json_null(), "run",
                          ran ? parsed(last.counters) : json_null());
    kiln_run_row_release(&last);
    if (json_array_append_new(list, s) == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_NOMEM, "out of memory for stage '%s'", name);
}

static kiln_status add_stages(kiln_manifest *m, json_t *info, kiln_error *err)
{
    json_t *list = json_array();
    KILN_TRY(set(info, "stages", list, err));
    for (int i = 0; i < N_STAGES; i++) KILN_TRY(add_stage(m, stage_names[i], list, err));
    return KILN_OK;
}

/* Units that failed on every device: what partial stages lack. */
static kiln_status add_quarantine(kiln_manifest *m, json_t *info, kiln_error *err)
{
    json_t *list = json_array();
    KILN_TRY(set(info, "quarantine", list, err));
    for (int i = 0; i < N_STAGES; i++) {
        kiln_quarantine_row *rows;
        uint32_t n;
        KILN_TRY(kiln_quarantine_get(m, stage_names[i], &rows, &n, err));
        for (uint32_t k = 0; k < n; k++) {
            const kiln_quarantine_row *q = &rows[k];
            json_t *one =
                json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "stage", kiln_json_string(q->stage), "unit", kiln_json_string(q->name),
                          "attempts", count(q->attempts), "device", kiln_json_string(q->device), "reason",
                          kiln_json_string(q->reason), "failed", utc(q->failed_ns));
            if (json_array_append_new(list, one) == 0) continue;
            free(rows);
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for the quarantine");
        }
        free(rows);
    }
    return KILN_OK;
}

/* null: no units are being computed on other hosts. */
static kiln_status add_plan(kiln_manifest *m, json_t *info, kiln_error *err)
{
    kiln_claim c;
    bool there;
    kiln_error why = {0};
    const kiln_status st = kiln_claim_read(kiln_manifest_path(m), &there, &c, &why);
    if (st == KILN_E_INPUT) { /* what lies there is no claim: the next writer stops at it */
        kiln_warn("%s", why.msg);
        return set(info, "plan", json_null(), err);
    }
    if (st != KILN_OK) return kiln_fail(err, st, "%s", why.msg);
    uint64_t due = 0;
    for (uint64_t i = 0; i < c.n_due; i++) due += c.due[i].last - c.due[i].first + 1;
    json_t *plan = json_null();
    if (there)
        plan = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "stage", kiln_json_string(c.stage), "what",
                         kiln_json_string(c.what), "units", count(c.n_units), "due", count(due), "tasks", count(c.tasks), "host",
                         kiln_json_string(c.host), "start", kiln_json_string(c.start));
    kiln_claim_release(&c);
    return set(info, "plan", plan, err);
}

static json_t *scene_json(const kiln_scene *s)
{
    static const char *const kinds[] = {"none", "points", "splats"};
    json_t *scene = json_pack("{s:o, s:s, s:o, s:o, s:i, s:b, s:o, s:o, s:o, s:o, s:o}", "name", kiln_json_string(s->name), "kind",
                              kinds[s->kind], "source", kiln_json_string(s->source_path), "format",
                              kiln_json_string(s->source_format), "sh_degree", (int)s->sh_degree, "antialiased", s->antialiased,
                              "frame", kiln_json_string(s->frame), "up_axis", kiln_json_string(s->up_axis), "unit",
                              kiln_json_string(s->unit), "origin", vector(s->origin), "transforms", parsed(s->transforms));
    json_t *root =
        s->has_root ? json_pack("{s:o, s:o}", "centre", vector(s->root_centre), "half", kiln_json_real(s->root_half)) : json_null();
    json_t *background = s->has_background ? vector(s->background) : json_null();
    if (json_object_set_new(scene, "root", root) == 0 && json_object_set_new(scene, "background", background) == 0 &&
        json_object_set_new(scene, "notes", parsed(s->notes)) == 0)
        return scene;
    json_decref(scene);
    return NULL;
}

/* ---- rows, by layer ------------------------------------------------------------------------------------------------ */
static bool has_rows(int kind) { return kiln_layer_kinds[kind].form >= KILN_FORM_DRAWABLE; }

static kiln_status get_layers(kiln_manifest *m, kiln_layer *layers[KILN_LAYER_KINDS], kiln_error *err)
{
    for (int i = 0; i < KILN_LAYER_KINDS; i++) {
        const kiln_status st = has_rows(i) ? kiln_layer_get(m, kiln_layer_kinds[i].name, &layers[i], err) : KILN_OK;
        if (st != KILN_OK && st != KILN_E_STALE) return st;
    }
    return KILN_OK;
}

static const json_t *stage_of(const json_t *info, const char *name)
{
    const json_t *list = json_object_get(info, "stages");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *s = json_array_get(list, i);
        if (strcmp(json_string_value(json_object_get(s, "name")), name) == 0) return s;
    }
    return NULL;
}

/* What a partial stage lacks is known only as long as its output is of its input: no stale one is asked. */
static bool is_partial(const json_t *info, const char *stage)
{
    const char *state = json_string_value(json_object_get(stage_of(info, stage), "state"));
    return state && strcmp(state, kiln_stage_state_name(KILN_STAGE_PARTIAL)) == 0;
}

/* Rows in blocks that `to`, made from `from` block by block, does not have. */
static uint64_t rows_of_gaps(const kiln_layer *from, const kiln_layer *to)
{
    uint64_t rows = 0;
    uint32_t k = 0; /* blocks are in the order of their names */
    if (!from || !to) return 0;
    for (uint32_t i = 0; i < from->n_chunks; i++) {
        while (k < to->n_chunks && strcmp(to->chunks[k].name, from->chunks[i].name) < 0) k++;
        if (k == to->n_chunks || strcmp(to->chunks[k].name, from->chunks[i].name) != 0) rows += from->chunks[i].count;
    }
    return rows;
}

static uint64_t import_lacks(const json_t *info)
{
    const json_t *report = json_object_get(stage_of(info, "import"), "run");
    return is_partial(info, "import") ? (uint64_t)json_integer_value(json_object_get(report, "rows_quarantined")) : 0;
}

/* Quarantined: rows that are missing because units failed, whichever stage gave them up. They are no rows that a rule pruned. */
static kiln_status count_lacks(const json_t *info, kiln_layer *const layers[KILN_LAYER_KINDS], json_t *counts, kiln_error *err)
{
    const kiln_layer *before = layers[KILN_LAYER_initial] ? layers[KILN_LAYER_initial] : layers[KILN_LAYER_source],
                     *after = layers[KILN_LAYER_pruned], *baked = layers[KILN_LAYER_baked];
    const uint64_t by_prune = is_partial(info, "prune") ? rows_of_gaps(before, after) : 0;
    uint64_t lacks = import_lacks(info) + by_prune;
    if (is_partial(info, "knn")) lacks += rows_of_gaps(layers[KILN_LAYER_source], layers[KILN_LAYER_initial]);
    if (is_partial(info, "chunk") && after && baked && after->count > baked->count) lacks += after->count - baked->count;
    KILN_TRY(set(counts, "quarantined", before || lacks ? count(lacks) : json_null(), err));
    const bool known = before && after && before->count >= after->count + by_prune;
    return set(counts, "pruned_away", known ? count(before->count - after->count - by_prune) : json_null(), err);
}

/* Rows of each layer that there is; chunks: of the baked one. */
static kiln_status add_layer_counts(kiln_manifest *m, const json_t *info, json_t *counts, kiln_error *err)
{
    kiln_layer *layers[KILN_LAYER_KINDS] = {NULL};
    kiln_status st = KILN_OK;
    KILN_GO(get_layers(m, layers, err));
    for (int i = 0; i < KILN_LAYER_KINDS; i++)
        if (has_rows(i)) KILN_GO(set(counts, kiln_layer_kinds[i].name, layers[i] ? count(layers[i]->count) : json_null(), err));
    KILN_GO(set(counts, "chunks", layers[KILN_LAYER_baked] ? count(layers[KILN_LAYER_baked]->n_chunks) : json_null(), err));
    KILN_GO(count_lacks(info, layers, counts, err));
done:
    for (int i = 0; i < KILN_LAYER_KINDS; i++) kiln_layer_free(layers[i]);
    return st;
}

static kiln_status add_scene(kiln_manifest *m, json_t *info, kiln_error *err)
{
    kiln_scene *s = NULL;
    json_t *counts = json_object();
    KILN_TRY(set(info, "counts", counts, err));
    KILN_TRY(KILN_ALLOC(&s, 1, "a scene", err));
    kiln_status st = kiln_scene_get(m, s, err);
    bool imported = st == KILN_OK;
    if (st == KILN_E_STALE) st = KILN_OK;
    if (st == KILN_OK) st = set(info, "scene", imported ? scene_json(s) : json_null(), err);
    if (st == KILN_OK) st = set(counts, "rows_read", imported ? count(s->rows_read) : json_null(), err);
    if (st == KILN_OK) st = set(counts, "rows_dropped", imported ? count(s->rows_dropped) : json_null(), err);
    if (st == KILN_OK) st = add_layer_counts(m, info, counts, err);
    free(s);
    return st;
}

/* ---- cameras and their metrics ----------------------------------------------------------------------------------- */
/* Of kiln-render --fast: near the exact picture, not that picture. */
static bool is_fast(const kiln_image *i) { return strcmp(i->device_kind, "cuda-fast") == 0; }

static json_t *camera_json(const kiln_camera *c, const kiln_image *image, const kiln_tile_table *table)
{
    return json_pack("{s:o, s:o, s:I, s:I, s:o, s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o, s:b}", "name", kiln_json_string(c->name),
                     "split", kiln_json_string(c->split), "width", (json_int_t)c->width, "height", (json_int_t)c->height, "photo",
                     c->photo[0] ? kiln_json_string(c->photo) : json_null(), "mask",
                     c->mask[0] ? kiln_json_string(c->mask) : json_null(), "distorted", c->distorted, "synthetic", c->synthetic,
                     "pairs",
                     image   ? count(image->pairs)
                     : table ? count(table->pairs)
                             : json_null(),
                     "visible",
                     image   ? count(image->visible)
                     : table ? count(table->visible)
                             : json_null(),
                     "psnr", kiln_json_real(image ? image->psnr : NAN), "ssim", kiln_json_real(image ? image->ssim : NAN), "image",
                     image && image->path[0] ? kiln_json_string(image->path) : json_null(), "fast", image && is_fast(image));
}

/* Means over the cameras of the test split that have both numbers. */
typedef struct {
    double psnr, ssim;
    uint64_t n;
} test_sums;

static void add_to_test(test_sums *t, const kiln_camera *c, const kiln_image *image)
{
    if (!image || strcmp(c->split, "test") != 0 || isnan(image->psnr) || isnan(image->ssim)) return;
    t->psnr += image->psnr;
    t->ssim += image->ssim;
    t->n++;
}

static kiln_status add_cameras(const kiln_bake_views *v, json_t *info, kiln_error *err)
{
    json_t *list = json_array();
    test_sums test = {0};
    uint64_t photos = 0;
    KILN_TRY(set(info, "cameras", list, err));
    for (uint32_t i = 0; i < v->n_cameras; i++) {
        const kiln_camera *c = &v->cameras[i];
        const kiln_image *image = kiln_bake_view_image(v, c->name);
        photos += c->photo[0] != '\0';
        add_to_test(&test, c, image);
        if (json_array_append_new(list, camera_json(c, image, kiln_bake_view_table(v, c->name))) != 0)
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for camera '%s'", c->name);
    }
    json_t *counts = json_object_get(info, "counts");
    KILN_TRY(set(counts, "cameras", count(v->n_cameras), err));
    KILN_TRY(set(counts, "photos", count(photos), err));
    KILN_TRY(set(counts, "tables", count(v->n_tables), err));
    KILN_TRY(set(counts, "images", count(v->n_images), err));
    json_t *profile = v->profile[0] ? json_pack("{s:o, s:b, s:o}", "name", kiln_json_string(v->profile), "antialiased",
                                                v->antialiased, "near", kiln_json_real(v->near_m))
                                    : json_null();
    KILN_TRY(set(info, "profile", profile, err));
    return set(info, "test",
               json_pack("{s:o, s:o, s:o}", "psnr", kiln_json_real(test.n ? test.psnr / (double)test.n : NAN), "ssim",
                         kiln_json_real(test.n ? test.ssim / (double)test.n : NAN), "views", count(test.n)),
               err);
}

/* How far the fast pictures are from exact ones, as far as those were drawn, too. */
typedef struct {
    uint64_t n, n_measured;
    double least_db; /* INFINITY: the same bits */
} fast_sums;

static kiln_status add_to_fast(kiln_manifest *m, const kiln_image *image, fast_sums *f, kiln_error *err)
{
    kiln_unit_result unit;
    bool found;
    KILN_TRY(kiln_unit_find(m, image->key, &found, &unit, err));
    json_t *counters = found ? parsed(unit.counters) : NULL, *db = json_object_get(counters, "fast_db");
    if (json_is_number(db) || json_is_string(db)) { /* a string: "inf" */
        f->n_measured++;
        f->least_db = fmin(f->least_db, json_is_number(db) ? json_number_value(db) : INFINITY);
    }
    f->n++;
    json_decref(counters);
    kiln_unit_result_release(&unit);
    return KILN_OK;
}

static kiln_status add_fast(kiln_manifest *m, const kiln_bake_views *v, json_t *info, kiln_error *err)
{
    fast_sums f = {.least_db = INFINITY};
    for (uint32_t i = 0; i < v->n_images; i++)
        if (is_fast(&v->images[i])) KILN_TRY(add_to_fast(m, &v->images[i], &f, err));
    if (f.n == 0) return set(info, "fast", json_null(), err);
    json_t *least = f.n_measured && isinf(f.least_db) ? json_string("inf") : kiln_json_real(f.least_db);
    return set(info, "fast", json_pack("{s:o, s:o, s:o}", "images", count(f.n), "measured", count(f.n_measured), "least_db", least),
               err);
}

/* Photos that kiln-render found damaged or gone: their cameras have no metric. */
static kiln_status add_damaged_of(kiln_manifest *m, const kiln_image *image, json_t *rows, kiln_error *err)
{
    kiln_unit_result unit;
    bool found;
    int failed = 0;
    KILN_TRY(kiln_unit_find(m, image->key, &found, &unit, err));
    json_t *counters = found ? parsed(unit.counters) : NULL, *note = json_object_get(counters, "note");
    if (json_is_string(note))
        failed = json_array_append_new(rows, json_pack("{s:o, s:O}", "camera", kiln_json_string(image->camera), "reason", note));
    json_decref(counters);
    kiln_unit_result_release(&unit);
    return failed ? kiln_fail(err, KILN_E_NOMEM, "out of memory for the report") : KILN_OK;
}

static kiln_status add_damaged(kiln_manifest *m, const kiln_bake_views *v, json_t *info, kiln_error *err)
{
    json_t *rows = json_array();
    KILN_TRY(set(info, "damaged_photos", rows, err));
    for (uint32_t i = 0; i < v->n_images; i++)
        if (!isfinite(v->images[i].psnr)) KILN_TRY(add_damaged_of(m, &v->images[i], rows, err));
    return set(json_object_get(info, "counts"), "photos_damaged", count(json_array_size(rows)), err);
}

static kiln_status add_views(kiln_manifest *m, json_t *info, kiln_error *err)
{
    kiln_bake_views v;
    kiln_status st = KILN_OK;
    KILN_GO(kiln_bake_views_get(m, &v, err));
    KILN_GO(add_cameras(&v, info, err));
    KILN_GO(add_fast(m, &v, info, err));
    KILN_GO(add_damaged(m, &v, info, err));
done:
    kiln_bake_views_release(&v);
    return st;
}

static kiln_status add_levels(kiln_manifest *m, json_t *info, kiln_error *err)
{
    json_t *levels;
    KILN_TRY(kiln_levels_info(m, &levels, err));
    return set(info, "levels", levels, err);
}

/* ---- the table for people ---------------------------------------------------------------------------------------- */
static const char *text_of(const json_t *object, const char *key, const char *none)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s && *s ? s : none;
}

static const char *count_text(const json_t *object, const char *key, char buf[32])
{
    json_t *v = json_object_get(object, key);
    snprintf(buf, 32, json_is_integer(v) ? "%" JSON_INTEGER_FORMAT : "-", json_integer_value(v));
    return buf;
}

static const char *real_text(const json_t *object, const char *key, int digits, char buf[32])
{
    json_t *v = json_object_get(object, key);
    if (json_is_real(v))
        snprintf(buf, 32, "%.*f", digits, json_real_value(v));
    else
        strcpy(buf, "-");
    return buf;
}

/* A stage that nobody asked for is not missing. */
static bool is_unasked(const json_t *stage)
{
    const kiln_stage_info *known = kiln_stage_find(text_of(stage, "name", ""));
    return known && known->asked && !strcmp(text_of(stage, "state", ""), kiln_stage_state_name(KILN_STAGE_MISSING));
}

static void print_stages(const json_t *info)
{
    size_t i;
    json_t *s;
    char seconds[32];
    kiln_print_gap();
    kiln_print("%-8s  %-8s  %9s  %-20s  %s", "stage", "state", "seconds", "finished", "device");
    json_array_foreach(json_object_get(info, "stages"), i, s)
    {
        if (is_unasked(s)) continue;
        kiln_print("%-8s  %-8s  %9s  %-20s  %s", text_of(s, "name", "?"), text_of(s, "state", "?"),
                   real_text(s, "seconds", 2, seconds), text_of(s, "finished", "-"), text_of(s, "device", "-"));
    }
}

static void print_plan(const json_t *info)
{
    const json_t *p = json_object_get(info, "plan");
    char due[32], tasks[32];
    if (!json_is_object(p)) return;
    kiln_print_gap();
    kiln_print("planned: %s units of kiln-%s (%s) for %s tasks, since %s on host %s; --gather brings them in",
               count_text(p, "due", due), text_of(p, "stage", "?"), text_of(p, "what", "?"), count_text(p, "tasks", tasks),
               text_of(p, "start", "?"), text_of(p, "host", "?"));
}

static void print_quarantine(const json_t *info)
{
    size_t i;
    json_t *q;
    char attempts[32];
    json_array_foreach(json_object_get(info, "quarantine"), i, q)
    {
        if (i == 0) {
            kiln_print_gap();
            kiln_print("quarantine");
        }
        kiln_print("%s: '%s' failed %s times, the last on %s: %s", text_of(q, "stage", "?"), text_of(q, "unit", "?"),
                   count_text(q, "attempts", attempts), text_of(q, "device", "?"), text_of(q, "reason", "?"));
    }
}

static void print_scene(const json_t *info)
{
    const json_t *s = json_object_get(info, "scene"), *c = json_object_get(info, "counts");
    static const char *const keys[] = {"rows_read", "rows_dropped", "pruned_away", "quarantined", "baked",
                                       "chunks",    "cameras",      "photos",      "tables",      "images"};
    static const char *const words[] = {"rows read", "dropped", "pruned away", "quarantined", "baked",
                                        "chunks",    "cameras", "photos",      "tile tables", "images"};
    char buf[32];
    kiln_print("%s: %s '%s' (%s), SH degree %s%s", text_of(info, "manifest", "?"), text_of(s, "kind", "nothing imported"),
               text_of(s, "source", ""), text_of(s, "format", "-"), count_text(s, "sh_degree", buf),
               json_is_true(json_object_get(s, "antialiased")) ? ", antialiased" : "");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        kiln_print_part("%s%s %s", i ? ", " : "", words[i], count_text(c, keys[i], buf));
    kiln_print_gap();
}

static void print_files(const json_t *files)
{
    enum { NAMED = 5 };
    const size_t n = json_array_size(files);
    if (n == 0) return;
    kiln_print("%zu files joined", n);
    for (size_t i = 0; i < n && i < NAMED; i++) {
        const json_t *f = json_array_get(files, i), *rows = json_is_object(f) ? json_object_get(f, "rows") : f;
        kiln_print("file %zu: %s%s%lld rows", i, text_of(f, "path", ""), json_is_object(f) ? ", " : "",
                   (long long)json_integer_value(rows));
    }
    if (n > NAMED) kiln_print("... and %zu more (--json)", n - NAMED);
}

/* Several files as one, and what was moved by --translate, --rotate and --scale. */
static void print_joined_and_moved(const json_t *info)
{
    size_t i;
    const json_t *scene = json_object_get(info, "scene"), *o;
    print_files(json_object_get(json_object_get(scene, "notes"), "files"));
    json_array_foreach(json_object_get(scene, "transforms"), i, o)
    {
        char text[KILN_MOVE_TEXT];
        const json_t *file = json_object_get(o, "file");
        kiln_move m;
        if (!kiln_move_of_json(o, &m)) continue;
        kiln_move_text(&m, text, sizeof text);
        if (file)
            kiln_print("moved: file %lld: %s", (long long)json_integer_value(file), text);
        else
            kiln_print("moved: %s", text);
    }
}

static void print_cameras(const json_t *info)
{
    size_t i;
    json_t *c;
    char size[32], pairs[32], visible[32], psnr[32], ssim[32];
    const json_t *p = json_object_get(info, "profile"), *test = json_object_get(info, "test");
    if (json_array_size(json_object_get(info, "cameras")) == 0) return;
    if (json_is_object(p)) {
        kiln_print_gap();
        kiln_print("profile %s%s, near %g", text_of(p, "name", "?"),
                   json_is_true(json_object_get(p, "antialiased")) ? ", antialiased" : "",
                   json_number_value(json_object_get(p, "near")));
    }
    kiln_print_gap();
    kiln_print("%-28s  %-5s  %-11s  %10s  %10s  %7s  %7s", "camera", "split", "size", "visible", "pairs", "PSNR", "SSIM");
    json_array_foreach(json_object_get(info, "cameras"), i, c)
    {
        snprintf(size, sizeof size, "%lldx%lld", (long long)json_integer_value(json_object_get(c, "width")),
                 (long long)json_integer_value(json_object_get(c, "height")));
        kiln_print("%-28s  %-5s  %-11s  %10s  %10s  %7s  %7s", text_of(c, "name", "?"), text_of(c, "split", "?"), size,
                   count_text(c, "visible", visible), count_text(c, "pairs", pairs), real_text(c, "psnr", 3, psnr),
                   real_text(c, "ssim", 5, ssim));
    }
    if (json_integer_value(json_object_get(test, "views")) > 0)
        kiln_print("%-28s  %-5s  %-11s  %10s  %10s  %7s  %7s", "mean", "test", "", "", "", real_text(test, "psnr", 3, psnr),
                   real_text(test, "ssim", 5, ssim));
}

static void print_damaged(const json_t *info)
{
    enum { NAMED = 5 };
    const json_t *rows = json_object_get(info, "damaged_photos");
    const size_t n = json_array_size(rows);
    if (n == 0) return;
    kiln_print_gap();
    kiln_print("%zu photos are damaged or gone, their cameras are not measured", n);
    for (size_t i = 0; i < n && i < NAMED; i++)
        kiln_print("%s: %s", text_of(json_array_get(rows, i), "camera", "?"), text_of(json_array_get(rows, i), "reason", "?"));
    if (n > NAMED) kiln_print("... and %zu more (--json)", n - NAMED);
}

static void print_fast(const json_t *info)
{
    const json_t *f = json_object_get(info, "fast");
    char images[32], measured[32], db[32];
    if (!json_is_object(f)) return;
    kiln_print_part("%s pictures drawn with --fast, not exactly; %s measured", count_text(f, "images", images),
                    count_text(f, "measured", measured));
    if (json_integer_value(json_object_get(f, "measured")) > 0)
        kiln_print_part(": at least %s dB from the exact ones", text_of(f, "least_db", real_text(f, "least_db", 1, db)));
    kiln_print_gap();
}

static kiln_status print_json(const json_t *info, kiln_error *err)
{
    char *text = kiln_json_text(info, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    if (!text) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
    kiln_print_json(text); /* stdout is checked at the end of main */
    free(text);
    return KILN_OK;
}

/* ---- the cameras as a file ---------------------------------------------------------------------------------------- */
static kiln_status write_cameras(kiln_run *r, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    kiln_status st = KILN_OK;
    kiln_scene *scene = NULL;
    kiln_camera *cameras = NULL;
    kiln_similarity move;
    kiln_buffer text = {0};
    uint32_t n;
    if (strcmp(output, "-") != 0) KILN_TRY(kiln_run_check_target(r, output, err));
    KILN_GO(KILN_ALLOC(&scene, 1, "a scene", err));
    KILN_GO(kiln_scene_get(m, scene, err));
    KILN_GO(kiln_transforms_moves(scene->transforms, &move, err));
    KILN_GO(kiln_cameras_get(m, &cameras, &n, err));
    KILN_GO(kiln_cameras_list_text(cameras, n, &move, &text, err));
    if (strcmp(output, "-") == 0) {
        kiln_print_json((const char *)text.data);
        goto done;
    }
    text.data[text.size - 1] = '\n';
    KILN_GO(kiln_file_write(output, text.data, text.size, err));
    kiln_say("%u cameras written to '%s'", n, output);
done:
    kiln_buffer_release(&text);
    free(cameras);
    free(scene);
    return st;
}

static kiln_status check_options(kiln_error *err)
{
    if (kiln_opt_given(&cli, "output") && !cameras_alone)
        return kiln_fail(err, KILN_E_USAGE, "-o is for --cameras; leave it out, or give both");
    if (with_levels && cameras_alone)
        return kiln_fail(err, KILN_E_USAGE, "--lod and --cameras do not go together; leave out one of them");
    return KILN_OK;
}

static kiln_status run(kiln_run *r, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    kiln_status st = KILN_OK;
    KILN_TRY(check_options(err));
    if (cameras_alone) return write_cameras(r, err);
    json_t *info = json_object();
    if (!info) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
    KILN_GO(set(info, "version", json_integer(1), err));
    KILN_GO(set(info, "manifest", kiln_json_string(kiln_manifest_path(m)), err));
    KILN_GO(add_stages(m, info, err));
    KILN_GO(add_plan(m, info, err));
    KILN_GO(add_quarantine(m, info, err));
    KILN_GO(add_scene(m, info, err));
    KILN_GO(add_views(m, info, err));
    if (with_levels) KILN_GO(add_levels(m, info, err));
    if (kiln_run_json(r))
        KILN_GO(print_json(info, err));
    else {
        print_scene(info);
        print_joined_and_moved(info);
        print_stages(info);
        if (with_levels) kiln_levels_info_print(json_object_get(info, "levels"));
        print_plan(info);
        print_quarantine(info);
        print_cameras(info);
        print_damaged(info);
        print_fast(info);
    }
done:
    json_decref(info);
    return st;
}

static const kiln_stage_program program = {.name = "info", .cli = &cli, .open = KILN_OPEN_READ, .run = run};

int main(int argc, char **argv) { return kiln_program_main(&program, argc, argv); }
