/* level_choice -- --level's text, and cuts through trees made by hand. */
#include "stages/frame/level_choice.h"
#include "schema/level_sites.h"
#include "stages/frame/level_cost.h"
#include "stages/frame/level_hiding.h"
#include "stages/frame/level_margin.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* ---- trees made by hand ---------------------------------------------------------------------- */
enum { LEVELS = 4, FAN = 4, MOST = 8000 };

typedef struct {
    kiln_layer baked, levels;
    kiln_level_tree t;
    const kiln_chunk *pointers[MOST];
    uint32_t n_children;
    uint64_t seed;
} forest;

static uint32_t below(forest *f, uint32_t n)
{
    f->seed = f->seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(f->seed >> 33) % n;
}

static forest *forest_new(uint64_t seed)
{
    forest *f = calloc(1, sizeof *f);
    f->seed = seed;
    f->baked.chunks = calloc(MOST, sizeof(kiln_chunk));
    f->levels.chunks = calloc(MOST, sizeof(kiln_chunk));
    f->t.nodes = calloc(MOST, sizeof(kiln_level_node));
    f->t.children = calloc(MOST, sizeof(uint32_t));
    f->t.baked = &f->baked;
    f->t.levels = &f->levels;
    return f;
}

static void forest_free(forest *f)
{
    free(f->baked.chunks);
    free(f->levels.chunks);
    free(f->t.nodes);
    free(f->t.children);
    free(f);
}

/* A level of `rows` rows, whose error is `error` at footprint 2^-6 and a half, a quarter .. of it
 * further on. */
static void add_level(forest *f, kiln_level_node *n, uint64_t rows, double error)
{
    kiln_chunk *c = &f->levels.chunks[f->levels.n_chunks];
    f->pointers[f->levels.n_chunks++] = c;
    if (n->n_levels == 0) n->levels = f->pointers + f->levels.n_chunks - 1;
    n->n_levels++;
    *c = (kiln_chunk){
        .count = rows, .n_errors = KILN_ERROR_STEPS, .error_step = -6, .max_log_scale = -3};
    memcpy(c->box_min, n->box_min, sizeof c->box_min);
    memcpy(c->box_max, n->box_max, sizeof c->box_max);
    for (int i = 0; i < KILN_ERROR_STEPS; i++) c->errors[i] = (float)ldexp(error, -i);
}

static void set_box(kiln_level_node *n, const float centre[3], float half)
{
    for (int i = 0; i < 3; i++) {
        n->box_min[i] = n->reach_min[i] = centre[i] - half;
        n->box_max[i] = n->reach_max[i] = centre[i] + half;
    }
}

static uint32_t add_leaf(forest *f, uint64_t rows, const float centre[3], double error)
{
    const uint32_t index = f->t.n_nodes++;
    kiln_level_node *n = &f->t.nodes[index];
    kiln_chunk *c = &f->baked.chunks[f->baked.n_chunks++];
    set_box(n, centre, 0.5f);
    *c = (kiln_chunk){.count = rows, .max_log_scale = -3, .max_opacity_logit = 1};
    memcpy(c->box_min, n->box_min, sizeof c->box_min);
    memcpy(c->box_max, n->box_max, sizeof c->box_max);
    n->chunk = c;
    n->rows = rows;
    n->first_level = 1;
    n->parent = KILN_NO_NODE;
    for (uint32_t k = 1; k <= LEVELS && rows >> k > 0; k++)
        add_level(f, n, rows >> k, error * k * k);
    return index;
}

static uint32_t add_cell(forest *f, const uint32_t *children, uint32_t n_children,
                         uint32_t n_levels, double error)
{
    const uint32_t index = f->t.n_nodes++;
    kiln_level_node *n = &f->t.nodes[index];
    uint64_t rows = 0;
    n->first_child = f->n_children;
    n->n_children = n_children;
    n->parent = KILN_NO_NODE;
    for (int i = 0; i < 3; i++) n->box_min[i] = INFINITY, n->box_max[i] = -INFINITY;
    for (uint32_t k = 0; k < n_children; k++) {
        kiln_level_node *child = &f->t.nodes[children[k]];
        const uint32_t last = child->first_level + child->n_levels - 1;
        f->t.children[f->n_children++] = children[k];
        child->parent = index;
        n->rows += child->rows;
        rows += child->n_levels ? child->levels[child->n_levels - 1]->count : child->rows;
        if (child->n_levels && last + 1 > n->first_level) n->first_level = last + 1;
        for (int i = 0; i < 3; i++) {
            n->box_min[i] = fminf(n->box_min[i], child->box_min[i]);
            n->box_max[i] = fmaxf(n->box_max[i], child->box_max[i]);
        }
    }
    for (uint32_t k = 1; k <= n_levels && rows >> k > 0; k++) add_level(f, n, rows >> k, error * k);
    return index;
}

/* Leaves in a row along x, cells of up to FAN above them until one is left. Errors are random over
 * four decades. */
