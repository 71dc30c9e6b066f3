/* jobs -- from cameras to units: count, predict, list what is to be computed, and how long and
 * large each piece of it is. */
#include "stages/tiles/jobs.h"

#include "stages/tiles/rank_code.h"

#include "base/minmax.h"
#include "schema/units_find.h"
#include "stages/engine/devices/work.h"
#include "stages/engine/hosts/decisions.h"
#include "stages/frame/view_place.h"

#include <stdlib.h>
#include <string.h>

enum { TABLE_OUTPUTS = 3 }; /* of a plan, and of a band */
/* The measured cost of decoding a row, in the unit of a count and in that of a table's units.
 */
enum { COUNT_DECODED_ROW = 3, TABLE_DECODED_ROW = 6 };

void kiln_tiles_release(kiln_tiles_bake *b)
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
    kiln_chunk_keys_release(&b->keys);
    kiln_drawn_release(&b->drawn);
}

/* ---- counting -------------------------------------------------------------------------------- */
uint64_t kiln_tiles_band_pairs(const kiln_tiles_job *j, uint32_t band)
{
    uint64_t pairs = 0;
    for (uint32_t row = j->band_starts[band]; row < j->band_starts[band + 1]; row++)
        pairs += j->row_pairs[row];
    return pairs;
}

/* What a planning unit holds until it is stored: slots, rows and names. */
static uint64_t plan_listed(const kiln_tiles_bake *b, const kiln_tiles_job *j)
{
    const uint64_t arrays =
        (4 + 2) * j->visible + b->layer->n_chunks * (4 + sizeof b->layer->chunks->name);
    return arrays + kiln_outputs_ram(arrays);
}

static uint64_t plan_ram(const kiln_tiles_bake *b, const kiln_tiles_job *j)
{
    return kiln_frame_ram(b->layer, &j->size, false, plan_listed(b, j));
}

/* The code of a band's lists, until it is stored. */
static uint64_t band_code(const kiln_tiles_job *j, uint64_t pairs, uint64_t tiles)
{
    const uint64_t outputs = kiln_ranks_code_most(pairs, tiles, j->visible) + 8 * tiles;
    return outputs + kiln_outputs_ram(outputs);
}

static uint64_t band_listed(const kiln_tiles_job *j, uint64_t pairs, uint64_t tiles)
{
    return 4 * pairs + band_code(j, pairs, tiles);
}

static uint64_t band_ram(const kiln_tiles_bake *b, const kiln_tiles_job *j, uint64_t pairs,
                         uint64_t tiles)
{
    kiln_draw_size size = j->size;
    size.band_pairs = pairs;
    size.band_tiles = tiles;
    return kiln_frame_ram(b->layer, &size, false,
                          kiln_draw_picture_bytes(&size, &j->request.view) +
                              band_code(j, pairs, tiles));
}

/* Of a camera that is not counted yet: its largest unit, were all visible that may be seen. */
static uint64_t most_ram(const kiln_tiles_bake *b, const kiln_tiles_job *j)
{
    kiln_tiles_job all = *j;
    const kiln_view_chunks seen = {.rows = j->rows};
    all.size = kiln_frame_bound(&j->request, b->layer, &seen);
    all.visible = all.size.visible;
    const uint64_t plan = plan_ram(b, &all),
                   band = band_ram(b, &all, all.size.band_pairs, all.size.band_tiles);
    return plan > band ? plan : band;
}

/* ---- the cameras ----------------------------------------------------------------------------- */
/* Fills all of a job that follows from its camera. */
static kiln_status make_job(kiln_tiles_bake *b, const kiln_view_options *request,
                            const kiln_camera *c, bool with_key, kiln_tiles_job *j, kiln_error *err)
{
    kiln_view_chunks chunks;
    j->camera = c;
    KILN_TRY(kiln_view_request_init(&j->request, request, &b->scene, c, err));
    KILN_TRY(kiln_view_chunks_choose(&b->drawn, &b->wish, &j->request, &chunks, err));
    j->rows = chunks.rows;
    j->place = kiln_view_place(&b->scene, b->layer, &chunks);
    if (b->drawn.levels && with_key)
        kiln_view_detail_add(&j->detail, &b->drawn, &j->request, &chunks);
    if (with_key) j->key = kiln_view_request_table_key(&j->request, &b->keys, &chunks);
    kiln_view_chunks_release(&chunks);
    return KILN_OK;
}

