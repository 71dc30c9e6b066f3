/* kiln-tiles -- precomputes, for every camera, which Gaussians touch which 16x16 tile, in depth order (DESIGN.md 7).
 *
 * First every camera is counted in fixed memory, so that pairs, bytes and peak memory are known before a list is
 * allocated. Then each camera has a planning unit (the visible Gaussians in drawing order) and one unit a band. A table
 * becomes visible when all cameras have theirs. Tables depend on nothing but the chunks that the camera can see. */
#include "stages/tiles/units.h"

#include "base/log.h"

#include <stdlib.h>
#include <string.h>

static struct {
    kiln_shot_options shot;
    const char *tables, *camera;
    bool predict;
} o;

/* Above this many predicted bytes tables are made only when asked for (DESIGN.md 7). */
#define TABLES_AUTO_BYTES ((uint64_t)4 << 30)

static const kiln_opt options[] = {
    KILN_SHOT_OPTION_ROWS(o.shot),
    {"tables", 0, KILN_OPT_TEXT, &o.tables, "WHICH", "auto", NULL,
     "auto (all while they are predicted below 4 GiB), all, none, or cameras (NAME or #INDEX) separated by commas", KILN_KEYED},
    {"camera", 'c', KILN_OPT_TEXT, &o.camera, "NAME", NULL, NULL, "only this camera (or #INDEX); nothing becomes current",
     KILN_ONCE},
    {"predict", 0, KILN_OPT_BOOL, &o.predict, NULL, NULL, NULL, "count pairs, bytes and memory, make no table", KILN_ONCE},
    {NULL, 0, KILN_OPT_END, NULL, NULL, NULL, NULL, NULL, 0},
};

static const kiln_cli cli = {.program = "kiln-tiles",
                             .summary = "precomputes which Gaussians touch which tile, for every camera",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .options = options,
                             .common = kiln_common_options};

/* One camera on its way to a table. */
typedef struct {
    const kiln_camera *camera;
    kiln_shot shot;
    kiln_hash key;
    uint64_t visible, pairs, bytes, peak;
    uint64_t *row_pairs;
    uint32_t *band_starts, n_bands;
    uint64_t first_unit; /* of its planning unit; its bands follow */
    bool wanted;
} job;

typedef struct {
    kiln_scene scene;
    kiln_layer *layer;
    kiln_camera *cameras;
    uint32_t n_cameras;
    job *jobs;
    uint32_t n_jobs;
    kiln_unit *units; /* planning and band units of the wanted jobs */
    kiln_tiles_unit *payloads;
    uint64_t n_units;
} bake;

static void bake_release(bake *b)
{
    for (uint32_t i = 0; b->jobs && i < b->n_jobs; i++) {
        free(b->jobs[i].row_pairs);
        free(b->jobs[i].band_starts);
    }
    if (b->units) kiln_units_release(b->units, b->n_units);
    free(b->units);
    free(b->payloads);
    free(b->jobs);
    free(b->cameras);
    kiln_layer_free(b->layer);
}

static kiln_status open_jobs(kiln_run *r, bake *b, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    uint32_t first = 0, n;
    KILN_TRY(kiln_scene_get(m, &b->scene, err));
    KILN_TRY(kiln_layer_get(m, "baked", &b->layer, err));
    KILN_TRY(kiln_cameras_get(m, &b->cameras, &b->n_cameras, err));
    n = b->n_cameras;
    if (o.camera) {
        KILN_TRY(kiln_camera_pick(b->cameras, b->n_cameras, o.camera, &first, err));
        n = 1;
    }
    KILN_TRY(KILN_ALLOC(&b->jobs, n, "cameras", err));
    b->n_jobs = n;
    for (uint32_t i = 0; i < n; i++) {
        job *j = &b->jobs[i];
        j->camera = &b->cameras[first + i];
        KILN_TRY(kiln_shot_init(&j->shot, &o.shot, &b->scene, j->camera, err));
        j->key = kiln_shot_table_key(&j->shot, b->layer);
    }
    return KILN_OK;
}