static forest *random_forest(uint64_t seed, uint32_t leaves, uint32_t cell_levels)
{
    forest *f = forest_new(seed);
    uint32_t *now = calloc(leaves, sizeof *now), n = leaves;
    for (uint32_t i = 0; i < leaves; i++) {
        const float centre[3] = {(float)i, 0, (float)below(f, 40)};
        now[i] = add_leaf(f, 16 + below(f, 1000), centre, pow(10, -4.0 - 0.001 * below(f, 4000)));
    }
    for (; n > 1;) {
        uint32_t up = 0;
        for (uint32_t i = 0; i < n;) {
            uint32_t take = 2 + below(f, FAN - 1);
            if (take > n - i || n - i - take == 1) take = n - i;
            const uint32_t cell =
                add_cell(f, now + i, take, cell_levels, pow(10, -2.0 - 0.001 * below(f, 3000)));
            i += take;
            now[up++] = cell;
        }
        n = up;
    }
    free(now);
    return f;
}

/* At (x, 0, z), looking along z. */
static kiln_view_request look(double x, double z, double focal)
{
    kiln_view_request s;
    const double r[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1}, t[3] = {-x, 0, -z}, origin[3] = {0};
    const double intrinsics[4] = {focal, focal, 256, 256};
    memset(&s, 0, sizeof s);
    s.near_m = 0.2;
    kiln_view_init(&s.view, r, t, origin, intrinsics, 512, 512, 0.2f, 1e10f);
    return s;
}

static kiln_level_cut choose(const forest *f, const char *text, const kiln_view_request *s)
{
    kiln_level_wish w;
    kiln_level_cut cut;
    kiln_error err;
    assert_int_equal(kiln_level_wish_parse(text, &w, &err), KILN_OK);
    assert_int_equal(kiln_level_choose(&f->t, &w, s, &cut, &err), KILN_OK);
    return cut;
}

/* Each leaf has exactly one picked node on its way up; picks are ascending, and name their
 * chunks. */
static void check_cut(const forest *f, const kiln_level_cut *cut)
{
    unsigned char *picked = calloc(f->t.n_nodes, 1);
    uint64_t rows = 0;
    for (uint32_t i = 0; i < cut->n; i++) {
        const kiln_level_pick *p = &cut->picks[i];
        const kiln_level_node *n = &f->t.nodes[p->node];
        const bool full = p->chunk < f->baked.n_chunks;
        const kiln_chunk *c =
            full ? &f->baked.chunks[p->chunk] : &f->levels.chunks[p->chunk - f->baked.n_chunks];
        if (i > 0) assert_true(cut->picks[i - 1].node < p->node);
        assert_ptr_equal(c, p->level == 0 ? n->chunk : n->levels[p->level - n->first_level]);
        assert_true(p->level == 0 || p->level - n->first_level < n->n_levels);
        rows += c->count;
        picked[p->node] = 1;
    }
    assert_int_equal(rows, cut->rows);
    for (uint32_t i = 0; i < f->t.n_nodes; i++) {
        if (!f->t.nodes[i].chunk) continue;
        unsigned covers = 0;
        for (uint32_t up = i; up != KILN_NO_NODE; up = f->t.nodes[up].parent) covers += picked[up];
        assert_int_equal(covers, 1);
    }
    free(picked);
}

/* ---- the text -------------------------------------------------------------------------------- */
static void reads_the_three_forms(void **state)
{
    kiln_level_wish w;
    kiln_error err;
    (void)state;
    assert_int_equal(kiln_level_wish_parse("auto", &w, &err), KILN_OK);
    assert_true(w.form == KILN_LEVEL_DB && w.db == 35 && !kiln_level_wish_full(&w));
    assert_int_equal(kiln_level_wish_parse("dB:41.5", &w, &err), KILN_OK);
    assert_true(w.form == KILN_LEVEL_DB && w.db == 41.5);
    assert_int_equal(kiln_level_wish_parse("32", &w, &err), KILN_OK);
    assert_true(w.form == KILN_LEVEL_AT && w.level == 32 && !kiln_level_wish_full(&w));
    assert_int_equal(kiln_level_wish_parse("0", &w, &err), KILN_OK);
    assert_true(kiln_level_wish_full(&w));
    static const char *const bad[] = {
        "",          "33",    "-1",    "+1",    "1.5",    " 1",
        "1 ",        "Auto",  "dB:",   "dB:-1", "dB:201", "dB:nan",
        "dB:1e999",  "dB:3x", "db:35", "dB: 3", "dB:0x",  "99999999999999999999",
        "4294967296"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(kiln_level_wish_parse(bad[i], &w, &err), KILN_E_USAGE);
}

/* ---- fixed levels ---------------------------------------------------------------------------- */
static void a_fixed_level_ends_where_it_can(void **state)
{
    (void)state;
    forest *f = forest_new(1);
    const float origin[3] = {0, 0, 5};
    const uint32_t leaves[3] = {add_leaf(f, 1000, origin, 1e-3), add_leaf(f, 3, origin, 1e-3),
                                add_leaf(f, 1, origin, 1e-3)};
    const uint32_t two = add_cell(f, leaves, 2, 2, 1e-2); /* levels 5 and 6 */
    const uint32_t both[2] = {leaves[2], two};
    const uint32_t root = add_cell(f, both, 2, 1, 1e-2); /* level 7 */
    static const struct {
        const char *text;
        uint32_t n, node[3], level[3];
    } cases[] = {
        {"0", 3, {0, 1, 2}, {0, 0, 0}},
        {"1", 3, {0, 1, 2}, {1, 1, 0}},
        {"4", 3, {0, 1, 2}, {4, 1, 0}},
        {"5", 2, {2, 3}, {0, 5}},
        {"6", 2, {2, 3}, {0, 6}},
        {"7", 1, {4}, {7}},
        {"32", 1, {4}, {7}},
    };
    assert_int_equal(root, 4);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kiln_level_cut cut = choose(f, cases[i].text, NULL);
        check_cut(f, &cut);
        assert_int_equal(cut.n, cases[i].n);
        for (uint32_t k = 0; k < cut.n; k++) {
            assert_int_equal(cut.picks[k].node, cases[i].node[k]);
            assert_int_equal(cut.picks[k].level, cases[i].level[k]);
        }
        kiln_level_cut_release(&cut);
    }
    forest_free(f);
}