/* Units of its table, at most: of two bands one behind the other, both have more pairs than a band
 * may have. */
static uint64_t units_most(const kiln_tiles_job *j)
{
    const uint64_t tiles_y = kiln_view_tiles_y(&j->request.view),
                   tiles = tiles_y * kiln_view_tiles_x(&j->request.view);
    return 1 + kiln_min_u64(tiles_y, 1 + 2 * (j->rows * tiles / KILN_BAND_PAIRS));
}

static void add_most(kiln_tiles_bake *b, const kiln_tiles_job *j)
{
    b->most_ram = kiln_max_u64(b->most_ram, most_ram(b, j));
    b->n_most += units_most(j);
}

/* The lists behind the first: what it is refused for names a cap that has room for them. */
static void foresee_tables(kiln_run *r, const kiln_tiles_bake *b)
{
    const uint64_t lists = kiln_small_list_ram(b->n_most, TABLE_OUTPUTS, sizeof(kiln_tiles_unit));
    kiln_run_foresee_ram(r, b->most_ram + (kiln_run_is_once(r) ? 0 : lists), 0);
}

/* What the parent takes for a camera until the run ends. Of a table's rows there are few for most
 * cameras. */
static uint64_t job_bytes(kiln_run *r, uint64_t n)
{
    enum { TEXTS = 256, ROWS = 12 * 64 + 160, REPORTED = 448 };
    const uint64_t each = sizeof(kiln_camera) + TEXTS + sizeof(kiln_tiles_job) + ROWS +
                          sizeof(kiln_unit) + sizeof(kiln_tiles_unit);
    return n * each + kiln_run_report_rows_ram(r, n, REPORTED);
}

typedef struct {
    kiln_tiles_bake *b;
    const kiln_view_options *request;
} measuring;

static kiln_status measure_camera(void *context, const kiln_camera *c, kiln_error *err)
{
    const measuring *x = context;
    kiln_tiles_job j = {0};
    KILN_TRY(make_job(x->b, x->request, c, false, &j, err));
    add_most(x->b, &j);
    return KILN_OK;
}

/* Before the list of cameras is read: if it has no room, one camera after the other is asked what
 * its table would take. */
static kiln_status need_cameras(kiln_run *r, const kiln_view_options *request, kiln_tiles_bake *b,
                                kiln_error *err)
{
    kiln_scene_size size;
    measuring x = {b, request};
    KILN_TRY(kiln_scene_size_get(kiln_run_manifest(r), &size, err));
    kiln_run_foresee_parent(r, job_bytes(r, (uint64_t)size.cameras));
    if (kiln_run_parent_fits(r)) return KILN_OK;
    KILN_TRY(kiln_cameras_each(kiln_run_manifest(r), measure_camera, &x, err));
    foresee_tables(r, b);
    return kiln_run_need_parent(r, "the list of cameras", err);
}

kiln_status kiln_tiles_open(kiln_run *r, const kiln_view_options *request, const char *level,
                            const char *camera, kiln_tiles_bake *b, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    uint32_t first = 0, n;
    KILN_TRY(kiln_scene_get(m, &b->scene, err));
    b->level_text = level;
    KILN_TRY(kiln_level_wish_parse(level, &b->wish, err));
    KILN_TRY(kiln_drawn_current(m, b->kind, !kiln_level_wish_full(&b->wish), &b->drawn, err));
    KILN_TRY(kiln_drawn_narrow(&b->drawn, &b->wish, err));
    b->layer = b->drawn.chunks;
    KILN_TRY(need_cameras(r, request, b, err));
    KILN_TRY(kiln_cameras_get(m, &b->cameras, &b->n_cameras, err));
    n = b->n_cameras;
    if (camera) {
        KILN_TRY(kiln_camera_pick(b->cameras, b->n_cameras, camera, &first, err));
        n = 1;
    }
    KILN_TRY(KILN_ALLOC(&b->jobs, n, "cameras", err));
    b->n_jobs = n;
    KILN_TRY(kiln_chunk_keys_make(b->layer, &b->keys, err));
    for (uint32_t i = 0; i < n; i++) {
        b->jobs[i].index = first + i;
        KILN_TRY(make_job(b, request, &b->cameras[first + i], true, &b->jobs[i], err));
        if (i == 0) kiln_drawn_say_measured(&b->drawn, &b->wish, &b->jobs[i].request);
    }
    return KILN_OK;
}

