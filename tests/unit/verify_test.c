/* verify: a sound manifest passes, each kind of damage is named; digest lines say content and nothing else. */
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
    {"UPDATE layer SET count = 5", "layer 'baked' says 5 rows, its chunks have 4"},
    {"UPDATE layer SET digest = zeroblob(16)", "by another digest or kind"},
    {"UPDATE layer SET sh_degree = 1; UPDATE plane SET name = 'shN' WHERE name = 'sh0'", "plane 'shN' is f32 x 3"},
    {"DELETE FROM chunk WHERE ordinal = 0", "chunk '/1' is number 1, number 0 comes next"},
    {"UPDATE chunk SET name = '/9' WHERE ordinal = 1", "says digest"},
    {"UPDATE chunk SET box_max_y = 100 WHERE ordinal = 0", "chunk '/0': its box says 0.75..100 on axis 1"},
    {"UPDATE chunk SET reach_min_z = 100 WHERE ordinal = 0", "its reach is 100.."},
    {"UPDATE chunk SET max_log_scale = 0 WHERE ordinal = 0", "largest of 'log_scales' is 0, it is 2"},
    {"UPDATE chunk SET max_opacity_logit = 9 WHERE ordinal = 1", "largest of 'opacity_logits' is 9, it is 1"},
    {"UPDATE chunk SET hilbert_lo = 1000 WHERE ordinal = 0", "Hilbert codes"},
    {"UPDATE plane SET raw_bytes = 4 WHERE name = 'sh0'", "has 36 bytes in its segments, not 4"},
    {"UPDATE plane SET type = 'i32' WHERE name = 'sh0'", "plane 'sh0' is i32 x 3"},
    {"UPDATE plane SET name = 'odd' WHERE name = 'sh0'", "neither known nor extra/NAME"},
    {"DELETE FROM plane_segment WHERE plane = 1", "has 0 bytes in its segments"},
    {"UPDATE scene SET rows_read = 3", "comes from source row 3, the source has 3"},
    {"UPDATE scene SET notes = '{'", "no JSON"},
    {"UPDATE scene SET notes = '[]'", "no JSON"},
    {"DELETE FROM scene", "there is no scene, though the stage chunk says that it finished"},
    {"UPDATE stage_output SET layer = NULL", "which is not there"},
    {"DELETE FROM camera", "a tile table is of camera 'view 1', which is not there"},
    {"UPDATE tile_table SET visible = 3", "array 'visible_slot' has 16 bytes, 3 elements of 4 are expected"},
    {"UPDATE tile_table SET visible = 3", "the code of tile 0 of rows 0..1 is damaged"}, /* it has rank 3 */
    {"UPDATE tile_table SET pairs = 7", "it says 7 pairs, its bands have 6"},
    {"UPDATE tile_table SET width = 40", "do not cover 40 x 30 pixels"},
    {"UPDATE tile_table SET key = zeroblob(16), digest = zeroblob(16)", "another digest"},
    {"UPDATE tile_band SET pairs = 2 WHERE band = 0", "say 2 pairs, they have 3"},
    {"DELETE FROM tile_band WHERE band = 1", "in band 1"},
    {"UPDATE tile_band SET row0 = 0 WHERE band = 1", "row 1 comes next"},
    {"UPDATE tile_segment SET raw_bytes = 4 WHERE name = 'tile_count' AND band = 0", "another size than its blob"},
    {"UPDATE tile_segment SET hash = (SELECT hash FROM tile_segment WHERE name = 'rank_delta' AND band = 1) WHERE name = "
     "'rank_delta'"
     " AND band = 0",
     "the code of tile 0 of rows 0..1 is damaged"},
    {"UPDATE tile_segment SET hash = (SELECT hash FROM tile_segment WHERE name = 'visible_row'), raw_bytes = 8 WHERE name = "
     "'tile_count'"
     " AND band = 0",
     "is damaged"},
    {"DELETE FROM tile_segment WHERE name = 'chunks'", "row 2 of slot 0, which is not there"},
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
        if (kiln_manifest_verify(m, add_sentence, &l, &bytes, &err) != KILN_E_IO) fail_msg("not found: %s", damages[i].sql);
        if (!strstr(l.text, damages[i].says)) fail_msg("%s\nnot said: %s\nbut:\n%s", damages[i].sql, damages[i].says, l.text);
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
    snprintf(sql, sizeof sql, "UPDATE tile_segment SET raw_bytes = 4, hash = x'%s' WHERE name = 'rank_delta' AND band = 0",
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
    run_sql(m, "UPDATE stage SET state = 'stale'; UPDATE scene SET rows_read = 1; DELETE FROM camera");
    if (kiln_manifest_verify(m, add_sentence, &l, &bytes, &err) != KILN_OK) fail_msg("%s", l.text);
    kiln_manifest_close(m);
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
    for (int64_t page = 1; page < pages; page++) { /* not the first: without a header it is no manifest */
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
        kiln_manifest_close(m);
        f = fopen(path, "r+b");
        assert_non_null(f);
        assert_int_equal(fseek(f, (long)page * 65536, SEEK_SET), 0);
        assert_int_equal(fwrite(was, 1, sizeof was, f), sizeof was);
        assert_int_equal(fclose(f), 0);
    }
    assert_int_equal(found, pages - 1);
}

/* ---- digest lines ------------------------------------------------------------------------------------------------ */
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
    static const char *const starts[] = {"image view%201:inria:near=0.2 ", "layer baked ", "table view%201:inria:near=0.2 "};
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
    strcpy(image.device_kind, "cuda"); /* the same pixels from a second kind of device: still one line */
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
        TEST(digest_lines_are_three_words_each_and_sorted),
        TEST(digest_lines_do_not_depend_on_order_or_device),
        TEST(digest_lines_of_fast_pictures_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