/* ---- by cost --------------------------------------------------------------------------------- */
static void every_cut_covers_each_leaf_once(void **state)
{
    static const char *const texts[] = {"0",     "2",     "5",    "9",     "dB:0",
                                        "dB:20", "dB:30", "auto", "dB:50", "dB:200"};
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        forest *f = random_forest(seed, 1 + (uint32_t)(seed * seed) % 60, (uint32_t)seed % 4);
        for (int z = -60; z <= 20; z += 20) {
            const kiln_view_request s = look(5, z, 600);
            for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                kiln_level_cut cut = choose(f, texts[i], &s);
                check_cut(f, &cut);
                kiln_level_cut_release(&cut);
            }
        }
        forest_free(f);
    }
}

static void the_budget_is_held_and_more_decibels_take_more(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        forest *f = random_forest(seed, 50, 2);
        const kiln_view_request s = look(20, -30, 600);
        uint64_t fewest = UINT64_MAX, most = 0;
        for (int db = 0; db <= 100; db += 5) {
            char text[16];
            snprintf(text, sizeof text, "dB:%d", db);
            kiln_level_cut cut = choose(f, text, &s);
            assert_true(cut.cost <= pow(10, -0.1 * db) * 512 * 512 * (1 + 1e-12));
            if (cut.rows < fewest) fewest = cut.rows;
            if (cut.rows > most) most = cut.rows;
            kiln_level_cut_release(&cut);
        }
        assert_true(fewest * 4 < most);
        forest_free(f);
    }
}

/* Sees all of it: a wide view from afar. */
static void many_decibels_are_the_full_scene_and_none_the_root(void **state)
{
    (void)state;
    forest *f = random_forest(7, 40, 2);
    const kiln_view_request s = look(20, -100, 500);
    kiln_level_cut full = choose(f, "dB:200", &s), none = choose(f, "dB:0", &s);
    assert_int_equal(full.rows, f->t.nodes[f->t.n_nodes - 1].rows);
    assert_int_equal(full.n, f->baked.n_chunks);
    assert_true(full.cost == 0);
    assert_int_equal(none.n, 1);
    assert_int_equal(none.picks[0].node, f->t.n_nodes - 1);
    kiln_level_cut_release(&full);
    kiln_level_cut_release(&none);
    forest_free(f);
}

static void what_is_not_seen_costs_nothing(void **state)
{
    (void)state;
    forest *f = random_forest(3, 40, 2);
    const kiln_view_request behind = look(20, 1000, 600);
    kiln_level_cut cut = choose(f, "dB:200", &behind);
    check_cut(f, &cut);
    assert_int_equal(cut.n, 1); /* the root, at its coarsest */
    assert_int_equal(cut.picks[0].node, f->t.n_nodes - 1);
    assert_true(cut.cost == 0);
    kiln_level_cut_release(&cut);
    forest_free(f);
}

static void without_errors_size_decides(void **state)
{
    (void)state;
    forest *f = random_forest(3, 10, 1);
    /* 2 exp(-3) = 0.0996 across */
    for (uint32_t i = 0; i < f->levels.n_chunks; i++) f->levels.chunks[i].n_errors = 0;
    const kiln_view_request near = look(5, -20, 600), far = look(5, -10000, 600);
    kiln_level_cut full = choose(f, "dB:1", &near), root = choose(f, "dB:100", &far);
    assert_int_equal(full.rows, f->t.nodes[f->t.n_nodes - 1].rows);
    assert_int_equal(root.n, 1);
    kiln_level_cut_release(&full);
    kiln_level_cut_release(&root);
    forest_free(f);
}

