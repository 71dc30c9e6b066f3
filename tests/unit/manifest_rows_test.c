/* manifest rows: what is put is what is got, references hold, digests depend on content alone. */
#include "manifest_fixture.h"
#include "version_1.h"

#include <inttypes.h>
#include <zstd.h>

static kiln_manifest *new_manifest(void **state, const char *name)
{
    char path[600];
    return open_manifest(in_scratch(state, name, path), KILN_OPEN_CREATE);
}

/* ---- blobs ----------------------------------------------------------------------------------- */
static void blob_is_stored_once(void **state)
{
    kiln_manifest *m = new_manifest(state, "m.db");
    kiln_hash a = put_bytes(m, "content", 7, 1), b = put_bytes(m, "content", 7, 1);
    assert_true(kiln_hash_equal(a, b));
    assert_int_equal(number_of(m, "SELECT count(*) FROM blob"), 1);
    kiln_manifest_close(m);
}

static void blob_that_is_missing_or_of_another_size_is_told(void **state)
{
    kiln_error err = {0};
    char back[16];
    void *data;
    uint64_t bytes;
    kiln_manifest *m = new_manifest(state, "m.db");
    kiln_hash h = put_bytes(m, "content", 7, 1);
    assert_int_equal(kiln_manifest_get_blob(m, h, back, 8, &err), KILN_E_IO);
    assert_says(&err, "7 bytes, but 8 are expected");
    h.bytes[0] ^= 1;
    assert_int_equal(kiln_manifest_get_blob(m, h, back, 7, &err), KILN_E_IO);
    assert_says(&err, "is missing");
    assert_int_equal(kiln_manifest_read_blob(m, h, &data, &bytes, &err), KILN_E_IO);
    assert_null(data);
    kiln_manifest_close(m);
}

static void flipped_bit_in_a_stored_blob_is_found_on_reading(void **state)
{
    kiln_error err = {0};
    char back[7], hex[33], sql[200];
    kiln_manifest *m = new_manifest(state, "m.db");
    kiln_hash h = put_bytes(m, "content", 7, 1);
    int64_t n = number_of(m, "SELECT length(packed) FROM blob");
    for (int64_t i = 0; i < n; i++) {
        sqlite3_blob *at;
        unsigned char byte;
        assert_int_equal(
            sqlite3_blob_open(kiln_manifest_sqlite(m), "main", "blob", "packed", 1, 1, &at),
            SQLITE_OK);
        assert_int_equal(sqlite3_blob_read(at, &byte, 1, (int)i), SQLITE_OK);
        byte ^= 0x81;
        assert_int_equal(sqlite3_blob_write(at, &byte, 1, (int)i), SQLITE_OK);
        assert_int_equal(kiln_manifest_get_blob(m, h, back, 7, &err), KILN_E_IO);
        assert_says(&err, kiln_hash_hex(h, hex));
        assert_says(&err, "is damaged");
        byte ^= 0x81;
        assert_int_equal(sqlite3_blob_write(at, &byte, 1, (int)i), SQLITE_OK);
        assert_int_equal(sqlite3_blob_close(at), SQLITE_OK);
    }
    OK(kiln_manifest_get_blob(m, h, back, 7, &err));
    snprintf(sql, sizeof sql, "UPDATE blob SET raw_bytes = 6");
    run_sql(m, sql);
    assert_int_equal(kiln_manifest_get_blob(m, h, back, 6, &err), KILN_E_IO);
    kiln_manifest_close(m);
}

static void array_above_64_mib_is_cut_and_read_back_whole(void **state)
{
    enum { SECOND = 6 << 20 };
    kiln_error err = {0};
    size_t bytes = KILN_BLOB_MAX + SECOND;
    uint32_t *raw = malloc(bytes), *back = malloc(bytes);
    assert_true(raw && back);
    for (size_t i = 0; i < bytes / 4; i++) raw[i] = (uint32_t)i;
    kiln_manifest *m = new_manifest(state, "m.db");
    OK(kiln_manifest_begin(m, &err));
    kiln_hash h[2] = {put_bytes(m, raw, KILN_BLOB_MAX, 4),
                      put_bytes(m, (char *)raw + KILN_BLOB_MAX, SECOND, 4)};
    OK(kiln_manifest_commit(m, &err));
    kiln_array a = {.raw_bytes = bytes, .n_segments = 2, .segments = h};
    OK(kiln_manifest_read_array(m, &a, back, &err));
    assert_memory_equal(raw, back, bytes);
    a.n_segments = 1;
    assert_int_equal(kiln_manifest_read_array(m, &a, back, &err), KILN_E_IO);
    a = (kiln_array){.raw_bytes = bytes, .n_segments = 2, .segments = (kiln_hash[]){h[1], h[0]}};
    /* segments out of order have other sizes */
    assert_int_equal(kiln_manifest_read_array(m, &a, back, &err), KILN_E_IO);
    free(raw);
    free(back);
    kiln_manifest_close(m);
}

