/* kiln-tiles -- precomputes, for every camera, which Gaussians touch which 16x16 tile, in depth
 * order (stages/tiles/DESIGN.md).
 *
 * First every camera is counted in fixed memory, so that pairs, bytes and peak memory are known
 * before a list is allocated. Then each camera has a planning unit (the visible Gaussians in
 * drawing order) and one unit a band. A table becomes visible when all cameras have theirs, or all
 * that are not quarantined. Tables depend on nothing but the chunks that the camera can see. */
#include "stages/tiles/jobs.h"

#include "base/log.h"
#include "stages/engine/parent/run_layers.h"
#include "stages/engine/devices/work.h"

#include <stdlib.h>
#include <string.h>

static struct {
    kiln_view_options request;
    const char *level, *tables, *camera;
    bool predict;
} o;

static const kiln_opt options[] = {
    KILN_VIEW_OPTION_ROWS(o.request),
    KILN_LEVEL_OPTION_ROW(o.level),
    KILN_OPTION_TEXT("tables", &o.tables, "WHICH",
                     "auto (all while they are predicted below 4 GiB), all, none, or cameras (NAME "
                     "or #INDEX) separated by commas",
                     .def = "auto", .brief = "which cameras get a table: auto, all, none, a list",
                     .flags = KILN_KEYED),
    KILN_OPTION_TEXT("camera", &o.camera, "NAME",
                     "only this camera, by name or #INDEX; the bake stays as it is", .letter = 'c',
                     .flags = KILN_ONCE),
    KILN_OPTION_BOOL("predict", &o.predict, "count pairs, bytes and memory; make no table",
                     .flags = KILN_ONCE),
    KILN_OPTION_END,
};

static bool is_word_of_tables(const char *text)
{
    return !strcmp(text, "auto") || !strcmp(text, "all") || !strcmp(text, "none");
}

static kiln_status check_tables(const char *text, kiln_error *err)
{
    return is_word_of_tables(text) ? KILN_OK : kiln_camera_list_check(text, err);
}

static const kiln_opt_check checks[] = {KILN_VIEW_OPTION_CHECKS,
                                        KILN_LEVEL_OPTION_CHECK,
                                        {"tables", check_tables},
                                        {"camera", kiln_camera_name_check},
                                        {NULL, NULL}};

static const kiln_cli cli = {.program = "kiln-tiles",
                             .summary =
                                 "precomputes which Gaussians touch which tile, for every camera",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .options = options,
                             .common = kiln_common_options,
                             .checks = checks};

/* The cameras that --tables names; a name that no camera has is a slip of the pen. */
static kiln_status want_listed(kiln_tiles_bake *b, kiln_error *err)
{
    char name[KILN_CAMERA_NAME];
    for (const char *at = o.tables; *at;) {
        size_t n = strcspn(at, ",");
        uint32_t index = 0;
        snprintf(name, sizeof name, "%.*s", n < sizeof name ? (int)n : (int)sizeof name - 1, at);
        kiln_status st = kiln_camera_pick(b->cameras, b->n_cameras, name, &index, err);
        if (st != KILN_OK) {
            kiln_note(err, "--tables");
            return st;
        }
        for (uint32_t i = 0; i < b->n_jobs; i++)
            if (b->jobs[i].index == index) b->jobs[i].wanted = b->jobs[i].counted;
        at += n + (at[n] == ',');
    }
    return KILN_OK;
}

static kiln_status choose_tables(kiln_tiles_bake *b, kiln_error *err)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < b->n_jobs; i++) total += b->jobs[i].bytes;
    bool automatic = strcmp(o.tables, "auto") == 0, none = strcmp(o.tables, "none") == 0,
         all = strcmp(o.tables, "all") == 0;
    if (automatic && total > KILN_TILES_AUTO_BYTES) {
        char text[32];
        kiln_say("tile tables would take about %s, so none are made (rendering does not need "
                 "them); --tables all makes them",
                 kiln_size_text(total, text));
        none = true;
    }
    if (!automatic && !none && !all) return want_listed(b, err);
    for (uint32_t i = 0; i < b->n_jobs; i++) b->jobs[i].wanted = !none && b->jobs[i].counted;
    return KILN_OK;
}

