/* manifest_fixture -- a scratch folder and a small, whole manifest: two chunks of three and one
 * Gaussians, one camera, one tile table of 2 x 2 tiles in two bands, one image. */
#ifndef KILN_TESTS_MANIFEST_FIXTURE_H
#define KILN_TESTS_MANIFEST_FIXTURE_H

#include "schema/manifest.h"
#include "tests/unit/test_folder.h"

#include <math.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define OK(call) assert_ok((call), &err, #call, __LINE__)

static inline void assert_ok(kiln_status st, const kiln_error *err, const char *call, int line)
{
    if (st != KILN_OK) fail_msg("line %d: %s: %s", line, call, err->msg);
}

static inline void assert_says(const kiln_error *err, const char *part)
{
    if (!strstr(err->msg, part)) fail_msg("'%s' does not say '%s'", err->msg, part);
}

/* A new empty folder; *state is its path. */
static inline int make_scratch(void **state)
{
    char *path = malloc(TEST_FOLDER_MAX);
    if (!path) return -1;
    *state = path;
    return test_folder_new(path, "manifest");
}

static inline int remove_scratch(void **state)
{
    const int rc = test_folder_remove(*state);
    free(*state);
    return rc;
}

static inline const char *in_scratch(void **state, const char *name, char buf[600])
{
    snprintf(buf, 600, "%s/%s", (char *)*state, name);
    return buf;
}

static inline kiln_manifest *open_manifest(const char *path, kiln_open_mode mode)
{
    kiln_error err = {0};
    kiln_manifest *m;
    OK(kiln_manifest_open(path, mode, "test", false, &m, &err));
    return m;
}

static inline void run_sql(kiln_manifest *m, const char *sql)
{
    char *text = NULL;
    if (sqlite3_exec(kiln_manifest_sqlite(m), sql, NULL, NULL, &text) != SQLITE_OK)
        fail_msg("%s: %s", sql, text);
}