/* ---- units ----------------------------------------------------------------------------------- */
static void unit_round_trips_with_its_outputs(void **state)
{
    kiln_error err = {0};
    kiln_manifest *m = new_manifest(state, "m.db");
    kiln_hash key = kiln_hash_of("k", 1);
    kiln_blob blobs[3];
    kiln_unit_output outputs[3] = {{.name = "means", .segment = 0},
                                   {.name = "means", .segment = 1},
                                   {.name = "plan", .elem = 1}};
    static const char *const contents[3] = {"12345678", "abcd", ""};
    for (int i = 0; i < 3; i++) {
        OK(kiln_blob_pack(contents[i], strlen(contents[i]), i < 2 ? 4 : 1, &blobs[i], &err));
        outputs[i].hash = blobs[i].hash;
        outputs[i].raw_bytes = blobs[i].raw_bytes;
        outputs[i].elem = blobs[i].elem;
    }
    kiln_unit_result r = {.n = 3, .outputs = outputs, .counters = (char[]){"{\"rows\": 3}"}}, got;
    bool found;
    OK(kiln_unit_find(m, key, &found, &got, &err));
    assert_false(found);
    OK(kiln_quarantine_put(m, &(kiln_quarantine_row){.key = key, .stage = "knn", .name = "range 1"},
                           &err));
    OK(kiln_unit_store(m, &(kiln_unit_done){key, "knn", "range 1", 5}, &r, blobs, &err));
    assert_int_equal(number_of(m, "SELECT count(*) FROM quarantine"), 0); /* it is done after all */
    r.counters[2] = 'x';
    /* is there: stays as it was */
    OK(kiln_unit_store(m, &(kiln_unit_done){key, "knn", "range 1", 5}, &r, blobs, &err));
    OK(kiln_unit_find(m, key, &found, &got, &err));
    assert_true(found);
    assert_string_equal(got.counters, "{\"rows\": 3}");
    assert_int_equal(got.n, 3);
    void *data;
    uint64_t bytes;
    kiln_array a;
    /* its first segment is not full, but that is seen on reading */
    OK(kiln_unit_result_array(&got, "means", &a, &err));
    assert_int_equal(a.n_segments, 2);
    assert_int_equal(a.raw_bytes, 12);
    free(a.segments);
    OK(kiln_unit_result_read(m, &got, "plan", &data, &bytes, &err));
    assert_int_equal(bytes, 0);
    free(data);
    assert_int_equal(kiln_unit_result_array(&got, "none", &a, &err), KILN_E_STALE);
    kiln_unit_result_release(&got);
    OK(kiln_unit_forget(m, key, &err));
    OK(kiln_unit_find(m, key, &found, &got, &err));
    assert_false(found);
    assert_int_equal(number_of(m, "SELECT count(*) FROM unit_output"), 0);
    for (int i = 0; i < 3; i++) free(blobs[i].packed);
    kiln_manifest_close(m);
}

static void unit_whose_blob_is_missing_leaves_nothing(void **state)
{
    kiln_error err = {0};
    kiln_manifest *m = new_manifest(state, "m.db");
    kiln_unit_output output = {
        .name = "means", .hash = kiln_hash_of("never stored", 12), .raw_bytes = 12, .elem = 4};
    kiln_unit_result r = {.n = 1, .outputs = &output};
    kiln_blob blob = {.hash = output.hash}; /* packed NULL: says that it is stored */
    assert_int_equal(
        kiln_unit_store(m, &(kiln_unit_done){kiln_hash_of("k", 1), "knn", "u", 0}, &r, &blob, &err),
        KILN_E_IO);
    assert_says(&err, "FOREIGN KEY");
    assert_int_equal(number_of(m, "SELECT count(*) FROM unit"), 0);
    kiln_manifest_close(m);
}

