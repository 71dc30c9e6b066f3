/* resident_test -- drawings that stay on a device of host memory (kernels/draw/drawing.h,
 * kernels/draw/store.h; fake_device.h): the bits of the way through host memory, whatever the cap,
 * whatever was drawn before, and nothing left behind.
 *
 * starts first */
#include "kernels/draw/store.h"
#include "tests/unit/draw_device.h"

/* ---- the same bits --------------------------------------------------------------------------- */

static void no_cap_changes_a_picture(void **state)
{
    static const struct {
        uint32_t width, height;
        kiln_profile_id profile;
    } requests[] = {{333, 217, KILN_PROFILE_INRIA},
                    {320, 240, KILN_PROFILE_GSPLAT_15},
                    {301, 16, KILN_PROFILE_GSPLAT_16}};
    (void)state;
    for (unsigned k = 0; k < sizeof requests / sizeof *requests; k++) {
        scene s;
        picture right;
        unsigned without_chunks = 0, with_one = 0;
        scene_make(&s, requests[k].width, requests[k].height, requests[k].profile, 10 * k + k % 2);
        draw_on_cpu(&right, &s);
        for (uint64_t cap = 20000; cap <= LARGE; cap += cap / 16) {
            device d = device_open(cap);
            /* memory for all that a picture needs is taken */
            for (unsigned turn = 0; turn < 2; turn++) draw_on(&d, &s, &right);
            s.asked = 0;
            draw_on(&d, &s, &right);
            without_chunks += s.asked == 0;
            with_one += s.asked == 1;
            if (cap > LARGE / 2) assert_int_equal(kiln_runner_get_info(d.runner).n_host, 0);
            device_close(&d);
        }
        assert_int_equal(s.asked, 0);
        /* caps at which all planes were there when they were needed again, */
        assert_true(without_chunks > 10);
        /* and at which those of one chunk did not give way to the other's */
        assert_true(with_one > 0);
        picture_free(&right);
        scene_free(&s);
    }
}

/* On a device or not at all: the right picture, planes once for all views, and no Gaussian and no
 * pair in host memory. Where it is refused, slabs of the size that is told give the picture. */
static void a_picture_is_made_on_the_device_or_not_at_all(void **state)
{
    static const float background[3] = {0.1f, 0.5f, 2};
    scene s;
    picture right;
    unsigned made = 0, in_slabs = 0, refused = 0;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 18);
    draw_on_cpu(&right, &s);
    float *rgba = memory(right.pixels, 4 * sizeof *rgba),
          *depth = memory(right.pixels, sizeof *depth);
    for (uint64_t cap = 20000; cap <= LARGE; cap += cap / 16) {
        kiln_draw_stats stats;
        kiln_error err = {0};
        bool all = true;
        device d = device_open(cap);
        s.draw.store = d.store;
        s.asked = 0;
        for (unsigned turn = 0; turn < 3; turn++) {
            memset(rgba, FAKE_POISON, right.pixels * 4 * sizeof *rgba);
            fake.bytes_out = 0;
            kiln_draw_want want = {
                .ways = KILN_DRAW_DEVICE, .background = background, .rgba = rgba, .depth = depth};
            if (kiln_draw(d.runner, &s.draw, &want, &stats, &err) != KILN_OK)
                fail_msg("%s", err.msg);
            const bool done = stats.way == KILN_DRAW_DEVICE;
            const uint64_t capacity = stats.device_capacity;
            assert_true(done ? capacity == 0 : stats.way == 0);
            want.ways = KILN_DRAW_SLABS;
            want.capacity = capacity;
            if (!done && capacity > 0)
                assert_int_equal(kiln_draw(d.runner, &s.draw, &want, &stats, &err), KILN_OK);
            all = all && done;
            in_slabs += !done && capacity > 0;
            refused += !done && capacity == 0;
            if (done) assert_true(fake.bytes_out <= right.pixels * 5 * sizeof *rgba + 4096);
            if (!done && capacity == 0) continue;
            assert_int_equal(stats.visible, right.drawing.n);
            assert_int_equal(stats.pairs, right.pairs);
            assert_memory_equal(rgba, right.rgba, right.pixels * 4 * sizeof *rgba);
            assert_memory_equal(depth, right.depth, right.pixels * sizeof *depth);
        }
        made += all;
        if (cap > LARGE / 2) assert_int_equal(s.asked, 2); /* the middle chunk is empty */
        assert_false(kiln_store_has_drawing(d.store));
        s.draw.store = NULL;
        device_close(&d);
    }
    assert_true(made > 10 && in_slabs > 3 && refused > 3);
    free(depth);
    free(rgba);
    picture_free(&right);
    scene_free(&s);
}

