/* drawn -- which chunks a view draws, of a layer and of its levels, and which of them its keys
 * depend on. */
#include "levels_fixture.h"
#include "stages/frame/frame.h"

/* A manifest with the layers of levels_fixture.h, and a camera before them: all boxes are at the
 * origin. */
typedef struct {
    kiln_manifest *m;
    kiln_view_request request;
} bake;

static bake open_bake(void **state)
{
    bake b = {0};
    char path[600];
    kiln_error err = {0};
    const kiln_view_options options = {.near_text = "profile"};
    kiln_camera *camera = calloc(1, sizeof *camera);
    kiln_scene *scene = calloc(1, sizeof *scene);
    b.m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    put_small_levels(b.m);
    *camera = (kiln_camera){.r = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                            .t = {0, 0, 4},
                            .width = 64,
                            .height = 48,
                            .fx = 60,
                            .fy = 60,
                            .cx = 32,
                            .cy = 24};
    OK(kiln_view_request_init(&b.request, &options, scene, camera, &err));
    free(scene);
    free(camera);
    return b;
}

static kiln_drawn drawn_of(const bake *b, bool with_levels)
{
    kiln_error err = {0};
    kiln_drawn d;
    OK(kiln_drawn_current(b->m, KILN_LAYER_baked, with_levels, &d, &err));
    return d;
}

/* The names of the chunks that a level takes, each with a blank behind it. */
static kiln_view_chunks chunks_of(const bake *b, const kiln_drawn *d, const char *level,
                                  char names[1024])
{
    kiln_error err = {0};
    kiln_level_wish wish;
    kiln_view_chunks c;
    size_t used = 0;
    OK(kiln_level_wish_parse(level, &wish, &err));
    OK(kiln_view_chunks_choose(d, &wish, &b->request, &c, &err));
    names[0] = '\0';
    for (uint32_t i = 0; i < c.n; i++) {
        assert_true(i == 0 || c.numbers[i] > c.numbers[i - 1]);
        assert_true(c.numbers[i] < d->chunks->n_chunks);
        used += (size_t)snprintf(names + used, 1024 - used, "%s ",
                                 d->chunks->chunks[c.numbers[i]].name);
        assert_true(used < 1024);
    }
    return c;
}

static void level_is(const bake *b, const kiln_drawn *d, const char *level, const char *want,
                     uint64_t rows)
{
    char names[1024];
    kiln_view_chunks c = chunks_of(b, d, level, names);
    assert_string_equal(names, want);
    assert_int_equal(c.rows, rows);
    kiln_view_chunks_release(&c);
}

static const char all[] = "/0/0-3 /0/4 /0/5-7 /2/4/1 /3-5 /6/0 /6/1-7 ";

static void a_view_takes_chunks_of_both_layers(void **state)
{
    const bake b = open_bake(state);
    kiln_drawn d = drawn_of(&b, true), full = drawn_of(&b, false);
    assert_int_equal(d.n_full, N_SMALL);
    assert_int_equal(d.chunks->n_chunks, N_SMALL + d.levels->n_chunks);
    assert_int_equal(d.chunks->count, d.layer->count + d.levels->count);
    assert_ptr_equal(full.chunks, full.layer);
    level_is(&b, &full, "0", all, 30);
    level_is(&b, &d, "0", all, 30);
    level_is(&b, &d, "1", "/0/0-3@1 /0/4@1 /0/5-7@1 /2/4/1@1 /3-5@1 /6/0@1 /6/1-7@1 ",
             2 + 4 + 1 + 2 + 3 + 1 + 1);
    level_is(&b, &d, "3", "/0@3 /2/4/1@2 /3-5@2 /6@3 ", 2 + 1 + 1 + 1);
    level_is(&b, &d, "4", "/@4 ", 2);
    level_is(&b, &d, "dB:200", all, 30);
    kiln_drawn_release(&full);
    kiln_drawn_release(&d);
    kiln_manifest_close(b.m);
}

static kiln_hash table_key(const bake *b, const kiln_drawn *d, const char *level)
{
    char names[1024];
    kiln_error err = {0};
    kiln_chunk_keys keys;
    kiln_view_chunks c = chunks_of(b, d, level, names);
    OK(kiln_chunk_keys_make(d->chunks, &keys, &err));
    const kiln_hash key = kiln_view_request_table_key(&b->request, &keys, &c);
    kiln_chunk_keys_release(&keys);
    kiln_view_chunks_release(&c);
    return key;
}

