/* verify: a sound manifest passes, each kind of damage is named; digest lines say content and
 * nothing else. */
#include "manifest_fixture.h"

static kiln_manifest *filled(void **state, const char *name, bool backwards)
{
    char path[600];
    kiln_manifest *m = open_manifest(in_scratch(state, name, path), KILN_OPEN_CREATE);
    fixture_fill(m, backwards);
    return m;
}

typedef struct {
    char text[8192];
    int n;
} lines;

static void add_sentence(void *context, const char *sentence)
{
    lines *l = context;
    size_t used = strlen(l->text);
    snprintf(l->text + used, sizeof l->text - used, "%s\n", sentence);
    l->n++;
}

static void sound_manifest_passes(void **state)
{
    kiln_error err = {0};
    uint64_t bytes = 0;
    lines l = {.n = 0};
    kiln_manifest *m = filled(state, "m.db", false);
    OK(kiln_manifest_verify(m, add_sentence, &l, &bytes, &err));
    assert_int_equal(l.n, 0);
    assert_int_equal(bytes, number_of(m, "SELECT sum(raw_bytes) FROM blob"));
    kiln_manifest_close(m);
}

/* SQL that damages the manifest, and what must be said about it. */
static const struct {
    const char *sql, *says;
} damages[] = {
    {"UPDATE blob SET packed = substr(packed, 1, length(packed) - 1) WHERE id = 3", "is damaged"},
    {"DELETE FROM blob WHERE id = 1", "refers to a row of blob that is missing"},
    {"UPDATE blob SET raw_bytes = raw_bytes + 4 WHERE id = 2", "is damaged"},
    {"UPDATE layer SET count = 5", "layer 'baked' claims 5 rows, but its chunks have 4"},
    {"UPDATE layer SET digest = zeroblob(16)", "by another digest or kind"},
    {"UPDATE layer SET sh_degree = 1; UPDATE plane SET name = 'shN' WHERE name = 'sh0'",
     "plane 'shN' is f32 x 3"},
    {"DELETE FROM chunk WHERE ordinal = 0", "chunk '/1' is number 1, but number 0 must follow"},
    {"UPDATE chunk SET name = '/9' WHERE ordinal = 1", "claims the digest"},
    {"UPDATE chunk SET box_max_y = 100 WHERE ordinal = 0",
     "chunk '/0': its box spans 0.75..100 on axis 1"},
    {"UPDATE chunk SET reach_min_z = 100 WHERE ordinal = 0", "its reach is 100.."},
    {"UPDATE chunk SET max_log_scale = 0 WHERE ordinal = 0",
     "largest of 'log_scales' is 0, but it is 2"},
    {"UPDATE chunk SET max_opacity_logit = 9 WHERE ordinal = 1",
     "largest of 'opacity_logits' is 9, but it is 1"},
    {"UPDATE chunk SET hilbert_lo = 1000 WHERE ordinal = 0", "Hilbert codes"},
    {"UPDATE plane SET raw_bytes = 4 WHERE name = 'sh0'", "has 36 bytes in its segments, not 4"},
    {"UPDATE plane SET type = 'i32' WHERE name = 'sh0'", "plane 'sh0' is i32 x 3"},
    {"UPDATE plane SET name = 'odd' WHERE name = 'sh0'", "neither known nor extra/NAME"},
    {"DELETE FROM plane_segment WHERE plane = 1", "has 0 bytes in its segments"},
    {"UPDATE scene SET rows_read = 3", "comes from source row 3, but the source has 3"},
    {"UPDATE scene SET notes = '{'", "not a JSON object"},
    {"UPDATE scene SET notes = '[]'", "not a JSON object"},
    {"DELETE FROM scene", "there is no scene, though the stage chunk says that it finished"},
    {"UPDATE stage_output SET layer = NULL", "which does not exist"},
    {"DELETE FROM camera", "a tile table names camera 'view 1', which does not exist"},
    {"UPDATE tile_table SET visible = 3",
     "array 'visible_slot' has 16 bytes, but 3 elements of 4 are expected"},
    /* it has rank 3 */
    {"UPDATE tile_table SET visible = 3", "the code of tile 0 of rows 0..1 is damaged"},
    {"UPDATE tile_table SET pairs = 7", "it claims 7 pairs, but its bands have 6"},
    {"UPDATE tile_table SET width = 40", "do not cover 40 x 30 pixels"},
    {"UPDATE tile_table SET key = zeroblob(16), digest = zeroblob(16)", "does not have the digest"},
    {"UPDATE tile_band SET pairs = 2 WHERE band = 0", "claim 2 pairs, but have 3"},
    {"DELETE FROM tile_band WHERE band = 1", "in band 1"},
    {"UPDATE tile_band SET row0 = 0 WHERE band = 1", "but row 1 must follow"},
    {"UPDATE tile_segment SET raw_bytes = 4 WHERE name = 'tile_count' AND band = 0",
     "another size than its blob has"},
    {"UPDATE tile_segment SET hash = (SELECT hash FROM tile_segment WHERE name = 'rank_delta' AND "
     "band = 1) WHERE name = "
     "'rank_delta'"
     " AND band = 0",
     "the code of tile 0 of rows 0..1 is damaged"},
    {"UPDATE tile_segment SET hash = (SELECT hash FROM tile_segment WHERE name = 'visible_row'), "
     "raw_bytes = 8 WHERE name = "
     "'tile_count'"
     " AND band = 0",
     "is damaged"},
    {"DELETE FROM tile_segment WHERE name = 'chunks'", "row 2 of slot 0, which does not exist"},
    {"UPDATE chunk SET count = 1 WHERE ordinal = 0", "has 36 bytes for 1 rows"},
};

