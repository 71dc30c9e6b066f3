/* node_units: which levels kiln-lod makes of a tree, before anything is computed: rows of leaves
 * and of nodes above, how far levels go in deep trees, and units in the order in which they can be
 * computed. */
#include "levels_fixture.h"

#include "stages/lod/node_units.h"

static kiln_lod_plan plan_of(const kiln_layer *baked, uint32_t levels, uint64_t coarsest)
{
    const kiln_lod_rule rule = {.levels = levels, .coarsest = coarsest};
    kiln_error err = {0};
    kiln_lod_plan p;
    OK(kiln_lod_plan_make(baked, &rule, &p, &err));
    return p;
}

static const kiln_lod_unit *unit_of(const kiln_lod_plan *p, const char *name)
{
    for (uint32_t i = 0; i < p->tree.n_nodes; i++)
        if (!strcmp(p->tree.nodes[i].name, name)) return kiln_lod_payload(p, i);
    fail_msg("there is no node '%s'", name);
    return NULL;
}

static void counts_are(const kiln_lod_unit *u, uint32_t first_level, uint32_t n,
                       const uint64_t *counts)
{
    assert_int_equal(u->first_level, first_level);
    assert_int_equal(u->n_levels, n);
    for (uint32_t i = 0; i < n; i++) assert_int_equal(u->counts[i], counts[i]);
}

/* ---- rows ------------------------------------------------------------------------------------ */
static void a_leaf_is_halved_down_to_one(void **state)
{
    (void)state;
    kiln_layer *baked =
        baked_of(NULL, (chunk_place[]){{"/0", "/", 1}, {"/1", "/", 100}, {"/2", "/", 65536}}, 3);
    kiln_lod_plan p = plan_of(baked, 4, 4096);
    counts_are(unit_of(&p, "/0"), 1, 4, (uint64_t[]){1, 1, 1, 1});
    counts_are(unit_of(&p, "/1"), 1, 4, (uint64_t[]){50, 25, 12, 6});
    counts_are(unit_of(&p, "/2"), 1, 4, (uint64_t[]){32768, 16384, 8192, 4096});
    assert_int_equal(unit_of(&p, "/1")->rows, 100);
    kiln_lod_plan_release(&p);
    kiln_layer_free(baked);
}

/* 1 + 6 + 4096 rows go into the root, which goes on until --coarsest are left. */
static void a_node_above_goes_on_from_its_children(void **state)
{
    (void)state;
    kiln_layer *baked =
        baked_of(NULL, (chunk_place[]){{"/0", "/", 1}, {"/1", "/", 100}, {"/2", "/", 65536}}, 3);
    kiln_lod_plan p = plan_of(baked, 4, 600);
    counts_are(unit_of(&p, "/"), 5, 3, (uint64_t[]){2051, 1025, 512});
    assert_int_equal(unit_of(&p, "/")->rows, 4103);
    kiln_lod_plan_release(&p);
    p = plan_of(baked, 4, 65536); /* one level at least */
    counts_are(unit_of(&p, "/"), 5, 1, (uint64_t[]){2051});
    kiln_lod_plan_release(&p);
    kiln_layer_free(baked);
}

static void no_level_has_more_rows_than_a_chunk(void **state)
{
    (void)state;
    chunk_place places[8] = {{"/0", "/", 65536}, {"/1", "/", 65536}, {"/2", "/", 65536},
                             {"/3", "/", 65536}, {"/4", "/", 65536}, {"/5", "/", 65536},
                             {"/6", "/", 65536}, {"/7", "/", 65536}};
    kiln_layer *baked = baked_of(NULL, places, 8);
    kiln_lod_plan p = plan_of(baked, 1, 65536);
    assert_int_equal(unit_of(&p, "/")->rows, 8 * 32768);
    counts_are(unit_of(&p, "/"), 2, 1, (uint64_t[]){65536});
    kiln_lod_plan_release(&p);
    kiln_layer_free(baked);
}

/* A layer without rows, and one whose only chunk is the root. */
static void small_layers_have_few_units(void **state)
{
    (void)state;
    kiln_layer *none = baked_of(NULL, NULL, 0),
               *one = baked_of(NULL, (chunk_place[]){{"/", "", 9}}, 1);
    kiln_lod_plan p = plan_of(none, 4, 4096);
    assert_int_equal(p.tree.n_nodes, 0);
    assert_int_equal(p.n_heights, 0);
    kiln_lod_plan_release(&p);
    p = plan_of(one, 2, 1);
    assert_int_equal(p.n_heights, 1);
    counts_are(unit_of(&p, "/"), 1, 2, (uint64_t[]){4, 2});
    kiln_lod_plan_release(&p);
    kiln_layer_free(one);
    kiln_layer_free(none);
}

