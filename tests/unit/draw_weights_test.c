/* draw_weights_test -- shares of a scene's picture (kernels/draw/shares.h): each lands in its row,
 * and the bits are the same in one piece, in slabs, on a device of host memory with any cap
 * (fake_device.h).
 *
 * starts first */
#include "kernels/blend_weights/blend_weights.h"
#include "kernels/draw/draw.h"
#include "tests/unit/draw_device.h"

#include <math.h>

typedef struct {
    uint64_t *of[CHUNKS], *alphas[CHUNKS];
    uint32_t *peaks[CHUNKS];
    uint8_t *mask; /* NULL: none */
} sums;

static sums sums_make(const scene *s)
{
    sums all = {.mask = NULL};
    for (uint32_t k = 0; k < CHUNKS; k++) {
        all.of[k] = memory(s->chunks[k].n, sizeof *all.of[k]);
        all.alphas[k] = memory(s->chunks[k].n, sizeof *all.alphas[k]);
        all.peaks[k] = memory(s->chunks[k].n, sizeof *all.peaks[k]);
    }
    return all;
}

static void sums_free(sums *all)
{
    for (uint32_t k = 0; k < CHUNKS; k++) {
        free(all->of[k]);
        free(all->alphas[k]);
        free(all->peaks[k]);
    }
    free(all->mask);
}

/* capacity 0: slabs where only they keep the drawing on a device. */
static kiln_status add_shares(kiln_runner *r, const scene *s, uint64_t capacity,
                              uint64_t *const *of, const sums *besides, kiln_draw_stats *stats,
                              kiln_error *err)
{
    const kiln_draw_want want = {
        .ways = capacity ? KILN_DRAW_SLABS : KILN_DRAW_DEVICE | KILN_DRAW_SLABS | KILN_DRAW_HOST,
        .capacity = capacity,
        .sums = of,
        .peaks = besides ? besides->peaks : NULL,
        .alphas = besides ? besides->alphas : NULL,
        .mask = besides ? besides->mask : NULL};
    return kiln_draw(r, &s->draw, &want, stats, err);
}

static sums weigh(kiln_runner *r, scene *s, uint64_t capacity, kiln_draw_stats *stats)
{
    kiln_error err = {0};
    sums all = sums_make(s);
    s->colourless = true; /* shares need no colour */
    if (add_shares(r, s, capacity, all.of, NULL, stats, &err) != KILN_OK) fail_msg("%s", err.msg);
    s->colourless = false;
    return all;
}

/* With all that can be wanted of them, through a mask that leaves out columns in the middle. */
static sums weigh_besides(kiln_runner *r, scene *s, uint64_t capacity, kiln_draw_stats *stats)
{
    kiln_error err = {0};
    const uint32_t width = s->draw.view->width, height = s->draw.view->height;
    sums all = sums_make(s);
    all.mask = memory((uint64_t)width * height, 1);
    for (uint32_t i = 0; i < width * height; i++)
        all.mask[i] = i % width < width / 3 || i % width > width / 2;
    s->colourless = true;
    if (add_shares(r, s, capacity, all.of, &all, stats, &err) != KILN_OK) fail_msg("%s", err.msg);
    s->colourless = false;
    return all;
}

static void must_be(const scene *s, const sums *right, sums *got)
{
    for (uint32_t k = 0; k < CHUNKS; k++) {
        assert_memory_equal(right->of[k], got->of[k], s->chunks[k].n * sizeof *got->of[k]);
        assert_memory_equal(right->alphas[k], got->alphas[k],
                            s->chunks[k].n * sizeof *got->alphas[k]);
        assert_memory_equal(right->peaks[k], got->peaks[k], s->chunks[k].n * sizeof *got->peaks[k]);
    }
    sums_free(got);
}

static void shares_land_in_their_rows(void **state)
{
    scene s;
    picture right;
    kiln_draw_stats stats;
    double covered = 0;
    uint64_t all = 0, seen = 0, drawn = 0;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 30);
    draw_on_cpu(&right, &s);
    kiln_runner *r = fake_runner(KILN_RUNNER_CPU, 0);
    sums got = weigh(r, &s, 0, &stats);
    for (size_t i = 0; i < right.pixels; i++) covered += (double)right.rgba[4 * i + 3];
    for (uint64_t i = 0; i < right.drawing.n; i++) {
        uint64_t *at = &got.of[right.drawing.chunk[i]][right.drawing.splats[i].row];
        drawn += *at > 0;
        all += *at;
        *at = 0;
    }
    for (uint32_t k = 0; k < CHUNKS; k++)
        for (uint64_t i = 0; i < s.chunks[k].n; i++) seen += got.of[k][i] > 0;
    assert_int_equal(seen, 0); /* rows that are not visible have none */
    assert_true(drawn > 10 && covered > 100);
    assert_true(fabs((double)all / KILN_BLEND_UNIT - covered) < 1e-4 * covered);
    assert_int_equal(stats.visible, right.drawing.n);
    assert_int_equal(stats.pairs, right.pairs);
    sums_free(&got);
    kiln_runner_free(r);
    picture_free(&right);
    scene_free(&s);
}

/* A peak is no more than the share, and no less than its part of a pixel; alphas are at least the
 * share. */