static void table_release(kiln_tile_table *t)
{
    for (uint32_t i = 0; t->bands && i < t->n_bands; i++) {
        free(t->bands[i].tile_count.segments);
        free(t->bands[i].tile_bytes.segments);
        free(t->bands[i].rank_delta.segments);
    }
    free(t->bands);
    free(t->chunks.segments);
    free(t->visible_slot.segments);
    free(t->visible_row.segments);
}

#define ANY_SIZE UINT64_MAX
static kiln_status get_array(const kiln_unit_result *r, const char *name, uint64_t bytes,
                             kiln_array *out, kiln_error *err)
{
    KILN_TRY(kiln_unit_result_array(r, name, out, err));
    if (bytes == ANY_SIZE || out->raw_bytes == bytes) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "its '%s' has %llu bytes instead of %llu", name,
                     (unsigned long long)out->raw_bytes, (unsigned long long)bytes);
}

static kiln_status get_band(const kiln_unit *u, uint64_t n_tiles, kiln_tile_band *b,
                            kiln_error *err)
{
    KILN_TRY(get_array(&u->result, "tile_count", 4 * n_tiles, &b->tile_count, err));
    KILN_TRY(get_array(&u->result, "tile_bytes", 4 * n_tiles, &b->tile_bytes, err));
    return get_array(&u->result, "rank_delta", ANY_SIZE, &b->rank_delta, err);
}

static kiln_status put_table(kiln_run *r, const kiln_tiles_bake *b, kiln_manifest *m,
                             const kiln_tiles_job *j, kiln_error *err)
{
    kiln_status st;
    kiln_tile_table t = {.antialiased = j->request.antialiased,
                         .near_m = j->request.near_m,
                         .width = j->request.view.width,
                         .height = j->request.view.height,
                         .tiles_x = kiln_view_tiles_x(&j->request.view),
                         .tiles_y = kiln_view_tiles_y(&j->request.view),
                         .key = j->key,
                         .visible = j->visible,
                         .pairs = j->pairs,
                         .n_bands = j->n_bands};
    const kiln_unit *plan_unit = &b->units[j->first_unit];
    const kiln_unit_result *plan = &plan_unit->result;
    snprintf(t.camera, sizeof t.camera, "%s", j->camera->name);
    snprintf(t.profile, sizeof t.profile, "%s", kiln_profiles[j->request.profile].name);
    KILN_GO(
        kiln_unit_refuse(r, plan_unit, get_array(plan, "chunks", ANY_SIZE, &t.chunks, err), err));
    KILN_GO(kiln_unit_refuse(
        r, plan_unit, get_array(plan, "visible_slot", 4 * t.visible, &t.visible_slot, err), err));
    KILN_GO(kiln_unit_refuse(
        r, plan_unit, get_array(plan, "visible_row", 2 * t.visible, &t.visible_row, err), err));
    KILN_GO(KILN_ALLOC(&t.bands, t.n_bands, "bands", err));
    for (uint32_t k = 0; k < t.n_bands; k++) {
        const kiln_unit *u = &b->units[j->first_unit + 1 + k];
        const kiln_tiles_unit *p = u->payload;
        t.bands[k].row0 = p->row0;
        t.bands[k].row1 = p->row1;
        t.bands[k].pairs = p->pairs;
        KILN_GO(kiln_unit_refuse(
            r, u, get_band(u, (uint64_t)t.tiles_x * (p->row1 - p->row0), &t.bands[k], err), err));
    }
    KILN_GO(kiln_tile_table_put(m, &t, err));
done:
    table_release(&t);
    return st;
}

static kiln_status put_tables(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err)
{
    const kiln_tiles_bake *b = context;
    /* no table has an empty profile: all of them go */
    KILN_TRY(kiln_tile_tables_keep(m, "", false, 0, err));
    for (uint32_t i = 0; i < b->n_jobs; i++)
        if (b->jobs[i].has_table) KILN_TRY(put_table(r, b, m, &b->jobs[i], err));
    return KILN_OK;
}