/* ---- order ----------------------------------------------------------------------------------- */
static void units_come_by_height(void **state)
{
    (void)state;
    kiln_layer *baked = baked_of(NULL, small_places, N_SMALL);
    kiln_lod_plan p = plan_of(baked, 2, 2);
    assert_int_equal(p.n_heights, 3);
    assert_int_equal(p.first[0], 0);
    assert_int_equal(p.first[1], 7); /* the chunk without rows is none */
    assert_int_equal(p.first[2], 9);
    assert_int_equal(p.first[3], 10);
    for (uint32_t i = 0; i < p.tree.n_nodes; i++) {
        assert_int_equal(p.node_of[p.unit_of[i]], i);
        const uint32_t up = p.tree.nodes[i].parent;
        if (up != KILN_NO_NODE) assert_true(p.unit_of[up] > p.unit_of[i]);
        assert_int_equal(p.units[p.unit_of[i]].planning, p.tree.nodes[i].n_children > 0);
    }
    assert_int_equal(unit_of(&p, "/0/5-7")->chunk, 2);
    assert_int_equal(unit_of(&p, "/2/4/1")->chunk, 4);
    kiln_lod_plan_release(&p);
    kiln_layer_free(baked);
}

/* ---- deep trees ------------------------------------------------------------------------------ */
enum { DEEPEST = 40 };
typedef char path[96];

/* The path of d zeros. */
static void zeros(uint32_t d, path out)
{
    *out = '\0';
    for (uint32_t i = 0; i < d; i++) strcat(out, "/0");
}

/* A chunk on each side of a path `depth` cells long, and one at its end; the deepest first. */
static kiln_layer *deep(uint32_t depth, uint64_t rows)
{
    static path names[DEEPEST + 1], parents[DEEPEST + 1];
    chunk_place places[DEEPEST + 1];
    assert_true(depth <= DEEPEST);
    for (uint32_t i = 0; i <= depth; i++) {
        const uint32_t above = i ? depth - i : depth - 1; /* cells above it */
        zeros(above, parents[i]);
        strcpy(names[i], parents[i]);
        strcat(names[i], i ? "/1" : "/0");
        if (above == 0) strcpy(parents[i], "/");
        places[i] = (chunk_place){names[i], parents[i], rows};
    }
    return baked_of(NULL, places, depth + 1);
}

/* Each of 20 nodes above would take several levels, and the last numbers are for those above it. */
static void deep_trees_keep_a_level_for_every_ancestor(void **state)
{
    (void)state;
    kiln_layer *baked = deep(20, 65536);
    kiln_lod_plan p = plan_of(baked, 4, 16);
    for (uint32_t i = 0; i < p.tree.n_nodes; i++) {
        const kiln_lod_unit *u = kiln_lod_payload(&p, i);
        assert_true(u->n_levels > 0 && u->first_level + u->n_levels <= KILN_LEVELS_MAX);
        for (uint32_t k = 1; k < u->n_levels; k++) assert_true(u->counts[k] <= u->counts[k - 1]);
        if (u->n_children) assert_true(u->counts[u->n_levels - 1] <= 16);
    }
    kiln_lod_plan_release(&p);
    kiln_layer_free(baked);
}

static void deeper_trees_than_there_are_levels_are_refused(void **state)
{
    (void)state;
    const kiln_lod_rule rule = {.levels = 4, .coarsest = 16};
    kiln_layer *baked = deep(32, 100);
    kiln_error err = {0};
    kiln_lod_plan p;
    assert_int_equal(kiln_lod_plan_make(baked, &rule, &p, &err), KILN_E_INPUT);
    assert_non_null(strstr(err.msg, "too deep"));
    kiln_lod_plan_release(&p);
    kiln_layer_free(baked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_is_halved_down_to_one),
        cmocka_unit_test(a_node_above_goes_on_from_its_children),
        cmocka_unit_test(no_level_has_more_rows_than_a_chunk),
        cmocka_unit_test(small_layers_have_few_units),
        cmocka_unit_test(units_come_by_height),
        cmocka_unit_test(deep_trees_keep_a_level_for_every_ancestor),
        cmocka_unit_test(deeper_trees_than_there_are_levels_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
