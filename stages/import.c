/* kiln-import -- reads a scene: Gaussians or points, cameras, photos.
 *
 * 1. The data set is looked through and the files that matter are hashed where they changed:
 *    nothing changed, nothing done.
 * 2. A scan in the worker validates the whole file of rows before a manifest is made or touched.
 * 3. Blocks of 65,536 rows are read again, sanitised and stored, each a unit; the root cube is one
 *    more.
 * 4. One transaction makes it all current.
 * Over several hosts the blocks are shared out; hashes and scan are then stored by the plan, so
 * that no task reads the whole file. Memory does not grow with the file: the parent holds 8 bytes a
 * block, the worker one block. */
#include "base/checked.h"
#include "base/count.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "stages/cameras/orbit.h"
#include "stages/cameras/pinholes.h"
#include "stages/engine/engine.h"
#include "stages/engine/hosts/decisions.h"
#include "stages/engine/meaning.h"
#include "stages/engine/parent/run_layers.h"
#include "stages/engine/devices/work.h"
#include "stages/import/dataset/findings.h"
#include "stages/import/dataset/sources.h"
#include "stages/import/import_options.h"
#include "stages/import/import_outputs.h"
#include "stages/import/import_scene.h"
#include "stages/import/import_units.h"
#include "stages/import/own_cameras.h"
#include "stages/import/undistorted/undistorted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- key ------------------------------------------------------------------------------------- */

/* The options, and which files have the rows. */
static kiln_hasher *begin_key(kiln_run *r, const kiln_import_result *i)
{
    kiln_hasher *h = kiln_run_key(r);
    kiln_key_text(h, "name", i->data.name);
    kiln_key_text(h, "root", i->data.set.root);
    kiln_key_text(h, "rows", i->data.rows_path);
    kiln_key_text(h, "reader", i->data.reader ? i->data.reader->name : "");
    for (uint32_t k = 1; k < i->n_parts; k++) {
        kiln_key_text(h, "rows", i->parts[k].path);
        kiln_key_text(h, "reader", i->parts[k].reader->name);
    }
    return h;
}

/* What the steps of a round must have in common. Tasks look at no camera and no photo, so these are
 * not in it. */
static kiln_hash round_key(kiln_run *r, const kiln_import_result *i, const kiln_sources *s)
{
    kiln_hasher *h = begin_key(r, i);
    for (uint32_t k = 0; k < s->n; k++)
        if (s->is_rows[k]) kiln_key_hash(h, "content", s->files[k].hash);
    return kiln_key_end(h);
}

static kiln_hash import_input_key(kiln_run *r, const kiln_import_result *i, const kiln_sources *s)
{
    kiln_hasher *h = begin_key(r, i);
    for (uint32_t k = 0; k < s->n; k++) {
        kiln_key_text(h, "path", s->files[k].path);
        kiln_key_hash(h, "content", s->files[k].hash);
    }
    if (i->data.antialiased) kiln_key_u64(h, "antialiased", 1);
    /* was not looked at once */
    if (i->data.trained_left) kiln_key_u64(h, "trained left halves", 1);
    if (i->data.set.split_later) kiln_key_text(h, "split", i->data.set.split_rule);
    /* their own ones were stored once */
    if (i->data.set.n_distorted) kiln_key_u64(h, "pinholes", 1);
    /* they stood around the central rows once */
    if (i->data.set.n_cameras == 0) kiln_key_u64(h, "own cameras", 2);
    return kiln_key_end(h);
}

/* Nothing to do; a file that only looks newer is noted, so that the next run need not read it
 * again. */
static kiln_status finish_fresh(kiln_run *r, const kiln_sources *s, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    if (s->touched && !kiln_run_is_frozen(r)) {
        KILN_TRY(kiln_manifest_begin(m, err));
        kiln_status st = kiln_sources_put(m, s->files, s->n, err);
        if (st == KILN_OK) st = kiln_manifest_commit(m, err);
        if (st != KILN_OK) {
            kiln_manifest_rollback(m);
            return st;
        }
    }
    return kiln_run_nothing_to_do(r, err);
}

/* ---- commit ---------------------------------------------------------------------------------- */

