/* levels: the tree that names of chunks make, layers of levels put and read again with their errors
 * and what they stand for, and everything that can be wrong with a tree. */
#include "levels_fixture.h"
#include "schema/gc.h"

static kiln_level_tree plan(const kiln_layer *baked)
{
    kiln_error err = {0};
    kiln_level_tree t;
    OK(kiln_level_tree_plan(baked, &t, &err));
    return t;
}

static const kiln_level_node *node_of(const kiln_level_tree *t, const char *name)
{
    for (uint32_t i = 0; i < t->n_nodes; i++)
        if (strcmp(t->nodes[i].name, name) == 0) return &t->nodes[i];
    fail_msg("there is no node '%s'", name);
    return NULL;
}

/* The names of all nodes with their parents: "a<b " for a below b. */
static void spell(const kiln_level_tree *t, char *out, size_t size)
{
    size_t used = 0;
    *out = '\0';
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const uint32_t parent = t->nodes[i].parent;
        used += (size_t)snprintf(out + used, size - used, "%s<%s ", t->nodes[i].name,
                                 parent == KILN_NO_NODE ? "" : t->nodes[parent].name);
        assert_true(used < size);
    }
}

static void plan_is(const chunk_place *places, uint32_t n, const char *want)
{
    char is[4096];
    kiln_layer *baked = baked_of(NULL, places, n);
    kiln_level_tree t = plan(baked);
    spell(&t, is, sizeof is);
    assert_string_equal(is, want);
    kiln_level_tree_release(&t);
    kiln_layer_free(baked);
}

/* ---- the tree -------------------------------------------------------------------------------- */
static void nodes_are_chunks_and_cells_with_two_or_more_of_them(void **state)
{
    (void)state;
    plan_is(small_places, N_SMALL,
            "/0/0-3</0 /0/4</0 /0/5-7</0 /0</ /2/4/1</ /3-5</ /6/0</6 /6/1-7</6 /6</ /< ");
    plan_is((chunk_place[]){{"/", "", 9}}, 1, "/< ");
    plan_is((chunk_place[]){{"/3/1/2", "/3/1", 9}}, 1, "/3/1/2< ");
    plan_is((chunk_place[]){{"/3/1/2", "/3/1", 9}, {"/3/1/3", "/3/1", 1}}, 2,
            "/3/1/2</3/1 /3/1/3</3/1 /3/1< ");
    plan_is((chunk_place[]){{"/1", "/", 0}}, 1, "");
    plan_is(NULL, 0, "");
}

static void a_cell_of_many_nodes_gets_nodes_between(void **state)
{
    (void)state;
    enum { N = 75 };
    static char names[N][24];
    chunk_place places[N];
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "/2/1.%d", i);
        places[i] = (chunk_place){names[i], "/2", 10};
    }
    kiln_layer *baked = baked_of(NULL, places, N);
    kiln_level_tree t = plan(baked);
    /* 75 are 9 runs of 8 and one of 3; ten nodes are two runs */
    assert_int_equal(t.n_nodes, N + 10 + 2 + 1);
    assert_string_equal(t.nodes[t.n_nodes - 1].name, "/2");
    assert_int_equal(t.nodes[t.n_nodes - 1].rows, 10 * N);
    assert_int_equal(node_of(&t, "/2+9")->n_children, 3);
    assert_int_equal(node_of(&t, "/2+10")->n_children, 8);
    assert_int_equal(node_of(&t, "/2+11")->n_children, 2);
    for (uint32_t i = 0; i < t.n_nodes; i++)
        assert_true(t.nodes[i].n_children <= KILN_NODE_CHILDREN);
    kiln_level_tree_release(&t);
    /* nine nodes: a run of eight, and one that stays itself */
    places[9] = (chunk_place){"/2/1.9", "/2", 0};
    kiln_layer_free(baked);
    baked = baked_of(NULL, places, 10);
    t = plan(baked);
    assert_int_equal(t.n_nodes, 9 + 2);
    assert_string_equal(t.nodes[node_of(&t, "/2/1.8")->parent].name, "/2");
    kiln_level_tree_release(&t);
    kiln_layer_free(baked);
}

/* Children before parents, every chunk below exactly one root, boxes that hold the children's. */
static void indices_of_a_tree_fit_together(void **state)
{
    (void)state;
    kiln_layer *baked = baked_of(NULL, small_places, N_SMALL);
    kiln_level_tree t = plan(baked);
    for (uint32_t i = 0; i < t.n_nodes; i++) {
        const kiln_level_node *n = &t.nodes[i];
        uint64_t rows = n->chunk ? n->chunk->count : 0;
        assert_true((n->n_children == 0) == (n->chunk != NULL));
        assert_true((n->parent == KILN_NO_NODE) == (i + 1 == t.n_nodes));
        for (uint32_t k = 0; k < n->n_children; k++) {
            const kiln_level_node *child = &t.nodes[t.children[n->first_child + k]];
            assert_true(t.children[n->first_child + k] < i);
            assert_int_equal(child->parent, i);
            assert_true(child->box_min[0] >= n->box_min[0] &&
                        child->reach_max[2] <= n->reach_max[2]);
            rows += child->rows;
        }
        assert_int_equal(rows, n->rows);
    }
    const kiln_level_node *cell = node_of(&t, "/0"), *root = &t.nodes[t.n_nodes - 1];
    assert_true(cell->box_min[1] == 0 && cell->box_max[1] == 3 && cell->reach_min[1] == -0.5f &&
                cell->reach_max[1] == 3.5f);
    assert_true(root->box_min[0] == 0 && root->box_max[0] == 8);
    assert_int_equal(root->rows, baked->count);
    kiln_level_tree_release(&t);
    kiln_layer_free(baked);
}