static void peaks_and_alphas_fit_shares(void **state)
{
    scene s;
    kiln_draw_stats stats;
    uint64_t hidden = 0, drawn = 0;
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 30);
    kiln_runner *r = fake_runner(KILN_RUNNER_CPU, 0);
    sums plain = weigh(r, &s, 0, &stats), got = weigh_besides(r, &s, 0, &stats);
    for (uint32_t k = 0; k < CHUNKS; k++)
        for (uint64_t i = 0; i < s.chunks[k].n; i++) {
            assert_true(got.of[k][i] <= plain.of[k][i] && plain.alphas[k][i] == 0 &&
                        plain.peaks[k][i] == 0);
            assert_true(got.peaks[k][i] <= got.of[k][i] && got.of[k][i] <= got.alphas[k][i] &&
                        got.peaks[k][i] < KILN_BLEND_UNIT);
            hidden += got.alphas[k][i] > got.of[k][i];
            drawn += got.of[k][i] > 0 && got.of[k][i] < plain.of[k][i];
        }
    assert_true(hidden > 10 && drawn > 3); /* some stand behind others; the mask hides parts */
    sums_free(&plain);
    sums_free(&got);
    kiln_runner_free(r);
    scene_free(&s);
}

static void slabs_do_not_show(void **state)
{
    (void)state;
    for (unsigned k = 0; k < 3; k++) {
        scene s;
        kiln_draw_stats stats;
        scene_make(&s, 301, 16 + 100 * k, (kiln_profile_id)k, 40 + k);
        kiln_runner *r = fake_runner(KILN_RUNNER_CPU, 0);
        sums right = weigh_besides(r, &s, 0, &stats);
        assert_true(stats.visible > 10 && stats.slabs == 0);
        for (uint64_t capacity = 7; capacity < stats.visible; capacity = 3 * capacity + 1) {
            kiln_draw_stats cut;
            sums got = weigh_besides(r, &s, capacity, &cut);
            must_be(&s, &right, &got);
            assert_true(cut.slabs > 1);
        }
        sums_free(&right);
        kiln_runner_free(r);
        scene_free(&s);
    }
}

static void no_cap_of_a_device_shows(void **state)
{
    scene s;
    kiln_draw_stats stats;
    unsigned on_device = 0, slabs = 0;
    (void)state;
    scene_make(&s, 64, 48, KILN_PROFILE_INRIA, 71);
    kiln_runner *r = fake_runner(KILN_RUNNER_CPU, 0);
    sums right = weigh_besides(r, &s, 0, &stats);
    for (uint64_t cap = 20000; cap <= LARGE; cap += cap / 12) {
        device d = device_open(cap);
        s.draw.store = d.store;
        for (unsigned turn = 0; turn < 2; turn++) {
            kiln_draw_stats of_cap;
            sums got = weigh_besides(d.runner, &s, 0, &of_cap);
            must_be(&s, &right, &got);
            slabs += of_cap.slabs > 0;
            on_device += kiln_runner_get_info(d.runner).n_host == 0;
        }
        s.draw.store = NULL;
        device_close(&d);
    }
    assert_true(on_device > 10 && slabs > 0);
    sums_free(&right);
    kiln_runner_free(r);
    scene_free(&s);
}

static void what_breaks_off_leaves_nothing(void **state)
{
    static const fake_step steps[] = {FAKE_COPY_IN, FAKE_LAUNCH, FAKE_COPY_OUT, FAKE_WAIT};
    scene s;
    (void)state;
    scene_make(&s, 200, 100, KILN_PROFILE_INRIA, 80);
    for (unsigned k = 0; k < sizeof steps / sizeof *steps; k++) {
        bool failed = true;
        for (unsigned time = 1; failed; time += 3) {
            kiln_error err = {0};
            sums all = sums_make(&s);
            device d = device_open(LARGE);
            s.draw.store = d.store;
            fake.fail = steps[k];
            fake.fail_in = time;
            const kiln_status st = add_shares(d.runner, &s, 0, all.of, &all, NULL, &err);
            failed = fake.fail_in == 0;
            assert_int_equal(st, failed ? KILN_E_DEVICE : KILN_OK);
            s.draw.store = NULL;
            device_close(&d);
            sums_free(&all);
        }
    }
    scene_free(&s);
}

/* The last chunk has none. */
static void a_chunk_without_sums_must_be_hidden(void **state)
{
    scene s;
    kiln_error err = {0};
    (void)state;
    scene_make(&s, 333, 217, KILN_PROFILE_INRIA, 30);
    kiln_runner *r = fake_runner(KILN_RUNNER_CPU, 0);
    sums all = sums_make(&s);
    uint64_t *some[CHUNKS] = {all.of[0]};
    assert_int_equal(add_shares(r, &s, 0, some, NULL, NULL, &err), KILN_E_BUG);
    s.last_hidden = true;
    assert_int_equal(add_shares(r, &s, 0, some, NULL, NULL, &err), KILN_OK);
    sums_free(&all);
    kiln_runner_free(r);
    scene_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_land_in_their_rows),
        cmocka_unit_test(peaks_and_alphas_fit_shares),
        cmocka_unit_test(slabs_do_not_show),
        cmocka_unit_test(no_cap_of_a_device_shows),
        cmocka_unit_test(what_breaks_off_leaves_nothing),
        cmocka_unit_test(a_chunk_without_sums_must_be_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
