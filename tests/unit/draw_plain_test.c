/* draw_plain_test -- calls without structures draw the bits of draw.h, and refuse what they cannot
 * draw. */
#include "kernels/draw/plain.h"
#include "tests/unit/draw_scene.h"

enum { WIDTH = 70, HEIGHT = 50 };

static const double unit_pose[12] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}, no_origin[3] = {0, 0, 0};
static const double lens[4] = {60, 61, 34, 26};
static const float backdrop[3] = {0.1f, 0.5f, 2}; /* as picture_draw has it */

typedef struct {
    scene s;
    uint64_t rows[CHUNKS];
    const void *planes[CHUNKS][KILN_PLAIN_PLANES];
    float *rgba, *depth;
    kiln_plain *painter;
} plain_scene;

static void plain_make_on(int device, plain_scene *p, kiln_profile_id profile)
{
    memset(p, 0, sizeof *p);
    scene_make(&p->s, WIDTH, HEIGHT, profile, 7);
    for (uint32_t i = 0; i < CHUNKS; i++) {
        const planes *c = &p->s.chunks[i];
        const void *const all[KILN_PLAIN_PLANES] = {
            c->means, c->log_scales, c->quats, c->opacity_logits, c->sh0, c->shN, p->s.rows};
        memcpy(p->planes[i], all, sizeof all);
        p->rows[i] = c->n;
    }
    p->rgba = memory(4 * WIDTH * HEIGHT, sizeof *p->rgba);
    p->depth = memory(WIDTH * HEIGHT, sizeof *p->depth);
    p->painter = kiln_plain_new(device, 1);
    assert_non_null(p->painter);
    assert_int_equal(kiln_plain_scene(p->painter, no_origin, p->s.draw.sh_degree, CHUNKS, p->rows,
                                      &p->planes[0][0]),
                     0);
}

static void plain_make(plain_scene *p, kiln_profile_id profile)
{
    plain_make_on(KILN_RUNNER_CPU, p, profile);
}

static int plain_draw(plain_scene *p, const char *profile, float near_m, uint32_t width,
                      float *depth)
{
    int bad = kiln_plain_renderer(p->painter, profile, p->s.draw.antialiased, near_m);
    if (!bad) bad = kiln_plain_camera(p->painter, unit_pose, lens, width, HEIGHT);
    return bad ? bad : kiln_plain_draw(p->painter, backdrop, p->rgba, depth);
}

static void plain_free(plain_scene *p)
{
    kiln_plain_free(p->painter);
    scene_free(&p->s);
    free(p->rgba);
    free(p->depth);
}

/* Draws the same by draw.h, with the near plane given, and compares. */
static void same_bits(plain_scene *p, kiln_profile_id profile, float near_m)
{
    picture right;
    kiln_view_init(&p->s.view, unit_pose, unit_pose + 9, no_origin, lens, WIDTH, HEIGHT, near_m,
                   kiln_profiles[profile].far_m);
    draw_on_cpu(&right, &p->s);
    assert_memory_equal(right.rgba, p->rgba, right.pixels * 4 * sizeof *right.rgba);
    assert_memory_equal(right.depth, p->depth, right.pixels * sizeof *right.depth);
    picture_free(&right);
}

static void bits_of_draw_view(void **state)
{
    (void)state;
    for (kiln_profile_id profile = 0; profile < KILN_PROFILE_COUNT; profile++) {
        plain_scene p;
        plain_make(&p, profile);
        assert_int_equal(plain_draw(&p, kiln_profiles[profile].name, 0, WIDTH, p.depth), 0);
        assert_string_equal(kiln_plain_message(p.painter), "");
        same_bits(&p, profile, kiln_profiles[profile].near_m);
        assert_int_equal(plain_draw(&p, kiln_profiles[profile].name, 3, WIDTH, p.depth), 0);
        same_bits(&p, profile, 3);
        assert_int_equal(plain_draw(&p, kiln_profiles[profile].name, 0, WIDTH, NULL), 0);
        plain_free(&p);
    }
}