/* ---- scene, sources, cameras ----------------------------------------------------------------- */
static void scene_round_trips(void **state)
{
    kiln_error err = {0};
    kiln_manifest *m = new_manifest(state, "m.db");
    kiln_scene *s = calloc(1, sizeof *s), *got = calloc(1, sizeof *got);
    assert_true(s && got);
    assert_int_equal(kiln_scene_get(m, got, &err), KILN_E_STALE);
    assert_says(&err, "kiln-import");
    strcpy(s->name, "tower 'of' \xc3\xa4");
    s->kind = KILN_SCENE_POINTS;
    strcpy(s->source_path, "/a/b.ply");
    strcpy(s->source_format, "ply");
    s->rows_read = UINT64_C(4000000000);
    s->rows_dropped = 7;
    s->sh_degree = 3;
    s->antialiased = true;
    strcpy(s->up_axis, "-y");
    s->origin[1] = 1e9 + 0.125;
    strcpy(s->transforms, "[1]");
    strcpy(s->notes, "{\"a\": 1}");
    OK(kiln_scene_put(m, s, &err));
    OK(kiln_scene_get(m, got, &err));
    assert_memory_equal(s, got, sizeof *s);
    s->has_root = s->has_background = true;
    s->root_half = 0x1p-20;
    s->root_centre[2] = -3;
    s->background[0] = 1;
    OK(kiln_scene_put(m, s, &err));
    OK(kiln_scene_get(m, got, &err));
    assert_memory_equal(s, got, sizeof *s);
    assert_int_equal(number_of(m, "SELECT count(*) FROM scene"), 1);
    free(s);
    free(got);
    kiln_manifest_close(m);
}

static void sources_are_replaced_whole(void **state)
{
    kiln_error err = {0};
    uint32_t n;
    kiln_manifest *m = new_manifest(state, "m.db");
    kiln_source_file *files = calloc(2, sizeof *files), *got;
    assert_non_null(files);
    files[0].path = "/z";
    files[1].path = "/a";
    files[1].inode = UINT64_MAX;
    files[1].mtime_ns = -5;
    OK(kiln_sources_put(m, files, 2, &err));
    OK(kiln_sources_get(m, &got, &n, &err));
    assert_int_equal(n, 2);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(got[i].path, files[1 - i].path);
        got[i].path = files[1 - i].path;
    }
    assert_memory_equal(&got[0], &files[1], sizeof *got);
    assert_memory_equal(&got[1], &files[0], sizeof *got);
    free(got);
    OK(kiln_sources_put(m, files, 1, &err));
    OK(kiln_sources_get(m, &got, &n, &err));
    assert_int_equal(n, 1);
    free(got);
    files[1].path = "/z";
    /* twice the same: nothing of it is kept */
    assert_int_equal(kiln_sources_put(m, files, 2, &err), KILN_E_IO);
    assert_int_equal(number_of(m, "SELECT count(*) FROM source_file"), 1);
    free(files);
    kiln_manifest_close(m);
}

/* Texts by what they say, the rest by its bytes. */
static void same_camera(const kiln_camera *got, const kiln_camera *put)
{
    kiln_camera c = *got;
    assert_string_equal(got->name, put->name);
    assert_string_equal(got->photo, put->photo);
    assert_string_equal(got->mask, put->mask);
    c.name = put->name;
    c.photo = put->photo;
    c.mask = put->mask;
    assert_memory_equal(&c, put, sizeof c);
}

static void cameras_come_back_sorted_and_exact(void **state)
{
    kiln_error err = {0};
    uint32_t n;
    kiln_manifest *m = new_manifest(state, "m.db");
    kiln_camera cameras[3] = {fixture_camera("b"), fixture_camera("B"),
                              fixture_camera("a/\xc3\xa4")},
                *got;
    cameras[0].t[0] = 0.1 + 0.2;
    cameras[0].r[3] = (0.1 + 0.2) / 1000; /* still a rotation */
    cameras[1].photo = cameras[1].mask = "";
    cameras[1].photo_width = cameras[1].photo_height = 0;
    cameras[1].mask_width = cameras[1].mask_height = 0;
    strcpy(cameras[1].split, "train");
    OK(kiln_cameras_put(m, cameras, 3, &err));
    OK(kiln_cameras_get(m, &got, &n, &err));
    assert_int_equal(n, 3);
    same_camera(&got[0], &cameras[1]);
    same_camera(&got[1], &cameras[2]);
    same_camera(&got[2], &cameras[0]);
    free(got);
    OK(kiln_cameras_put(m, NULL, 0, &err));
    assert_int_equal(number_of(m, "SELECT count(*) FROM photo"), 0);
    kiln_manifest_close(m);
}

/* As a program made it that knew no masks. Reading changes nothing; the first writer adds what came
 * later. */
