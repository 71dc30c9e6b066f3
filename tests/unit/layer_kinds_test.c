/* layers.def: each name that code asks for is a row, rows and stages.def agree, manifest.sql holds
 * every kind, and which layer is the one to draw. */
#include "manifest_fixture.h"
#include "stages/engine/parent/run.h"
#include "stages/engine/parent/run_layers.h"

static kiln_manifest *new_manifest(void **state, const char *name)
{
    char path[600];
    return open_manifest(in_scratch(state, name, path), KILN_OPEN_CREATE);
}

static void put(kiln_manifest *m, fixture_layer *f, const char *kind, const char *stage)
{
    kiln_error err = {0};
    fixture_layer_make(m, f, kind, false);
    OK(kiln_layer_put(m, &f->layer, &err));
    if (stage) OK(kiln_stage_output_put(m, stage, kind, f->layer.digest, &err));
}

static void set_state(kiln_manifest *m, const char *stage, kiln_stage_state state)
{
    kiln_error err = {0};
    kiln_stage_row row = {.version = kiln_stage_find(stage)->version, .state = state};
    snprintf(row.name, sizeof row.name, "%s", stage);
    OK(kiln_stage_put(m, &row, &err));
}

static void names_and_kinds_belong_together(void **state)
{
    (void)state;
    for (int k = 0; k < KILN_LAYER_KINDS; k++)
        assert_int_equal(kiln_layer_kind_find(kiln_layer_kinds[k].name), k);
    assert_int_equal(kiln_layer_kind_find("bake"), KILN_LAYER_KINDS);
    assert_int_equal(kiln_layer_kind_find(""), KILN_LAYER_KINDS);
    assert_int_equal(kiln_layer_kind_find("source spacing"), KILN_LAYER_KINDS);
}

/* Options list the kinds in the order of layers.def; a measurement is nothing to export, chunks are
 * nothing to cut. */
static void options_list_what_can_be_drawn_and_cut(void **state)
{
    (void)state;
    uint32_t drawable = 0, blocks = 0;
    for (int k = 0; k < KILN_LAYER_KINDS; k++) {
        const kiln_layer_form form = kiln_layer_kinds[k].form;
        if (form >= KILN_FORM_DRAWABLE)
            assert_int_equal(kiln_layer_kind_chosen(kiln_drawable_names, drawable++), k);
        if (form == KILN_FORM_ROWS || form == KILN_FORM_BLOCKS)
            assert_int_equal(kiln_layer_kind_chosen(kiln_block_layer_names, blocks++), k);
    }
    assert_int_equal(kiln_layer_kind_chosen(kiln_drawable_names, drawable), KILN_LAYER_KINDS);
    assert_int_equal(kiln_layer_kind_chosen(kiln_block_layer_names, blocks), KILN_LAYER_KINDS);
}

/* Each kind is made by the stage that layers.def names, which stands in stages.def, in the same
 * order. */
static void stages_make_the_kinds_that_name_them(void **state)
{
    (void)state;
    const kiln_stage_info *before = kiln_stage_graph;
    for (int k = 0; k < KILN_LAYER_KINDS; k++) {
        const kiln_stage_info *stage = kiln_stage_find(kiln_layer_kinds[k].stage);
        assert_non_null(stage);
        assert_true(stage >= before);
        if (!kiln_words_have(stage->makes, kiln_layer_kinds[k].name))
            fail_msg("layers.def says that %s makes '%s', and what it makes in "
                     "pipelines/stages.def lacks it",
                     stage->name, kiln_layer_kinds[k].name);
        before = stage;
    }
    for (const kiln_stage_info *s = kiln_stage_graph; s->name; s++) {
        char word[64];
        for (const char *at = s->makes; kiln_word_next(&at, word, sizeof word);) {
            const kiln_layer_kind k = kiln_layer_kind_find(word);
            if (k != KILN_LAYER_KINDS) assert_string_equal(kiln_layer_kinds[k].stage, s->name);
        }
    }
}