/* The view's Gaussians in drawing order, in host memory; on a device where s->draw.store is one. */
static kiln_drawing collected(kiln_runner *r, const scene *s)
{
    kiln_drawing d;
    kiln_error err = {0};
    assert_int_equal(kiln_draw_collect(r, &s->draw, &d, &err), KILN_OK);
    assert_int_equal(kiln_drawing_fetch(&d, &err), KILN_OK);
    return d;
}

/* Colours of fast pictures: of halves that are kept, where there is room for them, else of floats,
 * chunk by chunk, on the host. Exact ones in between are of the floats. */
static void fast_colours_are_the_same_wherever_they_are_made(void **state)
{
    scene s;
    unsigned with_halves = 0, by_chunks = 0;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 16);
    kiln_runner *const cpu = fake_runner(KILN_RUNNER_CPU, 0);
    kiln_drawing right[2];
    for (unsigned fast = 0; fast < 2; fast++) {
        s.draw.fast = fast;
        right[fast] = collected(cpu, &s);
    }
    assert_memory_not_equal(right[0].splats, right[1].splats, right[0].n * sizeof *right->splats);
    for (uint64_t cap = 200000; cap <= LARGE; cap += cap / 32) {
        device d = device_open(cap);
        s.draw.store = d.store;
        for (unsigned turn = 0; turn < 4; turn++) {
            s.draw.fast = turn % 2 == 0;
            kiln_drawing got = collected(d.runner, &s);
            assert_int_equal(got.n, right[s.draw.fast].n);
            assert_memory_equal(got.splats, right[s.draw.fast].splats, got.n * sizeof *got.splats);
            kiln_drawing_release(&got);
        }
        with_halves += kiln_store_whole(d.store)->halves != NULL;
        by_chunks += !kiln_store_whole(d.store)->at;
        s.draw.store = NULL;
        device_close(&d);
    }
    assert_true(with_halves > 0 && by_chunks > 0);
    for (unsigned fast = 0; fast < 2; fast++) kiln_drawing_release(&right[fast]);
    kiln_runner_free(cpu);
    scene_free(&s);
}

/* Is the scene still in one piece behind a few pictures? */
static bool stays_whole(uint64_t cap, scene *s, bool fast, unsigned *without_halves)
{
    kiln_error err = {0};
    picture p;
    device d = device_open(cap);
    s->draw.store = d.store;
    s->draw.fast = fast;
    for (unsigned turn = 0; turn < 4; turn++) {
        if (picture_draw(&p, d.runner, s, &err) != KILN_OK)
            fail_msg("cap %llu: %s", (unsigned long long)cap, err.msg);
        picture_free(&p);
    }
    const bool whole = kiln_store_whole(d.store)->at != NULL;
    *without_halves += whole && fast && !kiln_store_whole(d.store)->halves;
    s->draw.store = NULL;
    s->draw.fast = false;
    device_close(&d);
    return whole;
}

/* Half precision is for speed: the scene in one piece is worth more. */
static void halves_give_way_before_the_scene(void **state)
{
    scene s;
    unsigned without_halves = 0;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 16);
    /* where the one fits and both do not */
    for (uint64_t cap = 1900000; cap < 2300000; cap += 1 << 14)
        assert_int_equal(stays_whole(cap, &s, true, &without_halves),
                         stays_whole(cap, &s, false, &without_halves));
    assert_true(without_halves > 0);
    scene_free(&s);
}

/* More is visible than there was room for: known at the end, and not tried again, as long as no
 * less may be seen. */