static void an_older_manifest_lacks_later_tables(void **state)
{
    static const char has[] = "SELECT count(*) FROM sqlite_schema WHERE name = 'photo_mask'";
    char path[600];
    kiln_error err = {0};
    uint32_t n;
    uint64_t bytes;
    kiln_manifest *m = new_manifest(state, "older.db");
    kiln_camera camera = fixture_camera("a"), *got;
    snprintf(path, sizeof path, "%s", kiln_manifest_path(m));
    OK(kiln_cameras_put(m, &camera, 1, &err));
    make_version_1(m);
    run_sql(m, "DROP TABLE photo_mask");
    OK(kiln_cameras_get(m, &got, &n, &err)); /* a table that goes away while the manifest is open */
    free(got);
    kiln_manifest_close(m);

    m = open_manifest(path, KILN_OPEN_READ);
    OK(kiln_cameras_get(m, &got, &n, &err));
    assert_int_equal(n, 1);
    assert_string_equal(got->mask, "");
    assert_string_equal(got->photo, camera.photo);
    free(got);
    OK(kiln_manifest_verify(m, NULL, NULL, &bytes, &err));
    assert_int_equal(number_of(m, has), 0);
    kiln_manifest_close(m);

    m = open_manifest(path, KILN_OPEN_WRITE);
    assert_int_equal(number_of(m, has), 1);
    OK(kiln_cameras_put(m, &camera, 1, &err));
    OK(kiln_cameras_get(m, &got, &n, &err));
    same_camera(got, &camera);
    free(got);
    kiln_manifest_close(m);
    m = open_manifest(path, KILN_OPEN_READ); /* the guard takes the table that the writer made */
    kiln_manifest_close(m);
}

static void camera_hash_is_of_the_picture_alone(void **state)
{
    (void)state;
    kiln_camera a = fixture_camera("a"), b = fixture_camera("b");
    strcpy(b.split, "train");
    b.photo = b.mask = "";
    b.r[1] = -0.0; /* SQLite gives back 0 */
    assert_true(kiln_hash_equal(kiln_camera_hash(&a), kiln_camera_hash(&b)));
    b.params[3] = 0.02;
    assert_false(kiln_hash_equal(kiln_camera_hash(&a), kiln_camera_hash(&b)));
    b = a;
    b.t[2] = nextafter(b.t[2], 4);
    assert_false(kiln_hash_equal(kiln_camera_hash(&a), kiln_camera_hash(&b)));
}

/* For estimates: the largest layer counts, and of cameras only their pictures' pixels. */
static void a_scene_has_a_size(void **state)
{
    kiln_error err = {0};
    kiln_scene_size size = {1, 1, 1};
    kiln_manifest *m = new_manifest(state, "m.db");
    kiln_camera cameras[2] = {fixture_camera("a"), fixture_camera("b")};
    fixture_layer *f = malloc(sizeof *f);
    assert_non_null(f);
    OK(kiln_scene_size_get(m, &size, &err));
    assert_true(size.rows == 0 && size.cameras == 0 && size.pixels == 0);
    cameras[0].width = cameras[0].height = 16384;
    cameras[1].width = 640;
    cameras[1].height = 480;
    OK(kiln_cameras_put(m, cameras, 2, &err));
    fixture_layer_make(m, f, "pruned", false);
    OK(kiln_layer_put(m, &f->layer, &err));
    OK(kiln_scene_size_get(m, &size, &err));
    assert_true(size.rows == 4 && size.cameras == 2);
    assert_true(size.pixels == 16384.0 * 16384.0 + 640 * 480);
    free(f);
    kiln_manifest_close(m);
}