static kiln_hash key_tiles_input(kiln_run *r, const kiln_tiles_bake *b)
{
    kiln_hasher *h = kiln_run_key(r);
    for (uint32_t i = 0; i < b->n_jobs; i++) {
        kiln_key_text(h, "camera", b->jobs[i].camera->name);
        kiln_key_hash(h, "table", b->jobs[i].key);
    }
    return kiln_key_end(h);
}

/* Of a view of levels, their mean; in full the scene's, of which a view may see less. */
static uint64_t rows_of_a_view(const kiln_tiles_bake *b)
{
    uint64_t rows = 0;
    if (!b->drawn.levels || b->n_jobs == 0) return b->layer->count;
    for (uint32_t i = 0; i < b->n_jobs; i++) rows += b->jobs[i].rows;
    return rows / b->n_jobs;
}

static kiln_status check_tiles(kiln_run *r, kiln_error *err)
{
    KILN_TRY(kiln_cameras_named_check(kiln_run_manifest(r), "--camera", o.camera, false, err));
    return is_word_of_tables(o.tables)
               ? KILN_OK
               : kiln_cameras_named_check(kiln_run_manifest(r), "--tables", o.tables, true, err);
}

static kiln_status bake_tables(kiln_run *r, kiln_tiles_bake *b, kiln_error *err)
{
    bool fresh;
    KILN_TRY(kiln_tiles_open(r, &o.request, o.level, o.camera, b, err));
    kiln_run_expect_work(r, kiln_work_tiles((double)rows_of_a_view(b), b->n_jobs));
    kiln_hash key = key_tiles_input(r, b);
    if (!kiln_run_is_once(r)) {
        KILN_TRY(kiln_run_is_fresh(r, key, &fresh, err));
        if (fresh) KILN_TRY(kiln_tiles_are_counted(r, b, &fresh, err));
        if (fresh) return kiln_run_nothing_to_do(r, err);
    }
    KILN_TRY(kiln_tiles_count(r, b, err));
    if (!kiln_run_is_once(r)) {
        KILN_TRY(choose_tables(b, err));
        KILN_TRY(kiln_tiles_make(r, b, err));
    }
    KILN_TRY(kiln_tiles_report(r, b, kiln_profiles[o.request.profile].name, err));
    return kiln_run_is_once(r) ? KILN_OK : kiln_run_commit(r, key, put_tables, b, err);
}

static kiln_status run_tiles(kiln_run *r, kiln_error *err)
{
    kiln_tiles_bake b = {0};
    KILN_TRY(kiln_run_need(r, "import", err));
    KILN_TRY(kiln_run_need_layer(r, KILN_FORM_CHUNKS, &b.kind, err));
    kiln_status st = bake_tables(r, &b, err);
    kiln_tiles_release(&b);
    return st;
}

static kiln_status key_table(void *hasher, const kiln_tile_table *t, kiln_error *err)
{
    kiln_hasher *h = hasher;
    (void)err;
    kiln_key_text(h, "camera", t->camera);
    kiln_key_hash(h, "digest", t->digest);
    return KILN_OK;
}

/* Render uses tables that are there and draws the same without. */
static kiln_status digest_tables(kiln_manifest *m, kiln_hash *out, kiln_error *err)
{
    kiln_hasher *h = kiln_hasher_new();
    const kiln_status st = kiln_tile_tables_each(m, false, key_table, h, err);
    *out = kiln_hasher_end(h);
    return st;
}

static const kiln_stage_output outputs[] = {{"tables", digest_tables}, {NULL, NULL}};

const kiln_stage_program kiln_stage_tiles = {.name = "tiles",
                                             .cli = &cli,
                                             .open = KILN_OPEN_WRITE,
                                             .flags = KILN_PROGRAM_ROUNDS,
                                             .check = check_tiles,
                                             .run = run_tiles,
                                             .unit = kiln_tiles_compute,
                                             .outputs = outputs};
