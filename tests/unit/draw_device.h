/* draw_device -- a device of host memory with a store, for tests of what stays there
 * (kernels/draw/store.h). */
#ifndef KILN_TESTS_DRAW_DEVICE_H
#define KILN_TESTS_DRAW_DEVICE_H

#include "tests/unit/draw_scene.h"

static const uint64_t LARGE = (uint64_t)1 << 30;

typedef struct {
    uint64_t cap;
    kiln_runner *runner;
    kiln_draw_store *store;
} device;

static device device_open(uint64_t cap)
{
    device d = {.cap = cap};
    kiln_error err = {0};
    fake_reset();
    d.runner = fake_runner(FAKE_DEVICE, cap);
    assert_int_equal(kiln_draw_store_new(d.runner, &d.store, &err), KILN_OK);
    return d;
}

static void device_close(device *d)
{
    assert_int_equal(fake.in_flight, 0);
    assert_true(fake.peak <= d->cap);
    assert_int_equal(kiln_runner_get_info(d->runner).peak_bytes, fake.peak);
    kiln_draw_store_free(d->store);
    kiln_runner_free(d->runner);
    assert_int_equal(fake.held, 0);
}

/* A drawing and its picture, which must be the right ones. */
static inline void draw_on(const device *d, scene *s, const picture *right)
{
    picture p;
    kiln_error err = {0};
    s->draw.store = d->store;
    if (picture_draw(&p, d->runner, s, &err) != KILN_OK)
        fail_msg("cap %llu: %s", (unsigned long long)d->cap, err.msg);
    must_be_equal(right, &p);
    picture_free(&p);
    s->draw.store = NULL;
}

#endif