/* Chunks of a cell need not be neighbours, parents need not be paths. */
static void a_strangers_names_make_a_tree_or_a_sentence(void **state)
{
    (void)state;
    plan_is(
        (chunk_place[]){{"/0/0", "/0", 1}, {"/1/0", "/1", 1}, {"/0/1", "/0", 1}, {"/1/1", "/1", 1}},
        4, "/0/0</0 /0/1</0 /0</ /1/0</1 /1/1</1 /1</ /< ");
    plan_is((chunk_place[]){{"a", "b", 1}, {"c", "", 1}, {"d", "//", 1}, {"e", "x//y", 1}}, 4,
            "a</ c</ d</ e</ /< ");
    char deep[96];
    for (int i = 0; i < 47; i++) memcpy(deep + 2 * i, "/0", 3);
    plan_is((chunk_place[]){{"a", deep, 1}, {"b", "/", 1}}, 2, "a</ b</ /< ");
    memset(deep, '/', 95);
    deep[95] = '\0';
    plan_is((chunk_place[]){{"a", deep, 1}, {"b", "/", 1}}, 2, "a</ b</ /< ");
    kiln_error err = {0};
    kiln_level_tree t;
    kiln_layer *baked = baked_of(NULL, (chunk_place[]){{"/", "/", 1}, {"c", "/", 1}}, 2);
    assert_int_equal(kiln_level_tree_plan(baked, &t, &err), KILN_E_INPUT);
    assert_says(&err, "two nodes of levels have the name '/'");
    assert_null(t.nodes);
    kiln_layer_free(baked);
}

/* ---- levels ---------------------------------------------------------------------------------- */
static void a_tree_has_the_levels_of_each_node(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_layer *baked = baked_of(NULL, small_places, N_SMALL), *levels = levels_of(NULL, baked);
    kiln_level_tree t;
    OK(kiln_level_tree_make(baked, levels, &t, &err));
    assert_int_equal(node_of(&t, "/0/4")->first_level, 1);
    assert_int_equal(node_of(&t, "/0/4")->n_levels, 2);
    assert_int_equal(node_of(&t, "/0/4")->levels[1]->count, 2);
    assert_int_equal(node_of(&t, "/0")->first_level, 3);
    assert_int_equal(node_of(&t, "/6")->n_levels, 1);
    assert_int_equal(node_of(&t, "/")->first_level, 4);
    assert_string_equal(node_of(&t, "/")->levels[0]->name, "/@4");
    kiln_level_tree_release(&t);
    kiln_layer_free(levels);
    kiln_layer_free(baked);
}

typedef void change_fn(kiln_layer *l);

/* Chunk number: /0/0-3@1 0, @2 1, /0/4 2 3, /0/5-7 4 5, /0@3 6, /2/4/1 7 8, ... */
static void swap_chunks(kiln_layer *l, uint32_t a, uint32_t b)
{
    const kiln_chunk c = l->chunks[a];
    l->chunks[a] = l->chunks[b];
    l->chunks[b] = c;
}
static void drop_chunk(kiln_layer *l, uint32_t i)
{
    for (; i + 1 < l->n_chunks; i++) swap_chunks(l, i, i + 1);
    l->n_chunks--;
}
static void rename_chunk(kiln_chunk *c, const char *name)
{
    snprintf(c->name, sizeof c->name, "%s", name);
}