static void every_kind_of_damage_is_named(void **state)
{
    char path[600], name[16];
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        kiln_error err = {0};
        lines l = {.n = 0};
        uint64_t bytes;
        snprintf(name, sizeof name, "m%zu.db", i);
        kiln_manifest *m = filled(state, name, false);
        run_sql(m, "PRAGMA foreign_keys = OFF");
        run_sql(m, damages[i].sql);
        if (kiln_manifest_verify(m, add_sentence, &l, &bytes, &err) != KILN_E_IO)
            fail_msg("not found: %s", damages[i].sql);
        if (!strstr(l.text, damages[i].says))
            fail_msg("%s\nnot said: %s\nbut:\n%s", damages[i].sql, damages[i].says, l.text);
        assert_says(&err, in_scratch(state, name, path));
        kiln_manifest_close(m);
    }
}

static void bytes_behind_the_last_tile_are_found(void **state)
{
    kiln_error err = {0};
    lines l = {.n = 0};
    uint64_t bytes;
    char hex[33], sql[300];
    kiln_manifest *m = filled(state, "m.db", false);
    kiln_hash longer = put_bytes(m, "\0\1\2\3", 4, 1); /* the code of band 0 and one byte more */
    snprintf(sql, sizeof sql,
             "UPDATE tile_segment SET raw_bytes = 4, hash = x'%s' WHERE name = 'rank_delta' AND "
             "band = 0",
             kiln_hash_hex(longer, hex));
    run_sql(m, sql);
    assert_int_equal(kiln_manifest_verify(m, add_sentence, &l, &bytes, &err), KILN_E_IO);
    if (!strstr(l.text, "rows 0..1 have 1 bytes too many")) fail_msg("%s", l.text);
    kiln_manifest_close(m);
}

/* A new import of a smaller scene leaves the old outputs current until their stages run. */
static void what_is_stale_is_no_damage(void **state)
{
    kiln_error err = {0};
    uint64_t bytes;
    lines l = {.n = 0};
    kiln_manifest *m = filled(state, "m.db", false);
    run_sql(m,
            "UPDATE stage SET state = 'stale'; UPDATE scene SET rows_read = 1; DELETE FROM camera");
    if (kiln_manifest_verify(m, add_sentence, &l, &bytes, &err) != KILN_OK) fail_msg("%s", l.text);
    kiln_manifest_close(m);
}

/* ---- threads, --quick ------------------------------------------------------------------------ */
/* What is said with so many threads: sentences, the error, bytes. 0: by the caller's thread
 * alone. */
typedef struct {
    lines said;
    kiln_error err;
    kiln_status status;
    uint64_t bytes;
} outcome;

static outcome outcome_of(kiln_manifest *m, kiln_verify_options options)
{
    outcome r = {.bytes = 0};
    options.report = add_sentence;
    options.context = &r.said;
    r.status = kiln_manifest_verify_with(m, &options, &r.bytes, &r.err);
    return r;
}

static void assert_alike(const outcome *a, const outcome *b, const char *what)
{
    if (strcmp(a->said.text, b->said.text) != 0 || strcmp(a->err.msg, b->err.msg) != 0)
        fail_msg("%s\none thread says:\n%sothers say:\n%s", what, a->said.text, b->said.text);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->bytes, b->bytes);
}

static void assert_threads_are_alike(kiln_manifest *m, const char *what)
{
    const outcome alone = outcome_of(m, (kiln_verify_options){.threads = 0});
    for (unsigned threads = 1; threads <= 8; threads += 7) {
        const outcome r = outcome_of(m, (kiln_verify_options){.threads = threads});
        assert_alike(&alone, &r, what);
    }
    /* no table has room */
    const outcome small = outcome_of(m, (kiln_verify_options){.threads = 8, .ram_bytes = 1});
    assert_alike(&alone, &small, what);
}

