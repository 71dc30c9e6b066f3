/* passes_test -- several pictures at a time (kernels/draw/lanes.c), on a device of host memory: they are those drawn alone, under
 * any cap, whatever is missing and whichever step fails. */
#include "kernels/draw/resident.h"
#include "tests/unit/draw_device.h"

enum { KINDS = 3, PASSES = 11 };

static const float background[3] = {0.1f, 0.5f, 2};

/* Cameras of one scene, and passes that draw them in turn. */
typedef struct {
    scene of[KINDS]; /* the chunks of the first */
    picture right[KINDS];
    kiln_draw_pass passes[PASSES];
} work;

static void work_make(work *w)
{
    static const uint32_t sizes[KINDS][2] = {{111, 70}, {200, 90}, {64, 140}};
    memset(w, 0, sizeof *w);
    scene_make(&w->of[0], sizes[0][0], sizes[0][1], KILN_PROFILE_INRIA, 14);
    for (unsigned k = 0; k < KINDS; k++) {
        w->of[k] = w->of[0];
        w->of[k].view.width = sizes[k][0];
        w->of[k].view.height = sizes[k][1];
        w->of[k].draw.view = &w->of[k].view;
        w->of[k].draw.context = &w->of[k];
        w->of[k].draw.store = NULL;
        draw_on_cpu(&w->right[k], &w->of[k]);
    }
    for (unsigned i = 0; i < PASSES; i++) {
        const size_t pixels = w->right[i % KINDS].pixels;
        w->passes[i] = (kiln_draw_pass){.scene = &w->of[i % KINDS].draw,
                                        .background = background,
                                        .to = {.rgba = memory(pixels, 16), .depth = memory(pixels, 4), .hashes = memory(64, 1)}};
    }
}

static void work_free(work *w)
{
    for (unsigned i = 0; i < PASSES; i++) {
        free(w->passes[i].to.rgba);
        free(w->passes[i].to.depth);
        free(w->passes[i].to.hashes);
    }
    for (unsigned k = 0; k < KINDS; k++) picture_free(&w->right[k]);
    scene_free(&w->of[0]);
}

static void use(work *w, const device *d)
{
    for (unsigned k = 0; k < KINDS; k++) w->of[k].draw.store = d->store;
}

/* A first picture, for which there is no single pass. */
static void draw_first(work *w, const device *d, unsigned kind)
{
    kiln_error err = {0};
    const kiln_draw_scene *s = &w->of[kind].draw;
    if (kiln_draw_view(d->runner, s, background, w->passes[kind].to.rgba, NULL, NULL, &err) != KILN_OK) fail_msg("%s", err.msg);
}

static void hashes_of(const picture *right, unsigned char *out)
{
    const kiln_exec x = {.device = -1, .threads = 1};
    const kiln_pixel_hashes_args a = {.pixels = right->pixels, .rgba = right->rgba, .hashes = out};
    kiln_error err = {0};
    size_t bytes = 0;
    assert_int_equal(kiln_ops_cpu()->pixel_hashes(&x, &a, NULL, &bytes, &err), KILN_OK);
    void *room = memory(bytes, 1);
    assert_int_equal(kiln_ops_cpu()->pixel_hashes(&x, &a, room, &bytes, &err), KILN_OK);
    free(room);
}

/* Draws all; returns how many are done, which must be right. */
static unsigned draw_all(work *w, kiln_status *st)
{
    kiln_error err = {0};
    unsigned n = 0;
    for (unsigned i = 0; i < PASSES; i++) {
        const size_t pixels = w->right[i % KINDS].pixels;
        memset(w->passes[i].to.rgba, 0, 16 * pixels);
        memset(w->passes[i].to.depth, 0, 4 * pixels);
        memset(w->passes[i].to.hashes, 0, 64);
        w->passes[i].done = i % 2;
    }
    fake.launches = fake.waits = 0;
    *st = kiln_draw_passes(w->passes, PASSES, &err);
    assert_int_equal(fake.in_flight, 0);
    assert_int_equal(fake.n_copies, 0);
    for (unsigned i = 0; *st == KILN_OK && i < PASSES; i++) {
        const picture *right = &w->right[i % KINDS];
        unsigned char hashes[64] = {0};
        if (!w->passes[i].done) continue;
        n++;
        hashes_of(right, hashes);
        assert_memory_equal(w->passes[i].to.rgba, right->rgba, 16 * right->pixels);
        assert_memory_equal(w->passes[i].to.depth, right->depth, 4 * right->pixels);
        assert_memory_equal(w->passes[i].to.hashes, hashes, sizeof hashes);
        assert_int_equal(w->passes[i].stats.visible, right->drawing.n);
        assert_int_equal(w->passes[i].stats.pairs, right->pairs);
    }
    return n;
}