static uint64_t tiles_of(const kiln_tiles_job *j, uint32_t band)
{
    return (uint64_t)(j->band_starts[band + 1] - j->band_starts[band]) *
           kiln_view_tiles_x(&j->request.view);
}

static void predict(const kiln_tiles_bake *b, bool in_parts, kiln_tiles_job *j)
{
    const uint64_t tiles =
        (uint64_t)kiln_view_tiles_x(&j->request.view) * kiln_view_tiles_y(&j->request.view);
    j->size = (kiln_draw_size){.visible = j->visible,
                               .largest_chunk = kiln_frame_largest_chunk(b->layer),
                               .in_parts = in_parts};
    /* 6 bytes a visible Gaussian, 8 a tile, and 1.2 to 1.7 bytes of rank code a pair in the scenes
     * measured */
    j->bytes = 6 * j->visible + 8 * tiles + 2 * j->pairs;
    j->peak = plan_ram(b, j);
    for (uint32_t k = 0; k < j->n_bands; k++) {
        const uint64_t ram = band_ram(b, j, kiln_tiles_band_pairs(j, k), tiles_of(j, k));
        if (ram > j->peak) j->peak = ram;
    }
}

static kiln_status take_count(kiln_run *r, kiln_tiles_job *j, const kiln_unit *u, kiln_error *err)
{
    kiln_frame_counts c;
    const uint32_t tiles_y = kiln_view_tiles_y(&j->request.view);
    const kiln_view_chunks seen = {.rows = j->rows};
    KILN_TRY(kiln_frame_counts_read(r, u, &j->request, &seen, &c, err));
    j->row_pairs = c.row_pairs;
    j->visible = c.visible;
    j->pairs = c.pairs;
    j->box_pairs = c.box_pairs;
    KILN_TRY(KILN_ALLOC(&j->band_starts, tiles_y + 1, "bands", err));
    j->n_bands = kiln_tile_bands(j->row_pairs, tiles_y, j->band_starts);
    j->counted = true;
    return KILN_OK;
}

static kiln_hash unit_key(kiln_run *r, const char *what, const kiln_tiles_job *j, uint32_t row0,
                          uint32_t row1)
{
    kiln_hasher *h = kiln_run_key_bare(r, what);
    kiln_key_hash(h, "table", j->key);
    kiln_key_u64(h, "row0", row0);
    kiln_key_u64(h, "row1", row1);
    return kiln_key_end(h);
}

/* May lists be made in parts, on a GPU? Asks for the device only where one has been looked for. */
static kiln_status may_be_in_parts(kiln_run *r, const kiln_unit *units, uint32_t n, bool *may,
                                   kiln_error *err)
{
    const char *kind = kiln_run_named_kind(r);
    for (uint32_t i = 0; i < n && !kind; i++)
        if (!units[i].was_cached || kiln_run_force(r))
            KILN_TRY(kiln_run_device_kind(r, &kind, err));
    *may = !kind || strcmp(kind, "cpu") != 0;
    return KILN_OK;
}

static kiln_status take_counts(kiln_run *r, kiln_tiles_bake *b, const kiln_unit *units,
                               kiln_error *err)
{
    bool in_parts;
    KILN_TRY(may_be_in_parts(r, units, b->n_jobs, &in_parts, err));
    for (uint32_t i = 0; i < b->n_jobs; i++) {
        if (units[i].quarantined) continue;
        KILN_TRY(take_count(r, &b->jobs[i], &units[i], err));
        predict(b, in_parts, &b->jobs[i]);
    }
    return KILN_OK;
}

static kiln_hash count_key(kiln_run *r, const kiln_tiles_job *j)
{
    return unit_key(r, "count with boxes", j, 0, 0);
}

static void name_count(const kiln_tiles_job *j, kiln_unit *u)
{
    snprintf(u->name, sizeof u->name, "pairs of %.120s", j->camera->name);
}

typedef struct {
    kiln_run *r;
    const kiln_tiles_bake *b;
    const kiln_hash *keys; /* [n_jobs] */
    uint64_t n_found;
} looking;