static kiln_hash input_key(kiln_run *r, const bake *b)
{
    kiln_hasher *h = kiln_run_key(r);
    for (uint32_t i = 0; i < b->n_jobs; i++) {
        kiln_key_text(h, "camera", b->jobs[i].camera->name);
        kiln_key_hash(h, "table", b->jobs[i].key);
    }
    return kiln_key_end(h);
}

/* What the table will take in the manifest before compression, and what the worker needs for its largest band. */
static void predict(job *j)
{
    uint64_t tiles = (uint64_t)kiln_view_tiles_x(&j->shot.view) * kiln_view_tiles_y(&j->shot.view), most = 0;
    for (uint32_t i = 0; i < j->n_bands; i++) {
        uint64_t pairs = 0;
        for (uint32_t row = j->band_starts[i]; row < j->band_starts[i + 1]; row++) pairs += j->row_pairs[row];
        if (pairs > most) most = pairs;
    }
    /* 6 bytes a visible Gaussian, 8 a tile, and 1.2 to 1.7 bytes of rank code a pair in the scenes measured */
    j->bytes = 6 * j->visible + 8 * tiles + 2 * j->pairs;
    /* a frame twice (as gathered, in order) with its indices, and the largest band's ranks and code */
    j->peak = j->visible * (2 * sizeof(kiln_splat2d) + 16) + most * (4 + 5);
}

static kiln_status take_count(kiln_run *r, job *j, const kiln_unit *u, kiln_error *err)
{
    uint64_t bytes;
    json_t *counters;
    uint32_t tiles_y = kiln_view_tiles_y(&j->shot.view);
    KILN_TRY(kiln_unit_data(r, u, "row_pairs", (void **)&j->row_pairs, &bytes, err));
    if (bytes != tiles_y * sizeof *j->row_pairs)
        return kiln_fail(err, KILN_E_IO, "unit '%s' has %llu bytes of row counts", u->name, (unsigned long long)bytes);
    KILN_TRY(kiln_unit_counters(u, &counters, err));
    j->visible = (uint64_t)json_integer_value(json_object_get(counters, "visible"));
    j->pairs = (uint64_t)json_integer_value(json_object_get(counters, "pairs"));
    json_decref(counters);
    KILN_TRY(KILN_ALLOC(&j->band_starts, tiles_y + 1, "bands", err));
    j->n_bands = kiln_tile_bands(j->row_pairs, tiles_y, j->band_starts);
    predict(j);
    return KILN_OK;
}

static kiln_hash unit_key(kiln_run *r, const char *what, const job *j, uint32_t row0, uint32_t row1)
{
    kiln_hasher *h = kiln_run_key_bare(r, what);
    kiln_key_hash(h, "table", j->key);
    kiln_key_u64(h, "row0", row0);
    kiln_key_u64(h, "row1", row1);
    return kiln_key_end(h);
}

static kiln_status count_all(kiln_run *r, bake *b, kiln_error *err)
{
    kiln_status st;
    kiln_unit *units = NULL;
    kiln_tiles_unit *payloads = NULL;
    KILN_GO(KILN_ALLOC(&units, b->n_jobs, "units", err));
    KILN_GO(KILN_ALLOC(&payloads, b->n_jobs, "units", err));
    for (uint32_t i = 0; i < b->n_jobs; i++) {
        job *j = &b->jobs[i];
        payloads[i] = (kiln_tiles_unit){.kind = KILN_TILES_COUNT, .shot = j->shot, .layer = b->layer->digest};
        snprintf(units[i].name, sizeof units[i].name, "pairs of %.120s", j->camera->name);
        units[i].key = unit_key(r, "count", j, 0, 0);
        units[i].payload = &payloads[i];
        units[i].payload_bytes = sizeof payloads[i];
        units[i].cost = 1;
    }
    KILN_GO(kiln_run_units(r, "counting pairs", units, b->n_jobs, err));
    for (uint32_t i = 0; i < b->n_jobs; i++) KILN_GO(take_count(r, &b->jobs[i], &units[i], err));
done:
    if (units) kiln_units_release(units, b->n_jobs);
    free(payloads);
    free(units);
    return st;
}

/* The cameras that --tables names; a name that no camera has is a slip of the pen. */
static kiln_status want_listed(bake *b, kiln_error *err)
{
    char name[sizeof b->cameras->name];
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
            if (b->jobs[i].camera == &b->cameras[index]) b->jobs[i].wanted = true;
        at += n + (at[n] == ',');
    }
    return KILN_OK;
}