/* One cut for all views: the other chunks are gone, and keys stay. */
static void a_level_that_is_named_leaves_its_chunks_alone(void **state)
{
    const bake b = open_bake(state);
    kiln_error err = {0};
    kiln_drawn d = drawn_of(&b, true), again;
    const kiln_level_wish three = {.form = KILN_LEVEL_AT, .level = 3},
                          some = {.form = KILN_LEVEL_DB, .db = 30};
    const kiln_hash key = table_key(&b, &d, "3");
    OK(kiln_drawn_narrow(&d, &some, &err)); /* views take other cuts */
    assert_int_equal(d.chunks->n_chunks, N_SMALL + d.levels->n_chunks);
    OK(kiln_drawn_narrow(&d, &three, &err));
    assert_int_equal(d.chunks->n_chunks, 4);
    assert_int_equal(d.chunks->count, 5);
    level_is(&b, &d, "3", "/0@3 /2/4/1@2 /3-5@2 /6@3 ", 5);
    assert_true(kiln_hash_equal(table_key(&b, &d, "3"), key));
    const kiln_drawn_name name = kiln_drawn_name_of(&d, &three);
    OK(kiln_drawn_get(b.m, &name, &again, &err));
    assert_int_equal(again.chunks->n_chunks, 4);
    level_is(&b, &again, "3", "/0@3 /2/4/1@2 /3-5@2 /6@3 ", 5);
    kiln_drawn_release(&again);
    kiln_drawn_release(&d);
    d = drawn_of(&b, false);
    OK(kiln_drawn_narrow(&d, &kiln_level_full, &err));
    level_is(&b, &d, "0", all, 30);
    kiln_drawn_release(&d);
    kiln_manifest_close(b.m);
}

static void what_is_named_is_read_again(void **state)
{
    const bake b = open_bake(state);
    kiln_error err = {0};
    kiln_drawn d = drawn_of(&b, true), again;
    const kiln_level_wish wish = {.form = KILN_LEVEL_AT, .level = 3};
    const kiln_drawn_name name = kiln_drawn_name_of(&d, &wish);
    kiln_drawn_name strange = name;
    OK(kiln_drawn_get(b.m, &name, &again, &err));
    assert_int_equal(again.chunks->n_chunks, d.chunks->n_chunks);
    level_is(&b, &again, "3", "/0@3 /2/4/1@2 /3-5@2 /6@3 ", 5);
    kiln_drawn_release(&again);
    strange.levels.bytes[0] ^= 1;
    assert_int_not_equal(kiln_drawn_get(b.m, &strange, &again, &err), KILN_OK);
    kiln_drawn_release(&again);
    kiln_drawn_release(&d);
    run_sql(b.m, "DELETE FROM stage_output WHERE role = 'levels'");
    assert_int_equal(kiln_drawn_current(b.m, KILN_LAYER_baked, true, &d, &err), KILN_E_STALE);
    assert_says(&err, "run kiln-lod first");
    kiln_drawn_release(&d);
    d = drawn_of(&b, false); /* which needs none */
    kiln_drawn_release(&d);
    kiln_manifest_close(b.m);
}

static bool same_key(kiln_hash a, kiln_hash b) { return kiln_hash_equal(a, b); }

static void keys_are_of_the_chunks_that_are_drawn_alone(void **state)
{
    const bake b = open_bake(state);
    kiln_drawn d = drawn_of(&b, true), full = drawn_of(&b, false);
    const kiln_hash in_full = table_key(&b, &full, "0"), level1 = table_key(&b, &d, "1"),
                    level3 = table_key(&b, &d, "3");
    assert_true(same_key(table_key(&b, &d, "0"), in_full));
    assert_true(same_key(table_key(&b, &d, "dB:200"), in_full));
    assert_false(same_key(level1, in_full));
    assert_false(same_key(level1, level3));
    /* another content of the first level of the first chunk */
    kiln_chunk *c = &d.chunks->chunks[N_SMALL];
    assert_string_equal(c->name, "/0/0-3@1");
    for (uint32_t i = 0; i < c->n_planes; i++) c->planes[i].data.segments[0].bytes[0] ^= 1;
    assert_true(same_key(table_key(&b, &d, "0"), in_full));
    assert_true(same_key(table_key(&b, &d, "3"), level3));
    assert_false(same_key(table_key(&b, &d, "1"), level1));
    kiln_drawn_release(&full);
    kiln_drawn_release(&d);
    kiln_manifest_close(b.m);
}

static void a_view_says_how_much_of_each_level_it_takes(void **state)
{
    const bake b = open_bake(state);
    char names[1024];
    kiln_error err = {0};
    kiln_drawn d = drawn_of(&b, true);
    kiln_view_detail detail = {0}, narrow = {0};
    kiln_view_chunks c = chunks_of(&b, &d, "3", names);
    kiln_view_detail_add(&detail, &d, &b.request, &c);
    assert_int_equal(detail.full, 30);
    assert_int_equal(detail.rows, 5);
    assert_int_equal(detail.of_level[2], 2);
    assert_int_equal(detail.of_level[3], 3);
    assert_int_equal(detail.chunks_of_level[3], 2);
    kiln_view_chunks_release(&c);
    OK(kiln_drawn_narrow(&d, &(kiln_level_wish){.form = KILN_LEVEL_AT, .level = 3}, &err));
    c = chunks_of(&b, &d, "3", names);
    kiln_view_detail_add(&narrow, &d, &b.request, &c);
    assert_memory_equal(&narrow, &detail, sizeof detail);
    kiln_view_chunks_release(&c);
    kiln_drawn_release(&d);
    kiln_manifest_close(b.m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_view_takes_chunks_of_both_layers, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(a_level_that_is_named_leaves_its_chunks_alone, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(what_is_named_is_read_again, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(keys_are_of_the_chunks_that_are_drawn_alone, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(a_view_says_how_much_of_each_level_it_takes, make_scratch,
                                        remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