static void damage_of_the_file_itself_is_found(void **state)
{
    char path[600];
    kiln_error err = {0};
    kiln_manifest *m = filled(state, "m.db", false);
    uint64_t bytes;
    int64_t pages = number_of(m, "PRAGMA page_count");
    kiln_manifest_close(m);
    int found = 0;
    /* not the first: without a header it is no manifest */
    for (int64_t page = 1; page < pages; page++) {
        FILE *f = fopen(in_scratch(state, "m.db", path), "r+b");
        assert_non_null(f);
        unsigned char was[64], zero[64] = {0};
        assert_int_equal(fseek(f, (long)page * 65536, SEEK_SET), 0);
        assert_int_equal(fread(was, 1, sizeof was, f), sizeof was);
        assert_int_equal(fseek(f, (long)page * 65536, SEEK_SET), 0);
        assert_int_equal(fwrite(zero, 1, sizeof zero, f), sizeof zero);
        assert_int_equal(fclose(f), 0);
        m = open_manifest(path, KILN_OPEN_READ);
        found += kiln_manifest_verify(m, NULL, NULL, &bytes, &err) != KILN_OK;
        assert_threads_are_alike(m, "a page without its head");
        kiln_manifest_close(m);
        f = fopen(path, "r+b");
        assert_non_null(f);
        assert_int_equal(fseek(f, (long)page * 65536, SEEK_SET), 0);
        assert_int_equal(fwrite(was, 1, sizeof was, f), sizeof was);
        assert_int_equal(fclose(f), 0);
    }
    assert_int_equal(found, pages - 1);
}

static void damage_is_told_alike_with_any_number_of_threads(void **state)
{
    char name[16];
    kiln_manifest *m = filled(state, "sound.db", false);
    assert_threads_are_alike(m, "nothing");
    kiln_manifest_close(m);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        snprintf(name, sizeof name, "m%zu.db", i);
        m = filled(state, name, false);
        run_sql(m, "PRAGMA foreign_keys = OFF");
        run_sql(m, damages[i].sql);
        assert_threads_are_alike(m, damages[i].sql);
        kiln_manifest_close(m);
    }
}

/* Every blob is replaced by one of its size with another content, every other one, or the last
 * alone; and rows besides. */
static void damage_in_many_blobs_is_told_alike(void **state)
{
    static const char *const which[] = {"1", "id % 2", "id = (SELECT max(id) FROM blob)",
                                        "id IN (2, 3, 5)"};
    char name[16], sql[300];
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        snprintf(name, sizeof name, "b%zu.db", i);
        kiln_manifest *m = filled(state, name, false);
        snprintf(sql, sizeof sql,
                 "UPDATE blob SET packed = CAST(substr(packed, 1, length(packed) - 1) || x'5a' AS "
                 "BLOB) WHERE %s",
                 which[i]);
        run_sql(m, sql);
        assert_threads_are_alike(m, sql);
        const outcome r = outcome_of(m, (kiln_verify_options){.threads = 8});
        snprintf(sql, sizeof sql, "SELECT count(*) FROM blob WHERE %s", which[i]);
        if (r.said.n < number_of(m, sql))
            fail_msg("%d problems are told:\n%s", r.said.n, r.said.text);
        run_sql(m, "UPDATE chunk SET box_max_y = 100 WHERE ordinal = 0; UPDATE tile_band SET pairs "
                   "= 2 WHERE band = 0");
        assert_threads_are_alike(m, "blobs and rows");
        kiln_manifest_close(m);
    }
}

/* As a blob's values are wrong, not its bytes: its hash is right. */
static void wrong_values_are_told_alike(void **state)
{
    char hex[33], sql[300];
    const float means[9] = {1, 2, 3, 4, INFINITY, 6, 7, 8, 9};
    kiln_manifest *m = filled(state, "m.db", false);
    kiln_hash other = put_bytes(m, means, sizeof means, 4);
    snprintf(sql, sizeof sql,
             "UPDATE plane_segment SET hash = x'%s' WHERE plane = (SELECT plane.id FROM plane JOIN "
             "chunk ON chunk.id = plane.chunk"
             " WHERE plane.name = 'means' AND ordinal = 0)",
             kiln_hash_hex(other, hex));
    run_sql(m, sql);
    assert_threads_are_alike(m, sql);
    const outcome r = outcome_of(m, (kiln_verify_options){.threads = 8});
    if (!strstr(r.said.text, "plane 'means' holds inf at element 4")) fail_msg("%s", r.said.text);
    kiln_manifest_close(m);
}