static void other_parent(kiln_layer *l) { strcpy(l->chunks[3].parent, "/2"); }
static void parent_that_is_not_there(kiln_layer *l) { strcpy(l->chunks[0].parent, "/0/0"); }
static void own_parent(kiln_layer *l) { strcpy(l->chunks[6].parent, "/0"); }
static void cycle(kiln_layer *l) { strcpy(l->chunks[l->n_chunks - 1].parent, "/0"); }
static void second_root(kiln_layer *l) { strcpy(l->chunks[6].parent, ""); }
static void leaf_is_missing(kiln_layer *l) { drop_chunk(l, 2), drop_chunk(l, 2); }
static void inner_node_is_missing(kiln_layer *l) { drop_chunk(l, 6); }
static void root_is_missing(kiln_layer *l) { l->n_chunks--; }
static void leaf_twice(kiln_layer *l)
{
    rename_chunk(&l->chunks[4], "/0/4@3");
    l->chunks[4].level = 3;
    for (int i = 0; i < 3; i++) l->chunks[4].errors[i] = 1;
}
static void leaf_again_at_the_end(kiln_layer *l)
{
    l->chunks[l->n_chunks] = l->chunks[0];
    l->n_chunks++;
}
static void node_of_no_chunk(kiln_layer *l) { rename_chunk(&l->chunks[7], "/2/4/2@1"); }
static void first_level_is_missing(kiln_layer *l) { drop_chunk(l, 0); }
static void level_is_left_out(kiln_layer *l)
{
    rename_chunk(&l->chunks[1], "/0/0-3@3");
    l->chunks[1].level = 3;
}
static void inner_level_too_fine(kiln_layer *l)
{
    rename_chunk(&l->chunks[6], "/0@2");
    l->chunks[6].level = 2;
}
static void levels_in_another_order(kiln_layer *l) { swap_chunks(l, 0, 1); }
static void nodes_in_another_order(kiln_layer *l) { swap_chunks(l, 0, 2), swap_chunks(l, 1, 3); }
static void count_grows(kiln_layer *l) { l->chunks[1].count = 3; }
static void more_than_the_chunk(kiln_layer *l) { l->chunks[0].count = 6; }
static void more_than_the_children(kiln_layer *l) { l->chunks[6].count = 50; }
static void no_rows(kiln_layer *l) { l->chunks[8].count = 0; }
static void error_is_no_number(kiln_layer *l) { l->chunks[1].errors[1] = NAN; }
static void error_falls(kiln_layer *l) { l->chunks[1].errors[2] = 0; }
static void other_footprints(kiln_layer *l) { l->chunks[1].error_step = -4; }
static void fewer_footprints(kiln_layer *l) { l->chunks[1].n_errors = 2; }
static void a_node_without_errors(kiln_layer *l)
{
    l->chunks[0].n_errors = l->chunks[1].n_errors = 0;
}
static void of_another_bake(kiln_layer *l) { l->origin.bytes[3] ^= 1; }

static const struct {
    change_fn *change;
    const char *says;
} changes[] = {
    {other_parent, "chunk '/0/4@2' has the parent '/2', but it must be '/0'"},
    {parent_that_is_not_there, "chunk '/0/0-3@1' has the parent '/0/0', but it must be '/0'"},
    {own_parent, "chunk '/0@3' has the parent '/0', but it must be '/'"},
    {cycle, "chunk '/@4' has the parent '/0', but it must be ''"},
    {second_root, "chunk '/0@3' has the parent '', but it must be '/'"},
    {leaf_is_missing, "has no levels of '/0/4', which come before '/0/5-7@1'"},
    {inner_node_is_missing, "has no levels of '/0', which come before '/2/4/1@1'"},
    {root_is_missing, "has no levels of '/', which come before 'its end'"},
    {leaf_twice, "chunk '/0/5-7@2': level 1 of '/0/5-7' must follow"},
    {leaf_again_at_the_end, "chunk '/0/0-3@1' belongs to no node of 'baked', or occurs twice"},
    {node_of_no_chunk, "has no levels of '/2/4/1', which come before '/2/4/2@1'"},
    {first_level_is_missing, "chunk '/0/0-3@2': level 1 of '/0/0-3' must follow"},
    {level_is_left_out, "chunk '/0/0-3@3': level 2 of '/0/0-3' must follow"},
    {inner_level_too_fine, "chunk '/0@2': level 3 of '/0' must follow"},
    {levels_in_another_order, "chunk '/0/0-3@2': level 1 of '/0/0-3' must follow"},
    {nodes_in_another_order, "has no levels of '/0/0-3', which come before '/0/4@1'"},
    {count_grows, "chunk '/0/0-3@2' has 3 rows, but it is made of 2"},
    {more_than_the_chunk, "chunk '/0/0-3@1' has 6 rows, but it is made of 5"},
    {more_than_the_children, "chunk '/0@3' has 50 rows, but it is made of 4"},
    {no_rows, "chunk '/2/4/1@2' has 0 rows"},
    {error_is_no_number, "chunk '/0/0-3@2' has an error of nan"},
    {error_falls, "chunk '/0/0-3@2' has an error of 0, less than the finer '/0/0-3@1'"},
    {other_footprints, "has errors of other footprints than '/0/0-3@1'"},
    {fewer_footprints, "has errors of other footprints than '/0/0-3@1'"},
    {a_node_without_errors, "of the chunks '/0/0-3@1' and '/0/4@1' only one has errors"},
    {of_another_bake, "layer 'levels' belongs to another layer 'baked'"},
};