static kiln_status choose(bake *b, kiln_error *err)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < b->n_jobs; i++) total += b->jobs[i].bytes;
    bool automatic = strcmp(o.tables, "auto") == 0, none = strcmp(o.tables, "none") == 0, all = strcmp(o.tables, "all") == 0;
    if (automatic && total > TABLES_AUTO_BYTES) {
        char text[32];
        kiln_say("tables would take about %s; none are made (rendering does not need them); --tables all makes them",
                 kiln_size_text(total, text));
        none = true;
    }
    if (!automatic && !none && !all) return want_listed(b, err);
    for (uint32_t i = 0; i < b->n_jobs; i++) b->jobs[i].wanted = !none;
    return KILN_OK;
}

static void add_unit(kiln_run *r, bake *b, job *j, const char *what, uint32_t row0, uint32_t row1, uint64_t pairs)
{
    kiln_unit *u = &b->units[b->n_units];
    kiln_tiles_unit *p = &b->payloads[b->n_units++];
    bool band = row1 > row0;
    *p = (kiln_tiles_unit){.kind = band ? KILN_TILES_BAND : KILN_TILES_PLAN,
                           .shot = j->shot,
                           .layer = b->layer->digest,
                           .row0 = row0,
                           .row1 = row1,
                           .pairs = pairs};
    if (band)
        snprintf(u->name, sizeof u->name, "tile rows %u to %u of %.100s", row0, row1 - 1, j->camera->name);
    else
        snprintf(u->name, sizeof u->name, "visible list of %.100s", j->camera->name);
    u->key = unit_key(r, what, j, row0, row1);
    u->payload = p;
    u->payload_bytes = sizeof *p;
    u->cost = pairs + j->visible;
}

static kiln_status make_units(kiln_run *r, bake *b, kiln_error *err)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < b->n_jobs; i++) n += b->jobs[i].wanted ? 1 + b->jobs[i].n_bands : 0;
    KILN_TRY(KILN_ALLOC(&b->units, n, "units", err));
    KILN_TRY(KILN_ALLOC(&b->payloads, n, "units", err));
    for (uint32_t i = 0; i < b->n_jobs; i++) {
        job *j = &b->jobs[i];
        if (!j->wanted) continue;
        j->first_unit = b->n_units;
        add_unit(r, b, j, "plan", 0, 0, 0);
        for (uint32_t k = 0; k < j->n_bands; k++) {
            uint64_t pairs = 0;
            for (uint32_t row = j->band_starts[k]; row < j->band_starts[k + 1]; row++) pairs += j->row_pairs[row];
            add_unit(r, b, j, "band", j->band_starts[k], j->band_starts[k + 1], pairs);
        }
    }
    return kiln_run_units(r, "tile tables", b->units, b->n_units, err);
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

static kiln_status put_table(const bake *b, kiln_manifest *m, const job *j, kiln_error *err)
{
    kiln_status st;
    kiln_tile_table t = {.antialiased = j->shot.antialiased,
                         .near_m = j->shot.near_m,
                         .width = j->shot.view.width,
                         .height = j->shot.view.height,
                         .tiles_x = kiln_view_tiles_x(&j->shot.view),
                         .tiles_y = kiln_view_tiles_y(&j->shot.view),
                         .key = j->key,
                         .visible = j->visible,
                         .pairs = j->pairs,
                         .n_bands = j->n_bands};
    const kiln_unit_result *plan = &b->units[j->first_unit].result;
    snprintf(t.camera, sizeof t.camera, "%s", j->camera->name);
    snprintf(t.profile, sizeof t.profile, "%s", kiln_profiles[j->shot.profile].name);
    KILN_GO(kiln_unit_result_array(plan, "chunks", &t.chunks, err));
    KILN_GO(kiln_unit_result_array(plan, "visible_slot", &t.visible_slot, err));
    KILN_GO(kiln_unit_result_array(plan, "visible_row", &t.visible_row, err));
    KILN_GO(KILN_ALLOC(&t.bands, t.n_bands, "bands", err));
    for (uint32_t k = 0; k < t.n_bands; k++) {
        const kiln_unit *u = &b->units[j->first_unit + 1 + k];
        const kiln_tiles_unit *p = u->payload;
        t.bands[k].row0 = p->row0;
        t.bands[k].row1 = p->row1;
        t.bands[k].pairs = p->pairs;
        KILN_GO(kiln_unit_result_array(&u->result, "tile_count", &t.bands[k].tile_count, err));
        KILN_GO(kiln_unit_result_array(&u->result, "tile_bytes", &t.bands[k].tile_bytes, err));
        KILN_GO(kiln_unit_result_array(&u->result, "rank_delta", &t.bands[k].rank_delta, err));
    }
    KILN_GO(kiln_tile_table_put(m, &t, err));
done:
    table_release(&t);
    return st;
}