static void quick_finds_what_rows_say_and_reads_no_blob(void **state)
{
    static const char *const seen[] = {
        "DELETE FROM blob WHERE id = 1",
        "UPDATE blob SET raw_bytes = raw_bytes + 4 WHERE id = 2",
        "UPDATE blob SET elem = 3 WHERE id = 2",
        "UPDATE layer SET count = 5",
        "UPDATE chunk SET name = '/9' WHERE ordinal = 1",
        "DELETE FROM plane_segment WHERE plane = 1",
        "DELETE FROM scene",
        "UPDATE tile_table SET pairs = 7",
        "UPDATE tile_table SET digest = zeroblob(16)",
        "UPDATE tile_band SET pairs = 2 WHERE band = 0",
    };
    char name[16];
    kiln_manifest *m = filled(state, "m.db", false);
    outcome r = outcome_of(m, (kiln_verify_options){.quick = true, .threads = 8});
    if (r.status != KILN_OK) fail_msg("a sound manifest: %s", r.said.text);
    assert_int_equal(r.bytes, 0);
    run_sql(
        m, "UPDATE blob SET packed = CAST(substr(packed, 1, length(packed) - 1) || x'5a' AS BLOB)");
    r = outcome_of(m, (kiln_verify_options){.quick = true});
    if (r.status != KILN_OK) fail_msg("it looks into blobs: %s", r.said.text);
    kiln_manifest_close(m);
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        snprintf(name, sizeof name, "q%zu.db", i);
        m = filled(state, name, false);
        run_sql(m, "PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON");
        run_sql(m, seen[i]);
        r = outcome_of(m, (kiln_verify_options){.quick = true});
        if (r.status != KILN_E_IO || r.said.n == 0) fail_msg("not found: %s", seen[i]);
        kiln_manifest_close(m);
    }
}

/* ---- digest lines ---------------------------------------------------------------------------- */
static void add_line(void *context, const char *kind, const char *name, kiln_hash digest)
{
    char line[600], hex[33];
    snprintf(line, sizeof line, "%s %s %s", kind, name, kiln_hash_hex(digest, hex));
    add_sentence(context, line);
}

static void digest_lines_are_three_words_each_and_sorted(void **state)
{
    kiln_error err = {0};
    lines l = {.n = 0};
    kiln_manifest *m = filled(state, "m.db", false);
    OK(kiln_manifest_digests(m, add_line, &l, &err));
    assert_int_equal(l.n, 3);
    char copy[sizeof l.text], *save = NULL;
    strcpy(copy, l.text);
    static const char *const starts[] = {"image view%201:inria:near=0.2 ", "layer baked ",
                                         "table view%201:inria:near=0.2 "};
    int i = 0;
    for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save), i++) {
        assert_int_equal(strncmp(line, starts[i], strlen(starts[i])), 0);
        assert_int_equal(strlen(line), strlen(starts[i]) + 32);
    }
    kiln_manifest_close(m);
}

static void digest_lines_do_not_depend_on_order_or_device(void **state)
{
    kiln_error err = {0};
    lines a = {.n = 0}, b = {.n = 0};
    kiln_manifest *m = filled(state, "a.db", false), *o = filled(state, "b.db", true);
    kiln_image image = fixture_image("view 1");
    /* the same pixels from a second kind of device: still one line */
    strcpy(image.device_kind, "cuda");
    OK(kiln_image_put(o, &image, &err));
    OK(kiln_manifest_digests(m, add_line, &a, &err));
    OK(kiln_manifest_digests(o, add_line, &b, &err));
    assert_string_equal(a.text, b.text);
    kiln_manifest_close(m);
    kiln_manifest_close(o);
}

static void digest_lines_of_fast_pictures_say_so(void **state)
{
    kiln_error err = {0};
    lines l = {.n = 0};
    kiln_manifest *m = filled(state, "a.db", false);
    kiln_image image = fixture_image("view 1"); /* the same pixels, even */
    strcpy(image.device_kind, "cuda-fast");
    OK(kiln_image_put(m, &image, &err));
    OK(kiln_manifest_digests(m, add_line, &l, &err));
    assert_int_equal(l.n, 4);
    assert_non_null(strstr(l.text, "image view%201:inria:near=0.2:fast "));
    assert_non_null(strstr(l.text, "image view%201:inria:near=0.2 "));
    kiln_manifest_close(m);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_scratch, remove_scratch)
    const struct CMUnitTest tests[] = {
        TEST(sound_manifest_passes),
        TEST(every_kind_of_damage_is_named),
        TEST(bytes_behind_the_last_tile_are_found),
        TEST(what_is_stale_is_no_damage),
        TEST(damage_of_the_file_itself_is_found),
        TEST(damage_is_told_alike_with_any_number_of_threads),
        TEST(damage_in_many_blobs_is_told_alike),
        TEST(wrong_values_are_told_alike),
        TEST(quick_finds_what_rows_say_and_reads_no_blob),
        TEST(digest_lines_are_three_words_each_and_sorted),
        TEST(digest_lines_do_not_depend_on_order_or_device),
        TEST(digest_lines_of_fast_pictures_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
