/* draw_ways_test -- which way draws a view (kiln_draw), on a device of host memory: each in its
 * turn, where it is allowed, can, and has the memory; and what callers may have of a drawing in
 * between. The bits are those of any other way. */
#include "kernels/draw/draw.h"
#include "tests/unit/draw_device.h"

static const float background[3] = {0.1f, 0.5f, 2};

typedef struct {
    scene s;
    picture right;
    float *rgba, *depth;
    kiln_draw_stats stats;
} view;

static void view_make(view *v)
{
    memset(v, 0, sizeof *v);
    scene_make(&v->s, 333, 217, KILN_PROFILE_INRIA, 14);
    draw_on_cpu(&v->right, &v->s);
    v->rgba = memory(v->right.pixels, 16);
    v->depth = memory(v->right.pixels, 4);
}

static void view_free(view *v)
{
    free(v->rgba);
    free(v->depth);
    picture_free(&v->right);
    scene_free(&v->s);
}

static kiln_draw_want want_of(const view *v, unsigned ways)
{
    return (kiln_draw_want){
        .ways = ways, .background = background, .rgba = v->rgba, .depth = v->depth};
}

/* Returns the way that has drawn, whose picture must be right. */
static unsigned drawn_by(view *v, const device *d, const kiln_draw_want *want)
{
    kiln_error err = {0};
    memset(v->rgba, 0, 16 * v->right.pixels);
    memset(v->depth, 0, 4 * v->right.pixels);
    v->s.draw.store = d->store;
    if (kiln_draw(d->runner, &v->s.draw, want, &v->stats, &err) != KILN_OK) fail_msg("%s", err.msg);
    v->s.draw.store = NULL;
    if (!v->stats.way) return 0;
    assert_memory_equal(v->rgba, v->right.rgba, 16 * v->right.pixels);
    assert_memory_equal(v->depth, v->right.depth, 4 * v->right.pixels);
    assert_int_equal(v->stats.visible, v->right.drawing.n);
    assert_int_equal(v->stats.pairs, v->right.pairs);
    return v->stats.way;
}

static unsigned by(view *v, const device *d, unsigned ways)
{
    const kiln_draw_want want = want_of(v, ways);
    return drawn_by(v, d, &want);
}

static void each_has_its_turn(void **state)
{
    view v;
    (void)state;
    view_make(&v);
    device d = device_open(LARGE);
    assert_int_equal(by(&v, &d, KILN_DRAW_SINGLE_PASS), 0); /* nothing is known of the scene */
    assert_int_equal(by(&v, &d, 0), KILN_DRAW_DEVICE);
    assert_int_equal(by(&v, &d, 0), KILN_DRAW_SINGLE_PASS);
    assert_int_equal(by(&v, &d, KILN_DRAW_DEVICE | KILN_DRAW_HOST), KILN_DRAW_DEVICE);
    assert_int_equal(by(&v, &d, KILN_DRAW_DEVICE), KILN_DRAW_DEVICE);
    assert_int_equal(by(&v, &d, KILN_DRAW_HOST), KILN_DRAW_HOST);
    assert_int_equal(by(&v, &d, KILN_DRAW_SLABS), 0); /* of unknown size */
    kiln_draw_want want = want_of(&v, KILN_DRAW_SLABS | KILN_DRAW_HOST);
    want.capacity = 200;
    assert_int_equal(drawn_by(&v, &d, &want), KILN_DRAW_SLABS);
    assert_true(v.stats.slabs > 1);
    const device no_store = {.runner = d.runner};
    assert_int_equal(by(&v, &no_store, 0), KILN_DRAW_HOST);
    assert_int_equal(by(&v, &no_store, KILN_DRAW_SINGLE_PASS | KILN_DRAW_DEVICE), 0);
    device_close(&d);
    view_free(&v);
}

/* ---- a device that is too small -------------------------------------------------------------- */
enum { ALL_WAYS = KILN_DRAW_DEVICE | KILN_DRAW_SLABS | KILN_DRAW_HOST };

/* What draws with so much memory on the device. */
static unsigned drawn_with(view *v, uint64_t cap, const kiln_draw_want *want)
{
    device d = device_open(cap);
    const unsigned way = drawn_by(v, &d, want);
    device_close(&d);
    return way;
}

static unsigned by_with(view *v, uint64_t cap, unsigned ways)
{
    const kiln_draw_want want = want_of(v, ways);
    return drawn_with(v, cap, &want);
}

static bool all_is_done_there(view *v, uint64_t cap)
{
    return by_with(v, cap, KILN_DRAW_DEVICE) == KILN_DRAW_DEVICE;
}
/* A drawing is, and its lists come to host memory. */
static bool drawing_is_made_there(view *v, uint64_t cap)
{
    return by_with(v, cap, ALL_WAYS) == KILN_DRAW_DEVICE;
}
static bool slabs_are_of_use_there(view *v, uint64_t cap)
{
    return all_is_done_there(v, cap) || v->stats.device_capacity > 0;
}