static void what_is_wrong_with_a_tree_is_named(void **state)
{
    (void)state;
    kiln_layer *baked = baked_of(NULL, small_places, N_SMALL);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        kiln_error err = {0};
        kiln_level_tree t;
        kiln_layer *levels = levels_of(NULL, baked);
        const uint32_t n = levels->n_chunks;
        changes[i].change(levels);
        if (kiln_level_tree_make(baked, levels, &t, &err) != KILN_E_INPUT)
            fail_msg("change %zu was accepted", i);
        assert_says(&err, changes[i].says);
        assert_null(t.nodes);
        if (levels->n_chunks > n) levels->n_chunks = n;
        for (uint32_t k = levels->n_chunks; k < n; k++) free(levels->chunks[k].planes);
        kiln_layer_free(levels);
    }
    kiln_layer_free(baked);
}

/* ---- stored ---------------------------------------------------------------------------------- */
static kiln_manifest *small_manifest(void **state)
{
    char path[600];
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    put_small_levels(m);
    return m;
}

static void levels_are_read_as_they_were_put(void **state)
{
    kiln_error err = {0};
    kiln_manifest *m = small_manifest(state);
    kiln_layer *baked, *levels, *made;
    kiln_level_tree t;
    OK(kiln_layer_get_drawn(m, &baked, &err));
    assert_string_equal(baked->kind, "baked");
    OK(kiln_levels_get(m, baked, &levels, &err));
    made = levels_of(m, baked);
    assert_true(kiln_hash_equal(levels->origin, baked->digest));
    assert_string_equal(levels->origin_profile, "inria");
    assert_false(levels->origin_antialiased);
    assert_true(levels->origin_near == 0.2);
    assert_int_equal(levels->n_chunks, made->n_chunks);
    for (uint32_t i = 0; i < made->n_chunks; i++) {
        assert_string_equal(levels->chunks[i].name, made->chunks[i].name);
        assert_string_equal(levels->chunks[i].parent, made->chunks[i].parent);
        assert_int_equal(levels->chunks[i].level, made->chunks[i].level);
        assert_int_equal(levels->chunks[i].n_errors, 3);
        assert_int_equal(levels->chunks[i].error_step, -5);
        assert_memory_equal(levels->chunks[i].errors, made->chunks[i].errors,
                            sizeof made->chunks[i].errors);
    }
    OK(kiln_level_tree_make(baked, levels, &t, &err));
    kiln_level_tree_release(&t);
    kiln_layer_free(made);
    kiln_layer_free(levels);
    kiln_layer_free(baked);
    kiln_manifest_close(m);
}

static void levels_of_another_bake_are_stale(void **state)
{
    kiln_error err = {0};
    kiln_manifest *m = small_manifest(state);
    kiln_layer *baked, *levels;
    OK(kiln_layer_get_drawn(m, &baked, &err));
    baked->digest.bytes[0] ^= 1;
    assert_int_equal(kiln_levels_get(m, baked, &levels, &err), KILN_E_STALE);
    assert_says(&err, "belong to another bake; run kiln-lod first");
    assert_null(levels);
    run_sql(m, "DELETE FROM stage_output WHERE role = 'levels'");
    assert_int_equal(kiln_levels_get(m, baked, &levels, &err), KILN_E_STALE);
    assert_says(&err, "has no levels of detail; run kiln-lod first");
    kiln_layer_free(baked);
    kiln_manifest_close(m);
}

static kiln_hash digest_of_view(kiln_manifest *m, const char *kind)
{
    sqlite3_stmt *s;
    kiln_hasher *h = kiln_hasher_new();
    (void)sqlite3_db_config(kiln_manifest_sqlite(m), SQLITE_DBCONFIG_ENABLE_VIEW, 1, NULL);
    assert_int_equal(sqlite3_prepare_v2(kiln_manifest_sqlite(m),
                                        "SELECT line FROM digest_line WHERE kind = 'layer' AND "
                                        "name = ? ORDER BY major, minor, segment",
                                        -1, &s, NULL),
                     SQLITE_OK);
    sqlite3_bind_text(s, 1, kind, -1, SQLITE_STATIC);
    while (sqlite3_step(s) == SQLITE_ROW)
        kiln_hasher_update(h, sqlite3_column_text(s, 0), (size_t)sqlite3_column_bytes(s, 0));
    sqlite3_finalize(s);
    return kiln_hasher_end(h);
}

static kiln_hash current_digest(kiln_manifest *m, const char *kind)
{
    kiln_error err = {0};
    kiln_layer *l;
    OK(kiln_layer_get(m, kind, &l, &err));
    const kiln_hash digest = kiln_layer_digest(l);
    assert_true(kiln_hash_equal(digest, l->digest));
    kiln_layer_free(l);
    return digest;
}

static void the_view_prints_what_a_digest_is_of(void **state)
{
    kiln_manifest *m = small_manifest(state);
    assert_true(kiln_hash_equal(digest_of_view(m, "levels"), current_digest(m, "levels")));
    assert_true(kiln_hash_equal(digest_of_view(m, "baked"), current_digest(m, "baked")));
    run_sql(m, "DELETE FROM level_error"); /* not measured */
    assert_false(kiln_hash_equal(digest_of_view(m, "levels"), current_digest(m, "baked")));
    kiln_manifest_close(m);
}

