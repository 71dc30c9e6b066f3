/* Canvases: each is somebody's alone until it is given back, and who finds all taken waits. */
#include "stages/frame/canvas.h"

#include "kernels/runner.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

enum { PIXELS = 1000, MOST = 4 };

static kiln_canvas *take(kiln_canvases *c)
{
    kiln_error err = {0};
    kiln_canvas *canvas;
    if (kiln_canvas_take(c, &canvas, &err) != KILN_OK) fail_msg("%s", err.msg);
    return canvas;
}

static kiln_canvases *make(unsigned most)
{
    kiln_error err = {0};
    kiln_canvases *c;
    assert_int_equal(kiln_canvases_new(KILN_RUNNER_CPU, PIXELS, most, &c, &err), KILN_OK);
    return c;
}

static void each_has_its_own_pixels(void **state)
{
    (void)state;
    kiln_canvas *taken[MOST];
    kiln_canvases *c = make(MOST);
    for (unsigned i = 0; i < MOST; i++) {
        taken[i] = take(c);
        for (unsigned k = 0; k < 4 * PIXELS; k++) kiln_canvas_pixels(taken[i])[k] = (float)i;
    }
    for (unsigned i = 0; i < MOST; i++) {
        for (unsigned k = 0; k < 4 * PIXELS; k++)
            assert_true(kiln_canvas_pixels(taken[i])[k] == (float)i);
        kiln_canvas_give(taken[i]);
    }
    kiln_canvases_free(c);
}

static void one_that_is_given_back_is_taken_again(void **state)
{
    (void)state;
    kiln_canvases *c = make(1);
    kiln_canvas *first = take(c);
    kiln_canvas_give(first);
    assert_ptr_equal(take(c), first);
    kiln_canvas_give(first);
    kiln_canvases_free(c);
}

/* ---- waiting --------------------------------------------------------------------------------- */
typedef struct {
    kiln_canvas *canvas;
    atomic_bool given;
} giver;

static void *give_later(void *context)
{
    giver *g = context;
    (void)nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    atomic_store(&g->given, true);
    kiln_canvas_give(g->canvas);
    return NULL;
}

static void who_finds_all_taken_waits(void **state)
{
    (void)state;
    pthread_t thread;
    kiln_canvases *c = make(2);
    kiln_canvas *first = take(c);
    giver g = {.canvas = take(c)};
    assert_int_equal(pthread_create(&thread, NULL, give_later, &g), 0);
    assert_ptr_equal(take(c), g.canvas);
    assert_true(atomic_load(&g.given));
    assert_int_equal(pthread_join(thread, NULL), 0);
    kiln_canvas_give(g.canvas);
    kiln_canvas_give(first);
    kiln_canvases_free(c);
}

static void memory_goes_when_the_last_is_given_back(void **state)
{
    (void)state;
    pthread_t thread;
    kiln_canvases *c = make(2);
    giver g = {.canvas = take(c)};
    assert_int_equal(pthread_create(&thread, NULL, give_later, &g), 0);
    kiln_canvases_free(c);
    assert_true(atomic_load(&g.given));
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void they_are_told_by_number_and_size(void **state)
{
    (void)state;
    kiln_canvases *c = make(2);
    assert_true(kiln_canvases_are(c, PIXELS, 2));
    assert_false(kiln_canvases_are(c, PIXELS + 1, 2));
    assert_false(kiln_canvases_are(c, PIXELS, 3));
    assert_false(kiln_canvases_are(NULL, PIXELS, 2));
    assert_int_equal(kiln_canvases_bytes(c), 2 * kiln_canvas_bytes(PIXELS));
    assert_int_equal(kiln_canvases_bytes(NULL), 0);
    kiln_canvases_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_its_own_pixels),
        cmocka_unit_test(one_that_is_given_back_is_taken_again),
        cmocka_unit_test(who_finds_all_taken_waits),
        cmocka_unit_test(memory_goes_when_the_last_is_given_back),
        cmocka_unit_test(they_are_told_by_number_and_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