/* A kiln_units_found_fn. */
static kiln_status look_at_count(void *context, uint64_t i, int64_t unit, const char *counters,
                                 kiln_error *err)
{
    looking *x = context;
    const kiln_tiles_job *j = &x->b->jobs[i];
    kiln_unit u = {.key = x->keys[i]};
    kiln_frame_counts c = {0};
    const kiln_view_chunks seen = {.rows = j->rows};
    x->n_found++;
    name_count(j, &u);
    KILN_TRY(kiln_unit_outputs_of(kiln_run_manifest(x->r), unit, counters, &u.result, err));
    const kiln_status st = kiln_frame_counts_read(x->r, &u, &j->request, &seen, &c, err);
    free(c.row_pairs);
    kiln_unit_result_release(&u.result);
    return kiln_unit_pass(x->r, &u, st);
}

/* One transaction for all, in which nothing is written: one for each takes longer than to look. */
kiln_status kiln_tiles_are_counted(kiln_run *r, const kiln_tiles_bake *b, bool *all,
                                   kiln_error *err)
{
    kiln_hash *keys;
    KILN_TRY(KILN_ALLOC_UNSET(&keys, b->n_jobs, "keys of counts", err));
    for (uint32_t i = 0; i < b->n_jobs; i++) keys[i] = count_key(r, &b->jobs[i]);
    looking x = {.r = r, .b = b, .keys = keys};
    kiln_status st = kiln_manifest_begin(kiln_run_manifest(r), err);
    if (st == KILN_OK) {
        st = kiln_units_find(kiln_run_manifest(r), keys, b->n_jobs, look_at_count, &x, err);
        kiln_manifest_rollback(kiln_run_manifest(r));
    }
    free(keys);
    *all = x.n_found == b->n_jobs;
    return st == KILN_OK ? kiln_run_refused(r, err) : st;
}

/* Of the camera that sees most. */
static uint64_t rows_of_largest_view(const kiln_tiles_bake *b)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < b->n_jobs; i++) rows = kiln_max_u64(rows, b->jobs[i].rows);
    return rows;
}

kiln_status kiln_tiles_count(kiln_run *r, kiln_tiles_bake *b, kiln_error *err)
{
    kiln_status st;
    kiln_unit *units = NULL;
    kiln_tiles_unit *payloads = NULL;
    double rows = 0;
    for (uint32_t i = 0; i < b->n_jobs; i++) {
        add_most(b, &b->jobs[i]);
        rows += (double)b->jobs[i].rows;
    }
    foresee_tables(r, b);
    KILN_GO(KILN_ALLOC(&units, b->n_jobs, "units", err));
    KILN_GO(KILN_ALLOC(&payloads, b->n_jobs, "units", err));
    for (uint32_t i = 0; i < b->n_jobs; i++) {
        const kiln_tiles_job *j = &b->jobs[i];
        kiln_unit *u = &units[i];
        u->ram = kiln_frame_count_ram(b->layer, &j->request);
        u->ram_cache = kiln_frame_cache_ram(b->layer, u->ram);
        u->ram_after = kiln_run_is_once(r) ? 0 : most_ram(b, j); /* which makes no table */
        payloads[i] = (kiln_tiles_unit){.kind = KILN_TILES_COUNT,
                                        .request = j->request,
                                        .drawn = kiln_drawn_name_of(&b->drawn, &b->wish),
                                        .ram = u->ram,
                                        .most_ram = b->most_ram};
        name_count(j, u);
        u->key = count_key(r, j);
        u->payload = &payloads[i];
        u->payload_bytes = sizeof payloads[i];
        u->cost = 1 + j->rows;
        u->place = j->place;
        u->n_outputs = 1;
        u->optional = u->planning = true; /* without it, the camera gets no table */
    }
    kiln_run_shares_planning(r, kiln_work_is_round(kiln_work_count(rows)));
    kiln_run_costs_each_task(r, COUNT_DECODED_ROW * rows_of_largest_view(b));
    st = kiln_run_units(r, "counting pairs", units, b->n_jobs, err);
    kiln_run_shares_planning(r, false);
    KILN_GO(st);
    KILN_GO(take_counts(r, b, units, err));
    kiln_run_foresee_no_more(r); /* tables are known now */
done:
    if (units) kiln_units_release(units, b->n_jobs);
    free(payloads);
    free(units);
    return st;
}

/* ---- tables ---------------------------------------------------------------------------------- */
/* cost: of a plan the Gaussians that are projected and put in order, of a band those that are
 * looked at and the pairs. */