static void what_finds_no_room_comes_through_host_memory(void **state)
{
    scene s;
    picture right;
    unsigned in_vain = 0, fine = 0;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 16);
    draw_on_cpu(&right, &s);
    for (uint64_t cap = 350000; cap < 650000; cap += 2000) {
        device d = device_open(cap);
        s.asked = 0;
        draw_on(&d, &s, &right);
        const bool twice = s.asked == 2 + CHUNKS;
        s.asked = 0;
        draw_on(&d, &s, &right);
        if (twice) assert_int_equal(s.asked, CHUNKS);
        in_vain += twice;
        fine += s.asked == 2;
        device_close(&d);
    }
    assert_true(in_vain > 5 && fine > 5);
    picture_free(&right);
    scene_free(&s);
}

/* What goes to the device for a second picture: no planes and no records. What comes back: the
 * picture, and a few numbers. */
static void only_the_picture_leaves_the_device(void **state)
{
    scene s;
    picture right;
    kiln_drawing drawing;
    kiln_error err = {0};
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 4);
    draw_on_cpu(&right, &s);
    device d = device_open(LARGE);
    draw_on(&d, &s, &right);
    s.draw.store = d.store;
    fake.bytes_in = fake.bytes_out = 0;
    assert_int_equal(kiln_draw_collect(d.runner, &s.draw, &drawing, &err), KILN_OK);
    assert_ptr_equal(drawing.store, d.store);
    assert_null(drawing.splats);
    const kiln_draw_want want = {.rgba = right.rgba};
    assert_int_equal(kiln_draw_picture(d.runner, &s.draw, &drawing, &want, NULL, &err), KILN_OK);
    assert_int_equal(fake.bytes_in, 0);
    assert_true(fake.bytes_out >= right.pixels * 16 && fake.bytes_out < right.pixels * 16 + 1024);
    kiln_drawing_release(&drawing);
    device_close(&d);
    picture_free(&right);
    scene_free(&s);
}

/* Two scenes by turns, each from two places, at caps that hold planes of both, of one, of a chunk,
 * of none. */
static void scenes_and_views_by_turns(void **state)
{
    scene s[2];
    picture right[2][2];
    kiln_view views[2][2];
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        scene_make(&s[k], 200 + 60 * k, 170, KILN_PROFILE_INRIA, 20 + k);
        for (unsigned v = 0; v < 2; v++) {
            views[k][v] = s[k].view;
            views[k][v].t[0] += 0.3f * (float)v;
            s[k].view = views[k][v];
            draw_on_cpu(&right[k][v], &s[k]);
            s[k].view = views[k][0];
        }
    }
    for (uint64_t cap = 200000; cap < 8000000; cap += 200000) {
        device d = device_open(cap);
        for (unsigned turn = 0; turn < 12; turn++) {
            const unsigned k = turn / 2 % 2, v = turn % 3 % 2;
            s[k].view = views[k][v];
            draw_on(&d, &s[k], &right[k][v]);
        }
        device_close(&d);
    }
    for (unsigned k = 0; k < 2; k++) {
        for (unsigned v = 0; v < 2; v++) picture_free(&right[k][v]);
        scene_free(&s[k]);
    }
}

/* Geometry serves pictures and lists; planes with colour serve both, those without are replaced
 * when colour is wanted. */
static void lists_need_no_colour(void **state)
{
    scene s;
    picture right;
    kiln_drawing drawing;
    kiln_error err = {0};
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 6);
    draw_on_cpu(&right, &s);
    device d = device_open(LARGE);
    s.draw.store = d.store;
    s.asked = 0;
    s.colourless = true;
    for (unsigned turn = 0; turn < 2; turn++) {
        assert_int_equal(kiln_draw_collect(d.runner, &s.draw, &drawing, &err), KILN_OK);
        assert_int_equal(s.asked, 2);
        assert_int_equal(drawing.n, right.drawing.n);
        uint32_t *chunk = memory(drawing.n, sizeof *chunk), *row = memory(drawing.n, sizeof *row);
        assert_int_equal(kiln_drawing_names(d.runner, &drawing, chunk, row, &err), KILN_OK);
        for (uint64_t i = 0; i < drawing.n; i++) {
            assert_int_equal(chunk[i], right.drawing.chunk[i]);
            assert_int_equal(row[i], right.drawing.splats[i].row);
        }
        free(chunk);
        free(row);
        kiln_drawing_release(&drawing);
    }
    s.colourless = false;
    draw_on(&d, &s, &right);
    assert_int_equal(s.asked, 4);
    s.colourless = true;
    s.draw.store = d.store;
    assert_int_equal(kiln_draw_collect(d.runner, &s.draw, &drawing, &err), KILN_OK);
    assert_int_equal(s.asked, 4);
    kiln_drawing_release(&drawing);
    device_close(&d);
    picture_free(&right);
    scene_free(&s);
}