static kiln_status put_tables(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err)
{
    const bake *b = context;
    (void)r;
    KILN_TRY(kiln_tile_tables_keep(m, "", false, 0, err)); /* no table has an empty profile: all of them go */
    for (uint32_t i = 0; i < b->n_jobs; i++)
        if (b->jobs[i].wanted) KILN_TRY(put_table(b, m, &b->jobs[i], err));
    return KILN_OK;
}

static void report(kiln_run *r, const bake *b)
{
    json_t *rows = json_array();
    uint64_t pairs = 0, bytes = 0;
    char size[32], peak[32];
    for (uint32_t i = 0; i < b->n_jobs; i++) {
        const job *j = &b->jobs[i];
        pairs += j->pairs;
        bytes += j->bytes;
        json_array_append_new(rows, json_pack("{s:s, s:I, s:I, s:I, s:I, s:i, s:b}", "name", j->camera->name, "visible",
                                              (json_int_t)j->visible, "pairs", (json_int_t)j->pairs, "predicted_bytes",
                                              (json_int_t)j->bytes, "predicted_peak_bytes", (json_int_t)j->peak, "bands",
                                              (int)j->n_bands, "table", (int)j->wanted));
        if (kiln_run_json(r)) continue;
        printf("%-32s visible %9llu  pairs %11llu  table about %9s  needs about %9s\n", j->camera->name,
               (unsigned long long)j->visible, (unsigned long long)j->pairs, kiln_size_text(j->bytes, size),
               kiln_size_text(j->peak, peak));
    }
    if (!kiln_run_json(r))
        printf("%u cameras, %llu pairs, tables about %s, profile %s\n", b->n_jobs, (unsigned long long)pairs,
               kiln_size_text(bytes, size), kiln_profiles[o.shot.profile].name);
    json_t *out = kiln_run_report(r);
    json_object_set_new(out, "cameras", rows);
    json_object_set_new(out, "profile", json_string(kiln_profiles[o.shot.profile].name));
    json_object_set_new(out, "pairs", json_integer((json_int_t)pairs));
    json_object_set_new(out, "predicted_bytes", json_integer((json_int_t)bytes));
}

static kiln_status bake_tables(kiln_run *r, bake *b, kiln_error *err)
{
    bool fresh;
    KILN_TRY(open_jobs(r, b, err));
    kiln_hash key = input_key(r, b);
    if (!kiln_run_is_once(r)) {
        KILN_TRY(kiln_run_is_fresh(r, key, &fresh, err));
        if (fresh) return kiln_run_nothing_to_do(r, err);
    }
    KILN_TRY(count_all(r, b, err));
    if (!kiln_run_is_once(r)) {
        KILN_TRY(choose(b, err));
        KILN_TRY(make_units(r, b, err));
    }
    report(r, b);
    return kiln_run_is_once(r) ? KILN_OK : kiln_run_commit(r, key, put_tables, b, err);
}

static kiln_status run(kiln_run *r, kiln_error *err)
{
    bake b = {0};
    KILN_TRY(kiln_run_need(r, "import", err));
    KILN_TRY(kiln_run_need(r, "chunk", err));
    kiln_status st = bake_tables(r, &b, err);
    bake_release(&b);
    return st;
}

static const kiln_stage_program program = {
    .name = "tiles", .cli = &cli, .open = KILN_OPEN_WRITE, .run = run, .unit = kiln_tiles_compute};

int main(int argc, char **argv) { return kiln_program_main(&program, argc, argv); }