static void pictures_are_those_drawn_alone(void **state)
{
    enum { A_PICTURE = 4, OWN_STREAMS = 2 }; /* project, tile_lists, raster, pixel_hashes */
    work w;
    kiln_status st;
    (void)state;
    work_make(&w);
    device d = device_open(LARGE);
    use(&w, &d);
    assert_int_equal(draw_all(&w, &st), 0); /* nothing is known of them */
    assert_int_equal(st, KILN_OK);
    assert_int_equal(fake.streams, OWN_STREAMS);
    draw_first(&w, &d, 1);
    for (unsigned turn = 0; turn < 3; turn++) {
        assert_int_equal(draw_all(&w, &st), PASSES);
        assert_int_equal(fake.streams, OWN_STREAMS * KILN_STORE_LANES);
        assert_int_equal(fake.launches, A_PICTURE * PASSES);
        if (turn > 0) assert_int_equal(fake.waits, PASSES); /* no lane has to grow */
    }
    device_close(&d);
    work_free(&w);
}

/* With less memory fewer are drawn at a time, then none; what is drawn is right. */
static void no_cap_changes_a_picture(void **state)
{
    work w;
    kiln_status st;
    uint64_t last = 0, lanes_seen = 0;
    (void)state;
    work_make(&w);
    for (uint64_t cap = 400000; cap <= LARGE; cap += cap < 16 << 20 ? cap / 8 : cap) {
        device d = device_open(cap);
        use(&w, &d);
        draw_first(&w, &d, 1);
        for (unsigned turn = 0; turn < 2; turn++) {
            const unsigned n = draw_all(&w, &st);
            assert_int_equal(st, KILN_OK);
            last = n;
        }
        lanes_seen |= (uint64_t)1 << fake.streams / 2;
        draw_first(&w, &d, 2); /* what needs the memory of the lanes gets it */
        device_close(&d);
    }
    assert_int_equal(last, PASSES);
    assert_true(lanes_seen & 1 << 1 && lanes_seen & 1 << KILN_STORE_LANES);
    work_free(&w);
}

/* Planes of a chunk that a camera is the first to see, and buffers that are too small. */
static void what_is_missing_is_made_up_for(void **state)
{
    work w;
    kiln_status st;
    (void)state;
    work_make(&w);
    for (unsigned which = 0; which < 5; which++) {
        device d = device_open(LARGE);
        use(&w, &d);
        w.of[1].last_hidden = which == 4;
        draw_first(&w, &d, 1);
        w.of[1].last_hidden = false;
        if (which & 1) d.store->last.visible = 1;
        if (which & 2) d.store->last.pairs = 1;
        assert_int_equal(draw_all(&w, &st), PASSES);
        device_close(&d);
    }
    work_free(&w);
}

/* The step fails at its 1st, 2nd, ... time, the later ones at greater distances. Returns the last time at which it did. */
static unsigned break_at(work *w, fake_step step)
{
    unsigned last = 0;
    for (unsigned time = 1;; last = time, time += 1 + time / 5) {
        kiln_status st;
        device d = device_open(LARGE);
        use(w, &d);
        draw_first(w, &d, 1);
        fake.fail = step;
        fake.fail_in = time;
        (void)draw_all(w, &st);
        const bool failed = fake.fail_in == 0;
        assert_int_equal(st, failed ? KILN_E_DEVICE : KILN_OK);
        fake.fail = FAKE_NOTHING;
        assert_int_equal(draw_all(w, &st), PASSES);
        device_close(&d);
        if (!failed) return last;
    }
}

static void what_breaks_off_leaves_nothing(void **state)
{
    work w;
    (void)state;
    work_make(&w);
    assert_true(break_at(&w, FAKE_LAUNCH) >= 3 * PASSES);
    assert_true(break_at(&w, FAKE_COPY_OUT) >= 3 * PASSES);
    assert_true(break_at(&w, FAKE_WAIT) >= PASSES / 2);
    work_free(&w);
}

static void they_have_one_store(void **state)
{
    work w;
    kiln_status st;
    (void)state;
    work_make(&w);
    assert_int_equal(draw_all(&w, &st), 0);
    assert_int_equal(st, KILN_E_USAGE);
    device d = device_open(LARGE);
    use(&w, &d);
    w.of[2].draw.store = NULL;
    assert_int_equal(draw_all(&w, &st), 0);
    assert_int_equal(st, KILN_E_USAGE);
    device_close(&d);
    work_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_are_those_drawn_alone),
        cmocka_unit_test(no_cap_changes_a_picture),
        cmocka_unit_test(what_is_missing_is_made_up_for),
        cmocka_unit_test(what_breaks_off_leaves_nothing),
        cmocka_unit_test(they_have_one_store),
    };
    return cmocka_run_group_tests_name("passes", tests, fake_nothing_is_left, fake_nothing_is_left);
}