/* The least memory with which that is so, to 256 bytes. It is measured because it differs between
 * builds: a sanitizer puts a red zone behind each array (base/carve.h). */
static uint64_t least_cap(view *v, bool (*is_so)(view *v, uint64_t cap))
{
    uint64_t low = 0, high = (uint64_t)16 << 20;
    assert_true(is_so(v, high));
    while (high - low > 256) {
        const uint64_t middle = (low + high) / 2;
        *(is_so(v, middle) ? &high : &low) = middle;
    }
    return high;
}

/* The device tells how much of it a slab may have; nothing where nobody asks. */
static uint64_t capacity_told(view *v, uint64_t cap)
{
    assert_true(by_with(v, cap, KILN_DRAW_DEVICE | KILN_DRAW_HOST) != 0);
    assert_int_equal(v->stats.device_capacity, 0);
    assert_int_equal(by_with(v, cap, KILN_DRAW_DEVICE), 0);
    assert_true(v->stats.device_capacity > 0);
    return v->stats.device_capacity;
}

/* Slabs draw, or where host memory lacks one byte for them a drawing there. */
static void slabs_need_their_ram(view *v, uint64_t cap, uint64_t capacity)
{
    const kiln_draw_size size = {.visible = v->right.drawing.n,
                                 .largest_chunk = 900,
                                 .band_pairs = v->right.pairs,
                                 .band_tiles = 294};
    kiln_draw_size of_slab = size;
    kiln_draw_want want = want_of(v, ALL_WAYS);
    of_slab.visible = capacity;
    want.size = &size;
    want.ram = kiln_draw_slabs_bytes(&of_slab, &v->s.view, CHUNKS);
    assert_int_equal(drawn_with(v, cap, &want), KILN_DRAW_SLABS);
    want.ram--;
    assert_int_equal(drawn_with(v, cap, &want), KILN_DRAW_HOST);
}

static void what_the_device_refuses_has_another_way(void **state)
{
    enum { CAPS = 8 };
    view v;
    (void)state;
    view_make(&v);
    const uint64_t slabs = least_cap(&v, slabs_are_of_use_there),
                   drawing = least_cap(&v, drawing_is_made_there),
                   all = least_cap(&v, all_is_done_there);
    assert_true(slabs < drawing && drawing < all);
    assert_int_equal(by_with(&v, slabs - 256, KILN_DRAW_DEVICE), 0);
    assert_int_equal(v.stats.device_capacity, 0); /* slabs are not worth it */
    for (unsigned k = 0; k < CAPS; k++) {
        const uint64_t cap = slabs + (drawing - 256 - slabs) * k / (CAPS - 1);
        const uint64_t capacity = capacity_told(&v, cap);
        assert_int_equal(by_with(&v, cap, ALL_WAYS), KILN_DRAW_SLABS);
        slabs_need_their_ram(&v, cap, capacity);
    }
    for (unsigned k = 0; k < CAPS; k++) {
        const uint64_t cap = drawing + (all - 256 - drawing) * k / (CAPS - 1);
        (void)capacity_told(&v, cap);
        assert_int_equal(by_with(&v, cap, ALL_WAYS), KILN_DRAW_DEVICE);
    }
    view_free(&v);
}

/* ---- the memory of a picture ----------------------------------------------------------------- */
typedef struct {
    float *rgba;
    unsigned asked, launches; /* of the device by then */
} placing;

static kiln_status place(void *context, float **rgba, kiln_error *err)
{
    placing *p = context;
    (void)err;
    p->asked++;
    p->launches = fake.launches;
    *rgba = p->rgba;
    return KILN_OK;
}

static void memory_is_asked_for_when_it_is_needed(void **state)
{
    static const struct {
        unsigned ways, asked;
        bool behind; /* the drawing */
    } cases[] = {{KILN_DRAW_DEVICE, 1, false},
                 {KILN_DRAW_DEVICE | KILN_DRAW_HOST, 1, true},
                 {KILN_DRAW_HOST, 1, true},
                 {KILN_DRAW_SLABS, 1, false}};
    view v;
    (void)state;
    view_make(&v);
    device d = device_open(LARGE);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        placing p = {.rgba = v.rgba};
        kiln_draw_want want = want_of(&v, cases[k].ways);
        want.rgba = NULL;
        want.place = place;
        want.place_context = &p;
        want.capacity = cases[k].ways == KILN_DRAW_SLABS ? 300 : 0;
        fake.launches = 0;
        assert_true(drawn_by(&v, &d, &want) != 0);
        assert_int_equal(p.asked, cases[k].asked);
        assert_int_equal(p.launches > 0, cases[k].behind);
    }
    device_close(&d);
    view_free(&v);
}