static inline int64_t number_of(kiln_manifest *m, const char *sql)
{
    sqlite3_stmt *s = NULL;
    assert_int_equal(sqlite3_prepare_v2(kiln_manifest_sqlite(m), sql, -1, &s, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_ROW);
    int64_t v = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return v;
}

/* Stores bytes as one blob; returns their hash. */
static inline kiln_hash put_bytes(kiln_manifest *m, const void *data, size_t bytes, uint32_t elem)
{
    kiln_error err = {0};
    kiln_blob b;
    OK(kiln_blob_pack(data, bytes, elem, &b, &err));
    OK(kiln_manifest_put_blob(m, &b, &err));
    free(b.packed);
    return b.hash;
}

static inline kiln_array array_of(kiln_hash *hash, uint64_t bytes)
{
    return (kiln_array){.raw_bytes = bytes, .n_segments = 1, .segments = hash};
}

/* ---- the layer ------------------------------------------------------------------------------- */
enum { FIXTURE_CHUNKS = 2, FIXTURE_PLANES = 7 };
typedef struct {
    kiln_layer layer;
    kiln_chunk chunks[FIXTURE_CHUNKS];
    kiln_plane planes[FIXTURE_CHUNKS][FIXTURE_PLANES];
    kiln_hash hashes[FIXTURE_CHUNKS][FIXTURE_PLANES];
} fixture_layer;

static inline void fill_plane(const char *name, uint64_t n, uint32_t components, uint32_t chunk,
                              uint32_t words[])
{
    for (uint64_t i = 0; i < n * components; i++) {
        /* quats: w = 1, the rest 0 */
        float v = strcmp(name, "quats") == 0 ? i < n : (float)chunk + (float)i * 0.25f;
        memcpy(&words[i], &v, sizeof v);
        if (strcmp(name, "source_row") == 0) words[i] = (uint32_t)(chunk * 3 + i);
    }
}

/* backwards: stores the blobs in another order, which no digest may show. */
static inline void fixture_layer_make(kiln_manifest *m, fixture_layer *f, const char *kind,
                                      bool backwards)
{
    static const struct {
        const char *name;
        uint32_t components;
    } rows[FIXTURE_PLANES] = {{"extra/a b", 1},      {"log_scales", 3}, {"means", 3},
                              {"opacity_logits", 1}, {"quats", 4},      {"sh0", 3},
                              {"source_row", 1}};
    static const uint64_t counts[FIXTURE_CHUNKS] = {3, 1};
    *f = (fixture_layer){.layer = {.count = 4, .sh_degree = 0, .n_chunks = FIXTURE_CHUNKS}};
    f->layer.chunks = f->chunks;
    snprintf(f->layer.kind, sizeof f->layer.kind, "%s", kind);
    for (uint32_t k = 0; k < FIXTURE_CHUNKS * FIXTURE_PLANES; k++) {
        uint32_t at = backwards ? FIXTURE_CHUNKS * FIXTURE_PLANES - 1 - k : k,
                 c = at / FIXTURE_PLANES, p = at % FIXTURE_PLANES;
        uint32_t words[16] = {0};
        size_t bytes = (size_t)(counts[c] * rows[p].components) * 4;
        fill_plane(rows[p].name, counts[c], rows[p].components, c, words);
        f->hashes[c][p] = put_bytes(m, words, bytes, 4);
        kiln_plane *plane = &f->planes[c][p];
        *plane =
            (kiln_plane){.type = strcmp(rows[p].name, "source_row") ? KILN_TYPE_F32 : KILN_TYPE_U32,
                         .components = rows[p].components,
                         .data = array_of(&f->hashes[c][p], bytes)};
        snprintf(plane->name, sizeof plane->name, "%s", rows[p].name);
    }
    for (uint32_t c = 0; c < FIXTURE_CHUNKS; c++) {
        kiln_chunk *chunk = &f->chunks[c];
        float n = (float)counts[c], last = (float)c + (3 * n - 1) * 0.25f;
        *chunk = (kiln_chunk){.count = counts[c],
                              .hilbert_lo = c * 100,
                              .hilbert_hi = c * 100 + 99,
                              .max_log_scale = last,
                              .max_opacity_logit = (float)c + (n - 1) * 0.25f,
                              .n_planes = FIXTURE_PLANES,
                              .planes = f->planes[c]};
        snprintf(chunk->name, sizeof chunk->name, "/%u", c);
        strcpy(chunk->parent, "/");
        for (int axis = 0; axis < 3; axis++) {
            chunk->box_min[axis] = (float)c + (float)axis * n * 0.25f;
            chunk->box_max[axis] = chunk->box_min[axis] + (n - 1) * 0.25f;
            chunk->reach_min[axis] = chunk->box_min[axis] - 1;
            chunk->reach_max[axis] = chunk->box_max[axis] + 1;
        }
    }
}

/* ---- the table ------------------------------------------------------------------------------- */
typedef struct {
    kiln_tile_table table;
    kiln_tile_band bands[2];
    kiln_hash hashes[9];
} fixture_table;

/* Four visible Gaussians; tile 0 has ranks 0 1 3, tile 1 none, tile 2 rank 2, tile 3 ranks 0 3. */
static inline void fixture_table_make(kiln_manifest *m, fixture_table *f, const char *camera)
{
    static const uint32_t slots[4] = {0, 1, 0, 0}, count0[2] = {3, 0}, bytes0[2] = {3, 0},
                          count1[2] = {1, 2}, bytes1[2] = {1, 2};
    static const uint16_t rows[4] = {2, 0, 1, 0};
    static const unsigned char code0[3] = {0, 1, 2}, code1[3] = {2, 0, 3};
    *f = (fixture_table){.table = {.profile = "inria",
                                   .near_m = 0.2,
                                   .width = 20,
                                   .height = 30,
                                   .tiles_x = 2,
                                   .tiles_y = 2,
                                   .visible = 4,
                                   .pairs = 6,
                                   .n_bands = 2}};
    kiln_hash *h = f->hashes;
    kiln_tile_table *t = &f->table;
    snprintf(t->camera, sizeof t->camera, "%s", camera);
    t->key = kiln_hash_of("key", 3);
    t->bands = f->bands;
    h[0] = put_bytes(m, "/0\0/1", 6, 1);
    h[1] = put_bytes(m, slots, sizeof slots, 4);
    h[2] = put_bytes(m, rows, sizeof rows, 2);
    t->chunks = array_of(&h[0], 6);
    t->visible_slot = array_of(&h[1], sizeof slots);
    t->visible_row = array_of(&h[2], sizeof rows);
    h[3] = put_bytes(m, count0, sizeof count0, 4);
    h[4] = put_bytes(m, bytes0, sizeof bytes0, 4);
    h[5] = put_bytes(m, code0, sizeof code0, 1);
    f->bands[0] = (kiln_tile_band){.row0 = 0,
                                   .row1 = 1,
                                   .pairs = 3,
                                   .tile_count = array_of(&h[3], 8),
                                   .tile_bytes = array_of(&h[4], 8),
                                   .rank_delta = array_of(&h[5], 3)};
    h[6] = put_bytes(m, count1, sizeof count1, 4);
    h[7] = put_bytes(m, bytes1, sizeof bytes1, 4);
    h[8] = put_bytes(m, code1, sizeof code1, 1);
    f->bands[1] = (kiln_tile_band){.row0 = 1,
                                   .row1 = 2,
                                   .pairs = 3,
                                   .tile_count = array_of(&h[6], 8),
                                   .tile_bytes = array_of(&h[7], 8),
                                   .rank_delta = array_of(&h[8], 3)};
}

/* ---- all of it ------------------------------------------------------------------------------- */
static inline kiln_camera fixture_camera(const char *name)
{
    kiln_camera c = {.name = name,
                     .r = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                     .t = {0.1, -0.2, 3},
                     .width = 20,
                     .height = 30,
                     .fx = 25,
                     .fy = 26,
                     .cx = 10,
                     .cy = 15,
                     .model = "SIMPLE_RADIAL",
                     .n_params = 4,
                     .params = {25, 10, 15, 0.01},
                     .distorted = true,
                     .split = "test",
                     .photo = "/photos/view 1.png",
                     .photo_width = 20,
                     .photo_height = 30,
                     .mask = "/masks/view 1.png.png",
                     .mask_width = 40,
                     .mask_height = 60};
    return c;
}

static inline kiln_image fixture_image(const char *camera)
{
    kiln_image i = {.profile = "inria",
                    .near_m = 0.2,
                    .device_kind = "cpu",
                    .width = 20,
                    .height = 30,
                    .visible = 4,
                    .pairs = 6,
                    .psnr = 30.5,
                    .ssim = 0.9,
                    .path = "renders/view 1.png",
                    .format = "png"};
    snprintf(i.camera, sizeof i.camera, "%s", camera);
    i.pixels = kiln_hash_of("pixels", 6);
    return i;
}

static inline void fixture_fill(kiln_manifest *m, bool backwards)
{
    kiln_error err = {0};
    fixture_layer *layer = malloc(sizeof *layer);
    fixture_table *table = malloc(sizeof *table);
    kiln_scene *scene = calloc(1, sizeof *scene);
    assert_true(layer && table && scene);
    kiln_camera camera = fixture_camera("view 1");
    kiln_image image = fixture_image("view 1");
    kiln_stage_row chunk = {.name = "chunk", .version = 1, .state = KILN_STAGE_FRESH},
                   tiles = {.name = "tiles", .version = 1, .state = KILN_STAGE_FRESH};
    strcpy(scene->name, "fixture");
    scene->kind = KILN_SCENE_SPLATS;
    scene->rows_read = 4;
    OK(kiln_manifest_begin(m, &err));
    OK(kiln_scene_put(m, scene, &err));
    OK(kiln_cameras_put(m, &camera, 1, &err));
    fixture_layer_make(m, layer, "baked", backwards);
    OK(kiln_layer_put(m, &layer->layer, &err));
    OK(kiln_stage_output_put(m, "chunk", "baked", layer->layer.digest, &err));
    OK(kiln_stage_put(m, &chunk, &err));
    fixture_table_make(m, table, "view 1");
    OK(kiln_tile_table_put(m, &table->table, &err));
    OK(kiln_stage_put(m, &tiles, &err));
    OK(kiln_image_put(m, &image, &err));
    OK(kiln_manifest_commit(m, &err));
    free(scene);
    free(table);
    free(layer);
}

#endif