static bool is_made_before(const kiln_stage_info *stage, const char *output)
{
    for (const kiln_stage_info *s = kiln_stage_graph; s < stage; s++)
        if (kiln_words_have(s->makes, output)) return true;
    return false;
}

static void stages_read_what_earlier_ones_make(void **state)
{
    (void)state;
    char word[64];
    for (const kiln_stage_info *s = kiln_stage_graph; s->name; s++)
        for (const char *at = s->reads; kiln_word_next(&at, word, sizeof word);)
            if (strcmp(word, "chunks") != 0 && strcmp(word, "drawable") != 0 &&
                !is_made_before(s, word))
                fail_msg("%s reads '%s', which no stage before it makes", s->name, word);
}

static bool needs(const char *stage, const char *earlier)
{
    return kiln_stage_needs(kiln_stage_find(stage), kiln_stage_find(earlier));
}

/* The words for groups of layers stand for the kinds that layers.def gives that form, and never for
 * a stage's own. */
static void a_stage_needs_those_whose_outputs_it_reads(void **state)
{
    (void)state;
    assert_true(kiln_stage_reads(kiln_stage_find("tiles"), "baked"));
    assert_false(kiln_stage_reads(kiln_stage_find("tiles"), "pruned"));
    assert_false(kiln_stage_reads(kiln_stage_find("tiles"), "words"));
    assert_true(kiln_stage_reads(kiln_stage_find("export"), "initial"));
    assert_false(kiln_stage_reads(kiln_stage_find("export"), "cameras"));
    assert_false(kiln_stage_reads(kiln_stage_find("export"), "spacing"));
    assert_true(needs("tiles", "chunk"));
    assert_true(needs("tiles", "import"));
    assert_false(needs("tiles", "prune"));
    assert_true(needs("chunk", "knn"));
    assert_false(needs("chunk", "chunk"));
    assert_false(needs("prune", "chunk"));
}

/* manifest.sql has no list of kinds that a new row of layers.def would have to be in: a layer of
 * any of them can be stored. */
static void the_manifest_takes_every_kind(void **state)
{
    kiln_error err = {0};
    kiln_manifest *m = new_manifest(state, "m.db");
    for (int k = 0; k < KILN_LAYER_KINDS; k++) {
        kiln_layer empty = {0}, *got;
        snprintf(empty.kind, sizeof empty.kind, "%s", kiln_layer_kinds[k].name);
        if (kiln_layer_kinds[k].form == KILN_FORM_LEVELS) {
            empty.origin = kiln_hash_of("baked", 5);
            strcpy(empty.origin_profile, "inria");
            empty.origin_near = 0.2;
        }
        OK(kiln_layer_put(m, &empty, &err));
        OK(kiln_layer_get_digest(m, kiln_layer_kinds[k].name, empty.digest, &got, &err));
        kiln_layer_free(got);
    }
    kiln_layer other = {.kind = "bake"};
    assert_int_equal(kiln_layer_put(m, &other, &err), KILN_E_INPUT);
    assert_says(&err, "'bake' is not a kind of layers");
    kiln_manifest_close(m);
}

static void the_newest_layer_is_the_last_kind_that_is_there(void **state)
{
    kiln_error err = {0};
    kiln_layer *got;
    kiln_manifest *m = new_manifest(state, "m.db");
    fixture_layer *f = malloc(sizeof *f);
    assert_non_null(f);
    assert_int_equal(kiln_layer_newest(m, KILN_FORM_DRAWABLE, &got, &err), KILN_E_STALE);
    assert_says(&err, "has no layer 'source'");
    put(m, f, "initial", "knn");
    put(m, f, "source", "import");
    OK(kiln_layer_newest(m, KILN_FORM_DRAWABLE, &got, &err));
    assert_string_equal(got->kind, "initial");
    kiln_layer_free(got);
    assert_int_equal(kiln_layer_get_drawn(m, &got, &err), KILN_E_STALE);
    assert_says(&err, "has no layer 'baked'");
    put(m, f, "baked", NULL); /* no stage names it */
    assert_int_equal(kiln_layer_get_drawn(m, &got, &err), KILN_E_STALE);
    put(m, f, "baked", "chunk");
    OK(kiln_layer_get_drawn(m, &got, &err));
    assert_string_equal(got->kind, "baked");
    kiln_layer_free(got);
    free(f);
    kiln_manifest_close(m);
}