static kiln_status choose_import_cameras(kiln_run *r, kiln_import_result *i,
                                         const kiln_layer *layer, kiln_error *err)
{
    i->cameras = i->data.set.cameras;
    i->n_cameras = i->data.set.n_cameras;
    if (i->n_cameras > 0 || i->counts.kept == 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&i->orbit, KILN_ORBIT_CAMERAS, "cameras", err));
    KILN_TRY(kiln_own_cameras_place(r, i, layer, i->orbit, err));
    i->cameras = i->orbit;
    i->n_cameras = KILN_ORBIT_CAMERAS;
    return KILN_OK;
}

typedef struct {
    const kiln_import_result *result;
    const kiln_sources *sources;
    kiln_layer *layer; /* NULL: no rows */
    kiln_scene scene;
} commit_context;

static kiln_status store_import(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err)
{
    commit_context *c = context;
    KILN_TRY(kiln_stage_outputs_clear(m, "import", err));
    if (c->layer) KILN_TRY(kiln_run_put_layer(r, c->layer, err));
    KILN_TRY(kiln_scene_put(m, &c->scene, err));
    KILN_TRY(kiln_cameras_put(m, c->result->cameras, c->result->n_cameras, err));
    return kiln_sources_put(m, c->sources->files, c->sources->n, err);
}

static kiln_status commit_import(kiln_run *r, kiln_import_result *i, const kiln_sources *s,
                                 kiln_layer *layer, kiln_hash key, kiln_error *err)
{
    kiln_status st = KILN_OK;
    commit_context *c = NULL;
    KILN_TRY(KILN_ALLOC(&c, 1, "scene", err));
    c->result = i;
    c->sources = s;
    c->layer = layer;
    KILN_GO(choose_import_cameras(r, i, layer, err));
    KILN_GO(kiln_import_scene(i, &c->scene, err));
    KILN_GO(kiln_import_report(i, kiln_run_report(r), err));
    KILN_GO(kiln_sources_unchanged(s, err));
    KILN_GO(kiln_run_commit(r, key, store_import, c, err));
    if (i->counts.kept == 0)
        kiln_say("%s", KILN_COUNT(i->n_cameras, "camera"));
    else
        kiln_say("%s, %s",
                 KILN_COUNT(i->counts.kept,
                            i->scan.info.kind == KILN_SCENE_SPLATS ? "Gaussian" : "point"),
                 KILN_COUNT(i->n_cameras, "camera"));
done:
    free(c);
    return st;
}

/* ---- the run --------------------------------------------------------------------------------- */

static kiln_status open_existing(kiln_run *r, const char *path, kiln_error *err)
{
    const bool only_looks = kiln_import_given.list || kiln_import_given.write_undistorted;
    /* One that is not there is made later, once the scene is known to be good. Not WRITE: an import
     * that was killed in its first moment leaves a database without tables, which this one
     * fills. */
    return kiln_run_open_existing(r, path, only_looks ? KILN_OPEN_READ : KILN_OPEN_CREATE, err);
}

static kiln_status create_manifest(kiln_run *r, const char *path, kiln_error *err)
{
    return kiln_run_manifest(r) ? KILN_OK : kiln_run_create(r, path, err);
}

static kiln_status import_rows(kiln_run *r, kiln_import_result *i, const kiln_sources *s,
                               kiln_hash key, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_unit *units = NULL;
    kiln_block_request *requests = NULL;
    kiln_layer *layer = NULL;
    uint64_t n = i->scan.n_blocks;
    KILN_GO(KILN_ALLOC(&units, n, "units", err));
    KILN_GO(KILN_ALLOC(&requests, n, "units", err));
    KILN_GO(kiln_import_blocks(r, i, s, units, requests, err));
    if (n) {
        KILN_GO(kiln_import_layer(i, r, units, &layer, err));
        KILN_GO(kiln_import_cube(r, i, layer, err));
    }
    KILN_GO(commit_import(r, i, s, layer, key, err));
done:
    kiln_layer_free(layer);
    if (units) kiln_units_release(units, n);
    free(requests);
    free(units);
    return st;
}