/* ---- layers ---------------------------------------------------------------------------------- */
static void layer_round_trips_and_is_current_when_a_stage_says_so(void **state)
{
    kiln_error err = {0};
    kiln_layer *got;
    kiln_manifest *m = new_manifest(state, "m.db");
    fixture_layer *f = malloc(sizeof *f);
    assert_non_null(f);
    fixture_layer_make(m, f, "pruned", false);
    OK(kiln_layer_put(m, &f->layer, &err));
    assert_int_equal(kiln_layer_get(m, "pruned", &got, &err), KILN_E_STALE);
    assert_null(got);
    OK(kiln_stage_output_put(m, "prune", "pruned", f->layer.digest, &err));
    OK(kiln_layer_get(m, "pruned", &got, &err));
    assert_true(kiln_hash_equal(got->digest, f->layer.digest));
    assert_int_equal(got->n_chunks, 2);
    assert_int_equal(got->count, 4);
    for (int c = 0; c < 2; c++) {
        kiln_chunk want = f->chunks[c], is = got->chunks[c];
        assert_int_equal(is.n_planes, FIXTURE_PLANES);
        want.planes = is.planes = NULL;
        assert_memory_equal(&is, &want, sizeof is);
    }
    uint32_t rows[3];
    OK(kiln_plane_read(m, &got->chunks[0], "source_row", rows, sizeof rows, &err));
    assert_int_equal(rows[2], 2);
    assert_int_equal(kiln_plane_read(m, &got->chunks[0], "shN", rows, sizeof rows, &err),
                     KILN_E_INPUT);
    /* does not fit */
    assert_int_equal(kiln_plane_read(m, &got->chunks[0], "means", rows, sizeof rows, &err),
                     KILN_E_BUG);
    kiln_layer_free(got);
    OK(kiln_layer_put(m, &f->layer, &err)); /* is there: stays */
    assert_int_equal(number_of(m, "SELECT count(*) FROM layer"), 1);
    free(f);
    kiln_manifest_close(m);
}

static void layer_digest_depends_on_content_alone(void **state)
{
    kiln_error err = {0};
    kiln_manifest *a = new_manifest(state, "a.db"), *b = new_manifest(state, "b.db");
    fixture_layer *f = malloc(2 * sizeof *f);
    assert_non_null(f);
    fixture_layer_make(a, &f[0], "source", false);
    fixture_layer_make(b, &f[1], "pruned", true);
    kiln_plane swap = f[1].planes[0][0]; /* planes in another order, too: put sorts them */
    f[1].planes[0][0] = f[1].planes[0][3];
    f[1].planes[0][3] = swap;
    OK(kiln_layer_put(a, &f[0].layer, &err));
    OK(kiln_layer_put(b, &f[1].layer, &err));
    assert_true(kiln_hash_equal(f[0].layer.digest, f[1].layer.digest));
    kiln_hash before = f[0].layer.digest;
    strcpy(f[0].chunks[1].name, "/2");
    assert_false(kiln_hash_equal(kiln_layer_digest(&f[0].layer), before));
    strcpy(f[0].chunks[1].name, "/1");
    f[0].hashes[1][2].bytes[15] ^= 1;
    assert_false(kiln_hash_equal(kiln_layer_digest(&f[0].layer), before));
    f[0].hashes[1][2].bytes[15] ^= 1;
    kiln_chunk first = f[0].chunks[0];
    f[0].chunks[0] = f[0].chunks[1];
    f[0].chunks[1] = first;
    assert_false(kiln_hash_equal(kiln_layer_digest(&f[0].layer), before));
    free(f);
    kiln_manifest_close(a);
    kiln_manifest_close(b);
}

/* The same bytes as another program may pack them: not shuffled alike, another level. */
static void compression_does_not_show_in_a_blobs_name(void **state)
{
    kiln_error err = {0};
    float raw[1000], back[1000];
    unsigned char packed[8192];
    for (int i = 0; i < 1000; i++) raw[i] = (float)i * 0.37f;
    kiln_manifest *m = new_manifest(state, "m.db");
    size_t n = ZSTD_compress(packed, sizeof packed, raw, sizeof raw, 19);
    assert_false(ZSTD_isError(n));
    kiln_blob b = {.hash = kiln_hash_of(raw, sizeof raw),
                   .raw_bytes = sizeof raw,
                   .elem = 1,
                   .packed_bytes = n,
                   .packed = packed};
    OK(kiln_manifest_put_blob(m, &b, &err));
    assert_true(kiln_hash_equal(put_bytes(m, raw, sizeof raw, 4), b.hash)); /* is there already */
    assert_int_equal(number_of(m, "SELECT count(*) FROM blob"), 1);
    OK(kiln_manifest_get_blob(m, b.hash, back, sizeof back, &err));
    assert_memory_equal(raw, back, sizeof raw);
    kiln_manifest_close(m);
}