typedef void layer_fn(kiln_layer *l);
static void digest_origin(kiln_layer *l) { l->origin.bytes[0] ^= 1; }
static void digest_profile(kiln_layer *l) { strcpy(l->origin_profile, "gsplat-1.6"); }
static void digest_antialiased(kiln_layer *l) { l->origin_antialiased = true; }
static void digest_near(kiln_layer *l) { l->origin_near = 0.01; }
static void digest_parent(kiln_layer *l) { strcpy(l->chunks[0].parent, "/1"); }
static void digest_step(kiln_layer *l) { l->chunks[0].error_step++; }
static void digest_errors(kiln_layer *l)
{
    l->chunks[0].errors[2] = nextafterf(l->chunks[0].errors[2], 0);
}
static void digest_fewer(kiln_layer *l) { l->chunks[0].n_errors--; }

static void all_that_levels_say_is_in_the_digest(void **state)
{
    (void)state;
    static layer_fn *const all[] = {digest_origin, digest_profile, digest_antialiased,
                                    digest_near,   digest_parent,  digest_step,
                                    digest_errors, digest_fewer};
    kiln_layer *baked = baked_of(NULL, small_places, N_SMALL);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        kiln_layer *l = levels_of(NULL, baked);
        const kiln_hash before = kiln_layer_digest(l);
        all[i](l);
        if (kiln_hash_equal(before, kiln_layer_digest(l)))
            fail_msg("change %zu changes no digest", i);
        kiln_layer_free(l);
    }
    kiln_layer_free(baked);
}

static void bad_level(kiln_layer *l) { l->chunks[0].level = 0; }
static void level_above(kiln_layer *l)
{
    l->chunks[0].level = 33;
    rename_chunk(&l->chunks[0], "/0/0-3@33");
}
static void name_of_another_level(kiln_layer *l) { rename_chunk(&l->chunks[0], "/0/0-3@11"); }
static void no_node(kiln_layer *l) { rename_chunk(&l->chunks[0], "@1"); }
static void without_origin(kiln_layer *l) { memset(&l->origin, 0, sizeof l->origin); }
static void without_profile(kiln_layer *l) { *l->origin_profile = '\0'; }
static void bad_near(kiln_layer *l) { l->origin_near = 0; }
static void negative_error(kiln_layer *l) { l->chunks[0].errors[2] = -1; }
static void error_grows(kiln_layer *l) { l->chunks[0].errors[2] = 1; }
static void infinite_error(kiln_layer *l) { l->chunks[0].errors[0] = INFINITY; }
static void too_many_errors(kiln_layer *l) { l->chunks[0].n_errors = 9; }
static void step_too_far(kiln_layer *l) { l->chunks[0].error_step = 1001; }
static void without_weights(kiln_layer *l)
{
    for (uint32_t i = 0; i < l->n_chunks; i++)
        for (uint32_t p = 0; p < l->chunks[i].n_planes; p++)
            if (strcmp(l->chunks[i].planes[p].name, "weights") == 0)
                strcpy(l->chunks[i].planes[p].name, "spacing2");
}

static const struct {
    layer_fn *change;
    const char *says;
} rows[] = {
    {bad_level, "is of level 0; levels are 1 to 32, and its name must end with its level"},
    {level_above, "is of level 33; levels are 1 to 32, and its name must end with its level"},
    {name_of_another_level,
     "is of level 1; levels are 1 to 32, and its name must end with its level"},
    {no_node, "is of level 1; levels are 1 to 32, and its name must end with its level"},
    {without_origin, "does not say which layer its levels are of"},
    {without_profile, "was measured with a profile that has no name"},
    {bad_near, "was measured with a near plane at 0"},
    {negative_error, "its error number 2 is -1"},
    {error_is_no_number, "its error number 1 is nan"},
    {infinite_error, "its error number 0 is inf"},
    {error_grows, "its error in pixels grows with the footprint"},
    {too_many_errors, "has 9 errors"},
    {step_too_far, "errors from step 1001 on"},
    {no_rows, "has no rows"},
    {without_weights, "has no plane 'weights'"},
};

static void a_row_that_says_what_it_cannot_is_not_put(void **state)
{
    char path[600];
    kiln_manifest *m = open_manifest(in_scratch(state, "m.db", path), KILN_OPEN_CREATE);
    kiln_layer *baked = baked_of(m, small_places, N_SMALL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kiln_error err = {0};
        kiln_layer *l = levels_of(m, baked);
        rows[i].change(l);
        l->count = 0;
        for (uint32_t k = 0; k < l->n_chunks; k++) l->count += l->chunks[k].count;
        if (kiln_layer_put(m, l, &err) != KILN_E_INPUT)
            fail_msg("row %zu was put, or: %s", i, err.msg);
        assert_says(&err, rows[i].says);
        kiln_layer_free(l);
    }
    kiln_error err = {0};
    baked->chunks[0].n_errors = 1;
    assert_int_equal(kiln_layer_put(m, baked, &err), KILN_E_INPUT);
    assert_says(&err, "has errors, but only levels have errors");
    baked->chunks[0].n_errors = 0;
    baked->origin.bytes[0] = 1;
    assert_int_equal(kiln_layer_put(m, baked, &err), KILN_E_INPUT);
    assert_says(&err, "stands for another layer, but only levels may");
    kiln_layer_free(baked);
    kiln_manifest_close(m);
}