/* What a block takes, by the header of its file; what is wrong with that, the scan tells. */
static uint64_t block_ram(const kiln_join_part *p, const kiln_read_options *read,
                          uint64_t *n_blocks)
{
    kiln_source_info *info = NULL;
    const kiln_reader *reader;
    uint8_t keep[KILN_EXTRAS_MAX];
    uint64_t ram = 0;
    kiln_error unread;
    memset(keep, 1, sizeof keep);
    if (KILN_ALLOC(&info, 1, "a header", &unread) == KILN_OK &&
        kiln_source_look(p->path, read, &reader, info, &unread) == KILN_OK) {
        ram = kiln_max_u64(kiln_scan_ram(reader, info), kiln_block_ram(reader, info, keep));
        *n_blocks += kiln_div_up(info->n_rows, KILN_BLOCK_ROWS);
    }
    free(info);
    return ram;
}

/* Where memory is too short for the first lists, what is named has room for those behind them,
 * too. */
static void foresee_import_ram(kiln_run *r, const kiln_import_result *i)
{
    uint64_t n_blocks = 0, block = 0;
    if (kiln_run_unit_ram(r) > 2 * (uint64_t)KILN_SCAN_RAM) return;
    for (uint32_t k = 0; k < i->n_parts; k++)
        block = kiln_max_u64(block, block_ram(&i->parts[k], &i->data.read, &n_blocks));
    kiln_run_foresee_ram(
        r, kiln_max_u64(block, kiln_max_u64(KILN_SCAN_RAM, kiln_cube_ram(KILN_BLOCK_ROWS))),
        n_blocks ? n_blocks : 1);
}

/* What this stage and later ones have to do, by the headers of the files; 0, which is not known,
 * where one cannot be read. */
static void expect_work(kiln_run *r, const kiln_import_result *i)
{
    enum { ORBIT_PIXELS = 1280 * 720 }; /* of a camera that import makes */
    const uint32_t n_orbit = i->data.set.n_cameras ? 0 : KILN_ORBIT_CAMERAS;
    kiln_work_scene s = {.cameras = (double)(i->data.set.n_cameras + n_orbit),
                         .pixels = (double)n_orbit * ORBIT_PIXELS};
    kiln_source_info *info = NULL;
    kiln_error unread;
    bool known = KILN_ALLOC(&info, 1, "a header", &unread) == KILN_OK;
    for (uint32_t k = 0; k < i->n_parts && known; k++) {
        const kiln_reader *reader;
        known =
            kiln_source_look(i->parts[k].path, &i->data.read, &reader, info, &unread) == KILN_OK;
        s.rows += (double)info->n_rows;
    }
    free(info);
    for (uint32_t c = 0; c < i->data.set.n_cameras; c++)
        s.pixels += (double)i->data.set.cameras[c].width * i->data.set.cameras[c].height;
    if (!known) return;
    kiln_run_expect_work(r, kiln_work_import(s.rows));
    kiln_run_expect_later(r, kiln_work_later(&s));
}

/* Cameras are moved here once; all that is made of them lies in the moved world. */
static kiln_status plan_parts(kiln_import_result *i, kiln_error *err)
{
    kiln_similarity move;
    i->move = kiln_import_given.move;
    kiln_similarity_of_move(&i->move, &move);
    for (uint32_t c = 0; c < i->data.set.n_cameras; c++)
        kiln_similarity_pose(&move, i->data.set.cameras[c].r, i->data.set.cameras[c].t);
    return kiln_parts_make(&i->data, &i->move, &i->parts, &i->n_parts, err);
}

/* nerfstudio's exporter leaves the file that says where its Gaussians lie in the folder of the
 * training. */
static void warn_of_world(const kiln_import_result *i)
{
    const kiln_dataset *d = &i->data;
    if (strcmp(i->scan.info.writer, "nerfstudio") != 0 || i->scan.info.kind != KILN_SCENE_SPLATS ||
        d->has_dataparser)
        return;
    if (d->set.n_cameras > 0 && d->set.world != KILN_WORLD_OF_ROWS)
        kiln_warn("the Gaussians come from nerfstudio, which trains in its own coordinate system; "
                  "if the cameras do not fit, copy "
                  "dataparser_transforms.json from the folder of the training to '%s'",
                  d->set.root);
}