static void ties_go_to_the_lower_node(void **state)
{
    (void)state;
    forest *f = forest_new(1);
    const float centre[3] = {0, 0, 10};
    uint32_t leaves[8];
    for (int i = 0; i < 8; i++) leaves[i] = add_leaf(f, 1024, centre, 1e-3);
    add_cell(f, leaves, 8, 0, 0);
    const kiln_view_request s = look(0, 0, 512);
    const double one = kiln_level_cost(&s.view, &f->t.nodes[0], f->t.nodes[0].levels[0]);
    char text[32];
    /* room for three at level 1 */
    snprintf(text, sizeof text, "dB:%.6f", -10 * log10(3.5 * one / (512 * 512)));
    kiln_level_cut cut = choose(f, text, &s);
    check_cut(f, &cut);
    for (uint32_t i = 0; i < 8; i++) assert_int_equal(cut.picks[i].level, i < 3);
    kiln_level_cut_release(&cut);
    forest_free(f);
}

/* ---- against all cuts of a small tree -------------------------------------------------------- */
typedef struct {
    double rows, cost;
} outcome;
typedef struct {
    outcome *all;
    size_t n;
} outcomes;

static outcomes enumerate(const forest *f, const kiln_view_request *s, uint32_t node)
{
    const kiln_level_node *n = &f->t.nodes[node];
    outcomes o = {calloc(200000, sizeof *o.all), 0};
    if (n->chunk) o.all[o.n++] = (outcome){(double)n->rows, 0};
    for (uint32_t k = 0; k < n->n_levels; k++)
        o.all[o.n++] =
            (outcome){(double)n->levels[k]->count, kiln_level_cost(&s->view, n, n->levels[k])};
    if (n->n_children == 0) return o;
    outcomes sum = {calloc(200000, sizeof *sum.all), 1};
    for (uint32_t c = 0; c < n->n_children; c++) {
        outcomes child = enumerate(f, s, f->t.children[n->first_child + c]),
                 next = {calloc(200000, sizeof *next.all), 0};
        for (size_t i = 0; i < sum.n; i++)
            for (size_t k = 0; k < child.n; k++) {
                assert_true(next.n < 200000);
                next.all[next.n++] = (outcome){sum.all[i].rows + child.all[k].rows,
                                               sum.all[i].cost + child.all[k].cost};
            }
        free(sum.all);
        free(child.all);
        sum = next;
    }
    for (size_t i = 0; i < sum.n; i++) o.all[o.n++] = sum.all[i];
    free(sum.all);
    return o;
}

/* The fewest rows within the budget among cuts that minimise cost + price * rows for some price. */
static double rows_on_the_hull(const outcomes *o, double budget)
{
    double fewest = INFINITY;
    for (double price = 1e-12; price < 1e12; price *= 1.1) {
        outcome best = {INFINITY, INFINITY};
        for (size_t i = 0; i < o->n; i++)
            if (o->all[i].cost + price * o->all[i].rows < best.cost + price * best.rows)
                best = o->all[i];
        if (best.cost <= budget && best.rows < fewest) fewest = best.rows;
    }
    return fewest;
}

static void no_cut_on_the_hull_has_fewer_rows(void **state)
{
    const kiln_view_request s = look(2, -40, 600);
    unsigned between = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        forest *f = random_forest(seed, 4, 2);
        const outcomes o = enumerate(f, &s, f->t.n_nodes - 1);
        for (int db = 55; db <= 110; db += 5) {
            char text[16];
            snprintf(text, sizeof text, "dB:%d", db);
            kiln_level_cut cut = choose(f, text, &s);
            const double fewest = rows_on_the_hull(&o, pow(10, -0.1 * db) * 512 * 512);
            assert_true((double)cut.rows <= fewest);
            between += fewest < (double)f->t.nodes[f->t.n_nodes - 1].rows && cut.n > 1;
            kiln_level_cut_release(&cut);
        }
        free(o.all);
        forest_free(f);
    }
    assert_true(between > 10); /* some of these are neither the full scene nor the root */
}

/* ---- cost ------------------------------------------------------------------------------------ */
static void errors_are_taken_between_steps(void **state)
{
    (void)state;
    const kiln_chunk c = {.n_errors = 3, .error_step = -2, .errors = {8, 4, 1}};
    assert_true(kiln_level_error_at(&c, 0.25) == 8);
    assert_true(kiln_level_error_at(&c, 0.375) == 6);
    assert_true(kiln_level_error_at(&c, 0.5) == 4);
    assert_true(kiln_level_error_at(&c, 0.75) == 2.5);
    assert_true(kiln_level_error_at(&c, 1) == 1);
    assert_true(kiln_level_error_at(&c, 1e30) == 1);
    assert_true(kiln_level_error_at(&c, 0.125) == 10);
    assert_true(kiln_level_error_at(&c, 1e-300) == 12);
    const kiln_chunk grows = {.n_errors = 2, .error_step = 0, .errors = {3, 5}};
    assert_true(kiln_level_error_at(&grows, 0.25) == 3 && kiln_level_error_at(&grows, 1.5) == 4 &&
                kiln_level_error_at(&grows, 4) == 9);
    const kiln_chunk one = {.n_errors = 1, .error_step = 0, .errors = {3}};
    assert_true(kiln_level_error_at(&one, 1) == 3 && kiln_level_error_at(&one, 7) == 3);
}