/* ---- verify, and a stranger's levels --------------------------------------------------------- */
static void add_sentence(void *context, const char *sentence)
{
    char *text = context;
    const size_t used = strlen(text);
    snprintf(text + used, 8192 - used, "%s\n", sentence);
}

static kiln_status verify_says(kiln_manifest *m, bool quick, char text[8192], kiln_error *err)
{
    uint64_t bytes;
    const kiln_verify_options o = {.report = add_sentence, .context = text, .quick = quick};
    *text = '\0';
    return kiln_manifest_verify_with(m, &o, &bytes, err);
}

static void sound_levels_pass(void **state)
{
    kiln_error err = {0};
    char text[8192];
    kiln_manifest *m = small_manifest(state);
    if (verify_says(m, false, text, &err) != KILN_OK) fail_msg("%s", text);
    if (verify_says(m, true, text, &err) != KILN_OK) fail_msg("%s", text);
    kiln_manifest_close(m);
}

/* What stages read of levels. */
static kiln_status read_levels(kiln_manifest *m, kiln_error *err)
{
    static uint32_t data[256];
    static const char *const kinds[] = {"visibility", "levels"};
    kiln_layer *baked = NULL, *l = NULL;
    kiln_level_tree t = {0};
    kiln_status st = KILN_OK;
    KILN_GO(kiln_layer_get_drawn(m, &baked, err));
    for (int k = 0; k < 2; k++) {
        kiln_layer_free(l);
        KILN_GO(kiln_layer_get(m, kinds[k], &l, err));
        for (uint32_t i = 0; i < l->n_chunks; i++)
            for (uint32_t p = 0; p < l->chunks[i].n_planes; p++)
                KILN_GO(kiln_plane_read(m, &l->chunks[i], l->chunks[i].planes[p].name, data,
                                        l->chunks[i].planes[p].data.raw_bytes, err));
    }
    KILN_GO(kiln_level_tree_make(baked, l, &t, err));
done:
    kiln_level_tree_release(&t);
    kiln_layer_free(l);
    kiln_layer_free(baked);
    return st;
}