/* ---- what a stage reads ---------------------------------------------------------------------- */
static kiln_run *run_of(kiln_manifest *m, const char *stage)
{
    static kiln_stage_program program;
    kiln_run *r = calloc(1, sizeof *r);
    assert_non_null(r);
    program.name = stage;
    r->program = &program;
    r->stage = kiln_stage_find(stage);
    r->manifest = m;
    return r;
}

static void a_stage_reads_the_nearest_layer_before_it(void **state)
{
    kiln_error err = {0};
    kiln_layer_kind kind;
    kiln_manifest *m = new_manifest(state, "m.db");
    fixture_layer *f = malloc(sizeof *f);
    assert_non_null(f);
    kiln_run *chunk = run_of(m, "chunk"), *tiles = run_of(m, "tiles");
    assert_int_equal(kiln_run_need_layer(tiles, KILN_FORM_CHUNKS, &kind, &err), KILN_E_STALE);
    assert_says(&err, "chunk has not run");
    put(m, f, "source", "import");
    put(m, f, "baked", "chunk");
    set_state(m, "import", KILN_STAGE_FRESH);
    set_state(m, "knn", KILN_STAGE_FRESH); /* it made no layer 'initial' */
    set_state(m, "chunk", KILN_STAGE_FRESH);
    OK(kiln_run_need_layer(tiles, KILN_FORM_CHUNKS, &kind, &err));
    assert_int_equal(kind, KILN_LAYER_baked);
    OK(kiln_run_need_layer(chunk, KILN_FORM_DRAWABLE, &kind, &err)); /* not its own */
    assert_int_equal(kind, KILN_LAYER_source);
    put(m, f, "pruned", "prune");
    set_state(m, "prune", KILN_STAGE_STALE);
    assert_int_equal(kiln_run_need_layer(chunk, KILN_FORM_DRAWABLE, &kind, &err), KILN_E_STALE);
    assert_says(&err, "prune is stale");
    assert_says(&err, "first, or kiln pipeline SCENE, which runs all stages that are due");
    free(tiles);
    free(chunk);
    free(f);
    kiln_manifest_close(m);
}

static void a_stage_puts_only_layers_of_its_own(void **state)
{
    kiln_error err = {0};
    kiln_hash digest;
    kiln_manifest *m = new_manifest(state, "m.db");
    kiln_run *r = run_of(m, "prune");
    kiln_layer l = {.kind = "baked"};
    assert_int_equal(kiln_run_put_layer(r, &l, &err), KILN_E_BUG);
    assert_says(&err, "prune makes no layer 'baked'");
    strcpy(l.kind, "pruned");
    OK(kiln_run_put_layer(r, &l, &err));
    OK(kiln_stage_output_get(m, "prune", "pruned", &digest, &err));
    assert_true(kiln_hash_equal(digest, l.digest));
    free(r);
    kiln_manifest_close(m);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_scratch, remove_scratch)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_kinds_belong_together),
        cmocka_unit_test(options_list_what_can_be_drawn_and_cut),
        cmocka_unit_test(stages_make_the_kinds_that_name_them),
        cmocka_unit_test(stages_read_what_earlier_ones_make),
        cmocka_unit_test(a_stage_needs_those_whose_outputs_it_reads),
        TEST(the_manifest_takes_every_kind),
        TEST(the_newest_layer_is_the_last_kind_that_is_there),
        TEST(a_stage_reads_the_nearest_layer_before_it),
        TEST(a_stage_puts_only_layers_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