static void footprints_stay_in_front_of_the_camera(void **state)
{
    (void)state;
    const kiln_view_request s = look(0, 0, 500);
    const float a[3] = {-1, -1, 9}, b[3] = {1, 1, 16}, far_min[3] = {-1e30f, -1e30f, -1e30f},
                far_max[3] = {1e30f, 1e30f, 1e30f};
    assert_true(fabs(kiln_level_footprint(&s.view, a, b) - 12.0 / 500) < 1e-9);
    const float deep[3] = {1, 1, 1000};
    assert_true(fabs(kiln_level_footprint(&s.view, a, deep) - sqrt(9 * 18) / 500) < 1e-9);
    const float c[3] = {-1, -1, -9}, d[3] = {1, 1, -5};
    assert_true(fabs(kiln_level_footprint(&s.view, c, d) - 0.2 / 500) < 1e-9);
    const double huge = kiln_level_footprint(&s.view, far_min, far_max);
    assert_true(huge > 0 && huge < 1e30);
}

/* A camera among the rows: their own distances count, not the box, and a row far out changes
 * little. */
static void sites_tell_how_far_a_camera_sees(void **state)
{
    enum { N = 640 };
    static float means[3 * N], weights[N];
    (void)state;
    /* a ball's surface of radius 4 about the origin, in the order of a spiral */
    for (int i = 0; i < N; i++) {
        const double z = 1 - 2 * (i + 0.5) / N, r = sqrt(1 - z * z), a = 2.399963 * i;
        means[i] = (float)(4 * r * cos(a)), means[N + i] = (float)(4 * r * sin(a)),
        means[2 * N + i] = (float)(4 * z);
        weights[i] = 1e-3f;
    }
    kiln_level_sites sites, less;
    const double within[3] = {0, 0, 0}, outside[3] = {0, 0, -40};
    kiln_level_sites_make(means, weights, NULL, N, 0, N, &sites);
    assert_int_equal(sites.n, KILN_LEVEL_SITES);
    assert_true(fabs(kiln_level_sites_distance(&sites, within, 0.2) - 4) < 1e-4);
    assert_true(fabs(kiln_level_sites_distance(&sites, outside, 0.2) / 40 - 1) < 0.02);
    /* no nearer than the near plane */
    assert_true(fabs(kiln_level_sites_distance(&sites, outside, 50) - 50) < 1e-4);
    double share;
    const kiln_view_request s = look(0, 0, 500);
    const kiln_level_node node = {.box_min = {-4, -4, -4}, .box_max = {4, 4, 4}, .sites = &sites},
                          bare = {.box_min = {-4, -4, -4}, .box_max = {4, 4, 4}};
    assert_true(fabs(kiln_level_node_footprint(&s.view, &node, &share) - 4.0 / 500) < 1e-6);
    assert_true(kiln_level_node_footprint(&s.view, &bare, &share) < 0.7 / 500);
    means[2 * N + 100] = 5e8f;
    kiln_level_sites_make(means, weights, NULL, N, 0, N, &less);
    assert_true(fabs(kiln_level_sites_distance(&less, within, 0.2) / 4 - 1) < 0.05);
    /* few rows, of no weight: a stranger's */
    memset(weights, 0, sizeof weights);
    kiln_level_sites_make(means, weights, weights, N, 7, 2, &less);
    assert_int_equal(less.n, 2);
    assert_true(fabs(kiln_level_sites_distance(&less, within, 0.2) - 4) < 1e-4);
}

/* A picture has that part of a node whose sites stand in it. */
static void a_picture_has_a_part_of_a_node(void **state)
{
    kiln_level_sites s = {.n = 4};
    /* in it, behind, beside, in it */
    static const float at[4][3] = {{0, 0, 10}, {0, 0, -10}, {50, 0, 10}, {0, 1, 20}};
    const kiln_level_eye eye = {.axes = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                                .left = -0.5,
                                .right = 0.5,
                                .top = -0.5,
                                .bottom = 0.5,
                                .near_m = 0.2};
    (void)state;
    for (int i = 0; i < 4; i++) {
        memcpy(s.site[i].at, at[i], sizeof at[i]);
        s.site[i].share = 0.25f;
        s.site[i].least = s.site[i].reach = 0.01f;
    }
    const kiln_level_sight seen = kiln_level_sites_seen(&s, &eye);
    assert_true(fabs(seen.share - 0.5) < 1e-6);
    assert_true(fabs(1 / (seen.distance * seen.distance) - (1 / 100.0 + 1 / 401.0) / 2) < 1e-6);
    s.n = 3;
    memcpy(s.site[0].at, at[1], sizeof at[1]); /* none is in it: it may reach in all the same */
    assert_true(kiln_level_sites_seen(&s, &eye).share == KILN_LEVEL_SHARE_UNKNOWN);
}

/* Two walls, a leaf each, and a cell above: what stands behind the other counts little, whichever
 * side the camera is on; not where it stands beside the other, nor what is one surface. */