static void layer_that_does_not_add_up_is_refused(void **state)
{
    kiln_error err = {0};
    kiln_manifest *m = new_manifest(state, "m.db");
    fixture_layer *f = malloc(sizeof *f);
    assert_non_null(f);
    fixture_layer_make(m, f, "source", false);
    f->layer.count = 5;
    assert_int_equal(kiln_layer_put(m, &f->layer, &err), KILN_E_INPUT);
    f->layer.count = 4;
    f->planes[1][2].data.raw_bytes = 8;
    assert_int_equal(kiln_layer_put(m, &f->layer, &err), KILN_E_INPUT);
    assert_says(&err, "means");
    f->planes[1][2].data.raw_bytes = 12;
    f->hashes[1][2] = kiln_hash_of("never stored", 12);
    assert_int_equal(kiln_layer_put(m, &f->layer, &err), KILN_E_IO);
    assert_says(&err, "FOREIGN KEY");
    assert_int_equal(number_of(m, "SELECT count(*) FROM layer"), 0);
    free(f);
    kiln_manifest_close(m);
}

static void references_hold_against_deletion(void **state)
{
    static const char *const sql[] = {"DELETE FROM blob", "DELETE FROM layer",
                                      "UPDATE blob SET hash = zeroblob(16) WHERE id = 1"};
    kiln_manifest *m = new_manifest(state, "m.db");
    fixture_fill(m, false);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(sqlite3_exec(kiln_manifest_sqlite(m), sql[i], NULL, NULL, NULL) & 0xff,
                         SQLITE_CONSTRAINT);
    kiln_manifest_close(m);
}

static void empty_layer_round_trips(void **state)
{
    kiln_error err = {0};
    kiln_layer empty = {.kind = "pruned"}, *got;
    kiln_manifest *m = new_manifest(state, "m.db");
    OK(kiln_layer_put(m, &empty, &err));
    OK(kiln_layer_get_digest(m, "pruned", empty.digest, &got, &err));
    assert_int_equal(got->n_chunks, 0);
    kiln_layer_free(got);
    kiln_layer_free(NULL);
    kiln_manifest_close(m);
}

/* ---- stages, parameters, runs ---------------------------------------------------------------- */
static void stage_parameters_and_runs_round_trip(void **state)
{
    kiln_error err = {0};
    kiln_stage_row row;
    kiln_parameter *p;
    uint32_t n;
    bool found;
    kiln_hash digest;
    kiln_manifest *m = new_manifest(state, "m.db");
    OK(kiln_stage_get(m, "knn", &row, &err));
    assert_int_equal(row.state, KILN_STAGE_MISSING);
    assert_string_equal(row.name, "knn");
    row = (kiln_stage_row){.name = "knn",
                           .version = 3,
                           .state = KILN_STAGE_PARTIAL,
                           .input_key = kiln_hash_of("k", 1),
                           .finished_ns = 12};
    kiln_stage_row got;
    OK(kiln_stage_put(m, &row, &err));
    OK(kiln_stage_get(m, "knn", &got, &err));
    assert_memory_equal(&row, &got, sizeof row);

    OK(kiln_stage_output_get(m, "knn", "spacing", &digest, &err));
    assert_true(kiln_hash_is_zero(digest));
    OK(kiln_stage_output_put(m, "knn", "spacing", row.input_key, &err));
    OK(kiln_stage_output_get(m, "knn", "spacing", &digest, &err));
    assert_true(kiln_hash_equal(digest, row.input_key));
    OK(kiln_stage_outputs_clear(m, "knn", &err));
    OK(kiln_stage_output_get(m, "knn", "spacing", &digest, &err));
    assert_true(kiln_hash_is_zero(digest));

    OK(kiln_parameter_put(m, "knn", "neighbors", "3", &err));
    OK(kiln_parameter_put(m, "knn", "neighbors", "4", &err));
    OK(kiln_parameter_put(m, "knn", "a", "", &err));
    OK(kiln_parameters_get(m, "knn", &p, &n, &err));
    assert_int_equal(n, 2);
    assert_string_equal(p[0].name, "a");
    assert_string_equal(p[1].value, "4");
    kiln_parameters_free(p, n);
    OK(kiln_parameters_clear(m, "knn", &err));
    OK(kiln_parameters_get(m, "knn", &p, &n, &err));
    assert_int_equal(n, 0);
    kiln_parameters_free(p, n);

    kiln_run_row run = {.stage = "knn",
                        .program = (char[]){"kiln-knn 0.1.0"},
                        .start_ns = 1,
                        .stop_ns = 2},
                 last;
    OK(kiln_run_row_last(m, "knn", &found, &last, &err));
    assert_false(found);
    OK(kiln_run_row_put(m, &run, &err));
    run.exit_code = 7;
    OK(kiln_run_row_put(m, &run, &err));
    OK(kiln_run_row_last(m, "knn", &found, &last, &err));
    assert_true(found);
    assert_int_equal(last.id, 1); /* the newer one was partial */
    kiln_run_row_release(&last);
    run.exit_code = 0;
    /* of --shard, and of a part: they made no output */
    run.counters = (char[]){"{\"status\":\"units stored\"}"};
    OK(kiln_run_row_put(m, &run, &err));
    run.counters = (char[]){"{\"status\":\"part stored\"}"};
    OK(kiln_run_row_put(m, &run, &err));
    OK(kiln_run_row_last(m, "knn", &found, &last, &err));
    assert_int_equal(last.id, 1);
    assert_string_equal(last.counters, "{}");
    kiln_run_row *tasks;
    OK(kiln_run_rows_of_tasks(m, &last, &tasks, &n, &err));
    assert_int_equal(n, 0); /* those that there are came behind it */
    kiln_run_rows_free(tasks, n);
    kiln_run_row_release(&last);
    run.counters = (char[]){"{}"};
    OK(kiln_run_row_put(m, &run, &err));
    OK(kiln_run_row_last(m, "knn", &found, &last, &err));
    OK(kiln_run_rows_of_tasks(m, &last, &tasks, &n, &err));
    assert_int_equal(n, 2);
    assert_int_equal(tasks[0].id, 3);
    assert_string_equal(tasks[1].counters, "{\"status\":\"part stored\"}");
    kiln_run_rows_free(tasks, n);
    kiln_run_row_release(&last);
    kiln_manifest_close(m);
}