/* Where there is room for the scene in one piece, how many launches a picture takes does not depend
 * on its chunks. */
static void a_scene_in_one_piece_is_projected_at_once(void **state)
{
    /* project, depth_order, visible_order, count, emit, raster; visible_gather, too */
    enum { AT_ONCE = 6, BY_CHUNKS = 9 };
    scene s;
    picture right;
    unsigned at_once = 0, by_chunks = 0;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 14);
    draw_on_cpu(&right, &s);
    for (uint64_t cap = 1000000; cap <= LARGE; cap += cap / 8) {
        device d = device_open(cap);
        for (unsigned turn = 0; turn < 2; turn++) draw_on(&d, &s, &right);
        fake.launches = 0;
        draw_on(&d, &s, &right);
        at_once += fake.launches == AT_ONCE;
        by_chunks += fake.launches == BY_CHUNKS;
        if (cap > LARGE / 2) assert_int_equal(fake.launches, AT_ONCE);
        device_close(&d);
    }
    assert_true(at_once > 5 && by_chunks > 0);
    picture_free(&right);
    scene_free(&s);
}

/* So is one of a single chunk: what is projected stays where it is. */
static void one_chunk_is_a_scene_in_one_piece(void **state)
{
    scene s;
    picture right;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 16);
    s.draw.n_chunks = 1;
    draw_on_cpu(&right, &s);
    device d = device_open(LARGE);
    draw_on(&d, &s, &right);
    assert_non_null(kiln_store_whole(d.store)->at);
    device_close(&d);
    picture_free(&right);
    scene_free(&s);
}

/* Its rows are there from the start and hold nothing; when it is seen its planes alone come. */
static void a_chunk_comes_when_it_is_seen_first(void **state)
{
    scene s;
    picture right[2];
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 15);
    for (unsigned k = 0; k < 2; k++) {
        s.last_hidden = k == 0;
        draw_on_cpu(&right[k], &s);
    }
    assert_true(right[0].drawing.n < right[1].drawing.n);
    device d = device_open(LARGE);
    for (unsigned k = 0; k < 2; k++) {
        s.last_hidden = k == 0;
        s.asked = 0;
        for (unsigned turn = 0; turn < 2; turn++) draw_on(&d, &s, &right[k]);
        assert_int_equal(s.asked, 1);
    }
    device_close(&d);
    for (unsigned k = 0; k < 2; k++) picture_free(&right[k]);
    scene_free(&s);
}