static void what_others_hide_costs_little(void **state)
{
    (void)state;
    forest *f = forest_new(1);
    static kiln_level_sites sites[2];
    const float centre[3] = {0, 0, 0};
    uint32_t leaves[2];
    kiln_error err = {0};
    double open[3];
    for (int i = 0; i < 2; i++) leaves[i] = add_leaf(f, 1024, centre, 1e-3);
    add_cell(f, leaves, 2, 0, 0);
    for (int i = 0; i < 2; i++) {
        sites[i].n = 16;
        for (int k = 0; k < 16; k++) {
            sites[i].site[k].at[0] = (float)(k % 4) - 1.5f;
            sites[i].site[k].at[1] = (float)(k / 4) - 1.5f;
            sites[i].site[k].at[2] = i ? 5.0f : -5.0f;
            sites[i].site[k].share = 1 / 16.0f;
            sites[i].site[k].least = sites[i].site[k].reach = 0.8f;
        }
        f->t.nodes[i].sites = &sites[i];
    }
    const kiln_view_request before = look(0, -40, 500);
    assert_int_equal(kiln_level_hiding(&f->t, &before, open, &err), KILN_OK);
    assert_true(open[0] > 0.9 && open[1] < 0.4);
    assert_true(open[2] > 0.99); /* the root is all of the picture */
    /* between both: one is in the picture alone */
    const kiln_view_request behind = look(0, 0, 500);
    assert_int_equal(kiln_level_hiding(&f->t, &behind, open, &err), KILN_OK);
    assert_true(open[1] > 0.9);
    for (int k = 0; k < 16; k++) sites[1].site[k].at[0] += 20;
    assert_int_equal(kiln_level_hiding(&f->t, &before, open, &err), KILN_OK);
    assert_true(open[0] > 0.9 && open[1] > 0.9);
    for (int k = 0; k < 16; k++) { /* one surface */
        sites[1].site[k].at[0] -= 19.5f;
        sites[1].site[k].at[2] = -4.5f;
    }
    assert_int_equal(kiln_level_hiding(&f->t, &before, open, &err), KILN_OK);
    assert_true(open[0] > 0.9 && open[1] > 0.9);
    for (int k = 0; k < 16; k++) sites[1].site[k].at[0] = k % 2 ? NAN : INFINITY; /* a stranger's */
    assert_int_equal(kiln_level_hiding(&f->t, &before, open, &err), KILN_OK);
    for (int i = 0; i < 3; i++) assert_true(open[i] >= KILN_HIDING_LEAST && open[i] <= 1);
    f->t.nodes[0].sites = f->t.nodes[1].sites = NULL;
    forest_free(f);
}

/* A node that cameras stand in was measured as they see it: to a view from outside of them its
 * errors count more, the more, the farther it is out, and the most of the whole scene; not to views
 * among the cameras, nor of a node that all saw from outside. */
static void errors_count_more_where_no_camera_stood(void **state)
{
    (void)state;
    forest *f = forest_new(1);
    const float centre[3] = {0, 0, 0};
    double eyes[4][3] = {{4, 0, 0}, {-4, 0, 0}, {0, 0, 4}, {0, 0, -4}}, last = 0;
    uint32_t leaves[4];
    kiln_level_sites sites = {.n = 8};
    for (uint32_t k = 0; k < 8; k++) {
        for (uint32_t a = 0; a < 3; a++) sites.site[k].at[a] = k >> a & 1 ? 9.0f : -9.0f;
        sites.site[k].share = 0.125f;
        sites.site[k].least = sites.site[k].reach = 1;
    }
    for (int i = 0; i < 4; i++) leaves[i] = add_leaf(f, 1024, centre, 1e-3);
    add_cell(f, leaves, 4, 0, 0);
    for (int i = 0; i < 5; i++) f->t.nodes[i].sites = &sites;
    assert_true(kiln_level_sites_around(&sites, (const double(*)[3])eyes, 4));
    for (int k = 0; k < 8; k++) sites.site[k].at[1] += 30; /* above them all */
    assert_false(kiln_level_sites_around(&sites, (const double(*)[3])eyes, 4));
    for (int k = 0; k < 8; k++) sites.site[k].at[1] -= 30;
    f->t.nodes[0].among = f->t.nodes[4].among = true;
    f->t.n_eyes = 4;
    f->t.eyes = eyes;
    kiln_level_tree_measure_eyes(&f->t);
    assert_true(fabs(f->t.spread - 4) < 1e-9 && fabs(f->t.gap - sqrt(32)) < 1e-9);
    for (int away = 0; away < 8; away++) { /* view at (0, 0, -4 - 6 away) */
        double counts[5] = {1, 1, 1, 1, 0.5};
        const kiln_view_request from = look(0, -4 - 6.0 * away, 500);
        kiln_level_margin(&f->t, &from.view, counts);
        for (int i = 1; i < 4; i++) assert_true(counts[i] == 1);
        assert_true(away == 0 ? counts[0] == 1 && counts[4] == 0.5
                              : counts[0] > 1.1 && counts[4] >= 0.5 * counts[0]);
        assert_true(counts[4] >= last && counts[0] <= KILN_MARGIN_WHOLE &&
                    counts[4] <= 0.5 * KILN_MARGIN_WHOLE);
        last = counts[4];
    }
    assert_true(last > 0.45 * KILN_MARGIN_WHOLE);
    double counts[5] = {1, 1, 1, 1, 1};
    const kiln_view_request out = look(0, -100, 500);
    eyes[1][0] = NAN, eyes[2][2] = INFINITY; /* a stranger's poses */
    kiln_level_tree_measure_eyes(&f->t);
    kiln_level_margin(&f->t, &out.view, counts);
    for (int i = 0; i < 5; i++) assert_true(counts[i] >= 1 && counts[i] <= KILN_MARGIN_WHOLE);
    for (int i = 0; i < 5; i++) f->t.nodes[i].sites = NULL;
    f->t.eyes = NULL;
    forest_free(f);
}