/* ---- tables and images ----------------------------------------------------------------------- */
static void tile_table_round_trips_and_is_replaced(void **state)
{
    kiln_error err = {0};
    kiln_tile_table *got;
    unsigned char code[3];
    kiln_manifest *m = new_manifest(state, "m.db");
    fixture_table *f = malloc(sizeof *f);
    assert_non_null(f);
    fixture_table_make(m, f, "view 1");
    OK(kiln_tile_table_get(m, "view 1", "inria", false, 0.2, &got, &err));
    assert_null(got);
    OK(kiln_tile_table_put(m, &f->table, &err));
    OK(kiln_tile_table_put(m, &f->table, &err));
    assert_int_equal(number_of(m, "SELECT count(*) FROM tile_table"), 1);
    assert_int_equal(number_of(m, "SELECT count(*) FROM tile_segment"), 9);
    OK(kiln_tile_table_get(m, "view 1", "inria", false, 0.2, &got, &err));
    assert_non_null(got);
    assert_true(kiln_hash_equal(got->digest, f->table.digest));
    assert_true(kiln_hash_equal(kiln_tile_table_digest(got), got->digest));
    assert_int_equal(got->n_bands, 2);
    OK(kiln_manifest_read_array(m, &got->bands[1].rank_delta, code, &err));
    assert_memory_equal(code, ((unsigned char[]){2, 0, 3}), 3);
    kiln_tile_tables_free(got, 1);
    OK(kiln_tile_table_get(m, "view 1", "inria", true, 0.2, &got, &err));
    assert_null(got);
    free(f);
    kiln_manifest_close(m);
}

static void tile_tables_of_another_profile_or_camera_are_dropped(void **state)
{
    kiln_error err = {0};
    kiln_tile_table *got;
    uint32_t n;
    kiln_manifest *m = new_manifest(state, "m.db");
    fixture_table *f = malloc(sizeof *f);
    assert_non_null(f);
    kiln_camera camera = fixture_camera("b");
    OK(kiln_cameras_put(m, &camera, 1, &err));
    fixture_table_make(m, f, "b");
    OK(kiln_tile_table_put(m, &f->table, &err));
    f->table.near_m = 0.1;
    OK(kiln_tile_table_put(m, &f->table, &err));
    f->table.near_m = 0.2;
    f->table.antialiased = true;
    OK(kiln_tile_table_put(m, &f->table, &err));
    f->table.antialiased = false;
    strcpy(f->table.camera, "a"); /* is not there */
    OK(kiln_tile_table_put(m, &f->table, &err));
    OK(kiln_tile_tables_get(m, true, &got, &n, &err));
    assert_int_equal(n, 4);
    assert_string_equal(got[0].camera, "a");
    assert_true(got[1].near_m < got[2].near_m && !got[2].antialiased && got[3].antialiased);
    kiln_tile_tables_free(got, n);
    OK(kiln_tile_tables_keep(m, "inria", false, 0.2, &err));
    OK(kiln_tile_tables_get(m, false, &got, &n, &err));
    assert_int_equal(n, 1);
    assert_string_equal(got[0].camera, "b");
    assert_int_equal(got[0].bands[1].pairs, 3);
    assert_null(got[0].bands[1].rank_delta.segments);
    kiln_tile_tables_free(got, n);
    free(f);
    kiln_manifest_close(m);
}