#define OF_LEVELS " layer = (SELECT id FROM layer WHERE kind = 'levels')"
#define CHUNK(ordinal) " WHERE ordinal = " #ordinal " AND" OF_LEVELS
#define ERRORS_OF(ordinal) " WHERE chunk = (SELECT id FROM chunk" CHUNK(ordinal) ")"
static const struct {
    const char *sql, *says;
    bool by_verify_alone;
} damages[] = {
    {"DELETE FROM level_origin", "layer 'levels' does not say which layer its levels are of",
     false},
    {"UPDATE level_origin SET baked = zeroblob(15)", "a hash does not have 16 bytes", false},
    {"UPDATE level_origin SET baked = zeroblob(16)", "does not say which layer its levels are of",
     false},
    {"UPDATE level_origin SET baked = x'00112233445566778899aabbccddeeff'",
     "to the current layer 'baked'", true},
    {"UPDATE level_origin SET profile = '../x'", "a profile that has no name", false},
    {"UPDATE level_origin SET antialiased = 2", "it is neither 0 nor 1", false},
    {"UPDATE level_origin SET near_m = -1", "a near plane at -1", false},
    {"UPDATE level_origin SET near_m = 9e999", "a near plane at inf", false},
    {"UPDATE level_error SET errors = x''", "its errors have 0 bytes", false},
    {"UPDATE level_error SET errors = zeroblob(36)", "its errors have 36 bytes", false},
    {"UPDATE level_error SET errors = zeroblob(5)", "its errors have 5 bytes", false},
    {"UPDATE level_error SET step = 5000", "from step 5000 on", false},
    {"UPDATE level_error SET errors = x'0000c07f'" ERRORS_OF(0), "its error number 0 is nan",
     false},
    {"UPDATE level_error SET errors = x'000080bf'" ERRORS_OF(0), "its error number 0 is -1", false},
    {"UPDATE level_error SET errors = x'0000803f0000a040'" ERRORS_OF(0),
     "its error in pixels grows with the footprint, from 1 to 5", false},
    {"UPDATE level_error SET errors = zeroblob(12)" ERRORS_OF(1),
     "has an error of 0, less than the finer '/0/0-3@1'", false},
    {"UPDATE level_error SET step = -4" ERRORS_OF(1), "errors of other footprints", false},
    {"DELETE FROM level_error" ERRORS_OF(1), "errors of other footprints", false},
    {"DELETE FROM level_error" ERRORS_OF(6), "only one has errors", false},
    {"DELETE FROM level_error", "claims the digest", true},
    {"UPDATE chunk SET parent = '/2'" CHUNK(0),
     "chunk '/0/0-3@1' has the parent '/2', but it must be '/0'", false},
    {"UPDATE chunk SET parent = '/0'" CHUNK(6),
     "chunk '/0@3' has the parent '/0', but it must be '/'", false},
    {"UPDATE chunk SET level = 7" CHUNK(6),
     "is of level 7; levels are 1 to 32, and its name must end with its level", false},
    {"UPDATE chunk SET name = '/0@5', level = 5" CHUNK(6), "level 3 of '/0' must follow", false},
    {"UPDATE chunk SET name = '/0/0@1'" CHUNK(0),
     "has no levels of '/0/0-3', which come before '/0/0@1'", false},
    {"DELETE FROM chunk" CHUNK(
         6) "; UPDATE chunk SET ordinal = ordinal - 1 WHERE ordinal > 6 AND" OF_LEVELS
            "; UPDATE layer SET count = (SELECT sum(count) FROM chunk WHERE" OF_LEVELS
            ") WHERE kind = 'levels'",
     "has no levels of '/0', which come before '/2/4/1@1'", false},
    {"UPDATE plane SET name = 'rgb' WHERE name = 'source_count'", "plane 'rgb' is u32 x 1", false},
    {"UPDATE plane SET name = 'extra/w' WHERE name = 'weights'",
     "layer 'levels', chunk '/0/0-3@1' has no plane 'weights'", false},
    {"UPDATE plane SET name = 'extra/v' WHERE name = 'visibility' AND chunk IN (SELECT chunk.id "
     "FROM chunk JOIN layer ON layer.id "
     "= "
     "chunk.layer WHERE kind = 'visibility')",
     "layer 'visibility', chunk '/0/0-3' has no plane 'visibility'", false},
    {"UPDATE chunk SET name = '/9' WHERE ordinal = 5 AND layer = (SELECT id FROM layer WHERE kind "
     "= 'visibility')",
     "layer 'visibility': chunk '/9' has 7 rows, but its counterpart '/3-5' has 7", true},
    {"DELETE FROM chunk WHERE ordinal = 7 AND layer = (SELECT id FROM layer WHERE kind = "
     "'visibility')",
     "layer 'visibility' has 7 chunks instead of the 8 of 'baked'", true},
};

static void damage(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = ON",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK) fail_msg("%s: %s", sql, why);
    if (sqlite3_total_changes(db) == 0) fail_msg("changes nothing: %s", sql);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void every_damage_of_levels_is_named(void **state)
{
    char path[600];
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        kiln_error err = {0};
        char text[8192];
        kiln_manifest_close(small_manifest(state));
        damage(in_scratch(state, "m.db", path), damages[i].sql);
        kiln_manifest *m = open_manifest(path, KILN_OPEN_READ);
        const kiln_status st = read_levels(m, &err);
        if (!damages[i].by_verify_alone && st != KILN_E_INPUT && st != KILN_E_IO)
            fail_msg("read: %s", damages[i].sql);
        if (!damages[i].by_verify_alone) assert_says(&err, damages[i].says);
        if (verify_says(m, false, text, &err) != KILN_E_IO)
            fail_msg("verified: %s", damages[i].sql);
        if (!strstr(text, damages[i].says))
            fail_msg("%s\nnot said: %s\nbut:\n%s", damages[i].sql, damages[i].says, text);
        kiln_manifest_close(m);
        assert_int_equal(unlink(path), 0);
    }
}

/* Another bake leaves the levels as they are, stale, with chunks that are there or that kiln-gc has
 * dropped. */
static void levels_of_an_earlier_bake_are_no_damage(void **state)
{
    kiln_error err = {0};
    char text[8192];
    kiln_manifest *m = small_manifest(state);
    kiln_layer *other = baked_of(m, small_places, 3);
    put_current(m, "chunk", other);
    run_sql(m, "UPDATE stage SET state = 'stale' WHERE name = 'lod'");
    if (verify_says(m, false, text, &err) != KILN_OK) fail_msg("%s", text);
    run_sql(m, "DELETE FROM layer WHERE kind = 'baked' AND id NOT IN (SELECT layer FROM "
               "stage_output WHERE layer IS NOT NULL)");
    if (verify_says(m, false, text, &err) != KILN_OK) fail_msg("%s", text);
    run_sql(m, "UPDATE stage SET state = 'fresh' WHERE name = 'lod'");
    assert_int_equal(verify_says(m, false, text, &err), KILN_E_IO);
    assert_non_null(strstr(text, "layer 'levels' does not belong to the current layer 'baked', "
                                 "although its stage is fresh"));
    kiln_layer_free(other);
    kiln_manifest_close(m);
}