/* Draws from a device, checks the bits, and returns how many bytes were copied there. */
static uint64_t copied_for_picture(plain_scene *p)
{
    const uint64_t before = fake.bytes_in;
    assert_int_equal(plain_draw(p, "inria", 0, WIDTH, p->depth), 0);
    same_bits(p, KILN_PROFILE_INRIA, kiln_profiles[KILN_PROFILE_INRIA].near_m);
    return fake.bytes_in - before;
}

static void planes_are_copied_once(void **state)
{
    (void)state;
    plain_scene p;
    fake_reset();
    plain_make_on(FAKE_DEVICE, &p, KILN_PROFILE_INRIA);
    const uint64_t first = copied_for_picture(&p),
                   of_means = 3 * sizeof(float) * (p.rows[0] + p.rows[2]);
    assert_true(first > of_means);
    for (int i = 0; i < 3; i++) assert_true(copied_for_picture(&p) < of_means / 10);
    /* Another scene, of as many chunks and rows, at the same addresses. */
    for (uint32_t c = 0; c < CHUNKS; c++)
        for (uint64_t i = 0; i < p.rows[c]; i++) ((float *)(uintptr_t)p.planes[c][0])[i] *= 0.5f;
    assert_int_equal(
        kiln_plain_scene(p.painter, no_origin, p.s.draw.sh_degree, CHUNKS, p.rows, &p.planes[0][0]),
        0);
    assert_true(copied_for_picture(&p) > of_means);
    assert_true(copied_for_picture(&p) < of_means / 10);
    plain_free(&p);
}

static void refused(void **state)
{
    (void)state;
    plain_scene p;
    plain_make(&p, KILN_PROFILE_INRIA);
    assert_int_equal(plain_draw(&p, "inria-2", 0, WIDTH, NULL), 2);
    assert_string_equal(kiln_plain_message(p.painter),
                        "there is no profile 'inria-2'; there are inria|gsplat-1.5|gsplat-1.6");
    assert_int_equal(plain_draw(&p, NULL, 0, WIDTH, NULL), 2);
    assert_int_equal(plain_draw(&p, "inria", 0, 0, NULL), 2);
    assert_int_equal(plain_draw(&p, "inria", 0, (1 << 20) + 1, NULL), 2);
    p.planes[2][5] = NULL;
    assert_int_equal(plain_draw(&p, "inria", 0, WIDTH, NULL), 2);
    assert_string_equal(kiln_plain_message(p.painter), "pointer 5 of chunk 2 is NULL");
    assert_int_equal(kiln_plain_draw(p.painter, NULL, p.rgba, NULL), 2);
    assert_int_equal(kiln_plain_scene(p.painter, no_origin, 0, 1, NULL, NULL), 2);
    assert_string_equal(kiln_plain_message(p.painter), "a pointer is NULL");
    assert_int_equal(plain_draw(&p, "inria", 0, WIDTH, NULL), 2);
    assert_string_equal(kiln_plain_message(p.painter),
                        "a picture needs a scene, a renderer and a camera");
    assert_int_equal(kiln_plain_scene(p.painter, no_origin, 0, 0, NULL, NULL), 0);
    assert_int_equal(plain_draw(&p, "inria", 0, WIDTH, NULL), 0); /* of nothing */
    kiln_plain_free(p.painter);
    p.painter = kiln_plain_new(100000, 1);
    assert_int_equal(kiln_plain_scene(p.painter, no_origin, 0, 0, NULL, NULL), 0);
    assert_int_equal(plain_draw(&p, "inria", 0, WIDTH, NULL), 6);
    plain_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bits_of_draw_view),
                                       cmocka_unit_test(planes_are_copied_once),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests_name("draw_plain", tests, fake_nothing_is_left,
                                       fake_nothing_is_left);
}