static void images_round_trip_one_for_a_kind_of_device(void **state)
{
    kiln_error err = {0};
    kiln_image image = fixture_image("view 1"), *got;
    uint32_t n;
    kiln_manifest *m = new_manifest(state, "m.db");
    OK(kiln_image_put(m, &image, &err));
    image.psnr = image.ssim = NAN;
    OK(kiln_image_put(m, &image, &err));
    strcpy(image.device_kind, "cuda");
    image.psnr = INFINITY; /* a picture that is its photo */
    OK(kiln_image_put(m, &image, &err));
    OK(kiln_images_get(m, &got, &n, &err));
    assert_int_equal(n, 2);
    assert_true(isnan(got[0].psnr) && isnan(got[0].ssim));
    assert_true(isinf(got[1].psnr));
    assert_string_equal(got[1].device_kind, "cuda");
    free(got);
    OK(kiln_images_clear(m, &err));
    OK(kiln_images_get(m, &got, &n, &err));
    assert_int_equal(n, 0);
    free(got);
    kiln_manifest_close(m);
}

static void quarantine_comes_back_by_stage(void **state)
{
    kiln_error err = {0};
    kiln_manifest *m = new_manifest(state, "m.db");
    kiln_quarantine_row *rows, row = {.stage = "chunk",
                                      .name = "chunk /0/3",
                                      .attempts = 2,
                                      .device = "GPU-1",
                                      .reason = "it died"};
    uint32_t n;
    row.key = kiln_hash_of("b", 1);
    OK(kiln_quarantine_put(m, &row, &err));
    row.attempts = 3; /* the same unit again: one row */
    OK(kiln_quarantine_put(m, &row, &err));
    row.key = kiln_hash_of("a", 1);
    (void)snprintf(row.name, sizeof row.name, "chunk /0/2");
    OK(kiln_quarantine_put(m, &row, &err));
    row.key = kiln_hash_of("c", 1);
    (void)snprintf(row.stage, sizeof row.stage, "render");
    OK(kiln_quarantine_put(m, &row, &err));
    OK(kiln_quarantine_get(m, "chunk", &rows, &n, &err));
    assert_int_equal(n, 2);
    assert_string_equal(rows[0].name, "chunk /0/2");
    assert_int_equal(rows[1].attempts, 3);
    assert_string_equal(rows[1].device, "GPU-1");
    assert_string_equal(rows[1].reason, "it died");
    free(rows);
    OK(kiln_quarantine_remove(m, kiln_hash_of("a", 1), &err));
    OK(kiln_quarantine_clear(m, "chunk", &err));
    OK(kiln_quarantine_get(m, "chunk", &rows, &n, &err));
    assert_int_equal(n, 0);
    assert_int_equal(number_of(m, "SELECT count(*) FROM quarantine"), 1); /* the other stage's */
    kiln_manifest_close(m);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)
    const struct CMUnitTest tests[] = {
        TEST(blob_is_stored_once),
        TEST(blob_that_is_missing_or_of_another_size_is_told),
        TEST(flipped_bit_in_a_stored_blob_is_found_on_reading),
        TEST(array_above_64_mib_is_cut_and_read_back_whole),
        TEST(unit_round_trips_with_its_outputs),
        TEST(unit_whose_blob_is_missing_leaves_nothing),
        TEST(quarantine_comes_back_by_stage),
        TEST(scene_round_trips),
        TEST(sources_are_replaced_whole),
        TEST(cameras_come_back_sorted_and_exact),
        TEST(an_older_manifest_lacks_later_tables),
        TEST(camera_hash_is_of_the_picture_alone),
        TEST(a_scene_has_a_size),
        TEST(layer_round_trips_and_is_current_when_a_stage_says_so),
        TEST(layer_digest_depends_on_content_alone),
        TEST(compression_does_not_show_in_a_blobs_name),
        TEST(layer_that_does_not_add_up_is_refused),
        TEST(references_hold_against_deletion),
        TEST(empty_layer_round_trips),
        TEST(stage_parameters_and_runs_round_trip),
        TEST(tile_table_round_trips_and_is_replaced),
        TEST(tile_tables_of_another_profile_or_camera_are_dropped),
        TEST(images_round_trip_one_for_a_kind_of_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