/* Lists of a drawing on the device are those of one in host memory, and draw the same band. */
static void lists_come_down_and_go_up(void **state)
{
    scene s;
    picture right;
    kiln_drawing drawing;
    kiln_error err = {0};
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 8);
    draw_on_cpu(&right, &s);
    const uint32_t row0 = 3, row1 = 9, tiles = (row1 - row0) * kiln_view_tiles_x(&s.view);
    const uint64_t first = (uint64_t)row0 * KILN_TILE * s.view.width;
    for (uint64_t cap = 1000; cap <= LARGE; cap *= 2) {
        uint64_t row_pairs[6], pairs = 0;
        device d = device_open(cap);
        s.draw.store = d.store;
        assert_int_equal(kiln_draw_collect(d.runner, &s.draw, &drawing, &err), KILN_OK);
        if (cap == LARGE) assert_non_null(drawing.store);
        const kiln_tile_pairs_count_args c = {
            .view = &s.view, .row0 = row0, .row1 = row1, .row_pairs = row_pairs};
        assert_int_equal(kiln_draw_count(d.runner, &drawing, &c, &err), KILN_OK);
        for (unsigned i = 0; i < row1 - row0; i++) pairs += row_pairs[i];
        uint32_t *counts[2], *ranks[2];
        for (unsigned k = 0; k < 2; k++) {
            counts[k] = memory(tiles, sizeof **counts);
            ranks[k] = memory(pairs, sizeof **ranks);
        }
        kiln_tile_pairs_emit_args e = {.view = &s.view,
                                       .row0 = row0,
                                       .row1 = row1,
                                       .capacity = pairs,
                                       .tile_counts = counts[0],
                                       .ranks = ranks[0]};
        if (kiln_draw_emit(d.runner, &drawing, &e, &err) != KILN_OK) fail_msg("%s", err.msg);
        e.n = right.drawing.n;
        e.splats = right.drawing.splats;
        e.tile_counts = counts[1];
        e.ranks = ranks[1];
        const kiln_exec cpu = {.device = -1, .threads = 1};
        size_t bytes = 0;
        assert_int_equal(
            kiln_op_call(kiln_ops_cpu(), KILN_OP_tile_pairs_emit, &cpu, &e, NULL, &bytes, &err),
            KILN_OK);
        void *work = memory(bytes, 1);
        assert_int_equal(
            kiln_op_call(kiln_ops_cpu(), KILN_OP_tile_pairs_emit, &cpu, &e, work, &bytes, &err),
            KILN_OK);
        free(work);
        assert_memory_equal(counts[0], counts[1], tiles * sizeof **counts);
        assert_memory_equal(ranks[0], ranks[1], pairs * sizeof **ranks);
        kiln_raster_args a = {.view = &s.view,
                              .profile = s.draw.profile,
                              .row0 = row0,
                              .row1 = row1,
                              .tile_counts = counts[0],
                              .ranks = ranks[0],
                              .n_pairs = pairs,
                              .background = {0.1f, 0.5f, 2}};
        const uint64_t pixels = kiln_raster_pixels(&a);
        a.rgba = memory(4 * pixels, sizeof *a.rgba);
        if (kiln_draw_raster(d.runner, &drawing, &a, &err) != KILN_OK) fail_msg("%s", err.msg);
        assert_memory_equal(a.rgba, right.rgba + 4 * first, 4 * pixels * sizeof *a.rgba);
        ranks[0][pairs / 2] = UINT32_MAX;
        assert_int_equal(kiln_draw_raster(d.runner, &drawing, &a, &err), KILN_E_INPUT);
        kiln_drawing_release(&drawing);
        device_close(&d);
        free(a.rgba);
        for (unsigned k = 0; k < 2; k++) {
            free(counts[k]);
            free(ranks[k]);
        }
    }
    picture_free(&right);
    scene_free(&s);
}

/* Counted by themselves, at every cap: as many as the picture has. */
static void counts_are_those_of_the_picture(void **state)
{
    uint64_t rows[2][14];
    kiln_draw_tally right_tally = {.row_pairs = rows[0]}, t = {.row_pairs = rows[1]};
    scene s;
    picture right;
    kiln_error err = {0};
    unsigned on_device = 0;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_GSPLAT_15, 17);
    draw_on_cpu(&right, &s);
    s.colourless = true;
    fake_reset();
    kiln_runner *cpu = fake_runner(KILN_RUNNER_CPU, 0);
    assert_int_equal(kiln_draw_count_all(cpu, &s.draw, &right_tally, &err), KILN_OK);
    kiln_runner_free(cpu);
    assert_int_equal(right_tally.visible, right.drawing.n);
    assert_int_equal(right_tally.pairs, right.pairs);
    assert_true(right_tally.box_pairs > right.pairs);
    for (uint64_t cap = 1; cap <= LARGE; cap += cap / 32 + 1) {
        device d = device_open(cap);
        s.draw.store = d.store;
        for (unsigned turn = 0; turn < 2; turn++) {
            s.asked = 0;
            memset(rows[1], FAKE_POISON, sizeof rows[1]);
            assert_int_equal(kiln_draw_count_all(d.runner, &s.draw, &t, &err), KILN_OK);
            assert_int_equal(t.visible, right_tally.visible);
            assert_int_equal(t.pairs, right_tally.pairs);
            assert_int_equal(t.box_pairs, right_tally.box_pairs);
            assert_memory_equal(rows[0], rows[1], sizeof rows[0]);
        }
        on_device += s.asked == 0;
        device_close(&d);
    }
    assert_true(on_device > 5);
    picture_free(&right);
    scene_free(&s);
}