/* ---- time ------------------------------------------------------------------------------------ */
static void a_thousand_nodes_are_chosen_from_quickly(void **state)
{
    (void)state;
    forest *f = random_forest(11, 1000, 2);
    const kiln_view_request s = look(500, -400, 600);
    const clock_t from = clock();
    for (int db = 20; db < 60; db += 4) {
        char text[16];
        snprintf(text, sizeof text, "dB:%d", db);
        kiln_level_cut cut = choose(f, text, &s);
        check_cut(f, &cut);
        kiln_level_cut_release(&cut);
    }
    const double each = (double)(clock() - from) / CLOCKS_PER_SEC / 10;
    print_message("# %u nodes: %.2f ms a view\n", f->t.n_nodes, 1e3 * each);
    assert_true(each < 0.2);
    forest_free(f);
}

/* A chain of cells with two children each: as deep as it has leaves. */
static void a_deep_tree_is_no_harm(void **state)
{
    (void)state;
    forest *f = forest_new(5);
    const float centre[3] = {0, 0, 10};
    uint32_t at = add_leaf(f, 64, centre, 1e-3);
    for (int i = 0; i < 1000; i++) {
        const uint32_t both[2] = {at, add_leaf(f, 64, centre, 1e-3 * (1 + below(f, 100)))};
        at = add_cell(f, both, 2, i % 3 == 0, 1);
    }
    const kiln_view_request s = look(0, 0, 512);
    static const char *const texts[] = {"dB:0", "dB:15", "dB:30", "dB:200", "6"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        kiln_level_cut cut = choose(f, texts[i], &s);
        check_cut(f, &cut);
        kiln_level_cut_release(&cut);
    }
    forest_free(f);
}

static void nothing_is_chosen_of_nothing(void **state)
{
    (void)state;
    forest *f = forest_new(1);
    const kiln_view_request s = look(0, 0, 512);
    kiln_level_cut cut = choose(f, "auto", &s);
    assert_int_equal(cut.n, 0);
    kiln_level_cut_release(&cut);
    cut = choose(f, "3", NULL);
    assert_int_equal(cut.n, 0);
    kiln_level_cut_release(&cut);
    forest_free(f);
}

/* ---- files ----------------------------------------------------------------------------------- */
/* Leaves that are left are covered once, lost ones never; a node above lost rows is not picked; no
 * chunk has fewer rows than are wanted of it. */
static void check_file_cut(const forest *f, const uint64_t *left, const kiln_level_cut *cut)
{
    uint64_t *picked = calloc(f->t.n_nodes, sizeof *picked), rows = 0;
    for (uint32_t i = 0; i < cut->n; i++) {
        const kiln_level_pick *p = &cut->picks[i];
        const bool baked = p->chunk < f->baked.n_chunks;
        const kiln_chunk *c =
            baked ? &f->baked.chunks[p->chunk] : &f->levels.chunks[p->chunk - f->baked.n_chunks];
        assert_true(p->rows >= 1 && p->rows <= (baked && left ? left[p->node] : c->count));
        if (!left)
            assert_ptr_equal(
                c, p->level ? f->t.nodes[p->node].levels[p->level - f->t.nodes[p->node].first_level]
                            : f->t.nodes[p->node].chunk);
        picked[p->node] = p->rows;
        rows += p->rows;
    }
    assert_int_equal(rows, cut->rows);
    for (uint32_t i = 0; i < f->t.n_nodes; i++) {
        const kiln_level_node *n = &f->t.nodes[i];
        unsigned covers = picked[i] > 0;
        if (!n->chunk) continue;
        for (uint32_t up = n->parent; up != KILN_NO_NODE; up = f->t.nodes[up].parent) {
            covers += picked[up] > 0;
            assert_true(!left || left[i] == n->rows || picked[up] == 0);
        }
        assert_int_equal(covers, !left || left[i] > 0);
    }
    free(picked);
}

static kiln_level_cut choose_rows_of(const forest *f, uint64_t rows, const uint64_t *left)
{
    const kiln_level_aim aim = {.rows = rows, .left = left};
    kiln_level_cut cut;
    kiln_error err;
    assert_int_equal(kiln_level_choose_file(&f->t, &aim, &cut, &err), KILN_OK);
    check_file_cut(f, left, &cut);
    return cut;
}