/* ---- stored lists ---------------------------------------------------------------------------- */
enum { ROWS = 14, BANDS = 3 };

typedef struct {
    const view *of;
    uint64_t visible, pairs[BANDS];
    uint32_t starts[BANDS + 1];
    unsigned opened, read;
} table;

static kiln_status open_table(void *context, uint64_t visible, uint32_t *n_bands,
                              const uint32_t **starts, const uint64_t **pairs, kiln_error *err)
{
    table *t = context;
    (void)err;
    t->opened++;
    if (visible != t->visible) return KILN_OK;
    *n_bands = BANDS;
    *starts = t->starts;
    *pairs = t->pairs;
    return KILN_OK;
}

static kiln_status read_table(void *context, uint32_t band, uint32_t *tile_counts, uint32_t *ranks,
                              kiln_error *err)
{
    table *t = context;
    kiln_runner *r = fake_runner(KILN_RUNNER_CPU, 0);
    const kiln_tile_pairs_emit_args a = {.n = t->of->right.drawing.n,
                                         .splats = t->of->right.drawing.splats,
                                         .view = &t->of->s.view,
                                         .row0 = t->starts[band],
                                         .row1 = t->starts[band + 1],
                                         .capacity = t->pairs[band],
                                         .tile_counts = tile_counts,
                                         .ranks = ranks};
    t->read++;
    const kiln_status st = kiln_runner_run(r, KILN_OP_tile_pairs_emit, &a, err);
    kiln_runner_free(r);
    return st;
}

static table table_of(const view *v)
{
    table t = {.of = v, .visible = v->right.drawing.n, .starts = {0, 5, 6, ROWS}};
    kiln_error err = {0};
    uint64_t rows[ROWS];
    kiln_runner *r = fake_runner(KILN_RUNNER_CPU, 0);
    const kiln_tile_pairs_count_args a = {.n = v->right.drawing.n,
                                          .splats = v->right.drawing.splats,
                                          .view = &v->s.view,
                                          .row1 = ROWS,
                                          .row_pairs = rows};
    assert_int_equal(kiln_runner_run(r, KILN_OP_tile_pairs_count, &a, &err), KILN_OK);
    for (unsigned b = 0; b < BANDS; b++)
        for (uint32_t row = t.starts[b]; row < t.starts[b + 1]; row++) t.pairs[b] += rows[row];
    kiln_runner_free(r);
    return t;
}

static void stored_lists_draw_the_picture(void **state)
{
    view v;
    (void)state;
    view_make(&v);
    table t = table_of(&v);
    const kiln_draw_lists lists = {.open = open_table, .read = read_table, .context = &t};
    for (unsigned k = 0; k < 2; k++) { /* a drawing on a device, and one in host memory */
        device d = device_open(LARGE);
        kiln_draw_want want =
            want_of(&v, k == 0 ? KILN_DRAW_DEVICE | KILN_DRAW_HOST : KILN_DRAW_HOST);
        want.lists = &lists;
        t.opened = t.read = 0;
        assert_true(drawn_by(&v, &d, &want) != 0);
        assert_int_equal(t.opened, 1);
        assert_int_equal(t.read, BANDS);
        t.visible++; /* of another drawing */
        assert_true(drawn_by(&v, &d, &want) != 0);
        assert_int_equal(t.opened, 2);
        assert_int_equal(t.read, BANDS);
        t.visible--;
        device_close(&d);
    }
    view_free(&v);
}

static void a_band_with_too_many_pairs_is_refused(void **state)
{
    view v;
    kiln_error err = {0};
    (void)state;
    view_make(&v);
    device d = device_open(LARGE);
    kiln_draw_want want = want_of(&v, KILN_DRAW_HOST);
    want.most_band_pairs = v.right.pairs;
    assert_int_equal(drawn_by(&v, &d, &want), KILN_DRAW_HOST);
    assert_int_equal(v.stats.band_pairs, v.right.pairs);
    want.most_band_pairs--;
    assert_int_equal(kiln_draw(d.runner, &v.s.draw, &want, &v.stats, &err), KILN_E_CAP);
    assert_int_equal(v.stats.band_pairs, v.right.pairs);
    device_close(&d);
    view_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_its_turn),
        cmocka_unit_test(what_the_device_refuses_has_another_way),
        cmocka_unit_test(memory_is_asked_for_when_it_is_needed),
        cmocka_unit_test(stored_lists_draw_the_picture),
        cmocka_unit_test(a_band_with_too_many_pairs_is_refused),
    };
    return cmocka_run_group_tests_name("draw ways", tests, fake_nothing_is_left,
                                       fake_nothing_is_left);
}