/* ---- who gives way --------------------------------------------------------------------------- */

/* An operation of the runner finds all of the cap but a drawing, and the next picture is right. */
static void an_operation_of_the_runner_finds_its_memory(void **state)
{
    scene s;
    picture right;
    kiln_error err = {0};
    uint64_t need, row_pairs[14];
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 9);
    draw_on_cpu(&right, &s);
    const uint64_t n = 60000;
    kiln_splat2d *many = memory(n, sizeof *many);
    for (uint64_t i = 0; i < n; i++) many[i] = right.drawing.splats[i % right.drawing.n];
    const kiln_tile_pairs_count_args count = {
        .n = n, .splats = many, .view = &s.view, .row1 = 14, .row_pairs = row_pairs};
    device d = device_open(LARGE);
    assert_int_equal(kiln_runner_need(d.runner, KILN_OP_tile_pairs_count, &count, &need, &err),
                     KILN_OK);
    device_close(&d);
    d = device_open(need);
    for (unsigned turn = 0; turn < 3; turn++) {
        s.asked = 0;
        draw_on(&d, &s, &right);
        assert_int_equal(s.asked, 2);
        s.asked = 0;
        draw_on(&d, &s, &right);
        assert_int_equal(s.asked, 0);
        assert_int_equal(kiln_runner_run(d.runner, KILN_OP_tile_pairs_count, &count, &err),
                         KILN_OK);
        assert_int_equal(kiln_runner_get_info(d.runner).n_host, 0);
    }
    device_close(&d);
    free(many);
    picture_free(&right);
    scene_free(&s);
}

/* The device has place for one drawing; another one meanwhile is in host memory. */
static void a_second_drawing_is_in_host_memory(void **state)
{
    scene s;
    picture right;
    kiln_drawing first;
    kiln_error err = {0};
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 12);
    draw_on_cpu(&right, &s);
    device d = device_open(LARGE);
    s.draw.store = d.store;
    assert_int_equal(kiln_draw_collect(d.runner, &s.draw, &first, &err), KILN_OK);
    draw_on(&d, &s, &right);
    assert_ptr_equal(first.store, d.store);
    assert_int_equal(kiln_drawing_fetch(&first, &err), KILN_OK);
    assert_null(first.store);
    assert_int_equal(first.n, right.drawing.n);
    assert_memory_equal(first.splats, right.drawing.splats, first.n * sizeof *first.splats);
    kiln_drawing_release(&first);
    device_close(&d);
    picture_free(&right);
    scene_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_cap_changes_a_picture),
        cmocka_unit_test(what_finds_no_room_comes_through_host_memory),
        cmocka_unit_test(a_picture_is_made_on_the_device_or_not_at_all),
        cmocka_unit_test(only_the_picture_leaves_the_device),
        cmocka_unit_test(scenes_and_views_by_turns),
        cmocka_unit_test(a_scene_in_one_piece_is_projected_at_once),
        cmocka_unit_test(one_chunk_is_a_scene_in_one_piece),
        cmocka_unit_test(a_chunk_comes_when_it_is_seen_first),
        cmocka_unit_test(lists_need_no_colour),
        cmocka_unit_test(lists_come_down_and_go_up),
        cmocka_unit_test(counts_are_those_of_the_picture),
        cmocka_unit_test(an_operation_of_the_runner_finds_its_memory),
        cmocka_unit_test(a_second_drawing_is_in_host_memory),
        cmocka_unit_test(fast_colours_are_the_same_wherever_they_are_made),
        cmocka_unit_test(halves_give_way_before_the_scene),
    };
    return cmocka_run_group_tests_name("resident", tests, fake_nothing_is_left,
                                       fake_nothing_is_left);
}