static void a_number_of_rows_is_met(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 40; seed++) {
        forest *f = random_forest(seed, 1 + (uint32_t)(3 * seed), 1 + (uint32_t)(seed % 3));
        const uint64_t all = f->t.nodes[f->t.n_nodes - 1].rows;
        for (uint64_t rows = all + 3; rows > 0; rows = rows * 2 / 3) {
            kiln_level_cut cut = choose_rows_of(f, rows, NULL);
            if (cut.n < rows) assert_int_equal(cut.rows, rows < all ? rows : all);
            assert_true(cut.n == 1 || cut.n <= cut.rows);
            kiln_level_cut_release(&cut);
        }
        forest_free(f);
    }
}

static void as_many_rows_as_a_level_has_are_that_level(void **state)
{
    (void)state;
    forest *f = random_forest(7, 60, 2);
    for (uint32_t k = 0; k < 9; k++) {
        char text[8];
        (void)snprintf(text, sizeof text, "%u", k);
        kiln_level_cut at = choose(f, text, NULL), cut = choose_rows_of(f, at.rows, NULL);
        assert_int_equal(at.n, cut.n);
        for (uint32_t i = 0; i < at.n; i++)
            assert_true(at.picks[i].node == cut.picks[i].node &&
                        at.picks[i].chunk == cut.picks[i].chunk);
        kiln_level_cut_release(&at);
        kiln_level_cut_release(&cut);
    }
    forest_free(f);
}

static void lost_rows_take_the_levels_above_with_them(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 40; seed++) {
        forest *f = random_forest(seed, 50, 2);
        uint64_t *left = calloc(f->t.n_nodes, sizeof *left), all = 0;
        for (uint32_t i = 0; i < f->t.n_nodes; i++) {
            const kiln_level_node *n = &f->t.nodes[i];
            const uint32_t how = below(f, 4);
            if (n->chunk)
                left[i] = how == 0 ? 0 : how == 1 ? 1 + below(f, (uint32_t)n->rows) : n->rows;
            all += left[i];
        }
        for (uint64_t rows = all; rows > 200; rows /= 2) {
            kiln_level_cut cut = choose_rows_of(f, rows, left);
            assert_int_equal(cut.rows, rows);
            kiln_level_cut_release(&cut);
        }
        const kiln_level_aim level_2 = {.wish = {.form = KILN_LEVEL_AT, .level = 2}, .left = left};
        kiln_level_cut cut;
        kiln_error err;
        assert_int_equal(kiln_level_choose_file(&f->t, &level_2, &cut, &err), KILN_OK);
        check_file_cut(f, left, &cut);
        for (uint32_t i = 0; i < cut.n; i++)
            assert_int_equal(cut.picks[i].rows,
                             left[cut.picks[i].node] >> 2 ? left[cut.picks[i].node] >> 2 : 1);
        kiln_level_cut_release(&cut);
        free(left);
        forest_free(f);
    }
}

static void a_file_costs_the_mean_of_its_views(void **state)
{
    (void)state;
    forest *f = random_forest(3, 40, 2);
    const kiln_view_request near = look(20, -60, 500), far = look(20, -900, 500),
                            both[2] = {near, far};
    uint64_t rows[3];
    for (int i = 0; i < 3; i++) {
        const kiln_level_aim aim = {.wish = {.form = KILN_LEVEL_DB, .db = 100},
                                    .views = i == 1 ? &far : both,
                                    .n_views = i == 2 ? 2 : 1};
        kiln_level_cut cut;
        kiln_error err;
        assert_int_equal(kiln_level_choose_file(&f->t, &aim, &cut, &err), KILN_OK);
        check_cut(f, &cut);
        rows[i] = cut.rows;
        kiln_level_cut_release(&cut);
    }
    assert_true(rows[1] < rows[2] && rows[2] <= rows[0]);
    forest_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_three_forms),
        cmocka_unit_test(a_fixed_level_ends_where_it_can),
        cmocka_unit_test(every_cut_covers_each_leaf_once),
        cmocka_unit_test(the_budget_is_held_and_more_decibels_take_more),
        cmocka_unit_test(many_decibels_are_the_full_scene_and_none_the_root),
        cmocka_unit_test(what_is_not_seen_costs_nothing),
        cmocka_unit_test(without_errors_size_decides),
        cmocka_unit_test(ties_go_to_the_lower_node),
        cmocka_unit_test(no_cut_on_the_hull_has_fewer_rows),
        cmocka_unit_test(errors_are_taken_between_steps),
        cmocka_unit_test(footprints_stay_in_front_of_the_camera),
        cmocka_unit_test(sites_tell_how_far_a_camera_sees),
        cmocka_unit_test(a_picture_has_a_part_of_a_node),
        cmocka_unit_test(what_others_hide_costs_little),
        cmocka_unit_test(errors_count_more_where_no_camera_stood),
        cmocka_unit_test(a_thousand_nodes_are_chosen_from_quickly),
        cmocka_unit_test(a_deep_tree_is_no_harm),
        cmocka_unit_test(nothing_is_chosen_of_nothing),
        cmocka_unit_test(a_number_of_rows_is_met),
        cmocka_unit_test(as_many_rows_as_a_level_has_are_that_level),
        cmocka_unit_test(lost_rows_take_the_levels_above_with_them),
        cmocka_unit_test(a_file_costs_the_mean_of_its_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