static void add_unit(kiln_run *r, kiln_tiles_bake *b, const kiln_tiles_job *j, const uint32_t *band)
{
    kiln_unit *u = &b->units[b->n_units];
    kiln_tiles_unit *p = &b->payloads[b->n_units++];
    *p = (kiln_tiles_unit){.kind = KILN_TILES_PLAN,
                           .request = j->request,
                           .drawn = kiln_drawn_name_of(&b->drawn, &b->wish)};
    if (band) {
        p->kind = KILN_TILES_BAND;
        p->row0 = j->band_starts[*band];
        p->row1 = j->band_starts[*band + 1];
        p->pairs = kiln_tiles_band_pairs(j, *band);
        u->cost = p->pairs + j->visible;
        u->ram = band_ram(b, j, p->pairs, tiles_of(j, *band));
        snprintf(u->name, sizeof u->name, "tile rows %u to %u of %.100s", p->row0, p->row1 - 1,
                 j->camera->name);
    } else {
        u->cost = 1 + 4 * j->rows;
        u->ram = plan_ram(b, j);
        snprintf(u->name, sizeof u->name, "visible list of %.100s", j->camera->name);
    }
    p->ram = u->ram;
    u->ram_cache = kiln_frame_cache_ram(b->layer, u->ram);
    u->key = unit_key(r, band ? "band" : "plan", j, p->row0, p->row1);
    u->payload = p;
    u->payload_bytes = sizeof *p;
    u->n_outputs = TABLE_OUTPUTS;
    u->group = (uint64_t)j->index + 1; /* one frame for all of them */
    u->place = j->place;
    u->optional = true;
}

/* The payload of each unit says what the largest takes, so that a worker divides its memory the
 * same way for all of them. */
static void note_largest(kiln_tiles_bake *b)
{
    uint64_t most_ram = 0, most_listed = 0;
    for (uint32_t i = 0; i < b->n_jobs; i++) {
        const kiln_tiles_job *j = &b->jobs[i];
        if (j->wanted) most_listed = kiln_max_u64(most_listed, plan_listed(b, j));
        for (uint32_t k = 0; j->wanted && k < j->n_bands; k++)
            most_listed = kiln_max_u64(most_listed,
                                       band_listed(j, kiln_tiles_band_pairs(j, k), tiles_of(j, k)));
    }
    for (uint64_t i = 0; i < b->n_units; i++) most_ram = kiln_max_u64(most_ram, b->units[i].ram);
    for (uint64_t i = 0; i < b->n_units; i++) {
        b->payloads[i].most_ram = most_ram;
        b->payloads[i].most_listed = most_listed;
    }
}

static bool all_there(const kiln_tiles_bake *b, const kiln_tiles_job *j)
{
    for (uint64_t i = 0; i <= j->n_bands; i++)
        if (b->units[j->first_unit + i].quarantined) return false;
    return true;
}

kiln_status kiln_tiles_make(kiln_run *r, kiln_tiles_bake *b, kiln_error *err)
{
    uint64_t n = 0, bytes = 0;
    for (uint32_t i = 0; i < b->n_jobs; i++) {
        n += b->jobs[i].wanted ? 1 + (uint64_t)b->jobs[i].n_bands : 0;
        bytes += b->jobs[i].wanted ? b->jobs[i].bytes : 0;
    }
    KILN_TRY(KILN_ALLOC(&b->units, n, "units", err));
    KILN_TRY(KILN_ALLOC(&b->payloads, n, "units", err));
    for (uint32_t i = 0; i < b->n_jobs; i++) {
        kiln_tiles_job *j = &b->jobs[i];
        if (!j->wanted) continue;
        j->first_unit = b->n_units;
        add_unit(r, b, j, NULL);
        for (uint32_t k = 0; k < j->n_bands; k++) add_unit(r, b, j, &k);
    }
    note_largest(b);
    kiln_run_costs_each_task(r, TABLE_DECODED_ROW * rows_of_largest_view(b));
    kiln_run_passes_results(r, bytes > KILN_TILES_AUTO_BYTES);
    const kiln_status st = kiln_run_units(r, "tile tables", b->units, b->n_units, err);
    kiln_run_passes_results(r, false);
    KILN_TRY(st);
    for (uint32_t i = 0; i < b->n_jobs; i++)
        b->jobs[i].has_table = b->jobs[i].wanted && all_there(b, &b->jobs[i]);
    return KILN_OK;
}