/* Values of planes: one plane of one chunk at a time gets a value that it cannot have. */
static void values_that_levels_cannot_have_are_named(void **state)
{
    static const struct {
        const char *plane;
        uint32_t word;
        const char *says;
    } values[] = {
        {"source_count", 0, "plane 'source_count' holds a Gaussian that stands for no row"},
        {"source_last", UINT32_MAX, "plane 'source_last' holds a source row above 2^32 - 2"},
        {"source_last", 40, "row 0 comes from source row 40, but the source has 40"},
        {"source_row", 1, "row 0 stands for 1 source rows from 1 to 0"},
        {"source_count", 2, "row 0 stands for 2 source rows from 0 to 0"},
        {"weights", 0xbf800000, "plane 'weights' holds a weight below 0"},
        {"visibility", 0,
         "plane 'visibility' holds a visibility that is not above 0 and at most 1"},
        {"visibility", 0x3f800001,
         "plane 'visibility' holds a visibility that is not above 0 and at most 1"},
        {"visibility", 0x7fc00000, "plane 'visibility' holds nan"},
    };
    char path[600];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        kiln_error err = {0};
        char text[8192], sql[500], hex[33];
        const uint32_t words[2] = {values[i].word, values[i].word};
        kiln_manifest *m = small_manifest(state);
        const kiln_hash hash = put_bytes(m, words, sizeof words, 4);
        snprintf(sql, sizeof sql,
                 "UPDATE plane_segment SET hash = x'%s' WHERE plane = (SELECT plane.id FROM plane "
                 "JOIN chunk ON chunk.id = plane.chunk"
                 " WHERE chunk.name = '/0/0-3@1' AND plane.name = '%s')",
                 kiln_hash_hex(hash, hex), values[i].plane);
        run_sql(m, sql);
        assert_int_equal(verify_says(m, false, text, &err), KILN_E_IO);
        if (!strstr(text, values[i].says)) fail_msg("not said: %s\nbut:\n%s", values[i].says, text);
        kiln_manifest_close(m);
        assert_int_equal(unlink(in_scratch(state, "m.db", path)), 0);
    }
}

/* ---- kiln-gc --------------------------------------------------------------------------------- */
static void collection_keeps_current_levels_and_drops_old_ones_whole(void **state)
{
    kiln_error err = {0};
    char text[8192];
    kiln_gc *g;
    kiln_layer *baked, *levels;
    bool more = true;
    kiln_manifest *m = small_manifest(state);
    OK(kiln_layer_get_drawn(m, &baked, &err));
    levels = levels_of(m, baked);
    levels->origin_near = 0.5; /* other levels of the same chunks */
    put_current(m, "lod", levels);
    assert_int_equal(number_of(m, "SELECT count(*) FROM level_origin"), 2);
    OK(kiln_gc_plan(m, &g, &err));
    assert_int_equal(kiln_gc_layers(g, "levels").dropped, 1);
    assert_int_equal(kiln_gc_layers(g, "levels").kept, 1);
    assert_int_equal(kiln_gc_layers(g, "visibility").kept, 1);
    while (more) OK(kiln_gc_step(g, &more, &err));
    kiln_gc_free(g);
    assert_int_equal(number_of(m, "SELECT count(*) FROM level_origin"), 1);
    assert_int_equal(number_of(m, "SELECT count(*) FROM level_error"), levels->n_chunks);
    if (verify_says(m, false, text, &err) != KILN_OK) fail_msg("%s", text);
    kiln_layer_free(levels);
    OK(kiln_levels_get(m, baked, &levels, &err));
    assert_true(levels->origin_near == 0.5);
    kiln_layer_free(levels);
    kiln_layer_free(baked);
    kiln_manifest_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_chunks_and_cells_with_two_or_more_of_them),
        cmocka_unit_test(a_cell_of_many_nodes_gets_nodes_between),
        cmocka_unit_test(indices_of_a_tree_fit_together),
        cmocka_unit_test(a_strangers_names_make_a_tree_or_a_sentence),
        cmocka_unit_test(a_tree_has_the_levels_of_each_node),
        cmocka_unit_test(what_is_wrong_with_a_tree_is_named),
        cmocka_unit_test_setup_teardown(levels_are_read_as_they_were_put, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(levels_of_another_bake_are_stale, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(the_view_prints_what_a_digest_is_of, make_scratch,
                                        remove_scratch),
        cmocka_unit_test(all_that_levels_say_is_in_the_digest),
        cmocka_unit_test_setup_teardown(a_row_that_says_what_it_cannot_is_not_put, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(sound_levels_pass, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(every_damage_of_levels_is_named, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(levels_of_an_earlier_bake_are_no_damage, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(values_that_levels_cannot_have_are_named, make_scratch,
                                        remove_scratch),
        cmocka_unit_test_setup_teardown(collection_keeps_current_levels_and_drops_old_ones_whole,
                                        make_scratch, remove_scratch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