/* Two scenes may share a manifest by mistake, as x.ply and x.splat do in the folder x.bake; a
 * folder's next file is no other scene. */
static kiln_status warn_of_replaced(kiln_manifest *m, const kiln_import_result *i, kiln_error *err)
{
    kiln_scene *was;
    KILN_TRY(KILN_ALLOC(&was, 1, "a scene", err));
    kiln_status st = kiln_scene_get(m, was, err);
    const size_t n = strlen(i->data.set.root);
    const bool of_folder = i->data.set.is_folder &&
                           strncmp(was->source_path, i->data.set.root, n) == 0 &&
                           was->source_path[n] == '/';
    if (st == KILN_OK && was->source_path[0] && i->n_parts > 0 &&
        strcmp(was->source_path, i->parts[0].path) != 0 && !of_folder)
        kiln_warn("the bake '%s' was made from '%.1000s' and is replaced by '%.1000s'; to keep "
                  "both, choose another manifest (kiln "
                  "pipeline: --out)",
                  kiln_manifest_path(m), was->source_path, i->parts[0].path);
    free(was);
    return st == KILN_E_STALE ? KILN_OK : st;
}

/* Behind all else, and also where nothing was to be done: the file beside the bake's own may be
 * what the user wants it to be made of. */
static void warn_of_passed_over(const kiln_dataset *d, const char *scene, const char *manifest)
{
    char sentence[4096] = "";
    if (d->passed_over[0])
        (void)snprintf(sentence, sizeof sentence,
                       "'%.1000s' is not used, because the bake was made of another file, which "
                       "stays; kiln import '%.1000s' '%.1000s' --reset chooses anew, and takes "
                       "import's stored options back",
                       d->passed_over, scene, manifest);
    if (sentence[0]) kiln_warn("%s", sentence);
    kiln_meaning_pass_on(sentence);
}

static kiln_status import_dataset(kiln_run *r, const char *manifest, kiln_import_result *i,
                                  kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_sources sources = {0};
    uint64_t *offsets = NULL;
    bool fresh = false;
    KILN_GO(kiln_sources_collect(&i->data, &sources, err));
    foresee_import_ram(r, i);
    if (!kiln_run_manifest(r)) expect_work(r, i); /* else perhaps nothing is to be done */
    if (kiln_run_begins_rounds(r)) /* what tasks need is stored; a bad scene removes it again */
        KILN_GO(create_manifest(r, manifest, err));
    KILN_GO(kiln_sources_hash(&sources, r, kiln_import_given.rehash, err));
    kiln_hash key = import_input_key(r, i, &sources);
    KILN_GO(kiln_run_agree(r, "options", round_key(r, i, &sources), err));
    if (kiln_run_manifest(r)) KILN_GO(kiln_run_is_fresh(r, key, &fresh, err));
    if (fresh) {
        st = finish_fresh(r, &sources, err);
        goto done;
    }
    KILN_GO(kiln_pinholes_set(&i->data.set, kiln_import_given.undistort_blank, err));
    if (kiln_run_manifest(r)) KILN_GO(warn_of_replaced(kiln_run_manifest(r), i, err));
    if (kiln_run_manifest(r)) expect_work(r, i);
    KILN_GO(kiln_import_prepare(r, manifest, i, &sources, err));
    KILN_GO(kiln_import_scan(r, i, &sources, &offsets, err));
    i->scan.info.antialiased |= i->data.antialiased;
    kiln_join_say(i->parts, i->n_parts);
    /* now that it is good: what is refused gets its one sentence alone */
    kiln_findings_say(&i->data);
    kiln_join_say_moves(i->parts, i->n_parts, &i->move);
    warn_of_world(i);
    KILN_GO(create_manifest(r, manifest, err));
    KILN_GO(import_rows(r, i, &sources, key, err));
done:
    free(offsets);
    kiln_sources_release(&sources);
    return st;
}

/* The file of rows that the bake was made of; "": there is no scene yet. */
static kiln_status get_choice(kiln_manifest *m, char out[KILN_PATH_MAX], kiln_error *err)
{
    kiln_scene *was;
    KILN_TRY(KILN_ALLOC(&was, 1, "a scene", err));
    const kiln_status st = kiln_scene_get(m, was, err);
    if (st == KILN_OK) snprintf(out, KILN_PATH_MAX, "%.*s", KILN_PATH_MAX - 1, was->source_path);
    free(was);
    return st == KILN_E_STALE ? KILN_OK : st;
}

static kiln_status check_import_arguments(kiln_run *r, kiln_error *err)
{
    kiln_split split;
    (void)r;
    return kiln_import_arguments(&split, err);
}

static kiln_status run_import(kiln_run *r, kiln_error *err)
{
    const char *scene = kiln_run_args(r)->positional[0],
               *manifest = kiln_run_args(r)->positional[1];
    char avoid[KILN_PATH_MAX], stays[KILN_PATH_MAX] = "";
    kiln_status st = KILN_OK;
    kiln_import_result *i = NULL;
    kiln_split split;
    /* before anything is opened: what is typed wrongly is a mistake in usage */
    KILN_TRY(kiln_import_arguments(&split, err));
    KILN_TRY(open_existing(r, manifest, err));
    KILN_TRY(kiln_import_split(&split, err)); /* again, as a stored rule may have come */
    KILN_TRY(kiln_import_stored_added(err));
    KILN_TRY(kiln_folder_to_avoid(scene, manifest, avoid, err));
    KILN_TRY(KILN_ALLOC(&i, 1, "import", err));
    i->dropped_rows = json_array();
    const kiln_dataset_wishes wishes = {
        .cameras = kiln_import_given.cameras,
        .photos = kiln_import_given.photos,
        .avoid = avoid,
        .add = kiln_import_given.add,
        .parts = kiln_import_given.parts,
        .read = {.frame = (kiln_source_frame)kiln_import_given.frame,
                 .lod = kiln_import_given.lod,
                 .is_static = kiln_import_given.is_static,
                 .activated = kiln_import_given.activated,
                 .no_extras = kiln_import_given.extra != 0},
        .stays = stays,
        .split = split,
        .no_dataparser = !kiln_import_given.dataparser,
        /* a task: plan and gather look at the photos */
        .rows_alone = kiln_run_is_frozen(r)};
    if (kiln_run_manifest(r) && !kiln_run_reset(r))
        KILN_GO(get_choice(kiln_run_manifest(r), stays, err));
    KILN_GO(kiln_dataset_find(scene, &wishes, &i->data, err));
    kiln_lenses_count(&i->data.set, kiln_import_given.ignore_distortion);
    /* in the world of the files, where points stay, too */
    if (kiln_import_given.write_undistorted) {
        KILN_GO(kiln_pinholes_set(&i->data.set, kiln_import_given.undistort_blank, err));
        st = kiln_undistorted_write(r, &i->data, kiln_import_given.write_undistorted,
                                    (kiln_undistort_filter)kiln_import_given.undistort_filter, err);
        goto done;
    }
    KILN_GO(plan_parts(i, err));
    i->up = kiln_import_given_up();
    i->has_background = i->data.has_background;
    memcpy(i->background, i->data.background, sizeof i->background);
    st = kiln_import_given.list ? kiln_findings_list(r, &i->data, err)
                                : import_dataset(r, manifest, i, err);
    if (st == KILN_OK && !kiln_run_is_frozen(r)) warn_of_passed_over(&i->data, scene, manifest);
done:
    for (uint32_t k = 0; k < i->n_parts; k++) kiln_prepared_release(&i->parts[k].prepared);
    free(i->parts);
    kiln_dataset_release(&i->data);
    json_decref(i->dropped_rows);
    free(i->orbit);
    free(i);
    return st;
}

const kiln_stage_program kiln_stage_import = {.name = "import",
                                              .cli = &kiln_import_cli,
                                              .flags = KILN_PROGRAM_OPENS_ITSELF |
                                                       KILN_PROGRAM_SERIAL | KILN_PROGRAM_PACKS |
                                                       KILN_PROGRAM_ROUNDS,
                                              .manifest_arg = 1,
                                              .check = check_import_arguments,
                                              .lists = &kiln_import_given.list_formats,
                                              .list = kiln_readers_list,
                                              .run = run_import,
                                              .unit = kiln_import_unit,
                                              .outputs = kiln_import_outputs};
